"""Loading a `tokenizer.json` and vouching for it: special tokens at their fixed ids, byte-level with a prefix space.

Works for the tokenizers trained here and for those published with LTG-BERT (BabyLM) and ELC-BERT. Whatever the file
says about truncation and padding is switched off, so that text is never cut silently.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Backend

from hatchery.errors import TokenizationError
from hatchery.tokenization.special_tokens import CLS, MASK, PAD, PAR, SEP, SPECIAL_IDS, SPECIAL_TOKENS, TAB, UNKNOWN


class Tokenizer:
    """Text to ids and back; `backend` is the library's tokenizer for anything that is not offered here."""

    unknown_id = SPECIAL_IDS[UNKNOWN]
    cls_id = SPECIAL_IDS[CLS]
    sep_id = SPECIAL_IDS[SEP]
    pad_id = SPECIAL_IDS[PAD]
    mask_id = SPECIAL_IDS[MASK]
    par_id = SPECIAL_IDS[PAR]
    tab_id = SPECIAL_IDS[TAB]

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.vocabulary_size: int = backend.get_vocab_size(with_added_tokens=True)

    @property
    def tokens(self) -> list[str]:
        """The vocabulary in the order of the ids, in byte-level spelling (`Ġ` is a space)."""
        vocabulary = self.backend.get_vocab(with_added_tokens=True)
        return sorted(vocabulary, key=vocabulary.__getitem__)

    def encode_sentences(self, sentences: Sequence[str]) -> list[list[int]]:
        """Ids of each sentence, without [CLS] and [SEP]; parallel over sentences."""
        # The fast variant leaves out character offsets, which would cost a quarter of the time.
        encodings = self.backend.encode_batch_fast(list(sentences), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = False) -> str:
        """Text of a list of ids. Of text that did not begin with a space it restores the prefix space too."""
        return self.backend.decode(list(ids), skip_special_tokens=skip_special_tokens)

    def unknown_texts(self, sentence: str) -> list[str]:
        """The normalised text behind each [UNK] of the sentence, in order, with a leading space where it has one."""
        encoding = self.backend.encode(sentence, add_special_tokens=False)
        texts = [
            sentence[start:end]
            for index, (start, end) in zip(encoding.ids, encoding.offsets, strict=True)
            if index == self.unknown_id
        ]
        normalizer = self.backend.normalizer
        return texts if normalizer is None else [normalizer.normalize_str(text) for text in texts]


def load_tokenizer(path: str | Path, recognise: Sequence[str] = SPECIAL_TOKENS) -> Tokenizer:
    """Load the tokenizer at `path`.

    `recognise` names the special tokens that are recognised when they are spelled out in a text (published
    behaviour: all of them); the others are then ordinary letters. All of them keep their ids in any case.

    Raises TokenizationError naming the file when it is missing, damaged, lacks a special token, has gaps in its ids,
    or is not byte-level with a prefix space and an empty continuation prefix.
    """
    path = Path(path)
    definition = _read(path)
    definition["added_tokens"] = [
        token
        for token in definition["added_tokens"]
        if token["content"] not in SPECIAL_IDS or token["content"] in recognise
    ]
    try:
        backend = Backend.from_str(json.dumps(definition))
    except Exception as error:  # the library raises bare Exception
        raise TokenizationError(f"{path}: not a tokenizer: {str(error).splitlines()[0]}") from error
    backend.no_truncation()
    backend.no_padding()
    vocabulary = backend.get_vocab(with_added_tokens=True)
    for token, index in SPECIAL_IDS.items():
        if vocabulary.get(token) != index:
            found = f"has id {vocabulary[token]}" if token in vocabulary else "is missing"
            raise TokenizationError(f"{path}: the special token {token} {found}, expected id {index}")
    if sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise TokenizationError(f"{path}: the ids of the vocabulary are not 0 to {len(vocabulary) - 1} without gaps")
    return Tokenizer(backend)


def _read(path: Path) -> dict[str, Any]:
    """Read and check the parts that the library would accept but that our word starts rely on."""
    try:
        definition = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise TokenizationError(f"{path}: the tokenizer is missing") from error
    except (OSError, ValueError) as error:
        raise TokenizationError(f"{path}: the tokenizer cannot be read: {error}") from error
    try:
        model = definition["model"]
        names = [token["content"] for token in definition["added_tokens"]]
        pre_tokenizer = definition["pre_tokenizer"] or {}
        parts = pre_tokenizer.get("pretokenizers", [pre_tokenizer])
        byte_level = [part for part in parts if part.get("type") == "ByteLevel" and part.get("add_prefix_space")]
        prefix = model.get("continuing_subword_prefix") or ""
    except (KeyError, TypeError, AttributeError) as error:
        raise TokenizationError(f"{path}: not a tokenizer: {type(error).__name__} at {error}") from error
    missing = [token for token in SPECIAL_TOKENS if token not in names]
    if missing:
        raise TokenizationError(f"{path}: the special token {missing[0]} is missing from added_tokens")
    if not byte_level or prefix:
        raise TokenizationError(
            f"{path}: expected a byte-level tokenizer with add_prefix_space and an empty continuing_subword_prefix"
        )
    return definition
