"""The files that the stage `summarise` writes."""

import csv
import hashlib
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
from summary_cases import CHOICE, PUBLISHED, write

from hatchery.analysis.settings import FigureSettings, SummarySettings, models_with_counts, sets_of_many
from hatchery.analysis.summary import summarised
from hatchery.analysis.summary_rows import write_csv
from hatchery.errors import ConfigError, ManifestError
from hatchery.experiment.seeded_run import SeededRun
from hatchery.runner import run_stage
from hatchery.typed import build, stage_body
from hatchery.views.stages.summarise import summarise
from hatchery.views.summary_latex import latex_summary
from hatchery.views.summary_text import markdown_summary


@pytest.fixture
def published(tmp_path: Path) -> Path:
    path = tmp_path / "elc_bert.csv"
    path.write_text(PUBLISHED)
    return path


@pytest.fixture
def written(two_models: Any, tmp_path: Path, published: Path) -> list[Path]:
    """The four files of the summary of two models with published values."""
    return write(two_models, tmp_path, published)


def test_the_same_work_gives_the_same_bytes_in_whatever_order_inputs_come(
    two_models: Any, tmp_path: Path, published: Path
) -> None:
    first = write(two_models, tmp_path / "first", published)
    second = write(two_models, tmp_path / "second", published, backwards=True)
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_every_column_of_the_csv_has_the_value_that_was_worked_out_by_hand(
    written: list[Path], two_models: Any
) -> None:
    path = written[0]
    with path.open(newline="") as handle:
        rows = {(r["model"], r["suite"], r["task"], r["metric"]): r for r in csv.DictReader(handle)}
    tuned = sorted(
        hashlib.sha256(two_models.finetuning[f"plain-s{seed}:cola"].read_bytes()).hexdigest()[:12] for seed in (1, 2)
    )
    pairs = hashlib.sha256(two_models.minimal_pairs["elc-s1:blimp"].read_bytes()).hexdigest()[:12]
    # The runs are 70, 72, 74 and 69 (failed). Squared deviations from the mean 71.25 sum to 14.75; 14.75 / 3 = 4.9167.
    assert list(rows["plain", "finetuning", "cola", "accuracy_percent"].values()) == [
        *("demo", "plain", "finetuning", "cola", "accuracy_percent"),
        *("71.2500", "2.2174", "4", "1", "72.0000", "0"),
        *("60.0000", "1.5000", "ELC-BERT Table 1", "11.2500", "above", ";".join(tuned)),
        *("", "", "2", ""),
    ]
    # 155 of 200 pairs are right: the deviation is sqrt((157 / 204) (47 / 204) / 204).
    assert list(rows["elc", "blimp", "agreement", "accuracy_percent"].values()) == [
        *("demo", "elc", "blimp", "agreement", "accuracy_percent"),
        *("77.5000", "", "1", "0", "77.5000", "0"),
        *("", "", "", "", "", pairs),
        *("2.9482", "50.0000", "1", "items: 200"),
    ]
    assert b"\r" not in path.read_bytes()


def test_parquet_holds_the_rows_of_the_csv(written: list[Path]) -> None:
    csv_path, parquet, *_ = written
    table = pq.read_table(parquet)
    with csv_path.open(newline="") as handle:
        reader = csv.DictReader(handle)
        rows = list(reader)
    assert table.column_names == reader.fieldnames
    for mine, theirs in zip(table.to_pylist(), rows, strict=True):
        texts = {k: "" if v is None else f"{v:.4f}" if isinstance(v, float) else str(v) for k, v in mine.items()}
        assert texts == theirs


