"""The initial output layer of a run: its bias and the scale of its matrix.

Source: "A Natural Bias for Language Generation Models", Section 3 and Figure 1; docs/papers/natural-bias.md, "The bias"
and "Differences". All processes and attempts of a run count the same labels, so they compute the same bias. In a
resumed run, the learned bias of the checkpoint then replaces this bias.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError
from hatchery.modeling.count_distributions import label_smoothed_distribution, smoothed_distribution
from hatchery.modeling.language_model import LanguageModel
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
from hatchery.training.examples import Examples
from hatchery.training.start_settings import OutputBiasSettings

# Number of examples from which the reported divergence is computed. The examples contain enough positions for a
# precision of two digits, and their logits fit into memory.
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
    """Set the initial bias and matrix of the output layer of `model`, which is on the CPU; return the manifest's
    entries about the output layer.

    `make_examples` returns the training examples, whose sequences have the run's first sequence length. `shards` are
    the training split. `count_corpus(shards)` returns, for each token id, the number of its tokens that can be targets.
    If `show` is true, progress is shown. If `settings.kind` is not "unigram" and the key `report` of the settings is
    false, `make_examples` is not called, and the returned mapping is empty. Raises ModelError if the settings do not
    fit the model (tied matrix, no bias), and TrainingError if there is no target to count.
    """
    head = model.head
    # Check before the counting of labels, which may take a minute, so that an error is raised at once.
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
    # Leave out padding entries of the bias, because they must not change its norm.
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
    """Return the number of times that each token id is a label: int64 [vocabulary size]. If `settings.counts` is
    "labels", the labels of the run's examples are counted; otherwise, `count_corpus` is called. For the arguments see
    `prepare_output_`.
    """
    if settings.counts != "labels":
        return count_corpus(shards)
    return label_counts(make_examples(), seed, shards.vocabulary_size, settings.counted_examples, show)


def larger_corpus_counts(counts: Path, tokenizer: Path, special: SpecialTokens) -> np.ndarray:
    """Return the number of times that each token id is a target in the training text of another, larger corpus: int64
    [vocabulary size]. Every sentence has one end token as a target.

    Unknown tokens count, but start tokens do not count. `counts` is the manifest of the larger corpus's token shards,
    and `tokenizer` is a manifest, too. Raises ConfigError for token shards of another tokenizer than the run's
    tokenizer, and for a corpus without training text.
    """
    tokens = read_manifest(counts)
    if tokens.inputs.get("tokenizer") != read_manifest(tokenizer).digest:
        raise ConfigError(
            f"{counts}: the shards of this manifest were encoded with another tokenizer than {tokenizer}; encode the "
            f"larger corpus with {tokenizer}"
        )
    splits = tokens.measures.get("splits", {})
    if TRAINING_SPLIT not in splits:
        raise ConfigError(
            f"{counts}: has no split {TRAINING_SPLIT!r}, in which output_bias.larger_corpus is counted; it has "
            f"{', '.join(sorted(splits)) or 'none'}"
        )
    counts_of_types = np.array(json.loads(tokens.file("unigram.json").read_bytes())["counts"], dtype=np.int64)
    counts_of_types[special.ids[special.cls]] = 0
    counts_of_types[special.ids[special.sep]] = splits[TRAINING_SPLIT]["sentences"]
    return counts_of_types


def prior_distribution(counts: np.ndarray, settings: OutputBiasSettings) -> np.ndarray:
    """Return the label distribution for the counts of all token ids, float64 [vocabulary size], smoothed as in
    `settings`.
    """
    if settings.label_smoothing:
        return label_smoothed_distribution(counts, settings.label_smoothing)
    return smoothed_distribution(counts, settings.smoothing)


def unigram_of_run(
    settings: OutputBiasSettings,
    make_examples: Callable[[], Examples],
    shards: TokenShards,
    seed: int,
    show: bool = True,
    count_corpus: Callable[[TokenShards], np.ndarray] = maskable_tokens,
) -> np.ndarray:
    """Return a run's unigram distribution omega, fp64 [V], counted and smoothed like the unigram bias.

    If the run starts with the unigram bias of its own corpus, its first predictions p are near omega, so KL(omega || p)
    is near 0. Every process counts the same labels.
    """
    counts = target_counts(settings, make_examples, shards, seed, show, count_corpus)
    return prior_distribution(counts, settings)
