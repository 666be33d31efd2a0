"""Zero-shot tasks of BabyLM's multilingual track: layouts of the hub, and scores by hand with fixed probabilities."""

import dataclasses
import hashlib
import json
import math
import re
from pathlib import Path

import polars as pl
import pytest
import torch

import hatchery
from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.json_lines import Record
from hatchery.evaluation.minimal_pairs.choices import choices_of, paradigm_of_file
from hatchery.evaluation.minimal_pairs.items import Candidate, Item, minimal_pair
from hatchery.evaluation.minimal_pairs.pairs import read_minimal_pairs
from hatchery.evaluation.minimal_pairs.prefix_tokens import frame_by_bos_
from hatchery.evaluation.minimal_pairs.score_suite import Suite, score
from hatchery.evaluation.minimal_pairs.sentence_model import EncodedSentence, Frame
from hatchery.evaluation.settings import EvaluationRuntime, ScoringSettings, SuiteSettings
from hatchery.experiment.project import Project
from hatchery.typed import build

PIECES = ("<s>", "<unk>", "a", "b", "c", " b", " c", " ", "好", "坏", "a d", "d", " d")
SHARES = (0.0, 0.02, 0.1, 0.2, 0.1, 0.05, 0.04, 0.01, 0.08, 0.08, 0.02, 0.2, 0.1)
LOG = {piece: math.log(share) for piece, share in zip(PIECES, SHARES, strict=True) if share}
_LONGEST_FIRST = re.compile("|".join(map(re.escape, sorted(PIECES[2:], key=len, reverse=True))) + "|.")


class FixedPieces:
    """A causal model with the same probabilities at every position; its tokenizer takes the longest piece first."""

    architecture, device, frame, mask_id, predicted_before = "causal", torch.device("cpu"), Frame((0,), ()), None, 0
    unknown_id, vocabulary_size, longest_input, leading_blank = 1, len(PIECES), None, None
    shares_prefixes, output_bias, left_to_right = False, None, None

    def encode(self, sentences, words=False, given=None, official=False):
        found = []
        for text, characters in zip(sentences, given or [0] * len(sentences), strict=True):
            pieces = _LONGEST_FIRST.findall(text)
            ends = [sum(map(len, pieces[: number + 1])) for number in range(len(pieces))]
            ids = tuple(PIECES.index(piece) if piece in PIECES else 1 for piece in pieces)
            found.append(EncodedSentence(ids, None, sum(end <= characters for end in ends) if characters else 0))
        return found

    def logits_at(self, input_ids, rows):
        return torch.tensor(SHARES).log().expand(len(rows), -1)


MULTILINGUAL = {"suite": "mine", "format": "rows", "columns": {"good": "g", "bad": "b"}, "edition": 2026}
MULTILINGUAL |= {"track": "multilingual", "files": "*"}


def scored(items, **settings):
    made = build(ScoringSettings, {**MULTILINGUAL, **settings})
    return score(FixedPieces(), Suite(items), made, EvaluationRuntime(device="cpu"))


def item(prompt, *choices, place=0, name="p"):
    return Item(name, name, "1", tuple(Candidate(f" {choice}", prompt) for choice in choices), place=place)


def test_a_choice_is_scored_after_as_many_tokens_as_the_prompt_has_alone():
    """The whole text "a d" is one piece, like the prompt "a" alone. The choice has no token left, so its score is 0."""
    rows = scored([item("a", "b", "d"), item("a ", "b", "cb")]).frame("scores.parquet")["scores"].to_list()
    assert rows[0] == pytest.approx([LOG[" b"], 0.0], abs=1e-6)
    # Spaces at the end of a prompt are scored with the choice: the pieces after "a" are " " and " b".
    assert rows[1] == pytest.approx([LOG[" "] + LOG[" b"], LOG[" "] + LOG[" c"] + LOG["b"]], abs=1e-6)
    strict = {"track": None, "format": "multiple_choice", "columns": None}
    by_offsets = scored([item("a", "b", "d")], **strict).frame("scores.parquet")["scores"].to_list()
    assert by_offsets[0] == pytest.approx([LOG[" b"], LOG["a d"]], abs=1e-6)


def test_global_piqa_divides_by_the_tokens_that_the_choice_adds_to_the_whole_prompt():
    found = scored([item("a", "bcc", "c", "d"), item("a ", "b", "c")], per_token=True).frame("scores.parquet")
    first, second = found["scores"].to_list()
    assert first == pytest.approx([(LOG[" b"] + 2 * LOG["c"]) / 3, LOG[" c"], 0.0], abs=1e-6)
    # The whole text has three tokens, the prompt with its space two.
    assert second == pytest.approx([LOG[" "] + LOG[" b"], LOG[" "] + LOG[" c"]], abs=1e-6)
    # " a bcc" has five tokens, " a" has two.
    blank = scored([item("a", "bcc", "c")], per_token=True, leading_blank=True).frame("scores.parquet")["scores"]
    assert blank[0].to_list() == pytest.approx([(LOG[" b"] + 2 * LOG["c"]) / 3, LOG[" c"]], abs=1e-6)


