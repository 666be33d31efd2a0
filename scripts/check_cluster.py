"""Print the jobs that an experiment or a study would send to Slurm, and check the cluster. Status 1 on errors.

For example: python scripts/check_cluster.py --experiment strict
"""

import argparse
import sys

from hatchery.command import load_settings, run_command
from hatchery.experiment.project import Project
from hatchery.workflow.cluster_check import check_cluster, sbatch_text
from hatchery.workflow.cost_estimate import cost_settings, estimate
from hatchery.workflow.external import ask
from hatchery.workflow.findings import failed, findings_text
from hatchery.workflow.layout import Layout
from hatchery.workflow.planned_jobs import plan


def main(arguments: argparse.Namespace) -> None:
    """Print the lines and the findings."""
    target = f"results/{arguments.experiment}/summary.csv"
    layout = Layout(Project("config"))
    settings = [layout.settings("write_cost", experiment=part) for part in layout.project.parts(arguments.experiment)]
    costs = [cost for each in settings for cost in estimate(cost_settings(load_settings(each)))]
    planned = plan(target, arguments.profile, arguments.snakemake)
    print(f"What would be sent for {target}, at most {planned.jobs_at_once} jobs at once:\n")
    print(sbatch_text(planned.jobs), flush=True)
    found = check_cluster(planned, costs, target, ask, None if arguments.no_jobs else arguments.wait)
    print(findings_text(found), end="")
    if failed(found):
        sys.exit(1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiment", required=True, help="an experiment or a study, by its name")
    parser.add_argument("--profile", default="slurm", help="Snakemake profile (default: slurm)")
    parser.add_argument("--no-jobs", action="store_true", help="do not submit the one-minute jobs that check the nodes")
    parser.add_argument("--wait", type=float, default=300, help="seconds to wait for these jobs (default: 300)")
    parser.add_argument("snakemake", nargs="*", help="after --: further arguments that you will give to snakemake")
    run_command(main, parser)
