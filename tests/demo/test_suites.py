"""The miniature suites: published layouts, balance, disjoint splits, and labels that follow from the texts.

The layout of MSGS: docs/papers/babylm-evaluation.md, "MSGS".
"""

import json
import math
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from demo import glue, inference
from demo.babylm_suites import DATASETS, Dataset
from demo.lexicon import MOODS, NAMES, NOUNS, QUALITIES, SIZES
from demo.rows import RowTask, draw_splits
from hatchery.corpora.sentences import split_sentences
from hatchery.errors import ConfigError

# file stem (folder/task) -> fields, labels; the splits follow from the folder.
LABELLED: dict[str, tuple[set[str], set[Any]]] = {
    "filter_data/glue_filtered/cola": ({"sentence"}, {0, 1}),
    "filter_data/glue_filtered/sst2": ({"sentence"}, {0, 1}),
    "filter_data/glue_filtered/mrpc": ({"sentence1", "sentence2"}, {0, 1}),
    "filter_data/glue_filtered/qqp": ({"question1", "question2"}, {0, 1}),
    "filter_data/glue_filtered/qnli": ({"question", "sentence"}, {0, 1}),
    "filter_data/glue_filtered/rte": ({"sentence1", "sentence2"}, {0, 1}),
    "filter_data/glue_filtered/boolq": ({"question", "passage"}, {0, 1}),
    "filter_data/glue_filtered/multirc": ({"paragraph", "question", "answer"}, {0, 1}),
    "filter_data/glue_filtered/wsc": ({"text", "span1_index", "span2_index", "span1_text", "span2_text"}, {0, 1}),
    "filter_data/glue_filtered/mnli": ({"premise", "hypothesis"}, {0, 1, 2}),
    "superglue/boolq": ({"question", "passage"}, {0, 1}),
    "superglue/cb": ({"premise", "hypothesis"}, {0, 1, 2}),
    "superglue/copa": ({"premise", "choice1", "choice2", "question"}, {0, 1}),
    "superglue/multirc": ({"paragraph", "question", "answer"}, {0, 1}),
    "superglue/wic": ({"word", "sentence1", "sentence2", "start1", "start2", "end1", "end2"}, {0, 1}),
    "superglue/wsc": ({"text", "span1_index", "span2_index", "span1_text", "span2_text"}, {0, 1}),
    "glue/wnli": ({"sentence1", "sentence2"}, {0, 1}),
    "glue/acceptability": ({"sentence"}, {0, 1}),
    "glue/entailment": ({"sentence1", "sentence2"}, {0, 1}),
}
GENDERS = {name.word: name.gender for name in NAMES}


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def splits(generated: Path, stem: str) -> dict[str, list[dict[str, Any]]]:
    path = generated / stem
    files = sorted(path.parent.glob(f"{path.name}.*"))
    return {file.name.split(".")[1]: read(file) for file in files}


def texts_of(rows: list[dict[str, Any]]) -> set[tuple[str, ...]]:
    return {tuple(str(value) for key, value in sorted(row.items()) if key not in ("idx", "label")) for row in rows}


@pytest.mark.parametrize("stem", LABELLED)
def test_a_task_has_the_published_fields_balanced_labels_and_disjoint_splits(stem: str, generated: Path) -> None:
    fields, labels = LABELLED[stem]
    data = splits(generated, stem)
    named = (
        ["train", "validation_matched", "validation_mismatched"] if stem.endswith("mnli") else ["train", "validation"]
    )
    assert sorted(data) == named
    for rows in data.values():
        assert len(rows) >= 24
        assert all(set(row) == {*fields, "label", "idx"} for row in rows)
        assert stem.endswith("multirc") or [row["idx"] for row in rows] == list(range(len(rows)))
        counts = Counter(row["label"] for row in rows)
        assert set(counts) == labels
        assert len(set(counts.values())) == 1
    seen: set[tuple[str, ...]] = set()
    for rows in data.values():
        assert not seen & texts_of(rows)
        seen |= texts_of(rows)


