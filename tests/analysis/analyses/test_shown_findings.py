"""Findings of analyses as readers see them: Markdown tables, LaTeX that compiles, and figures of scaling."""

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from hatchery.analysis.analyses.analysis import (
    Findings,
    Study,
    analysis_called,
    read_findings,
    settings_of,
    tables_as_files,
)
from hatchery.analysis.compute_optimal import regions_of_one_model
from hatchery.analysis.settings import FigureSettings
from hatchery.analysis.stages.analyse import analyse, analyse_inputs
from hatchery.analysis.studies import analyses_of
from hatchery.experiment.project import Project
from hatchery.rendering.drawing import NARROW_INCHES, figure_style, save_drawings
from hatchery.rendering.style import OKABE_ITO, Style
from hatchery.rendering.table import table
from hatchery.runner import run_stage
from hatchery.typed import keys_of
from hatchery.views.figures.scaling_panels import draw_entries
from hatchery.views.figures.scores_by_cost import draw_scores
from hatchery.workflow.result_paths import ResultPaths

Rows = Sequence[Mapping[str, str]]
WIDE = FigureSettings("invented", ())
PAPER = {"paper": "reduced_vocabulary"}


def as_texts(found: Findings) -> Rows:
    """Return the rows as read from `numbers.csv`."""
    return [{name: "" if value is None else str(value) for name, value in row.items()} for row in found.rows]


@pytest.fixture(scope="module")
def laws(analysed: Callable[..., Findings]) -> Rows:
    regions = {"below_break": {"up_to": 2.2e15}, "above_break": {"above": 2.65e15}}
    return as_texts(analysed("power_laws", experiments=["one"], bins="january_2023", regions=regions, draws=2, **PAPER))


@pytest.fixture(scope="module")
def scores(analysed: Callable[..., Findings]) -> Rows:
    return as_texts(analysed("correlation", experiments=["one"], **PAPER))


def panels(figure: Figure) -> dict[str, Axes]:
    return {axes.get_title(loc="left").split("\n")[0]: axes for axes in figure.axes if axes.get_title(loc="left")}


def dots(axes: Axes) -> list[tuple[float, float]]:
    (line,) = [line for line in axes.lines if line.get_color() == OKABE_ITO[2]]
    return list(zip(line.get_xdata(), line.get_ydata(), strict=True))  # type: ignore[arg-type]


@pytest.mark.parametrize("axis", ["flops", "tokens", "parameters"])
def test_the_compute_optimal_points_of_each_source_have_a_panel(laws: Rows, axis: str) -> None:
    found = panels(draw_entries(WIDE, {"power_laws": laws}, axis))
    assert list(found) == ["ours", "published curves"]
    for source, axes in found.items():
        best = [row for row in laws if (row["source"], row["optimal"]) == (source, "1")]
        assert dots(axes) == [(float(row[axis]), float(row["loss"])) for row in best]
        assert axes.get_ylabel() == "development loss (nats)", "the unit of the column `loss`"
        # Lines are one per model, the points, and at least one law.
        models = {row["model"] for row in laws if (row["kind"], row["source"]) == ("point", source)}
        assert len(axes.lines) > len(models) + 1


def test_regions_with_all_points_are_not_drawn_twice(laws: Rows) -> None:
    found = panels(draw_entries(WIDE, {"power_laws": laws}, "flops"))
    assert [len(axes.get_title(loc="left").split("\n")) - 1 for axes in found.values()] == [1, 3]
    assert "above break: e = \N{MINUS SIGN}0.1429, R² = 0.990" in found["published curves"].get_title(loc="left")


def test_the_break_is_shaded_where_it_is_decisive_and_on_the_axis_of_flops_alone(laws: Rows) -> None:
    assert len(panels(draw_entries(WIDE, {"power_laws": laws}, "flops"))["published curves"].patches) == 1
    doubtful = [row | {"gain": "3"} if row["kind"] == "break" else row for row in laws]
    assert not panels(draw_entries(WIDE, {"power_laws": doubtful}, "flops"))["published curves"].patches


