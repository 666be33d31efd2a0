"""Import of an existing tokenizer, a `tokenizer.json` or a SentencePiece model, instead of training one.

External models need their own tokenizer for further training or evaluation. A `tokenizer.json` is used unchanged.

A SentencePiece model (`*.model`) becomes a tokenizer of the library `tokenizers` with the special tokens of RoBERTa.
The file is a protocol buffer, from which this module reads pieces, scores and text normalisation;
`sentencepiece_model.proto` defines the field numbers. Pieces and scores are unchanged, so a text is split as by
SentencePiece. The ids change, because the special tokens come first. RoBERTa's set of special tokens is used, because
the special tokens of a SentencePiece model include neither a padding token nor a mask token.

The result can differ from SentencePiece only if the model has normalisation rules. Then the library `tokenizers` may
lose a combining mark after a character that a rule replaces (a macron below a superscript). And byte fallback, which
writes unknown characters as bytes, writes combining marks in their canonical order.
"""

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from hatchery.artifacts.atomic import write_bytes, write_json, write_text
from hatchery.artifacts.manifests import StageRun
from hatchery.errors import TokenizationError
from hatchery.settings.base import Settings
from hatchery.tokenization.definitions import METASPACE, SPACE, post_processor
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.tokenization.tokenizer_file import load_tokenizer, special_tokens_map, tokenizer_config

SENTENCEPIECE = ".model"
"""Suffix of SentencePiece models."""


@dataclass(frozen=True)
class ImportedTokenizerSettings(Settings):
    """Settings of an imported tokenizer, known without reading the tokenizer's file."""

    vocabulary_size: int
    # Always true. In a manifest, this key shows that a tokenizer was imported and not trained.
    imported: bool = True


def import_tokenizer(settings: ImportedTokenizerSettings, tokenizer_file: Path, run: StageRun) -> None:
    """Write the outputs of the stage `train_tokenizer` for the imported `tokenizer_file`, into the folder of `run`.

    Raises TokenizationError if the file is not a usable tokenizer or has another vocabulary size than the settings.
    """
    tokenizer_json = run.folder / "tokenizer.json"
    if tokenizer_file.suffix == SENTENCEPIECE:
        write_text(tokenizer_json, tokenizer_text(tokenizer_file))
        tokenizer = load_tokenizer(tokenizer_json)
    else:
        tokenizer = load_tokenizer(tokenizer_file)
        write_bytes(tokenizer_json, tokenizer_file.read_bytes())
    if tokenizer.vocabulary_size != settings.vocabulary_size:
        raise TokenizationError(
            f"{tokenizer_file}: vocabulary_size: got {settings.vocabulary_size}, expected "
            f"{tokenizer.vocabulary_size}, the number of entries of this tokenizer"
        )
    write_json(run.folder / "tokenizer_config.json", tokenizer_config(tokenizer.backend, tokenizer.special))
    write_json(run.folder / "special_tokens_map.json", special_tokens_map(tokenizer.special))
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        run.add_output(run.folder / name)
    run.measures["vocabulary_size"] = tokenizer.vocabulary_size


UNIGRAM, BPE = 1, 2
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
Value = int | bytes


class Piece(NamedTuple):
    """An entry of a SentencePiece vocabulary; `kind` is one of NORMAL, UNKNOWN, ..., BYTE."""

    text: str
    score: float
    kind: int


def sentencepiece_tokenizer(path: Path) -> Tokenizer:
    """Return a SentencePiece model file as a tokenizer of the library `tokenizers`. Raises TokenizationError for
    unreadable and unsupported models.
    """
    try:
        model = _message(path.read_bytes())
        pieces = [_piece(entry) for entry in model.get(1, ()) if isinstance(entry, bytes)]
        trainer, cleaning = (_message(_last(model, number, b"")) for number in (2, 3))
        normalizer = _normalizer(cleaning)
    except (OSError, ValueError, IndexError, TypeError, struct.error) as error:
        raise TokenizationError(f"{path}: not a SentencePiece model: {error}") from error
    if not pieces:
        raise TokenizationError(f"{path}: not a SentencePiece model: it has no pieces")
    kind = _last(trainer, 3, UNIGRAM)
    if kind not in (UNIGRAM, BPE):
        raise TokenizationError(
            f"{path}: got a SentencePiece model of type {kind}, expected type {UNIGRAM} (unigram) or {BPE} (bpe)"
        )
    if _last(trainer, 24, 0):
        raise TokenizationError(
            f"{path}: treat_whitespace_as_suffix is not supported: every word must begin with the space symbol"
        )
    if not _last(trainer, 22, 1):
        raise TokenizationError(
            f"{path}: split_by_whitespace=false is not supported: every piece must be part of a single word"
        )
    if defined := next((piece.text for piece in pieces if piece.kind == USER_DEFINED), None):
        raise TokenizationError(
            f"{path}: {defined!r} is a user-defined symbol; expected a model without user-defined symbols"
        )
    special = SPECIAL_SETS["roberta"]
    kept = [piece for piece in pieces if piece.kind in (NORMAL, BYTE) and piece.text not in special.ids]
    scores = {**dict.fromkeys(special.order, 0.0), **{piece.text: piece.score for piece in kept}}
    bytes_too = any(piece.kind == BYTE for piece in kept)
    core: Any
    if kind == UNIGRAM:
        core = models.Unigram(list(scores.items()), special.ids[special.unknown], byte_fallback=bytes_too)
    else:
        vocabulary = {text: index for index, text in enumerate(scores)}
        merges = _merges([piece for piece in kept if piece.kind == NORMAL], vocabulary)
        core = models.BPE(vocabulary, merges, unk_token=special.unknown, fuse_unk=True, byte_fallback=bytes_too)
    tokenizer = Tokenizer(core)
    tokenizer.normalizer = normalizer
    scheme = "always" if _last(cleaning, 3, 1) else "never"
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(METASPACE, prepend_scheme=scheme)
    tokenizer.decoder = decoders.Metaspace(METASPACE, prepend_scheme=scheme)
    if bytes_too:
        parts = [decoders.ByteFallback(), tokenizer.decoder]
        tokenizer.decoder = decoders.Sequence(parts)
    tokenizer.add_special_tokens(list(special.order))
    tokenizer.post_processor = post_processor(special)
    return tokenizer


