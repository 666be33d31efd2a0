"""The file for BabyLM's leaderboard: its parts, its structure, and the report about it."""

import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest

from hatchery.analysis.babylm_scores import RULES, SUITES, RowCount
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import stage_run
from hatchery.artifacts.records import read_records
from hatchery.export.settings import SubmissionSettings
from hatchery.export.submission import report_of, submission
from hatchery.export.submission_check import (
    FAST,
    GLUE,
    KEYS,
    differing_counts,
    missing_checkpoints,
    structure_problems,
)

CHECKPOINTS = ("chck_1M", "chck_2M")
SETTINGS = SubmissionSettings(
    run="mine-s1",
    track="strict_small",
    edition=2026,
    suites="babylm_2026",
    tasks="babylm_2026",
    checkpoints=CHECKPOINTS,
    age_of_acquisition="as_measured",
    track_checked=True,
)
COLUMNS = "level,name,pairs,correct,ties,accuracy,accuracy_ties_correct"
ACCURACY = f"{COLUMNS}\nparadigm,agreement,2,1,1,0.5,0.75\nsuite,x,2,1,0,0.25,0.125\n"


def predicted(uid: str, *texts: object) -> str:
    rows = [{"id": f"{uid}_{number}", "pred": text} for number, text in enumerate(texts)]
    return json.dumps({uid: {"predictions": rows}})


@pytest.fixture
def evaluations(tmp_path: Path):
    def made(name: str, **files: str) -> Path:
        folder = tmp_path / name
        with stage_run(folder / "manifest.json", {"stage": "x"}) as run:
            for file, text in files.items():
                path = folder / file.replace("__", ".")
                write_text(path, text)
                run.add_output(path)
        return folder / "manifest.json"

    whole = {
        "blimp": made("blimp", predictions__json=predicted("agreement", "A dog.", "B.")),
        "ewok": made("ewok", accuracy__csv=ACCURACY),
        "global_piqa_parallel": made("piqa", predictions__json=predicted("e1", " so")),
        "glue/rte": made("rte", predictions__json=predicted("rte", 0, 1)),
        "reading": made(
            "reading",
            predictions__json='{"reading": {"predictions": [{"id": 0, "pred": 7.5, "prev_pred": NaN}]}}',
        ),
        "acquisition": made(
            "acquisition",
            surprisal__json=json.dumps({"metadata": {}, "results": [surprisal(name) for name in CHECKPOINTS]}),
            aoa_score__json='{"aoa": -0.25}',
        ),
    }
    fast = {
        "chck_2M/blimp": made("fast_blimp", accuracy__csv=ACCURACY),
        "chck_2M/reading": made("fast_reading", scores__csv="outcome,gain\nRTgopast,0.5\nrt,0.25\nspr,0.125\n"),
    }
    return whole, fast


def surprisal(step: str) -> dict[str, object]:
    word = {"target_word": "dog", "context_id": 0, "context": "the"}
    return {"step": step, "word_count": 10**6, **word, "surprisal": 3.5}


def test_the_file_holds_what_was_measured_and_null_for_the_rest(evaluations) -> None:
    value = submission(SETTINGS, *evaluations)
    assert tuple(value) == ("blimp", "blimp_supplement", *tuple(KEYS)[2:])
    assert value["blimp"]["agreement"]["predictions"][1] == {"id": "agreement_1", "pred": "B."}
    # There are no predictions for ewok, because its rows were sampled.
    assert [key for key in value if value[key] is None] == [
        *("blimp_supplement", "ewok", "entity_tracking_filtered", "comps", "global_piqa_nonparallel"),
    ]
    assert value["glue"] == {"rte": json.loads(predicted("rte", 0, 1))["rte"]}
    assert value["aoa"] == {"aoa": -0.25} and value["aoa_surprisals"]["metadata"] == {"model_name": "mine-s1"}
    fast = value["fast_eval_results"]
    assert fast["blimp"] == [None, {"agreement": 0.5}] and fast["reading"] == [None, {"rt": 0.25, "spr": 0.125}]
    assert fast["ewok"] == [None, None]
    assert structure_problems(json.loads(json.dumps(value)), "strict_small") == []


