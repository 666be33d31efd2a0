"""Decoding of raw text with errors that say where: file and byte offset."""

from hatchery.errors import ConfigError, SourceError
from hatchery.storage.sources import RawSource


def where_in(source: RawSource, name: str) -> str:
    """How messages call a member of a source: by its path, inside the archive where there is one."""
    if source.kind == "file":
        return str(source.root)
    return f"{source.root}:{name}" if source.kind == "zip" else str(source.root / name)


def read_text(source: RawSource, name: str, encoding: str = "utf-8") -> str:
    """The text of a member with newlines as `\\n`, without a byte-order mark.

    Raises SourceError naming the file and the byte offset of the first byte that the encoding cannot have, and
    ConfigError for an unknown encoding.
    """
    content = source.read_bytes(name)
    try:
        text = content.decode(encoding)
    except LookupError as error:
        raise ConfigError(f"encoding: there is no encoding called {encoding!r}") from error
    except UnicodeDecodeError as error:
        raise SourceError(
            f"{where_in(source, name)}: byte {error.start} is not {encoding} ({error.reason}); "
            "set the option `encoding` if the file has another one"
        ) from error
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def matching_names(source: RawSource, patterns: tuple[str, ...], exclude: tuple[str, ...] = ()) -> list[str]:
    """Sorted names that match one of `patterns` and none of `exclude`. Raises SourceError when there is none."""
    excluded = {name for pattern in exclude for name in source.names(pattern)}
    names = sorted({name for pattern in patterns for name in source.names(pattern)} - excluded)
    if not names:
        raise SourceError(f"{source.root}: no file matches {', '.join(patterns)}")
    return names
