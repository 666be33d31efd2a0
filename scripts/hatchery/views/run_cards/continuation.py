"""What a run card says of a run that started from another model, or that could stop early."""

from hatchery.artifacts.manifests import Manifest
from hatchery.units import count, number

UNKNOWN = "not known: the model was imported"
BEST = {
    "best_development_loss": "lowest development loss (nats)",
    "best_development_bleu": "highest development BLEU (points)",
}
"""What the weights may have been chosen by."""


def continuation_rows(manifest: Manifest) -> list[tuple[str, str]]:
    """Names and values for the table of a run; none where it began with random weights and did all its steps."""
    rows = []
    if initial := manifest.measures.get("initial_model"):
        goes_on = initial["take"] == "training"
        rows.append(("started from", "a model with its optimiser" if goes_on else "the weights of a model"))
        where = "of them in that model" if goes_on else "before them in that model"
        for name, words in (("steps", "optimiser steps"), ("tokens", "tokens seen")):
            value = initial[f"earlier_{name}"]
            rows.append((f"{words}, {where}", UNKNOWN if value is None else count(value)))
    if stopping := manifest.measures.get("early_stopping"):
        planned = manifest.settings["steps"]
        ended = f"after step {count(manifest.measures['steps'])} of {count(planned)}"
        rows.append(("stopped early", ended if stopping["stopped_early"] else "no, all steps were done"))
        rows.append(("weights are those after step", count(stopping["exported_step"])))
        for column, words in BEST.items():
            if stopping.get(column) is not None:
                rows.append((words, f"{number(stopping[column])} after step {count(stopping['best_step'])}"))
    return rows
