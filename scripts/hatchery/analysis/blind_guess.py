"""What a guess scores that does not see what it is about: with it, a model that knows something can be told.

Of two sentences it has 50 % right, of classes those with the most frequent label, and its Matthews correlation is 0. On
held-out text it is that of the unigram distribution (`unigram_losses.py`).
"""

OF_PAIRS = 50.0
"""Accuracy on minimal pairs, in percent."""


def of_metric(metric: str, majority_accuracy: float | None) -> float | None:
    """That of a metric of a task, a fraction, where it is known; `majority_accuracy` is that of the task."""
    return {"accuracy": majority_accuracy, "mcc": 0.0}.get(metric)
