"""The output layer of a run: the prior that it starts from, and how far it is from that prior while it learns.

Source: "A Natural Bias for Language Generation Models", Sections 3 and 4, Figures 1, 11 and 12;
docs/papers/natural-bias.md, "The bias", "Divergences", "Differences" and "Drift of the bias". Every process counts the
same labels and arrives at the same bias, and so does every attempt of a run; a checkpoint that is resumed afterwards
overwrites it with what was learned. Divergences: reference first, KL(omega || p), and the reverse beside it; natural
logarithm; every labelled position weighs the same; a fixed held-out set. Sums are taken in double precision without a
copy of the logits in it. Of the bias both directions, and beside the norm, which an arbitrary constant decides, what is
left of it without that constant; spare rows of the vocabulary are left out.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError, TrainingError
from hatchery.modeling.count_distributions import label_smoothed_distribution, smoothed_distribution
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.norm_and_dropout import full_precision
from hatchery.modeling.output_bias import (
    check_output_bias,
    check_weight_scale,
    log_prior,
    scale_output_weight_,
    set_output_bias_,
)
from hatchery.modeling.output_report import language_model_measures
from hatchery.objectives.label_counts import counted_examples, label_counts, maskable_tokens
from hatchery.tokenization.documents import TRAINING_SPLIT
from hatchery.tokenization.special_tokens import SpecialTokens
from hatchery.tokenization.token_shards import TokenShards
from hatchery.training.batches import Examples
from hatchery.training.start_settings import OutputBiasSettings
from hatchery.training.topology import sum_over_processes

if TYPE_CHECKING:
    from hatchery.training.engine import Engine

# Enough positions for two digits of the divergence, few enough for a large vocabulary in memory.
_REPORTED_EXAMPLES = 32


def prepare_output_(
    model: LanguageModel,
    settings: OutputBiasSettings,
    make_examples: Callable[[], Examples],
    shards: TokenShards,
    seed: int,
    show: bool = True,
    count_corpus: Callable[[TokenShards], np.ndarray] = maskable_tokens,
) -> dict[str, float]:
    """Give the output layer of the initialised `model`, on the CPU, its first bias and matrix.

    `make_examples` gives those of the first phase of training and is called only if they are counted; `shards` is the
    split they come from, whose targets `count_corpus` counts; `show` reports progress. Returns what the run's manifest
    should record of it: nothing for zero and none without a report. Raises ModelError when the settings do not fit the
    model (tied matrix, no bias), TrainingError when there is nothing to count.
    """
    head = model.head
    # Before anything is counted.
    check_weight_scale(head, settings.weight_scale)
    if settings.kind != "unigram" and not settings.report:
        scale_output_weight_(head, settings.weight_scale, seed)
        return {}
    examples = make_examples()
    counts = target_counts(settings, lambda: examples, shards, seed, show, count_corpus)
    distribution = prior_distribution(counts, settings)
    bias = None
    if settings.kind == "unigram":
        bias = log_prior(distribution, len(model.output_layer[0]), settings.centred)
        set_output_bias_(head, bias)
    # Spare rows of the vocabulary must not decide a norm.
    scale_output_weight_(head, settings.weight_scale, seed, None if bias is None else bias[: len(distribution)])
    batch = examples.batch(seed, 0, counted_examples(len(examples), _REPORTED_EXAMPLES))
    measures = language_model_measures(model, batch, distribution, counts)
    if bias is not None:
        check_output_bias(head, bias)
    return {"counted_labels": int(counts.sum()), "label_types": int(np.count_nonzero(counts)), **measures}


def target_counts(
    settings: OutputBiasSettings,
    make_examples: Callable[[], Examples],
    shards: TokenShards,
    seed: int,
    show: bool = True,
    count_corpus: Callable[[TokenShards], np.ndarray] = maskable_tokens,
) -> np.ndarray:
    """What the settings count: int64 [V]; the arguments are those of `prepare_output_`."""
    if settings.counts != "labels":
        return count_corpus(shards)
    return label_counts(make_examples(), seed, shards.vocabulary_size, settings.counted_examples, show)


def larger_corpus_counts(counts: Path, tokenizer: Path, special: SpecialTokens) -> np.ndarray:
    """Tokens of the training text of another corpus, and the end of each of its sentences: int64 [V].

    As `next_token_counts` counts the targets of translation, which have unknown tokens, too, but no start. Raises
    ConfigError for token shards of another tokenizer than the run's, and for a corpus without training text; all paths
    are manifests.
    """
    tokens = read_manifest(counts)
    if tokens.inputs.get("tokenizer") != read_manifest(tokenizer).digest:
        raise ConfigError(f"{counts}: these shards were encoded with another tokenizer than {tokenizer}")
    splits = tokens.measures.get("splits", {})
    if TRAINING_SPLIT not in splits:
        raise ConfigError(
            f"{counts}: has no split {TRAINING_SPLIT!r}, in which output_bias.larger_corpus is counted; it has "
            f"{', '.join(sorted(splits)) or 'none'}"
        )
    found = np.array(json.loads(tokens.file("unigram.json").read_bytes())["counts"], dtype=np.int64)
    found[special.ids[special.cls]] = 0
    found[special.ids[special.sep]] = splits[TRAINING_SPLIT]["sentences"]
    return found


def prior_distribution(counts: np.ndarray, settings: OutputBiasSettings) -> np.ndarray:
    """The distribution of the labels, float64 [V], smoothed as the settings say."""
    if settings.label_smoothing:
        return label_smoothed_distribution(counts, settings.label_smoothing)
    return smoothed_distribution(counts, settings.smoothing)


MEASURES = ("kl_unigram", "kl_uniform", "kl_empirical", "reverse_kl_unigram", "reverse_kl_uniform")
"""KL(omega || p), KL(u || p), KL(delta_y || p) = -log p(y), KL(p || omega) and KL(p || u) = log V - H(p), in nats.

