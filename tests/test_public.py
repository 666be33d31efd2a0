"""`import hatchery` from anywhere is cheap; its functions read results and experiments without Snakemake."""

import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import polars as pl
import pytest
from write_environments import canonical_name

import hatchery
from hatchery.analysis.tidy_tables import MEASUREMENTS, TABLES, write_rows
from tests.library_imports import imported_modules

ROW = {"experiment": "mine", "model": "a", "run": "a-s1", "seed": 1, "metric": "accuracy_percent", "value": 61.5}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for table in TABLES:
        write_rows(tmp_path / f"{table.name}.parquet", table, [ROW] if table is MEASUREMENTS else [])
    return tmp_path


def test_importing_loads_none_of_the_large_packages_and_the_package_experiment_stays_one(repository: Path) -> None:
    program = (
        "import sys, hatchery\n"
        "large = {'torch', 'polars', 'pyarrow', 'numpy', 'pydantic', 'snakemake'}\n"
        "assert not large & set(sys.modules), large & set(sys.modules)\n"
        "from hatchery.experiment.project import Project\n"
        "import hatchery.experiment\n"
        "assert callable(hatchery.experiment) and hatchery.experiment.project.Project is Project\n"
        "import hatchery.export.direct\n"
        "assert callable(hatchery.export) and hatchery.export.direct.export\n"
        "found = hatchery.experiment('config/experiments/demo.yaml')\n"
        "runs = [f'{run}-s{seed}' for run in ('random', 'ltg_bert', 'elc_bert') for seed in (42, 43, 44)]\n"
        "assert found.runs['run'].to_list() == runs\n"
        "assert found.settings('ltg_bert-s42')['seed'] == 42\n"
        "assert found.costs['run'].to_list() == found.runs['run'].to_list() and min(found.costs['parameters']) > 0\n"
        "assert 'snakemake' not in sys.modules and 'transformers' not in sys.modules\n"
    )
    surroundings = {"PYTHONPATH": str(repository / "scripts")}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=repository, env=surroundings, capture_output=True, text=True, timeout=100
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_the_package_holds_every_file_of_the_library_and_leaves_the_checkout_as_it_was(
    repository: Path, tmp_path: Path
) -> None:
    pytest.importorskip("hatchling", reason="this environment is older than the lock file: make env")

    def run(*command: str) -> str:
        return subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=300, check=True).stdout

    before = run("git", "status", "--porcelain", "--ignored")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-compile")
    run(*pip, "--target", str(tmp_path), str(repository))
    assert run("git", "status", "--porcelain", "--ignored") == before
    files = {line.removeprefix("scripts/") for line in run("git", "ls-files", "scripts/hatchery").splitlines()}
    files |= {f"hatchery/{line}" for line in run("git", "ls-files", "config").splitlines()}
    installed = {path.relative_to(tmp_path).as_posix() for path in (tmp_path / "hatchery").rglob("*") if path.is_file()}
    assert installed == files
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    library = (repository / "scripts/hatchery").rglob("*.py")
    imported = {module.partition(".")[0] for path in library for module in imported_modules(path)}
    distributions = packages_distributions()
    providers = {canonical_name(name) for top in imported for name in distributions.get(top, [])}
    assert set(map(canonical_name, project["dependencies"])) <= providers
    program = "import hatchery; hatchery.model; hatchery.experiment; print(hatchery.__file__)"
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env={}, capture_output=True, text=True, timeout=100, check=True
    )
    assert Path(found.stdout.strip()).parent == tmp_path / "hatchery"


def test_results_are_the_tidy_tables_as_frames(folder: Path) -> None:
    results = hatchery.results(folder)
    assert results.measurements.filter(pl.col("value") > 61)["run"].to_list() == ["a-s1"]
    for table in TABLES:
        assert getattr(results, table.name).columns == table.names


def test_runs_of_an_experiment_have_their_own_models_seeds_and_names(tmp_path: Path, repository: Path) -> None:
    shutil.copytree(repository / "config", tmp_path / "config")
    file = tmp_path / "config/experiments/demo.yaml"
    text = file.read_text(encoding="utf-8").replace("small, seeds: [42, 43, 44]", "small")
    text = text.replace("elc_bert: {model: elc_demo_small}", "elc_bert: {model: elc_demo_small, seeds: [3, 1]}")
    file.write_text(text, encoding="utf-8")
    assert hatchery.experiment(file).runs.rows() == [
        ("random-s42", "random", 42, "random, seed 42"),
        ("ltg_bert-s42", "ltg_bert", 42, "ltg_bert, seed 42"),
        ("elc_bert-s3", "elc_bert", 3, "elc_bert, seed 3"),
        ("elc_bert-s1", "elc_bert", 1, "elc_bert, seed 1"),
    ]


def test_what_is_missing_or_altered_is_an_exception_that_says_so(folder: Path, repository: Path) -> None:
    (folder / "measurements.parquet").write_bytes(b"altered")
    project = folder / "project"
    trained = project / "results/demo/pretraining/ltg_bert-s42"
    trained.mkdir(parents=True)
    (trained / "manifest.json").touch()
    (project / "results/demo/measurements.parquet").touch()
    for step in range(40):
        (project / f"milestones/step_{step}").mkdir(parents=True)
        (project / f"milestones/step_{step}/manifest.json").touch()
    for ask, message in (
        (
            lambda: hatchery.results(folder).measurements,
            r"measurements\.parquet: has the SHA-256 4aa009153649a0a7, expected [0-9a-f]{16} ",
        ),
        (
            lambda: hatchery.results(folder).summary,
            r"summary\.parquet: the file is missing; run the same command again to make the file",
        ),
        (
            lambda: hatchery.results(folder / "none"),
            "contains no tables; expected a folder such as results/demo$",
        ),
        (lambda: hatchery.results(project / "results/dem"), "snakemake results/dem/summary.csv; did you mean 'demo'"),
        (lambda: hatchery.experiment("demo"), "expected a file such as config/experiments/demo.yaml"),
        (lambda: hatchery.experiment(repository / "config/experiments/dem.yaml"), "did you mean 'demo'"),
        (lambda: hatchery.model(project), "this folder contains no model; expected a folder such as results/[^;]*$"),
        (lambda: hatchery.model(project / "milestones/step_50"), r"results/[^;]*; did you mean 'step_5'\?$"),
        (lambda: hatchery.model(trained.with_name("ltg_bert")), "did you mean 'ltg_bert-s42'"),
        (lambda: hatchery.model(trained / "manifest.json"), "the manifest cannot be read"),
    ):
        with pytest.raises(hatchery.HatcheryError, match=message):
            ask()
    with pytest.raises(AttributeError, match="no attribute 'result'"):
        hatchery.result  # noqa: B018
