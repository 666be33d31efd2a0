"""Sentences about numbers that are not comparable (as `evaluation.basis` decides), and about models with only one
pretraining seed.
"""

from collections.abc import Iterable, Mapping, Sequence

from hatchery.evaluation.basis import (
    ASKED,
    ITEMS,
    PRECISION,
    RULES,
    SCORING,
    SELECTION,
    TEXT,
    TOKENIZER,
    WINDOW,
    aspects_of,
    differing,
)

BETWEEN_TWO = "each between two trained models"
"""End of the heading of a table of differences between models, if each model has only one pretraining seed."""
ONE_SEED = (
    "A model with one pretraining seed is a single trained model. Other seeds may have other results. A "
    "difference between such models is therefore not bold. A claim about models needs several pretraining "
    "seeds."
)

_REASONS = {
    ASKED: "models predicted different tokens",
    TOKENIZER: "the tokenizers differ",
    TEXT: "the texts differ",
    WINDOW: "the windows of text that the models read differ",
    SCORING: "texts were scored in different ways",
    ITEMS: "the numbers of items differ",
    PRECISION: "the precisions differ",
    SELECTION: "some models were selected on the text on which they are scored",
    RULES: "the rules of scoring differ",
}
_CURES = {
    ASKED: "perplexity with `masking: common`, for which all models of one objective predict the same tokens",
    TOKENIZER: "bits per byte, with the same masks",
    TEXT: "numbers on the same text",
    WINDOW: "numbers with the same `sequence_length` and `segments`",
    SCORING: "numbers with the same `scoring`",
    ITEMS: "numbers on the same items",
    PRECISION: "numbers in the same precision (`perplexity` is measured in float32)",
    SELECTION: "numbers on a text on which no model was selected",
    RULES: "numbers with the same rules of scoring",
}
_READABLE = (ASKED, WINDOW, SCORING, PRECISION, RULES)
"""Aspects of a comparison basis whose values are readable without the name of the aspect. The values of most other
aspects are numbers, or contain digests.
"""
_MOST_NAMED, _MOST_VALUES = 3, 4


def why(different: Mapping[str, Sequence[str]]) -> str:
    """Return the reason why numbers are not comparable, and advice on numbers that would be comparable.

    `different` maps each aspect that differs between the numbers to its values.
    """
    reasons = [_REASONS.get(aspect, aspect) + _values(aspect, values) for aspect, values in different.items()]
    cures = [_CURES[aspect] for aspect in different if aspect in _CURES]
    return f"{' and '.join(reasons)}. Comparable would be: {', and '.join(cures)}"


def distinguishing_labels(bases: Iterable[str]) -> dict[str, str]:
    """Return a label for each comparison basis. A basis describes aspects of a measurement, such as the tokenizer. The
    label contains the values of the aspects in which the bases differ, and is empty if all bases are equal.
    """
    listed = list(dict.fromkeys(bases))
    different = differing(listed)
    return {basis: ", ".join(_value_of(name, aspects_of(basis)) for name in different) for basis in listed}


def _value_of(aspect: str, aspects: Mapping[str, str]) -> str:
    """Return the value of an aspect of a measurement, such as the tokenizer, as part of a label: the name of the
    aspect, followed by its value. If the aspect is in _READABLE, return only the value, without a final part in
    parentheses.
    """
    value = aspects.get(aspect, "") or "not known"
    return value.partition(" (")[0] if aspect in _READABLE else f"{aspect} {value}"


def _values(aspect: str, values: Sequence[str]) -> str:
    texts = list(dict.fromkeys(value.partition(" (")[0] or "not known" for value in values))
    if aspect not in _READABLE or not 1 < len(texts) <= _MOST_VALUES:
        return ""
    return f" ({'; '.join(texts)})"


def not_compared(found: Mapping[str, Mapping[str, Sequence[str]]]) -> list[str]:
    """Return a note on numbers that are not compared, with the reasons; empty if all numbers are comparable.

    `found` maps the label of each compared number to the aspects of measurement in which the number differs from other
    numbers (`differing`).
    """
    by_reason: dict[str, list[str]] = {}
    for label, different in found.items():
        if different:
            by_reason.setdefault(why(different), []).append(label)
    note = " ".join(f"Not compared: {_named(labels)}, because {reason}." for reason, labels in by_reason.items())
    return [note] if note else []


def _named(labels: Sequence[str]) -> str:
    rest = len(labels) - _MOST_NAMED
    return ", ".join(labels[:_MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")
