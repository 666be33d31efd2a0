"""The sets of special tokens, with names, ids and roles, and the special tokens that documents may contain.

Each of the four sets belongs to a family of published tokenizers (docs/papers/ltg-bert.md, "Tokenizer" and "Tokenizers
for BabyLM"; docs/papers/reduced-vocabulary.md, "Tokenizers"; docs/papers/gpt-bert.md, "Tokenizer"). The names in the
order of their ids identify the set, so a saved tokenizer determines the role of each id.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from hatchery.errors import TokenizationError

UNLABELLED = -100
"""Label of positions without prediction, which PyTorch's losses ignore."""


@dataclass(frozen=True)
class SpecialTokens:
    """Names of the special tokens by role; `order` contains all names by id, from 0."""

    order: tuple[str, ...]
    unknown: str
    cls: str
    sep: str
    pad: str
    mask: str
    paragraph: str | None = None
    """Token at the end of a paragraph's last sentence; None if the set has no such token."""
    tab: str | None = None
    """Token at the beginning of an indented line; None if the set has no such token."""
    separators_in_pair: int = 1
    """Number of `sep` tokens between the texts of a pair: 2 in RoBERTa, 0 if `sep` does not end texts."""

    @property
    def sep_ends(self) -> bool:
        """True if `sep` ends each text. In GPT-BERT's set, `cls` begins each text, and no token ends a text."""
        return self.separators_in_pair > 0

    @cached_property
    def ids(self) -> dict[str, int]:
        """Token id of each special token, by name."""
        return {name: index for index, name in enumerate(self.order)}

    def record(self) -> dict[str, object]:
        """Return the names in order, and the id of each role, as written to the manifest of token shards.

        The id is None for a role without token.
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
    """Return the set of special tokens from `recorded`, the measure `special_tokens` of a manifest (see `record`).

    Raises TokenizationError unless names, order and ids are those of a known set.
    """
    order = recorded.get("order") if isinstance(recorded, dict) else None
    if not isinstance(order, list) or not all(isinstance(name, str) for name in order):
        raise TokenizationError(
            "special_tokens: got no mapping with the list `order`, expected the special tokens of a manifest"
        )
    special = special_tokens(order)
    if special.record() != recorded:
        raise TokenizationError(
            "special_tokens: the ids in the manifest differ from the ids of the set of special tokens"
        )
    return special


def special_tokens(names: Sequence[str]) -> SpecialTokens:
    """Return the set of special tokens with exactly `names` in this order. Raises TokenizationError if no set has these
    names."""
    for special in SPECIAL_SETS.values():
        if special.order == tuple(names):
            return special
    known_sets = "; ".join(f"{name}: {' '.join(special.order)}" for name, special in SPECIAL_SETS.items())
    raise TokenizationError(
        f"special_tokens: got the tokens {' '.join(names) or '(none)'}, expected one of the known sets: {known_sets}"
    )


# Tokens that corpus conversion writes into documents: `[UNK]` for unclear speech (BNC), `[TAB]` for an indented line
# (BabyLM). Other special tokens in a document, such as "[MASK]" in a page about BERT, are encoded as letters, so that
# text cannot imitate a paragraph end, padding or a mask. `<unk>` is never written.
TEXT_MARKERS = (UNKNOWN, TAB)
