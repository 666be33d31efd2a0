"""The experiments of the documentation can be planned, and miniatures differ from their originals only in sizes."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import test_babylm_miniature
import test_multilingual_miniature
import test_scaling_miniature
import test_translation_miniature
from shipped import PROJECT
from test_miniatures import ABLATIONS, RUNS

from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import raw_inputs
from hatchery.settings.fields import ABSENT
from hatchery.workflow.jobs import Jobs

DOCS = Path(__file__).resolve().parents[2] / "docs"


# A YAML block whose first line is the name of its file.
EXAMPLE = re.compile(r"^```yaml\n# (\w+)\.yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES = {name: text for page in sorted(DOCS.glob("*.md")) for name, text in EXAMPLE.findall(page.read_text())}


@pytest.fixture
def project(configuration: Path) -> Project:
    for name, text in EXAMPLES.items():
        (configuration / "experiments" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return Project(configuration)


def test_sweeps_and_continued_runs_have_examples() -> None:
    assert {"rates", "longer"} <= EXAMPLES.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_can_be_planned(project: Project, name: str) -> None:
    for run in project.seeded_runs(name):
        Jobs(project).settings("pretrain", experiment=name, run=run.name)
    Jobs(project).settings("write_cost", experiment=name)


def test_the_example_of_a_sweep_has_the_runs_that_its_text_says(project: Project) -> None:
    runs = [run.name for run in project.seeded_runs("rates")]
    assert len(runs) == 8
    assert runs[0] == "ltg_bert_hidden_dropout_prob_0p0_learning_rate_0p005-s1"
    label = "ltg_bert, hidden_dropout_prob 0.0, learning_rate 0.005"
    assert project.expansion("rates").labels()["ltg_bert_hidden_dropout_prob_0p0_learning_rate_0p005"] == label


def test_the_example_of_a_longer_run_depends_on_the_shorter_one(project: Project) -> None:
    jobs = Jobs(project)
    assert jobs.results.initial_model("longer", "longer-s42") == [jobs.results.pretrained("longer")["short-s42"]]


def test_the_example_of_a_grid_has_the_runs_that_its_text_says(project: Project) -> None:
    names = [cell.model for cell in project.seeded_runs("sizes")]
    assert len(names) == 10
    assert {"ltg_16_64_1_2", "ltg_16_64_1_2_untrained"} <= set(names)


def differences(page: str) -> dict[str, list[str]]:
    """Return the table of differences of a page in docs/papers: the first cell of each row, and its other cells."""
    text = (DOCS / "papers" / f"{page}.md").read_text(encoding="utf-8")
    section = text.partition("\n## Differences\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    assert rows and {len(row) for row in rows} == {len(rows[0])} and all(all(row) for row in rows)
    return {point.removesuffix(" *"): cells for point, *cells in rows[1:]}


def test_the_table_of_the_reduced_vocabulary_paper_says_what_its_experiments_do(project: Project) -> None:
    rows = differences("reduced-vocabulary")
    described = {point: cells[2] for point, cells in rows.items()}
    constrained, unconstrained = (f"reduced_vocabulary_{part}" for part in ("constrained", "unconstrained"))
    pretraining = project.experiment(constrained).pretraining
    updates = f"{pretraining.steps:,} updates"
    assert described["updates of pretraining"] == updates and updates not in rows["updates of pretraining"][0]
    larger = [run for run, name in project.expansion(constrained).sets().items() if name == "larger"]
    overrides = {project.experiment(constrained).runs[run].pretraining.optimizer.learning_rate for run in larger}
    (of_larger,) = overrides
    assert described["peak learning rate"] == (
        f"{scientific(of_larger)} above 18 million parameters, else {scientific(pretraining.optimizer.learning_rate)}"
    )
    rate = project.experiment(unconstrained).pretraining.optimizer.learning_rate
    assert described["peak learning rate on unfiltered text"] == f"{scientific(rate)} for all ten models"
    tasks = {task: project.protocol_of(constrained, task) for task in project.experiment(constrained).finetuning.tasks}
    assert {described["warm-up of fine-tuning"]} == {
        f"{protocol.warmup_fraction:.0%}".replace("%", " % of the steps") for protocol in tasks.values()
    }
    for rate, names in (("2e-5", ("mnli", "qqp")), ("6e-5", ("qnli", "sst2")), ("2e-4", ("cola", "wnli"))):
        assert rate in described["peak learning rate of fine-tuning"]
        assert {
            scientific(*tasks[f"rv_glue_{name}{end}"].learning_rates) for name in names for end in ("", "_filtered")
        } == {rate}
    tokenizer = project.tokenizer(unconstrained)
    assert described["tokenizer for unfiltered text"] == f"{tokenizer.vocabulary_size:,} entries"
    assert "with_larger_models" in described["larger models in Figures 2 and 3"]
    assert "with_larger_models" in project.study("reduced_vocabulary").analyses


def scientific(value: float) -> str:
    return f"{value:.0e}".replace("e-0", "e-")


def test_the_table_of_the_natural_bias_paper_says_what_its_experiments_do(project: Project) -> None:
    described = {point: cells[1] for point, cells in differences("natural-bias").items()}
    experiments = [
        name for name in project.names("experiment") if name.startswith("natural_bias") and "_mini" not in name
    ]
    steps = {project.experiment(name).pretraining.steps for name in experiments}
    assert described["training steps"].startswith(
        " ".join(f"{number:,}" for number in steps) + " steps in every experiment"
    )
    assert "development_translations" in described["chosen weights"]
    wmt, other = (project.experiment(f"natural_bias_{name}").pretraining for name in ("wmt14_de_en", "iwslt14_de_en"))
    sizes = f"at most {other.batch_size:,} target tokens, or at most {wmt.batch_size:,} target tokens for WMT"
    assert described["batches"].startswith(f"a batch has {sizes}")
    assert f"{project.tokenizer('afromt_run_en').vocabulary_size:,}" in described["tokenizer of AfroMT"]


def test_the_dump_of_wikipedia_and_the_splitter_of_sentences_stand_among_the_differences() -> None:
    found = differences("ltg-bert")
    sentences, dump = found["sentences of Wikipedia and BookCorpus (Appendix F)"], found["Wikipedia (Appendix F)"]
    assert "spaCy" in sentences[0] and "Punkt" in sentences[2]
    assert ".xml.bz2" in dump[0] and "outside the workflow" in dump[2]


EXPERIMENTS = [(name, f"{name}_mini") for name in ("strict", "strict_small", "bnc", "bnc_wikipedia_bookcorpus")]
SIZES = {"steps", "batch_size", "sequence_length", "evaluation_interval_steps", "evaluation_sequences"}
MODEL_SIZES = {
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "position_bucket_size",
    "max_position_embeddings",
    # A training of twenty steps needs no dropout.
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
}


# Fine-tuning on sixty rows needs no dropout.
PROTOCOL_SIZES = {"epochs", "batch_size", "learning_rates", "seeds", "max_length", "dropout"}


# The generated pairs replace BLiMP; both contain the original paradigms.
MINIATURES = {"blimp": "demo_pairs"}


def miniature(name: str) -> str:
    return MINIATURES.get(name, f"demo_{name}")


def settings(experiment: str, run: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Jobs(PROJECT).settings("pretrain", experiment=experiment, run=f"{run}-s42"))
    return found


def without(values: Mapping[str, Any], keys: set[str]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in keys}


def runs(experiment: str) -> list[str]:
    return [run.model for run in PROJECT.seeded_runs(experiment)]


@pytest.mark.parametrize(("original", "mini"), EXPERIMENTS)
def test_a_miniature_has_the_same_runs_suites_tasks_and_perplexities(original: str, mini: str) -> None:
    first, second = PROJECT.experiment(original), PROJECT.experiment(mini)
    assert PROJECT.seeded_runs(mini) == PROJECT.seeded_runs(original)
    assert second.minimal_pairs == tuple(miniature(name) for name in first.minimal_pairs)
    assert list(second.finetuning.tasks) == [miniature(name) for name in first.finetuning.tasks]
    assert second.perplexity == first.perplexity


@pytest.mark.parametrize(("original", "mini"), EXPERIMENTS)
def test_a_miniature_is_pretrained_as_its_original_apart_from_sizes(original: str, mini: str) -> None:
    for run in runs(original):
        first, second = settings(original, run), settings(mini, run)
        assert without(second, {"model", *SIZES}) == without(first, {"model", *SIZES}), run
        assert without(second["model"], MODEL_SIZES) == without(first["model"], MODEL_SIZES), run


@pytest.mark.parametrize(("original", "mini"), EXPERIMENTS)
def test_sizes_of_a_miniature_stand_to_each_other_as_those_of_its_original(original: str, mini: str) -> None:
    base_first, base_second = (settings(name, runs(original)[0]) for name in (original, mini))
    for run in runs(original):
        first, second = settings(original, run), settings(mini, run)
        assert second["steps"] == round(base_second["steps"] * first["steps"] / base_first["steps"]), run
        # A run of 0 steps has no batch size.
        if first["steps"]:
            share = base_second["batch_size"] * first["batch_size"] / base_first["batch_size"]
            # Batch sizes are multiples of 4, the divisor of the batch size for long sequences.
            assert second["batch_size"] == 4 * round(share / 4), run
        assert second["model"]["hidden_size"] == base_second["model"]["hidden_size"], run
        widths = first["model"]["intermediate_size"] / base_first["model"]["intermediate_size"]
        assert second["model"]["intermediate_size"] == base_second["model"]["intermediate_size"] * widths, run


@pytest.mark.parametrize(("original", "mini"), EXPERIMENTS)
def test_a_miniature_fine_tunes_by_the_protocol_of_its_original_apart_from_sizes(original: str, mini: str) -> None:
    for task in PROJECT.experiment(original).finetuning.tasks:
        first, second = PROJECT.protocol_of(original, task), PROJECT.protocol_of(mini, miniature(task))
        others = {"base", "selection_metric", *PROTOCOL_SIZES}
        assert without(vars(second), others) == without(vars(first), others), task
        assert len(second.learning_rates) == len(first.learning_rates), task
        assert set(second.seeds) < set(first.seeds), task


@pytest.mark.parametrize(("original", "mini"), EXPERIMENTS)
def test_a_miniature_task_has_the_head_of_its_original_and_scores_the_miniatures_of_its_transfers(
    original: str, mini: str
) -> None:
    for task in PROJECT.experiment(original).finetuning.tasks:
        first, second = PROJECT.task(task), PROJECT.task(miniature(task))
        assert second.head.kind == first.head.kind, task
        assert second.labels == first.labels or first.head.kind == "span_classification", task
        assert {miniature(name) for name in first.transfer_tasks} <= set(second.transfer_tasks), task


@pytest.mark.parametrize("mini", [mini for _, mini in EXPERIMENTS])
def test_a_miniature_needs_no_data_of_the_user_and_few_steps(mini: str) -> None:
    assert all(
        source["name"].startswith("embedded_") for source in raw_inputs(PROJECT, PROJECT.experiment(mini).corpus)
    )
    for task in PROJECT.experiment(mini).finetuning.tasks:
        assert PROJECT.task(task).embedded is not ABSENT, task
    assert sum(settings(mini, run)["steps"] for run in runs(mini)) <= 1_000


def test_the_miniatures_that_tests_run_to_the_end_are_those_that_are_documented() -> None:
    whole = [
        test_scaling_miniature.CONSTRAINED,
        test_scaling_miniature.UNCONSTRAINED,
        test_scaling_miniature.CHECKPOINTS,
        test_babylm_miniature.EXPERIMENT,
        test_multilingual_miniature.EXPERIMENT,
    ]
    run = {
        name: {run for run, made in PROJECT.expansion(name).runs.items() if made.base in models}
        for name, models in RUNS.items()
    }
    run |= {name: set(runs(name)) for name in (*whole, test_translation_miniature.EXPERIMENT, ABLATIONS)}
    text = (PROJECT.folder.parent / "docs" / "experiments.md").read_text(encoding="utf-8")
    table = text.partition("| miniature | models that tests train for all steps |")[2].partition("\n\n")[0]
    documented = {}
    for names, models in re.findall(r"^\| (`.*`) \| (.*) \|$", table, re.MULTILINE):
        for name in re.findall(r"`(\w+)`", names):
            documented[name] = set(runs(name) if models == "all" else re.findall(r"`(\w+)`", models))
    miniatures = [name for name in PROJECT.names("experiment") if name.endswith("_mini")]
    assert documented == {name: run.get(name, set()) for name in miniatures}


@pytest.mark.parametrize("experiment", PROJECT.names("experiment"))
def test_every_job_of_every_experiment_has_settings(experiment: str) -> None:
    block = PROJECT.experiment(experiment)
    for run in PROJECT.seeded_runs(experiment):
        assert Jobs(PROJECT).settings("pretrain", experiment=experiment, run=run.name)
        assert Jobs(PROJECT).settings("export_model", experiment=experiment, run=run.name)
    for task in block.finetuning.tasks:
        assert Jobs(PROJECT).settings("finetune", experiment=experiment, task=task)
    for suite in block.minimal_pairs:
        assert Jobs(PROJECT).settings("score_minimal_pairs", suite=suite)
    for stage in ("measure_perplexity", "summarise", "write_cost", "write_page"):
        assert Jobs(PROJECT).settings(stage, experiment=experiment)
