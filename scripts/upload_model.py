"""Upload an exported model to the Hugging Face hub, with a branch for each checkpoint. Without --upload it only lists.

For example: python scripts/upload_model.py babylm ltg_bert-s42
"""

import argparse
from pathlib import Path

from hatchery.command import run_command
from hatchery.experiment.shipped import open_project
from hatchery.export.upload import planned_upload, upload


def main(arguments: argparse.Namespace) -> None:
    """List what would be uploaded, and upload it if that was said."""
    project = open_project(arguments.project / "config")
    planned = planned_upload(project, arguments.experiment, arguments.run, arguments.project / "results")
    print(planned.listing())
    if not arguments.upload:
        print("\nNothing was uploaded. To do it, say it again with --upload, after `hf auth login`.")
        return
    from huggingface_hub import HfApi

    upload(planned, HfApi())
    print(f"\nUploaded to {planned.repository}.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", help="an experiment with the key `hub`, whose models are exported")
    parser.add_argument("run", help="a model by run and seed, as its folder under results/<experiment>/export/")
    parser.add_argument("--upload", action="store_true", help="upload what else is only listed")
    parser.add_argument("--project", type=Path, default=Path(), help="the folder with config/ and results/")
    run_command(main, parser)
