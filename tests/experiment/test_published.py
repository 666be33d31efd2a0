"""Published rows: the rows that an experiment reproduces, the tables of papers that it fills, and refused choices."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from shipped import PROJECT, REPOSITORY, changed

from hatchery.analysis.published_values import chosen_values
from hatchery.analysis.settings import SummarySettings, published_choices
from hatchery.errors import ConfigError
from hatchery.experiment.paper_tables import _rows_of_miniature, paper_tables, published_files
from hatchery.experiment.project import Project
from hatchery.typed import build
from hatchery.views.paper_tables.layout import (
    BlockLayout,
    LayersLayout,
    OrderLayout,
    RowLayout,
    ScoreLayout,
    read_layout,
)
from hatchery.views.paper_tables.printed import entry_blocks
from hatchery.views.paper_tables.scored_table import LEADERBOARD
from hatchery.views.paper_tables.settings import PaperTablesSettings
from hatchery.views.stages.summarise import summary_settings
from hatchery.views.stages.write_tables import tables_settings
from hatchery.workflow.jobs import Jobs

MINIATURES = [(name, f"{name}_mini") for name in ("strict", "strict_small", "bnc", "bnc_wikipedia_bookcorpus")]


@pytest.mark.parametrize(("original", "mini"), MINIATURES)
def test_a_miniature_has_the_tables_of_its_original_with_all_its_rows_and_a_caveat(original: str, mini: str) -> None:
    jobs = Jobs(PROJECT)
    own, of_original = (jobs.call("write_tables", experiment=name).arguments for name in (mini, original))
    assert own["layout"] == of_original["layout"] != []
    assert own["published"] == published_files(PROJECT, original)
    tables = jobs.call("write_page", experiment=mini).arguments["tables"]
    assert tables == [f"results/{mini}/paper_tables/manifest.json"]
    chosen = paper_tables(PROJECT, mini)
    assert chosen is not None
    # The miniature omits the published rows of baselines, because they were not trained on the miniature's corpus.
    whole = PROJECT.experiment(original)
    rows = {model: row for model, row in whole.published.rows.items() if model not in whole.baselines}
    assert chosen["published"] == replace(whole.published, rows=rows)
    assert chosen["corpora"] == {PROJECT.experiment(mini).corpus: PROJECT.experiment(original).corpus}
    assert "miniature" in chosen["caveat"]
    # A miniature's summary has no published values, so it shows no difference between a miniature and a printed number.
    assert PROJECT.experiment(mini).published is None


@pytest.mark.parametrize(("original", "mini"), MINIATURES)
def test_the_suites_and_tasks_of_a_miniature_are_called_as_in_the_tables(original: str, mini: str) -> None:
    text = yaml.safe_load(Jobs(PROJECT).settings("write_tables", experiment=mini))
    settings = build(PaperTablesSettings, {key: value for key, value in text.items() if not key.startswith("stage")})
    first, second = PROJECT.experiment(original), PROJECT.experiment(mini)
    called = [settings.papers_suite(name) for name in second.minimal_pairs]
    assert called == list(first.minimal_pairs)
    assert [settings.papers_task(task) for task in second.finetuning.tasks] == list(first.finetuning.tasks)
    tasks = {
        *second.finetuning.tasks,
        *(name for task in second.finetuning.tasks for name in PROJECT.task(task).transfer_tasks),
    }
    suites = {settings.papers_suite(PROJECT.task(task).suite) for task in tasks}
    if "bnc" in mini:
        assert settings.papers_suite(PROJECT.task("demo_hans").suite) == "glue"
    computed = {"leaderboard", "pretraining"}
    layout = read_layout(REPOSITORY / "config/paper_tables" / f"{settings.published.paper}.yaml")
    for table in layout.tables.values():
        if isinstance(table, ScoreLayout):
            assert {column.suite for column in table.resolved_columns()} <= {*suites, *called, *computed}
        elif isinstance(table, OrderLayout | LayersLayout):
            assert table.suite in suites


def test_an_experiment_with_published_rows_has_their_tables_without_a_caveat() -> None:
    chosen = paper_tables(PROJECT, "strict")
    assert chosen is not None
    assert (chosen["prefix"], chosen["caveat"], chosen["corpora"]) == ("", "", {})


def test_an_experiment_that_repeats_no_paper_has_no_tables_and_says_so_when_asked() -> None:
    assert Jobs(PROJECT).call("write_page", experiment="demo").arguments["tables"] == []
    with pytest.raises(ConfigError, match="results/demo/paper_tables: expected an experiment with"):
        Jobs(PROJECT).settings("write_tables", experiment="demo")


def test_a_miniature_with_fewer_models_fills_the_rows_that_it_has(configuration: Path) -> None:
    project = changed(
        configuration, ("runs", {"ltg_bert": {"model": "ltg_demo"}, "mine": {"model": "ltg_demo"}}), of="strict_mini"
    )
    chosen = paper_tables(project, "strict_mini")
    assert chosen is not None
    assert chosen["published"].rows == {"ltg_bert": "ltg_bert_base"}


OF = {"of": "strict", "caveat": "because"}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"paper_tables": {**OF, "of": "demo"}}, "paper_tables.of: got 'demo', expected an experiment with `published`"),
    (
        {"runs": {"mine": {"model": "ltg_demo"}}},
        "expected at least one run of 'strict' in this experiment: ltg_bert, elc_biased",
    ),
    (
        {"published": {"paper": "elc_bert", "track": "strict", "rows": {"ltg_bert": "ltg_bert_base"}}},
        "paper_tables: expected null, because this experiment has the key",
    ),
]


@pytest.mark.parametrize(("keys", "message"), WRONG, ids=lambda value: value[:40] if isinstance(value, str) else "")
def test_what_cannot_be_is_told_with_file_and_key(configuration: Path, keys: dict[str, Any], message: str) -> None:
    project = changed(configuration, *keys.items(), of="strict_mini")
    with pytest.raises(ConfigError, match=message) as caught:
        project.check("experiment", "strict_mini")
    assert "strict_mini.yaml" in str(caught.value)


def test_a_baseline_may_stand_beside_the_published_row_of_that_model(configuration: Path) -> None:
    rows = PROJECT.experiment("strict").published.rows
    text = yaml.safe_load(Jobs(PROJECT).settings("write_tables", experiment="strict"))
    assert text["baselines"] == ["babylm_opt_125m", "babylm_roberta_base", "babylm_t5_base"]
    assert text["published"]["rows"] == rows and rows["babylm_t5_base"] == "t5_base"
    published = {"paper": "elc_bert", "track": "strict", "rows": {**rows, "bert_base_cased": "roberta_base"}}
    project = changed(configuration, ("published", published), of="strict")
    with pytest.raises(ConfigError, match="got 'bert_base_cased', expected a run or baseline; there are: ltg_bert"):
        project.check("experiment", "strict")


@pytest.mark.parametrize(("experiment", "n_rows"), [("strict", 5 * 3), ("strict_small", 5 * 3), ("bnc", 1)])
def test_every_printed_row_of_a_model_of_others_is_filled_by_one(experiment: str, n_rows: int) -> None:
    block = PROJECT.experiment(experiment)
    text = yaml.safe_load(Jobs(PROJECT).settings("write_tables", experiment=experiment))
    settings = build(PaperTablesSettings, {key: value for key, value in text.items() if not key.startswith("stage")})
    layout = read_layout(REPOSITORY / "config/paper_tables" / f"{settings.published.paper}.yaml")
    printed = {row: model for model, row in block.published.rows.items() if model in block.baselines}
    found = []
    for table in layout.tables.values():
        if isinstance(table, ScoreLayout):
            for one in entry_blocks(table.blocks, settings, settings.models):
                ours = one.track in ("", settings.published.track)
                found += [(entry.row, entry.models) for entry in one.entries if ours and entry.row in printed]
    assert all(models == (printed[row],) for row, models in found), found
    assert len(found) == n_rows


def test_a_baseline_that_is_left_out_is_in_no_evaluation_and_no_table() -> None:
    project = Project(REPOSITORY / "config", {"leave_out_baselines": ["babylm_t5_base", "bert_base_cased"]})
    block = project.experiment("strict")
    assert block.baselines == ("babylm_opt_125m", "babylm_roberta_base")
    assert "babylm_t5_base" not in block.published.rows and "babylm_opt_125m" in block.published.rows
    results = Jobs(project).results
    for paths in (results.of_kind("strict", "minimal_pairs"), results.of_kind("strict", "finetuning")):
        assert not [name for name in paths if "t5" in name] and [name for name in paths if "roberta_base" in name]
    assert project.experiment("bnc").baselines == ()
    with pytest.raises(ConfigError, match=r"leave_out_baselines: got 'bert_base', no such baseline; did you mean"):
        Project(REPOSITORY / "config", {"leave_out_baselines": ["bert_base"]}).experiment("bnc")


CONSTRAINED, UNCONSTRAINED = "reduced_vocabulary_constrained", "reduced_vocabulary_unconstrained"


def rows(configuration: Path, experiment: str) -> dict[str, str]:
    return dict(Project(configuration).experiment(experiment).published.rows)


@pytest.mark.parametrize("experiment", [CONSTRAINED, f"{CONSTRAINED}_as_published"])
def test_every_printed_model_of_the_study_stands_beside_ours(repository: Path, experiment: str) -> None:
    found = rows(repository / "config", experiment)
    assert found["rv_256_256_1024_8_8"] == "rv_256_256_1024_8_8"
    assert all(run == row for run, row in found.items())
    trained = [run for run in found if not run.endswith("_untrained")]
    # Reduced vocabulary, Tables 3 and 7: the anchor is in both tables.
    assert (len(trained), len(found) - len(trained)) == (26, 19)


@pytest.mark.parametrize("experiment", [UNCONSTRAINED, f"{UNCONSTRAINED}_as_published"])
def test_the_ten_models_of_table_4_have_the_rows_of_their_names(repository: Path, experiment: str) -> None:
    found = rows(repository / "config", experiment)
    assert len(found) == 10
    assert all(row == f"{run}_unconstrained" for run, row in found.items())


def test_a_run_that_is_named_itself_keeps_its_row(configuration: Path) -> None:
    path = configuration / f"experiments/{CONSTRAINED}.yaml"
    named = '{"*": "*", rv_32_32_64_1_1: rv_32_32_128_1_1}'
    path.write_text(path.read_text(encoding="utf-8").replace('{"*": "*"}', named), encoding="utf-8")
    found = rows(configuration, CONSTRAINED)
    assert found["rv_32_32_64_1_1"] == found["rv_32_32_128_1_1"] == "rv_32_32_128_1_1"


def test_a_pattern_makes_rows_of_the_experiments_track_alone(configuration: Path) -> None:
    # The paper has rows of `mslm` in both tracks, and rows of `baby_llama` in the track strict_small.
    published = {"paper": "elc_bert", "track": "strict", "rows": {"*": "*"}}
    runs = {name: {"model": "ltg_demo"} for name in ("mslm", "baby_llama")}
    project = changed(configuration, ("published", published), ("runs", runs), ("baselines", []), of="strict")
    assert project.experiment("strict").published.rows == {"mslm": "mslm"}


def test_a_run_of_a_sweep_in_a_miniature_keeps_a_row_of_its_own() -> None:
    swept = {"one_key_5": "one", "one_key_7": "one"}
    rows = {"one": "shared", "one_key_7": "own"}
    assert _rows_of_miniature(rows, swept, swept) == {"one_key_5": "shared", "one_key_7": "own"}


def test_a_pattern_that_makes_no_row_is_told(configuration: Path) -> None:
    path = configuration / f"experiments/{UNCONSTRAINED}.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("*_unconstrained", "*_unconstraint"), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        rows(configuration, UNCONSTRAINED)
    assert str(caught.value).startswith(
        f"{path}: published.rows.*: got '*_unconstraint', expected the name of a row with * in place of "
    )
    assert "\n" not in str(caught.value)


REPEATING = sorted(
    path.stem
    for path in (REPOSITORY / "config/experiments").glob("*.yaml")
    if published_choices(build(SummarySettings, summary_settings(PROJECT, path.stem)).published)
)


def suites_of(experiment: str) -> set[str]:
    """Return the suites that have rows in the summary."""
    block = PROJECT.experiment(experiment)
    tasks = {PROJECT.task(task).suite for task in block.finetuning.tasks}
    return {*block.minimal_pairs, *tasks, "perplexity", "pretraining"}


def compared_in_summary(experiment: str) -> set[str]:
    """Return the models with a published number for a suite on which they are evaluated."""
    published = build(SummarySettings, summary_settings(PROJECT, experiment)).published
    files = [REPOSITORY / f"config/published/values/{choice.paper}.csv" for choice in published_choices(published)]
    values = chosen_values(published, files, "published")
    return {model for model, suite, _, _ in values if suite in suites_of(experiment)}


def compared_in_tables(experiment: str) -> set[str]:
    """Return the models in entries with a printed row, of all tables that have an evaluated suite."""
    filled = paper_tables(PROJECT, experiment)
    if filled is None:
        return set()
    path = REPOSITORY / f"config/paper_tables/{filled['published'].paper}.yaml"
    if not path.is_file():
        # The study of the reduced-vocabulary paper makes its tables as analyses.
        return set()
    settings = build(PaperTablesSettings, tables_settings(PROJECT, experiment))
    layout = read_layout(path)
    evaluated = {*map(settings.papers_suite, suites_of(experiment)), LEADERBOARD}
    found = set()
    for table in layout.tables.values():
        if isinstance(table, ScoreLayout):
            blocks, suites = table.blocks, {column.suite for column in table.resolved_columns()}
        elif isinstance(table, OrderLayout):
            blocks, suites = (table.block,), {table.suite}
        else:
            continue
        if suites & evaluated:
            for block in entry_blocks(blocks, settings, settings.models):
                found |= {model for entry in block.entries if entry.row for model in entry.models}
    return found


@pytest.mark.parametrize("experiment", REPEATING)
def test_every_run_with_a_published_row_is_compared_in_the_summary_or_in_a_table_of_the_paper(experiment: str) -> None:
    choices = published_choices(build(SummarySettings, summary_settings(PROJECT, experiment)).published)
    named = {model for choice in choices for model in choice.rows}
    assert named
    assert named <= compared_in_summary(experiment) | compared_in_tables(experiment)


def test_the_submission_of_the_small_track_stands_in_table_1_and_nothing_else_does() -> None:
    settings = build(PaperTablesSettings, tables_settings(PROJECT, "strict_small"))
    table = read_layout(REPOSITORY / "config/paper_tables/elc_bert.yaml").tables["1"]
    assert isinstance(table, ScoreLayout)
    small = entry_blocks(table.blocks, settings, settings.models)[0]
    assert {entry.heading: entry.models for entry in small.entries if entry.models} == {
        "ELC-BERT (submitted)": ("elc_zero_submitted", "elc_zero_submitted_as_printed")
    }


def test_our_models_are_in_blocks_of_their_track_and_in_blocks_without_a_track() -> None:
    choice = SimpleNamespace(track="strict", rows={"ours": "elc"})
    settings = SimpleNamespace(published=choice, shown=["ours"], runs=())
    rows = (RowLayout("elc", "ELC-BERT"),)
    blocks = [BlockLayout(track or "all", rows, track) for track in ("strict_small", "strict", "")]
    found = {block.track: block.entries[0].models for block in entry_blocks(blocks, settings, ["ours"])}  # type: ignore[arg-type]
    assert found == {"strict_small": (), "strict": ("ours",), "": ("ours",)}
