"""Print where the logs of a job are, their last lines, and its state in Slurm. Takes a result, Slurm job id or rule.

For example: python scripts/find_log.py results/strict/pretraining/elc_zero-s42/manifest.json
             python scripts/find_log.py 1234567
             python scripts/find_log.py finetune/strict/elc_zero-s42/babylm_rte

Without a job, print what failed in the last run in this folder.
"""

import argparse
import signal

from hatchery.command import run_command
from hatchery.workflow.external import ask
from hatchery.workflow.log_text import find_logs, what_failed


def main(arguments: argparse.Namespace) -> None:
    """Print the answer."""
    if arguments.target is None:
        print(what_failed(arguments.lines), end="")
    else:
        print(find_logs(arguments.target, ask, arguments.lines), end="")


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", help="a file in results/, a Slurm job id, or <rule>/<wildcard>/...")
    parser.add_argument("--lines", type=int, default=10, help="number of last lines to print (default: 10)")
    run_command(main, parser)
