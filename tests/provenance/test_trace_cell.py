"""`trace.py --cell model/suite/task/metric` names a row in one word, and says what is wrong with a word."""

import subprocess
from collections.abc import Callable

import pytest

Trace = Callable[..., subprocess.CompletedProcess[str]]


def test_a_cell_is_found_by_its_words_as_by_options(trace: Trace) -> None:
    options = ("--model", "elc_bert", "--suite", "pairs", "--task", "binding", "--metric", "accuracy_percent")
    by_options, by_cell = trace(*options), trace("--cell", "elc_bert/pairs/binding/accuracy_percent")
    assert by_cell.returncode == 0
    assert "elc_bert pairs binding accuracy_percent = 53.0000" in by_cell.stdout
    assert by_cell.stdout == by_options.stdout


def test_later_words_may_be_left_out_and_options_narrow_the_choice(trace: Trace) -> None:
    full = trace("--cell", "elc_bert/pairs/binding/accuracy_percent").stdout
    assert trace("--cell", "elc_bert").stdout == full
    assert trace("--cell", "elc_bert//binding").stdout == full
    assert trace("--cell", "elc_bert", "--task", "binding").stdout == full


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("elc_bert/pears", "suite: got 'pears', no such row; did you mean 'pairs'? There are: pairs"),
        ("elc_bert/pairs/binding/accuracy_percent/5", "expected model/suite/task/metric or the first words of that"),
    ],
)
def test_a_wrong_cell_is_one_line_with_what_there_is(trace: Trace, cell: str, message: str) -> None:
    result = trace("--cell", cell)
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