def test_checkpoints_that_are_missing_leave_out_the_age_of_acquisition(evaluations) -> None:
    value = submission(replace(SETTINGS, checkpoints=(*CHECKPOINTS, "chck_3M")), *evaluations)
    assert value["aoa"] is value["aoa_surprisals"] is None
    # The name of the last checkpoint is not one of the track's names.
    assert submission(replace(SETTINGS, checkpoints=("chck_1M",)), *evaluations)["aoa"] is None
    zero = submission(replace(SETTINGS, age_of_acquisition="zero"), *evaluations)
    assert zero["aoa"] == {"aoa": 0.0} and zero["aoa_surprisals"] is not None


@pytest.mark.parametrize(
    ("path", "new", "told"),
    [
        (
            ("blimp", "agreement", "predictions", 1, "pred"),
            3,
            "blimp: agreement: row 1: the prediction is 3, expected a text",
        ),
        (("blimp", "agreement", "predictions", 1, "id"), "agreement_2", "row 1: the id is 'agreement_2', expected"),
        (("blimp", "agreement"), {}, "blimp: agreement: expected a list of predictions"),
        (
            ("glue", "rte", "predictions", 0, "pred"),
            0.0,
            "glue: rte: row 0: the prediction is 0.0, expected a whole number",
        ),
        (
            ("glue", "rte", "predictions", 0, "pred"),
            True,
            "glue: rte: row 0: the prediction is True, expected a whole number",
        ),
        (("glue", "cola"), {}, "glue: cola: unknown task"),
        (
            ("global_piqa_parallel", "e1", "predictions", 1),
            {"id": "e1_1", "pred": ""},
            "expected one prediction, got 2",
        ),
        (("reading", "reading", "predictions", 0, "pred"), float("nan"), "reading: row 0: got"),
        (("reading", "reading", "predictions", 0, "id"), 1, "reading: row 0: got"),
        (("aoa",), {"aoa": 15.45}, "aoa: got {'aoa': 15.45}, expected {'aoa': a correlation from -1 to 1}"),
        (("aoa_surprisals",), None, "aoa_surprisals are missing, so the server counts the score as 0"),
        (("aoa_surprisals", "results", 0, "surprisal"), None, "aoa_surprisals: row 0: surprisal: missing, or of the"),
        (("fast_eval_results", "blimp"), [None] * 3, "expected lists of equal length, with at most 19"),
        (("fast_eval_results", "blimp", 0), {"other": 0.5}, "blimp: the checkpoints have different names of scores"),
        (("fast_eval_results", "blimp", 1), {"agreement": 1}, "blimp: checkpoint 1: expected null or fractions"),
        (("fast_eval_results", "blimp", 1), {"agreement": 1.01}, "blimp: checkpoint 1: expected null or fractions"),
        (("fast_eval_results", "blimp", 1), {"agreement": -0.01}, "blimp: checkpoint 1: expected null or fractions"),
        (("fast_eval_results", "blimp", 1), {}, "blimp: checkpoint 1: expected null or fractions"),
        (
            ("fast_eval_results", "reading", 1),
            {"rt": 0.5},
            "fast_eval_results: reading: expected the scores spr and rt",
        ),
        (("aoa",), {"aoa": 1.01}, "aoa: got {'aoa': 1.01}, expected"),
        (("aoa",), {"aoa": -1.01}, "aoa: got {'aoa': -1.01}, expected"),
        (("aoa_surprisals", "results", 2), surprisal("chck_1M"), "the checkpoints have different numbers of rows"),
        (("reading", "reading", "predictions", 0, "prev_pred"), float("inf"), "reading: row 0: got"),
        (("reading", "reading", "predictions", 0, "pred"), 7, "reading: row 0: got"),
        (("global_piqa_parallel", "e1", "predictions", 0, "id"), "e1_1", "the id is 'e1_1', expected 'e1_0'"),
        (("comps",), [], "comps: expected null or a mapping from paradigms to predictions"),
        (("extra",), None, "the key 'extra' is unknown"),
    ],
)
def test_what_the_server_would_refuse_is_told(evaluations, path, new, told) -> None:
    value = copy.deepcopy(submission(SETTINGS, *evaluations))
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    if isinstance(inner, list) and path[-1] == len(inner):
        inner.append(new)
    else:
        inner[path[-1]] = new
    problems = structure_problems(value, "strict_small")
    assert any(told in problem for problem in problems), problems


