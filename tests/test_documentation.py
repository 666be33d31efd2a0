"""What the documentation names is there: files, links, functions, families of models, tables of papers."""

import ast
import re
from pathlib import Path

import pytest
import yaml

from hatchery.experiment.project import Project
from hatchery.modeling.families import FAMILIES

REPOSITORY = Path(__file__).parents[1]
LIBRARY = REPOSITORY / "scripts" / "hatchery"
PAGES = [
    *sorted((REPOSITORY / "docs").rglob("*.md")),
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
]
# A path in backquotes, without `<name>`, `*` or `{...}`. What `results/`, `resources/` and `logs/` hold, running makes.
NAMED = re.compile(
    r"`((?:scripts|workflow|config|docs|tests|envs|benchmarks|slurm)/[\w./-]*|[\w./-]+/[\w-]+\.(?:py|smk))`"
)
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
CODE = re.compile(r"`([^`]+)`")
# The folder of a run below an experiment's results.
RUN = re.compile(r"\bresults/(\w+)/\w+/(\w+-s\d+)\b")
# `function()`, `Class.method()` or `TwoWords`, a class.
FUNCTION = re.compile(r"(?:\w+\.)?(\w+)\(\)|([A-Z][a-z]+[A-Z]\w*)")
# Files that a page tells its reader to write.
EXAMPLES = {
    "scripts/count_words.py",
    *(f"config/experiments/{name}.yaml" for name in ("deeper", "rates", "longer", "sizes")),
    "config/studies/my_two_runs.yaml",
}


def _found(name: str) -> Path | None:
    """Files of the library may be named without the folders above it."""
    return next((root / name for root in (REPOSITORY, LIBRARY) if (root / name).exists()), None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_and_link_that_a_page_names_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = {link for link in LINK.findall(text) if "://" not in link and not link.startswith("mailto:")}
    missing = [link for link in links if not (page.parent / link).exists()]
    missing += [name for name in set(NAMED.findall(text)) - EXAMPLES if _found(name) is None]
    assert not missing, f"{page.name} names what is not there: {sorted(missing)}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_target_of_make_that_a_page_names_is_there(page: Path) -> None:
    targets = re.findall(r"^([a-z0-9-]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = re.findall(r"(?:^|`)make ([a-z][a-z0-9-]*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(named) <= set(targets), page.name


def test_every_run_that_a_page_names_in_a_path_is_one_of_its_experiment() -> None:
    project = Project(REPOSITORY / "config")
    named = {found for page in PAGES for found in RUN.findall(page.read_text(encoding="utf-8"))}
    assert named
    for experiment, run in named:
        assert run in {each.name for each in project.seeded_runs(experiment)}, f"{experiment}: {run}"


def _steps() -> list[tuple[str, str]]:
    """Every file that docs/architecture.md follows, and the functions and classes after it."""
    found: list[tuple[str, str]] = []
    for line in (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8").splitlines():
        file = ""
        for code in CODE.findall(line):
            if code.endswith((".py", ".smk", ".yaml", ".j2")) and not re.search(r"[<*{]", code):
                file = code
                found.append((file, ""))
            elif (function := FUNCTION.fullmatch(code)) is not None:
                found.append((file, function[1] or function[2]))
    return found


def test_every_family_of_models_is_documented() -> None:
    models = (REPOSITORY / "docs" / "models.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)`.*\| `scripts/hatchery/modeling/(\w+)/` \|$", models, re.MULTILINE)
    assert {name for name, _ in rows} == FAMILIES.keys() and all(name == folder for name, folder in rows)
    glossary = (REPOSITORY / "docs" / "glossary.md").read_text(encoding="utf-8")
    (family,) = re.findall(r"^\| family \| (.*) \|$", glossary, re.MULTILINE)
    assert set(CODE.findall(family)) == FAMILIES.keys()


def _numbers(text: str) -> set[int]:
    """The numbers in words like "1 to 3 and 5"."""
    spans = re.findall(r"(\d+)(?: to (\d+))?", text)
    return {number for first, last in spans for number in range(int(first), int(last or first) + 1)}


def test_the_tables_of_papers_that_are_promised_are_those_that_are_made() -> None:
    """In the README row of each paper, and in docs/tables.md."""
    config = REPOSITORY / "config"
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    tables = " ".join((REPOSITORY / "docs" / "tables.md").read_text(encoding="utf-8").split())
    for paper, name in (("ltg_bert", "LTG-BERT"), ("elc_bert", "ELC-BERT")):
        made = yaml.safe_load((config / "paper_tables" / f"{paper}.yaml").read_text(encoding="utf-8"))["tables"]
        (promised,) = re.findall(rf"^\| {name}.*Tables ([\d, toand]+)", readme, re.MULTILINE)
        (repeated,) = re.findall(rf"{name}, Tables ([\d, toand]+\d)", tables.partition("Each table is written")[0])
        assert _numbers(promised) == _numbers(repeated) == {int(number) for number in made}
    study = (config / "studies" / "reduced_vocabulary.yaml").read_text(encoding="utf-8")
    (promised,) = re.findall(r"^\| Language modelling.*Tables ([\d, toand]+)", readme, re.MULTILINE)
    assert _numbers(promised) == set(map(int, re.findall(r"\(Table (\d)\)", study)))


def _names(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }


def test_every_step_of_the_three_ways_is_in_the_code() -> None:
    steps = _steps()
    assert len(steps) > 60
    for file, function in steps:
        assert file, f"docs/architecture.md: {function}() stands before any file"
        path = _found(file)
        assert path is not None, f"docs/architecture.md: there is no file {file}"
        if function:
            assert function in _names(path), f"docs/architecture.md: {file} has no {function}"
