"""Cache the model that was opened last: a job that scores several suites then loads the model once.

If the model's layers were compiled for a large suite, the model is loaded again for the next suite. Each suite thus has
the same scores as in a separate job.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import torch

from hatchery.evaluation.minimal_pairs.prefix_tokens import frame_by_bos_
from hatchery.evaluation.minimal_pairs.sentence_model import SentenceModel
from hatchery.evaluation.runtime import compilation_in_use, load_sentence_model
from hatchery.evaluation.settings import ScoringSettings

_kept: ContextVar[dict[tuple[Any, ...], SentenceModel] | None] = ContextVar("kept", default=None)


@contextmanager
def models_are_kept() -> Iterator[None]:
    """Enable the cache of the last opened model until the context ends."""
    token = _kept.set({})
    try:
        yield
    finally:
        _kept.reset(token)


def opened_model(manifest: Path, device: torch.device, settings: ScoringSettings) -> SentenceModel:
    """Return the model of a manifest, prepared for the scoring method in `settings` and for the special tokens that the
    suite's rules require. Raises the errors of `load_sentence_model`.
    """
    kept = _kept.get()
    key = (manifest, device.type, settings.scoring, settings.has_template, settings.track)
    if kept is not None and key in kept and compilation_in_use(kept[key]) == "off":
        return kept[key]
    if kept is not None:
        # Free the memory of the previous model before the next model is loaded.
        kept.clear()
    model = load_sentence_model(manifest, device, settings.scoring, template=settings.has_template)
    if settings.track == "multilingual":
        frame_by_bos_(model)
    if kept is not None:
        kept[key] = model
    return model
