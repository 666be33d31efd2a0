"""The sets of special tokens: their names, ids and roles, and the tokens that raw text may spell out.

Four sets exist, one for each family of published tokenizers (docs/papers/ltg-bert.md, "Tokenizer" and "Tokenizers for
BabyLM"; docs/papers/reduced-vocabulary.md, "Tokenizers"; docs/papers/gpt-bert.md, "Tokenizer"). A set is recognised by
its names in the order of their ids, so that a saved tokenizer determines the role of each id.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from hatchery.errors import TokenizationError

UNLABELLED = -100
"""Label of positions without a prediction; PyTorch's losses ignore it."""


@dataclass(frozen=True)
class SpecialTokens:
    """Names of the special tokens by role; `order` lists them by id, from 0."""

    order: tuple[str, ...]
    unknown: str
    cls: str
    sep: str
    pad: str
    mask: str
    paragraph: str | None = None
    """Ends the last sentence of a paragraph; None if the set has no paragraph token."""
    tab: str | None = None
    """Marks an indented line; None if the set has no token for it."""
    separators_in_pair: int = 1
    """Number of `sep` tokens between the two texts of a pair: 2 in RoBERTa, 0 if `sep` ends no text."""

    @property
    def sep_ends(self) -> bool:
        """Return whether `sep` ends each text; in GPT-BERT's set, `cls` begins each text, and no token ends a text."""
        return self.separators_in_pair > 0

    @cached_property
    def ids(self) -> dict[str, int]:
        """Return the id of each name."""
        return {name: index for index, name in enumerate(self.order)}

    def record(self) -> dict[str, object]:
        """Return the names in order and the id of each role, as in the manifest of token shards.

        A role that the set lacks is None.
        """
        names = {role: getattr(self, role) for role in ROLES}
        return {"order": list(self.order), **{role: self.ids.get(name) for role, name in names.items()}}


ROLES = ("unknown", "cls", "sep", "pad", "mask", "paragraph", "tab")

UNKNOWN, CLS, SEP, PAD, MASK, PAR, TAB = "[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]", "[PAR]", "[TAB]"

SPECIAL_SETS: dict[str, SpecialTokens] = {
    "babylm": SpecialTokens((UNKNOWN, CLS, SEP, PAD, MASK, PAR, TAB), UNKNOWN, CLS, SEP, PAD, MASK, PAR, TAB),
    "bnc": SpecialTokens((UNKNOWN, CLS, SEP, PAD, MASK, PAR), UNKNOWN, CLS, SEP, PAD, MASK, PAR),
    "roberta": SpecialTokens(
        ("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
        unknown="<unk>",
        cls="<s>",
        sep="</s>",
        pad="<pad>",
        mask="<mask>",
        separators_in_pair=2,
    ),
    "gpt_bert": SpecialTokens(
        ("<unk>", "<s>", "</s>", "<pad>", "<mask>", *(f"<special_{number}>" for number in range(11))),
        unknown="<unk>",
        cls="<s>",
        sep="</s>",
        pad="<pad>",
        mask="<mask>",
        separators_in_pair=0,
    ),
}


def recorded_special_tokens(recorded: object) -> SpecialTokens:
    """Return the set of special tokens of token shards, from the measure `special_tokens` of their manifest (see
    `record`).

    Raises TokenizationError if the measure does not name a known set in order, or if its ids differ from the ids of the
    set.
    """
    order = recorded.get("order") if isinstance(recorded, dict) else None
    if not isinstance(order, list) or not all(isinstance(name, str) for name in order):
        raise TokenizationError("special_tokens: not a record of special tokens")
    special = special_tokens(order)
    if special.record() != recorded:
        raise TokenizationError("special_tokens: the ids of the record are not those of the set")
    return special


def special_tokens(names: Sequence[str]) -> SpecialTokens:
    """Return the set of special tokens with exactly these names in this order. Raises TokenizationError without one."""
    for special in SPECIAL_SETS.values():
        if special.order == tuple(names):
            return special
    known_sets = "; ".join(f"{name}: {' '.join(special.order)}" for name, special in SPECIAL_SETS.items())
    raise TokenizationError(
        f"special_tokens: no known set has the tokens {' '.join(names) or '(none)'}; known are {known_sets}"
    )


# Converters write these two tokens into documents: `[UNK]` for unclear speech (BNC), `[TAB]` for an indented line
# (BabyLM). The other special tokens mark structure. A page that explains BERT may contain the letters "[MASK]"; when
# documents are encoded these stay letters, so that no text can forge a paragraph end, a padding or a mask. No converter
# writes `<unk>`.
TEXT_MARKERS = (UNKNOWN, TAB)