def test_markdown_has_models_as_rows_and_says_what_a_reader_must_know(written: list[Path]) -> None:
    text = written[2].read_text(encoding="utf-8")
    assert "| model | average, by task | average, by run | cola | rte |" in text
    by_run, cola = "62.1 ± 1.7 (n=4, 1 failed (62.0 without))", "71.2 ± 2.2 (n=4, 1 failed (72.0 without))"
    assert f"| {by_run} | {cola} | 53.0 ± 2.6 (n=4) |" in text
    assert "| 60.0 (n=1, 1 more without a number) |" in text
    assert "| model | cola mcc |" in text
    assert "| plain | 15.0 ± 12.9 (n=4, 1 failed (20.0 without)) |" in text
    assert "| elc | 77.5 (71.7 to 83.3, n=1) | 75.0 (66.6 to 83.4, n=1) |" in text
    assert "| blind guess | 50.0 | 50.0 |" in text
    assert "divided by n - 1" in text
    failed = "plain, seed 2, cola: majority class with seed 13 at learning rate 5e-05"
    assert f"Failed or without a number: {failed}." in text
    assert "| +11.2 | above | ELC-BERT Table 1 | printed in bold |" in text
    assert "In all: 1 within, 1 above." in text
    unmatched = "plain, blimp, binding, accuracy_percent"
    assert f"1 published values have no counterpart in the results of this experiment: {unmatched}." in text
    assert text.index("### blimp") < text.index("| plain | agreement |") < text.index("### finetuning")
    tables = [block for block in text.split("\n\n") if block.startswith("|")]
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1


@pytest.fixture
def two_objectives(experiment: Any) -> Any:
    """Add a masked and a causal model, measured on held-out text and on minimal pairs."""
    for model, loss in (("hidden", 2.0), ("next", 1.0)):
        run = experiment.add_model(model, 1, [])
        experiment.add_perplexity(run, {"dev": (loss, 2.718**loss, 0.5)})
        experiment.add_minimal_pairs(run, "blimp", {"agreement": {"gender": (60, 100)}})
    return experiment


def test_perplexities_of_different_objectives_stand_apart_and_say_what_they_are(
    two_objectives: Any, tmp_path: Path
) -> None:
    paths = write(two_objectives, tmp_path, objectives={"next": "causal"})
    markdown, text = (path.read_text(encoding="utf-8") for path in paths[2:])
    assert "| model | dev perplexity, masked | dev perplexity, causal | blimp, phenomena |" in markdown
    assert "| hidden | 7.39 (n=1) | - | 60.0 (50.6 to 69.4, n=1) |" in markdown
    assert "| next | - | 2.72 (n=1) | 60.0 (50.6 to 69.4, n=1) |" in markdown
    assert "per masked token of masked models" in markdown and "per token of causal models" in markdown
    assert "Scores of models with different objectives are not comparable." in markdown
    assert "Causal models predict every token" in markdown and "Masks are fixed" in markdown
    assert next(line.split() for line in text.splitlines() if "dev perplexity, causal" in line)[-2:] == ["-", "2.72"]


@pytest.mark.parametrize(
    ("objectives", "said"),
    [
        (None, "perplexity per masked token."),
        ({"hidden": "causal", "next": "causal"}, "perplexity per token."),
        ({"hidden": "translation", "next": "translation"}, "perplexity per target token."),
    ],
)
def test_models_of_one_objective_share_a_column_that_is_named_plainly(
    two_objectives: Any, tmp_path: Path, objectives: dict[str, str] | None, said: str
) -> None:
    markdown = write(two_objectives, tmp_path, objectives=objectives)[2].read_text(encoding="utf-8")
    assert "| model | dev perplexity | blimp, phenomena |" in markdown
    assert f"Averages in percent; {said}" in markdown
    assert ("Masks are fixed" in markdown) == (objectives is None)
    assert "models with different objectives are not comparable" not in markdown


