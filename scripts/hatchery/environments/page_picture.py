"""A picture of a page for the README: taken by a command, so that it can be made anew whenever the page changes."""

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hatchery.artifacts.atomic import write_bytes
from hatchery.errors import HatcheryError

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
MOST_BYTES = 300_000
_SECONDS = 120


class PictureError(HatcheryError):
    """A page of which no picture could be taken."""


@dataclass(frozen=True)
class PictureSize:
    """Size of the window in pixels; what lies below it is not in the picture."""

    width: int
    height: int


def find_browser() -> str:
    """The first of BROWSERS that is installed. Raises PictureError when there is none."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise PictureError(
            f"no browser: expected one of {', '.join(BROWSERS)} on PATH; install one "
            "(on Debian: apt-get install chromium)"
        )
    return found


def take_picture(page: Path, output: Path, size: PictureSize) -> None:
    """Write the top of `page` to `output` as PNG of at most MOST_BYTES.

    Raises PictureError when the page or a browser is missing, or when the picture becomes too large.
    """
    browser = find_browser()
    if not page.is_file():
        raise PictureError(f"{page}: there is no such page; make it first (the demo's: make demo)")
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "shot.png"
        command = [browser, "--headless", "--disable-gpu", "--hide-scrollbars"]
        # Chromium refuses to run as root with its sandbox; the page is one of ours and loads nothing.
        command += ["--no-sandbox"] if os.geteuid() == 0 else []
        command += [f"--user-data-dir={folder}/profile", f"--window-size={size.width},{size.height}"]
        command += ["--blink-settings=preferredColorScheme=1", f"--screenshot={shot}", page.resolve().as_uri()]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise PictureError(f"{page}: {browser} took no picture within {_SECONDS} seconds") from error
        if done.returncode or not shot.is_file():
            told = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise PictureError(f"{page}: {browser} took no picture: {told}")
        picture = shot.read_bytes()
    if len(picture) > MOST_BYTES:
        raise PictureError(
            f"{output}: the picture has {len(picture):,} bytes, at most {MOST_BYTES:,} are wanted; "
            "take less of the page (--height)"
        )
    write_bytes(output, picture)
