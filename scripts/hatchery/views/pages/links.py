"""Addresses of files, relative to the page that names them, so that a folder of results can be moved or sent."""

import os
from pathlib import Path
from urllib.parse import quote


def address(target: Path, page: Path) -> str:
    """The address of the file `target` on `page`, still to be escaped."""
    relative = Path(os.path.relpath(target.absolute(), page.absolute().parent))
    return quote(relative.as_posix())
