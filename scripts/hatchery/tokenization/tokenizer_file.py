"""The files of a tokenizer: loading and checking of a `tokenizer.json`, and two additional files for `transformers`.

This module reads tokenizers of this project and the published tokenizers of LTG-BERT (BNC and BabyLM), ELC-BERT and the
reduced-vocabulary study. The file's truncation and padding are switched off, so that text is never truncated silently.
The file must have a known set of special tokens, and must show which tokens begin a word.

`tokenizer_config.json` and `special_tokens_map.json` have the layout that `PreTrainedTokenizerFast` writes. Both files
list the roles of special tokens, which `tokenizer.json` does not contain.
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
    """The spelling by which a tokenizer marks the tokens that begin a word.

    `byte_level`: the first token of a word begins with a white-space byte (`Ġ` is the space). `metaspace`: the first
    token begins with `symbol`, which represents a space. `continuation`: all tokens except the first begin with the
    prefix `symbol`.
    """

    kind: Literal["byte_level", "metaspace", "continuation"]
    symbol: str = ""


class Tokenizer:
    """Converts text to ids and ids to text; `backend` is the tokenizers library's object.

    `special` is the set of special tokens, with the ids 0 to `n_special` - 1; `par_id` and `tab_id` are None if the set
    has no token of this role.
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
        """Return a copy that appends no end token, for models that were trained without end tokens."""
        return Tokenizer(self.backend, replace(self.special, separators_in_pair=0), self.word_mark)

    @property
    def between_ids(self) -> list[int]:
        """Ids of the special tokens between the two texts of a pair."""
        special = self.special
        return [self.sep_id] * special.separators_in_pair if special.sep_ends else [self.cls_id]

    @property
    def end_ids(self) -> list[int]:
        """Ids of the special tokens after the last text of a model input; empty in GPT-BERT's set, and in the result of
        `without_end`.
        """
        return [self.sep_id] if self.special.sep_ends else []

    @property
    def tokens(self) -> list[str]:
        """The vocabulary in the order of the ids, spelled as in the file (`Ġ` or `▁` is a space)."""
        vocabulary = self.backend.get_vocab(with_added_tokens=True)
        return [*self.special.order, *sorted(vocabulary, key=vocabulary.__getitem__)[self.n_special :]]

    def encode_sentences(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the ids of each sentence, without special tokens around it; sentences are encoded in parallel."""
        # `encode_batch_fast` does not compute character offsets, and so saves a quarter of the time.
        encodings = self.backend.encode_batch_fast(list(sentences), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def token_spans(self, sentences: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Return for each token of `encode_sentences` the span of characters (start, end) in its sentence."""
        encodings = self.backend.encode_batch(list(sentences), add_special_tokens=False)
        return [encoding.offsets for encoding in encodings]

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = False) -> str:
        """Return the text of `ids`.

        With a byte-level tokenizer that adds a prefix space, the text begins with a space. A Metaspace tokenizer omits
        a leading space. With a continuation prefix, the text consists of pre-tokens separated by one space.
        """
        return self.backend.decode(list(ids), skip_special_tokens=skip_special_tokens)

    def unknown_texts(self, sentences: Sequence[str]) -> list[str]:
        """Return the normalised text of each unknown token of the sentences, in order, including a preceding space."""
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
        # Some normalisers add a prefix to every text. This prefix is removed from the normalised text of an unknown
        # token, because the token is only a part of a sentence.
        begun = normalizer.normalize_str("x").removesuffix("x")
        return [normalizer.normalize_str(text).removeprefix(begun) for text in texts]


