"""Reading times and age of acquisition, against BabyLM's pipeline on invented models and data."""

import csv
import json
import math
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from baseline_cases import imported
from scipy.stats import pearsonr

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import EvaluationError, SourceError
from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.baselines.loading import BaselineTokenizer, load_folder
from hatchery.evaluation.evaluation import Evaluated
from hatchery.evaluation.json_lines import Record
from hatchery.evaluation.minimal_pairs.sentence_model import Frame
from hatchery.evaluation.settings import BaselineSettings, EvaluationRuntime
from hatchery.evaluation.stages.measure_acquisition import acquisition_rows, measure_acquisition
from hatchery.evaluation.stages.measure_reading import measure_reading, reading_rows
from hatchery.evaluation.surprisal import measure_acquisition as acquisition_stage
from hatchery.evaluation.surprisal import measure_reading as reading_stage
from hatchery.evaluation.surprisal.age_of_acquisition import (
    Learning,
    Sigmoid,
    acquisition,
    added_pieces,
    child_age,
    model_age,
    surprisals_behind,
)
from hatchery.evaluation.surprisal.human_data import EYE_TRACKING, SELF_PACED, ReadWord, read_word
from hatchery.evaluation.surprisal.reading import gain, reading_scores, reading_surprisals, surprisals_of
from hatchery.evaluation.surprisal.settings import ReadingSettings
from hatchery.raw.registration import RawSource, open_source, register_source
from hatchery.runner import run_stage

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "babylm_2026"


class OfTheirs(BaselineModel):
    """A model with the pipeline's inputs: token types if its tokenizer returns token types (`types`), and the position
    before the mask if the backend predicts next tokens (`shift`)."""

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
    # The pipeline reads the context "None" as a missing value.
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


@pytest.mark.parametrize("official", [False, True])
def test_the_context_none_is_missing_only_in_the_official_rules(official, monkeypatch):
    words = read_words()
    monkeypatch.setattr(reading_stage, "surprisals_of", lambda model, pairs, tokens: [2.5] * len(list(pairs)))
    settings, model = ReadingSettings(official=official), SimpleNamespace(architecture="causal")
    found = reading_stage.score(model, words, settings, EvaluationRuntime()).frame("words.parquet")
    missing = {row.before for row, value in zip(words, found["previous_surprisal_nats"], strict=True) if value != value}
    assert missing == ({None, ("None", "of")} if official else {None})


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
    return {word: added_pieces(backend, word) for word in words}


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
        if told["model_fit"]:
            age = Sigmoid(*told["model_fit"]).where(-float(told["threshold"]))
            assert age == (told["model_aoa_log10"] and pytest.approx(told["model_aoa_log10"]))
    # The fit for this word, whose surprisals are noise, converges only after thousands of evaluations. Its curve is
    # checked above.
    if case == "d_discards":
        assert next(told for told in trace["words"] if told["word"] == "milk")["model_aoa_log10"] is None
        del learnt["milk"]
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
    # A failure in the pipeline gives NaN, which excludes the checkpoint for this word.
    alone, failed = surprisals_behind(model, [("the", "dog"), ("the " * 2000, "dog")])
    assert math.isfinite(alone) and math.isnan(failed)
    # With one token before the text, a text of `longest_input` - 1 tokens still has a surprisal.
    (text,) = model.encode(["the dog"])
    for longest, fails in ((len(text.ids) + 1, False), (len(text.ids), True)):
        model.longest_input = longest
        assert math.isnan(surprisals_behind(model, [("the", "dog")])[0]) == fails
    trace = json.loads((folder / "aoa_trace.json").read_text())
    learnt = learnt_of(rows, pieces_of({row["target_word"] for row in rows}))
    found = acquisition(children_of(GOLDEN / "data/full/aoa/cdi_human.csv"), learnt, 400)
    # The curve has four parameters but only three points per model, so the fit depends on the optimiser. Children's
    # curves have 15 points.
    told = {word["word"]: word for word in trace["words"]}
    known = {word for word, one in told.items() if one["child_aoa"] is not None and "n_pieces" in one}
    assert set(found.ages) <= known and len(found.ages) > 2
    for word, (child, model_age_log10) in found.ages.items():
        assert child == pytest.approx(told[word]["child_aoa"], abs=1e-3)
        assert 6 <= model_age_log10 <= math.log10(10**8 + 1)