@pytest.mark.parametrize("axis", ["flops", "tokens", "parameters"])
def test_the_points_of_a_model_that_stays_compute_optimal_lie_in_a_grey_box_but_for_the_axis_of_flops(
    laws: Rows, axis: str
) -> None:
    axes = panels(draw_entries(WIDE, {"power_laws": laws}, axis))["published curves"]
    best = sorted((row for row in laws if row["source"] == "published curves" and row["optimal"] == "1"), key=by_flops)
    regions = regions_of_one_model([row["model"] for row in best])
    boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle) and patch.get_alpha() == 0.35]
    if axis == "flops":
        assert len(regions) == 4 and len(boxes) == 1  # the break
        return
    assert len(boxes) == len(regions)
    for box, places in zip(boxes, regions, strict=True):
        left, low, right, high = box.get_x(), box.get_y(), box.get_x() + box.get_width(), box.get_y() + box.get_height()
        inside = [left < float(row[axis]) < right and low < float(row["loss"]) < high for row in best]
        assert all(inside[place] for place in places)


def by_flops(row: Mapping[str, str]) -> float:
    return float(row["flops"])


def test_a_compute_optimal_model_is_a_star_with_its_word_in_the_legend(scores: Rows) -> None:
    first = next(row["model"] for row in scores if row["source"] == "ours")
    marked = [row | {"optimal": str(int(row["model"] == first))} if row["optimal"] else row for row in scores]
    figure = draw_scores(WIDE, {"correlation": marked})
    stars = [sum(line.get_marker() == "*" for line in axes.lines) for axes in figure.axes if axes.lines]
    assert stars == [1] * 4
    assert "ours, compute-optimal" in {text.get_text() for legend in figure.legends for text in legend.get_texts()}


def test_entries_are_told_apart_where_there_are_several(laws: Rows) -> None:
    found = panels(draw_entries(WIDE, {"all_models": laws, "small_ones": laws}, "flops"))
    assert list(found)[::2] == ["all models: ours", "small ones: ours"]


def test_every_model_is_a_mark_in_its_panels(scores: Rows) -> None:
    figure = draw_scores(WIDE, {"correlation": scores})
    drawn = [axes for axes in figure.axes if axes.get_title(loc="left")]
    assert [axes.get_title(loc="left") for axes in drawn] == ["rv_glue", "rv_glue", *["rv_glue_filtered"] * 2]
    # Twelve of our models and nineteen published models.
    assert [len(axes.lines) for axes in drawn] == [12 + 19] * 4
    ours = [row for row in scores if (row["kind"], row["suite"], row["source"]) == ("model", "rv_glue", "ours")]
    marks = ["*" if row["optimal"] == "1" else "o" for row in ours] + ["D"] * 19
    assert sorted(line.get_marker() for line in drawn[0].lines) == sorted(marks)


@pytest.mark.parametrize("draw", [lambda s, rows: draw_entries(s, rows, "flops"), draw_scores])
def test_without_measurements_the_figure_says_so(draw: Callable[..., Figure]) -> None:
    for entries in ({}, {"empty": []}):
        figure = draw(WIDE, entries)
        assert "no measurements" in {text.get_text() for axes in figure.axes for text in axes.texts}


