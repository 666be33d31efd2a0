"""Public models in the layout of the library `transformers` as sentence models, for the baselines of the tables.

Read from a registered local folder, never from the network and never with code that comes with the weights; every
file must be what it was when it was registered. What the checkpoint does not hold is an error, because a head that
was initialised at random would be scored without a word.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from hatchery.errors import ModelError
from hatchery.evaluation.minimal_pairs.sentence_model import EncodedSentence, Frame, word_numbers
from hatchery.evaluation.minimal_pairs.settings import Architecture, ExternalModel
from hatchery.raw.registration import RawSource

# How the classes of the library call the first module of their language-model head. Given the wanted positions alone,
# it makes logits at these and nowhere else. Classes without any of them make all logits, which are then selected.
HEADS = ("cls", "lm_head", "vocab_transform", "predictions", "generator_predictions", "head", "lm_predictions")
# RoBERTa's positions count from the padding id + 1, so its table has more rows than an input may have tokens.
OFFSET_POSITIONS = ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "roberta-prelayernorm", "xmod", "mpnet")
# Classes that a checkpoint of the other architecture names. The library makes a causal BERT out of a masked one, which
# would be scored without a word.
CLASSES_OF_THE_OTHER = {"masked": ("ForCausalLM", "LMHeadModel"), "causal": ("ForMaskedLM", "ForPreTraining")}
# Tokenizers without a limit of their own say so by an enormous one.
NO_LIMIT = 1 << 30


class TransformersModel:
    """A masked or causal model of the library with its fast tokenizer; see `load_transformers_model`."""

    def __init__(self, network: Any, tokenizer: Any, external: ExternalModel, where: str, device: torch.device) -> None:
        self.network = network.to(device).eval()
        self.tokenizer = tokenizer
        self.where = where
        self.device = device
        self.architecture: Architecture = external.architecture
        is_masked = external.architecture == "masked"
        self.mask_id: int | None = _required(tokenizer, "mask_token_id", where) if is_masked else None
        self.frame = _frame(tokenizer, where) if is_masked else Frame((_context(tokenizer, where),), ())
        self.vocabulary_size = int(network.get_output_embeddings().weight.shape[0])
        self.longest_input: int | None = _longest_input(network.config, tokenizer)
        # A causal model is asked at every position anyway.
        heads = [getattr(network, name) for name in HEADS if isinstance(getattr(network, name, None), nn.Module)]
        self._head: nn.Module | None = heads[0] if heads and is_masked else None

    def encode(self, sentences: Sequence[str], words: bool = False) -> list[EncodedSentence]:
        """Sentences as ids, in the tokenizer's own normalisation. Raises ModelError for ids without an embedding."""
        encoded = []
        for encoding in self.tokenizer.backend_tokenizer.encode_batch(list(sentences), add_special_tokens=False):
            if encoding.ids and max(encoding.ids) >= self.network.get_input_embeddings().num_embeddings:
                raise ModelError(f"{self.where}: the tokenizer has ids that the model has no embedding for")
            encoded.append(EncodedSentence(tuple(encoding.ids), word_numbers(encoding.word_ids) if words else None))
        return encoded

    def logits_at(self, input_ids: Tensor, rows: Tensor) -> Tensor:
        """Logits [M, V] at the flat positions `rows` int64 [M] of unpadded `input_ids` int64 [B, T]."""
        selected = False

        def select(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
            nonlocal selected
            if selected or not inputs or inputs[0].shape[:2] != input_ids.shape:
                return None
            selected = True
            return (inputs[0].flatten(0, 1).index_select(0, rows).unsqueeze(0), *inputs[1:])

        handle = None if self._head is None else self._head.register_forward_pre_hook(select)
        try:
            output = self.network(input_ids=input_ids, attention_mask=torch.ones_like(input_ids))
        finally:
            if handle is not None:
                handle.remove()
        logits: Tensor = output.logits.flatten(0, -2)
        if len(logits) != (len(rows) if selected else input_ids.numel()):
            raise ModelError(f"{self.where}: {type(self.network).__name__} gives no logits per token")
        return logits if selected else logits.index_select(0, rows)


def load_transformers_model(source: RawSource, external: ExternalModel, device: torch.device) -> TransformersModel:
    """The model and tokenizer in the folder of `source`, in float32 and evaluation mode.

    Raises SourceError for a file that has changed since it was registered, and ModelError for a source that is no
    folder, a model that the library does not know without foreign code or that is not of the stated architecture,
    weights that are missing, and a tokenizer that is not a fast one or lacks a special token.
    """
    where = str(source.root)
    if source.kind == "file":
        raise ModelError(f"{where}: a model must be registered as a folder, this source is a file")
    # Imported here: seconds to load, and only external models need it.
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    auto = {"masked": transformers.AutoModelForMaskedLM, "causal": transformers.AutoModelForCausalLM}
    local: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(where, **local)
        network, loading = auto[external.architecture].from_pretrained(
            where, dtype=torch.float32, output_loading_info=True, **local
        )
    except Exception as error:  # the library raises errors of many kinds, with messages of many lines
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise ModelError(f"{where}: cannot be loaded as a {external.architecture} language model: {reason}") from error
    absent = sorted(loading["missing_keys"]) + sorted(str(key) for key in loading["mismatched_keys"])
    if absent:
        raise ModelError(
            f"{where}: no {external.architecture} language model: the weights of {len(absent)} parts are missing or of "
            f"another shape, for example {absent[0]}"
        )
    for name in network.config.architectures or ():
        if name.endswith(CLASSES_OF_THE_OTHER[external.architecture]):
            raise ModelError(f"{where}: cannot be loaded as a {external.architecture} language model: it is a {name}")
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ModelError(f"{where}: the tokenizer is not a fast one; a tokenizer.json is needed")
    backend.no_truncation()
    backend.no_padding()
    # Special tokens spelled out in a sentence are text, as everywhere here; otherwise they would shift what is scored.
    backend.encode_special_tokens = True
    return TransformersModel(network, tokenizer, external, where, device)


def _frame(tokenizer: Any, where: str) -> Frame:
    """The special tokens that the tokenizer puts around a sentence; [CLS] and [SEP] where it puts none.

    Tokenizer files of the LTG-BERT family have no template, though their models were trained with both tokens.
    """
    backend = tokenizer.backend_tokenizer
    encoding = backend.encode("a", add_special_tokens=True)
    inside = [index for index, special in enumerate(encoding.special_tokens_mask) if not special]
    if len(inside) == len(encoding.ids):
        return Frame((_required(tokenizer, "cls_token_id", where),), (_required(tokenizer, "sep_token_id", where),))
    return Frame(tuple(encoding.ids[: inside[0]]), tuple(encoding.ids[inside[-1] + 1 :]))


def _context(tokenizer: Any, where: str) -> int:
    """The token that the first one of a sentence is conditioned on: EOS (BabyLM's rule), or else BOS."""
    if tokenizer.eos_token_id is not None:
        return int(tokenizer.eos_token_id)
    return _required(tokenizer, "bos_token_id", where)


def _required(tokenizer: Any, name: str, where: str) -> int:
    value = getattr(tokenizer, name, None)
    if value is None:
        raise ModelError(f"{where}: the tokenizer has no {name.removesuffix('_id')}, which scoring needs")
    return int(value)


def _longest_input(config: Any, tokenizer: Any) -> int | None:
    limits = [int(tokenizer.model_max_length)] if tokenizer.model_max_length < NO_LIMIT else []
    positions = getattr(config, "max_position_embeddings", None)
    if positions:
        offset = (config.pad_token_id or 0) + 1 if config.model_type in OFFSET_POSITIONS else 0
        limits.append(int(positions) - offset)
    return min(limits, default=None)
