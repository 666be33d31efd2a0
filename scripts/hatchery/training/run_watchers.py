"""The watchers that a run's settings require, in the order in which the training loop calls them."""

import math
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError
from hatchery.modeling.language_model import LanguageModel
from hatchery.training.bias_drift import BiasDrift
from hatchery.training.continuation import TOKENIZER_FILE
from hatchery.training.development import DevelopmentSet, development_examples, development_of
from hatchery.training.early_stopping import EarlyStopping
from hatchery.training.inputs import Inputs
from hatchery.training.objective import Objective
from hatchery.training.objectives.masked import MaskedObjective
from hatchery.training.output_divergences import PROBED_SEQUENCES, DivergenceProbe
from hatchery.training.own_model import OwnModel
from hatchery.training.runtime_settings import RuntimeSettings
from hatchery.training.settings import PretrainSettings
from hatchery.training.token_difficulty import TokenDifficulty
from hatchery.training.topology import Topology
from hatchery.training.watchers import Probe, Watcher, is_logged
from hatchery.training.weight_average import WeightAverage

if TYPE_CHECKING:
    from hatchery.tokenization.tokenizer_file import Tokenizer


def run_watchers(
    settings: PretrainSettings,
    options: RuntimeSettings,
    inputs: Inputs,
    topology: Topology,
    objective: Objective,
    model: LanguageModel | OwnModel,
    unigram: Callable[[], np.ndarray],
    marks: Collection[int] = (),
) -> Iterator[Watcher]:
    """Yield the watchers of a run that trains `model`, which is on the CPU with its initial weights.

    `unigram` returns the distribution of the run's targets, fp64 [V]. Development text is also scored after the steps
    in `marks`. Raises ConfigError if a setting needs development text and there is none (see `development_examples`).
    """
    if settings.weight_average:
        yield WeightAverage(settings.weight_average, settings.steps)
    preference = objective.settings.preference if isinstance(objective, MaskedObjective) else None
    if isinstance(objective, MaskedObjective) and preference is not None and preference.adapts:
        difficulty = TokenDifficulty(preference, model.config.vocab_size)
        objective.seen = difficulty.see
        yield difficulty
    scored, probed = _development_sets(settings, objective, options, inputs, topology)
    development = None if scored is None else Probe(scored.score, evaluated_steps(settings, marks))
    if settings.early_stopping is not None:
        if development is None:
            raise ConfigError(
                "pretraining.early_stopping: expected a development split and evaluation_sequences above 0, because "
                f"the {objective.criterion.name} decides when to stop; give the corpus a "
                "development_fraction, or set early_stopping to null"
            )
        yield EarlyStopping(settings.early_stopping, development, objective.criterion, topology.is_first)
    elif development is not None:
        yield development
    logged = partial(_is_logged, settings)
    if settings.divergences:
        if probed is None:
            raise ConfigError(
                "pretraining.divergences: got true, expected a development split and evaluation_sequences above 0, "
                "because divergences are measured on development sequences"
            )
        yield Probe(DivergenceProbe(probed.batches, unigram()).score, logged)
    if settings.bias_drift:
        assert isinstance(model, LanguageModel), "the settings of other models refuse `bias_drift`"
        yield Probe(BiasDrift(model, unigram()).score, logged)


def evaluated_steps(settings: PretrainSettings, marks: Collection[int] = ()) -> Callable[[int], bool]:
    """Return a function that returns True for the numbers of the steps after which development text is scored.

    Development text is scored at intervals, after the objective's additional early steps (`early_evaluations_at`),
    after the steps in `marks`, and at the end.
    """
    interval = settings.evaluation_interval_steps
    extra = {*settings.objective.early_evaluations_at(interval), *marks, settings.steps}
    return lambda step: step in extra or (step > 0 and step % interval == 0)


def _is_logged(settings: PretrainSettings, step: int) -> bool:
    return step == settings.steps or is_logged(step, settings.evaluation_interval_steps)


def _development_sets(
    settings: PretrainSettings, objective: Objective, options: RuntimeSettings, inputs: Inputs, topology: Topology
) -> tuple[DevelopmentSet | None, DevelopmentSet | None]:
    """Return two sets of development sequences, both scored during training: one for the development loss, and one for
    the divergences of the predictions. The second set has at most `PROBED_SEQUENCES` sequences. Both are None if there
    is no development text.
    """
    examples = development_examples(inputs.tokens, settings)
    if examples is None:
        return None, None
    sequences = settings.objective.sequences_of_step(settings.batch_size, settings.sequence_length)
    share = options.micro_batch_size or max(1, math.ceil(sequences / topology.world_size))
    tokenizer = partial(_tokenizer, inputs)
    scored = development_of(objective, examples, settings.evaluation_sequences, share, topology, tokenizer)
    if settings.evaluation_sequences <= PROBED_SEQUENCES:
        return scored, scored
    return scored, development_of(objective, examples, PROBED_SEQUENCES, share, topology)


def _tokenizer(inputs: Inputs) -> "Tokenizer":
    # Import inside the function, so that a run that does not decode text starts sooner.
    from hatchery.tokenization.tokenizer_file import load_tokenizer

    return load_tokenizer(read_manifest(inputs.tokenizer).file(TOKENIZER_FILE))
