"""Printing summaries at the end of a workflow."""

import io
from pathlib import Path

from hatchery.running.summaries import show_summaries


def test_summaries_are_printed_in_the_given_order(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).write_text(f"summary of {name}\n")
    stream = io.StringIO()
    show_summaries([tmp_path / "b", tmp_path / "a"], stream)
    assert stream.getvalue() == "\nsummary of b\n\nsummary of a\n"


def test_a_missing_summary_is_told_and_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("summary of a\n")
    stream = io.StringIO()
    show_summaries([tmp_path / "gone", tmp_path / "a"], stream)
    assert "no summary to show" in stream.getvalue()
    assert stream.getvalue().endswith("summary of a\n")


def test_characters_that_the_terminal_lacks_do_not_stop_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("zażółć\n", encoding="utf-8")
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="ascii")
    show_summaries([tmp_path / "a"], stream)
    assert buffer.getvalue() == b"\nza????\n"
