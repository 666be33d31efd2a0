"""The stage `draw_figure`, for every figure that is registered: a new one is in these tests by itself."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import forked
import pytest
from faults import DAMAGE

from hatchery.analysis.task_averages import MSGS_AMBIGUOUS_TASKS
from hatchery.errors import ConfigError, ManifestError
from hatchery.runner import run_stage
from hatchery.views.figures.registry import declared_figures, tables_of
from hatchery.views.stages.draw_figure import draw_figure

FIGURES = declared_figures()
PAPER = {"paper": "elc_bert", "track": "strict", "rows": {"plain": "ltg_bert_base", "elc": "elc_bert_base"}}
PROBE = "seed,learning_rate,span,layer,weight\n12,0.006,0,1,{0}\n12,0.006,0,2,{1}\n"


@pytest.fixture(scope="module")
def drawn_once(two_models_once: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, dict[str, Path]]:
    """An experiment that has what any figure needs, and its tables."""
    experiment = two_models_once.copied(tmp_path_factory.mktemp("figures") / "results" / "demo")
    for place, cell in enumerate(experiment.pretraining):
        for task in MSGS_AMBIGUOUS_TASKS:
            results = {12: ((0.1 * place,), ""), 13: ((-0.9,), ""), 14: ((None,), "nan"), 15: ((-0.5,), "")}
            experiment.add_finetuning(cell, task, ("mcc",), results, suite="msgs")
        probe = PROBE.format(0.4 + 0.1 * place, 0.6 - 0.1 * place)
        experiment.add_finetuning(cell, "pos", ("micro_f1",), {12: ((0.5,), "")}, suite="probing", probe=probe)
    return experiment, experiment.tables()


@pytest.fixture
def tables(drawn_once: tuple[Any, dict[str, Path]], repository: Path, tmp_path: Path) -> dict[str, Path]:
    """Copies of the tables, free to be damaged, with a paper's numbers."""
    copied = {}
    for name, path in drawn_once[1].items():
        for file in (path, path.with_suffix(".sha256")):
            (tmp_path / file.name).write_bytes(file.read_bytes())
        copied[name] = tmp_path / path.name
    return copied | {"published": repository / "config/published/values/elc_bert.csv"}


def settings_of(drawn_once: tuple[Any, dict[str, Path]], figure: str, **style: Any) -> dict[str, Any]:
    settings: dict[str, Any] = drawn_once[0].figure_settings(figure, **style)
    return settings | ({"published": PAPER} if FIGURES[figure].published else {})


def given(figure: str, tables: dict[str, Path]) -> dict[str, Path]:
    """Those of the tables that the rule gives the figure."""
    names = [*tables_of(FIGURES[figure]), *(["published"] if FIGURES[figure].published else [])]
    return {name: tables[name] for name in names}


@pytest.mark.parametrize("figure", FIGURES)
def test_the_same_tables_give_the_same_vector_file(
    figure: str, drawn_once: Any, tables: dict[str, Path], tmp_path: Path
) -> None:
    settings = settings_of(drawn_once, figure, width_inches=6, font_size=8)
    for name in ("a", "b"):
        run_stage(draw_figure, settings, tmp_path / f"{name}.svg", tables=given(figure, tables))
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert text == (tmp_path / "b.svg").read_text(encoding="utf-8")
    assert "<image" not in text
    assert not re.search(r"<dc:date>|20\d\d-\d\d-\d\d", text)
    assert f"<dc:title>{FIGURES[figure].title} of demo</dc:title>" in text


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize(("figure", "table"), [(name, table) for name in FIGURES for table in tables_of(FIGURES[name])])
def test_an_altered_table_is_named_and_nothing_is_drawn(
    *, figure: str, table: str, damage: str, drawn_once: Any, tables: dict[str, Path], tmp_path: Path
) -> None:
    DAMAGE[damage](tables[table])
    with pytest.raises(ManifestError, match=rf"{table}\.parquet: "):
        run_stage(draw_figure, settings_of(drawn_once, figure), tmp_path / "figure.svg", tables=given(figure, tables))
    assert not (tmp_path / "figure.svg").exists()


@pytest.mark.parametrize("figure", [name for name, declared in FIGURES.items() if tables_of(declared)])
def test_a_table_that_is_not_given_is_named(figure: str, drawn_once: Any) -> None:
    with pytest.raises(ConfigError, match=rf"--tables: {' and '.join(tables_of(FIGURES[figure]))} must be given"):
        run_stage(draw_figure, settings_of(drawn_once, figure), Path("unused.svg"), tables={})


@pytest.mark.parametrize("figure", [name for name, declared in FIGURES.items() if declared.published])
def test_published_values_and_settings_belong_together(figure: str, drawn_once: Any, tables: dict[str, Path]) -> None:
    settings, all_given = settings_of(drawn_once, figure), given(figure, tables)
    without = {name: path for name, path in all_given.items() if name != "published"}
    with pytest.raises(ConfigError, match="published is None, but the settings say published"):
        run_stage(draw_figure, settings, Path("unused.svg"), tables=without)
    with pytest.raises(ConfigError, match=r"published is .*elc_bert.csv, but the settings say published: None"):
        run_stage(draw_figure, settings | {"published": None}, Path("unused.svg"), tables=all_given)


def test_the_command_writes_one_svg_and_its_checksum_or_one_line(
    drawn_once: Any, tables: dict[str, Path], tmp_path: Path, repository: Path
) -> None:
    output = tmp_path / "figures" / "figure.svg"
    command = [
        *(sys.executable, str(repository / "scripts/run.py"), "draw_figure"),
        *("--settings", json.dumps(settings_of(drawn_once, "task_scores")), "--output", str(output)),
        *("--tables", *(f"{name}={path}" for name, path in given("task_scores", tables).items())),
    ]
    result = forked.run(command, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stderr) == (0, "")
    assert sorted(path.name for path in output.parent.iterdir()) == ["figure.sha256", "figure.svg"]
    tables["measurements"].write_text("{")
    result = forked.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 1
    assert result.stderr.startswith(f"error: {tables['measurements']}: ") and result.stderr.count("\n") == 1