@pytest.mark.parametrize(
    ("path", "new"),
    [
        (("aoa",), {"aoa": 1}),
        (("aoa",), {"aoa": -1.0}),
        (("fast_eval_results", "blimp", 1), {"agreement": 1.0}),
        (("fast_eval_results", "blimp", 1), {"agreement": 0.0}),
        (("reading", "reading", "predictions", 0, "prev_pred"), float("nan")),
    ],
)
def test_the_ends_of_a_range_belong_to_it(evaluations, path, new) -> None:
    value = copy.deepcopy(submission(SETTINGS, *evaluations))
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    assert structure_problems(value, "strict_small") == []


@pytest.mark.parametrize(("track", "most"), [("strict_small", 19), ("strict", 28)])
def test_a_track_has_so_many_checkpoints_at_most(evaluations, track, most) -> None:
    value = submission(SETTINGS, *evaluations)
    for length, expected in (
        (most, []),
        (most + 1, [f"expected lists of equal length, with at most {most} checkpoints"]),
    ):
        value["fast_eval_results"] = {block: [None] * length for block in FAST}
        assert structure_problems(value, track) == [f"fast_eval_results: {one}" for one in expected]


def test_every_block_has_the_predictions_and_fractions_of_its_own_evaluation(evaluations, tmp_path: Path) -> None:
    whole, fast = {}, {}

    def made(name: str, file: str, text: str) -> Path:
        folder = tmp_path / "each" / name
        with stage_run(folder / "manifest.json", {"stage": "x"}) as run:
            write_text(folder / file, text)
            run.add_output(folder / file)
        return folder / "manifest.json"

    texts = (*SUITES, *(f"glue/{task}" for task in GLUE))
    for block in texts:
        uid = block.removeprefix("glue/")
        whole[block] = made(block, "predictions.json", predicted(uid, texts.index(block)))
    for number, block in enumerate(FAST, 1):
        # Checkpoints are ordered by words, not by name.
        for checkpoint, share in (("chck_9M", number / 10), ("chck_10M", number / 100)):
            rows = f"outcome,gain\nRTgopast,0.5\nrt,{share}\nspr,{share / 2}\n"
            if block != "reading":
                rows = f"{COLUMNS}\nparadigm,{block},2,1,0,{share},1\nsuite,{block},2,1,0,1,1\n"
            name = "scores.csv" if block == "reading" else "accuracy.csv"
            fast[f"{checkpoint}/{block}"] = made(f"{checkpoint}/{block}", name, rows)
    value = submission(replace(SETTINGS, checkpoints=("chck_9M", "chck_10M")), whole, fast)
    found = {block: value[block][block]["predictions"][0]["pred"] for block in SUITES}
    found |= {task: value["glue"][task]["predictions"][0]["pred"] for task in GLUE}
    assert found == {block.removeprefix("glue/"): number for number, block in enumerate(texts)}
    assert value["fast_eval_results"] == {
        "blimp": [{"blimp": 0.1}, {"blimp": 0.01}],
        "blimp_supplement": [{"blimp_supplement": 0.2}, {"blimp_supplement": 0.02}],
        "ewok": [{"ewok": 0.3}, {"ewok": 0.03}],
        "entity_tracking_filtered": [{"entity_tracking_filtered": 0.4}, {"entity_tracking_filtered": 0.04}],
        "global_piqa_parallel": [{"global_piqa_parallel": 0.5}, {"global_piqa_parallel": 0.05}],
        "global_piqa_nonparallel": [{"global_piqa_nonparallel": 0.6}, {"global_piqa_nonparallel": 0.06}],
        "reading": [{"rt": 0.7, "spr": 0.35}, {"rt": 0.07, "spr": 0.035}],
    }
    other = submission(SETTINGS, *evaluations)
    assert other["reading"]["reading"]["predictions"][0]["pred"] == 7.5 and other["aoa"] == {"aoa": -0.25}
    assert other["aoa_surprisals"]["results"][1]["surprisal"] == 3.5