def test_the_archive_has_the_files_of_the_published_one(generated: Path) -> None:
    archive = generated / "filter_data"
    assert {path.name for path in archive.iterdir()} == {
        "blimp_filtered",
        "supplement_filtered",
        "glue_filtered",
        "msgs_filtered",
    }
    assert {path.stem for path in (archive / "supplement_filtered").iterdir()} == {
        "hypernym",
        "qa_congruence_easy",
        "qa_congruence_tricky",
        "subject_aux_inversion",
        "turn_taking",
    }
    phenomena = {path.stem for path in (archive / "blimp_filtered").iterdir()}
    assert phenomena == {
        "anaphor_agreement",
        "argument_structure",
        "binding",
        "determiner_noun_agreement",
        "irregular_forms",
        "npi_licensing",
        "quantifiers",
        "subject_verb_agreement",
    }
    assert len(list((archive / "glue_filtered").iterdir())) == 21
    assert len(list((archive / "msgs_filtered").iterdir())) == 22


def test_a_phenomenon_pools_the_first_pairs_of_its_paradigms(generated: Path) -> None:
    pooled = read(generated / "filter_data" / "blimp_filtered" / "npi_licensing.json")
    by_paradigm = defaultdict(list)
    for row in pooled:
        by_paradigm[row["UID"]].append(row)
    assert set(by_paradigm) == {"npi_ever_licensor", "npi_ever_adverb", "npi_any_some"}
    for uid, rows in by_paradigm.items():
        assert rows == read(generated / "minimal_pairs" / f"{uid}.jsonl")[: len(rows)]


def test_supplement_pairs_are_mirrored_and_turns_stand_on_lines_of_their_own(generated: Path) -> None:
    for path in (generated / "filter_data" / "supplement_filtered").iterdir():
        rows = read(path)
        assert len(rows) == 60
        assert all(set(row) == {"row", "fragment", "contrast", "sentence_good", "sentence_bad"} for row in rows)
        assert [row["row"] for row in rows] == list(range(60))
        assert all(row["sentence_good"] != row["sentence_bad"] for row in rows)
        lines = 2 if path.stem.startswith(("qa", "turn")) else 1
        assert all(row[key].count("\n") == lines - 1 for row in rows for key in ("sentence_good", "sentence_bad"))
        if lines == 2:
            good, bad = (Counter(row[key].split("\n")[1] for row in rows) for key in ("sentence_good", "sentence_bad"))
            assert good == bad


def test_every_item_of_ewok_is_there_with_contexts_and_targets_swapped_too(generated: Path) -> None:
    files = sorted((generated / "babylm_evaluation/full_eval/ewok_filtered").glob("*.jsonl"))
    for rows in map(read, files):
        there = Counter(tuple(row[key] for key in ("Context1", "Context2", "Target1", "Target2")) for row in rows)
        assert Counter((other, one, second, first) for one, other, first, second in there.elements()) == there
        assert max(there.values()) == 1 and all(one != other and first != second for one, other, first, second in there)
    assert len(files) == 3


