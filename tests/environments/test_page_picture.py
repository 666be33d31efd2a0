"""The picture of a page for the README: one clear line where it cannot be taken, and small where it can."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.image import imread

from hatchery.environments import page_picture
from hatchery.environments.page_picture import BROWSERS, MOST_BYTES, PictureError, PictureSize, take_picture

SIZE = PictureSize(400, 300)
PAGE = '<!DOCTYPE html><html lang="en"><body style="background: #0072b2">a page</body></html>'


def test_without_a_browser_one_line_says_which_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "index.html"
    page.write_text(PAGE)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PictureError, match=r"^no browser: expected one of chromium, .* apt-get install chromium\)$"):
        take_picture(page, tmp_path / "page.png", SIZE)
    assert not (tmp_path / "page.png").exists()


def test_a_missing_page_says_how_it_is_made(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_picture, "find_browser", lambda: "browser")
    with pytest.raises(PictureError, match=r"index\.html: there is no such page; make it first"):
        take_picture(tmp_path / "index.html", tmp_path / "page.png", SIZE)
    command = [sys.executable, str(repository / "scripts" / "picture_page.py"), "--page", str(tmp_path / "no.html")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason="needs chromium")
def test_the_picture_shows_the_page_in_its_own_colours(tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    page.write_text(PAGE)
    take_picture(page, tmp_path / "docs" / "page.png", SIZE)
    picture = imread(tmp_path / "docs" / "page.png")
    assert picture.shape[:2] == (300, 400)
    assert (255 * picture[200, 300, :3]).round().tolist() == [0, 0x72, 0xB2]


def test_the_picture_of_the_readme_is_small(repository: Path) -> None:
    assert 10_000 < (repository / "docs" / "demo_page.png").stat().st_size <= MOST_BYTES
