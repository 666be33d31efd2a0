"""A misspelt target, or a file of the configuration with a wrong name, ends in one line with what was meant."""

import re
import shutil
import sys
from pathlib import Path

import pytest

from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
from hatchery.settings.fields import NAME
from hatchery.workflow.invocation import Request, read_request
from hatchery.workflow.plan_checks import asked_blocks, check_targets, unknown_target

PATTERNS = [
    "results/{experiment}/summary.csv",
    "results/{experiment}/index.html",
    "results/{experiment}/figures/{figure}.svg",
    "results/{experiment}/export/{run}/manifest.json",
    "results/corpora/{corpus}/manifest.json",
    "results/tokens/{corpus}/{tokenizer}/manifest.json",
    "results/tokenizer_sweeps/{sweep}/manifest.json",
    "results/settings/{digest}.json",
]

MISSPELT = {
    "results/demo/sumary.csv": "sumary.csv: no rule makes this file; did you mean 'results/demo/summary.csv'?",
    "results/demo/figures/phenomana.svg": "did you mean 'results/demo/figures/phenomena.svg'?",
    "results/corpra/demo/manifest.json": "did you mean 'results/corpora/demo/manifest.json'?",
    "results/dmeo/sumary.csv": "did you mean 'results/demo/summary.csv'?",
    "./results/demo/summary.csv": "did you mean 'results/demo/summary.csv'?",
    "results/demo": "did you mean 'results/demo/index.html'?",
    "sumarise": "did you mean 'summarise'?",
    "results/tokens/demo/demoo/manifest.json": "got 'demoo', no such tokenizer; did you mean 'demo'? There are:",
    "something": "ask for results/<experiment>/summary.csv or index.html, with one of the experiments bnc,",
}


@pytest.mark.parametrize("target", MISSPELT)
def test_a_target_that_nothing_makes_names_the_nearest(target: str, repository: Path) -> None:
    said = unknown_target(target, PATTERNS, ["summarise", "all"], Project(repository / "config"))
    assert MISSPELT[target] in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("file", "target", "expected"),
    [
        ("my-exp.yaml", "results/my-exp/summary.csv", "rename the file to my_exp.yaml"),
        ("my exp.yaml", "results/my exp/summary.csv", "rename the file to my_exp.yaml"),
        ("größe.yaml", "results/größe/summary.csv", "rename the file to grosse.yaml"),
        ("my-exp.yaml", "results/my_exp/summary.csv", "rename the file to my_exp.yaml"),
        ("x.yml", "results/x/summary.csv", "expected the ending .yaml; rename the file to x.yaml"),
        ("x" * 151 + ".yaml", f"results/{'x' * 151}/summary.csv", f"rename the file to {'x' * 150}.yaml"),
    ],
)
def test_a_file_with_a_wrong_name_is_told_to_be_renamed(
    file: str, target: str, expected: str, configuration: Path
) -> None:
    shutil.copy(configuration / "experiments/demo.yaml", configuration / "experiments" / file)
    said = unknown_target(target, PATTERNS, [], Project(configuration))
    assert said.startswith(f"{configuration / 'experiments' / file}: expected ")
    assert expected in said


def test_a_block_with_a_wrong_name_is_told_where_it_is_named(configuration: Path) -> None:
    shutil.copy(configuration / "corpora/demo.yaml", configuration / "corpora/my-corpus.yaml")
    path = configuration / "experiments/demo.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("corpus: demo", "corpus: my-corpus"), encoding="utf-8")
    with pytest.raises(
        ConfigError, match=r"my-corpus\.yaml: expected a name of .*; rename the file to my_corpus\.yaml"
    ):
        Project(configuration).check("experiment", "demo")


def test_a_target_that_is_made_leads_to_its_blocks(repository: Path) -> None:
    project = Project(repository / "config")
    assert asked_blocks("results/demo/summary.csv", PATTERNS, project) == [("experiment", "demo")]
    assert asked_blocks("results/tokens/bnc/bnc/manifest.json", PATTERNS, project) == [
        ("corpus", "bnc"),
        ("tokenizer", "bnc"),
    ]
    assert asked_blocks("results/tokenizer_sweeps/demo/manifest.json", PATTERNS, project) == [
        ("tokenizer_sweep", "demo")
    ]
    assert asked_blocks("results/settings/0123456789abcdef.json", PATTERNS, project) == []
    assert asked_blocks("results/models/ltg-0123.json", ["results/models/{model}.json"], project) == []


def test_all_misspelt_targets_are_told_together(repository: Path) -> None:
    targets = ["results/stirct/summary.csv", "results/demo/sumary.csv", "results/demo/summary.csv"]
    made = dict(zip(targets, (True, False, True), strict=True))
    asked, problems = check_targets(targets, PATTERNS, [], made, Project(repository / "config"))
    assert asked == [("experiment", "demo")]
    assert [line.partition(":")[0] for line in problems.lines] == targets[:2]
    assert "did you mean 'strict'?" in problems.lines[0]


def test_the_names_of_blocks_are_those_that_the_rules_take(repository: Path) -> None:
    text = (repository / "Snakefile").read_text(encoding="utf-8")
    constraints = dict(re.findall(r'^    (\w+)=r"(.*)",$', text, flags=re.MULTILINE))
    assert {constraints[kind] for kind in ("experiment", "corpus", "tokenizer", "suite", "task", "sweep")} == {NAME}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-n", "results/demo/summary.csv"], Request(("results/demo/summary.csv",), "local", True)),
        (["--cores", "2", "--report", "report.html", "--", "a", "b"], Request(("a", "b"), "local", False)),
        (["--profile", "slurm", "a"], Request(("a",), "slurm", False)),
        (["--config", "x=1", "--until", "pretrain", "-c1"], Request((), "local", False)),
        (["--unlock", "a"], None),
    ],
)
def test_targets_are_told_from_the_values_of_options(
    words: list[str], expected: Request | None, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    assert read_request(["/somewhere/bin/snakemake", *words]) == expected
    assert read_request(["/lib/snakemake/__main__.py", *words]) == expected
    assert read_request([sys.executable, *words]) is None
