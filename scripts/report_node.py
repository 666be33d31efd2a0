"""Write what this node sees of files, GPUs and network into a folder: what a probe job of check_cluster.py runs."""

import argparse
from pathlib import Path

from hatchery.command import run_command
from hatchery.workflow.node_report import report_node


def main(arguments: argparse.Namespace) -> None:
    """Report this task."""
    report_node(arguments.folder, arguments.token)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="shared folder with the file `token`")
    parser.add_argument("--token", required=True, help="what that file must hold")
    run_command(main, parser)
