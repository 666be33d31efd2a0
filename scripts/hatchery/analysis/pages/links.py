"""Addresses of files, relative to the page that names them, so that a folder of results can be moved or sent."""

import os
from pathlib import Path
from urllib.parse import quote

from hatchery.analysis.cards.tables import html_text


def address(target: Path, page: Path) -> str:
    """The address of the file `target` on `page`, ready for a quoted attribute."""
    relative = Path(os.path.relpath(target.absolute(), page.absolute().parent))
    return html_text(quote(relative.as_posix()))
