"""Views are read only where a line of their checksums vouches for their bytes."""

from pathlib import Path

import pytest

from hatchery.artifacts.checksums import checksums_of, vouched, write_checksums
from hatchery.errors import ManifestError


def test_a_view_without_a_line_of_its_own_is_refused(tmp_path: Path) -> None:
    views = [tmp_path / f"summary.{suffix}" for suffix in ("csv", "md")]
    for view in views:
        view.write_text("as it was made", encoding="utf-8")
    write_checksums(views)
    assert [vouched(view) for view in views] == views
    listing = checksums_of(views[0])
    listing.write_text(listing.read_text("ascii").splitlines(keepends=True)[1], encoding="ascii")
    assert vouched(views[1]) == views[1]
    with pytest.raises(ManifestError, match=r"summary\.sha256: has no line for summary\.csv; remove .*csv to"):
        vouched(views[0])