SETTINGS = {"stage_version": 1}
ARCHITECTURES = {"causal_bos": "causal", "causal_nobos": "causal", "masked_wp": "masked"}


def imported_model(name: str, architecture: str, folder: Path) -> Path:
    """Copy a golden model to `folder`, because importing writes next to the model, and return the import's manifest."""
    copied = shutil.copytree(GOLDEN / "models" / name, folder / name / "model")
    return imported(copied, architecture, folder / name / "imported")


def source_of_data(folder: Path) -> RawSource:
    register_source("data", GOLDEN / "data", folder / "data.json")
    return open_source(folder / "data.json")


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_stage_writes_what_the_server_takes(name, tmp_path):
    model = imported_model(name, ARCHITECTURES[name], tmp_path)
    output = tmp_path / "out/manifest.json"
    settings = {"stage": "measure_reading", **SETTINGS, "files": "full/reading/*.csv", "official": True}
    given = {"runtime": {"device": "cpu"}, "model": model, "source": source_of_data(tmp_path).manifest}
    run_stage(measure_reading, settings, output, **given)
    theirs = folder_of(name, "mlm" if name == "masked_wp" else "causal")
    ours = json.loads((tmp_path / "out/predictions.json").read_text())["reading"]["predictions"]
    expected = json.loads((theirs / "predictions.json").read_text())["reading"]["predictions"]
    assert [one["id"] for one in ours] == [one["id"] for one in expected]
    for key in ("pred", "prev_pred"):
        numbers = ([one[key] for one in rows] for rows in (ours, expected))
        np.testing.assert_allclose(*numbers, atol=1e-5, rtol=1e-6)
    made = read_manifest(output)
    assert made.measures == {"words": len(read_words()), "architecture": ARCHITECTURES[name]}
    rows = reading_rows(Evaluated(made, read_manifest(model)))
    assert {(row["items"], row["blind_guess"], row["metric"]) for row in rows} == {(43, 0.0, "gain_percent")}
    assert {row["task"] for row in rows if row["level"] == "paradigm"} == set(EYE_TRACKING)
    assert {row["task"]: row["level"] for row in rows}["self_paced"] == "average" and len(rows) == 7
    fractions = json.loads((theirs / "unrounded_fractions.json").read_text())
    for task, key in (("eye_tracking", "rt"), ("self_paced", "spr")):
        found = next(row["value"] for row in rows if row["task"] == task)
        assert found == pytest.approx(100 * float(fractions[key]), abs=1e-4)
    with pytest.raises(SourceError, match=r"expected one file that matches 'full/\*/\*\.csv', found 2"):
        run_stage(measure_reading, settings | {"files": "full/*/*.csv"}, output, **given)


def test_ages_beyond_what_was_measured_are_unknown():
    """Both curves are sigmoids whose midpoints are before, within or after the measured months and checkpoints."""

    def shares(middle: float) -> dict[float, float]:
        return {float(month): 1 / (1 + math.exp(-(month - middle) / 2)) for month in range(16, 31)}

    ages = {middle: child_age(shares(middle)) for middle in (14.0, 16.5, 23.0, 29.5, 32.0)}
    assert ages[14.0] is ages[32.0] is None
    # Two known shares are too few for a curve.
    assert child_age({16.0: math.nan, 17.0: 0.4, 18.0: 0.6}) is None
    assert {middle: age for middle, age in ages.items() if age} == pytest.approx(
        {16.5: 16.5, 23: 23, 29.5: 29.5}, abs=0.05
    )

    def learning(first: float, last: float, pieces: int) -> Learning:
        points = np.linspace(first, last, 12)
        curve = {round(10**x) - 1: [20 - 14 / (1 + math.exp(-3 * (x - 6.5)))] for x in points}
        return Learning(curve, pieces)

    # A uniform guess among 400 tokens costs ln 400 = 5.99 nats per piece. For four pieces, the threshold is midway
    # between this guess and the lowest surprisal, 6.15: 15.1. The curve reaches 15.1 at x = 6.5 - ln(14 / 4.94 - 1) / 3
    # = 6.3.
    threshold = (4 * math.log(400) + 20 - 14 / (1 + math.exp(-3 * 1.5))) / 2
    x = 6.5 - math.log(14 / (20 - threshold) - 1) / 3
    assert x == pytest.approx(6.298, abs=1e-3)
    assert model_age(learning(5, 8, 4), 400) == pytest.approx(x, abs=0.01)
    # The age is None if surprisal is below the threshold from the first checkpoint on, or, with one piece, above the
    # threshold at the last checkpoint.
    assert model_age(learning(6.4, 8, 4), 400) is None
    assert model_age(learning(5, 6.3, 1), 400) is None
    # The x axis is log10(words + 1), so 0 words have a value and small word counts are not shifted.
    early = {seen: [20 - 14 / (1 + math.exp(-3 * (math.log10(seen + 1) - 1.5)))] for seen in (0, 1, 3, 9, 31, 99, 999)}
    assert model_age(Learning(early, 4), 400) == pytest.approx(x - 5, abs=0.01)
    few = learning(5, 8, 4).surprisals
    assert model_age(Learning(dict(list(few.items())[:2]), 4), 400) is None


