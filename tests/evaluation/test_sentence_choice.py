"""The sentences that the page shows filled in: always the same sentences, from text outside the training split."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers

from hatchery.artifacts.manifests import Manifest, read_manifest, stage_run
from hatchery.errors import CorpusError
from hatchery.evaluation import filled_sentences
from hatchery.evaluation.filled_sentences import (
    beginnings,
    candidates,
    continued_sentence,
    filled,
    is_readable,
    left_out,
    suitable,
    translated_sentences,
    words_by_length,
)
from hatchery.evaluation.sentences_file import Answer, FilledSentence, text_of_sentences
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.tokenization.tokenizer_file import Tokenizer, WordMark
from hatchery.training.objectives.translation import TranslationSettings


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


@pytest.mark.parametrize(
    ("sentence", "readable"),
    [
        *((" ".join("a" * number), 5 <= number <= 14) for number in (4, 5, 14, 15)),
        # Five words with 120 or 121 characters.
        *((f"a b c d {'e' * (number - 8)}", number <= 120) for number in (120, 121)),
        *((f"a b c d e {mark}", False) for mark in ("[UNK]", "<mask>", "____", "\u200b")),
        ("a b c d <e", True),
    ],
)
def test_a_sentence_of_5_to_14_words_and_up_to_120_characters_is_readable(sentence: str, readable: bool) -> None:
    assert is_readable(sentence) is readable


def test_without_development_text_the_first_shard_of_training_text_is_read(tmp_path: Path) -> None:
    made = {}
    for split in ("train", "dev"):
        with stage_run(tmp_path / split / "manifest.json", {}) as run:
            for number in range(2):
                path = run.folder / f"{split}-0000{number}-of-00002.parquet"
                row = {"doc_id": [str(number)], "source": ["a"], "text": [TEXTS[number]]}
                pq.write_table(pa.table(row), path)
                run.add_output(path)
        made[split] = candidates(read_manifest(tmp_path / split / "manifest.json"))[1]
    assert made["train"] == TEXTS[:1] and sorted(made["dev"]) == TEXTS[:2]


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


def test_a_word_that_the_vocabulary_lacks_is_not_left_out() -> None:
    special = SPECIAL_SETS["roberta"]
    names = [*special.order, "The", "dog", "runs"]
    backend = Backend(models.WordPiece({name: i for i, name in enumerate(names)}, unk_token=special.unknown))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = Tokenizer(backend, special, WordMark("continuation", "##"))
    asked: Any = SimpleNamespace(tokenizer=tokenizer, longest_input=None)
    # The longest word is one token, but this token is that of unknown words.
    assert left_out(asked, "The xyzzy dog runs") == (14, 18)


FILLED = [
    FilledSentence(one, other, (Answer(one.upper()),))
    for one, other in (("eins zwei drei vier fünf", "one two three four"), ("a b c d e f", "kurz"))
]


@pytest.mark.parametrize(("direction", "expected"), [("forward", FILLED[:1]), ("backward", FILLED[1:])])
def test_a_pair_is_translated_in_the_direction_of_the_training_if_its_source_is_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, direction: Any, expected: list[FilledSentence]
) -> None:
    trained = SimpleNamespace(objective=TranslationSettings(direction=direction), sequence_length=9)
    monkeypatch.setattr(filled_sentences, "pretrain_settings", lambda settings: trained)
    monkeypatch.setattr(filled_sentences, "translate", lambda model, tokenizer, texts, *_: [t.upper() for t in texts])
    # Each pair is readable on one side only.
    pairs = ["eins zwei drei vier fünf\none two three four", "kurz\na b c d e f"]
    dev = corpus(tmp_path / direction, {"dev": pairs})
    nothing: Any = None
    assert translated_sentences(nothing, nothing, dev, dev, 5) == ("dev", expected)


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
