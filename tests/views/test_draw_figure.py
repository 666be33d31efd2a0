"""The stage `draw_figure` for all declared figures: their declarations, their experiments, and their bytes.

New figures are tested automatically.
"""

import json
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import forked
import matplotlib as mpl
import pytest
from faults import DAMAGE
from matplotlib.figure import Figure
from stage_command import stage_command

from hatchery.analysis.analyses.analysis import analysis_names
from hatchery.analysis.settings import FigureSettings
from hatchery.analysis.stages.collect_measurements import collect_measurements
from hatchery.analysis.stages.join_experiments import join_experiments
from hatchery.analysis.task_averages import MSGS_AMBIGUOUS_TASKS
from hatchery.analysis.tidy_tables import TABLES
from hatchery.artifacts.checksums import write_checksums
from hatchery.errors import ConfigError, ManifestError
from hatchery.experiment.project import Project
from hatchery.rendering.drawing import abbreviated, save_drawings
from hatchery.rendering.style import Style, model_styles
from hatchery.runner import run_stage
from hatchery.views.figures import draw, registry
from hatchery.views.figures.draw import remarks
from hatchery.views.figures.needs import NEEDS, Need, drawable
from hatchery.views.figures.registry import (
    declaration_in,
    declared_figures,
    figures_drawn_from,
    require_figure,
    tables_of,
)
from hatchery.views.stages.draw_figure import draw_figure, figure_inputs
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.outputs import Outputs


@pytest.mark.parametrize("name", declared_figures())
def test_what_is_read_of_a_figure_is_what_its_file_says(name: str) -> None:
    module = import_module(f"hatchery.views.figures.{name}")
    declared = declared_figures()[name]
    assert declared == module.FIGURE
    assert set(declared.needs) <= {*NEEDS, *analysis_names()} and callable(module.draw)


def test_planning_does_not_load_what_draws(repository: Path) -> None:
    code = (
        "import sys; import hatchery.workflow.open_workflow; from hatchery.views.figures import registry; "
        "assert registry.declared_figures(); print({'matplotlib', 'numpy'} & set(sys.modules))"
    )
    output = subprocess.run([sys.executable, "-c", code], cwd=repository / "scripts", capture_output=True, text=True)
    assert (output.stdout, output.stderr) == ("set()\n", "")


