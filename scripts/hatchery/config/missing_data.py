"""Raw inputs that a plan needs and that are not there: all of them at once, before the first job.

Snakemake alone knows which sources a target needs, so the question is asked with the jobs that it has planned.
"""

from collections.abc import Iterable
from typing import Any

from hatchery.config.block_bodies import without
from hatchery.config.project import Project
from hatchery.config.terms import about
from hatchery.sources.presence import path_problem, source_problem
from hatchery.sources.settings import source_settings

REGISTER = "register_source"
"""The rule that reads a raw input first."""


def usable_path(project: Project, source: str) -> str | None:
    """Where the raw input called `source` lies on this machine; None where it is not there or has no path."""
    path = project.config["data"].get(source, {"path": None})["path"]
    return None if path is None or path_problem(path) is not None else str(path)


def missing_sources(project: Project, sources: Iterable[str]) -> list[str]:
    """One line for each of these raw inputs that cannot be had: what is missing, where to get it, what to set."""
    lines = []
    for source in sorted(set(sources)):
        if source.startswith("embedded_") or source not in project.config["data"]:
            continue
        block = without(project.config["data"][source], *about(project, source))
        problem = source_problem(source_settings({"name": source, **block, **about(project, source)}))
        if problem is not None:
            lines.append(problem)
    return lines


def planned_sources(dag: Any) -> list[str]:
    """The raw inputs that jobs of a DAG of Snakemake register, also after a dry run, which takes them for finished."""
    jobs = dag.needrun_jobs(exclude_finished=False)
    return sorted(job.wildcards.source for job in jobs if job.rule.name == REGISTER)