def load_tokenizer(path: str | Path, recognise: Sequence[str] | None = None) -> Tokenizer:
    """Load the tokenizer file at `path`.

    `recognise` names the special tokens that are recognised if a text spells them out. By default, all special tokens
    are recognised. Special tokens that `recognise` does not name are encoded as ordinary letters. All special tokens
    keep their ids. Names in `recognise` that the tokenizer lacks are ignored.

    Raises TokenizationError, naming the file, if the file is missing or damaged, or if the tokenizer cannot be used. A
    tokenizer needs a supported model, a known set of special tokens at their ids, ids without gaps, and a mark of word
    starts. It must encode unknown text as the unknown token of this set.
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
        raise TokenizationError(
            f"{path}: the ids of the vocabulary have gaps or repetitions, expected the ids 0 to {len(vocabulary) - 1}"
        )
    if backend.decoder is None:
        backend.decoder = _decoder(word_mark)
    return Tokenizer(backend, special, word_mark)


def open_backend(definition: Definition, where: str) -> Backend:
    """Return the tokenizer of the library `tokenizers` for the content of a `tokenizer.json`, without truncation and
    padding.

    Raises TokenizationError, naming `where`, if the library refuses the content.
    """
    try:
        backend = Backend.from_str(json.dumps(definition))
    except Exception as error:  # The library raises Exception, not a subclass.
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
        # This check reads the same keys as the rest of this module, so that a missing key is reported; the library
        # checks all other keys.
        definition["model"]["type"], definition["model"]["vocab"], _parts(definition["pre_tokenizer"])
        [(token["content"], token["id"]) for token in definition["added_tokens"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise TokenizationError(
            f"{path}: not a tokenizer: a key is missing or has a wrong type ({type(error).__name__}: {error})"
        ) from error
    return definition


def _parts(pre_tokenizer: Definition | None) -> list[Definition]:
    """Return a pre-tokeniser as a list without nesting: a sequence is replaced by its pre-tokenisers, in order."""
    if pre_tokenizer is None:
        return []
    nested = pre_tokenizer.get("pretokenizers")
    return [pre_tokenizer] if nested is None else [part for inner in nested for part in _parts(inner)]


def _special_tokens(path: Path, definition: Definition) -> SpecialTokens:
    added_ids = {token["content"]: token["id"] for token in definition["added_tokens"]}
    # Choose the set with the largest number of special tokens that the file contains; in a tie, choose the smaller set.
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
    # Metaspace with a space as replacement does not mark words; it only adds a space before byte-level text.
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
    """Raise TokenizationError if the model encodes unknown text as another token than `special.unknown`."""
    expected: tuple[str, object] = ("unk_token", special.unknown)
    if model["type"] == "Unigram":
        expected = ("unk_id", special.ids[special.unknown])
    key, value = expected
    if model.get(key) not in (value, None):
        raise TokenizationError(f"{path}: {key} is {model[key]!r}, expected {value!r}")


def _hidden_spelling(token: str) -> str:
    return f" {token}"


def _hide(definition: Definition, hidden: set[str]) -> Definition:
    """Return the definition without the added tokens `hidden`; their vocabulary entries get a spelling that no text
    contains.

    If the spelling were unchanged, and the pre-tokeniser kept the letters of "[MASK]" in one pre-token, the model would
    encode these letters as the mask token. The new spelling contains a space, which no pre-token contains.
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
    """Return a decoder for a file without decoder, such as the published BNC tokenizer."""
    if mark.kind == "byte_level":
        return decoders.ByteLevel()
    if mark.kind == "metaspace":
        return decoders.Metaspace(replacement=mark.symbol)
    return decoders.WordPiece(prefix=mark.symbol, cleanup=False)


def use_threads(threads: int | None) -> None:
    """Set the number of threads of the library `tokenizers` in this process; None keeps the library's default.

    Call this function before the first training or encoding in the process. Raises ConfigError for a number below 1.
    """
    if threads is None:
        return
    if threads < 1:
        raise ConfigError(f"threads: expected a positive number, got {threads}")
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"


# transformers writes this maximum length for a tokenizer without limit. Hatchery writes it even if the model has a
# limit, because the tokenizer must not truncate text silently.
UNLIMITED_LENGTH = int(1e30)
TOKENIZER_CLASS = "PreTrainedTokenizerFast"


def special_tokens_map(special: SpecialTokens) -> dict[str, str | list[str]]:
    """Return the special tokens by their role in transformers; `additional_special_tokens` lists the tokens without a
    role.
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
    """Return the content of `tokenizer_config.json`. The list of model inputs lacks `token_type_ids`, because
    Hatchery's models do not read token types.
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
