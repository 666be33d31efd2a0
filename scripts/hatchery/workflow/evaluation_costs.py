"""What evaluating a pretrained model will cost, roughly: minimal pairs and fine-tuning, before their data is there.

The configuration does not know how long sentences are or how many a task has, so published sizes and a typical length
stand in (docs/papers/babylm-evaluation.md, "Cost of scoring"; LTG-BERT, Table 4). Good for the order of magnitude: is
it an hour or a week?
"""

from collections.abc import Callable
from dataclasses import dataclass

from hatchery.modeling.flops import BACKWARD_FACTOR
from hatchery.settings.base import Settings

# Operations of training on one sequence of a length with a share of labelled positions.
FlopsPerSequence = Callable[[int, float], float]

PARADIGMS = 67
"""BLiMP's; a suite with fewer costs less."""

PAIRS_PER_PARADIGM = 1000
SENTENCE_TOKENS = 12
"""Subwords of a sentence of BLiMP (some eight words), special tokens not counted."""

TRAINING_EXAMPLES = {
    "boolq": 9_427,
    "cola": 8_551,
    "mnli": 392_702,
    "mnli_mm": 392_702,
    "mrpc": 3_668,
    "multirc": 27_243,
    "qnli": 104_743,
    "qqp": 363_846,
    "rte": 2_490,
    "sst2": 67_349,
    "stsb": 5_749,
    "wnli": 635,
    "wsc": 554,
}
"""Training examples of GLUE and SuperGLUE; the sets that BabyLM filtered are smaller."""

KEPT_BY_VOCABULARY = {
    "cola": 0.6187,
    "mnli": 0.2482,
    "mrpc": 0.1017,
    "qnli": 0.0932,
    "qqp": 0.3275,
    "rte": 0.0635,
    "sst2": 0.3123,
    "stsb": 0.4015,
    "wnli": 0.4178,
}
"""Share of the rows of GLUE within a child's vocabulary (docs/papers/reduced-vocabulary.md, "Filtered GLUE")."""

OTHER_TASK_EXAMPLES = 10_000
"""For a task without a published size or a limit."""


@dataclass(frozen=True)
class SuiteSettings(Settings):
    """A suite of minimal pairs; null takes all pairs of a paradigm."""

    name: str
    pairs_per_paradigm: int | None


@dataclass(frozen=True)
class TaskSettings(Settings):
    """A fine-tuning task and its protocol."""

    name: str
    # Training examples where the configuration says how many there are at most.
    examples: int | None
    seeds: int
    epochs: int
    # Subwords of an input at most; every input counts as so long.
    max_length: int
    development_fraction: float


def minimal_pairs_flops(suite: SuiteSettings, per_sequence: FlopsPerSequence) -> float:
    """Pseudo-log-likelihoods of both sentences of every pair: one forward pass for each of their tokens."""
    pairs = PARADIGMS * (suite.pairs_per_paradigm or PAIRS_PER_PARADIGM)
    length = SENTENCE_TOKENS + 2
    forward = per_sequence(length, 1 / length) / (1 + BACKWARD_FACTOR)
    return pairs * 2 * SENTENCE_TOKENS * forward


def finetuning_flops(task: TaskSettings, per_sequence: FlopsPerSequence) -> float:
    """All seeds and epochs, and after each epoch a forward pass over the held-out share of the training file."""
    examples = task.examples or _training_examples(task.name)
    held_out = task.development_fraction
    # No position meets the vocabulary, and the classifier's own product is too small to count.
    work = (1 - held_out) + held_out / (1 + BACKWARD_FACTOR)
    return task.seeds * task.epochs * examples * work * per_sequence(task.max_length, 0.0)


def _training_examples(task: str) -> int:
    """Published rows of a task; filtered ones by the share of all rows that the vocabulary keeps."""
    plain = task.removesuffix("_filtered").removeprefix("babylm_").removeprefix("rv_glue_")
    share = KEPT_BY_VOCABULARY.get(plain, 1.0) if task.endswith("_filtered") else 1.0
    return round(TRAINING_EXAMPLES.get(plain, OTHER_TASK_EXAMPLES) * share)
