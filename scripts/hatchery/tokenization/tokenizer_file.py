"""The files of a tokenizer: loading and checking a `tokenizer.json`, and the two further files that `transformers`
needs.

This module reads the tokenizers trained here and the tokenizers published with LTG-BERT (BNC and BabyLM), ELC-BERT and
the reduced-vocabulary study. Truncation and padding of the file are switched off, so that text is never truncated
silently. The file must have a known set of special tokens and a known mark of word starts.

`tokenizer_config.json` and `special_tokens_map.json` have the layout that `PreTrainedTokenizerFast` writes itself. They
list the special tokens again, with their roles, which `tokenizer.json` does not contain.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tokenizers import Tokenizer as Backend
from tokenizers import decoders

from hatchery.artifacts.atomic import json_value
from hatchery.errors import ConfigError, TokenizationError, first_line
from hatchery.tokenization.definitions import SPACE
from hatchery.tokenization.special_tokens import SPECIAL_SETS, SpecialTokens

MODELS = ("WordPiece", "BPE", "Unigram")
Definition = dict[str, Any]
"""Content of a `tokenizer.json`."""


@dataclass(frozen=True)
class WordMark:
    """Spelling by which a tokenizer distinguishes the tokens that begin a word.

    `byte_level`: a word's first token begins with a white-space byte (`Ġ` is the space). `metaspace`: the first token
    begins with `symbol`, which represents a space. `continuation`: all tokens except the first begin with `symbol`, the
    prefix of tokens inside a pre-token.
    """

    kind: Literal["byte_level", "metaspace", "continuation"]
    symbol: str = ""


class Tokenizer:
    """Converts text to ids and back; `backend` is the library's tokenizer, for its other methods.

    `special` is its set of special tokens, which have the ids 0 to `n_special` - 1; `par_id` and `tab_id` are None if
    the set has no token of this role.
    """

    def __init__(self, backend: Backend, special: SpecialTokens, word_mark: WordMark) -> None:
        self.backend = backend
        self.special = special
        self.word_mark = word_mark
        self.vocabulary_size: int = backend.get_vocab_size(with_added_tokens=True)
        self.n_special = len(special.order)
        self.unknown_id: int = special.ids[special.unknown]
        self.cls_id: int = special.ids[special.cls]
        self.sep_id: int = special.ids[special.sep]
        self.pad_id: int = special.ids[special.pad]
        self.mask_id: int = special.ids[special.mask]
        self.par_id: int | None = None if special.paragraph is None else special.ids[special.paragraph]
        self.tab_id: int | None = None if special.tab is None else special.ids[special.tab]

    def without_end(self) -> "Tokenizer":
        """Return a copy that appends no end token, for models trained without one."""
        return Tokenizer(self.backend, replace(self.special, separators_in_pair=0), self.word_mark)

    @property
    def between_ids(self) -> list[int]:
        """Return the ids of the special tokens between the two texts of a pair."""
        special = self.special
        return [self.sep_id] * special.separators_in_pair if special.sep_ends else [self.cls_id]

    @property
    def end_ids(self) -> list[int]:
        """Return the ids after a text, or after the last of several texts; empty in GPT-BERT's set, or in a copy by
        `without_end`.
        """
        return [self.sep_id] if self.special.sep_ends else []

    @property
    def tokens(self) -> list[str]:
        """Return the vocabulary in the order of the ids, in the spelling of the file (`Ġ` or `▁` is a space)."""
        vocabulary = self.backend.get_vocab(with_added_tokens=True)
        return [*self.special.order, *sorted(vocabulary, key=vocabulary.__getitem__)[self.n_special :]]

    def encode_sentences(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the ids of each sentence, without the special tokens around a sequence; parallel over sentences."""
        # `encode_batch_fast` omits character offsets, which would take a quarter of the time.
        encodings = self.backend.encode_batch_fast(list(sentences), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def token_spans(self, sentences: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Return the span of characters (start, end) that each token of `encode_sentences` represents in its
        sentence.
        """
        encodings = self.backend.encode_batch(list(sentences), add_special_tokens=False)
        return [encoding.offsets for encoding in encodings]

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = False) -> str:
        """Return the text of a list of ids.

        The text of a byte-level tokenizer that adds a prefix space begins with a space. A Metaspace tokenizer drops a
        leading space. A tokenizer with a continuation prefix returns the pre-tokens, separated by one space.
        """
        return self.backend.decode(list(ids), skip_special_tokens=skip_special_tokens)

    def unknown_texts(self, sentences: Sequence[str]) -> list[str]:
        """Return the normalised text of each unknown token of the sentences, in order, with its leading space
        if any.
        """
        encodings = self.backend.encode_batch(list(sentences), add_special_tokens=False)
        texts = [
            sentence[start:end]
            for sentence, encoding in zip(sentences, encodings, strict=True)
            for index, (start, end) in zip(encoding.ids, encoding.offsets, strict=True)
            if index == self.unknown_id
        ]
        normalizer = self.backend.normalizer
        if normalizer is None:
            return texts
        # Remove the prefix that the normaliser adds to every text, because these texts are parts of a text.
        begun = normalizer.normalize_str("x").removesuffix("x")
        return [normalizer.normalize_str(text).removeprefix(begun) for text in texts]


def load_tokenizer(path: str | Path, recognise: Sequence[str] | None = None) -> Tokenizer:
    """Load the tokenizer at `path`.

    `recognise` names the special tokens that are recognised if a text spells them out (by default all special tokens,
    as published); others are encoded as ordinary letters. All special tokens keep their ids; names that the tokenizer
    lacks are ignored.

    Raises TokenizationError naming the file if it is missing or damaged, has no known set of special tokens at their
    ids, has gaps in its ids, or does not mark word starts.
    """
    path = Path(path)
    definition = _read(path)
    special = _special_tokens(path, definition)
    word_mark = _word_mark(path, definition["model"], _parts(definition["pre_tokenizer"]))
    _check_unknown(path, definition["model"], special)
    hidden = set(special.order) - set(special.order if recognise is None else recognise)
    try:
        definition = _hide(definition, hidden)
    except (TypeError, ValueError, AttributeError) as error:
        raise TokenizationError(f"{path}: not a tokenizer: {error}") from error
    backend = open_backend(definition, str(path))
    vocabulary = backend.get_vocab(with_added_tokens=True)
    for token, index in special.ids.items():
        spelling = _hidden_spelling(token) if token in hidden else token
        if vocabulary.get(spelling) != index:
            state = f"has id {vocabulary[spelling]}" if spelling in vocabulary else "is missing"
            raise TokenizationError(f"{path}: the special token {token} {state}, expected id {index}")
    if sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise TokenizationError(f"{path}: the ids of the vocabulary are not 0 to {len(vocabulary) - 1} without gaps")
    if backend.decoder is None:
        backend.decoder = _decoder(word_mark)
    return Tokenizer(backend, special, word_mark)


def open_backend(definition: Definition, where: str) -> Backend:
    """Return the library's tokenizer of a definition, without truncation and padding.

    Raises TokenizationError naming `where` if the library refuses the definition.
    """
    try:
        backend = Backend.from_str(json.dumps(definition))
    except Exception as error:  # the library raises bare Exception
        raise TokenizationError(f"{where}: not a tokenizer: {first_line(error)}") from error
    backend.no_truncation()
    backend.no_padding()
    return backend


def _read(path: Path) -> Definition:
    try:
        definition = json_value(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise TokenizationError(f"{path}: the tokenizer is missing") from error
    except (OSError, ValueError) as error:
        raise TokenizationError(f"{path}: the tokenizer cannot be read: {error}") from error
    try:
        # Look up the parts that this module reads, to raise an error here if one is missing; the library checks all
        # others.
        definition["model"]["type"], definition["model"]["vocab"], _parts(definition["pre_tokenizer"])
        [(token["content"], token["id"]) for token in definition["added_tokens"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise TokenizationError(f"{path}: not a tokenizer: {type(error).__name__} at {error}") from error
    return definition


def _parts(pre_tokenizer: Definition | None) -> list[Definition]:
    """Return the single pre-tokenisers of a (nested) sequence of pre-tokenisers, in order."""
    if pre_tokenizer is None:
        return []
    nested = pre_tokenizer.get("pretokenizers")
    return [pre_tokenizer] if nested is None else [part for inner in nested for part in _parts(inner)]


def _special_tokens(path: Path, definition: Definition) -> SpecialTokens:
    added_ids = {token["content"]: token["id"] for token in definition["added_tokens"]}
    # The set that shares most names with the file; in a tie, the smaller set.
    special = max(
        SPECIAL_SETS.values(), key=lambda known: (sum(n in added_ids for n in known.order), -len(known.order))
    )
    if not any(name in added_ids for name in special.order):
        raise TokenizationError(f"{path}: has none of the known sets of special tokens: {', '.join(SPECIAL_SETS)}")
    for token, index in special.ids.items():
        if token not in added_ids:
            raise TokenizationError(f"{path}: the special token {token} is missing from added_tokens")
        if added_ids[token] != index:
            raise TokenizationError(f"{path}: the special token {token} has id {added_ids[token]}, expected id {index}")
    return special


def _word_mark(path: Path, model: Definition, parts: list[Definition]) -> WordMark:
    if model["type"] not in MODELS:
        raise TokenizationError(f"{path}: the model {model['type']!r} is unknown, expected one of {', '.join(MODELS)}")
    prefix = model.get("continuing_subword_prefix") or ""
    # A Metaspace whose replacement is the space marks no words: it only adds a space before byte-level text.
    spaced = {
        str(part["type"]): part
        for part in parts
        if part.get("type") in ("ByteLevel", "Metaspace") and part.get("replacement") != SPACE
    }
    if model.get("end_of_word_suffix"):
        raise TokenizationError(f"{path}: an end_of_word_suffix is not supported")
    if prefix and spaced:
        other = " and ".join(sorted(spaced))
        raise TokenizationError(f"{path}: the continuing_subword_prefix {prefix!r} and {other} exclude each other")
    if len(spaced) == 2:
        raise TokenizationError(f"{path}: the pre-tokenizers ByteLevel and Metaspace exclude each other")
    if prefix:
        return WordMark("continuation", prefix)
    if "Metaspace" in spaced:
        return WordMark("metaspace", str(spaced["Metaspace"].get("replacement", "▁")))
    if "ByteLevel" in spaced:
        return WordMark("byte_level")
    raise TokenizationError(
        f"{path}: does not mark word starts: expected the pre-tokenizer ByteLevel or Metaspace, "
        "or a continuing_subword_prefix"
    )


def _check_unknown(path: Path, model: Definition, special: SpecialTokens) -> None:
    """Check that the model encodes unknown text as the set's unknown token, or has no unknown token."""
    expected: tuple[str, object] = ("unk_token", special.unknown)
    if model["type"] == "Unigram":
        expected = ("unk_id", special.ids[special.unknown])
    key, value = expected
    if model.get(key) not in (value, None):
        raise TokenizationError(f"{path}: {key} is {model[key]!r}, expected {value!r}")


def _hidden_spelling(token: str) -> str:
    return f" {token}"


def _hide(definition: Definition, hidden: set[str]) -> Definition:
    """Return the definition without the added tokens `hidden`; their entries in the vocabulary get a spelling that no
    text matches.

    A model finds whole entries of its vocabulary, so if the pre-tokeniser keeps "[MASK]" in one piece, a text that
    contains these letters would give the special token. No pre-token contains a space, so an entry with a space is
    never found.
    """
    model = dict(definition["model"])
    vocabulary = model["vocab"]
    if isinstance(vocabulary, dict):
        model["vocab"] = {_hidden_spelling(t) if t in hidden else t: index for t, index in vocabulary.items()}
    else:
        model["vocab"] = [[_hidden_spelling(t) if t in hidden else t, score] for t, score in vocabulary]
    if model.get("unk_token") in hidden:
        model["unk_token"] = _hidden_spelling(model["unk_token"])
    added = [token for token in definition["added_tokens"] if token["content"] not in hidden]
    return {**definition, "model": model, "added_tokens": added}


def _decoder(mark: WordMark) -> decoders.Decoder:
    """Return a decoder for files without one, such as the published BNC tokenizer."""
    if mark.kind == "byte_level":
        return decoders.ByteLevel()
    if mark.kind == "metaspace":
        return decoders.Metaspace(replacement=mark.symbol)
    return decoders.WordPiece(prefix=mark.symbol, cleanup=False)


def use_threads(threads: int | None) -> None:
    """Let the tokenizers library use `threads` threads in this process; `None` leaves the choice to the library.

    Call it before the first training or encoding of the process. Raises ConfigError for a number below 1.
    """
    if threads is None:
        return
    if threads < 1:
        raise ConfigError(f"threads: expected a positive number, got {threads}")
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"


# The value that transformers writes for a tokenizer without a limit: the model has a limit, but the tokenizer must not
# truncate text silently.
UNLIMITED_LENGTH = int(1e30)
TOKENIZER_CLASS = "PreTrainedTokenizerFast"


def special_tokens_map(special: SpecialTokens) -> dict[str, str | list[str]]:
    """Return the special tokens by their roles in transformers; tokens without a role are
    `additional_special_tokens`.
    """
    roles: dict[str, str | list[str]] = {
        "unk_token": special.unknown,
        "cls_token": special.cls,
        "sep_token": special.sep,
        "pad_token": special.pad,
        "mask_token": special.mask,
    }
    if special.cls == "<s>":
        roles |= {"bos_token": special.cls, "eos_token": special.sep}
    others = [name for name in special.order if name not in roles.values()]
    return roles | ({"additional_special_tokens": others} if others else {})


def tokenizer_config(backend: Backend, special: SpecialTokens) -> dict[str, object]:
    """Return the content of `tokenizer_config.json`. It does not list `token_type_ids`, because our models have no such
    input.
    """
    added = {
        str(index): {
            "content": token.content,
            "lstrip": token.lstrip,
            "normalized": token.normalized,
            "rstrip": token.rstrip,
            "single_word": token.single_word,
            "special": token.special,
        }
        for index, token in sorted(backend.get_added_tokens_decoder().items())
    }
    return {
        **special_tokens_map(special),
        "added_tokens_decoder": added,
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"],
        "model_max_length": UNLIMITED_LENGTH,
        "tokenizer_class": TOKENIZER_CLASS,
    }
