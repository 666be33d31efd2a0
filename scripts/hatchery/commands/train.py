"""`hatchery train`: train a tokenizer and a language model on texts."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hatchery.commands._options import AsJson, Device, Set, print_json, settings_in


def command(
    texts: Annotated[
        Path, typer.Argument(help="A file or folder of texts, or a converted corpus.", show_default=False)
    ],
    folder: Annotated[Path, typer.Argument(help="The folder for the model.", show_default=False)],
    model: Annotated[
        str, typer.Option(help="Name of a file in config/models/, or a YAML file with the same keys.")
    ] = "ltg_mini",
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="Name of a file in config/tokenizers/, a YAML file, or a folder with a tokenizer or model.",
            show_default="up to 4096 subwords",
        ),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Number of optimiser steps.", show_default=False)] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Duration of the training in minutes, instead of --steps.", show_default=False)
    ] = None,
    objective: Annotated[str, typer.Option(help="The objective: masked, causal or hybrid.")] = "masked",
    batch_size: Annotated[int, typer.Option(help="Number of sequences per step.")] = 32,
    seed: Annotated[int, typer.Option(help="Seed of initial weights, masks and data order.")] = 42,
    set: Set = None,
    device: Device = "auto",
    json: AsJson = False,
) -> None:
    """Train a tokenizer and a language model on texts.

    hatchery train letters.txt my_model --steps 400

    --set accepts the arguments of hatchery.train (docs/python.md), such as --set 'optimizer={learning_rate: 0.001}'.

    Ctrl-C saves a checkpoint; the same command then continues from this checkpoint.
    """
    import sys

    import hatchery
    from hatchery.direct_training import TOKENIZER
    from hatchery.training.interruption import EXIT_STATUS_INTERRUPTED

    settings: dict[str, Any] = {"objective": {"task": objective}, "tokenizer": tokenizer or TOKENIZER, "model": model}
    settings |= {"batch_size": batch_size, "seed": seed, "device": device, **settings_in(set, ("texts", "into"))}
    if steps is not None:
        settings["steps"] = steps
    if minutes is not None:
        settings["budget"] = {"minutes": minutes}
    try:
        made = hatchery.train(texts, folder, **settings)
    except KeyboardInterrupt as interruption:
        print(str(interruption) or "interrupted; run the same command again to continue", file=sys.stderr)
        sys.exit(EXIT_STATUS_INTERRUPTED)
    last = made.curve.row(-1, named=True) if made.curve.height else {}
    if json:
        print_json({"folder": str(folder), **last})
    else:
        numbers = [f"{name} {last[name]:.4g}" for name in ("loss", "development_loss") if last.get(name) is not None]
        print(f"{folder}: {', '.join([f'{made.curve.height:,} steps', *numbers])}")
        print(f"to query the model: hatchery try {folder}")
