"""Upload an exported model to the Hugging Face hub, with a branch for each checkpoint.

Without the option --upload, the files are only listed.

For example: python scripts/upload_model.py babylm ltg_bert-s42
"""

import argparse
from pathlib import Path

from hatchery.command import run_command
from hatchery.experiment.shipped import open_project
from hatchery.export.upload import planned_upload, upload


def main(arguments: argparse.Namespace) -> None:
    """List the files to upload, and upload them if `--upload` is given."""
    project = open_project(arguments.project / "config")
    planned = planned_upload(project, arguments.experiment, arguments.run, arguments.project / "results")
    print(planned.listing())
    if not arguments.upload:
        print("\nNothing was uploaded. To upload, log in with `hf auth login` and run the command with --upload.")
        return
    from huggingface_hub import HfApi

    upload(planned, HfApi())
    print(f"\nUploaded to {planned.repository}.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", help="name of an experiment with the key `hub` and exported models")
    parser.add_argument(
        "run", help="name of a folder in results/<experiment>/export/, such as ltg_bert-s42 (run and seed)"
    )
    parser.add_argument(
        "--upload", action="store_true", help="upload the files; without this option, the files are only listed"
    )
    parser.add_argument("--project", type=Path, default=Path(), help="the folder with config/ and results/")
    run_command(main, parser)
