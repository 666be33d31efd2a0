"""Show an example of a rule's jobs: what it reads and writes, its settings, its resources and its command."""

import argparse

from hatchery.command import run_command
from hatchery.sanitize import visible
from hatchery.workflow.example_job import example_text


def main(arguments: argparse.Namespace) -> None:
    """Print the first job of the rule in the plan for the targets."""
    print(visible(example_text(arguments.rule, arguments.targets)), end="")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rule", help="the name of a rule in workflow/rules")
    parser.add_argument("targets", nargs="+", metavar="target", help="files in whose plan to look for a job of it")
    run_command(main, parser)
