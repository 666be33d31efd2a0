"""The comparison basis of a measured number: its predicted tokens, tokenizer, text and scoring method. Only numbers
with equal bases are comparable.

Evaluations write the basis next to each number, as `aspect: value; aspect: value`. Before numbers of a metric are
ranked or subtracted, `differing` compares their bases. A treatment, such as a learning rate, is not part of the basis,
because experiments compare treatments.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from hatchery.settings.base import dumped_values
from hatchery.typed import plain

if TYPE_CHECKING:
    from hatchery.training.objective import ObjectiveKeys

ASKED, TOKENIZER, TEXT, WINDOW, SCORING, ITEMS, PRECISION, SELECTION, RULES = (
    *("asked", "tokenizer", "text", "window", "scoring", "items", "precision", "selection", "rules"),
)
_DIGITS = 12
# Keys of an objective that are not part of the basis, because they do not change the predicted tokens of held-out text.
_OF_TRAINING_ALONE = {
    *("task", "causal_share", "causal_weight", "z_loss", "unigram_penalty", "final_mask_probability"),
    *("preference", "labelled_share"),
}
_KINDS = {"subword": "subwords", "whole_word": "whole words", "span": "spans", "short_span": "short spans"}


def basis(**aspects: object) -> str:
    """Return the comparison basis of a number: the conditions of its measurement (aspects), as the text `aspect: value;
    aspect: value`. Aspects without a value are omitted.
    """
    written = {name: str(value).replace(";", ",").replace(": ", " ") for name, value in aspects.items() if value}
    return "; ".join(f"{name}: {value}" for name, value in written.items())


def aspects_of(text: str) -> dict[str, str]:
    """Parse a comparison basis (the text that `basis` returns) into a mapping from aspect to value."""
    return {name: value for name, _, value in (part.partition(": ") for part in text.split("; ") if part)}


def differing(bases: Iterable[str]) -> dict[str, list[str]]:
    """Return the aspects (such as `tokenizer`) whose values differ among comparison bases, with these values; empty if
    all bases are equal. The bases are texts that `basis` returned.
    """
    found = [aspects_of(text) for text in dict.fromkeys(bases)]
    names = dict.fromkeys(name for aspects in found for name in aspects)
    values = {name: sorted({aspects.get(name, "") for aspects in found}) for name in names}
    return {name: of for name, of in values.items() if len(of) > 1}


def joined(bases: Iterable[tuple[object, str]]) -> str:
    """Return the comparison basis (conditions of measurement, or aspects, as in `basis`) of a number that is computed
    from other numbers, such as a mean over tasks. `bases` are pairs of a key, such as the task, and the basis of its
    number.

    If an aspect differs between the bases, its value in the result is the number of different values, and a digest of
    all keys with their values.
    """
    parts = sorted({(str(key), text) for key, text in bases})
    different = differing(text for _, text in parts)
    aspects = {name: value for _, text in parts for name, value in aspects_of(text).items()}
    for name, values in different.items():
        each = ((key, aspects_of(text).get(name, "")) for key, text in parts)
        aspects[name] = f"{len(values)} values, {digest_of(each)}"
    return basis(**aspects)


def digest_of(value: object) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of a value."""
    listed = list(value) if isinstance(value, Iterable) and not isinstance(value, str | Mapping) else value
    return hashlib.sha256(repr(listed).encode()).hexdigest()[:_DIGITS]


def shortened(digest: str | None) -> str:
    """Return the first 12 digits of a digest that identifies a text or a tokenizer; empty for None."""
    return (digest or "")[:_DIGITS]


def asked_of(objective: "ObjectiveKeys", seed: object = "") -> str:
    """Return a description of the tokens that a model predicts on held-out text, such as `15 % of subwords (1a2b3c)` or
    `next tokens`.

    The digest in parentheses covers the objective's settings that determine the masks, and the `seed` from which masks
    are drawn.
    """
    if objective.asked_as == "causal":
        return "next tokens"
    if objective.asked_as == "preference":
        return "next tokens of chosen texts"
    if objective.asked_as == "translation":
        return f"target tokens, {getattr(objective, 'direction', '')}"
    settings = plain(dumped_values(objective))
    masks = {name: value for name, value in settings.items() if name not in (*_OF_TRAINING_ALONE, "segments")}
    before = " at the positions before them" if objective.predicted_before else ""
    share, kind = getattr(objective, "hidden_share", ""), masks["kind"]
    return f"{share} of {_KINDS.get(kind, kind)}{before} ({digest_of((sorted(masks.items()), seed))[:6]})"


def window_of(objective: "ObjectiveKeys", sequence_length: int) -> str:
    """Return a description of the input sequences: their length in tokens, and the method by which text is split into
    sequences. The description also states if tokens attend to earlier documents in their sequence.
    """
    apart = "" if getattr(objective, "reset_attention", True) else ", behind other documents"
    return f"{sequence_length} tokens, {getattr(objective, 'segments', 'sentences')}{apart}"
