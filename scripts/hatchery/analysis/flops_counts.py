"""FLOPs of a training, counted by the method that a study selects.

The formulas are in `modeling.flops`. Their inputs are columns of a run's row in `runs.parquet`: the sizes of the model,
the numbers of training sequences and tokens, and the sequence length.
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

from hatchery.modeling.flops import StudyFormula, kaplan_flops, reduced_vocabulary_flops

FlopsCount = Literal["products", "code", "code_without_projection", "printed", "complete", "six_n_d"]

COUNT_NAMES: dict[FlopsCount, str] = {
    "products": "matrix products",
    "code": "the study's code",
    "code_without_projection": "the study's code without the projection",
    "printed": "appendix A as printed",
    "complete": "appendix A with the sequence length in the feed-forward block",
    "six_n_d": "6 N D",
}
"""Descriptions of the counting methods in notes and captions; "the study" is "Honey, I Shrunk the Language". In 6 N D,
N excludes a word embedding that is only looked up, but includes a word embedding that is also the output matrix, and D
counts tokens without padding.
"""

Run = Mapping[str, Any]


def flops_per_sequence(run: Run, count: FlopsCount) -> float | None:
    """Return the FLOPs of one training sequence of `run`, a row of `runs.parquet`.

    If `count` is `products` or `six_n_d`, return the mean over all training sequences, or None if the run has no
    training sequences. All other methods are formulas of the study "Honey, I Shrunk the Language"; return None for
    these formulas if the sequence length changes during training.
    """
    if count not in get_args(StudyFormula):
        total, sequences = training_flops(run, count), run["sequences"]
        return None if total is None or not sequences else total / sequences
    if run["sequence_length"] is None:
        return None
    sizes = (run["embedding_size"], run["hidden_size"], run["intermediate_size"], run["layers"], run["attention_heads"])
    rows, length = run["vocabulary_rows"], run["sequence_length"]
    return reduced_vocabulary_flops(*sizes, count, vocabulary_rows=rows, sequence_length=length)  # type: ignore[arg-type]


def training_flops(run: Run, count: FlopsCount) -> float | None:
    """Return the FLOPs of the complete training of `run`, a row of `runs.parquet`.

    If `count` is a formula of the study "Honey, I Shrunk the Language" (not `products` or `six_n_d`), return None if
    the sequence length changes during training.
    """
    if count == "products":
        return float(run["training_flops"])
    if count == "six_n_d":
        looked_up = run["vocabulary_rows"] * run["embedding_size"]
        # In 6 N D, N excludes the word embedding unless it is tied, because a tied embedding is also the output matrix.
        return kaplan_flops(run["parameters"] - (0 if run["tied"] else looked_up), run["tokens"])
    each = flops_per_sequence(run, count)
    return None if each is None else each * run["sequences"]
