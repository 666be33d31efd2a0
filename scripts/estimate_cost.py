"""Estimate FLOPs, run time and disk space of an experiment or a study from its settings, without data."""

import argparse
import json
from pathlib import Path

from hatchery.command import run_command
from hatchery.experiment.shipped import open_project
from hatchery.workflow.cost_estimate import cost_settings, estimate, shards_on_disk
from hatchery.workflow.cost_table import cost_markdown
from hatchery.workflow.jobs import Jobs


def main(arguments: argparse.Namespace) -> None:
    """Print the estimated cost of the experiment, or of each experiment of a study, and the size of existing token
    shards.
    """
    planned = {"planned_device": arguments.device, "planned_mfu": arguments.mfu, "gpus_per_node": arguments.devices}
    overrides = {key: value for key, value in planned.items() if value is not None}
    if arguments.devices is not None:
        overrides["nodes"] = 1
    jobs = Jobs(
        open_project(arguments.config, given=[("the command line", {"cluster": overrides})] if overrides else ())
    )
    pages = []
    for experiment in jobs.project.members(arguments.experiment):
        jobs.project.check("experiment", experiment)
        settings = cost_settings(json.loads(jobs.settings("write_cost", experiment=experiment)))
        shards = shards_on_disk(Path(jobs.results.tokens(experiment)))
        pages.append(cost_markdown(settings, estimate(settings), shards))
    print("\n".join(pages), end="")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experiment", help="name of an experiment or a study")
    parser.add_argument("--config", type=Path, default=Path("config"), help="the folder of the configuration")
    parser.add_argument("--device", help="device to plan for, instead of cluster.planned_device")
    parser.add_argument(
        "--devices", type=int, help="number of devices to plan for, instead of cluster.nodes x cluster.gpus_per_node"
    )
    parser.add_argument(
        "--mfu", type=float, help="model FLOPs utilisation to plan with (0 to 1), instead of cluster.planned_mfu"
    )
    run_command(main, parser)
