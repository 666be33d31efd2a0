"""Steps from smaller to larger models, of a study of invented tables and of the published files."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scaling_study import PAPER, Analysed, altered, cells, rows

from hatchery.analysis.analyses.analysis import Findings, Study, analysis_called, settings_of
from hatchery.analysis.analyses.cost_effectiveness import Option, steps
from hatchery.analysis.tidy_tables import MEASUREMENTS, RUNS, read_frame, write_rows


def test_cost_effectiveness_sets_our_steps_beside_table_2(analysed: Analysed) -> None:
    found = analysed("cost_effectiveness", experiments=["one"], **PAPER)
    ours = rows(found, source="ours", size="num_hidden_layers")
    assert [(row["from"], row["to"]) for row in ours[:2]] == [(1, 2), (2, 4)]
    assert len(ours) == 8 and all(row["ratio"] > 0 for row in ours)
    pairs = [(row[3], row[4]) for row in cells(found) if row[4] != "-"]
    assert len(pairs) == 12 and all(logged == printed for logged, printed in pairs)
    assert any("development perplexity" in note for note in found.notes)
    assert [column.heading for column in found.tables[0].columns][2:] == ["ours", "published logs", "printed"]
    sizes = ["hidden size", "hidden layers", "embedding size", "intermediate size"]
    assert [group.heading for group in found.tables[0].groups] == sizes
    assert {(row["smaller_perplexity"], row["larger_perplexity"]) for row in rows(found, source="printed")} == {
        (None, None)
    }


def test_steps_can_be_those_within_the_sets_of_a_grid(analysed: Analysed) -> None:
    found = analysed(
        "cost_effectiveness", experiments=["one"], sizes=["num_hidden_layers"], sets=["set_1"], flops="six_n_d"
    )
    # The second layer of hidden size 128 has 4 (128^2 + 128) + (2 * 128 * 512 + 512 + 128) + 4 * 128 parameters, and a
    # sequence has 64 tokens: 6 * 198,272 * 64.
    assert found.rows[-1]["gflops"] == 0.076136
    assert [(row["from"], row["to"]) for row in found.rows] == [(1, 2)] * 4
    # The larger model has E and H of 16, I of 64, two layers and four attention heads.
    assert cells(found)[0][:2] == ["(16, 16, 64, 2, 4)", "1 to 2"]
    assert [group.heading for group in found.tables[0].groups] == ["hidden layers"]
    assert any(note.startswith("Only our models of") and note.endswith("are compared: set-1.") for note in found.notes)


def test_of_models_with_equal_sizes_the_first_is_used() -> None:
    models = [Option(name, {"layers": size}, size, 9.0) for name, size in (("a", 1), ("b", 1), ("c", 2), ("d", 2))]
    assert [(step.smaller.name, step.larger.name) for step in steps(models, ["layers"])] == [("a", "c")]


def test_a_model_that_two_experiments_name_counts_once(study: Study, analysed: Analysed, tmp_path: Path) -> None:
    runs = read_frame(study.tables["runs"], RUNS).to_dicts()
    # The models of `two` have the manifests of `one`, so they are the same models.
    same = [{**run, "manifest": run["manifest"].replace("two/", "one/")} for run in runs]
    write_rows(tmp_path / "runs.parquet", RUNS, same)
    doubled = replace(study, tables={**study.tables, "runs": tmp_path / "runs.parquet"})
    for name, kind, count in (("power_laws", "point", 12 * 20), ("correlation", "model", 12 * 2)):
        settings = settings_of(name, {"draws": 2} if name == "power_laws" else {})
        assert len(rows(analysed(name, draws=2) if name == "power_laws" else analysed(name), kind=kind)) == 2 * count
        found = analysis_called(name).run(settings, doubled)
        assert {row["model"].partition("/")[0] for row in rows(found, kind=kind)} == {"one"}
        assert len(rows(found, kind=kind)) == count
    # The steps of one experiment do not depend on other experiments.
    steps = analysis_called("cost_effectiveness").run(settings_of("cost_effectiveness", {}), doubled)
    assert {row["experiment"] for row in steps.rows} == {"one", "two"}


def test_the_perplexity_of_a_step_is_the_mean_over_seeds(study: Study, tmp_path: Path) -> None:
    def seeds(run: dict[str, Any]) -> list[dict[str, Any]]:
        worse = {"seed": 2, "run": f"{run['model']}-s2", "manifest": f"{run['model']} again"}
        return [run, run | worse | {"development_perplexity": run["development_perplexity"] + run["layers"]}]

    several = altered(study, tmp_path, seeds)
    settings = settings_of("cost_effectiveness", {"experiments": ["one"], "sizes": ["num_hidden_layers"]})
    one, both = (analysis_called("cost_effectiveness").run(settings, each) for each in (study, several))
    assert len(one.rows) == len(both.rows) == 8
    for first, mean in zip(one.rows, both.rows, strict=True):
        assert mean["smaller_perplexity"] == pytest.approx(first["smaller_perplexity"] + first["from"] / 2)
        assert mean["larger_perplexity"] == pytest.approx(first["larger_perplexity"] + first["to"] / 2)


def test_perplexities_that_do_not_compare_make_no_steps(study: Study, tmp_path: Path) -> None:
    """The losses of `one` have different masks; the test perplexities of `two` have different tokenizers."""

    def masked(run: dict[str, Any]) -> list[dict[str, Any]]:
        asked = 40 if (run["experiment"], run["layers"]) == ("one", 4) else 15
        return [run | {"development_basis": f"asked: {asked} % of spans"}]

    def found_in(study: Study) -> Findings:
        analysis = analysis_called("cost_effectiveness")
        return analysis.run(settings_of("cost_effectiveness", {"sizes": ["num_hidden_layers"]}), study)

    mixed = altered(study, tmp_path, masked)
    found = found_in(mixed)
    assert {row["experiment"] for row in found.rows} == {"two"} and len(found.rows) == 8
    message = "Not compared: development perplexity of one, because models predicted different tokens"
    assert [note for note in found.notes if note.startswith(message)]
    # Each model's test perplexity is its number of layers. Then the bases of the losses have no effect.
    same = {"kind": "perplexity", "suite": "perplexity", "task": "test", "metric": "perplexity"}
    measured = [
        same
        | {"experiment": run["experiment"], "model": run["model"], "run": run["run"], "value": float(run["layers"])}
        | {"basis": f"tokenizer: {run['layers'] if run['experiment'] == 'two' else 'one'}"}
        for run in read_frame(study.tables["runs"], RUNS).to_dicts()
    ]
    other = [row | {"task": "dev", "value": 99.0, "basis": f"tokenizer: {row['run']}"} for row in measured]
    other += [row | {"metric": "loss_nats", "value": 98.0} for row in measured]
    write_rows(tmp_path / "measurements.parquet", MEASUREMENTS, measured + other)
    found = found_in(replace(mixed, tables={**mixed.tables, "measurements": tmp_path / "measurements.parquet"}))
    assert {row["experiment"] for row in found.rows} == {"one"} and len(found.rows) == 8
    assert {(row["smaller_perplexity"], row["larger_perplexity"]) for row in found.rows} == {(1.0, 2.0), (2.0, 4.0)}
    assert [note for note in found.notes if note.startswith("Not compared: test perplexity of two, because the token")]
    # If a single model lacks a test perplexity, all models have their development perplexities, as above.
    write_rows(tmp_path / "measurements.parquet", MEASUREMENTS, measured[1:] + other)
    found = found_in(replace(mixed, tables={**mixed.tables, "measurements": tmp_path / "measurements.parquet"}))
    assert {row["experiment"] for row in found.rows} == {"two"} and len(found.rows) == 8
    assert [note for note in found.notes if note.startswith(message)]


def test_a_run_without_a_perplexity_keeps_no_others_from_their_steps(study: Study, tmp_path: Path) -> None:
    def measured(run: dict[str, Any]) -> list[dict[str, Any]]:
        lacks = run["model"] == "one/m_64_2"
        return [run | ({"development_perplexity": None} if lacks else {"development_basis": "asked: 15 % of spans"})]

    settings = settings_of("cost_effectiveness", {"experiments": ["one"], "sizes": ["num_hidden_layers"]})
    found = analysis_called("cost_effectiveness").run(settings, altered(study, tmp_path, measured))
    # Of eight steps, the model is in those from 1 to 2 and from 2 to 4 layers, which become one step from 1 to 4.
    assert len(found.rows) == 7 and not any("Not compared" in note for note in found.notes)


def test_models_of_two_experiments_are_never_a_step(analysed: Analysed) -> None:
    found = analysed("cost_effectiveness", sizes=["num_hidden_layers"])
    assert len(found.rows) == 2 * 8
    assert all(row["smaller"].partition("/")[0] == row["larger"].partition("/")[0] for row in found.rows)
    assert [column.heading for column in found.tables[0].columns][2:] == ["ours, one", "ours, two"]