@pytest.mark.parametrize(
    ("own", "suite", "piece"), [(None, True, " d"), (None, False, "d"), (False, True, "d"), (True, False, " d")]
)
def test_the_blank_of_a_model_precedes_the_blank_of_the_suite(own, suite, piece, monkeypatch):
    monkeypatch.setattr(FixedPieces, "leading_blank", own)
    found = scored([minimal_pair("p", "p", "1", "d", "a")], leading_blank=suite)
    assert found.frame("scores.parquet")["score_good"].to_list() == pytest.approx([LOG[piece]], abs=1e-6)
    assert found.facts["leading_blank"] is piece.startswith(" ")


@pytest.mark.parametrize(
    ("choices", "place", "credit"),
    [
        (("c", "c"), 0, 1.0),
        (("c", "c"), 1, 0.0),
        (("c", "c", "囍"), 2, 0.0),
        (("c", "囍", "c"), 1, 1.0),
        (("c", "囍", "c"), 2, 0.0),
        (("b", "c"), 1, 1.0),
    ],
)
def test_the_first_of_equal_choices_in_the_row_is_preferred(choices, place, credit):
    """The right choice, first in `choices`, is at index `place`. " 囍" is less probable than " c"."""
    found = scored([item("a", *choices, place=place)], ties="first_in_row", per_token=True).frame("accuracy.csv")
    assert found.filter(pl.col("level") == "suite")["accuracy"].to_list() == [credit] * 3


def test_a_tie_among_k_texts_counts_one_kth():
    """ " 囍" is less probable than " c", so two of three texts tie in the second item; " b" beats " c" in the third."""
    table = scored([item("a", "c", "c", "c"), item("a", "c", "c", "囍"), item("a", "c", "b")]).frame("accuracy.csv")
    share = table.filter(pl.col("name") == "mine_by_pair")["accuracy"].item()
    assert share == pytest.approx((1 / 3 + 1 / 2 + 0) / 3)


def test_a_tie_or_an_unknown_token_is_wrong_in_hanzi():
    pairs = [
        minimal_pair("h", "h", "0:x", "dd", "好"),  # Right: 2 ln 0.2 is above ln 0.08.
        minimal_pair("h", "h", "1:x", "好", "坏"),  # A tie.
        minimal_pair("h", "h", "2:x", "d", "囍"),  # The wrong sentence contains an unknown character.
        minimal_pair("h", "h", "3:x", "囍d", "aaaaa"),
    ]
    wrong = 2 * LOG["d"] < LOG["好"]
    found = scored(pairs, ties="wrong", unknown_tokens="wrong")
    rows = found.frame("scores.parquet")
    assert rows["unknown"].to_list() == [False, False, True, True]
    assert rows["outcome"].to_list() == ["wrong" if wrong else "correct", "tie", "wrong", "wrong"]
    assert found.facts["unknown_items"] == 2
    # The texts of the tie differ.
    assert (found.facts["ties"], found.facts["identical_pairs"]) == (1, 0)
    share = found.frame("accuracy.csv").filter(pl.col("name") == "mine_by_pair")["accuracy"].item()
    assert share == (0 if wrong else 0.25)


def test_the_mean_of_a_group_weighs_pairs():
    """One pair is right in one paradigm, three pairs are wrong in the other: 25 % of pairs, 50 % over paradigms."""
    pairs = [
        minimal_pair("one", "one", "1", "d", "a"),
        *(minimal_pair("two", "two", str(n), "a", "d") for n in range(3)),
    ]
    table = scored(pairs).frame("accuracy.csv")
    suite = {name: share for level, name, share in table.select("level", "name", "accuracy").rows() if level == "suite"}
    assert suite == {"mine": 0.5, "mine_by_phenomenon": 0.5, "mine_by_pair": 0.25}


def test_a_model_of_others_sees_one_bos_and_no_template():
    model = object.__new__(BaselineModel)
    model.architecture, model.frame = "causal", Frame((5, 6), ())
    model.tokenizer = type(
        "Tokenizer", (), {"found": lambda self, *names: {"bos_token_id": 7, "eos_token_id": 8}[names[0]]}
    )()
    frame_by_bos_(model)
    assert model.frame == Frame((7,), ())


def settings_of(repository, name):
    return build(ScoringSettings, Project(repository / "config").suite(name).scored(name))