The reverse of the empirical one is infinite."""

PROBED_SEQUENCES = 1000
"""Development sequences that are enough for a curve (inferred)."""

# Logits that are looked at in double precision at a time: 8 MiB.
_LOGITS_AT_A_TIME = 2**20


def is_logged(step: int, interval: int) -> bool:
    """Whether the curves have a point after `step` updates: 0, 1, 2, 4, 8, ... and every `interval` steps."""
    return step & (step - 1) == 0 or step % interval == 0


@torch.no_grad()
def divergences(logits: Tensor, targets: Tensor, unigram: Tensor) -> Tensor:
    """Sums of `MEASURES` over N positions, then N itself: fp64 [6], to be added up over batches and processes.

    `logits` [N, rows] of any precision, `targets` int64 [N], `unigram` fp64 [V], above 0 and summing to 1, V at most
    `rows`. Rows from V on are spare: omega and u give them nothing, and the reverse directions look at p among the V
    types, since what p leaves to spare rows would make them infinite.
    """
    n_types, positions = len(unigram), len(logits)
    log_unigram = unigram.log()
    # Subtracted everywhere, so that no exponential overflows; it cancels in every measure.
    highest = logits.amax(dim=1, keepdim=True).double()
    mass, spare_mass, own_mean, log_unigram_mean, unigram_mean, uniform_mean = highest.new_zeros(6, positions)
    width = max(1, _LOGITS_AT_A_TIME // max(1, positions))
    for first in range(0, n_types, width):
        last = min(first + width, n_types)
        shifted = logits[:, first:last].double() - highest
        weights = shifted.exp()
        mass += weights.sum(dim=1)
        own_mean += (weights * shifted).sum(dim=1)
        log_unigram_mean += weights @ log_unigram[first:last]
        unigram_mean += shifted @ unigram[first:last]
        uniform_mean += shifted.sum(dim=1) / n_types
    for first in range(n_types, logits.shape[1], width):
        spare_mass += (logits[:, first : first + width].double() - highest).exp().sum(dim=1)
    log_mass, log_mass_of_types = (mass + spare_mass).log(), mass.log()
    own_mean, log_unigram_mean = own_mean / mass, log_unigram_mean / mass
    of_target = (logits.gather(1, targets[:, None]).double() - highest).squeeze(1)
    measures = (
        log_mass - unigram_mean + unigram @ log_unigram,
        log_mass - uniform_mean - math.log(n_types),
        log_mass - of_target,
        own_mean - log_mass_of_types - log_unigram_mean,
        own_mean - log_mass_of_types + math.log(n_types),
    )
    return torch.cat([torch.stack(measures).sum(dim=1), highest.new_tensor([positions])])


class DivergenceProbe:
    """Measures a model on the same positions again and again; every process on its share of them."""

    def __init__(self, batches: Sequence[Mapping[str, Tensor]], unigram: np.ndarray) -> None:
        """`batches` are this process's development batches, `unigram` fp64 [V] the distribution of the run's labels.

        Raises TrainingError when `unigram` is no distribution that gives every type something.
        """
        if not np.all(unigram > 0) or not math.isclose(unigram.sum(), 1, abs_tol=1e-9):
            raise TrainingError("divergences: expected a unigram distribution above 0 that sums to 1; use smoothing")
        self._batches, self._unigram = list(batches), torch.from_numpy(unigram).double()

    @torch.no_grad()
    def score(self, engine: "Engine") -> dict[str, float]:
        """Means of `MEASURES` over all labelled positions of all processes, without dropout.

        Every process must call it. Raises TrainingError when no position of the batches is labelled, and when a
        measure is not finite: then the model's output is not, either.
        """
        was_training = engine.model.training
        engine.model.eval()
        try:
            sums = torch.zeros(len(MEASURES) + 1, dtype=torch.float64, device=engine.device)
            unigram = self._unigram.to(engine.device)
            for batch in self._batches:
                sums += divergences(*_predictions(engine, batch), unigram)
        finally:
            engine.model.train(was_training)
        *totals, positions = sum_over_processes(sums.tolist(), engine.device)
        if not positions:
            raise TrainingError("divergences: no position of the development sequences is labelled")
        means = {name: total / positions for name, total in zip(MEASURES, totals, strict=True)}
        for name, mean in means.items():
            if not math.isfinite(mean):
                raise TrainingError(f"divergences: {name} is {mean}, so the model's output is no longer finite")
        return means


def _predictions(engine: "Engine", batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Logits [N, rows] and targets int64 [N] of the labelled positions of `batch`, in the precision of the run."""
    model = engine.model
    assert isinstance(model, LanguageModel)
    with engine.precision.autocast(engine.device.type):
        hidden, targets = model.labelled_hidden(batch, engine.device)
        return full_precision(model.logits_at(hidden)), targets


