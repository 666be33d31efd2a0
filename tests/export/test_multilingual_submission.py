"""Both files of BabyLM's multilingual track: their content from hand-made results, their structure, and the report."""

import copy
import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from measured_rows import SAME

from hatchery.analysis.tidy_tables import MEASUREMENTS, write_rows
from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.export.multilingual_check import TUNED, ZERO_SHOT, structure_problems
from hatchery.export.multilingual_submission import (
    Evaluated,
    all_names,
    missing_parts,
    predictions,
    report,
    submission,
    write_files,
)
from hatchery.export.settings import MultilingualSubmissionSettings

SETTINGS = MultilingualSubmissionSettings(
    run="mine-s1",
    model="mine",
    suites="multilingual",
    tasks="multilingual",
    reading="meco",
    checkpoints=("chck_1M", "chck_2M"),
    track_checked=False,
)
HASH = "0" * 64


@pytest.fixture
def evaluated(tmp_path: Path) -> Evaluated:
    def made(name: str, **tables: pl.DataFrame) -> Path:
        folder = tmp_path / name
        with stage_run(folder / "manifest.json", {"stage": "x"}) as run:
            for file, frame in tables.items():
                path = folder / file.replace("__", ".")
                path.parent.mkdir(parents=True, exist_ok=True)
                frame.write_csv(path) if path.suffix == ".csv" else frame.write_parquet(path)
                run.add_output(path)
        return folder / "manifest.json"

    def accuracy(*paradigms: tuple[str, float], of: str, by_pair: float) -> pl.DataFrame:
        rows = [("paradigm", *paradigm) for paradigm in paradigms]
        rows += [("suite", of, 0.9), ("suite", f"{of}_by_phenomenon", 0.8), ("suite", f"{of}_by_pair", by_pair)]
        return pl.DataFrame(rows, schema=["level", "name", "accuracy"], orient="row")

    def tuned(*sets: tuple[str, float | None]) -> pl.DataFrame:
        # F1 and accuracy of the first run, and accuracy of a second run.
        metrics = ("f1", "accuracy", "accuracy")
        rows = [row for name, value in sets for row in zip([name] * 3, metrics, (0.1, value, 0.2), strict=True)]
        return pl.DataFrame(rows, schema=["rows", "metric", "value"], orient="row")

    def labels(*rows: tuple[str, int, bool, str]) -> pl.DataFrame:
        frame = pl.DataFrame(list(rows), schema=["rows", "row", "scored", "prediction"], orient="row")
        runs = ((12, 5e-5, ""), (12, 1e-4, "2"), (13, 5e-5, "3"))
        return pl.concat(
            frame.with_columns(pl.col("prediction") + end, seed=pl.lit(seed), learning_rate=pl.lit(rate))
            for seed, rate, end in runs
        )

    hanzi = pl.DataFrame(
        {
            "pair_id": [f"0:{HASH}", f"1:{HASH}"],
            "score_good": [-1.5, -2.0],
            "score_bad": [-2.5, -1.0],
            "unknown": [False, True],
        }
    )
    words = pl.DataFrame(
        {"item": ["1", "1", "2", "1"], "position": [1.0, 2.0, 1.0, 1.0], "surprisal_nats": [0.5, None, 2.5, 9.0]}
    )
    # The first run diverged on Dutch.
    sets = (("validation", 0.95), ("en", 0.9), ("nl", None), ("zh", 0.7), ("test_en", 0.1))
    tested = [(f"test_{one}", row, True, tag) for one in ("en", "nl", "zh") for row, tag in enumerate(("X", "NOUN"))]
    return Evaluated(
        zero_shot={
            "blimp_babylm_filtered": made(
                "blimp", accuracy__csv=accuracy(("a", 0.5), ("b", 1.0), of="m", by_pair=0.625)
            ),
            "global_piqa_parallel_zh": made("piqa", accuracy__csv=accuracy(("cmn_hans", 0.25), of="m", by_pair=0.25)),
            "hanzi_structure": made(
                "hanzi", accuracy__csv=accuracy(("train", 0.5), of="m", by_pair=0.5), scores__parquet=hanzi
            ),
        },
        finetuned={
            "arc_nl": made(
                "arc",
                results__csv=tuned(("validation", 0.375)),
                predictions__parquet=labels(
                    ("validation", 0, True, "B"), ("validation", 1, True, "A"), ("validation", 2, False, "C")
                ),
            ),
            "pos": made(
                "pos", results__csv=tuned(*sets), predictions__parquet=labels(("validation", 0, True, "X"), *tested)
            ),
        },
        reading={"meco_l1_zho": made("meco", words__parquet=words)},
        fast={
            "chck_2M/blimp_babylm_filtered": made("fast", accuracy__csv=accuracy(("a", 0.5), of="m", by_pair=0.5)),
            "chck_2M/meco_l1_eng": made(
                "gain", scores__csv=pl.DataFrame({"response": ["firstrun.dur", "dur"], "gain_nats": [41.5, 9.0]})
            ),
        },
    )


