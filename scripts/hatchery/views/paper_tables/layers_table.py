"""What the layers contribute to every probe: LTG-BERT Table 5, from our tidy table of layers."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hatchery.analysis.read_tables import read_layer_contributions
from hatchery.analysis.settings import labels_of
from hatchery.views.paper_tables.layout import LayersLayout
from hatchery.views.paper_tables.notes import common_notes
from hatchery.views.paper_tables.printed import PrintedTable
from hatchery.views.paper_tables.settings import PaperTablesSettings
from hatchery.views.score_table import OURS, PUBLISHED, Block, Digits, Line, PaperTable, Score


@dataclass(frozen=True)
class Shares:
    """The shares of layers 1, 2, ... in percent, and their slope in percent per layer."""

    percent: tuple[float, ...]
    slope: float


def read_shares(path: Path, settings: PaperTablesSettings) -> dict[tuple[str, str], Shares]:
    """The shares by model and task (in the paper's names), from the tidy table of layers, in its order.

    Raises ManifestError for a table that was altered, EvaluationError for seeds of a model with different layers.
    """
    # Four decimals, as all numbers behind the tables have (`summary.csv`).
    return {
        (entry.model, settings.papers_task(entry.task)): Shares(
            tuple(round(percent, 4) for percent in entry.percent), round(entry.slope, 4)
        )
        for entry in read_layer_contributions(path, settings.runs)
    }


def layers_table(
    number: str,
    layout: LayersLayout,
    settings: PaperTablesSettings,
    printed: PrintedTable,
    shares: Mapping[tuple[str, str], Shares],
) -> PaperTable:
    """The printed shares, and below each task those of our models; models of other depths have columns of their own.

    Raises ConfigError when layout and printed table do not fit.
    """
    own = {key: value for key, value in shares.items() if key[1] in layout.tasks}
    depth = max([layout.layers, *(len(value.percent) for value in own.values())])
    digits = Digits(layout.decimals, layout.decimals)
    lines = []
    for task, heading in layout.tasks.items():
        metrics = [f"layer_{layer:02d}_percent" for layer in range(1, depth + 1)] + ["layer_slope_percent"]
        places = [("", layout.row, layout.suite, task, metric) for metric in metrics]
        lines.append(Line(heading, PUBLISHED, tuple(printed.value(place, digits) for place in places)))
        lines += [
            Line(heading, OURS, _scores(own[model, task], depth, digits), model)
            for model in settings.shown
            if (model, task) in own
        ]
    printed.check_complete([("", layout.row)])
    headings = (*(str(layer) for layer in range(1, depth + 1)), "slope")
    notes = [
        "Softmax weights of the layers in the probe in percent, from the input side to the output side; those of ours"
        " are means over the spans and runs of a task",
        "Slope: of the least-squares line over the layers, in percent per layer; with other numbers of layers it is"
        " another unit",
        *common_notes(settings, lines, headings, layout.remark),
    ]
    blocks = (Block("", tuple(lines)),)
    paper = settings.published.paper
    return PaperTable(
        layout.caption, "task", headings, blocks, tuple(notes), labels_of(settings.runs), paper=paper, number=number
    )


def _scores(shares: Shares, depth: int, digits: Digits) -> tuple[Score | None, ...]:
    values = [Score(percent, digits) for percent in shares.percent]
    padding = [None] * (depth - len(values))
    return (*values, *padding, Score(shares.slope, digits))
