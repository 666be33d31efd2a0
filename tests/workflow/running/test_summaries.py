"""Printing summaries at the end of a workflow."""

import io
from pathlib import Path

from hatchery.artifacts.checksums import write_checksums
from hatchery.workflow.open_workflow import show_summaries


def summary(path: Path, text: str) -> Path:
    """A summary with its checksum beside it."""
    path.write_text(text, encoding="utf-8")
    write_checksums([path])
    return path


def test_summaries_are_printed_in_the_given_order(tmp_path: Path) -> None:
    for name in ("b", "a"):
        summary(tmp_path / name, f"summary of {name}\n")
    stream = io.StringIO()
    show_summaries([tmp_path / "b", tmp_path / "a"], stream)
    assert stream.getvalue() == "\nsummary of b\n\nsummary of a\n"


def test_a_missing_summary_is_told_and_does_not_stop_the_others(tmp_path: Path) -> None:
    summary(tmp_path / "a", "summary of a\n")
    stream = io.StringIO()
    show_summaries([tmp_path / "gone", tmp_path / "a"], stream)
    assert "no summary to show" in stream.getvalue()
    assert stream.getvalue().endswith("summary of a\n")


def test_characters_that_the_terminal_lacks_do_not_stop_it(tmp_path: Path) -> None:
    summary(tmp_path / "a", "zażółć\n")
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="ascii")
    show_summaries([tmp_path / "a"], stream)
    assert buffer.getvalue() == b"\nza????\n"


def test_an_altered_summary_is_not_printed(tmp_path: Path) -> None:
    path = summary(tmp_path / "a", "score 51.0\n")
    path.write_text("score 91.0\n", encoding="utf-8")
    stream = io.StringIO()
    show_summaries([path], stream)
    assert "91.0" not in stream.getvalue()
    assert "no summary to show" in stream.getvalue()
    assert "SHA-256" in stream.getvalue()