def test_the_bound_of_masked_diffusion_has_its_own_unit(experiment: Any, tmp_path: Path) -> None:
    """The bound's loss is per maskable token, not per masked token."""
    objective = {"task": "masked", "kind": "subword", "random_probability": 0.0, "keep_probability": 0.0}
    for model, rates in (("bound", {"weights": "diffusion"}), ("drawn", {"weights": "equal"})):
        run = experiment.add_model(model, 1, [], objective={**objective, "rates": rates})
        settings = {"masking": "own", "mask_probability": 0.15, "random_probability": 0.1, "keep_probability": 0.1}
        experiment.add_perplexity(run, {"dev": (2.0, 2.718**2, 0.5)}, settings=settings)
        if model == "bound":
            markdown = write(experiment, tmp_path)[2].read_text(encoding="utf-8")
            assert "perplexity per token that can be hidden (bound of masked diffusion)." in markdown
    markdown = write(experiment, tmp_path)[2].read_text(encoding="utf-8")
    assert "perplexity per masked token or per token that can be hidden (bound of masked diffusion)." in markdown


def test_markdown_keeps_bars_in_names_out_of_its_columns(experiment: Any, tmp_path: Path) -> None:
    run = experiment.add_model("a|b", 1, [])
    experiment.add_finetuning(run, "cola", ("accuracy",), {12: ((0.7,), "")})
    assert "| a\\|b | 70.0 (n=1) |" in write(experiment, tmp_path)[2].read_text(encoding="utf-8")


def test_text_is_ascii_aligned_and_fits_the_terminal(written: list[Path]) -> None:
    lines = written[3].read_text(encoding="ascii").splitlines()
    assert max(map(len, lines)) <= 100
    header = next(line for line in lines if line.split() == ["Minimal", "pairs:", "blimp", "plain", "elc"])
    agreement = next(line for line in lines if line.strip().startswith("agreement"))
    assert agreement.split() == ["agreement", "72.5", "+-3.5", "77.5"]
    assert header.index("plain") + len("plain") >= agreement.index("+-3.5") + len("+-3.5")
    cola = next(line for line in lines if line.split() == ["cola", "71.2", "+-2.2*", "81.0", "+-1.4"])
    assert agreement.index("72.5") == cola.index("71.2"), "The digits of a model are aligned with and without a star."
    assert "  plain, seed 2, cola: majority class with seed 13 at learning rate 5e-05" in lines
    assert not any("mcc" in line for line in lines)


