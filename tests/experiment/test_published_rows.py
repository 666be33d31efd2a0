"""Every run of the experiments that repeats a published row stands beside a printed number somewhere."""

from pathlib import Path

import pytest

from hatchery.analysis.published_values import chosen_values
from hatchery.analysis.settings import SummarySettings, published_choices
from hatchery.experiment.paper_tables import paper_tables
from hatchery.experiment.project import Project
from hatchery.typed import build
from hatchery.views.paper_tables.layout import OrderLayout, ScoreLayout, read_layout
from hatchery.views.paper_tables.score_table import LEADERBOARD
from hatchery.views.paper_tables.settings import PaperTablesSettings, entry_blocks
from hatchery.views.stages.summarise import summary_settings
from hatchery.views.stages.write_tables import tables_settings

REPOSITORY = Path(__file__).resolve().parents[2]
PROJECT = Project(REPOSITORY / "config")
REPEATING = sorted(
    path.stem
    for path in (REPOSITORY / "config/experiments").glob("*.yaml")
    if published_choices(build(SummarySettings, summary_settings(PROJECT, path.stem)).published)
)


def suites_of(experiment: str) -> set[str]:
    """The suites of which the summary has rows."""
    block = PROJECT.experiment(experiment)
    tasks = {PROJECT.task(task).suite for task in block.finetuning.tasks}
    return {*block.minimal_pairs, *tasks, "perplexity", "pretraining"}


def compared_in_summary(experiment: str) -> set[str]:
    """The models that have a printed number of a suite that they are evaluated on."""
    published = build(SummarySettings, summary_settings(PROJECT, experiment)).published
    files = [REPOSITORY / f"config/published/values/{choice.paper}.csv" for choice in published_choices(published)]
    values = chosen_values(published, files, "published")
    return {model for model, suite, _, _ in values if suite in suites_of(experiment)}


def compared_in_tables(experiment: str) -> set[str]:
    """The models below a printed line of a table whose columns they can have numbers in."""
    if paper_tables(PROJECT, experiment) is None:
        return set()
    settings = build(PaperTablesSettings, tables_settings(PROJECT, experiment))
    path = REPOSITORY / f"config/paper_tables/{settings.published.paper}.yaml"
    if not path.is_file():
        # The tables of the reduced-vocabulary paper are analyses of its study.
        return set()
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