def test_three_words_have_a_correlation_and_one_with_a_p_value_above_a_tenth_counts_0():
    counts = [10**5 * 2**step for step in range(12)]

    def score(ages: list[float]) -> tuple[float, float | None]:
        """Return the score of words that a model learns at equal distances and children learn at these ages."""
        children, learnt = {}, {}
        for number, age in enumerate(ages):
            middle = 5.6 + 0.4 * number
            curve = {count: [20 - 14 / (1 + math.exp(-3 * (math.log10(count + 1) - middle)))] for count in counts}
            learnt[str(number)] = Learning(curve, 4)
            shares = {float(month): 1 / (1 + math.exp(-(month - age) / 2)) for month in range(10, 31)}
            children[str(number)] = shares
        return acquisition(children, learnt, 400)[:2]

    assert score([16, 18]) == (0.0, None)
    assert score([16, 18, 20])[0] == pytest.approx(1, abs=1e-3)
    # For four pairs, p is 1 - |r|.
    assert score([16, 20, 19.5, 26]) == pytest.approx((0.9176, 0.0824), abs=1e-3)
    assert score([16, 20, 19, 26]) == (0.0, pytest.approx(0.1072, abs=1e-3))


def test_the_stage_of_acquisition_asks_every_checkpoint(tmp_path, monkeypatch):
    names = {"chck_1M": 10**6, "chck_5M": 5 * 10**6, "chck_100M": 10**8}
    checkpoints = {name: imported_model(f"causal_bos_aoa/{name}", "causal", tmp_path) for name in names}
    settings = {"stage": "measure_acquisition", **SETTINGS, "words": names}
    settings |= {"contexts": "*cdi_childes.json", "children": "*cdi_human.csv"}
    output = tmp_path / "out/manifest.json"
    given = {"runtime": {"device": "cpu"}, "model": checkpoints["chck_100M"], "checkpoints": checkpoints}
    given["source"] = source_of_data(tmp_path).manifest
    asked: list[tuple] = []
    monkeypatch.setattr(acquisition_stage, "acquisition", lambda *of: asked.append(of) or acquisition(*of))
    run_stage(measure_acquisition, settings, output, **given)
    ((_, learnt, vocabulary_size, rules),) = asked
    trace = json.loads((GOLDEN / "results/causal_bos_aoa/main/zero_shot/causal/AoA_word/aoa_trace.json").read_text())
    theirs = {one["word"]: one["n_pieces"] for one in trace["words"] if "n_pieces" in one}
    assert theirs == {word: learnt[word].pieces for word in theirs} and set(theirs.values()) > {1}
    assert (vocabulary_size, rules) == (400, "2026")
    theirs = json.loads((GOLDEN / "results/causal_bos_aoa/main/zero_shot/causal/AoA_word/surprisal.json").read_text())
    ours = json.loads((tmp_path / "out/surprisal.json").read_text())
    for one, other in zip(ours["results"], theirs["results"], strict=True):
        assert {**one, "surprisal": 0} == {**other, "surprisal": 0}
        assert one["surprisal"] == pytest.approx(other["surprisal"], abs=1e-5, rel=1e-6)
    (row,) = acquisition_rows(Evaluated(read_manifest(output), read_manifest(checkpoints["chck_100M"])))
    with (tmp_path / "out/ages.csv").open(encoding="utf-8", newline="") as lines:
        ages = np.array(
            [[float(one["child_months"]), float(one["model_log10_words"])] for one in csv.DictReader(lines)]
        )
    # Children's ages are in months, and the model's ages are logarithms of numbers of words.
    assert ((ages[:, 0] >= 16) & (ages[:, 0] <= 30)).all() and ((ages[:, 1] >= 6) & (ages[:, 1] <= 8.1)).all()
    facts = read_manifest(output).measures
    assert (facts["checkpoints"], facts["edition"], facts["words"]) == (3, 2026, len(ages))
    assert ours["metadata"] == {"use_bos_only": False, "total_steps": 3, "completed_steps": 3}
    r = np.corrcoef(ages.T)[0, 1]
    assert facts["asked_words"] == len(learnt) and facts["p"] == pytest.approx(float(pearsonr(*ages.T).pvalue))
    # t of a correlation. Beyond these limits are 10 % of Student's distribution with n - 2 degrees of freedom.
    t, limit = r * math.sqrt((len(ages) - 2) / (1 - r**2)), {3: 6.31, 4: 2.92, 5: 2.35, 6: 2.13, 7: 2.02}[len(ages)]
    assert row["value"] == pytest.approx(100 * r if abs(t) > limit else 0) and row["items"] == len(ages)
    for name, content, told in (
        ("words.json", '{"dog": 3}', 'words.json: expected {"word"'),
        ("words.json", '{"dog": []}', "words.json: the file contains no contexts"),
        ("children.csv", "word,16\ndog,x\n", "children.csv:2: 16: got 'x', expected a number"),
        ("children.csv", "word,a\ndog,1\n", "children.csv:2: no column has an age"),
        ("children.csv", "word,16\ndog,1\ndog,1\n", "children.csv:3: the word 'dog' occurs twice"),
    ):
        files = {"words.json": '{"dog": [{"context": "a"}]}', "children.csv": "word,16\ndog,1\n", name: content}
        for file, text in files.items():
            (tmp_path / "bad").mkdir(exist_ok=True)
            (tmp_path / "bad" / file).write_text(text, encoding="utf-8")
        register_source("bad", tmp_path / "bad", tmp_path / "bad.json")
        wrong = settings | {"contexts": "words.json", "children": "children.csv"}
        with pytest.raises(EvaluationError, match=re.escape(told)):
            run_stage(
                measure_acquisition, wrong, tmp_path / "no/manifest.json", **{**given, "source": tmp_path / "bad.json"}
            )


