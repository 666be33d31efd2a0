"""The experiments that stand in the documentation can be planned as they stand there."""

import re
import shutil
from pathlib import Path

import pytest

from hatchery.experiment.project import Project
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.registry import stage_settings

DOCS = Path(__file__).resolve().parents[2] / "docs"
# A block of YAML whose first line is the name of its file.
EXAMPLE = re.compile(r"^```yaml\n# (\w+)\.yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES = {name: text for page in sorted(DOCS.glob("*.md")) for name, text in EXAMPLE.findall(page.read_text())}


@pytest.fixture
def project(tmp_path: Path, repository: Path) -> Project:
    shutil.copytree(repository / "config", tmp_path / "config")
    for name, text in EXAMPLES.items():
        (tmp_path / "config/experiments" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return Project(tmp_path / "config")


def test_sweeps_and_continued_runs_have_examples() -> None:
    assert {"rates", "longer"} <= EXAMPLES.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_can_be_planned(project: Project, name: str) -> None:
    for run in project.seeded_runs(name):
        stage_settings(project, "pretrain", experiment=name, run=run.name)
    stage_settings(project, "write_cost", experiment=name)


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
    """The other cells of the table of differences of a page in docs/papers, by the point of the row."""
    text = (DOCS / "papers" / f"{page}.md").read_text(encoding="utf-8")
    section = text.partition("\n## Differences\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    assert rows and {len(row) for row in rows} == {len(rows[0])} and all(all(row) for row in rows)
    return {point.removesuffix(" *"): cells for point, *cells in rows[1:]}


def test_the_table_of_the_reduced_vocabulary_paper_says_what_its_experiments_do(project: Project) -> None:
    rows = differences("reduced-vocabulary")
    told = {point: cells[2] for point, cells in rows.items()}
    constrained, unconstrained = (f"reduced_vocabulary_{part}" for part in ("constrained", "unconstrained"))
    pretraining = project.experiment(constrained).pretraining
    assert told["updates"] == f"{pretraining.steps:,}" != rows["updates"][0].split(",")[0]
    larger = [run for run, name in project.expansion(constrained).sets().items() if name == "larger"]
    overrides = {project.experiment(constrained).runs[run].pretraining.optimizer.learning_rate for run in larger}
    assert told["peak rate"] == ", ".join(map(scientific, [*overrides, pretraining.optimizer.learning_rate]))
    rate = project.experiment(unconstrained).pretraining.optimizer.learning_rate
    assert told["peak rate on any words"] == f"{scientific(rate)} for all ten"
    tasks = {task: project.protocol_of(constrained, task) for task in project.experiment(constrained).finetuning.tasks}
    assert {told["warm-up of fine-tuning"]} == {
        f"{protocol.warmup_fraction:.0%}".replace("%", " %") for protocol in tasks.values()
    }
    for rate, names in (("2e-5", ("mnli", "qqp")), ("6e-5", ("qnli", "sst2")), ("2e-4", ("cola", "wnli"))):
        assert rate in told["peak rate of fine-tuning"]
        assert {
            scientific(*tasks[f"rv_glue_{name}{end}"].learning_rates) for name in names for end in ("", "_filtered")
        } == {rate}
    tokenizer = project.tokenizer(unconstrained)
    assert told["tokenizer for any words"] == f"{tokenizer.vocabulary_size:,}"
    assert "with_larger_models" in told["larger models in Figures 2 and 3"]
    assert "with_larger_models" in project.study("reduced_vocabulary").analyses


def scientific(value: float) -> str:
    return f"{value:.0e}".replace("e-0", "e-")


def test_the_table_of_the_natural_bias_paper_says_what_its_experiments_do(project: Project) -> None:
    told = {point: cells[1] for point, cells in differences("natural-bias").items()}
    experiments = [
        name for name in project.names("experiment") if name.startswith("natural_bias") and "_mini" not in name
    ]
    steps = {project.experiment(name).pretraining.steps for name in experiments}
    assert told["steps"].startswith(" ".join(f"{number:,}" for number in steps) + " in every experiment")
    assert "development_translations" in told["chosen weights"]
    wmt, other = (project.experiment(f"natural_bias_{name}").pretraining for name in ("wmt14_de_en", "iwslt14_de_en"))
    assert told["batches"].startswith(f"{other.batch_size:,} target tokens; {wmt.batch_size:,} for WMT")
    assert f"{project.tokenizer('afromt_run_en').vocabulary_size:,}" in told["tokenizer of AfroMT"]


def test_the_dump_of_wikipedia_and_the_splitter_of_sentences_stand_among_the_differences() -> None:
    found = differences("ltg-bert")
    sentences, dump = found["sentences of Wikipedia and BookCorpus (Appendix F)"], found["Wikipedia (Appendix F)"]
    assert "spaCy" in sentences[0] and "Punkt" in sentences[2]
    assert ".xml.bz2" in dump[0] and "outside the workflow" in dump[2]
