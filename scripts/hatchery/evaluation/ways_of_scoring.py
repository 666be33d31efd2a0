"""Scoring methods (ways), and the models that each method fits. Before any training, the workflow checks that each
chosen method fits its model. Jobs repeat this check.

A masked model predicts a masked token at the token's own position. A hybrid model (GPT-BERT) predicts a masked token at
the previous position, and can also continue a text. A method that reads the logits at the wrong position would return
meaningless scores without an error. The checks therefore also compare the position of the method with the position of
the model.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from hatchery.training.objective import ObjectiveKeys

Architecture = Literal["masked", "causal", "encoder_decoder"]
Edition = Literal[2023, 2025, 2026]
"""Years of BabyLM. The rules of evaluation differ between these years."""


class Way(NamedTuple):
    """A scoring method: the architectures that it fits, and the position at which the prediction of a masked token is
    read.
    """

    architectures: tuple[Architecture, ...]
    tokens: str
    """Name of the scoring function, which returns the log-probabilities of tokens; the function is in `module`."""
    rows: Callable[[int], int]
    """Function that returns a sentence's number of model inputs, given the sentence's number of scored tokens."""
    predicted_before: int | None = None
    """Position at which a prediction is read. 0: position of the masked token; 1: position before the masked token;
    None: as in the model's training.
    """
    needs_words: bool = False
    sums: bool = False
    """True if the model is also scored from left to right, and the two log-likelihoods are summed."""
    pads: bool = False
    """True if a padded batch may contain sentences of different lengths."""
    module: str = "likelihoods"
    """Name of the module in `minimal_pairs` that contains the scoring function."""


def _each(length: int) -> int:
    return length


_PLL = "token_pseudo_log_likelihoods"
DIFFUSION_ORDERS = 4
"""Number of random orders of a sentence's tokens; the bound of masked diffusion is averaged over these orders."""
WAYS: dict[str, Way] = {
    # Pseudo-log-likelihood: the sum of the log-probabilities of all tokens, each with only this token masked (Salazar
    # et al., 2020).
    "pll": Way(("masked",), _PLL, _each),
    # Names in BabyLM's pipeline for `pll`. `masked` requires a model that predicts a token at the token's own position
    # (masked models), and `mntp` a model that predicts it one position earlier (hybrid models).
    "masked": Way(("masked",), _PLL, _each, predicted_before=0),
    "mntp": Way(("masked",), _PLL, _each, predicted_before=1),
    # As `pll`, but the later subwords of the token's word are also masked (Kauf & Ivanova, 2023).
    "pll_within_word_l2r": Way(("masked",), "token_within_word_likelihoods", _each, needs_words=True),
    # Sum of the pseudo-log-likelihood and the left-to-right log-likelihood, for hybrid models (GPT-BERT).
    "fused": Way(
        ("masked",),
        "token_fused_likelihoods",
        lambda length: length + 1,
        predicted_before=1,
        sums=True,
        module="left_to_right",
    ),
    # Variational bound on the log-likelihood by masked diffusion, for models trained with all proportions of masked
    # tokens.
    "diffusion": Way(
        ("masked",), "token_diffusion_bounds", lambda length: DIFFUSION_ORDERS * length, module="diffusion_bounds"
    ),
    # Left-to-right log-likelihood after one context token (BabyLM 2023).
    "left_to_right": Way(
        ("causal", "encoder_decoder"),
        "token_left_to_right_likelihoods",
        lambda length: 1,
        pads=True,
        module="left_to_right",
    ),
}


def default_way(architecture: str) -> str:
    """Return the scoring method that `auto` means for an architecture."""
    return "pll" if architecture == "masked" else "left_to_right"


_PREDICTED = {"masked": "masked tokens", "causal": "next tokens"}


def unlearned(name: str, kinds: Sequence[str], learned: Sequence[str]) -> str | None:
    """Return the reason why a scoring method does not fit the model's training, or None if it fits.

    `kinds` are the uses (masked, causal) that the network supports, and `learned` the uses for which it was trained. A
    scoring method fits only a learned use.
    """
    if name not in WAYS:
        return None  # `auto` uses the model as it was trained.
    asked = tuple(_PREDICTED) if WAYS[name].sums else WAYS[name].architectures
    never = [_PREDICTED[kind] for kind in asked if kind in kinds and kind not in learned]
    return (
        f"{name!r} needs predictions of {never[0]}, but the model only learned to predict {_PREDICTED[learned[0]]}"
        if never
        else None
    )


def never_hidden(name: str, objective: "ObjectiveKeys") -> str | None:
    """Return the reason why the scoring method `diffusion` does not fit a model. The method masks every proportion of
    the tokens, from 0 to 100 %, so it fits only if training also masked all these proportions. Return None if the
    method fits, and for every other method.
    """
    rates = getattr(objective, "rates", None)
    if name != "diffusion" or (rates is not None and rates.covers_all):
        return None
    share = getattr(objective, "hidden_share", "no tokens").removesuffix(",")
    return f"{name!r} masks 0 to 100 % of the tokens, but the model was trained with {share} masked"


def fitting_ways(kinds: Sequence[str], predicted_before: int) -> list[str]:
    """Return the scoring methods that fit a model. `kinds` are the ways in which the model can predict, such as masked
    and causal. `predicted_before` is 1 if the model predicts a masked token at the position before this token, and 0 if
    it predicts the token at its own position.
    """
    return [
        name
        for name, way in WAYS.items()
        if set(way.architectures) & set(kinds)
        and ("masked" not in way.architectures or way.predicted_before in (None, predicted_before))
    ]


def why_not(name: str, kinds: Sequence[str], predicted_before: int, edition: Edition = 2023) -> str | None:
    """Return the reason why a scoring method does not fit a model under the rules of `edition`, followed by an
    alternative if there is one. Return None if the method fits.
    """
    if edition != 2023 and "encoder_decoder" in kinds:
        return (
            f"{name!r} by the rules of {edition} predicts the masked tokens of an encoder-decoder, which Hatchery does "
            "not support; use a suite of the edition 2023, by whose rules the decoder predicts from left to right"
        )
    fitting = fitting_ways(kinds, predicted_before)
    if name in fitting or (name == "auto" and fitting):
        return None
    use = f"use {' or '.join(fitting)}" if fitting else "no scoring method fits this model"
    way = WAYS[name] if name != "auto" else Way(("masked", "causal"), "", int)
    if "masked" in kinds and way.predicted_before == 0:
        return (
            f"{name!r} reads the prediction of a masked token at the token's own position, but a hybrid model was "
            f"trained to predict the token at the position before: the scores would be meaningless; {use}"
        )
    if "masked" in kinds and way.predicted_before == 1:
        return f"{name!r} needs a model that was trained with task hybrid, but this model is masked; {use}"
    return f"{name!r} needs a {way.architectures[0]} language model, but this model is {kinds[0]}; {use}"
