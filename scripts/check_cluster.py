"""Print the jobs that an experiment or a study would submit to Slurm, and test whether Slurm would accept each command.

The exit status is 1 if there are problems.

For example: python scripts/check_cluster.py --experiment strict
"""

import argparse
import sys

from hatchery.command import run_command
from hatchery.experiment.shipped import open_project
from hatchery.workflow.cluster_check import ASKED, plan, problems, sbatch_text
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.open_workflow import missing_commands
from hatchery.workflow.pieces import endless_trainings, retries_of
from hatchery.workflow.resources import Resources


def main(arguments: argparse.Namespace) -> None:
    """Print the `sbatch` commands, and the problems that Slurm reports."""
    target = f"results/{arguments.experiment}/summary.csv"
    jobs = plan(target, arguments.profile, arguments.snakemake)
    print(f"Jobs that would be submitted for {target}:\n\n{sbatch_text(jobs)}", flush=True)
    missing = missing_commands(ASKED)
    project = open_project()
    retries = retries_of(["--profile", arguments.profile, *arguments.snakemake])
    found = [
        *([] if missing else problems(jobs)),
        *endless_trainings(project.members(arguments.experiment), Resources(Jobs(project)), retries),
    ]
    if missing:
        found.append(
            f"this machine has {missing}, so nothing was tested; run this command on a login node of the cluster"
        )
    for problem in found:
        print(f"error: {problem}", file=sys.stderr)
    if found:
        sys.exit(1)
    print("Slurm would accept all of these jobs.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiment", required=True, help="name of an experiment or a study")
    parser.add_argument("--profile", default="slurm", help="Snakemake profile (default: slurm)")
    parser.add_argument("snakemake", nargs="*", help="further arguments for snakemake, after --")
    run_command(main, parser)