def test_nothing_is_written_when_an_input_is_damaged(two_models: Any, tmp_path: Path) -> None:
    (two_models.finetuning["elc-s1:rte"].parent / "results.csv").write_text("")
    with pytest.raises(ManifestError):
        write(two_models, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_latex_has_the_numbers_of_markdown_and_a_table_that_it_cannot_write_costs_no_other(
    two_models: Any,
) -> None:
    settings = build(SummarySettings, stage_body(two_models.summary_settings()))
    summary = replace(summarised(settings, two_models.measured(), {}), labels={"plain": "plain_50%"})
    text, markdown = latex_summary(summary), markdown_summary(summary).split("## Notes")[0]
    titles = re.findall(r"^## (.*)$", markdown, re.MULTILINE)
    assert re.findall(r"\\caption\{(.*) \(demo\)\.\}", text) == titles and len(set(titles)) == len(titles) > 2
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == text.count(r"plain\_50\%") == len(titles)
    # The scores are 70 and 75 of two pretraining seeds, and 80 and 82 of two fine-tuning seeds.
    assert r"72.5 {\tiny $\pm$ 3.5}" in text and r"81.0 {\tiny $\pm$ 1.4}" in text.replace(r"\textbf{81.0}", "81.0")
    summary = replace(summary, labels={"plain": "\N{SNOWMAN}"})
    assert latex_summary(summary).count("not written: LaTeX: ") == len(titles)


def test_a_table_of_published_values_must_be_handed_in_exactly_when_the_settings_name_one(
    two_models: Any, tmp_path: Path, published: Path
) -> None:
    table = two_models.collected()
    for choice, tables in ((None, [published]), (CHOICE, [])):
        with pytest.raises(ConfigError, match="published"):
            run_stage(
                summarise,
                two_models.summary_settings(choice),
                tmp_path / "summary.csv",
                measurements=table,
                published=tables,
            )


def test_an_experiment_without_evaluations_still_has_a_header(tmp_path: Path) -> None:
    write_csv(tmp_path / "summary.csv", [])
    assert (tmp_path / "summary.csv").read_text().startswith("experiment,model,suite,task,metric,mean")


def many_suites(experiment: Any) -> Any:
    """Add two models and a baseline on held-out text, minimal pairs and two suites of tasks."""
    for model in ("plain", "elc"):
        run = experiment.add_model(model, 1, [])
        experiment.add_perplexity(run, {"dev": (2.0, 7.389, 0.5), "test": (2.1, 8.166, 0.45)})
        experiment.add_minimal_pairs(run, "blimp", {f"phenomenon_{i}": {f"p{i}": (60 + i, 100)} for i in range(14)})
        experiment.add_finetuning(
            *(run, "msgs_control_raising_relative_token_position", ("mcc",)),
            {(seed, rate): ((-0.5,), "zero_mcc" if seed == 0 else "") for seed in (0, 13) for rate in (1e-5, 3e-5)},
            suite="msgs",
            majority={"validation": 0.5},
        )
        experiment.add_finetuning(
            *(run, "glue_mnli", ("accuracy",), {12: ((0.8,), "")}),
            suite="glue",
            further={"mismatched": {12: ((0.7,), "")}},
            transfer={"hans": ("glue", ("accuracy",), {12: ((0.6,), "")})},
            majority={"validation": 0.357, "mismatched": 0.354, "hans": 0.5},
        )
        experiment.add_finetuning(
            run,
            "glue_mrpc",
            ("accuracy", "f1"),
            {12: ((0.85, 0.89), "")},
            suite="glue",
            majority={"validation": 0.684},
        )
    experiment.add_minimal_pairs("gpt", "blimp", {f"phenomenon_{i}": {f"p{i}": (70 + i, 100)} for i in range(14)})
    return experiment


def test_every_suite_has_a_section_with_the_models_that_have_numbers_in_it(experiment: Any, tmp_path: Path) -> None:
    markdown = write(many_suites(experiment), tmp_path)[2].read_text(encoding="utf-8")
    sections = dict(part.split("\n", 1) for part in markdown.split("\n## ")[1:])
    assert list(sections) == [
        *("Overview", "Perplexity on held-out text", "Minimal pairs: blimp", "Fine-tuning: msgs", "Fine-tuning: glue"),
        *("Fine-tuning: glue, further metrics", "Notes"),
    ]
    assert {title for title, text in sections.items() if "| gpt |" in text} == sections.keys() - {"Notes"}
    assert "| elc | 7.39 (n=1) | 50.0 (n=1) | 8.17 (n=1) | 45.0 (n=1) |" in sections["Perplexity on held-out text"]
    assert "| mnli | mnli mismatched | hans | mrpc |" in sections["Fine-tuning: glue"]
    assert "| mrpc f1 |" in sections["Fine-tuning: glue, further metrics"]
    guesses = re.findall(r"^\| blind guess .*", markdown, re.MULTILINE)
    # MSGS (Matthews correlation), then glue: two averages, mnli, mnli mismatched, hans, mrpc. F1 has no blind guess.
    assert guesses[-2:] == ["| blind guess | 0.0 |", "| blind guess | 52.0 | 52.0 | 35.7 | 35.4 | 50.0 | 68.4 |"]
    # Wide tables continue below.
    header = [line for line in markdown.splitlines() if "| phenomenon " in line and line.startswith("| model")]
    assert [line.count("phenomenon ") for line in header] == [5, 4, 5]
    assert max(line.count("|") for line in markdown.splitlines()) <= 8


def test_failed_runs_are_named_together_by_learning_rate(experiment: Any, tmp_path: Path) -> None:
    paths = write(many_suites(experiment), tmp_path)
    name = "plain, seed 1, msgs_control_raising_relative_token_position"
    runs = "zero mcc with seed 0 at learning rate 1e-05; zero mcc with seed 0 at learning rate 3e-05"
    assert f"- Failed or without a number: {name}: {runs}." in paths[2].read_text(encoding="utf-8")
    assert name in paths[3].read_text(encoding="ascii")


def test_long_names_of_tasks_stay_whole_on_the_terminal(experiment: Any, tmp_path: Path) -> None:
    many_suites(experiment)
    for run in (*experiment.pretraining, *experiment.baseline):
        experiment.add_finetuning(run, "msgs_main_verb_control", ("mcc",), {13: ((0.9,), "")}, suite="msgs")
    text = write(experiment, tmp_path)[3].read_text(encoding="ascii")
    assert "\n  control raising relative token position " in text
    assert max(map(len, text.splitlines())) <= 100


LABEL = "elc, learning_rate 0.005, optimizer.name lamb"


def test_a_run_that_a_sweep_made_is_called_by_what_differs_and_in_the_table_for_computers_by_its_short_name(
    two_models: Any, tmp_path: Path
) -> None:
    for run in two_models.runs:
        run["label"] = LABEL if run["model"] == "elc" else "plain, rate 1"
    table, _, markdown, text = write(two_models, tmp_path)
    lines = text.read_text().splitlines()
    found = next(index for index, line in enumerate(lines) if line.endswith(" elc"))
    assert lines[found + 1].endswith(" learning_rate 0.005") and lines[found + 2].endswith(" optimizer.name lamb")
    assert all(len(line) <= 100 for line in lines)
    assert f"| {LABEL} |" in markdown.read_text()
    assert "- Failed or without a number: plain, rate 1, seed 2, cola: majority" in markdown.read_text()
    assert {row["model"] for row in csv.DictReader(table.read_text().splitlines())} == {"elc", "plain"}


def test_seeds_of_a_run_of_a_sweep_are_averaged_under_one_name() -> None:
    runs = [SeededRun("a_x_1-s1", "a_x_1", 1, "a, x 1"), SeededRun("a_x_1-s2", "a_x_1", 2, "a, x 1")]
    assert models_with_counts(runs) == {"a_x_1": "a, x 1 (2 seeds)"}


def test_many_models_are_shown_by_grid_set_and_a_set_of_two_experiments_with_its_experiment() -> None:
    models = [f"m{number}" for number in range(13)]
    sets = {model: "small" if number < 5 else "large" for number, model in enumerate(models)}
    own: Any = SimpleNamespace(
        is_study=lambda name: False, expansion=lambda name: SimpleNamespace(sets=lambda: dict(reversed(sets.items())))
    )
    assert list(sets_of_many(own, "mine", models).items()) == list(sets.items())
    # Twelve models have their own names, and a model without a set prevents groups.
    assert sets_of_many(own, "mine", models[1:]) == {} == sets_of_many(own, "mine", [*models, "other"])
    of_study = {f"one/{model}": name for model, name in sets.items()} | {"two/m0": "small"}
    study: Any = SimpleNamespace(
        is_study=lambda name: True, members=lambda name: ["one", "two"], sets_of=lambda parts: of_study
    )
    found = sets_of_many(study, "both", list(of_study))
    assert (found["one/m0"], found["two/m0"], found["one/m12"]) == ("one: small", "two: small", "large")


def test_a_model_has_the_style_of_its_place_among_all_models_of_the_study() -> None:
    whole = FigureSettings("both", ()).looks(["a", "b", "c"])
    part = FigureSettings("both", (), all_models=("a", "b", "c")).looks(["c"])
    assert part == {"c": whole["c"]} and part != FigureSettings("both", ()).looks(["c"])
