"""Smaller vocabularies cut from a larger one: exact for tokenizers that grow by merging pairs.

BPE and WordPiece are trained by the same loop: special tokens, alphabet, then one most frequent pair after the other
until the vocabulary is full. What the loop does never depends on where it will stop, so that a smaller vocabulary is
the beginning of a larger one, trained once. A test compares the files byte for byte. Unigram models are pruned from
above and have no such order.
"""

from typing import Any

from hatchery.errors import TokenizationError
from hatchery.tokenization.trainer import TokenizerSettings

NESTED_KINDS = ("wordpiece", "byte_bpe")


def is_nested(settings: TokenizerSettings) -> bool:
    """Whether a smaller tokenizer of these settings is a part of a larger one."""
    return settings.kind in NESTED_KINDS


def vocabulary_size(definition: dict[str, Any]) -> int:
    """Entries of a tokenizer's model."""
    return len(definition["model"]["vocab"])


def smallest_size(definition: dict[str, Any]) -> int:
    """Entries that a nested tokenizer has before its first merge: special tokens and alphabet."""
    prefix = definition["model"].get("continuing_subword_prefix") or ""
    special = {token["content"] for token in definition["added_tokens"]}
    return sum(
        token in special or len(token) == 1 or len(token.removeprefix(prefix)) == 1
        for token in definition["model"]["vocab"]
    )


def cut_down(definition: dict[str, Any], size: int, where: str) -> dict[str, Any]:
    """The definition of the nested tokenizer with the first `size` entries of the given one.

    Raises TokenizationError naming `where` when `size` exceeds the vocabulary or lies below special tokens and
    alphabet.
    """
    model = definition["model"]
    entries = vocabulary_size(definition)
    if size > entries:
        raise TokenizationError(f"{where}: the size {size} is too large, the corpus supports only {entries} entries")
    smallest = smallest_size(definition)
    if size < smallest:
        raise TokenizationError(
            f"{where}: the size {size} is too small, special tokens and alphabet already make {smallest} entries"
        )
    vocabulary = {token: index for token, index in model["vocab"].items() if index < size}
    cut = {**model, "vocab": vocabulary}
    if "merges" in model:
        cut["merges"] = _merges(model, smallest, size)
    return {**definition, "model": cut}


def _merges(model: dict[str, Any], smallest: int, size: int) -> list[Any]:
    """The merges up to the one that makes the entry `size - 1`; some make an entry that another made before."""
    prefix = model.get("continuing_subword_prefix") or ""
    last = smallest - 1
    kept: list[Any] = []
    for merge in model["merges"]:
        if last >= size - 1:
            break
        left, right = merge.split(" ") if isinstance(merge, str) else merge
        last = max(last, model["vocab"][left + right.removeprefix(prefix)])
        kept.append(merge)
    return kept