def test_a_declaration_of_anything_but_literals_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text('TITLE = "A"\nFIGURE = Declaration(\n    title=TITLE,\n    caption="b",\n)\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"a\.py: FIGURE: title: expected a literal"):
        declaration_in(path)
    path.write_text("def draw():\n    pass\n", encoding="utf-8")
    assert declaration_in(path) is None


def figure_files(folder: Path, monkeypatch: pytest.MonkeyPatch, **needs: str) -> None:
    """Declare figures with these names and needs instead of the repository's figures."""
    for name, need in needs.items():
        text = f'\nFIGURE = Declaration(\n    title="T",\n    needs=("{need}",),\n    caption="c",\n)\n'
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(registry, "__file__", str(folder / "registry.py"))
    monkeypatch.setattr(registry, "declared_figures", declared_figures.__wrapped__)


def test_figures_are_in_the_order_of_their_needs_and_then_of_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, *_ = NEEDS
    figure_files(tmp_path, monkeypatch, alpha=second, middle=first, beta=first)
    assert list(figures_drawn_from(NEEDS)) == ["beta", "middle", "alpha"]
    assert list(figures_drawn_from({second})) == ["alpha"]


def test_a_figure_of_something_new_is_its_file_and_one_record(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(repository / "config")
    need = Need("runs", "models of others", lambda project, name: project.experiment(name).baselines)
    monkeypatch.setitem(NEEDS, "baselines", need)
    figure_files(tmp_path, monkeypatch, beside_others="baselines")
    inputs = figure_inputs(Outputs(project, experiment="strict"), "strict", "beside_others")
    assert inputs == {"tables": {"runs": "results/strict/runs.parquet"}}
    with pytest.raises(ConfigError, match="'beside_others' of 'demo': there are no models of others"):
        figure_inputs(Outputs(project), "demo", "beside_others")


def test_a_figure_of_something_else_names_those_that_there_are() -> None:
    drawn = ", ".join(figures_drawn_from({"runs", "curves"}))
    with pytest.raises(
        ConfigError,
        match=rf"'phenomena' of 'demo': there are no suites of minimal pairs; 'demo' has the figures: {drawn}$",
    ):
        require_figure("phenomena", {"runs", "curves"}, "demo")
    assert require_figure("phenomena", {"minimal_pairs"}, "demo").title == "Minimal pairs"


@pytest.mark.parametrize(("experiment", "weighted"), [("bnc_mini", False), ("demo", True)])
def test_layer_weights_are_drawn_only_where_a_model_has_such(repository: Path, experiment: str, weighted: bool) -> None:
    assert ("layer_weights" in drawable(Project(repository / "config"), experiment)) == weighted


FIGURES = declared_figures()
PAPER = {"paper": "elc_bert", "track": "strict", "rows": {"plain": "ltg_bert_base", "elc": "elc_bert_base"}}
PROBE = "seed,learning_rate,span,layer,weight\n12,0.006,0,1,{0}\n12,0.006,0,2,{1}\n"


@pytest.fixture(scope="module")
def drawn_once(two_models_once: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, dict[str, Path]]:
    """An experiment with the data of all figures, and its tables."""
    experiment = two_models_once.copied(tmp_path_factory.mktemp("figures") / "results" / "demo")
    for place, cell in enumerate(experiment.pretraining):
        for task in MSGS_AMBIGUOUS_TASKS:
            results = {12: ((0.1 * place,), ""), 13: ((-0.9,), ""), 14: ((None,), "nan"), 15: ((-0.5,), "")}
            experiment.add_finetuning(cell, task, ("mcc",), results, suite="msgs")
        probe = PROBE.format(0.4 + 0.1 * place, 0.6 - 0.1 * place)
        experiment.add_finetuning(cell, "pos", ("micro_f1",), {12: ((0.5,), "")}, suite="probing", probe=probe)
        experiment.add_surprisal(cell, "mine", {"The": 2.0 + place, "Hausboot's": 20.5, "door.": 7.25})
    return experiment, experiment.tables()


@pytest.fixture
def tables(drawn_once: tuple[Any, dict[str, Path]], repository: Path, tmp_path: Path) -> dict[str, Path]:
    """Copies of the tables, with a paper's numbers; tests may change the copies."""
    copied = {}
    for name, path in drawn_once[1].items():
        copied[name] = tmp_path / path.name
        copied[name].write_bytes(path.read_bytes())
        write_checksums([copied[name]])
    return copied | {"published": repository / "config/published/values/elc_bert.csv"}


def settings_of(drawn_once: tuple[Any, dict[str, Path]], figure: str, **style: Any) -> dict[str, Any]:
    settings: dict[str, Any] = drawn_once[0].figure_settings(figure, **style)
    return settings | ({"published": PAPER} if FIGURES[figure].published else {})


def given(figure: str, tables: dict[str, Path]) -> dict[str, Path]:
    """Return the tables that the rule passes to the figure."""
    names = [*tables_of(FIGURES[figure]), *(["published"] if FIGURES[figure].published else [])]
    return {name: tables[name] for name in names}


@pytest.mark.parametrize("figure", FIGURES)
def test_the_same_tables_give_the_same_vector_file(
    figure: str, drawn_once: Any, tables: dict[str, Path], tmp_path: Path
) -> None:
    settings = settings_of(drawn_once, figure, width_inches=6, font_size=8)
    # One function writes all figures, so drawing every fourth figure twice is enough.
    names = ("a", "b") if [*FIGURES].index(figure) % 4 == 0 else ("a",)
    for name in names:
        run_stage(draw_figure, settings, tmp_path / f"{name}.svg", tables=given(figure, tables))
    text, pdf = (tmp_path / "a.svg").read_text(encoding="utf-8"), (tmp_path / "a.pdf").read_bytes()
    assert {(tmp_path / f"{name}.svg").read_text(encoding="utf-8") for name in names} == {text}
    assert {(tmp_path / f"{name}.pdf").read_bytes() for name in names} == {pdf} and pdf.startswith(b"%PDF")
    assert "<image" not in text
    assert not re.search(r"<dc:date>|20\d\d-\d\d-\d\d", text)
    assert f"<dc:title>{FIGURES[figure].title} of demo</dc:title>" in text


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize(("figure", "table"), [("learning_curves", "curves")])
def test_an_altered_table_is_named_and_nothing_is_drawn(
    *, figure: str, table: str, damage: str, drawn_once: Any, tables: dict[str, Path], tmp_path: Path
) -> None:
    DAMAGE[damage](tables[table])
    with pytest.raises(ManifestError, match=rf"{table}\.parquet: "):
        run_stage(draw_figure, settings_of(drawn_once, figure), tmp_path / "figure.svg", tables=given(figure, tables))
    assert not (tmp_path / "figure.svg").exists()


@pytest.mark.parametrize("figure", [name for name, declared in FIGURES.items() if declared.published])
def test_published_values_and_settings_belong_together(figure: str, drawn_once: Any, tables: dict[str, Path]) -> None:
    settings, all_given = settings_of(drawn_once, figure), given(figure, tables)
    without = {name: path for name, path in all_given.items() if name != "published"}
    with pytest.raises(
        ConfigError, match="published: got None, expected a table for each paper of `published` in the settings"
    ):
        run_stage(draw_figure, settings, Path("unused.svg"), tables=without)
    with pytest.raises(
        ConfigError,
        match=r"published: got .*elc_bert.csv, expected a table for each paper of `published` in the settings: None",
    ):
        run_stage(draw_figure, settings | {"published": None}, Path("unused.svg"), tables=all_given)


def test_the_command_writes_one_svg_and_its_checksum_or_one_line(
    drawn_once: Any, tables: dict[str, Path], tmp_path: Path
) -> None:
    output = tmp_path / "figures" / "figure.svg"
    settings = settings_of(drawn_once, "task_scores")
    command = stage_command("draw_figure", settings, output, tables=given("task_scores", tables))
    result = forked.run(command, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stderr) == (0, "")
    assert sorted(path.name for path in output.parent.iterdir()) == ["figure.pdf", "figure.sha256", "figure.svg"]
    tables["measurements"].write_text("{")
    result = forked.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 1
    assert result.stderr.startswith(f"error: {tables['measurements']}: ") and result.stderr.count("\n") == 1


WITH_TABLES = [name for name, declared in FIGURES.items() if tables_of(declared)]
EVALUATIONS = ("surprisal", "minimal_pairs", "finetuning", "probing", "layer_weights", "other_tasks", "nothing")
METRICS = [{"step": 1, "tokens": 10, "loss": 3.0}, {"step": 2, "tokens": 20, "loss": 2.0, "development_loss": 2.5}]


def evaluated(experiment: Any, what: str) -> None:
    """Add one model with one kind of evaluation."""
    alphas = {(1, 0): 1.0, (2, 0): 0.25, (2, 1): 0.75} if what == "layer_weights" else None
    run = experiment.add_model("same", 1, METRICS, alphas=alphas)
    if what == "minimal_pairs":
        experiment.add_minimal_pairs(run, "blimp", {"agreement": {"gender": (80, 100)}, "ellipsis": {"n": (60, 100)}})
    elif what == "surprisal":
        experiment.add_surprisal(run, "mine", {"The": 2.0, "cat": 8.5})
    elif what == "finetuning":
        experiment.add_finetuning(run, "cola", ("accuracy", "mcc"), {12: ((0.7, 0.1), ""), 13: ((0.72, 0.2), "")})
        for task in MSGS_AMBIGUOUS_TASKS[:2]:
            experiment.add_finetuning(run, task, ("mcc",), {12: ((0.5,), "")}, suite="msgs")
    elif what == "other_tasks":
        experiment.add_finetuning(run, "rte", ("accuracy",), {12: ((None,), "nan")})
        experiment.add_finetuning(run, MSGS_AMBIGUOUS_TASKS[-1], ("mcc",), {12: ((None,), "nan")}, suite="msgs")
        experiment.add_minimal_pairs(run, "another", {"binding": {"c": (30, 40)}})
    elif what == "probing":
        experiment.add_finetuning(
            run, "pos", ("micro_f1",), {12: ((0.5,), "")}, suite="probing", probe=PROBE.format(0.4, 0.6)
        )


@pytest.fixture(scope="module")
def study_tables(tmp_path_factory: pytest.TempPathFactory, two_models_once: Any) -> dict[str, Path]:
    """The tables of a study with one experiment per kind of evaluation."""
    folder, made = tmp_path_factory.mktemp("parts"), {}
    for what in EVALUATIONS:
        experiment = type(two_models_once)(folder / what)
        evaluated(experiment, what)
        made[what] = folder / what / "measurements.parquet"
        settings = experiment.collect_settings() | {"experiment": what}
        run_stage(collect_measurements, settings, made[what], **experiment.inputs)
    parts = {table.name: {name: table.in_folder_of(path) for name, path in made.items()} for table in TABLES}
    settings = {"stage": "join_experiments", "stage_version": 1, "experiment": "all", "experiments": EVALUATIONS}
    run_stage(join_experiments, settings, folder / "all/measurements.parquet", **parts)
    return {table.name: folder / f"all/{table.name}.parquet" for table in TABLES}


def drawn(figure: str, models: tuple[str, ...], study_tables: dict[str, Path], output: Path) -> str:
    runs = [{"name": f"{model}/same-s1", "model": f"{model}/same", "seed": 1} for model in models]
    settings = {"stage": "draw_figure", "stage_version": 1, "figure": figure, "version": 1, "experiment": "all"}
    given = {name: study_tables[name] for name in tables_of(declared_figures()[figure])}
    run_stage(draw_figure, settings | {"runs": runs, "style": {}}, output, tables=given)
    return output.read_text(encoding="utf-8")


@pytest.mark.parametrize("figure", WITH_TABLES)
def test_a_model_without_such_numbers_is_left_out_and_nothing_raises(
    figure: str, study_tables: dict[str, Path], tmp_path: Path
) -> None:
    text = drawn(figure, EVALUATIONS, study_tables, tmp_path / "figure.svg")
    assert "NaN" not in text and not re.search(r'="[^"]*\bnan\b', text)


@pytest.mark.parametrize(("figure", "models"), [("phenomena", 6), ("bias_violins", 5), ("feature_dots", 5)])
def test_a_panel_says_which_models_have_no_numbers_in_it(
    figure: str, models: int, study_tables: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "hatchery.rendering.drawing.figure_style", lambda style: mpl.rc_context({"svg.fonttype": "none"})
    )
    text = drawn(figure, EVALUATIONS, study_tables, tmp_path / "figure.svg")
    if figure == "feature_dots":
        assert text.count(">not run<") >= models
    else:
        assert f"not evaluated: {models} models" in text


def test_models_of_experiments_that_were_not_evaluated_so_are_not_among_those_that_are_drawn(
    repository: Path, tmp_path: Path
) -> None:
    shutil.copytree(repository / "config", tmp_path / "config")
    study = "experiments: [reduced_vocabulary_constrained, demo]\n"
    (tmp_path / "config/studies/both.yaml").write_text(study, encoding="utf-8")
    project = Project(tmp_path / "config")
    pairs = json.loads(Jobs(project).settings("draw_figure", experiment="both", figure="phenomena"))
    # If the models of this experiment counted, its 138 models would come first, without any data to draw.
    assert {run["model"].partition("/")[0] for run in pairs["runs"]} == {"demo"}
    assert pairs["without"] == ["reduced_vocabulary_constrained"] and pairs["left_out"] == 0
    # The colours are those that the models have among all models.
    models = list(dict.fromkeys(run["model"] for run in pairs["runs"]))
    assert len(pairs["all_models"]) == 138 + 3 and pairs["all_models"][-3:] == models
    settings = FigureSettings("both", (), all_models=("a", "b", "c"))
    assert settings.looks(["c"])["c"] == model_styles(["a", "b", "c"], settings.style)["c"]
    curves = json.loads(Jobs(project).settings("draw_figure", experiment="both", figure="learning_curves"))
    assert curves["left_out"] > 100 and curves["without"] == []
    assert list(remarks(FigureSettings("both", (), without=("a", "b")))) == [
        "experiments without these evaluations: a, b"
    ]


def test_many_models_of_a_grid_are_told_apart_by_their_sets(
    repository: Path, study_tables: dict[str, Path], tmp_path: Path
) -> None:
    project = Project(repository / "config")
    made = json.loads(Jobs(project).settings("draw_figure", experiment="reduced_vocabulary", figure="learning_curves"))
    assert len(made["runs"]) == len(made["sets"]) == 194 and made["left_out"] == 0
    assert set(made["sets"].values()) == {"set_1", "set_2", "set_3", "larger", "unconstrained", "checkpoints"}
    page = json.loads(Jobs(project).settings("write_page", experiment="reduced_vocabulary"))
    assert page["sets"] == made["sets"]
    few = json.loads(Jobs(project).settings("draw_figure", experiment="demo", figure="learning_curves"))
    assert few["sets"] == {}
    sets = {f"{what}/same": "odd" if place % 2 else "even" for place, what in enumerate(EVALUATIONS)}
    runs = [{"name": f"{model}-s1", "model": model, "seed": 1} for model in sets]
    settings = {"stage": "draw_figure", "stage_version": 1, "figure": "learning_curves", "version": 1}
    given = {name: study_tables[name] for name in ("curves", "runs")}
    run_stage(
        draw_figure, settings | {"experiment": "all", "runs": runs, "sets": sets}, tmp_path / "figure.svg", tables=given
    )
    drawing = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert set(re.findall(r"<!-- (\w+) \(\d+ models?\) -->", drawing)) == {"odd", "even"}  # the legend


def test_a_figure_says_how_many_models_it_leaves_out(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(mpl.rcParams, "svg.fonttype", "none")
    for left_out, is_shown in ((0, False), (1260, True)):
        remark = "\n".join(remarks(FigureSettings("many", (), left_out=left_out)))
        save_drawings(lambda _: Figure(layout="constrained"), Style(), tmp_path / "figure.svg", "title", remark)
        text = (tmp_path / "figure.svg").read_text(encoding="utf-8")
        assert ("1,260 more models are not drawn: see summary.csv" in text) is is_shown


def test_a_figure_has_its_title_and_its_remarks(monkeypatch: pytest.MonkeyPatch) -> None:
    saved = []
    monkeypatch.setattr(draw, "save_figure", lambda *given: saved.append(given[1:]))
    settings = FigureSettings("demo", (), Style(width_inches=5), figure="phenomena", left_out=5, without=("a", "b"))
    draw.draw(settings, {"measurements": Path("unused")}, Path("figure.svg"))
    remark = "5 more models are not drawn: see summary.csv\nexperiments without these evaluations: a, b"
    assert saved == [(Style(width_inches=5), Path("figure.svg"), "Minimal pairs of demo", remark)]


def test_a_count_on_an_axis_is_abbreviated_and_not_rounded() -> None:
    assert [abbreviated(count) for count in (950, 2_500, 1.5e6, 3.2e9)] == ["950", "2.5k", "1.5M", "3.2B"]
    assert [abbreviated(count) for count in (999, 1_000, -1_000, 1e6, 1e9)] == ["999", "1k", "-1k", "1M", "1B"]
