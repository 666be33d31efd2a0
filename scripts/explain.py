"""Show the jobs that Snakemake would run, their reasons, the cost of pretraining, and missing raw data. No job is run.

For example: python scripts/explain.py results/demo/summary.csv
"""

import argparse
import signal
from pathlib import Path

from hatchery.command import run_command
from hatchery.experiment.raw_inputs import REGISTER, missing_sources
from hatchery.experiment.shipped import open_project
from hatchery.workflow.explanation import by_rule, planned_cost_text, planned_costs, reasons_text
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.pieces import endless_trainings, retries_of
from hatchery.workflow.planned_jobs import planned_jobs
from hatchery.workflow.resources import Resources


def main(arguments: argparse.Namespace) -> None:
    """Print the plan for the targets: the jobs, their reasons, the cost of pretraining, and missing raw data."""
    planned = planned_jobs(arguments.targets, arguments.project)
    if not planned:
        print("no job would run: all requested results are up to date")
        return
    jobs = Jobs(open_project(arguments.project / "config"))
    named = [*(target.split("/")[1] for target in arguments.targets if target.startswith("results/"))]
    named += [job.wildcards["experiment"] for job in planned if "experiment" in job.wildcards]
    project = jobs.project
    known = [name for name in dict.fromkeys(named) if name in project.names("experiment") or project.is_study(name)]
    jobs.learn_names(dict.fromkeys(part for name in known for part in project.members(name)))
    print(reasons_text(by_rule(planned, jobs, arguments.project), arguments.full))
    costs = planned_costs(planned, jobs)
    print(planned_cost_text(costs, jobs) if costs else "No model would be pretrained.\n", end="")
    trained = dict.fromkeys(one.experiment for one in costs)
    for line in endless_trainings(trained, Resources(jobs), retries_of()):
        print(f"note: on the cluster, {line}")
    if missing := missing_sources(jobs.project, [job.wildcards["source"] for job in planned if job.rule == REGISTER]):
        print("\nMissing raw data; no job starts before these data exist:")
        print("\n".join(f"- {line}" for line in missing))


if __name__ == "__main__":
    # If the program that reads the output exits first, as `head` does, end without a message.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="+", help="files in results/, named as for snakemake")
    parser.add_argument("--full", action="store_true", help="show all changes, without shortening their texts")
    parser.add_argument("--project", type=Path, default=Path(), help="the folder with Snakefile, config/ and results/")
    run_command(main, parser)