def test_missing_keys_and_no_object_are_told() -> None:
    assert structure_problems([], "strict") == ["the file does not contain a JSON object"]
    assert "the key 'comps' is missing" in structure_problems({}, "strict")


def test_official_numbers_of_rows_are_those_of_the_description(repository: Path) -> None:
    counts = read_records(repository / "config/published/babylm/row_counts.csv", RowCount, ("set", "block", "uid"))
    sums: dict[str, list[int]] = {}
    for count in counts:
        sums.setdefault(count.block, []).append(count.rows)
    assert {block: (len(rows), sum(rows)) for block, rows in sums.items()} == {
        "blimp": (67, 59_875),
        "blimp_supplement": (5, 5_218),
        "ewok": (11, 7_618),
        "entity_tracking_filtered": (18, 6_780),
        "comps": (4, 91_028),
        "global_piqa_parallel": (1, 103),
        "global_piqa_nonparallel": (1, 100),
        "reading": (1, 1_726),
        "glue": (7, 29_577),
        "aoa_surprisals": (1, 8_005),
    }


def test_the_report_says_both_means_and_which_was_written(evaluations, repository: Path) -> None:
    value = submission(SETTINGS, *evaluations)
    counts = read_records(repository / "config/published/babylm/row_counts.csv", RowCount, ("set", "block", "uid"))
    parts = {"blimp": 80.0, "supplement": 60.0, "ewok": None, "acquisition": -25.0}
    text = report_of(SETTINGS, value, parts, counts)
    assert "with the measured AoA (-25.00): **12.78**" in text and "with AoA 0: **15.56**" in text
    assert "Track strict-small: the experiment was checked against the track's rules." in text
    unchecked = report_of(replace(SETTINGS, track_checked=False), value, parts, counts)
    assert "the track's rules were not checked, because the experiment has no `track: strict_small`" in unchecked
    assert "- parts that were not measured and count as 0: EWoK\n" in text
    assert "| BLiMP | 80.00 |\n" in text and "| EWoK | - |\n" in text and "| AoA | -25.00 |\n" in text
    damaged = {**value, "aoa": None, "aoa_surprisals": None, "comps": []}
    text_of_damaged = report_of(SETTINGS, damaged, {**parts, "acquisition": None}, counts)
    assert "with the measured AoA (none)" in text_of_damaged and "- the file contains no AoA score\n" in text_of_damaged
    assert "- comps: expected null or a mapping from paradigms to predictions\n" in text_of_damaged
    assert ": 1 rows of `reading`.\n" in text and "strict JSON parsers" in text
    value["reading"]["reading"]["predictions"][0]["prev_pred"] = 1.5
    assert "NaN" not in report_of(SETTINGS, value, parts, counts)
    assert "- fast\\_eval\\_results: blimp: 1 of 19 checkpoints\n" in text, text
    assert "- aoa\\_surprisals: 2 of 19 checkpoints\n" in text
    assert "the file contains AoA -25.00" in text and "The file has the structure that the server requires." in text
    differing = differing_counts(value, counts)
    assert any(line.startswith("blimp: adjunct_island 0 of 928, ") and line.endswith(" more") for line in differing)
    assert "ewok: nothing was measured" in differing and "reading: reading 1 of 1,726" in differing
    assert "glue: boolq 0 of 1,635, multirc 0 of 2,424, rte 2 of 139, and 4 more" in differing
    assert "aoa_surprisals: rows 1 of 8,005" in differing


