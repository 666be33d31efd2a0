"""Show a rule, and one of its jobs as an example: inputs, outputs, settings, resources and command."""

import argparse

from hatchery.command import run_command
from hatchery.sanitize import visible
from hatchery.workflow.example_job import example_text


def main(arguments: argparse.Namespace) -> None:
    """Print the rule, and the first job of the rule in the plan for the targets."""
    print(visible(example_text(arguments.rule, arguments.targets)), end="")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rule", help="name of a rule")
    parser.add_argument(
        "targets", nargs="+", metavar="target", help="files in results/ that the workflow makes with a job of the rule"
    )
    run_command(main, parser)
