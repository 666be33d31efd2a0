"""A language model of others as sentences and held-out text are asked of it: masked, or from left to right.

Encoder-decoders are asked from left to right as in BabyLM 2023: the encoder reads EOS alone, and the decoder writes the
sentence and its end (docs/papers/babylm-evaluation.md, "Pseudo-log-likelihood").
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from hatchery.errors import ModelError
from hatchery.evaluation.baselines.encoder import start_of_decoder
from hatchery.evaluation.baselines.settings import Architecture, BaselineSettings
from hatchery.evaluation.baselines.tokenizer import BaselineTokenizer, longest_input
from hatchery.evaluation.minimal_pairs.sentence_model import EncodedSentence, Frame, word_numbers
from hatchery.modeling.language_model import labelled_positions

# How the classes of the library call the first module of their language-model head. Given the wanted positions alone,
# it makes logits at these and nowhere else. Classes without any of them make all logits, which are then selected.
HEADS = ("cls", "lm_head", "vocab_transform", "predictions", "generator_predictions", "head", "lm_predictions")


class BaselineModel:
    """A language model of the library in evaluation mode on `device`, with its tokenizer: a `SentenceModel`."""

    output_bias: Tensor | None = None
    """Not told apart from the rest."""

    def __init__(
        self, network: Any, tokenizer: BaselineTokenizer, settings: BaselineSettings, device: torch.device
    ) -> None:
        self.network = network.to(device).eval()
        self.tokenizer = tokenizer
        self.architecture: Architecture = settings.architecture
        self.leading_blank = settings.leading_blank
        self.device = device
        self.where = tokenizer.where
        self.mask_id: int | None = None
        # What follows an encoded sentence and is scored with it.
        self._end: tuple[int, ...] = ()
        match self.architecture:
            case "masked":
                self.mask_id = tokenizer.required("mask_token_id")
                assert tokenizer.cls_id is not None
                self.frame = Frame((tokenizer.cls_id,), (tokenizer.sep_id,))
            case "causal":
                # EOS, which is BabyLM's rule, or else BOS.
                self.frame = Frame((tokenizer.found("eos_token_id", "bos_token_id"),), ())
            case "encoder_decoder":
                self.frame = Frame((start_of_decoder(network, self.where),), ())
                self._end = (tokenizer.required("eos_token_id"),)
        self.vocabulary_size = int(network.get_output_embeddings().weight.shape[0])
        self.longest_input: int | None = longest_input(network.config, tokenizer)
        # Others are asked at every position anyway.
        heads = [getattr(network, name) for name in HEADS if isinstance(getattr(network, name, None), nn.Module)]
        self._head: nn.Module | None = heads[0] if heads and self.architecture == "masked" else None

    def encode(self, sentences: Sequence[str], words: bool = False) -> list[EncodedSentence]:
        """Sentences as ids, in the tokenizer's own normalisation. Raises ModelError for ids without an embedding."""
        encoded = []
        for encoding in self.tokenizer.backend.encode_batch(list(sentences), add_special_tokens=False):
            if encoding.ids and max(encoding.ids) >= self.network.get_input_embeddings().num_embeddings:
                raise ModelError(f"{self.where}: the tokenizer has ids that the model has no embedding for")
            ids = (*encoding.ids, *self._end) if encoding.ids else ()
            encoded.append(EncodedSentence(ids, word_numbers(encoding.word_ids) if words else None))
        return encoded

    def logits_at(self, input_ids: Tensor, rows: Tensor) -> Tensor:
        """Logits [M, V] at the flat positions `rows` int64 [M] of unpadded `input_ids` int64 [B, T]."""
        return self._logits_at(input_ids, torch.ones_like(input_ids), rows)

    def labelled_logits(self, batch: Mapping[str, Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """Logits [N, V] and labels int64 [N] at the N labelled positions of a batch, which is on the CPU."""
        labels = batch["labels"].flatten()
        rows = labelled_positions(labels)
        ids, mask = (batch[name].to(self.device) for name in ("input_ids", "attention_mask"))
        yield self._logits_at(ids, mask.long(), rows.to(self.device)), labels[rows].to(self.device)

    def _logits_at(self, input_ids: Tensor, attention_mask: Tensor, rows: Tensor) -> Tensor:
        selected = False

        def select(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
            nonlocal selected
            if selected or not inputs or inputs[0].shape[:2] != input_ids.shape:
                return None
            selected = True
            return (inputs[0].flatten(0, 1).index_select(0, rows).unsqueeze(0), *inputs[1:])

        handle = None if self._head is None else self._head.register_forward_pre_hook(select)
        try:
            output = self._asked(input_ids, attention_mask)
        finally:
            if handle is not None:
                handle.remove()
        logits: Tensor = output.logits.flatten(0, -2)
        if len(logits) != (len(rows) if selected else input_ids.numel()):
            raise ModelError(f"{self.where}: {type(self.network).__name__} gives no logits per token")
        return logits if selected else logits.index_select(0, rows)

    def _asked(self, input_ids: Tensor, attention_mask: Tensor) -> Any:
        if self.architecture != "encoder_decoder":
            return self.network(input_ids=input_ids, attention_mask=attention_mask)
        nothing = torch.full_like(input_ids[:, :1], self._end[0])
        return self.network(
            input_ids=nothing, attention_mask=torch.ones_like(nothing), decoder_input_ids=input_ids, use_cache=False
        )
