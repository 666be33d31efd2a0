"""Tokenizers as they are measured: alone on a word without a leading space, on running text, or on one pre-token.

Any `tokenizer.json` of the library can be opened, so that the pretrained references of the reduced-vocabulary study
(roberta-base, bert-base-uncased, t5-base) can be compared with what is trained here. Truncation and padding are off.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tokenizers import Tokenizer as Backend
from tokenizers import decoders

from hatchery.errors import TokenizationError
from hatchery.tokenization.tokenizer_file import Definition

WORD_MARKER = "\u2581"
"""The character with which SentencePiece marks the beginning of a word."""
_BATCH = 4096


def read_definition(text: str, where: str) -> Definition:
    """Parse the text of a `tokenizer.json`. Raises TokenizationError naming `where` when it is none."""
    try:
        definition = json.loads(text)
        vocabulary, kind = definition["model"]["vocab"], definition["model"]["type"]
    except (ValueError, KeyError, TypeError) as error:
        raise TokenizationError(f"{where}: not a tokenizer: {type(error).__name__} at {error}") from error
    if not vocabulary or not isinstance(kind, str):
        raise TokenizationError(f"{where}: not a tokenizer: its model has no vocabulary")
    return dict(definition)


def isolated(definition: Definition) -> Definition:
    """The definition for words in isolation: the byte-level pre-tokeniser puts no space in front.

    The metaspace marker of SentencePiece stays, because the published code scores it with the word.
    """
    return {**definition, "pre_tokenizer": _without_prefix_space(definition.get("pre_tokenizer"))}


def _without_prefix_space(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    if part.get("type") == "ByteLevel":
        return {**part, "add_prefix_space": False}
    if part.get("type") == "Sequence":
        return {**part, "pretokenizers": [_without_prefix_space(inner) for inner in part["pretokenizers"]]}
    return part


def model_only(definition: Definition) -> Definition:
    """The definition that takes its whole input as one pre-token, already normalised."""
    parts = ("normalizer", "pre_tokenizer", "post_processor", "decoder", "truncation", "padding")
    return {**definition, **dict.fromkeys(parts), "added_tokens": []}


def unknown_token(definition: Definition) -> str | None:
    """The name of the unknown token, or None for a model that has none."""
    model = definition["model"]
    if model["type"] == "Unigram":
        index = model.get("unk_id")
        return None if index is None else str(model["vocab"][index][0])
    name = model.get("unk_token")
    return None if name is None else str(name)


def is_byte_level(definition: Definition) -> bool:
    """Whether tokens are spelled in the 256 symbols of the byte-level alphabet."""
    part = definition.get("pre_tokenizer") or {}
    return any(inner.get("type") == "ByteLevel" for inner in part.get("pretokenizers", [part]))


def surfaces(definition: Definition, tokens: Sequence[str]) -> list[str]:
    """The letters that each token stands for: without continuation prefix and word marker, bytes as characters.

    A token that is nothing but a marker is left out.
    """
    prefix = definition["model"].get("continuing_subword_prefix") or ""
    byte_level = decoders.ByteLevel() if is_byte_level(definition) else None
    found = []
    for index, token in enumerate(tokens):
        letters = token.removeprefix(prefix) if index else token
        letters = byte_level.decode([letters]) if byte_level is not None else letters.replace(WORD_MARKER, "")
        if letters := letters.strip():
            found.append(letters)
    return found


def tokens_of(backend: Backend, texts: Sequence[str]) -> Iterator[list[str]]:
    """The tokens of every text, without [CLS] and its kin; of an empty text none. Parallel over texts."""
    # The fast variant gives ids only, without the spelling of tokens.
    names = {index: token for token, index in backend.get_vocab(with_added_tokens=True).items()}
    for start in range(0, len(texts), _BATCH):
        batch = list(texts[start : start + _BATCH])
        for text, encoding in zip(batch, backend.encode_batch_fast(batch, add_special_tokens=False), strict=True):
            yield [names[index] for index in encoding.ids] if text else []
