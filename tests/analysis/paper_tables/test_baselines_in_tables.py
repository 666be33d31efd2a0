"""What was measured of models of others stands below the printed lines of the papers, with the real experiments."""

from pathlib import Path

import pytest
from summary_text import write_rows_of_summary

from hatchery.analysis.published_values import MINUS, OVER, read_numbers
from hatchery.analysis.summary_rows import SummaryRow
from hatchery.analysis.tidy_tables import LAYERS, MEASUREMENTS, write_rows
from hatchery.artifacts.checksums import write_checksums
from hatchery.experiment.project import Project
from hatchery.typed import build
from hatchery.views.paper_tables.settings import PaperTablesSettings
from hatchery.views.paper_tables.write_all import Inputs, all_tables
from hatchery.views.score_table import OURS, PUBLISHED, PaperTable
from hatchery.views.stages.write_tables import tables_settings

# Where the papers print the rows of these models. Of BERT, LTG-BERT's Table 2 has none.
PRINTED = {"strict": ["2", "7", "8", "9", "10"], "strict_small": ["2", "7", "8", "9", "10"], "bnc": ["3"]}


def tables_with_baselines_alone(repository: Path, folder: Path, experiment: str) -> dict[str, PaperTable]:
    """The tables of an experiment where models of others have made-up scores, and ours have none."""
    settings = build(PaperTablesSettings, tables_settings(Project(repository / "config"), experiment))
    chosen = settings.published
    published = repository / f"config/published/values/{chosen.paper}.csv"
    found = {}
    for number in read_numbers(published):
        for model in settings.baselines:
            is_theirs = chosen.rows[model] == number.row and number.track in ("", chosen.track)
            if is_theirs and MINUS not in number.metric and OVER not in number.metric and number.suite != "leaderboard":
                measure = (number.suite, number.task, number.metric)
                runs = (number.value + 0.5, 0.25, 5, 0, None, 0)
                found[model, *measure] = SummaryRow(experiment, model, *measure, *runs, None, None, "", None, "", "")
    summary = write_rows_of_summary(folder, [found[key] for key in sorted(found)])
    write_checksums([summary])
    measurements, layers = folder / "measurements.parquet", folder / "layers.parquet"
    write_rows(measurements, MEASUREMENTS, [])
    write_rows(layers, LAYERS, [])
    layout = repository / f"config/paper_tables/{chosen.paper}.yaml"
    sizes = repository / "config/published/corpora/sizes.csv"
    tables, _ = all_tables(settings, Inputs(summary, published, layout, measurements, layers, sizes))
    return {table.number: table for table in tables}


@pytest.mark.parametrize("experiment", PRINTED)
def test_measured_baselines_fill_their_rows_wherever_a_paper_prints_them(
    experiment: str, repository: Path, tmp_path: Path
) -> None:
    tables = tables_with_baselines_alone(repository, tmp_path, experiment)
    baselines = list(Project(repository / "config").experiment(experiment).baselines)
    filled = {}
    for number, table in tables.items():
        for above, line in zip(table.lines, table.lines[1:], strict=False):
            if line.source == OURS:
                assert above.source == PUBLISHED and line.label == above.label
                filled.setdefault(number, []).append(line.model)
                for printed, ours in zip(above.values, line.values, strict=True):
                    assert (printed is None) == (ours is None)
                    if printed is not None and ours is not None:
                        assert ours.mean == pytest.approx(printed.mean + 0.5) and ours.deviation == 0.25
    assert sorted(filled, key=int) == PRINTED[experiment]
    assert all(models == baselines for models in filled.values())
