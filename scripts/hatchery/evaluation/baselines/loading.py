"""Load a model and its tokenizer from a local folder in the format of `transformers`.

Nothing is downloaded, and code in the folder is not run. Weights that are missing from the checkpoint are an error: the
library would initialise them at random, without a visible warning.
"""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from tokenizers import Tokenizer as Backend

from hatchery.artifacts.atomic import json_value
from hatchery.errors import ModelError, first_line
from hatchery.evaluation.ways_of_scoring import Architecture

# If a tokenizer has no length limit, its `model_max_length` is an enormous number. Numbers of at least NO_LIMIT
# therefore count as no limit.
NO_LIMIT = 1 << 30
# Models of these types number positions from the padding id + 1, so their position table has more rows than an input
# may have tokens.
OFFSET_POSITIONS = ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "roberta-prelayernorm", "xmod", "mpnet")


class BaselineTokenizer:
    """A fast tokenizer of `transformers`. Raises ModelError if the tokenizer lacks a special token that the
    architecture needs, and if its template has more than one token before or after a text.

    The special tokens before and after a text are read from the tokenizer's template: `[CLS] a [SEP] b [SEP]` of BERT,
    `<s> a </s></s> b </s>` of RoBERTa, `a </s> b </s>` of T5. If the template has no end token, as in causal models,
    EOS is appended to each text, because a head reads the last token's state, the only state that depends on the whole
    text. Tokenizers of the LTG-BERT family have no template, but their models were trained with a start token and an
    end token, so both are added.

    If `template` is true, only the template's own tokens are added, and texts have no token types (BabyLM since 2025).
    The same applies to masked models whose tokenizer has neither an end token in its template nor a `sep_token`.
    """

    def __init__(self, tokenizer: Any, architecture: Architecture, where: str, template: bool = False) -> None:
        self.backend: Backend = tokenizer.backend_tokenizer
        self.where = where
        self._tokenizer = tokenizer
        before, between, after, self.numbers_texts = self._template()
        if len(before) > 1 or len(after) > 1:
            raise ModelError(
                f"{where}: the tokenizer adds {len(before)} tokens before a text and {len(after)} after the text, "
                "expected at most one token before and one after"
            )
        first, last = ("cls_token_id", "sep_token_id") if architecture == "masked" else ("bos_token_id", "eos_token_id")
        if architecture == "masked" and not after and getattr(tokenizer, last, None) is None:
            template = True
        others = ("pad_token_id", "eos_token_id", "cls_token_id", "unk_token_id") if template else ()
        self.sep_id: int = after[0] if after else self.found(last, *others)
        """Id of the token that follows every text; if no token follows a text, the id of another special token."""
        self.before = tuple(before)
        """Ids of the template's tokens in front of a text."""
        self.cls_id: int | None = before[0] if before else None
        """Id of the token in front of the first text; None if no token is inserted there."""
        if self.cls_id is None and not after and not template and architecture != "encoder_decoder":
            self.cls_id = self.found(first, last)
        self.between_ids, self.end_ids = [self.sep_id] * max(1, between), [self.sep_id]
        if template:
            self.cls_id, self.numbers_texts = (before[0] if before else None), False
            self.between_ids, self.end_ids = [self.sep_id] * between, after
        self.pad_id: int = self.found("pad_token_id", "eos_token_id", "cls_token_id")
        self.unknown_id: int | None = getattr(tokenizer, "unk_token_id", None)
        """Id for text that the tokenizer cannot encode; None if it can encode all text."""

    @property
    def longest_input(self) -> int | None:
        """Largest number of tokens in an input, as the tokenizer declares it; None if the tokenizer declares no
        limit."""
        limit = int(min(self._tokenizer.model_max_length, NO_LIMIT))
        return None if limit == NO_LIMIT else limit

    @property
    def returns_types(self) -> bool:
        """Return True if this tokenizer returns token types in addition to ids, in the version of `transformers` that
        BabyLM's pipeline pins.

        If the tokenizer's configuration has a list `model_input_names`, the tokenizer returns token types if this list
        contains `token_type_ids`. Without this list, the tokenizer returns token types if its class is the library's
        generic class.
        """
        named = self._tokenizer.init_kwargs.get("model_input_names")
        has_no_class = type(self._tokenizer).__name__ in ("PreTrainedTokenizerFast", "TokenizersBackend")
        return has_no_class if named is None else "token_type_ids" in named

    @property
    def bos_id(self) -> int | None:
        """The id of the `bos_token`; None if the tokenizer has no `bos_token`."""
        found = getattr(self._tokenizer, "bos_token_id", None)
        return None if found is None else int(found)

    def encode_sentences(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return ids of each sentence, with the tokenizer's own normalisation and without special tokens before and
        after the text.
        """
        # `encode_batch_fast` is faster than `encode_batch`, because it computes no character offsets.
        return [encoding.ids for encoding in self.backend.encode_batch_fast(list(sentences), add_special_tokens=False)]

    def found(self, *names: str) -> int:
        """Return the value of the first attribute in `names` that the tokenizer has. Raises ModelError if it has no
        attribute of these names."""
        for name in names:
            if (value := getattr(self._tokenizer, name, None)) is not None:
                return int(value)
        wanted = " or ".join(name.removesuffix("_id") for name in names)
        raise ModelError(f"{self.where}: the tokenizer has no {wanted}, which scoring needs")

    def _template(self) -> tuple[list[int], int, list[int], bool]:
        """Return the template's ids before a text, its number of tokens between two texts, its ids after a text, and a
        bool. The bool is True if the template assigns different token types to both texts (as in BERT, not in RoBERTa).
        """
        alone, pair = self.backend.encode("a"), self.backend.encode("a", "a")
        inside = [index for index, special in enumerate(alone.special_tokens_mask) if not special]
        n_between = len(pair.ids) - len(alone.ids) - len(inside)
        after = alone.ids[inside[-1] + 1 :]
        return alone.ids[: inside[0]], n_between, after, bool(after) and max(pair.type_ids) > 0


def longest_input(config: Any, tokenizer: BaselineTokenizer) -> int | None:
    """Largest number of tokens in an input, special tokens included; None if unlimited."""
    limits = [] if tokenizer.longest_input is None else [tokenizer.longest_input]
    positions = getattr(config, "max_position_embeddings", None)
    if positions:
        offset = (config.pad_token_id or 0) + 1 if config.model_type in OFFSET_POSITIONS else 0
        limits.append(int(positions) - offset)
    return min(limits, default=None)


# Checkpoint classes that are refused for each requested architecture. Without this check, `transformers` would load a
# masked BERT as a causal model, or an encoder-decoder BART as a masked model. The scores would be wrong without any
# error.
CLASSES_OF_OTHERS: dict[Architecture, tuple[str, ...]] = {
    "masked": ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration"),
    "causal": ("ForMaskedLM", "ForPreTraining", "ForConditionalGeneration"),
    "encoder_decoder": ("ForMaskedLM", "ForCausalLM", "LMHeadModel"),
}


ADAPTER = "adapter_config.json"
ATTENTIONS = ("eager", "sdpa")
"""Attention implementations of PyTorch. For some other names in the folder's configuration, `transformers` would
download and run a kernel."""


def check_files(folder: Path) -> None:
    """Raise ModelError for a folder with an adapter, because the library would ignore the adapter. Also raise
    ModelError for a folder whose index of weight files lists a file outside the folder."""
    if (folder / ADAPTER).is_file():
        raise ModelError(
            f"{folder}: contains an adapter ({ADAPTER}), which the import would leave out; merge the adapter "
            "into its model (PEFT: merge_and_unload), save the merged model in a new folder, and import this "
            "folder"
        )
    for index in sorted(folder.glob("*.index.json")):
        try:
            named = json_value(index.read_bytes())["weight_map"].values()
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            # `transformers` later reports an index that cannot be read.
            continue
        for name in sorted(set(map(str, named))):
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                raise ModelError(f"{index}: names the file {name!r}, expected files of this folder")


def _forget_kernels_(config: Any) -> None:
    """In a configuration and its nested configurations, replace every attention implementation that is not in
    ATTENTIONS by the library's default."""
    for part in (config, *(getattr(config, name, None) for name in config.sub_configs)):
        if part is not None and part._attn_implementation not in ATTENTIONS:
            part._attn_implementation = None


class LoadedFolder(NamedTuple):
    """The model of a folder in float32 and evaluation mode, and its fast tokenizer without truncation or padding."""

    network: Any
    tokenizer: Any


def load_folder(folder: str | Path, architecture: Architecture) -> LoadedFolder:
    """Load the model and tokenizer in `folder`. The tokenizer encodes the spelling of a special token in a text as
    plain text.

    Only special tokens that belong to the subword vocabulary, such as T5's `</s>`, are still encoded as special tokens.
    Raises ModelError for a folder that `transformers` cannot load, for a folder with an adapter, and for a folder whose
    index of weight files lists a file outside the folder. Raises ModelError for a model that needs code outside of
    `transformers`, that is not a language model of the kind `architecture`, or that lacks weights. Raises ModelError
    for a tokenizer that is not a fast one, or that may return ids without an embedding.
    """
    # Import inside the function: the import takes seconds, and only external models need the library.
    import torch
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    auto: dict[Architecture, Any] = {
        "masked": transformers.AutoModelForMaskedLM,
        "causal": transformers.AutoModelForCausalLM,
        "encoder_decoder": transformers.AutoModelForSeq2SeqLM,
    }
    local = {"local_files_only": True, "trust_remote_code": False}
    what = f"a {architecture.replace('_', '-')} language model"
    check_files(Path(folder))
    try:
        config = transformers.AutoConfig.from_pretrained(folder, **local)
        _forget_kernels_(config)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **local)
        network, loading = auto[architecture].from_pretrained(
            folder, config=config, dtype=torch.float32, output_loading_info=True, **local
        )
    except Exception as error:  # `transformers` raises many types of errors, whose messages have many lines
        # If the weights contain code, PyTorch's message advises how to run this code. A message without this advice
        # replaces PyTorch's message.
        has_code = "weights_only" in str(error)
        reason = (
            "its weights file holds objects other than tensors, which are never loaded"
            if has_code
            else first_line(error)
        )
        raise ModelError(f"{folder}: cannot be loaded as {what}: {reason}") from error
    absent = sorted(loading["missing_keys"]) + sorted(str(key) for key in loading["mismatched_keys"])
    if absent:
        raise ModelError(
            f"{folder}: cannot be loaded as {what}: {len(absent)} weight tensors are missing or of another shape, for "
            f"example {absent[0]}"
        )
    for name in network.config.architectures or ():
        if name.endswith(CLASSES_OF_OTHERS[architecture]):
            raise ModelError(f"{folder}: cannot be loaded as {what}: the class of the model is {name}")
    read_texts_whole_(tokenizer, str(folder))
    # Only ids that a text can contain need an embedding. A tokenizer may have further ids.
    in_texts = tokenizer.backend_tokenizer.get_vocab_size(with_added_tokens=False)
    if in_texts > network.get_input_embeddings().num_embeddings:
        raise ModelError(
            f"{folder}: the tokenizer has ids without an embedding in the model, expected the tokenizer of this model"
        )
    return LoadedFolder(network.eval(), tokenizer)


def read_texts_whole_(tokenizer: Any, where: str) -> None:
    """Disable truncation and padding, and encode special tokens spelled out in a text as plain text, in place.

    Raises ModelError for a tokenizer that is not a fast one.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ModelError(f"{where}: the tokenizer is not a fast tokenizer, expected a tokenizer with a tokenizer.json")
    backend.no_truncation()
    backend.no_padding()
    # If a text contains the spelling of a special token, split this spelling like other text. A single id would shift
    # the scored positions.
    backend.encode_special_tokens = True
