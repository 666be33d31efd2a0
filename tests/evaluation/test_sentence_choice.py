"""The sentences that the page shows filled in: always the same sentences, from text outside the training split."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hatchery.artifacts.manifests import Manifest, read_manifest, stage_run
from hatchery.errors import CorpusError
from hatchery.evaluation.filled_sentences import (
    beginnings,
    candidates,
    continued_sentence,
    filled,
    suitable,
    words_by_length,
)
from hatchery.evaluation.sentences_file import Answer, FilledSentence, text_of_sentences


def corpus(folder: Path, splits: Mapping[str, Sequence[str]]) -> Manifest:
    with stage_run(folder / "manifest.json", {}) as run:
        for split, texts in splits.items():
            path = run.folder / f"{split}-00000-of-00001.parquet"
            names = [f"{split}{index}" for index in range(len(texts))]
            pq.write_table(pa.table({"doc_id": names, "source": ["a"] * len(texts), "text": list(texts)}), path)
            run.add_output(path)
    return read_manifest(folder / "manifest.json")


TEXTS = [f"The number {word} stands in a sentence ." for word in ("one", "two", "three", "four", "five", "six")]


def test_sentences_are_of_the_development_split_and_of_training_only_without_one(tmp_path: Path) -> None:
    both = corpus(tmp_path / "both", {"train": TEXTS[:3], "dev": TEXTS[3:]})
    split, sentences = candidates(both)
    assert (split, sorted(sentences)) == ("dev", sorted(TEXTS[3:]))
    split, sentences = candidates(corpus(tmp_path / "train", {"train": TEXTS[:3]}))
    assert (split, sorted(sentences)) == ("train", sorted(TEXTS[:3]))
    with pytest.raises(CorpusError, match="neither a development nor a training split"):
        candidates(corpus(tmp_path / "test", {"test": TEXTS}))


@pytest.mark.parametrize(
    ("measures", "text"),
    [
        ({"split": "dev"}, "development text"),
        ({"split": "train"}, "training text (there is no development text)"),
        (
            {"split": "train", "beginnings": True},
            "training text (there is no development text) (the beginnings of longer sentences)",
        ),
        ({}, "text"),
    ],
)
def test_the_text_of_the_sentences_is_named_by_its_split(
    tmp_path: Path, measures: dict[str, object], text: str
) -> None:
    with stage_run(tmp_path / "manifest.json", {}) as run:
        run.measures.update(measures)
    assert text_of_sentences(tmp_path / "manifest.json") == text


def test_the_choice_depends_on_neither_order_nor_repetition_nor_company(tmp_path: Path) -> None:
    forwards = candidates(corpus(tmp_path / "a", {"dev": TEXTS}), number=3)
    backwards = candidates(corpus(tmp_path / "b", {"dev": [*reversed(TEXTS), *TEXTS * 20]}), number=3)
    together = candidates(corpus(tmp_path / "c", {"dev": ["\n".join(TEXTS)]}), number=3)
    assert forwards == backwards == together
    assert len(forwards[1]) == 3


def test_what_is_long_short_or_marked_is_passed_over() -> None:
    good = "A sentence of six plain words ."
    text = "\n".join(["Too short .", good, "word " * 30, "He said [UNK] to all of them .", "x" * 200 + " a b c d e"])
    assert list(suitable(text)) == [good]


def test_of_lines_that_are_paragraphs_the_first_words_can_be_taken() -> None:
    paragraph = "Am 3. Oktober kam der zweite Brief, und die Straße war leer: niemand hatte ihn erwartet."
    marked = f"Er sagte [UNK] zu allen. {paragraph}"
    assert list(beginnings("\n".join([paragraph, marked, "Zu kurz."]))) == [
        "Am 3. Oktober kam der zweite Brief, und die Straße war leer: niemand hatte"
    ]


def test_the_longest_word_is_left_out_first_and_never_the_first_of_the_sentence() -> None:
    sentence = "Understanding 1999 cats, don't we see tigers, dogs?"
    found = [sentence[start:end] for start, end in words_by_length(sentence)]
    # Of two words with equal length, the later word is first.
    assert found == ["tigers", "don't", "dogs", "cats", "see"]


class Asked:
    """A causal model with known continuations."""

    continues, fills_gaps = True, False

    def continuation(self, beginning: str, seed: int | None) -> str:
        return f"{beginning} and {'so on' if seed is None else 'so forth'}"


def test_the_page_shows_the_first_five_sentences() -> None:
    texts = [f"a{number} b" for number in range(8)]
    shown = filled(Asked(), texts)  # type: ignore[arg-type]
    assert (shown.task, [one.given for one in shown.examples]) == ("continue", [f"a{number}" for number in range(5)])


@pytest.mark.parametrize(("text", "before", "rest"), [("a b c d e", "a b c", "d e"), ("a b c d", "a b", "c d")])
def test_a_sentence_goes_on_from_its_first_half_of_which_an_odd_word_is_a_part(
    text: str, before: str, rest: str
) -> None:
    answers = (Answer(f"{before} and so on"), Answer(f"{before} and so forth"))
    assert continued_sentence(Asked(), text) == FilledSentence(before, rest, answers)  # type: ignore[arg-type]
