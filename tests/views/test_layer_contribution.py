"""Layer contributions against the published table, their means over probes, and their figure."""

import csv
from pathlib import Path

import pytest
from matplotlib.patches import Rectangle

from hatchery.analysis.read_tables import (
    LayerContribution,
    layer_contributions,
    least_squares_slope,
)
from hatchery.analysis.settings import FigureSettings
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.errors import EvaluationError
from hatchery.evaluation.evaluation import Evaluated, TidyRow
from hatchery.evaluation.finetuning.measurements import probe_rows
from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering.style import Style
from hatchery.views.figures.layer_contributions import draw_layer_contributions

HEADER = "seed,learning_rate,span,layer,weight\n"


def probe(folder: Path, text: str) -> Path:
    with stage_run(folder / "manifest.json", {"stage": "finetune"}) as run:
        write_text(folder / "layer_weights.csv", text)
        run.add_output(folder / "layer_weights.csv")
    return folder / "manifest.json"


def probe_weights(task: str, path: Path) -> list[TidyRow]:
    return list(probe_rows(Evaluated(read_manifest(path), read_manifest(path), task)))


def weights(*probes: tuple[int, list[list[float]]]) -> str:
    """Return table rows for seeds, each with the layer weights of its spans."""
    return HEADER + "".join(
        f"{seed},0.006,{span},{layer},{weight}\n"
        for seed, spans in probes
        for span, mix in enumerate(spans)
        for layer, weight in enumerate(mix, start=1)
    )