def test_the_first_file_has_accuracies_without_hanzi(evaluated: Evaluated) -> None:
    assert submission(evaluated) == {
        # The collator requires this name of the group; the group's mean is weighted by pairs.
        "blimp": {"blimp": 0.625},
        "global_piqa_parallel_zh": {"global_piqa_parallel_zh": 0.25},
        "arc": {"nl": 0.375},
        "pos": {"en": 0.9, "nl": 0.0, "zh": 0.7},
    }


def test_the_second_file_has_predictions_hidden_parts_and_checkpoints(evaluated: Evaluated) -> None:
    found = predictions(SETTINGS, evaluated)
    results = found["zeroshot"]["results"]
    assert results["blimp_babylm_filtered"]["acc,none"] == 0.625
    assert results["blimp_babylm_filtered_b"]["acc,none"] == 1.0
    assert results["global_piqa_parallel_zh"]["acc_norm,none"] == 0.25 and "hanzi_structure" not in results
    aliases = {name: entry["alias"] for name, entry in results.items()}
    assert all(aliases[name] == name for name in ("global_piqa_parallel_zh", "blimp_babylm_filtered"))
    assert aliases["blimp_babylm_filtered_a"] == " - blimp_babylm_filtered_a"
    # A task with one paradigm is not a group.
    paradigms = [f"blimp_babylm_filtered_{name}" for name in "ab"]
    assert found["zeroshot"]["group_subtasks"] == {"blimp_babylm_filtered": paradigms}
    assert results.keys() == {"blimp_babylm_filtered", *paradigms, "global_piqa_parallel_zh"}
    # Rows that do not count (duplicates of the last batch) are not included.
    assert found["finetune"]["arc_nl"] == [{"index": 0, "prediction": "B"}, {"index": 1, "prediction": "A"}]
    assert found["finetune"]["pos_zh"] == [{"index": 0, "prediction": "X"}, {"index": 1, "prediction": "NOUN"}]
    assert found["hidden"] == {
        "hanzi_structure": {
            f"0:{HASH}": {"scores": [-1.5, -2.5], "has_unk": False},
            f"1:{HASH}": {"scores": [-2.0, -1.0], "has_unk": True},
        },
        # Words without a surprisal are left out; of two surprisals with one position, the first is used.
        "meco_l1": {"zho": {"1:1": 0.5, "2:1": 2.5}},
    }
    assert found["fast_eval_results"] == [{}, {"blimp": 0.5, "meco_l1_eng": 41.5}]
    assert structure_problems(submission(evaluated), found) == []


def test_every_missing_part_is_named(evaluated: Evaluated) -> None:
    found = missing_parts(submission(evaluated), predictions(SETTINGS, evaluated), 28)
    assert "zero-shot: zhoblimp" in found and "zero-shot: blimp" not in found
    assert "fine-tuning: arc, en" in found and "fine-tuning: arc, nl" not in found
    assert not any("pos" in one for one in found)
    assert "hidden: hanzi_pinyin" in found and "hidden: meco_l1, eng" in found
    assert "hidden: meco_l1, zho" not in found
    assert found[-1] == "fast_eval_results: 1 of 28 checkpoints"
    # 20 of 22 public tasks, 21 of 22 tasks with languages, one Hanzi task, 4 of 5 texts, and the checkpoints are
    # missing.
    assert len(found) == 20 + 21 + 1 + 4 + 1