def tokenizer_text(path: Path) -> str:
    """Return the text of a `tokenizer.json` for a SentencePiece model; the text depends only on the model file."""
    return json.dumps(json.loads(sentencepiece_tokenizer(path).to_str()), ensure_ascii=False, indent=2) + "\n"


def _normalizer(spec: dict[int, list[Value]]) -> normalizers.Normalizer:
    """Return the normaliser of a SentencePiece model from `spec`, the fields of the model's normaliser specification by
    field number. Raises ValueError for invalid normalisation rules.
    """
    parts: list[Any] = []
    if isinstance(charsmap := _last(spec, 2, b""), bytes) and charsmap:
        if b"nfkc" in _last(spec, 1, b""):
            # Sequences such as decomposed Hangul are composed first, because the library looks up a character and its
            # marks as a whole only if they have fewer than six bytes.
            parts.append(normalizers.NFC())
        try:
            parts.append(normalizers.Precompiled(charsmap))
        except Exception as error:  # The library raises Exception, not a subclass.
            raise ValueError(str(error)) from error
    if _last(spec, 4, 1):
        # This step is `Replace` and not `Strip`, because SentencePiece removes only spaces (at the end also its space
        # symbol), but `Strip` would remove all white space of Unicode.
        ends = Regex(rf"\A +|[ {METASPACE}]+\z")
        parts += [normalizers.Replace(ends, ""), normalizers.Replace(Regex(" {2,}"), " ")]
    if _last(spec, 3, 1):
        # Add the space before the text here, because Metaspace adds no space to a text that begins with a space.
        parts.append(normalizers.Prepend(SPACE))
    return normalizers.Sequence(parts)


def _merges(pieces: list[Piece], vocabulary: dict[str, int]) -> list[tuple[str, str]]:
    """Return all pairs of pieces whose concatenation is a piece, sorted by descending score of the concatenation.

    SentencePiece always merges the pair whose concatenation has the highest score.
    """
    ways = [
        (-piece.score, vocabulary[piece.text[:cut]], vocabulary[piece.text[cut:]], piece.text[:cut], piece.text[cut:])
        for piece in pieces
        for cut in range(1, len(piece.text))
        if piece.text[:cut] in vocabulary and piece.text[cut:] in vocabulary
    ]
    return [(left, right) for *_, left, right in sorted(ways)]


def _piece(entry: bytes) -> Piece:
    fields = _message(entry)
    text, score = _last(fields, 1, b""), _last(fields, 2, bytes(4))
    if not isinstance(text, bytes) or not isinstance(score, bytes):
        raise ValueError("a piece has no text or no score")
    (value,) = struct.unpack("<f", score)
    return Piece(text.decode("utf-8"), value, int(_last(fields, 3, NORMAL)))


def _last(fields: dict[int, list[Value]], number: int, default: Any) -> Any:
    return fields[number][-1] if number in fields else default


def _message(data: bytes) -> dict[int, list[Value]]:
    """Return the fields of a protocol-buffer message by field number: varints as integers, all other values as bytes.

    Raises ValueError or IndexError for a damaged message.
    """
    message_fields: dict[int, list[Value]] = {}
    for number, value in _fields(data):
        message_fields.setdefault(number, []).append(value)
    return message_fields


def _fields(data: bytes) -> Iterator[tuple[int, Value]]:
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        number, form = key >> 3, key & 7
        if form == 0:
            value, place = _varint(data, place)
            yield number, value
            continue
        if form not in (1, 2, 5):
            raise ValueError(f"unsupported wire type {form} at byte {place}")
        size = {1: 8, 5: 4}.get(form, 0)
        if form == 2:
            size, place = _varint(data, place)
        if place + size > len(data):
            raise ValueError(f"the field of {size} bytes at byte {place} is longer than the rest of the file")
        yield number, data[place : place + size]
        place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """Return the varint at `place` (seven bits per byte, lowest bits first), and the index of the byte after the
    varint."""
    value, shift = 0, 0
    while True:
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