def test_slopes_of_the_published_weights_are_the_published_ones(golden_directory: Path) -> None:
    with (golden_directory / "published" / "ltg_bert_table5.csv").open(encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    assert tasks == ["POS", "DP", "SRL", "NER", "CR"]
    for task in tasks:
        values = {row["metric"]: float(row["mean"]) for row in rows if row["task"] == task}
        percent = [values[f"layer_{layer:02d}_percent"] for layer in range(1, 13)]
        assert least_squares_slope(percent) == pytest.approx(values["regression_slope"], abs=0.006)


def test_probes_with_several_learning_rates_are_averaged() -> None:
    same = {"model": "m", "task": "pos", "run": "m-s1", "finetuning_seed": 1, "span": ""}
    rows = [
        {**same, "learning_rate": rate, "layer": layer, "value": value}
        for rate, values in ((0.1, (0.25, 0.75)), (0.2, (0.75, 0.25)), (0.3, (0.2, 0.8)))
        for layer, value in enumerate(values, start=1)
    ]
    (found,) = layer_contributions(rows)
    # (25 + 75 + 20) / 3 and (75 + 25 + 80) / 3.
    assert (found.probes, found.percent) == (3, pytest.approx((40.0, 60.0)))


def test_a_slope_is_percent_per_layer() -> None:
    assert least_squares_slope([1.0, 3.0, 5.0, 7.0]) == pytest.approx(2.0)
    assert least_squares_slope([4.0]) == 0.0


def test_both_poolers_of_a_probe_count_the_same(tmp_path: Path) -> None:
    path = probe(tmp_path, weights((1, [[0.5, 0.5], [0.1, 0.9]]), (2, [[1.0, 0.0], [0.0, 1.0]])))
    rows = [{"model": "a", "run": "a-s1", **row} for row in probe_weights("dp", path)]
    (found,) = layer_contributions(rows)
    assert found.probes == 2 and found.percent == pytest.approx((40.0, 60.0))


def test_rows_of_layers_tell_their_probe_and_are_in_the_order_of_the_layers(tmp_path: Path) -> None:
    lines = ("2,0.006,1,2,0.75", "2,0.006,1,1,0.25", "2,0.001,2,1,1.0", "2,0.001,2,2,0.0")
    of_first = {"quantity": "probe_share", "depth": 2, "task": "dp", "finetuning_seed": 2}
    assert probe_weights("dp", probe(tmp_path, HEADER + "\n".join(lines) + "\n")) == [
        {**of_first, "learning_rate": rate, "span": span, "layer": layer, "value": value}
        for rate, span, layer, value in (
            (0.006, "1", 1, 0.25),
            (0.006, "1", 2, 0.75),
            (0.001, "2", 1, 1.0),
            (0.001, "2", 2, 0.0),
        )
    ]


def test_contributions_are_means_over_all_probes_of_a_model(tmp_path: Path) -> None:
    texts = {"a-s1": weights((1, [[0.2, 0.8]]), (2, [[0.4, 0.6]])), "a-s2": weights((1, [[0.6, 0.4]]))}
    rows = [
        {"model": "a", "run": run, **row}
        for run, text in texts.items()
        for row in probe_weights("dp", probe(tmp_path / run, text))
    ]
    (found,) = layer_contributions(rows)
    assert (found.model, found.task, found.probes) == ("a", "dp", 3)
    assert found.percent == pytest.approx((40.0, 60.0)) and found.slope == pytest.approx(20.0)
    other = probe_weights("dp", probe(tmp_path / "other", weights((1, [[0.2, 0.2, 0.6]]))))
    with pytest.raises(EvaluationError, match="the trainings of a do not have the same number of layers"):
        layer_contributions([*rows, *({"model": "a", "run": "a-s3", **row} for row in other)])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (weights((1, [[0.5, 0.6]])), r"seed 1, .*span 0: the weights sum to 1\.1000"),
        (HEADER + "1,0.1,0,1,0.5\n1,0.1,0,3,0.5\n", "got the layers .*, expected 1 to 2"),
        (weights((1, [[1.0]]), (2, [[0.5, 0.5]])), "got the layers .*, expected 1 to 1"),
    ],
)
def test_wrong_weights_name_the_file(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(EvaluationError, match=complaint) as caught:
        probe_weights("dp", probe(tmp_path, text))
    assert "layer_weights.csv" in str(caught.value)


@pytest.mark.parametrize("colours", ["okabe_ito", "grey"])
def test_every_share_is_a_cell_with_its_number_and_every_task_has_its_slope(colours: str) -> None:
    figure_settings = FigureSettings("demo", (SeededRun("a-s1", "a", 1),), Style(colours=colours))
    entries = [LayerContribution("a", "pos", (90.0, 10.0), 1), LayerContribution("a", "ner", (30.0, 70.0), 1)]
    axes = draw_layer_contributions(figure_settings, entries).axes[0]
    assert len([patch for patch in axes.patches if isinstance(patch, Rectangle)]) == 4
    texts = {text.get_text(): text.get_color() for text in axes.texts}
    assert list(texts) == ["90.0", "10.0", "\N{MINUS SIGN}80.00", "30.0", "70.0", "+40.00", "slope"]
    assert (texts["90.0"], texts["10.0"]) == ("white", "black")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2"]


def test_panels_are_models_or_tasks_whichever_are_fewer() -> None:
    entries = [LayerContribution(model, task, (60.0, 40.0), 1) for model in ("a", "b", "c") for task in ("pos", "ner")]
    cells = tuple(SeededRun(f"{model}-s1", model, 1) for model in ("a", "b", "c"))

    def panels(*models: str) -> dict[str, list[str]]:
        chosen = [entry for entry in entries if entry.model in models]
        figure = draw_layer_contributions(FigureSettings("demo", cells, Style()), chosen)
        return {
            axes.get_title(loc="left"): [label.get_text() for label in axes.get_yticklabels()]
            for axes in figure.axes
            if axes.get_title(loc="left")
        }

    names = ["a (1 seed)", "b (1 seed)", "c (1 seed)"]
    assert panels("a", "b") == {name: ["pos", "ner"] for name in names[:2]}
    assert panels("a", "b", "c") == {"pos": names, "ner": names}
