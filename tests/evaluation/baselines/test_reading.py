"""Reading times and age of acquisition, against numbers of BabyLM's pipeline on models and data invented for it."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.baselines.loading import BaselineTokenizer, load_folder
from hatchery.evaluation.json_lines import Record
from hatchery.evaluation.minimal_pairs.sentence_model import Frame
from hatchery.evaluation.settings import BaselineSettings
from hatchery.evaluation.surprisal.age_of_acquisition import Learning, acquisition, surprisals_behind
from hatchery.evaluation.surprisal.reading import (
    EYE_TRACKING,
    SELF_PACED,
    ReadWord,
    gain,
    read_word,
    reading_scores,
    reading_surprisals,
    surprisals_of,
)

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "babylm_2026"


class OfTheirs(BaselineModel):
    """A model that is given what the pipeline gives it: token types where its tokenizer names them (`types`), and the
    position before a mask where it is asked for the next token (`shift`)."""

    shift, types = 0, False

    def logits_at(self, input_ids, rows):
        return super().logits_at(input_ids, rows - self.shift)

    def _outputs_of(self, input_ids, attention_mask):
        more = {"token_type_ids": torch.zeros_like(input_ids)} if self.types else {}
        return self.network(input_ids=input_ids, attention_mask=attention_mask, **more)


def model_of(name: str, backend: str) -> OfTheirs:
    architecture = "causal" if backend == "causal" else "masked"
    network, tokenizer = load_folder(GOLDEN / "models" / name, architecture)
    its = BaselineTokenizer(tokenizer, architecture, name)
    model = OfTheirs(network, its, BaselineSettings(architecture), torch.device("cpu"))
    model.shift, model.types = int(backend == "mntp"), name == "causal_nobos"
    return model


def read_words() -> list[ReadWord]:
    with (GOLDEN / "data/full/reading/reading_data.csv").open(encoding="utf-8", newline="") as lines:
        return [
            read_word(Record(row, f"reading_data.csv:{line}", line))
            for line, row in enumerate(csv.DictReader(lines), 2)
        ]


def folder_of(name: str, backend: str) -> Path:
    return GOLDEN / "results" / name / "main/zero_shot" / backend / "reading"


@pytest.mark.parametrize(
    ("name", "backend"),
    [("causal_bos", "causal"), ("causal_nobos", "causal"), ("masked_wp", "mlm"), ("masked_wp", "mntp")],
)
def test_surprisals_of_words_that_were_read_are_those_of_the_pipeline(name, backend):
    model, folder = model_of(name, backend), folder_of(name, backend)
    calls = [json.loads(line) for line in (folder / "word_probabilities.jsonl").read_text().splitlines()]
    found = surprisals_of(model, [(call["context"], call["word"]) for call in calls])
    assert found == pytest.approx([float(call["surprisal"]) for call in calls], abs=1e-5, rel=1e-6)
    words = read_words()
    predictions = json.loads((folder / "predictions.json").read_text())["reading"]["predictions"]
    surprisal, before = reading_surprisals(words, lambda pairs: surprisals_of(model, pairs, 64))
    np.testing.assert_allclose(surprisal, [one["pred"] for one in predictions], atol=1e-5, rtol=1e-6)
    theirs = np.array([one["prev_pred"] for one in predictions])
    # A context that is the word None is missing to them.
    (lost,) = np.flatnonzero(np.isnan(theirs) & ~np.isnan(before))
    assert words[lost].before == ("None", "of")
    np.testing.assert_allclose(np.delete(before, lost), np.delete(theirs, lost), atol=1e-5, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "backend"),
    [("causal_bos", "causal"), ("causal_nobos", "causal"), ("masked_wp", "mlm"), ("masked_wp", "mntp")],
)
def test_reading_scores_of_their_surprisals_are_theirs(name, backend):
    folder = folder_of(name, backend)
    predictions = json.loads((folder / "predictions.json").read_text())["reading"]["predictions"]
    scores = reading_scores(
        read_words(), *(np.array([one[key] for one in predictions]) for key in ("pred", "prev_pred"))
    )
    expected = json.loads((folder / "unrounded_fractions.json").read_text())
    assert [scores["rt"], scores["spr"]] == pytest.approx([float(expected["rt"]), float(expected["spr"])], abs=1e-8)
    assert scores["reading"] == pytest.approx((scores["rt"] + scores["spr"]) / 2)


def test_a_constant_explains_nothing_and_the_outcome_itself_everything():
    words = read_words()
    constant, before = np.full(len(words), 7.0), np.linspace(1, 2, len(words))
    assert reading_scores(words, constant, before)["reading"] == pytest.approx(0, abs=1e-12)
    for name in (*EYE_TRACKING, SELF_PACED):
        outcome = np.array([one.numbers[name] for one in words])
        assert reading_scores(words, outcome, before)[{SELF_PACED: "spr"}.get(name, name)] == pytest.approx(1)
    assert math.isnan(gain(np.array([1.0, math.nan]), np.array([[1.0], [2.0]]), np.array([1.0, 2.0])))


def learnt_of(results: list[dict], pieces: dict[str, int]) -> dict[str, Learning]:
    surprisals: dict[str, dict[int, list[float]]] = {}
    for row in results:
        surprisals.setdefault(row["target_word"], {}).setdefault(row["word_count"], []).append(row["surprisal"])
    return {word: Learning(by_count, pieces[word]) for word, by_count in surprisals.items()}


def children_of(path: Path) -> dict[str, dict[float, float]]:
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return {row["word"]: {float(age): float(row[age] or "nan") for age in row if age.isdigit()} for row in rows}


def pieces_of(words: set[str]) -> dict[str, int]:
    backend = model_of("causal_bos_aoa/chck_1M", "causal").tokenizer.backend
    alone = len(backend.encode("The", add_special_tokens=False).ids)
    return {word: max(1, len(backend.encode(f"The {word}", add_special_tokens=False).ids) - alone) for word in words}


@pytest.mark.parametrize(
    "case",
    [path.name.removesuffix(".trace.json") for path in sorted((GOLDEN / "results/aoa_synthetic").glob("*.trace.json"))],
)
def test_ages_of_invented_curves_are_those_of_the_pipeline(case):
    folder = GOLDEN / "results/aoa_synthetic"
    trace = json.loads((folder / f"{case}.trace.json").read_text())
    results = json.loads((folder / trace["surprisal_file"]).read_text())["results"]
    wanted = trace["target_words"]
    rows = [row for row in results if wanted is None or row["target_word"] in wanted]
    learnt = learnt_of(rows, pieces_of({row["target_word"] for row in rows}))
    for told in trace["words"]:
        assert learnt[told["word"]].pieces == told["n_pieces"]
        assert learnt[told["word"]].chance(400, "2026") == pytest.approx(float(told["chance"]), abs=1e-8)
    found = acquisition(children_of(folder / trace["cdi"]), learnt, 400)
    expected = json.loads((folder / "scores.json").read_text())[case]
    assert found.score == pytest.approx(expected["aoa"], abs=1e-4)
    assert len(found.ages) == expected["n_words"]
    ages = {told["word"]: (told["child_aoa"], told["model_aoa_log10"]) for told in trace["words"]}
    for word, (child, model) in found.ages.items():
        assert child == pytest.approx(ages[word][0], abs=1e-4) and model == pytest.approx(ages[word][1], abs=1e-4)


def test_surprisals_of_words_that_children_learn_are_those_of_the_pipeline():
    folder = GOLDEN / "results/causal_bos_aoa/main/zero_shot/causal/AoA_word"
    rows = json.loads((folder / "surprisal.json").read_text())["results"]
    for step in {row["step"] for row in rows}:
        model = model_of(f"causal_bos_aoa/{step}", "causal")
        model.frame = Frame((0,), ())
        here = [row for row in rows if row["step"] == step]
        found = surprisals_behind(model, [(row["context"], row["target_word"]) for row in here])
        np.testing.assert_allclose(found, [row["surprisal"] for row in here], atol=1e-5, rtol=1e-6)
    trace = json.loads((folder / "aoa_trace.json").read_text())
    learnt = learnt_of(rows, pieces_of({row["target_word"] for row in rows}))
    found = acquisition(children_of(GOLDEN / "data/full/aoa/cdi_human.csv"), learnt, 400)
    # Four parameters through three points: which curve is found depends on the optimiser.
    assert set(found.ages) <= set(trace["result"]["valid_words"]) | set(learnt) and -1 <= found.score <= 1
