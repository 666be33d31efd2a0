"""Floating-point operations of a model, counted from its matrix products, and what they say about speed and cost.

Our own count follows the modules of both families (a multiplication and an addition are two operations; norms,
activations and softmax are left out) and is tested against torch's counter. Beside it stand the formulas of the
reduced-vocabulary study (its reference, section 7) and of Kaplan et al. (2020), which tables of the papers rest on.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hatchery.errors import ModelError
from hatchery.modeling.configuration import LtgBertConfig
from hatchery.modeling.distance_buckets import bucket_of_distance
from hatchery.modeling.family_configuration import ModelConfig, model_config
from hatchery.modeling.roberta_configuration import RobertaConfig

if TYPE_CHECKING:
    import torch

BACKWARD_FACTOR = 2
"""Every product y = x w is followed by two in the backward pass, for the gradients of x and of w."""

STUDY_VOCABULARY_ROWS = 19_010
STUDY_SEQUENCE_LENGTH = 128
STUDY_SEQUENCES = 9_081_600
"""35,475 updates of 256 sequences: what the final tables of the reduced-vocabulary study multiply with."""


@dataclass(frozen=True)
class PassShape:
    """One forward pass: `sequences` inputs of `length` tokens, padding included, with `labelled` labels in all."""

    sequences: float
    length: int
    labelled: float
    # Positions that the layers compute outside of their attention; None is all (a GPU computes padding like text).
    tokens: float | None = None
    # Whether sentence pairs are judged, by a model that has a head for them.
    pairs: bool = False


def forward_flops(config: ModelConfig, shape: PassShape) -> dict[str, float]:
    """Operations of one forward pass by part of the model; their sum is the cost of the pass.

    Parts: `embedding_projection`, `attention_projections`, `position_table` (its projection, which all sequences of a
    pass share), `position_scores`, `attention`, `feed_forward`, `head` (also the sentence-pair head), `vocabulary`.
    """
    length, size, layers = shape.length, config.hidden_size, config.num_hidden_layers
    tokens = shape.sequences * length if shape.tokens is None else shape.tokens
    pairs = shape.sequences if shape.pairs and config.sentence_pair_head else 0
    projected, position_rows, feed_forward_matrices = 0.0, 0, 2
    if isinstance(config, RobertaConfig):
        vocabulary_rows = config.vocabulary_rows
        if config.embedding_size is not None:
            # Padding is left out only behind the embedding.
            projected = _product(shape.sequences * length, config.embedding_size, size)
    else:
        vocabulary_rows = config.vocab_size
        if config.position_embedding == "relative":
            position_rows = _position_rows(config, length)
        if config.feed_forward_activation == "geglu":
            feed_forward_matrices = 3
    return {
        "embedding_projection": projected,
        # Query, key, value and output: each hidden_size x hidden_size, in one parameter or in several.
        "attention_projections": layers * 4 * _product(tokens, size, size),
        "position_table": layers * _product(position_rows, size, 2 * size),
        "position_scores": layers * 2 * shape.sequences * _product(length, size, position_rows),
        "attention": layers * 2 * shape.sequences * _product(length, size, length),
        "feed_forward": layers * feed_forward_matrices * _product(tokens, size, config.intermediate_size),
        "head": _product(shape.labelled + pairs, size, size) + _product(pairs, size, 1),
        "vocabulary": _product(shape.labelled, size, vocabulary_rows),
    }


def training_flops(config: ModelConfig, shape: PassShape) -> float:
    """Operations of forward and backward of one pass: three times the forward products."""
    return (1 + BACKWARD_FACTOR) * sum(forward_flops(config, shape).values())


def training_flops_per_sequence(
    model: Mapping[str, Any],
    vocabulary_size: int,
    sequence_length: int,
    labelled_share: float,
    batch_size: int | None = None,
) -> float:
    """Operations of training on one sequence of `sequence_length` tokens, forward and backward.

    `model` are the settings of a model of either family without the vocabulary size. `labelled_share` is the share of
    the positions that are labelled: only they meet the vocabulary. `batch_size` are the sequences of one forward pass,
    which share the projection of the relative positions; None leaves that out, as in a large batch. A model with
    `sentence_pair_head` judges one pair per sequence. Raises ConfigError and ModelError for an impossible model, and
    ModelError for an impossible share, length or batch.
    """
    _require(0 <= labelled_share <= 1, "labelled_share", labelled_share, "a number from 0 to 1")
    _require(sequence_length >= 1, "sequence_length", sequence_length, "1 or more")
    _require(batch_size is None or batch_size >= 1, "batch_size", batch_size, "1 or more, or None")
    config = model_config({**model, "vocab_size": vocabulary_size})
    parts = forward_flops(config, PassShape(1, sequence_length, labelled_share * sequence_length, pairs=True))
    shared = parts.pop("position_table")
    forward = sum(parts.values()) + (shared / batch_size if batch_size is not None else 0.0)
    return (1 + BACKWARD_FACTOR) * forward


def _product(rows: float, inner: float, columns: float) -> float:
    """[rows, inner] @ [inner, columns]."""
    return 2 * rows * inner * columns


def _position_rows(config: LtgBertConfig, length: int) -> int:
    """Rows of the relative embedding that distances below `length` reach."""
    return 2 * bucket_of_distance(length - 1, config.position_bucket_size, config.max_position_embeddings) + 1


# The formulas of the papers.

StudyFormula = Literal["code", "code_without_projection", "printed", "complete"]


def reduced_vocabulary_flops(
    embedding_size: int,
    hidden_size: int,
    intermediate_size: int,
    num_hidden_layers: int,
    num_attention_heads: int,
    formula: StudyFormula = "code",
    vocabulary_rows: int = STUDY_VOCABULARY_ROWS,
    sequence_length: int = STUDY_SEQUENCE_LENGTH,
) -> float:
    """Operations per sequence, forward and backward, as the reduced-vocabulary study counts them.

    "code" gave the published totals: neither attention's output projection nor its weighted sum of values, the
    vocabulary at every position, the embedding lookup as a product. "code_without_projection" drops the projection
    from E to H as well (Table 2 and parts of Tables 3 and 4); "printed" is appendix A to the letter, without the
    sequence length in the feed-forward block; "complete" is appendix A with it. `num_attention_heads` is the nominal
    number, though all untied models have 8. Source: reference, section 7.
    """
    length, size, inner = sequence_length, hidden_size, intermediate_size
    lookup = vocabulary_rows * embedding_size
    if formula != "code_without_projection":
        lookup += embedding_size * size
    layer = 6 * length * size**2 + 2 * length**2 * size + 3 * length**2 * num_attention_heads
    feed_forward = 2 * (size * inner + inner * size)
    layer += feed_forward if formula == "printed" else length * feed_forward
    if formula in ("printed", "complete"):
        layer += 2 * length**2 * size + 2 * length * size**2
    forward = 2 * length * lookup + num_hidden_layers * layer + 2 * length * size * vocabulary_rows
    return (1 + BACKWARD_FACTOR) * forward


def kaplan_flops(parameters: int, tokens: float) -> float:
    """6 N per token: forward and backward of a model with N parameters, the embeddings not counted.

    Source: Kaplan et al. (2020), "Scaling Laws for Neural Language Models", section 2.1. The study logged it too.
    """
    return 6.0 * parameters * tokens


# Devices.

_TERA = 1e12

# Dense peaks in 10^12 operations per second, without structured sparsity: half of what NVIDIA's newer data sheets print
# "with sparsity". fp32 is without TensorFloat-32. Sources: NVIDIA data sheets of the H100, H200, A100, V100 and L40S
# Tensor Core GPUs; AMD Instinct MI250X data sheet, halved, because torch sees each of its two dies as a device (fp32 by
# matrix cores). The name patterns are those that the drivers report, and the first one that is found counts.
_PEAKS: tuple[tuple[str, dict[str, float]], ...] = (
    # A part of a GPU has a part of its speed, and its name does not tell which clock it gets.
    (r"\bMIG\b", {}),
    (r"\b(H200|H100) NVL\b", {"bf16": 835.5, "fp16": 835.5, "tf32": 417.5, "fp32": 60.0}),
    (r"\bH100 PCIe\b", {"bf16": 756.0, "fp16": 756.0, "tf32": 378.0, "fp32": 51.0}),
    (r"\b(H200|GH200|H100.*HBM3)\b", {"bf16": 989.5, "fp16": 989.5, "tf32": 494.5, "fp32": 67.0}),
    (r"\bA100(-SXM4|-PCIE| 80GB PCIe)\b", {"bf16": 312.0, "fp16": 312.0, "tf32": 156.0, "fp32": 19.5}),
    # Volta has tensor cores for fp16 only.
    (r"\bV100-SXM2\b", {"fp16": 125.0, "fp32": 15.7}),
    (r"\bV100S-PCI[Ee]\b", {"fp16": 130.0, "fp32": 16.4}),
    (r"\bV100-PCI[Ee]\b", {"fp16": 112.0, "fp32": 14.0}),
    (r"\bL40S\b", {"bf16": 362.0, "fp16": 362.0, "tf32": 183.0, "fp32": 91.6}),
    (r"\bMI250X\b", {"bf16": 191.5, "fp16": 191.5, "fp32": 47.9}),
)


def peak_flops(device_name: str, precision: str) -> float | None:
    """Operations per second that one device can do at best, dense; None where that is not known.

    `device_name` is what torch reports (`device_name_of`), `precision` "fp32", "tf32", "bf16" or "fp16". CPUs are not
    known: their peak depends on clock, cores and instructions, and measuring it would cost time at every start.
    """
    for pattern, peaks in _PEAKS:
        if re.search(pattern, device_name):
            return peaks[precision] * _TERA if precision in peaks else None
    return None


def device_name_of(device: "torch.device") -> str:
    """The name of a device as its driver reports it; "cpu" for the CPU."""
    import torch  # Planning counts operations without it.

    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def peak_flops_of(device: "torch.device", precision: str) -> float | None:
    """`peak_flops` of a device of this process; fp32 counts as TensorFloat-32 where torch is allowed to use that."""
    import torch

    if device.type == "cuda" and precision == "fp32" and torch.get_float32_matmul_precision() != "highest":
        precision = "tf32"
    return peak_flops(device_name_of(device), precision)


def mfu(flops: float, seconds: float, devices: int, peak: float | None) -> float | None:
    """Model FLOPs utilisation, 0 to 1: `flops` of the model in `seconds` as a share of what `devices` could do.

    `peak` is one device's operations per second; None, where it is not known, gives None. Source: Chowdhery et al.
    (2022), "PaLM", appendix B: operations that the model needs, none that were done twice.
    """
    if peak is None or seconds <= 0:
        return None
    return flops / (seconds * devices * peak)


def _require(condition: bool, key: str, value: object, expected: str) -> None:
    if not condition:
        raise ModelError(f"{key}: got {value!r}, expected {expected}")
