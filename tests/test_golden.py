"""The golden files are those that were measured."""

import hashlib
from pathlib import Path


def test_the_golden_files_are_the_listed_ones_byte_by_byte(golden_directory: Path) -> None:
    listed = dict(
        reversed(line.split("  "))
        for line in (golden_directory / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    )
    found = {
        path.relative_to(golden_directory).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in golden_directory.rglob("*")
        if path.is_file() and path.name not in ("README.md", "SHA256SUMS")
    }
    assert found == listed