def unigram_of_run(
    settings: OutputBiasSettings,
    make_examples: Callable[[], Examples],
    shards: TokenShards,
    seed: int,
    show: bool = True,
    count_corpus: Callable[[TokenShards], np.ndarray] = maskable_tokens,
) -> np.ndarray:
    """omega of a run: fp64 [V], counted and smoothed as its unigram bias is, whether it starts from one or not.

    So a model that starts at its prior starts at KL(omega || p) = 0. Every process counts the same labels.
    """
    counts = target_counts(settings, make_examples, shards, seed, show, count_corpus)
    return prior_distribution(counts, settings)


DRIFT = (
    "bias_kl_unigram",
    "reverse_bias_kl_unigram",
    "bias_norm",
    "centred_bias_norm",
    "bias_change",
    "largest_bias_change",
)
"""KL(omega || softmax b), KL(softmax b || omega), |b|, |b - mean b|, |b - b_0| (L2) and the largest of |b - b_0|.

b_0 is the bias that the run started from."""


class BiasDrift:
    """Compares the bias of a model again and again with where it started and with a distribution."""

    def __init__(self, model: LanguageModel, unigram: np.ndarray) -> None:
        """`model` is on the CPU, with the bias that its run starts from; `unigram` is fp64 [V], above 0."""
        self._unigram = torch.from_numpy(unigram).double()
        self._start = self._bias(model)

    @torch.no_grad()
    def score(self, engine: "Engine") -> dict[str, float]:
        """The measures of DRIFT; `engine.model` is the model. The same in every process."""
        bias, log_unigram = self._bias(engine.model), self._unigram.log()
        log_bias = torch.log_softmax(bias, dim=0)
        change = bias - self._start
        values = (
            self._unigram @ (log_unigram - log_bias),
            log_bias.exp() @ (log_bias - log_unigram),
            bias.norm(),
            (bias - bias.mean()).norm(),
            change.norm(),
            change.abs().max(),
        )
        return {name: float(value) for name, value in zip(DRIFT, values, strict=True)}

    def _bias(self, model: LanguageModel) -> Tensor:
        bias = model.output_layer[1]
        assert bias is not None, "the settings refuse a drift without a bias"
        return bias.detach()[: len(self._unigram)].cpu().double()


Probe = DivergenceProbe | BiasDrift
"""What is measured of a model at log-spaced steps; every process calls it and gets the same columns."""
