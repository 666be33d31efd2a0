"""Import a checkpoint of the published LTG-BERT or ELC-BERT code as a model that the evaluations here read."""

import argparse
from pathlib import Path

from hatchery.command import run_command
from hatchery.export.published_checkpoint import LAYOUTS, import_checkpoint


def main(arguments: argparse.Namespace) -> None:
    """Hand the arguments to the library."""
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
    parser.add_argument("--config", type=Path, required=True, help="the authors' configuration of the model, JSON")
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.json that the model was trained with")
    parser.add_argument(
        "--layer-weighting",
        metavar="VARIANT",
        help="biased, zero or normalized; needed for ELC-BERT, whose variants have the same tensors",
    )
    parser.add_argument(
        "--position-head-layout",
        choices=LAYOUTS,
        help="whose code trained an LTG-BERT: bnc (also the wrapper of the released checkpoints) or babylm",
    )
    parser.add_argument("--output", type=Path, required=True, help="manifest to write; the model lies beside it")
    run_command(main, parser)
