"""The workflow of a checkout runs in any folder, and as a module of another workflow."""

from pathlib import Path
from typing import Any

import pytest
from projects import snakemake

from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
from hatchery.experiment.shipped import SHIPPED, link_tables, open_project
from hatchery.stage import stage_called
from hatchery.workflow.open_workflow import frozen_configuration
from hatchery.workflow.planned_jobs import dag_of, opened

PAGE = "results/demo/index.html"
MODULE = """
module hatchery:
    snakefile: "{snakefile}"
    config: config

use rule * from hatchery{names}

rule lines:
    input: "results/demo/cost.csv"
    output: "lines.txt"
    shell: "wc -l < {{input}} > {{output}}"
"""


def plan(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return Snakemake's plan for the page of the demo in a folder, by the outputs of the jobs."""
    monkeypatch.chdir(folder)
    with opened(["--dry-run", "--", PAGE]) as (parsed, api):
        api.dag(dag_settings=dag_of(parsed, everything=True)).execute_workflow(executor="dryrun")
        return {
            " ".join(job.output): (job.rule.name, [*job.input], [*job.log], sorted(map(str, job.non_derived_params)))
            for job in api._workflow.dag.jobs
        }


def test_an_empty_folder_has_the_plan_of_the_checkout(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert plan(tmp_path, monkeypatch) == plan(repository, monkeypatch)


def test_a_job_in_another_folder_calls_the_program_of_the_checkout_and_is_made_once(
    repository: Path, tmp_path: Path
) -> None:
    own = tmp_path / "config/experiments"
    own.mkdir(parents=True)
    (own / "mine.yaml").write_text("base: demo\ndescription: My own.\n", encoding="utf-8")
    command = ["--snakefile", str(repository / "Snakefile"), "--cores", "1", "--", "results/mine/cost.md"]
    done = snakemake(tmp_path, *command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "results/mine/cost.html").is_file() and (tmp_path / "logs/write_cost/mine.log").is_file()
    assert "Nothing to be done" in snakemake(tmp_path, *command).stderr
    assert {path.name for path in tmp_path.iterdir()} == {".snakemake", "config", "logs", "results"}


@pytest.mark.parametrize("names", ["", " as hatchery_*"])
def test_a_module_makes_what_another_workflow_reads(names: str, repository: Path, tmp_path: Path) -> None:
    text = MODULE.format(snakefile=repository / "Snakefile", names=names)
    (tmp_path / "Snakefile").write_text(text, encoding="utf-8")
    done = snakemake(tmp_path, "--cores", "1", "--", "lines.txt")
    assert done.returncode == 0, done.stdout + done.stderr
    assert int((tmp_path / "lines.txt").read_text()) > 2
    assert list((tmp_path / "results/settings").glob("*.json"))


def test_a_prefix_of_a_module_is_refused(repository: Path, tmp_path: Path) -> None:
    text = MODULE.format(snakefile=repository / "Snakefile", names="").replace(
        "    config", '    prefix: "x"\n    config', 1
    )
    (tmp_path / "Snakefile").write_text(text, encoding="utf-8")
    assert "got `prefix` or `replace_prefix`" in snakemake(tmp_path, "-n", "--", "lines.txt").stderr


def test_rules_of_a_module_are_known_by_the_names_of_their_stages() -> None:
    for rule in ("summarise", "hatchery_summarise"):
        assert stage_called(rule) == "summarise"
    assert stage_called("hatchery_finetune_tasks") == "finetune_tasks"
    assert stage_called("mine") == "mine"


def test_blocks_of_a_project_come_before_shipped_ones(tmp_path: Path) -> None:
    shipped = Project(SHIPPED)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments/demo.yaml").write_text("base: strict\ndescription: Mine.\n", encoding="utf-8")
    (tmp_path / "config.yaml").write_text("data:\n  letters: {path: letters}\n", encoding="utf-8")
    project = open_project(tmp_path)
    assert project.experiment("demo").description == "Mine."
    assert project.place("experiment", "demo") == str(tmp_path / "experiments/demo.yaml")
    assert project.names("experiment") == shipped.names("experiment")
    assert project.experiment("strict") == shipped.experiment("strict")
    assert project.config.data.keys() == {*shipped.config.data, "letters"}
    with pytest.raises(ConfigError, match=r"got 'strct', no such experiment; did you mean 'strict'"):
        project.require("experiment", "strct", "here")


def test_tables_of_papers_are_linked_where_a_project_has_none_and_follow_a_checkout_that_moved(tmp_path: Path) -> None:
    own, old = tmp_path / "config", tmp_path / "old"
    (own / "published/values").mkdir(parents=True)
    (own / "published/values/elc_bert.csv").write_text("mine", encoding="utf-8")
    (old / "scripts/hatchery").mkdir(parents=True)
    (old / "config").mkdir()
    (own / "paper_tables").symlink_to(old / "config/paper_tables")
    link_tables(own)
    assert (own / "paper_tables").readlink() == SHIPPED / "paper_tables"
    assert (own / "published/corpora").readlink() == SHIPPED / "published/corpora"
    assert (own / "published/values/elc_bert.csv").read_text() == "mine"
    table = own / "published/values/ltg_bert.csv"
    assert table.is_symlink() and table.lstat().st_mtime == table.stat().st_mtime
    mine = tmp_path / "mine"
    mine.mkdir()
    (own / "published/babylm").unlink()
    (own / "published/babylm").symlink_to(mine)
    link_tables(own)
    assert (own / "published/babylm").readlink() == mine


def test_jobs_of_a_cluster_read_the_shipped_blocks_of_the_moment_when_they_were_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HATCHERY_CONFIGURATION", "")
    Path("config").mkdir()
    link_tables(Path("config"))
    frozen_configuration("config", is_main_process=True)
    copy = frozen_configuration("config", is_main_process=False)
    assert copy != Path("config")
    assert open_project(copy).experiment("strict") == open_project("config").experiment("strict")
    assert (copy / "published/values/ltg_bert.csv").is_file()


def test_jobs_of_a_cluster_read_a_copy_of_the_checkout_s_own_configuration_too(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HATCHERY_CONFIGURATION", "")
    for folder in (repository / "config", tmp_path / "config"):
        # By name, these blocks come before and after the shipped blocks.
        if folder.parent == tmp_path:
            for name in ("corpora/mine.yaml", "tasks/mine.yaml"):
                (folder / name).parent.mkdir(parents=True)
                (folder / name).write_text("description: mine\n", encoding="utf-8")
        frozen_configuration(folder, is_main_process=True)
        copy = frozen_configuration(folder, is_main_process=False)
        assert copy.parent == tmp_path / ".snakemake/configurations"
        assert (copy / "shipped").is_dir() == (folder.parent == tmp_path)
