"""Print the jobs that an experiment or a study would send to Slurm, and ask Slurm about each kind; 1 on problems.

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
    """Print the lines and what is wrong with them."""
    target = f"results/{arguments.experiment}/summary.csv"
    jobs = plan(target, arguments.profile, arguments.snakemake)
    print(f"What would be sent for {target}:\n\n{sbatch_text(jobs)}", flush=True)
    missing = missing_commands(ASKED)
    project = open_project()
    retries = retries_of(["--profile", arguments.profile, *arguments.snakemake])
    found = [
        *([] if missing else problems(jobs)),
        *endless_trainings(project.members(arguments.experiment), Resources(Jobs(project)), retries),
    ]
    if missing:
        found.append(f"this machine has {missing}, so Slurm was not asked; call it on a login node of the cluster")
    for problem in found:
        print(f"error: {problem}", file=sys.stderr)
    if found:
        sys.exit(1)
    print("Slurm would take all of these jobs.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiment", required=True, help="an experiment or a study, by its name")
    parser.add_argument("--profile", default="slurm", help="Snakemake profile (default: slurm)")
    parser.add_argument("snakemake", nargs="*", help="after --: further arguments that you will give to snakemake")
    run_command(main, parser)