@pytest.mark.parametrize("name", ["laws", "scores"])
def test_the_same_rows_give_the_same_file_for_wide_screens_and_phones(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    rows = request.getfixturevalue(name)

    def draw(style: Style) -> Figure:
        settings = FigureSettings("invented", (), style)
        return draw_entries(settings, {"e": rows}, "tokens") if name == "laws" else draw_scores(settings, {"e": rows})

    for file in ("a.svg", "b.svg"):
        save_drawings(draw, Style(), tmp_path / file, "a figure")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert "<symbol" in (tmp_path / "a.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("colours", ["okabe_ito", "grey"])
@pytest.mark.parametrize("width", [NARROW_INCHES, 9.0])
def test_every_style_can_be_drawn(laws: Rows, scores: Rows, width: float, colours: Any) -> None:
    settings = FigureSettings("invented", (), Style(width_inches=width, colours=colours))
    with figure_style(settings.style):
        for figure in (draw_entries(settings, {"e": laws}, "flops"), draw_scores(settings, {"e": scores})):
            figure.draw_without_rendering()
            assert figure.get_figwidth() == width


Analysed = Callable[..., Findings]


def settings(name: str, **chosen: Any) -> dict[str, Any]:
    made = {"analysis": name, **chosen}
    facts = {"experiment": "invented", "analysis": name, "version": 1, "title": "A title", "settings": made, "runs": []}
    return {"stage": "analyse", "stage_version": 1, **facts}


def test_every_table_is_a_file_and_those_of_an_earlier_run_are_removed(study: Study, tmp_path: Path) -> None:
    output = tmp_path / "analyses/mine/manifest.json"
    for name, needs in (("power_laws", ("runs", "curves")), ("correlation", ("runs", "curves", "summary"))):
        published = analysis_called(name).published
        tables = {need: study.tables[need] for need in needs}
        files = {file: study.files[file] for file in published(settings_of(name, PAPER))}
        run_stage(analyse, settings(name, **PAPER), output, tables=tables, files=files)
        written = {path.name for path in output.parent.iterdir()} - {"manifest.json", "numbers.csv", "findings.json"}
        count = 3 if name == "power_laws" else 1
        names = {f"table_{number:02}.tex" for number in range(1, count + 1)}
        assert written >= {*names, "tables.tex", "tables.md"}
        assert {path for path in written if re.match(r"table_\d", path)} == names
        assert {path.name for path in read_findings(output).files} == {*names, "tables.tex", "tables.md"}
    text = (output.parent / "table_01.tex").read_text(encoding="ascii")
    assert r"\label{tab:invented-mine-table-01}" in text and "invented, mine" in text
    markdown = (output.parent / "tables.md").read_text(encoding="utf-8")
    assert markdown.startswith("# A title\n") and "\n| suite average | source | n |" in markdown
    assert "A negative rho means" in text
    assert markdown.index("| suite average |") < markdown.index("\n- n is the number of trained models")


def test_an_analysis_without_tables_writes_none() -> None:
    assert tables_as_files(Findings(notes=["Nothing."]), "title", "entry", "study") == {}


def test_sentences_break_their_lines_in_latex() -> None:
    wide = table(("a", "b"), [("word", "many words " * 20)], words=2)
    assert r"\begin{tabular}{lp{0.80\linewidth}}" in wide.latex("t", "l", wrap=True)
    assert r"\begin{tabular}{ll}" in wide.latex("t", "l")


@pytest.fixture(scope="module")
def all_found(analysed: Analysed, repository: Path) -> dict[str, Findings]:
    """Findings of the reduced-vocabulary study's analyses that do not read files of a corpus or a sweep."""
    project = Project(repository / "config")
    made, results = analyses_of(project, "reduced_vocabulary"), ResultPaths(project)
    few = {"experiments": (), "frontier": (), "sets": (), "draws": 2}
    found = {}
    for name, entry in made.items():
        if not any("/" in table for table in analyse_inputs(results, "reduced_vocabulary", name)["tables"]):
            asked = {key: few.get(key, value) for key, value in keys_of(entry, "analysis").items()}
            found[name] = analysed(entry.analysis, **asked)
    return found


def test_the_tables_of_every_analysis_are_latex_in_ascii(all_found: dict[str, Findings]) -> None:
    assert len(all_found) == 9
    for name, found in all_found.items():
        texts = tables_as_files(found, name, name, "reduced_vocabulary")
        assert sum(path.startswith("table_") for path in texts) == len(found.tables) > 0
        assert all(text.isascii() for path, text in texts.items() if path.endswith(".tex"))
        assert all(note.replace("`", "")[:20] in texts["tables.md"].replace("`", "") for note in found.notes)


@pytest.mark.slow
def test_the_documents_compile_with_one_table_on_a_page(all_found: dict[str, Findings], tmp_path: Path) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("needs pdflatex with booktabs and geometry (texlive-latex-recommended on Debian)")
    for name, found in all_found.items():
        folder = tmp_path / name
        folder.mkdir()
        for file, text in tables_as_files(found, name, name, "reduced_vocabulary").items():
            (folder / file).write_text(text, encoding="utf-8")
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout[-2000:]
        assert not re.findall(r"Overfull.*|Float too large.*|.*undefined.*", done.stdout), name
        pages = len(found.tables)
        assert f"({pages} page{'s' if pages > 1 else ''}" in done.stdout