def test_record_asks_for_each_name_and_marks_its_highlights(generated: Path) -> None:
    for split in ("train", "validation"):
        rows = read(generated / "superglue" / f"record.{split}.jsonl")
        places: Counter[int] = Counter()
        for row in rows:
            assert set(row) == {"passage", "query", "entities", "answers", "idx"}
            assert set(row["idx"]) == {"passage", "query"}
            assert row["passage"].count("\n@highlight\n") == 2
            assert row["query"].count("@placeholder") == 1
            assert all(entity in row["passage"] for entity in row["entities"])
            (answer,) = row["answers"]
            places[row["entities"].index(answer)] += 1
        assert set(places.values()) == {len(rows) // 3}


def test_rows_of_a_multirc_question_stay_together_and_have_two_right_answers(generated: Path) -> None:
    rows = read(generated / "superglue" / "multirc.train.jsonl")
    assert [row["idx"]["answer"] for row in rows] == list(range(len(rows)))
    right = Counter(row["idx"]["question"] for row in rows if row["label"])
    assert set(right.values()) == {2}
    assert len(right) * 4 == len(rows)


def test_the_words_of_wic_stand_at_their_characters(generated: Path) -> None:
    words = set()
    for row in read(generated / "superglue" / "wic.train.jsonl"):
        for number in (1, 2):
            assert row[f"sentence{number}"][row[f"start{number}"] : row[f"end{number}"]] == row["word"]
        words.add(row["word"])
    assert words == {"that", "her", "is", "are"}


def test_the_pronoun_of_a_schema_has_the_gender_of_the_name_that_it_means(generated: Path) -> None:
    for row in read(generated / "superglue" / "wsc.train.jsonl"):
        words = row["text"].split()
        assert words[row["span1_index"]] == row["span1_text"]
        assert words[row["span2_index"]] == row["span2_text"]
        agrees = GENDERS[row["span1_text"]] == {"He": "masculine", "She": "feminine"}[row["span2_text"]]
        assert row["label"] == agrees


def test_mnli_and_cb_follow_from_negation_and_direction(generated: Path) -> None:
    """An independent judge: polarity by "not", the narrower noun by its absence from the category words."""
    categories = {"animal", "fruit", "tool", "vehicle", "toy", "plant", "garment"}
    for row in read(generated / "filter_data" / "glue_filtered" / "mnli.train.json"):
        premise, hypothesis = row["premise"][:-1].split(), row["hypothesis"][:-1].split()
        negated, claimed = "not" in premise, "not" in hypothesis
        informative = negated == bool(categories & set(premise))
        assert row["label"] == (1 if not informative else 0 if negated == claimed else 2)
    for row in read(generated / "superglue" / "cb.train.jsonl"):
        outer, inner = row["premise"].split(" that ")
        same = (" not " in inner) == (" not " in row["hypothesis"])
        factive = outer.split()[1] in ("knew", "forgot", "saw")
        assert row["label"] == (2 if not factive else 0 if same else 1)


def test_stsb_scores_span_the_scale_in_halves(generated: Path) -> None:
    scores = [row["label"] for row in read(generated / "glue" / "stsb.train.jsonl")]
    assert all(isinstance(score, float) and 0 <= score <= 5 and (2 * score).is_integer() for score in scores)
    assert {0.0, 1.0, 2.0, 3.0, 4.0, 5.0} <= set(scores)
    for row in read(generated / "glue" / "stsb.train.jsonl"):
        assert (row["label"] == 5) == (row["sentence1"] == row["sentence2"])


@pytest.mark.parametrize("split", ["train", "validation"])
def test_the_heuristics_of_hans_really_hold(split: str, generated: Path) -> None:
    rows = read(generated / "hans" / f"{split}.jsonl")
    for row in rows:
        assert set(row) == {"premise", "hypothesis", "label", "heuristic", "subcase", "template"}
        premise = row["premise"][:-1].lower().replace(",", " ,").split()
        hypothesis = row["hypothesis"][:-1].lower().split()
        assert set(hypothesis) <= set(premise)
        starts = [start for start in range(len(premise)) if premise[start : start + len(hypothesis)] == hypothesis]
        assert bool(starts) == (row["heuristic"] != "lexical_overlap")
        if row["heuristic"] == "constituent":
            before = premise[starts[0] - 1]
            end = starts[0] + len(hypothesis)
            assert before in ("that", "and", "or", "because", "if")
            assert end == len(premise) or premise[end] == ","
    cells = Counter((row["heuristic"], row["label"]) for row in rows)
    assert len(cells) == 6
    assert set(cells.values()) == {len(rows) // 6}
    assert len({row["subcase"] for row in rows}) == 18


def test_hans_files_share_no_premise(generated: Path) -> None:
    training, validation = (
        {row["premise"] for row in read(generated / "hans" / f"{split}.jsonl")} for split in ("train", "validation")
    )
    assert not training & validation


def test_no_longer_sentence_of_the_tasks_stands_in_the_corpora(generated: Path) -> None:
    known = {
        sentence
        for path in (generated / "babylm").iterdir()
        for line in path.read_text(encoding="utf-8").split("\n")
        for sentence in split_sentences(line)
    }
    main = (
        "sentence",
        "passage",
        "paragraph",
        "text",
        "premise",
        "sentence1",
        "question1",
        "sentence_good",
        "sentence_bad",
    )
    checked = 0
    for folder in ("filter_data", "superglue", "hans", "glue"):
        for path in (generated / folder).rglob("*.json*"):
            for row in read(path):
                for sentence in split_sentences(next(row[key] for key in main if key in row).replace("\n", " ")):
                    if len(sentence.split()) > 5:
                        checked += 1
                        assert sentence not in known, (path.name, sentence)
    assert checked > 1000


@pytest.mark.parametrize(
    ("task", "fields"),
    [
        (glue.cola, ("sentence",)),
        (glue.sst2, ("sentence",)),
        (inference.MNLI, ("premise", "hypothesis")),
        (inference.MNLI_MISMATCHED, ("premise", "hypothesis")),
        (inference.rte, ("sentence1", "sentence2")),
        (inference.qnli, ("question", "sentence")),
        (glue.mrpc, ("sentence1", "sentence2")),
        (glue.qqp, ("question1", "question2")),
        (glue.boolq, ("question", "passage")),
        (glue.multirc, ("question", "answer")),
        (glue.wic, ("sentence1", "sentence2")),
        (glue.copa, ("premise", "choice1", "choice2")),
        (glue.wsc, ("text", "span1_text")),
        (glue.wnli, ("sentence1", "sentence2")),
    ],
    ids=lambda value: value.name if isinstance(value, RowTask) else "",
)
def test_no_single_word_of_a_text_tells_the_label(task: RowTask, fields: tuple[str, ...]) -> None:
    no_word_tells_the_label(draw_splits("0/words", {"train": (task, 1200)}, set())["train"], fields)


def test_no_single_word_of_two_sentences_tells_whether_one_follows_from_the_other() -> None:
    known = {row["sentence1"] for row in glue.task_rows("entailment", 10, 5, "train", set())}
    rows = glue.task_rows("entailment", 3000, 5, "train", known)
    assert not known & {row["sentence1"] for row in rows}
    no_word_tells_the_label(rows, ("sentence1", "sentence2"))


def no_word_tells_the_label(rows: list[dict[str, Any]], fields: tuple[str, ...]) -> None:
    n_labels = len({row["label"] for row in rows})
    for field in fields:
        counts: dict[str, Counter[int]] = defaultdict(Counter)
        for row in rows:
            for word in set(re.findall(r"[\w']+", row[field].lower())):
                counts[word][row["label"]] += 1
        for word, labels in counts.items():
            number = labels.total()
            # Five standard deviations of a fair draw.
            allowed = 5 * math.sqrt(number * (n_labels - 1)) / n_labels + 1
            for label in range(n_labels):
                assert abs(labels[label] - number / n_labels) <= allowed, (field, word, labels)


def test_a_task_that_cannot_make_enough_rows_is_an_error() -> None:
    task = RowTask(lambda rng, group: [{"sentence": "Tom slept.", "label": 0}], ("sentence",))
    with pytest.raises(ConfigError, match="0/same/train cannot make 3 different rows"):
        draw_splits("0/same", {"train": (task, 3)}, set())


CONTROL_PREDICATES = ("happy", "sad", "hopes", "angry", "kind", "clever")
SURFACE_LABELS = ("lexical_content_the_control", "relative_position_control")
NOUN_FORMS = {noun.singular for noun in NOUNS}


def msgs(generated: Path, stem: str, split: str) -> list[dict[str, Any]]:
    return read(generated / "filter_data" / "msgs_filtered" / f"{stem}.{split}.json")


def main_verb_in_ing(words: list[str]) -> bool:
    """After a relative clause the main verb comes last, otherwise before the complement's "that"."""
    that = words.index("that")
    main = words[that + 1 :] if that == 2 else words[:that]
    return main[-1].endswith("ing")


def feature(name: str | None, text: str) -> bool | None:
    words = text[:-1].lower().split()
    match name:
        case "main_verb":
            return main_verb_in_ing(words)
        case "control_raising":
            return words[words.index("to") - 1] in CONTROL_PREDICATES
        case "syntactic_category":
            return bool({*SIZES, *QUALITIES, *MOODS} & set(words))
        case "lexical_content_the":
            return "the" in words
        case "relative_token_position":
            return words.index("the") < words.index("a")
    return None


@pytest.mark.parametrize("dataset", DATASETS, ids=lambda dataset: dataset.stem)
@pytest.mark.parametrize("split", ["train", "validation"])
def test_labels_follow_from_the_sentences(dataset: Dataset, split: str, generated: Path) -> None:
    for row in msgs(generated, dataset.stem, split):
        linguistic = feature(dataset.linguistic, row["sentence"])
        surface = feature(dataset.surface, row["sentence"])
        assert row["linguistic_feature_label"] == linguistic
        assert row["surface_feature_label"] == surface
        expected = surface if dataset.stem in SURFACE_LABELS else linguistic
        assert row["label"] == expected
        assert (row["UID"], row["control_paradigm"]) == (dataset.stem, dataset.control)


@pytest.mark.parametrize("dataset", DATASETS, ids=lambda dataset: dataset.stem)
def test_conditions_are_those_of_the_published_files(dataset: Dataset, generated: Path) -> None:
    training, validation = (msgs(generated, dataset.stem, split) for split in ("train", "validation"))

    def cells(rows: list[dict[str, Any]]) -> Counter:
        return Counter(
            (row["condition"], row["linguistic_feature_label"], row["surface_feature_label"]) for row in rows
        )

    def pair(value: int) -> tuple[int | None, int | None]:
        return value if dataset.linguistic else None, value if dataset.surface else None

    assert set(cells(training)) == {("training", *pair(1)), ("training", *pair(0))}
    if dataset.control:
        expected = {(condition, *pair(value)) for condition in ("training", "test") for value in (0, 1)}
    else:
        agreeing = {(condition, value, value) for condition in ("training", "control") for value in (0, 1)}
        expected = agreeing | {("test", 1, 0), ("test", 0, 1)}
    assert set(cells(validation)) == expected
    for rows in (training, validation):
        assert len(set(cells(rows).values())) == 1
        assert Counter(Counter(row["paradigmID"] for row in rows).values()).keys() == {len(cells(rows))}
        assert len({row["sentence"] for row in rows}) == len(rows)
    assert not {row["sentence"] for row in training} & {row["sentence"] for row in validation}


@pytest.mark.parametrize("dataset", DATASETS, ids=lambda dataset: dataset.stem)
def test_domains_share_no_noun(dataset: Dataset, generated: Path) -> None:
    nouns: dict[str, set[str]] = defaultdict(set)
    for split in ("train", "validation"):
        for row in msgs(generated, dataset.stem, split):
            domain = "in" if row["condition"] == "training" else "out"
            nouns[domain] |= NOUN_FORMS & set(re.findall(r"\w+", row["sentence"].lower()))
    assert nouns["in"]
    assert not nouns["in"] & nouns["out"]


def test_a_surface_classifier_is_wrong_on_all_scored_rows_and_right_on_the_others(generated: Path) -> None:
    rows = msgs(generated, "main_verb_lexical_content_the", "validation")
    right = [row["surface_feature_label"] == row["label"] for row in rows]
    assert sum(right) * 6 == 4 * len(rows)
    assert not any(ok for ok, row in zip(right, rows, strict=True) if row["condition"] == "test")
