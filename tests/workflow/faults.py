"""Damage to a file between the stage that wrote it and the stage that reads it."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def _digit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    start = len(content) // 3
    at = next((i for i in [*range(start, len(content)), *range(start)] if content[i] in b"0123456789"), None)
    if at is None:
        content[len(content) // 2] ^= 1
    else:
        content[at] = ord("0") + (content[at] - ord("0") + 1) % 10
    path.write_bytes(content)


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[int(len(content) * 0.35)] ^= 1
    path.write_bytes(content)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _unreadable(path: Path) -> None:
    # Root can read a file of any mode, but nobody can read a dangling link.
    path.unlink()
    path.symlink_to("nowhere")


DAMAGE: dict[str, Callable[[Path], object]] = {
    "byte flipped": _flip,
    "digit changed": _digit,
    "cut off": lambda path: os.truncate(path, path.stat().st_size * 3 // 5),
    "emptied": lambda path: os.truncate(path, 0),
    "deleted": Path.unlink,
    "a folder": _folder,
    "unreadable": _unreadable,
}


@contextmanager
def damaged(path: Path, damage: str) -> Iterator[None]:
    """Damage a file, and restore it at the end."""
    kept = path.with_name(f"{path.name}.kept")
    shutil.copy2(path, kept)
    try:
        DAMAGE[damage](path)
        yield
    finally:
        if path.is_dir():
            path.rmdir()
        kept.replace(path)