HUB = {
    "multilingual_blimp_babylm_filtered": ("wh_island/train-00000-of-00001.parquet", "wh_island"),
    "multilingual_blimp_nl": ("argument_structure.jsonl", "argument_structure"),
    "multilingual_zhoblimp": ("BA_deletion/train.json", "BA_deletion"),
    "multilingual_multiblimp_nld": ("nld/data.tsv", "nld"),
    "multilingual_multiblimp_eng": ("eng/train-00000-of-00001.parquet", "eng"),
    "multilingual_xcomps_nl": ("data/comps_nl-00000-of-00001.parquet", "comps_nl-00000-of-00001"),
    "multilingual_xcomps_zh": ("comps_zh.csv", "comps_zh"),
    "multilingual_hanzi_structure": ("data/train-00000-of-00001.parquet", "data"),
}


def table(folder: Path, name: str, rows: list[dict[str, object]]) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    frame = pl.DataFrame(rows)
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    elif path.suffix in (".csv", ".tsv"):
        frame.write_csv(path, separator="\t" if path.suffix == ".tsv" else ",")
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    else:
        path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")


@pytest.mark.parametrize("name", HUB)
def test_pairs_are_read_as_the_hub_has_them(repository, make_source, tmp_path, name):
    settings = dataclasses.replace(settings_of(repository, name), expected=None)
    file, paradigm = HUB[name]
    columns = settings.columns
    rows = [{"extra": 1, columns.good: "De hond slaapt.", columns.bad: "De hond slapen."}]
    table(tmp_path / "hub", file, rows)
    files = {file: (tmp_path / "hub" / file).read_bytes(), "README.md": b"# card", "dataset_infos.json": b"{}"}
    found = read_minimal_pairs(make_source(files), settings)
    assert [(one.paradigm, one.candidates) for one in found] == [
        (paradigm, (Candidate("De hond slaapt."), Candidate("De hond slapen.")))
    ]


def test_a_hanzi_pair_is_called_as_the_library_calls_documents(repository, make_source):
    settings = dataclasses.replace(settings_of(repository, "multilingual_hanzi_pinyin"), expected=None)
    line = '{"sentence_good": "他好。", "sentence_bad": "他坏。", "kind": 3}\n'
    (found,) = read_minimal_pairs(make_source({"train.jsonl": line}), settings)
    # The JSON text that the library hashes: an indent of two spaces, characters not escaped.
    text = '{\n  "sentence_good": "他好。",\n  "sentence_bad": "他坏。",\n  "kind": 3\n}'
    assert found.item_id == f"0:{hashlib.sha256(text.encode()).hexdigest()}"


@pytest.mark.parametrize("label", [2, "2", "zit"])
def test_a_label_of_mubench_is_an_index_digits_or_the_text_of_a_choice(repository, make_source, tmp_path, label):
    settings = settings_of(repository, "multilingual_winogrande_nl_mubench")
    file = "WinoGrandeDataset_lighteval_nl/test-00000-of-00001.parquet"
    table(tmp_path, file, [{"prompt": "De hond", "choices": ["loopt", "slaapt", "zit"], "label": label}])
    other = "WinoGrandeDataset_lighteval_zh/test-00000-of-00001.parquet"
    table(tmp_path, other, [{"prompt": "狗", "choices": ["x", "y"], "label": 0}])
    source = make_source({name: (tmp_path / name).read_bytes() for name in (file, other)})
    (found,) = read_minimal_pairs(source, settings)
    assert [one.completion for one in found.candidates] == [" zit", " loopt", " slaapt"]
    assert (found.place, found.candidates[0].prefix) == (2, "De hond")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('"choices": ["x", "y"], "label": 2', "test.jsonl:1: the field 'label' must be an index from 0 to 1, .* got 2"),
        ('"choices": ["x", "y"], "label": "2"', "from 0 to 1, this index as digits, or the text of a choice, got '2'"),
        ('"choices": ["x", "y"], "label": true', "got True"),
        ('"choices": ["x"], "label": 0', "'choices' must be a list of two or more non-empty texts"),
    ],
)
def test_a_wrong_choice_is_named_with_file_and_line(repository, make_source, row, message):
    settings = settings_of(repository, "multilingual_hellaswag_en_mubench")
    source = make_source({"HellaswagDataset_lighteval_en/test.jsonl": f'{{"prompt": "p", {row}}}\n'})
    with pytest.raises(EvaluationError, match=message):
        read_minimal_pairs(source, settings)


