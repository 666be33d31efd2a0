"""A study names experiments and analyses; each of its mistakes is reported in one line with the nearest name."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from shipped import edit

from hatchery.analysis.analyses.analysis import TIDY_TABLES, analysis_names
from hatchery.analysis.analyses.comparison import ComparisonSettings, pairs
from hatchery.analysis.settings import models_in_order
from hatchery.analysis.studies import analyses_of
from hatchery.analysis.tidy_tables import TABLES
from hatchery.errors import ConfigError
from hatchery.experiment.paper_tables import published_files
from hatchery.experiment.project import Project
from hatchery.settings.problems import Problems
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.plan_checks import collect_problems

SIDE_BY_SIDE = """\
description: My two runs side by side.
experiments: [demo, demo_suites]
analyses:
  comparison: {against: demo/random}
"""


@pytest.fixture
def folder(configuration: Path) -> Path:
    (configuration / "studies/side.yaml").write_text(SIDE_BY_SIDE, encoding="utf-8")
    return configuration


def test_an_analysis_of_the_base_that_is_null_is_left_out(folder: Path) -> None:
    (folder / "studies/less.yaml").write_text("base: side\nanalyses: {comparison: null}\n", encoding="utf-8")
    less = Project(folder).study("less")
    assert (less.experiments, dict(less.analyses)) == (("demo", "demo_suites"), {})


def check(folder: Path, study: str) -> None:
    """Raise ConfigError with all mistakes in the study and in the blocks that it names."""
    problems = Problems()
    collect_problems(Project(folder), [("study", study)], problems)
    problems.raise_any()


def test_two_experiments_side_by_side_are_a_file_of_four_lines(folder: Path) -> None:
    project = Project(folder)
    assert project.members("side") == ["demo", "demo_suites"]
    runs = project.shown_runs("side")
    models = models_in_order(runs)
    assert models[:4] == ["demo/random", "demo/ltg_bert", "demo/elc_bert", "demo_suites/random"]
    assert len({run.name for run in runs}) == len(runs)


def test_a_study_can_be_based_on_another_and_say_what_differs(folder: Path) -> None:
    entries = "  of_one: {analysis: comparison, against: demo/random, title: Gains}\n"
    (folder / "studies/side.yaml").write_text(SIDE_BY_SIDE + entries, encoding="utf-8")
    other = "base: side\nanalyses: {of_one: {against: demo/elc_bert}}\n"
    (folder / "studies/other.yaml").write_text(other, encoding="utf-8")
    project = Project(folder)
    assert project.study("other").experiments == project.study("side").experiments == ("demo", "demo_suites")
    ours, theirs = (analyses_of(project, name) for name in ("other", "side"))
    assert ours["comparison"] == theirs["comparison"]
    assert ours["of_one"] == replace(theirs["of_one"], against="demo/elc_bert") != theirs["of_one"]
    (folder / "studies/other.yaml").write_text("base: sied\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"studies/other.yaml: base: got 'sied', no such study; .*mean 'side'"):
        check(folder, "other")


def test_a_study_is_to_the_views_what_an_experiment_is(folder: Path) -> None:
    project = Project(folder)
    for stage in ("summarise", "write_page"):
        of_study = json.loads(Jobs(project).settings(stage, experiment="side"))
        of_experiment = json.loads(Jobs(project).settings(stage, experiment="demo"))
        assert of_experiment.keys() <= of_study.keys()
    assert of_study["parts"]["demo"]["corpus"] == "demo"


def test_published_rows_are_those_of_the_experiments_under_the_names_of_the_study(folder: Path) -> None:
    text = SIDE_BY_SIDE.replace("[demo, demo_suites]", "[strict, strict_small]").replace("{against: demo/random}", "{}")
    (folder / "studies/side.yaml").write_text(text, encoding="utf-8")
    published = json.loads(Jobs(Project(folder)).settings("summarise", experiment="side"))["published"]
    assert [choice["track"] for choice in published] == ["strict", "strict_small"]
    assert all(model.startswith("strict/") for model in published[0]["rows"])
    assert published_files(Project(folder), "side") == ["config/published/values/elc_bert.csv"]


def test_the_page_of_a_study_asks_for_its_analyses_and_the_pages_of_its_experiments(folder: Path) -> None:
    call = Jobs(Project(folder)).call("write_page", experiment="side")
    assert call.arguments["parts"] == {name: f"results/{name}/index.html" for name in ("demo", "demo_suites")}
    assert call.arguments["analyses"] == {"comparison": "results/side/analyses/comparison/manifest.json"}
    assert "demo/random-s42" in call.arguments["pretraining"]
    of_experiment = Jobs(Project(folder)).call("write_page", experiment="demo").arguments
    assert of_experiment["parts"] == {}
    own = ("minimal_pair_tests", "finetuning_tests", "misjudged_pairs", "training_overlap")
    assert of_experiment["analyses"] == {name: f"results/demo/analyses/{name}/manifest.json" for name in own}


def test_models_of_an_experiment_are_tested_on_pairs_and_tasks_without_a_word_in_its_file(folder: Path) -> None:
    own = "base: demo\nruns: {mine: {model: ltg_demo, seeds: [1, 2]}}\nbaselines: [bert_base_cased]\n"
    (folder / "experiments/own.yaml").write_text(own, encoding="utf-8")
    (folder / "experiments/no_pairs.yaml").write_text("base: demo\nminimal_pairs: []\n", encoding="utf-8")
    text = (folder / "experiments/demo.yaml").read_text().replace("tests_against: random\n", "")
    alone = re.sub(r"(?ms)^runs:.*?^(?=\w)", "runs: {mine: {model: ltg_demo}}\n", text)
    (folder / "experiments/alone.yaml").write_text(alone, encoding="utf-8")
    (folder / "studies/side.yaml").write_text(
        "experiments: [own]\nanalyses: {minimal_pair_tests: {against: own/mine}}\n", encoding="utf-8"
    )
    jobs = Jobs(Project(folder))
    of_demo = [f"{model}-s{seed}" for model in ("random", "ltg_bert", "elc_bert") for seed in (42, 43, 44)]
    scores = {
        f"{run}:demo_pairs": f"results/own/minimal_pairs/{run}/demo_pairs/manifest.json"
        for run in (*of_demo, "mine-s1", "mine-s2")
    } | {"bert_base_cased:demo_pairs": "results/own/minimal_pairs/bert_base_cased/demo_pairs/manifest.json"}
    for name, prefix in (("own", ""), ("side", "own/")):
        tables = jobs.call("analyse", experiment=name, analysis="minimal_pair_tests").arguments["tables"]
        assert tables == {f"minimal_pairs/{prefix}{key}": path for key, path in scores.items()}
    tuned = jobs.call("analyse", experiment="own", analysis="finetuning_tests").arguments["tables"]
    assert tuned == {
        f"finetuning/{run}:{task}": f"results/own/finetuning/{run}/{task}/manifest.json"
        for run in {key.partition(":")[0] for key in scores}
        for task in ("demo_acceptability", "demo_entailment")
    }
    read = jobs.call("analyse", experiment="own", analysis="misjudged_pairs").arguments["tables"]
    assert read.pop("pair_files/demo_pairs") == "resources/sources/embedded_minimal_pairs.json"
    assert len(read) == len(scores)
    overlap = jobs.call("analyse", experiment="own", analysis="training_overlap").arguments["tables"]
    assert overlap["corpus/own"] == "results/corpora/demo/manifest.json" and "pair_files/demo_pairs" in overlap
    assert [[*analyses_of(jobs.project, name)] for name in ("alone", "no_pairs")] == [
        ["misjudged_pairs", "training_overlap"],
        ["finetuning_tests"],
    ]
    with pytest.raises(ConfigError, match=r"'own' has no analysis 'minimal_pair_test'; .*mean 'minimal_pair_tests'"):
        jobs.call("analyse", experiment="own", analysis="minimal_pair_test")


TRAINED = "runs: {random: {pretraining: {steps: 2}}}"


@pytest.mark.parametrize(
    ("keys", "against"),
    [
        ("", "random"),
        # With few models, all pairs are tested.
        ("tests_against: null", None),
        ("tests_against: elc_bert", "elc_bert"),
        # With more than four models, all are tested against the first untrained model, or else the first baseline.
        ("runs: {a: {model: ltg_demo}, b: {model: ltg_demo}}\ntests_against: null", "random"),
        (f"{TRAINED}\ntests_against: null\nbaselines: [babylm_opt_125m, bert_base_cased]", "babylm_opt_125m"),
        ("runs: {a: {model: ltg_demo}, b: {model: ltg_demo}}\ntests_against: b", "b"),
        ("baselines: [bert_base_cased, babylm_opt_125m]\ntests_against: bert_base_cased", "bert_base_cased"),
    ],
)
def test_a_key_says_what_models_are_tested_against(keys: str, against: str | None, folder: Path) -> None:
    (folder / "experiments/own.yaml").write_text(f"base: demo\n{keys}\n", encoding="utf-8")
    entries = analyses_of(Project(folder), "own")
    tests = ("minimal_pair_tests", "finetuning_tests")
    assert {name: vars(entries[name])["against"] for name in tests} == dict.fromkeys(tests, against)


def test_a_model_to_test_against_that_there_is_not_is_told_and_one_that_is_left_out_is_not_asked_for(
    folder: Path,
) -> None:
    path = folder / "experiments/own.yaml"
    path.write_text("base: demo\ntests_against: randm\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"own\.yaml: tests_against: got 'randm', expected a run; .*mean 'random'"):
        Project(folder).check("experiment", "own")
    path.write_text("base: demo\ntests_against: bert_base_cased\nbaselines: [bert_base_cased]\n", encoding="utf-8")
    edit(folder, "config.yaml", "leave_out_baselines: []", "leave_out_baselines: [bert_base_cased]")
    assert Project(folder).experiment("own").tests_against is None


def test_an_analysis_can_ask_for_corpora_tokens_and_a_sweep(folder: Path) -> None:
    entries = "  sizes: {analysis: corpus_sizes, published: reduced_vocabulary}\n  tokenizer_sweep: {sweep: demo}\n"
    (folder / "studies/side.yaml").write_text(SIDE_BY_SIDE + entries, encoding="utf-8")
    jobs = Jobs(Project(folder))
    sizes = jobs.call("analyse", experiment="side", analysis="sizes").arguments
    assert sizes["tables"] == {
        "corpus/demo": "results/corpora/demo/manifest.json",
        "corpus/demo_suites": "results/corpora/demo/manifest.json",
        "tokens/demo": "results/tokens/demo/demo/manifest.json",
        "tokens/demo_suites": "results/tokens/demo/demo/manifest.json",
    }
    assert sizes["files"] == {"corpora/sizes": "config/published/corpora/sizes.csv"}
    of_sweep = jobs.call("analyse", experiment="side", analysis="tokenizer_sweep").arguments
    assert of_sweep["tables"] == {"tokenizer_sweep/demo": "results/tokenizer_sweeps/demo/manifest.json"}


def test_a_miniature_has_the_rows_of_its_original_in_analyses_alone(folder: Path) -> None:
    text = SIDE_BY_SIDE.replace("[demo, demo_suites]", "[strict_mini]").replace("{against: demo/random}", "{}")
    (folder / "studies/side.yaml").write_text(text, encoding="utf-8")
    of_analysis, of_table = (
        json.loads(Jobs(Project(folder)).settings(stage, experiment="side", **more))["published"]
        for stage, more in (("analyse", {"analysis": "comparison"}), ("summarise", {}))
    )
    assert of_table == [] and all(model.startswith("strict_mini/") for model in of_analysis[0]["rows"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "comparison: {against: demo/random}",
            "correlation: {experiments: [demo_suites, real_small]}",
            r"correlation\.experiments: got 'real_small', no experiment of this study; there are: demo, demo_suites",
        ),
        (
            "comparison: {against: demo/random}",
            "cost_effectiveness: {sets: [set_1]}",
            r"cost_effectiveness: sets: got 'set_1', expected the name of a grid set; there are: none",
        ),
        ("comparison:", "comparson:", r"analyses\.comparson: no analysis is called 'comparson'; .*'comparison'\?"),
        (
            "demo/random",
            "demo/randm",
            "analyses.comparison: against: got 'demo/randm', expected a model of this study.*'demo/random'",
        ),
        ("{against: demo/random}", "{variant: untraned}", "variant: got 'untraned', expected the suffix of a run"),
        (
            "comparison: {against: demo/random}",
            "starts: {against: random}",
            "analyses.starts: starts compares translations, but no experiment of this study has translation.tests",
        ),
        (
            "demo/random}",
            "demo/random, variant: x}",
            "comparison: variant: got 'x', which cannot be combined with `against`",
        ),
        ("[demo, demo_suites]", "[demo, side]", "got 'side', which is a study, expected one of the experiments"),
    ],
)
def test_a_mistake_is_told_with_file_key_and_nearest_name(folder: Path, old: str, new: str, message: str) -> None:
    (folder / "studies/side.yaml").write_text(SIDE_BY_SIDE.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigError, match=message) as caught:
        check(folder, "side")
    assert all(re.match(r".*config/studies/side\.yaml: ", line) for line in str(caught.value).splitlines())


def test_each_model_of_a_grid_is_compared_with_its_variant(repository: Path) -> None:
    models = models_in_order(Project(repository / "config").shown_runs("real_scaling_laws"))
    found = dict(pairs(ComparisonSettings(variant="untrained"), models))
    assert len(found) == 9
    assert all(variant == f"{model}_untrained" for model, variant in found.items())


def test_a_study_and_an_experiment_cannot_share_a_name(folder: Path) -> None:
    (folder / "studies/demo.yaml").write_text(SIDE_BY_SIDE, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"experiments/demo.yaml has the same name"):
        check(folder, "demo")
    (folder / "studies/tokens.yaml").write_text(SIDE_BY_SIDE, encoding="utf-8")
    with pytest.raises(ConfigError, match="'tokens' cannot be the name of a study"):
        check(folder, "tokens")


def test_an_analysis_may_need_every_tidy_table() -> None:
    assert [table.name for table in TABLES] == list(TIDY_TABLES)


def test_planning_a_study_imports_nothing_that_computes(repository: Path) -> None:
    import subprocess
    import sys

    heavy = "{'numpy', 'scipy', 'polars', 'matplotlib', 'torch', 'pyarrow'}"
    code = (
        "import sys; from hatchery.analysis.analyses.analysis import analysis_called\n"
        f"for name in {analysis_names()!r}: analysis_called(name)\n"
        f"found = {heavy} & set(sys.modules); assert not found, found"
    )
    environment = {"PYTHONPATH": str(repository / "scripts"), "PATH": ""}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
