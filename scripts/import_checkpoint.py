"""Import a checkpoint of the published code of LTG-BERT, ELC-BERT or GPT-BERT as a model that Hatchery can evaluate."""

import argparse
from pathlib import Path

from hatchery.command import run_command
from hatchery.export.published_checkpoint import LAYOUTS, import_checkpoint


def main(arguments: argparse.Namespace) -> None:
    """Import the checkpoint that the arguments name."""
    import_checkpoint(
        arguments.weights,
        arguments.config,
        arguments.tokenizer,
        arguments.output,
        arguments.layer_weighting,
        arguments.position_head_layout,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--weights", type=Path, required=True, help="state dict: .bin, .pt, .pth, .ckpt, .safetensors or .npz"
    )
    parser.add_argument("--config", type=Path, required=True, help="the authors' configuration of the model (JSON)")
    parser.add_argument("--tokenizer", type=Path, required=True, help="the tokenizer.json used to train the model")
    parser.add_argument(
        "--layer-weighting",
        metavar="VARIANT",
        help="variant of ELC-BERT: biased, zero or normalized; needed because these variants have equal tensor names",
    )
    parser.add_argument(
        "--position-head-layout",
        choices=LAYOUTS,
        help="for LTG-BERT: code that trained the checkpoint, babylm or bnc (also for checkpoints with modelling code)",
    )
    parser.add_argument(
        "--output", type=Path, required=True, help="path of the new manifest; the model is written to its folder"
    )
    run_command(main, parser)
