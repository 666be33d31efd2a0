"""Raw text as lines, with decoding errors that name their position.

Lines are streamed, so that memory does not grow with the file.
"""

import codecs
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache

from hatchery.corpora.raw_files import PIECE_BYTES, Piece, blocks, is_packed, unpacked_bytes, where_in
from hatchery.errors import ConfigError, SourceError
from hatchery.raw.registration import RawSource

_PACKED_PIECES = 16


@cache
def is_direct(encoding: str) -> bool:
    """Return True if each ASCII byte always represents its character in this encoding, as in UTF-8 and single-byte
    encodings.

    Raises ConfigError for an unknown encoding.
    """
    try:
        if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig"):
            return True
        characters = bytes(range(256)).decode(encoding, "replace")
    except LookupError as error:
        raise _unknown_encoding(encoding) from error
    except UnicodeError:
        return False
    return len(characters) == 256 and characters[:128].isascii()


def piece_bytes(source: RawSource, name: str, encoding: str) -> int:
    """Return the size in bytes of the pieces into which a large file is divided.

    Compressed files, and files in an encoding that is not direct (`is_direct`), have few large pieces, because all data
    before a piece must be decompressed or decoded.
    """
    if is_direct(encoding) and not is_packed(name):
        return PIECE_BYTES
    return max(PIECE_BYTES, unpacked_bytes(source, name) // _PACKED_PIECES)


def text_blocks(
    source: RawSource,
    name: str,
    encoding: str,
    start: int = 0,
    end: int | None = None,
    has_options: bool = True,
) -> Iterator[bytes]:
    """Yield the bytes `start` to `end - 1` of a text in blocks. Bytes of an encoding that is not direct (`is_direct`)
    are converted to UTF-8.

    Messages name the option `encoding` only if `has_options` is True. Raises ConfigError for an unknown encoding, and
    SourceError for a damaged file. Invalid bytes raise SourceError only if the encoding is not direct; the caller
    decodes the bytes of a direct encoding.
    """
    if is_direct(encoding):
        stream = blocks(source, name, start)
    else:
        stream = _after((text.encode() for text in _decoded(source, name, encoding)), start)
    left = None if end is None else end - start
    for number, block in enumerate(stream):
        if not (start or number) and is_direct(encoding):
            _check_text(source, name, block, has_options)
        if left is not None and len(block) >= left:
            yield block[:left]
            return
        yield block
        left = None if left is None else left - len(block)


def _after(stream: Iterator[bytes], start: int) -> Iterator[bytes]:
    for block in stream:
        if len(block) > start:
            yield block[start:]
        start = max(0, start - len(block))


def decoded_lines(source: RawSource, name: str, encoding: str, offset: int, content: bytes) -> list[str]:
    """Return the lines in `content`, without line ends and byte-order mark. `content` is a block from `text_blocks`
    that begins at byte `offset` of the file.

    Raises SourceError naming the file and the offset of the first byte that is invalid in the encoding.
    """
    try:
        text = content.decode(_codec(encoding))
    except UnicodeDecodeError as error:
        raise _wrong_encoding(source, name, encoding, offset + error.start, error.reason) from error
    return with_unified_ends(text if offset else text.removeprefix("\ufeff")).split("\n")


def first_lines(source: RawSource, name: str, encoding: str) -> list[str]:
    """Return the lines in the first megabyte of a text, for a preview; invalid bytes are replaced."""
    block = next(text_blocks(source, name, encoding), b"")
    end = max(block.rfind(b"\n"), block.rfind(b"\r"))
    return with_unified_ends(block[: end if end > 0 else None].decode(_codec(encoding), "replace")).split("\n")


@cache
def _codec(encoding: str) -> str:
    """Return the codec that decodes the blocks of `text_blocks`. Unlike utf-8-sig, this codec removes no byte-order
    mark at the beginning of a later block.
    """
    return encoding if is_direct(encoding) and codecs.lookup(encoding).name != "utf-8-sig" else "utf-8"


class Lines:
    """Iterates over the lines of a file without line ends (\\n, \\r\\n or \\r) and byte-order mark, in constant memory.

    If `piece` is set, only the lines of this piece are read. `offset` and `line` are the numbers of bytes and lines
    from the start of the file to the end of the current line. With these numbers, a file can be divided between two
    records. If `longest` is set, only \\n ends a line, and a line of more than `longest` bytes is an error.

    Reading raises SourceError naming the file and the offset of the first byte that is invalid in the encoding, or the
    position of the damage in a compressed file. It raises ConfigError for an unknown encoding.
    """

    def __init__(
        self,
        source: RawSource,
        name: str,
        encoding: str = "utf-8",
        piece: Piece | None = None,
        longest: int | None = None,
        has_options: bool = True,
    ) -> None:
        self.source, self.name, self.encoding, self.piece = source, name, encoding, piece
        self.where = where_in(source, name)
        self.mark = ": line "
        self.offset = 0 if piece is None else piece.start
        self.line = 0 if piece is None else piece.line
        self.record_line = self.line
        self.has_options = has_options
        self._longest = longest
        self._length = 0

    @property
    def place(self) -> str:
        """Return the position of the current line for messages."""
        return f"{self.where}{self.mark}{self.line}"

    @property
    def first(self) -> int:
        """Return the number of records that precede the `piece` in its file (see `Piece.first`); 0 if the complete file
        is read.
        """
        return 0 if self.piece is None else self.piece.first

    @contextmanager
    def put_back(self) -> Iterator[None]:
        """Return a context in which `offset` and `line` have their values from before the current line, so that the
        next piece of a divided file can begin at this line.
        """
        self.offset, self.line = self.offset - self._length, self.line - 1
        yield
        self.offset, self.line = self.offset + self._length, self.line + 1

    def __iter__(self) -> Iterator[str]:
        codec = _codec(self.encoding)
        for line in self._with_ends():
            try:
                text = line.decode(codec).rstrip("\r\n" if self._longest is None else "\n")
            except UnicodeDecodeError as error:
                byte = self.offset + error.start
                raise _wrong_encoding(
                    self.source, self.name, self.encoding, byte, error.reason, self.has_options
                ) from error
            if not self.offset:
                text = text.removeprefix("\ufeff")
                if not text and not line.endswith((b"\n", b"\r")):
                    return
            self._length = len(line)
            self.offset += self._length
            self.line += 1
            yield text

    def _with_ends(self) -> Iterator[bytes]:
        end = None if self.piece is None else self.piece.end
        # Join the parts of the current line only at its end, because otherwise a file without line ends would be copied
        # repeatedly.
        begun: list[bytes] = []
        begun_bytes = 0
        for block in text_blocks(self.source, self.name, self.encoding, self.offset, end, self.has_options):
            # A \r at the end of a block is kept for the next block, because it may be the first half of \r\n.
            if begun and begun[-1].endswith(b"\r"):
                block = begun.pop() + block
                begun_bytes = sum(map(len, begun))
            first, *others = self._split(block)
            begun.append(first)
            begun_bytes += len(first)
            if self._longest is not None and begun_bytes > self._longest:
                raise SourceError(f"{self.where}: a line is longer than {self._longest:,} bytes")
            if others or first.endswith(b"\n"):
                yield b"".join(begun)
                last = others.pop() if others and not others[-1].endswith(b"\n") else b""
                yield from others
                begun, begun_bytes = [last] if last else [], len(last)
        if begun:
            yield b"".join(begun)

    def _split(self, block: bytes) -> list[bytes]:
        if self._longest is None:
            return block.splitlines(keepends=True)
        lines = [line + b"\n" for line in block.split(b"\n")]
        lines[-1] = lines[-1][:-1]
        return lines if lines[-1] else lines[:-1]


def _decoded(source: RawSource, name: str, encoding: str) -> Iterator[str]:
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
    except LookupError as error:
        raise _unknown_encoding(encoding) from error
    offset, first = 0, True
    final = False
    stream = blocks(source, name)
    while not final:
        block = next(stream, b"")
        final = not block
        pending = len(decoder.getstate()[0])
        try:
            text = decoder.decode(block, final)
        except UnicodeDecodeError as error:
            raise _wrong_encoding(source, name, encoding, offset - pending + error.start, error.reason) from error
        offset += len(block)
        if first and text:
            text, first = text.removeprefix("\ufeff"), False
        if text:
            yield text


def with_unified_ends(text: str) -> str:
    """Return the text with \\n for every line end."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _unknown_encoding(encoding: str) -> ConfigError:
    return ConfigError(f"encoding: there is no encoding called {encoding!r}")


# Descriptions of files that are not text in the expected encoding, by the first bytes of these files. UTF-16 is
# recognised by its byte-order mark or by zero bytes: in ASCII text that is stored as UTF-16, every second byte is 0.
_BEGINNINGS = {
    b"\x1f\x8b": "compressed with gzip; add .gz to the file name",
    b"BZh": "compressed with bzip2; add .bz2 to the file name",
    b"\xfd7zXZ": "compressed with xz; add .xz to the file name",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; add .zst to the file name",
    b"PK\x03\x04": "a zip archive; unpack the archive, or add .zip to its name and make it a raw input",
    b"%PDF-": "a PDF; save the text of the PDF as .txt",
    b"PAR1": "Parquet; add .parquet to the file name",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}
_LOOKED_AT = 1000
_ZEROS = 0.2
_TOLD_FROM = 16


def _check_text(source: RawSource, name: str, block: bytes, has_options: bool) -> None:
    """Raise SourceError if the first bytes show that the file is not text; a single NUL byte is not an error."""
    head, encoding = block[:_LOOKED_AT], "utf-16"
    kinds = (kind for beginning, kind in _BEGINNINGS.items() if head.startswith(beginning))
    kind = next(kinds, None) if b"\0" in block or not _is_utf8(head) else None
    if kind is None and len(head) >= _TOLD_FROM and head.count(0) > _ZEROS * len(head):
        low = head[1::2].count(0) > head[::2].count(0)
        kind, encoding = "text in UTF-16 or no text", f"utf-16-{'le' if low else 'be'}"
    if kind is not None:
        option = f", or set the option `encoding: {encoding}`" if has_options else ""
        remedy = f"; save the file as UTF-8{option}" if "UTF-16" in kind else ""
        raise SourceError(f"{where_in(source, name)}: is {kind}{remedy}")


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _wrong_encoding(
    source: RawSource, name: str, encoding: str, byte: int, reason: str, has_options: bool = True
) -> SourceError:
    also = "; a source in config/corpora/ may also name its encoding, as in `options: {encoding: cp1252}`"
    return SourceError(
        f"{where_in(source, name)}: byte {byte} is not {encoding} ({reason}); save the file as UTF-8"
        f"{also * has_options}"
    )


def pieces_between(records: Iterable[bool], lines: Lines, piece_bytes: int, every: int = 1) -> Iterator[Piece]:
    """Yield pieces of a file, of about `piece_bytes` each; every piece begins at the first record of a document.

    `records` reads one record after another from `lines`, and yields False for a record that the reader rejects. Every
    document consists of `every` records that are not rejected. A piece ends only at the end of a record, so no piece
    begins inside a quoted field or an article.
    """
    start = end = (lines.offset, lines.line)
    first = kept = 0
    for is_kept in records:
        if is_kept:
            if kept > first and kept % every == 0 and end[0] - start[0] >= piece_bytes:
                yield Piece(start[0], end[0], start[1], first, kept - first)
                start, first = end, kept
            kept += 1
        end = (lines.offset, lines.line)
    yield Piece(start[0], lines.offset, start[1], first, kept - first)
