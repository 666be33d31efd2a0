"""Statements of the documentation are true: files, links, functions, tables of papers, devices, security."""

import ast
import hashlib
import io
import re
import tokenize
from pathlib import Path

import pytest
import yaml
from yaml.constructor import SafeConstructor

from hatchery.artifacts.yaml_files import _Explainer, _Loader, read_yaml
from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
from hatchery.modeling.families import FAMILIES

REPOSITORY = Path(__file__).parents[1]
LIBRARY = REPOSITORY / "scripts" / "hatchery"
PAGES = [
    *sorted((REPOSITORY / "docs").rglob("*.md")),
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
]


# A path in backquotes, without `<name>`, `*` or `{...}`. Files below `results/`, `resources/` and `logs/` exist only
# after a run.
NAMED = re.compile(
    r"`((?:scripts|workflow|config|docs|tests|envs|benchmarks|slurm)/[\w./-]*|[\w./-]+/[\w-]+\.(?:py|smk))`"
)
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
CODE = re.compile(r"`([^`]+)`")
BLOCK = re.compile(r"^ *```\w*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


# The folder of a run below an experiment's results.
RUN = re.compile(r"\bresults/(\w+)/\w+/(\w+-s\d+)\b")


# A function as `function()` or `Class.method()`, or a class as `TwoWords`.
FUNCTION = re.compile(r"(?:\w+\.)?(\w+)\(\)|([A-Z][a-z]+[A-Z]\w*)")


# Files that a page tells its reader to write.
EXAMPLES = {
    "scripts/count_words.py",
    *(f"config/experiments/{name}.yaml" for name in ("deeper", "rates", "longer", "sizes")),
    "config/studies/my_two_runs.yaml",
}


def _found(name: str) -> Path | None:
    """Return the path of a file; the name of a library file may lack the folders above it."""
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
    assert set(named_targets(page.read_text(encoding="utf-8"))) <= set(targets), page.name


def named_targets(text: str) -> list[str]:
    """Return make targets in blocks of code and in backquotes."""
    blocks = "\n".join(BLOCK.findall(text))
    return re.findall(r"^ *make ([a-z][a-z0-9-]*)", blocks, re.MULTILINE) + re.findall(r"`make ([a-z][a-z0-9-]*)", text)


def test_a_line_of_prose_that_begins_with_make_names_no_target() -> None:
    text = (
        "They\nmake words.\n\n   ```bash\n   make env\n   ```\n\n"
        "`make demo` is\nmake believe.\n\n```\nmake test # all\n```\n"
    )
    assert named_targets(text) == ["env", "test", "demo"]


def test_every_run_that_a_page_names_in_a_path_is_one_of_its_experiment() -> None:
    project = Project(REPOSITORY / "config")
    named = {found for page in PAGES for found in RUN.findall(page.read_text(encoding="utf-8"))}
    assert named
    for experiment, run in named:
        assert run in {each.name for each in project.seeded_runs(experiment)}, f"{experiment}: {run}"


def _steps() -> list[tuple[str, str]]:
    """Return every file that docs/architecture.md names, and the functions and classes named after it."""
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
    """Return the numbers in words like "1 to 3 and 5"."""
    spans = re.findall(r"(\d+)(?: to (\d+))?", text)
    return {number for first, last in spans for number in range(int(first), int(last or first) + 1)}


def test_the_tables_of_papers_that_are_promised_are_those_that_are_made() -> None:
    """Check the README row of each paper, and docs/tables.md."""
    config = REPOSITORY / "config"
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    tables = " ".join((REPOSITORY / "docs" / "tables.md").read_text(encoding="utf-8").split())
    for paper, name in (("ltg_bert", "LTG-BERT"), ("elc_bert", "ELC-BERT"), ("gpt_bert", "GPT-BERT")):
        made = yaml.safe_load((config / "paper_tables" / f"{paper}.yaml").read_text(encoding="utf-8"))["tables"]
        (promised,) = re.findall(rf"^\| {name}.*Tables ([\d, toand]+)", readme, re.MULTILINE)
        (repeated,) = re.findall(rf"{name}, Tables ([\d, toand]+\d)", tables.partition("Each table is written")[0])
        # Table 2 of GPT-BERT belongs to a study.
        studied = {2} if paper == "gpt_bert" else set()
        assert _numbers(promised) - studied == _numbers(repeated) == {int(number) for number in made}
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


SCRIPTS = REPOSITORY / "scripts"
DEVICES = REPOSITORY / "docs" / "gpu_code.md"


# Patterns of code that depends on the kind of device.
ASKS = re.compile(
    r"\b(device|to)\.type\b|\bdevice_type\b|\btorch\.cuda\b|[\"']cuda[\"']|[\"']nccl[\"']|\bfused=|\bcan_read_values\("
    r"|\bautocast\(|\bis_compiling\(|\bpin_memory\b|\bnon_blocking\b"
)
LISTED = re.compile(r"^\| `([\w/]+\.py)` `([\w.<>]+)` \| .+ \| (.+) \|$", re.M)
VERDICT = re.compile(r"untried|tried on .+, \d{4}-\d\d-\d\d")


def code_lines(source: str) -> dict[int, str]:
    """Return the code of every line by its number; comments and strings of several words are no code."""
    lines: dict[int, str] = {}
    end = (0, 0)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_text = token.type == tokenize.COMMENT or (token.type == tokenize.STRING and " " in token.string)
        if not is_text and token.type not in (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
            space = " " if token.start[0] == end[0] and token.start[1] > end[1] else ""
            lines[token.start[0]] = lines.get(token.start[0], "") + space + token.string
        end = token.end
    return lines


def places_that_ask(source: str) -> set[str]:
    """Return the innermost functions, methods and classes with a line that depends on the kind of device."""
    owners: dict[int, str] = {}

    def visit(node: ast.AST, above: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = above
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{above}.{child.name}".lstrip(".")
                owners.update(dict.fromkeys(range(child.lineno, (child.end_lineno or 0) + 1), name))
            visit(child, name)

    visit(ast.parse(source), "")
    return {owners.get(number, "<module>") for number, line in code_lines(source).items() if ASKS.search(line)}


def in_the_code() -> set[tuple[str, str]]:
    found = set()
    for path in SCRIPTS.rglob("*.py"):
        root = SCRIPTS / "hatchery" if SCRIPTS / "hatchery" in path.parents else SCRIPTS
        for place in places_that_ask(path.read_text(encoding="utf-8")):
            found.add((path.relative_to(root).as_posix(), place))
    return found


def test_every_branch_for_a_device_is_listed_as_tried_or_untried() -> None:
    rows = LISTED.findall(DEVICES.read_text(encoding="utf-8"))
    listed = {(file, place) for file, place, _ in rows}
    assert len(rows) == len(listed), "docs/gpu_code.md lists a place twice"
    found = in_the_code()
    assert sorted(found - listed) == [], "docs/gpu_code.md does not list these places"
    assert sorted(listed - found) == [], "docs/gpu_code.md lists these places, which do not ask any more"
    assert [row for row in rows if not VERDICT.fullmatch(row[2])] == []


@pytest.mark.parametrize(
    "line",
    ['if tensor.device.type != "cpu":', "torch.cuda.synchronize()", "AdamW(groups, fused=True)", "x.pin_memory()"],
)
def test_a_branch_is_found_by_its_function_and_not_in_texts(line: str) -> None:
    source = f'"""It asks torch.cuda here."""\nclass A:\n    def b(self):\n        # torch.cuda\n        {line}'
    source += "\n            pass\n" if line.endswith(":") else "\n"
    assert places_that_ask(source) == {"A.b"}


def test_every_file_that_the_security_notes_name_exists(repository: Path) -> None:
    text = (repository / "SECURITY.md").read_text(encoding="utf-8")
    modules = re.findall(r"`([a-z_/]+\.py)`", text)
    assert len(modules) >= 4
    library = repository / "scripts" / "hatchery"
    assert [name for name in modules if not (library / name).is_file() and not (repository / name).is_file()] == []


def test_models_of_others_run_no_code_as_the_security_notes_say(repository: Path) -> None:
    library = repository / "scripts" / "hatchery"
    sources = {path.relative_to(library).as_posix(): path.read_text("utf-8") for path in library.rglob("*.py")}
    assert '"trust_remote_code": False' in sources["evaluation/baselines/loading.py"]
    for name, text in sources.items():
        assert not re.search(r"allow_pickle=True|weights_only=False|unsafe_load|full_load", text), name
        assert "yaml.load(" not in text or name == "artifacts/yaml_files.py", name
        for call in re.findall(r"torch\.load\([^)]*\)", text):
            assert "weights_only=True" in call, name


def test_yaml_makes_no_objects_as_the_security_notes_say(tmp_path: Path) -> None:
    for loader in (_Loader, _Explainer):
        assert issubclass(loader, SafeConstructor)
        assert set(loader.yaml_constructors) == set(SafeConstructor.yaml_constructors)
    path = tmp_path / "evil.yaml"
    for tag in ("object/apply:os.getcwd []", "name:os.getcwd ''", "object:os.PathLike {}", "module:os ''"):
        path.write_text(f"a: !!python/{tag}\n", encoding="utf-8")
        with pytest.raises(ConfigError, match=r"evil\.yaml:1: could not determine a constructor for the tag"):
            read_yaml(path)


def test_pages_forbid_scripts_as_the_security_notes_say(repository: Path) -> None:
    page = (repository / "scripts" / "hatchery" / "rendering" / "templates" / "document.html.j2").read_text(
        encoding="utf-8"
    )
    assert "Content-Security-Policy" in page and "default-src 'none'" in page


def test_the_golden_files_are_the_listed_ones_byte_by_byte(golden_directory: Path) -> None:
    listed = dict(
        reversed(line.split("  "))
        for line in (golden_directory / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    )
    found = {
        path.relative_to(golden_directory).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in golden_directory.rglob("*")
        if path.is_file() and path.name not in ("README.md", "SHA256SUMS")
    }
    assert found == listed