def test_checkpoints_are_complete_where_every_block_has_all_of_the_track() -> None:
    fast = {block: [{"a": 0.5}] * 19 for block in FAST}
    rows = [surprisal(f"chck_{number}M") for number in range(19)]
    value = {"fast_eval_results": fast, "aoa_surprisals": {"results": rows}}
    assert missing_checkpoints(value, "strict_small") == []
    assert len(missing_checkpoints(value, "strict")) == len(FAST) + 1
    fast["ewok"] = [*fast["ewok"][:18], None]
    assert missing_checkpoints(value, "strict_small") == ["fast_eval_results: ewok: 18 of 19 checkpoints"]
    rows.append(surprisal("chck_200M"))
    assert "aoa_surprisals: 20 of 19 checkpoints" in missing_checkpoints(value, "strict_small")


COLLATED = Path(__file__).resolve().parents[1] / "golden/babylm_2026/results/collated"


def test_what_the_organisers_collator_writes_has_the_structure_and_other_numbers_of_rows(repository: Path) -> None:
    value = json.loads((COLLATED / "toy_sizes_two_of_three_checkpoints.json").read_text())
    assert structure_problems(value, "strict_small") == []
    counts = read_records(repository / "config/published/babylm/row_counts.csv", RowCount, ("set", "block", "uid"))
    assert len(differing_counts(value, counts)) == len({count.block for count in counts})
    # All values have the official sizes and are null; the only problem is the missing score for age of acquisition.
    dropped = json.loads((COLLATED / "official_sizes.json").read_text())
    assert structure_problems(dropped, "strict_small") == [
        "aoa: aoa_surprisals are missing, so the server counts the score as 0"
    ]


def test_a_paradigm_that_their_collator_misses_or_stumbles_over_is_named_here() -> None:
    value = json.loads((COLLATED / "toy_sizes_two_of_three_checkpoints.json").read_text())
    toy = json.loads((COLLATED / "toy_sizes.json").read_text())
    sizes = {block: rows for block, rows in toy["full"].items() if isinstance(rows, dict)}
    sizes["entity_tracking_filtered"] = sizes.pop("entity_tracking")
    sizes |= {"reading": {"reading": toy["full"]["reading"]}, "aoa_surprisals": {"": toy["aoa_per_checkpoint"]}}
    sizes |= {"glue": {task: toy["full"][task] for task in value["glue"]}}
    sizes |= {block: {"": rows} for block, rows in toy["global_piqa"].items()}
    counts = [RowCount("full", block, uid, rows) for block, of in sizes.items() for uid, rows in of.items()]
    assert differing_counts(value, counts) == []
    missing = json.loads((COLLATED / "missing_uid.json").read_text())
    gone = missing["predictions_without_uid"]
    rows = value["blimp"].pop(gone)
    assert not missing["blimp_block_is_null"] and missing["uids_in_block"] == list(value["blimp"])
    assert differing_counts(value, counts) == [f"blimp: {gone} 0 of {len(rows['predictions'])}"]
    value["blimp"][gone] = rows
    unknown = (COLLATED / "unknown_uid_error.txt").read_text().split("'")[1]
    fewer = [count for count in counts if count.uid != unknown]
    assert differing_counts(value, fewer) == [f"blimp: {unknown} {len(rows['predictions'])} of 0"]


def test_the_mean_is_that_of_the_servers_rules() -> None:
    names = {"BLiMP": "blimp", "Supplement": "supplement", "EWoK": "ewok", "Entity": "entity_tracking"}
    names |= {"COMPS": "comps", "GLUE": "glue", "GlobalPIQA": "global_piqa", "Reading": "reading", "AoA": "acquisition"}
    scored = json.loads((COLLATED / "leaderboard.json").read_text())
    for case in scored.values():
        parts = {names[column]: float(points) for column, points in case["columns"].items()}
        assert RULES[2026].mean(parts) == pytest.approx(float(case["overall"]), abs=1e-8)
    assert max(float(case["overall"]) for case in scored.values()) > 40