def test_rules_of_2025_fit_every_context_without_bounds():
    """No outputs of the 2025 code are known, so the test checks its described rules."""
    counts, middles = [10**5 * 2**step for step in range(12)], {"dog": 5.6, "cat": 6.0, "swim": 6.4, "moon": 6.8}

    def surprisals(middle: float) -> dict[int, list[float]]:
        curve = {count: 20 - 14 / (1 + math.exp(-3 * (math.log10(count + 1) - middle))) for count in counts}
        return {count: [value - 0.5, value + 0.5] for count, value in curve.items()}

    learnt = {word: Learning(surprisals(middle), 1) for word, middle in middles.items()}
    assert learnt["dog"].chance(400, "2025") == pytest.approx(math.log2(300_000))
    children = {
        word: {float(month): 1 / (1 + math.exp(-(month - 10 * middle + 40) / 2)) for month in range(10, 31)}
        for word, middle in middles.items()
    }
    found = acquisition(children, learnt, 400, "2025")
    assert set(found.ages) == set(middles) and found.score == pytest.approx(1, abs=1e-3)
    # The threshold is midway between the uniform guess and the lowest surprisal of a context.
    threshold = (math.log2(300_000) + min(map(min, learnt["cat"].surprisals.values()))) / 2
    x = found.ages["cat"][1]
    assert 20 - 14 / (1 + math.exp(-3 * (x - middles["cat"]))) == pytest.approx(threshold, abs=0.01)
    assert found.ages["dog"][0] == pytest.approx(16, abs=0.1)
