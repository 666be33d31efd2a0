"""Submissions to BabyLM's leaderboard are checked when planning, for requests of the page and of the file."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from shipped import PROJECT, changed

from hatchery.analysis.multilingual_scores import finetuned_names, zero_shot_tasks
from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
from hatchery.export.stages.write_multilingual_submission import multilingual_inputs, multilingual_settings
from hatchery.export.stages.write_submission import submission_inputs, submission_settings
from hatchery.export.submissions import check_submission
from hatchery.settings.problems import Problems
from hatchery.workflow.plan_checks import collect_problems
from hatchery.workflow.result_paths import ResultPaths


def mini(folder: Path, **submission: Any) -> Project:
    given = {"suites": "demo_babylm", "tasks": "demo_babylm_2026", **submission}
    return changed(folder, ("submission", given), of="babylm_mini")


def check_tells(project: Project, told: str) -> None:
    """Expect that the check of the submission raises an error with this text; an empty text expects no error."""
    with pytest.raises(ConfigError) if told else nullcontext() as caught:
        check_submission(project, "babylm_mini")
    assert caught is None or told in str(caught.value)


@pytest.mark.parametrize(
    ("submission", "told"),
    [
        ({}, ""),
        ({"run": "gpt_bert", "seed": 42}, ""),
        (
            {"run": "gptbert"},
            "submission.run: got 'gptbert', expected a run of the experiment; did you mean 'gpt_bert'?",
        ),
        ({"seed": 1}, "submission.seed: got 1, expected a seed of 'gpt_bert': 42"),
        (
            {"suites": "demo_bablym"},
            "submission.suites: got 'demo_bablym', but the experiment has none of demo_bablym_blimp, "
            "demo_bablym_supplement, demo_bablym_ewok, ...: expected 'demo_babylm'",
        ),
        (
            {"tasks": "demo_babylm"},
            "submission.tasks: got 'demo_babylm', but the experiment has none of demo_babylm_boolq, demo_babylm_mnli, "
            "demo_babylm_mrpc, ...: expected 'demo_babylm_2026'",
        ),
    ],
)
def test_a_submission_names_what_there_is(configuration: Path, submission: dict[str, Any], told: str) -> None:
    check_tells(mini(configuration, **submission), told)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            (("submission", {}),),
            "submission.suites: got 'babylm_2026', but the experiment has none of babylm_2026_blimp",
        ),
        ((("submission", {"suites": "demo_babylm"}), ("finetuning", {"tasks": {}})), ""),
    ],
)
def test_a_submission_has_suites_and_may_do_without_fine_tuning(
    configuration: Path, changes: tuple[tuple[str, Any], ...], told: str
) -> None:
    project = changed(configuration, *changes, ("evaluate_milestones", []), of="babylm_mini")
    check_tells(project, told)


def test_a_dry_run_of_any_target_of_the_experiment_checks_its_submission(configuration: Path) -> None:
    problems = Problems()
    collect_problems(mini(configuration, seed=1), [("experiment", "babylm_mini")], problems)
    assert any("submission.seed: got 1" in line for line in problems.lines)


def test_a_submission_has_the_checkpoints_of_its_track_or_else_its_own(configuration: Path) -> None:
    small = [f"chck_{number}M" for number in (*range(1, 11), *range(20, 101, 10))]
    settings = submission_settings(PROJECT, "babylm_2026_strict_small")
    assert settings["checkpoints"] == small and len(small) == 19
    assert settings["run"] == "mixed-s42" and settings["track_checked"] is True
    large = [*small, *(f"chck_{number}M" for number in range(200, 1001, 100))]
    assert submission_settings(PROJECT, "babylm_2026_strict")["checkpoints"] == large and len(large) == 28
    own = submission_settings(PROJECT, "babylm_mini")
    assert own["checkpoints"] == ["chck_20K", "chck_40K", "chck_60K"] and own["track_checked"] is False
    # One mark of the track is enough to check the list of checkpoints, which lacks the track's other marks.
    some = ("pretraining", {"batch_size": 32, "budget": {"words_seen": "3M"}, "checkpoints_at": ["2M", 60_000]})
    few = changed(configuration, some, ("evaluate_milestones", []), of="babylm_mini")
    assert submission_settings(few, "babylm_mini")["checkpoints"] == small


def test_the_run_that_is_handed_in_is_the_chosen_one_or_the_first_with_marks(configuration: Path) -> None:
    plain = {"model": "gpt_bert_demo"}
    runs = {"untrained": {**plain, "pretraining": {"steps": 0}}, "a": {**plain, "seeds": [7, 3]}, "b": plain}

    def chosen(**submission: Any) -> object:
        given = {"suites": "demo_babylm", "tasks": "demo_babylm_2026", **submission}
        project = changed(configuration, ("submission", given), ("runs", runs), of="babylm_mini")
        return submission_settings(project, "babylm_mini")["run"]

    assert [chosen(), chosen(seed=3), chosen(run="b"), chosen(run="untrained")] == [
        "a-s7",
        "a-s3",
        "b-s42",
        "untrained-s42",
    ]


def test_a_block_reads_the_full_suite_of_the_run_and_the_fast_one_of_each_checkpoint() -> None:
    inputs = submission_inputs(ResultPaths(PROJECT), "babylm_mini")
    place = "results/babylm_mini/minimal_pairs/{}/demo_babylm_{}/manifest.json"
    whole = {"blimp": "blimp", "blimp_supplement": "supplement", "ewok": "ewok", "comps": "comps"}
    whole |= {"entity_tracking_filtered": "entity_tracking"}
    whole |= {f"global_piqa_{one}": f"global_piqa_{one}" for one in ("parallel", "nonparallel")}
    predictions, fast = inputs["predictions"], inputs["fast"]
    assert {block: predictions[block] for block in whole} == {
        block: place.format("gpt_bert-s42", suite) for block, suite in whole.items()
    }
    assert sorted(set(predictions) - set(whole)) == sorted(
        ["acquisition", "reading", *map("glue/{}".format, ("boolq", "mnli", "mrpc", "multirc", "qqp", "rte", "wsc"))]
    )
    assert predictions["glue/wsc"] == "results/babylm_mini/finetuning/gpt_bert-s42/demo_babylm_2026_wsc/manifest.json"
    of_one = {key.split("/")[1]: path for key, path in fast.items() if key.startswith("chck_40K/")}
    assert of_one["blimp"] == place.format("gpt_bert-s42-chck_40K", "fast_blimp")
    # This suite has no fast set, so the whole suite is used.
    assert of_one["global_piqa_parallel"] == place.format("gpt_bert-s42-chck_40K", "global_piqa_parallel")
    assert of_one["reading"] == "results/babylm_mini/reading/gpt_bert-s42-chck_40K/manifest.json"
    assert len(fast) == 3 * 7 and "comps" not in of_one


def test_checkpoints_of_the_runs_that_a_run_starts_from_are_handed_in_with_it(configuration: Path) -> None:
    budget = {"batch_size": 32, "budget": {"words_seen": "40K"}, "checkpoints_at": ["20K", "40K"]}
    later = {"budget": {"words_seen": "60K"}, "checkpoints_at": ["20K", "40K", "60K"]}
    runs = {"first": {"model": "gpt_bert_demo"}}
    for name, before in (("second", "first"), ("third", "second")):
        more = later if name == "second" else {"budget": {"words_seen": "80K"}, "checkpoints_at": ["60K", "80K"]}
        runs[name] = {"model": "gpt_bert_demo", "pretraining": {**more, "initialise_from": {"run": before}}}
    given = {"suites": "demo_babylm", "tasks": "demo_babylm_2026", "run": "third"}
    project = changed(configuration, ("submission", given), ("runs", runs), ("pretraining", budget), of="babylm_mini")
    check_submission(project, "babylm_mini")
    assert submission_settings(project, "babylm_mini")["checkpoints"] == [f"chck_{n}K" for n in (20, 40, 60, 80)]
    fast = submission_inputs(ResultPaths(project), "babylm_mini")["fast"]
    blimp = [path.split("/")[3] for key, path in fast.items() if key.endswith("/blimp")]
    assert blimp == [f"{run}-s42-chck_{n}K" for run, n in (("first", 20), ("first", 40), ("second", 60), ("third", 80))]


def multilingual(folder: Path, **submission: Any) -> Project:
    given = {"suites": "demo_multilingual", "tasks": "demo_multilingual", **submission}
    return changed(folder, ("multilingual_submission", given), of="babylm_multilingual_mini")


def test_the_files_of_the_multilingual_track_read_every_evaluation_of_the_run(configuration: Path) -> None:
    project = multilingual(configuration)
    read = multilingual_inputs(ResultPaths(project), "babylm_multilingual_mini")
    assert set(read["zero_shot"]) == set(zero_shot_tasks()) and len(read["zero_shot"]) == 24
    assert set(read["finetuned"]) == set(finetuned_names())
    assert len(read["fast"]) == 3 * 24 and read["reading"] == {}
    with_meco = multilingual_inputs(
        ResultPaths(multilingual(configuration, reading="demo_meco")), "babylm_multilingual_mini"
    )
    assert set(with_meco["reading"]) == {
        *(f"meco_l1_{text}" for text in ("eng", "nld", "zho")),
        *(f"meco_l2_{text}" for text in ("nld", "zho")),
    }
    assert len(with_meco["fast"]) == 3 * 25
    place, run = "results/babylm_multilingual_mini", "gpt_bert-s42"
    assert with_meco["fast"]["chck_20K/zhoblimp"] == (
        f"{place}/minimal_pairs/{run}-chck_20K/demo_multilingual_zhoblimp/manifest.json"
    )
    (text,) = [key.split("/")[1] for key in with_meco["fast"] if key.startswith("chck_20K/meco")]
    named = text.replace("meco", "demo_meco")
    assert with_meco["fast"][f"chck_20K/{text}"] == f"{place}/reading_times/{run}-chck_20K/{named}/manifest.json"
    assert with_meco["reading"]["meco_l2_nld"] == f"{place}/reading_times/{run}/demo_meco_l2_nld/manifest.json"
    assert with_meco["finetuned"]["arc_nl"] == f"{place}/finetuning/{run}/demo_multilingual_arc_nl/manifest.json"
    assert with_meco["zero_shot"]["hanzi_pinyin"] == (
        f"{place}/minimal_pairs/{run}/demo_multilingual_hanzi_pinyin/manifest.json"
    )
    settings = multilingual_settings(project, "babylm_multilingual_mini")
    assert settings["checkpoints"] == ["chck_10K", "chck_20K", "chck_30K"]
    assert (settings["model"], settings["track_checked"]) == ("gpt_bert-s42", False)
    official = multilingual_settings(PROJECT, "babylm_2026_multilingual_nld")
    assert len(official["checkpoints"]) == 28 and official["track_checked"]
    named = multilingual_settings(multilingual(configuration, model="mine"), "babylm_multilingual_mini")
    assert named["model"] == "mine"


def test_a_wrong_multilingual_submission_is_told(configuration: Path) -> None:
    found = multilingual(configuration, suites="demo_multi")
    message = "multilingual_submission.suites: got 'demo_multi', but the experiment has none of"
    with pytest.raises(ConfigError, match=message):
        check_submission(found, "babylm_multilingual_mini")