def test_the_names_are_those_of_the_shipped_suites_and_tasks(repository: Path) -> None:
    from hatchery.experiment.project import Project

    project = Project(repository / "config")
    suites, tasks = all_names("multilingual", "multilingual")
    assert [name for name in suites if not project.has("suite", name)] == []
    assert [name for name in tasks if not project.has("task", name)] == []
    public = {name.removeprefix("multilingual_") for name in suites} - {"hanzi_structure", "hanzi_pinyin"}
    assert public - {"blimp_babylm_filtered"} == set(ZERO_SHOT) - {"blimp"}
    named = {f"{task}_{language}" for task, languages in TUNED.items() if task != "pos" for language in languages}
    assert {name.removeprefix("multilingual_") for name in tasks} == named | {"pos"}


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("blimp_babylm_filtered",), {"blimp_babylm_filtered": 0.5}, "submission: blimp_babylm_filtered: unknown task"),
        (("blimp", "blimp"), 73.8, "submission: blimp: expected fractions from 0 to 1, got {'blimp': 73.8}"),
        (("include",), {"en": 0.5}, "submission: include: expected an object with the keys nl, zh"),
        (("zhoblimp",), 0.5, "submission: zhoblimp: expected an object with the keys zhoblimp"),
        (("pos",), {}, "submission: pos: expected an object with the keys en, nl, zh"),
    ],
)
def test_a_wrong_first_file_is_told(evaluated: Evaluated, path: tuple[str, ...], value: object, problem: str) -> None:
    wrong = copy.deepcopy(submission(evaluated))
    place = wrong
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert structure_problems(wrong, predictions(SETTINGS, evaluated)) == [problem]


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (
            ("finetune", "arc_nl"),
            [{"index": 1, "prediction": "A"}],
            "finetune: arc_nl: expected the indices 0 to 0 in order",
        ),
        (("finetune", "arc_nl"), [{"index": 0, "prediction": 3}], "finetune: arc_nl: expected a list of objects"),
        (("finetune", "xnli_nl"), [{"index": 0, "prediction": "1"}], "finetune: xnli_nl: unknown task"),
        (
            ("hidden", "hanzi_structure"),
            {"0": {"scores": [0.0, 1.0], "has_unk": False}},
            "hanzi_structure: expected scores",
        ),
        (
            ("hidden", "hanzi_structure"),
            {f"0:{HASH}": {"scores": [0.0], "has_unk": False}},
            "expected scores and has_unk",
        ),
        (
            ("hidden", "meco_l2"),
            {"eng": {"1:1": 0.5}},
            "meco_l2: expected an object with one or more of the keys nld, zho",
        ),
        (("hidden", "meco_l1"), {"eng": {"11": 0.5}}, 'meco_l1, eng: expected an object that maps "item:word" to nats'),
        (
            ("hidden", "meco_l1"),
            {"eng": {"1:1": -0.5}},
            'meco_l1, eng: expected an object that maps "item:word" to nats',
        ),
        (("fast_eval_results",), [{"blimp": 1.5}], "fast_eval_results: checkpoint 0"),
        (("fast_eval_results",), [{}] * 29, "fast_eval_results: expected a list of at most 28"),
        (("zeroshot",), [], "zeroshot: expected an object with the key results"),
        (("more",), {}, "predictions: expected an object with the keys zeroshot"),
    ],
)
def test_a_wrong_second_file_is_told(evaluated: Evaluated, path: tuple[str, ...], value: object, problem: str) -> None:
    wrong = copy.deepcopy(predictions(SETTINGS, evaluated))
    place = wrong
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    (found,) = structure_problems(submission(evaluated), wrong)
    assert problem in found


def test_the_report_says_means_missing_parts_and_the_check(evaluated: Evaluated) -> None:
    parts = {
        language: {"zero-shot": {"a": 50.0, "b": None}, "fine-tuning": {"c": 20.0 if language == "en" else None}}
        for language in ("en", "nl", "zh")
    }
    accuracies, predicted = submission(evaluated), predictions(SETTINGS, evaluated)
    text = report(SETTINGS, accuracies, predicted, parts, {"hanzi_structure": 55.0, "hanzi_pinyin": None})
    # (70 + 50 + 50) / 3 parts / 3 languages.
    assert "Overall: **18.89**" in text and "| English | 25.00 (2 parts) | 20.00 (1 parts) | 23.33 |" in text
    assert "hanzi_structure 55.00, hanzi_pinyin -" in text
    assert "- fast\\_eval\\_results: 1 of 28 checkpoints" in text and "the track's rules were not checked" in text
    checked = report(replace(SETTINGS, track_checked=True), accuracies, predicted, parts, {})
    assert "the experiment was checked against the track's rules" in checked and "not checked" not in checked
    assert "- zero-shot: zhoblimp" in text and "Both files have the structure that the collator writes." in text
    assert json.loads(json.dumps(predicted)) == predicted
    damaged = report(SETTINGS, accuracies | {"blimp": {"blimp": 62.5}}, predicted | {"hidden": {}}, parts, {})
    assert "- submission: blimp: expected fractions from 0 to 1, got {'blimp': 62.5}\n" in damaged, damaged
    assert "- hidden: hanzi\\_structure\n" in damaged and "structure that the collator" not in damaged


def test_the_stage_writes_both_files_under_the_model_s_name_and_the_points_of_its_run(
    evaluated: Evaluated, tmp_path: Path
) -> None:
    rows = [
        {**{"kind": "minimal_pairs", "suite": f"multilingual_{task}", "task": "pair_average", "level": "average"}}
        | {"metric": "accuracy_percent", "run": run, "value": value}
        for run, value in (("mine-s1", 66.0), ("mine-s2", 99.0))
        for task in ("zhoblimp", "hanzi_pinyin")
    ]
    write_rows(tmp_path / "measurements.parquet", MEASUREMENTS, [SAME | row for row in rows])
    with stage_run(tmp_path / "out/manifest.json", {"stage": "x"}) as run:
        write_files(SETTINGS, evaluated, tmp_path / "measurements.parquet", run)
    made = read_manifest(tmp_path / "out/manifest.json")
    files = {output.path.name: output.path.read_text(encoding="utf-8") for output in made.outputs}
    assert set(files) == {"mine_submission.json", "mine_predictions.json", "submission.md"}
    assert json.loads(files["mine_submission.json"]) == submission(evaluated)
    assert json.loads(files["mine_predictions.json"]) == predictions(SETTINGS, evaluated)
    # One of six zero-shot parts is measured, and none of nine fine-tuning parts.
    assert "hanzi_structure -, hanzi_pinyin 66.00" in files["submission.md"]
    assert "| Mandarin | 11.00 (6 parts) | 0.00 (9 parts) | 4.40 |" in files["submission.md"]
