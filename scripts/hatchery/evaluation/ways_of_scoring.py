"""Scoring methods (ways), and the models that each method fits. Planning checks the fit before any training, and jobs
check it again.

A masked model predicts a hidden token at the token's own position. A hybrid model (GPT-BERT) predicts a hidden token at
the position before it, and can also continue a text. Logits read at the wrong position give meaningless numbers without
an error.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from hatchery.training.objective import ObjectiveKeys

Architecture = Literal["masked", "causal", "encoder_decoder"]
Edition = Literal[2023, 2025, 2026]
"""Years of BabyLM whose evaluations have different rules."""


class Way(NamedTuple):
    """A scoring method: the architectures that it fits, and the position at which a hidden token is predicted."""

    architectures: tuple[Architecture, ...]
    tokens: str
    """Name of the function of `module` that returns the log-probabilities of tokens."""
    rows: Callable[[int], int]
    """Function from the number of scored tokens of a sentence to its number of model inputs."""
    predicted_before: int | None = None
    """Position of a prediction. 0: at the hidden token; 1: at the position before the hidden token; None: as in the
    model's training."""
    needs_words: bool = False
    sums: bool = False
    """True if the model is also scored from left to right, and the two log-likelihoods are added."""
    pads: bool = False
    """True if sentences of different lengths may share a padded batch."""
    module: str = "likelihoods"
    """Name of the module in `minimal_pairs` that contains the scoring function."""


def _each(length: int) -> int:
    return length


_PLL = "token_pseudo_log_likelihoods"
DIFFUSION_ORDERS = 4
"""Number of orders of a sentence's tokens over which the bound of masked diffusion is averaged."""
WAYS: dict[str, Way] = {
    # Each token is masked separately (Salazar et al., 2020).
    "pll": Way(("masked",), _PLL, _each),
    # BabyLM's pipeline has the same names for these two methods. Each method fits one position of predictions, which is
    # checked.
    "masked": Way(("masked",), _PLL, _each, predicted_before=0),
    "mntp": Way(("masked",), _PLL, _each, predicted_before=1),
    # The later subwords of the token's word are masked too (Kauf & Ivanova, 2023).
    "pll_within_word_l2r": Way(("masked",), "token_within_word_likelihoods", _each, needs_words=True),
    # The pseudo-log-likelihood plus the log-likelihood from left to right, for hybrid models (GPT-BERT).
    "fused": Way(
        ("masked",),
        "token_fused_likelihoods",
        lambda length: length + 1,
        predicted_before=1,
        sums=True,
        module="left_to_right",
    ),
    # The bound of masked diffusion, for models that are trained at all shares of hidden tokens.
    "diffusion": Way(
        ("masked",), "token_diffusion_bounds", lambda length: DIFFUSION_ORDERS * length, module="diffusion_bounds"
    ),
    # The log-likelihood from left to right, after one context token (BabyLM 2023).
    "left_to_right": Way(
        ("causal", "encoder_decoder"),
        "token_left_to_right_likelihoods",
        lambda length: 1,
        pads=True,
        module="left_to_right",
    ),
}


def default_way(architecture: str) -> str:
    """Return the scoring method that `auto` selects for an architecture."""
    return "pll" if architecture == "masked" else "left_to_right"


_PREDICTED = {"masked": "hidden tokens", "causal": "next tokens"}


def unlearned(name: str, kinds: Sequence[str], learned: Sequence[str]) -> str | None:
    """Return the reason why a scoring method does not fit the model's training, or None.

    `kinds` are the uses that the network supports. `learned` are the uses for which the network was trained; a scoring
    method needs a learned use.
    """
    if name not in WAYS:
        return None  # `auto` uses the model as it was trained.
    asked = tuple(_PREDICTED) if WAYS[name].sums else WAYS[name].architectures
    never = [_PREDICTED[kind] for kind in asked if kind in kinds and kind not in learned]
    return f"{name!r} asks for {never[0]}, and the model only learned {_PREDICTED[learned[0]]}" if never else None


def never_hidden(name: str, objective: "ObjectiveKeys") -> str | None:
    """Return the reason why a scoring method hides shares of tokens that the model never saw hidden in training, or
    None."""
    rates = getattr(objective, "rates", None)
    if name != "diffusion" or (rates is not None and rates.covers_all):
        return None
    share = getattr(objective, "hidden_share", "no share of tokens").removesuffix(",")
    return f"{name!r} hides 0 to 100 % of the tokens, and the model was trained with {share} hidden"


def fitting_ways(kinds: Sequence[str], predicted_before: int) -> list[str]:
    """Return the scoring methods that fit a model with the uses `kinds` and this distance from a prediction's position
    to its hidden token."""
    return [
        name
        for name, way in WAYS.items()
        if set(way.architectures) & set(kinds)
        and ("masked" not in way.architectures or way.predicted_before in (None, predicted_before))
    ]


def why_not(name: str, kinds: Sequence[str], predicted_before: int, edition: Edition = 2023) -> str | None:
    """Return the reason why a method does not fit a model under the rules of `edition`, and a method that fits; None if
    the method fits."""
    if edition != 2023 and "encoder_decoder" in kinds:
        return (
            f"{name!r} by the rules of {edition} predicts the hidden tokens of an encoder-decoder, which is not "
            "supported here; use a suite of the edition 2023, by whose rules the decoder predicts from left to right"
        )
    fitting = fitting_ways(kinds, predicted_before)
    if name in fitting or (name == "auto" and fitting):
        return None
    use = f"use {' or '.join(fitting)}" if fitting else "it can be scored in no way"
    way = WAYS[name] if name != "auto" else Way(("masked", "causal"), "", int)
    if "masked" in kinds and way.predicted_before == 0:
        return (
            f"{name!r} reads a hidden token at its own position, but a hybrid model was trained to predict it at the "
            f"position before: the numbers would mean nothing; {use}"
        )
    if "masked" in kinds and way.predicted_before == 1:
        return f"{name!r} needs a model that was trained with task hybrid, this one is masked; {use}"
    return f"{name!r} needs a {way.architectures[0]} language model, this one is {kinds[0]}; {use}"