def test_choices_in_columns_end_before_the_first_empty_column():
    def choices(*texts: str | None) -> list[str]:
        return choices_of(Record(dict(zip("abc", texts, strict=False)), "x.csv:2", 2), ("a", "b", "c"))

    assert choices("x", "y") == choices("x", "y", None) == choices("x", "y", "") == ["x", "y"]
    assert choices("x", "y", "z") == ["x", "y", "z"]
    for texts, got in (
        (("x", None, "z"), "got choices in a, c; "),
        (("x",), "got choices in a; "),
        ((), "in no field; "),
    ):
        with pytest.raises(EvaluationError, match=f"x.csv:2: .*{got}expected one text in each of the fields a, b, c"):
            choices(*texts)


@pytest.mark.parametrize(
    ("name", "paradigm", "plain"),
    [
        ("zh/test.jsonl", "zh", "test"),
        ("zh/data-00000-of-00012.parquet", "zh", "data-00000-of-00012"),
        ("zh/test_cases.jsonl", "test_cases", "test_cases"),
        ("test.jsonl", "test", "test"),
    ],
)
def test_a_file_that_is_named_after_a_split_has_the_paradigm_of_its_folder(repository, name, paradigm, plain):
    assert paradigm_of_file(name, settings_of(repository, "multilingual_zhoblimp")) == paradigm
    assert paradigm_of_file(name, SuiteSettings()) == plain


def test_digits_that_are_no_index_may_be_the_text_of_a_choice(repository, make_source):
    settings = settings_of(repository, "multilingual_hellaswag_en_mubench")
    line = '{"prompt": "2 + 5 =", "choices": ["6", "7"], "label": "7"}\n'
    (found,) = read_minimal_pairs(make_source({"HellaswagDataset_lighteval_en/test.jsonl": line}), settings)
    assert found.candidates[0].completion == " 7"


@pytest.mark.parametrize(
    ("solutions", "right"),
    [
        ({"solution0": "a", "solution1": "b", "solution2": None, "solution3": None}, "b"),
        ({"solution0": "a", "solution1": "b"}, "b"),
    ],
)
def test_solutions_of_global_piqa_may_be_fewer(repository, make_source, tmp_path, solutions, right):
    settings = settings_of(repository, "multilingual_global_piqa_parallel_zh")
    table(tmp_path, "data/cmn_hans.jsonl", [{"prompt": "p", **solutions, "label": 1}])
    (found,) = read_minimal_pairs(
        make_source({"cmn_hans.jsonl": (tmp_path / "data/cmn_hans.jsonl").read_bytes()}), settings
    )
    assert found.candidates[0].completion == f" {right}" and found.place == 1 and len(found.candidates) == 2


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"edition": 2025}, "track: got 'multilingual'"),
        ({"format": "blimp", "columns": None}, "track: got 'multilingual'"),
        ({"track": None, "edition": 2025, "ties": "wrong"}, "ties: got 'wrong'"),
        ({"choices": {}}, "choices: "),
        ({"temperatures": True, "unknown_tokens": "wrong"}, "unknown_tokens: got 'wrong'"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changed, message):
    with pytest.raises(ConfigError, match=message):
        build(ScoringSettings, {**MULTILINGUAL, **changed})


def test_new_keys_at_their_defaults_change_no_settings(repository):
    for name in ("blimp", "babylm_2026_global_piqa_parallel", "zhoblimp"):
        stated = Project(repository / "config").suite(name).scored(name)
        assert not {"track", "ties", "unknown_tokens", "choices"} & set(stated)


def test_rows_of_your_own_are_judged_by_the_rules_of_a_task(model_manifest, tmp_path):
    rows = [
        {"prompt": "The old dogs", "choices": ["sleeps .", "sleep ."], "label": "1"},
        {"prompt": "A cat", "choices": ["chases dogs .", "chase dogs ."], "label": "chases dogs ."},
    ]
    found = hatchery.evaluate(model_manifest.parent, "multilingual_winogrande_en_mubench", rows)
    table = found.tables["scores.parquet"]
    right = [scores[0] > scores[1] for scores in table["scores"].to_list()]
    average = found.rows.filter(task="pair_average", metric="accuracy_percent")
    assert average["value"].to_list() == [100 * sum(right) / 2] and average["items"].to_list() == [2]
    # A single file may have any name and other columns.
    (tmp_path / "mine.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    again = hatchery.evaluate(model_manifest.parent, "multilingual_winogrande_en_mubench", tmp_path / "mine.jsonl")
    assert again.tables["scores.parquet"]["scores"].to_list() == table["scores"].to_list()
    named = [{"question": row["prompt"], "ends": row["choices"], "gold": row["label"]} for row in rows]
    columns = {"prompt": "question", "choices": "ends", "label": "gold"}
    other = hatchery.evaluate(model_manifest.parent, "multilingual_winogrande_en_mubench", named, choices=columns)
    assert other.tables["scores.parquet"]["scores"].to_list() == table["scores"].to_list()
