"""Answers at the prompt of `make try`, line by line, from a model with known predictions."""

import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hatchery.errors import ConfigError
from hatchery.evaluation.prompt import answer, chosen_model, finished_models


class Asked:
    """A model that fills gaps; in a comparison, it assigns 4 bits to a sentence with `dog`, and 8 bits to others."""

    fills_gaps, continues = True, False

    def fill(self, sentence: str) -> pl.DataFrame:
        rows = [(1, 1, "cat", 0.5), (1, 2, "\x1b[1m", 0.2), (2, 1, "mat", 1.0)][: 2 if sentence.count("__") == 1 else 3]
        return pl.DataFrame(rows, schema=["gap", "rank", "text", "probability"], orient="row")

    def surprisals(self, sentences: list[str]) -> pl.DataFrame:
        assert sentences == ["The old dog"]
        return pl.DataFrame({"word": ["The", "old", "dog"], "surprisal": [None, 6.0, 2.0]})

    def scores(self, sentences: list[str]) -> dict[str, list[float]]:
        return {"score": [-math.log(2) * (4 if "dog" in sentence else 8) for sentence in sentences]}

    def continuation(self, beginning: str, seed: int | None = None) -> str:
        return f"goes on {seed}"


class Continues(Asked):
    """A model that only continues texts."""

    fills_gaps, continues = False, True


class Reads(Asked):
    """A model that neither fills gaps nor continues texts."""

    fills_gaps = False


def answers(model: Any, line: str) -> list[list[str]]:
    """Return the words of each line of an answer; a bar is the number of its blocks."""
    found = [text.replace("#", "█").split() for text in answer(model, line)]
    return [[str(len(word)) if set(word) == {"█"} else word for word in words] for words in found]


def test_each_gap_has_its_subwords_with_bars_of_30_blocks_for_certainty() -> None:
    first, escaped = answers(Asked(), "The __ .")
    assert first == ["cat", "50.0", "%", "15"]
    assert escaped[-3:] == ["20.0", "%", "6"] and "\x1b" not in escaped[0]
    two = answers(Asked(), "The __ on a ___ .")
    assert two == [["gap", "1"], first, escaped, ["gap", "2"], ["mat", "100.0", "%", "30"]]


def test_words_have_bits_with_the_longest_bar_at_the_most_surprising_and_none_without_a_value() -> None:
    assert answers(Asked(), "The old dog") == [["The"], ["old", "6.0", "bits", "30"], ["dog", "2.0", "bits", "10"]]


@pytest.mark.parametrize(
    ("line", "bits", "verdict"),
    [
        ("A dog|A cat", [("4.0", "15"), ("8.0", "30")], "the first is more probable, by 4.0 bits"),
        ("A cat | A dog", [("8.0", "30"), ("4.0", "15")], "the second is more probable, by 4.0 bits"),
        ("A cat | A mat", [("8.0", "30"), ("8.0", "30")], "equally probable"),
    ],
)
def test_of_two_sentences_the_more_probable_is_named(line: str, bits: list[tuple[str, str]], verdict: str) -> None:
    sentences = [part.split() for part in line.split("|")]
    *each, last = answers(Asked(), line)
    assert each == [[number, "bits", bar, *words] for (number, bar), words in zip(bits, sentences, strict=True)]
    assert " ".join(last) == verdict


def test_a_beginning_is_continued_once_without_and_twice_with_a_draw() -> None:
    found = list(answer(Continues(), "The old"))  # type: ignore[arg-type]
    drawn = [f"The old goes on {seed}   (drawn)" for seed in (1, 2)]
    assert found == ["The old goes on None", *drawn]


@pytest.mark.parametrize(
    ("model", "does"), [(Continues(), "continues the text"), (Reads(), "shows the surprisal of every word")]
)
def test_a_model_that_cannot_fill_a_gap_says_how_it_answers_a_text(model: Any, does: str) -> None:
    with pytest.raises(ConfigError, match=f"write the beginning of a text, and the model {does}$"):
        list(answer(model, "The __ ."))


def test_a_name_without_its_seed_is_the_first_model_of_this_name() -> None:
    names = ["a-s2", "a-s1", "b"]
    assert [chosen_model(word, names) for word in ("a", "a-s1", "1", "3", "b", "The")] == [
        *("a-s2", "a-s1", "a-s2", "b", "b", None)
    ]
    for number in ("0", "4"):
        with pytest.raises(ConfigError, match=f"got {number}, expected the number \\(1 to 3\\)"):
            chosen_model(number, names)


def test_pretrained_models_are_listed_before_imported_ones(tmp_path: Path) -> None:
    for place in ("pretraining/z-s1", "pretraining/b-s1", "baselines/a"):
        (tmp_path / "mine" / place).mkdir(parents=True)
        (tmp_path / "mine" / place / "manifest.json").touch()
    found = finished_models("mine", tmp_path)
    assert list(found) == ["b-s1", "z-s1", "a"] and found["a"] == tmp_path / "mine/baselines/a"
