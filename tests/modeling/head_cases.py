"""A small batch for every head of the registry."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

PAD = 1


@dataclass(frozen=True)
class Case:
    """Inputs and labels that fit a head, and the shapes of its scores and predictions."""

    inputs: dict[str, Tensor]
    labels: Tensor
    scores: tuple[int, ...]
    predictions: tuple[int, ...]

    def padded(self, more: int) -> "Case":
        """Return the case with `more` padding positions after every sequence."""
        padded = dict(self.inputs)
        for name in ("input_ids", "attention_mask", "candidates"):
            if name in padded:
                padded[name] = torch.nn.functional.pad(padded[name], (0, more), value=PAD if name == "input_ids" else 0)
        return replace(self, inputs=padded)


def head_cases(ids: Tensor, mask: Tensor) -> dict[str, Case]:
    """One case per head, of ids and mask [3, 12] of sequences of 12, 9 and 5 tokens."""
    plain = {"input_ids": ids, "attention_mask": mask}
    choices = {"input_ids": torch.stack([ids, ids.flip(0)], 1), "attention_mask": torch.stack([mask, mask.flip(0)], 1)}
    word_labels = (ids % 3).where(mask, -100)
    spans = torch.tensor([[[1, 4]], [[8, 11]], [[0, 2]], [[2, 5]]])
    targets = {"spans": spans, "sentences": torch.tensor([0, 0, 1, 2])}
    marked = {"spans": torch.tensor([[[1, 4], [8, 11]], [[0, 2], [3, 4]], [[2, 5], [4, 5]]])}
    multi_hot = torch.tensor([[1, 0, 0], [0, 1, 1], [0, 0, 0], [0, 0, 1]])
    return {
        "sequence_classification": Case(plain, torch.tensor([2, 0, 1]), (3, 3), (3,)),
        "regression": Case(plain, torch.tensor([0.5, 4.0, 2.25]), (3, 1), (3,)),
        "multiple_choice": Case(choices, torch.tensor([1, 0, 1]), (3, 2), (3,)),
        "marked_words_classification": Case({**plain, **marked}, torch.tensor([2, 0, 1]), (3, 3), (3,)),
        "token_classification": Case(plain, word_labels, (3, 12, 3), (3, 12)),
        "extractive_span": Case(plain, torch.tensor([[3, 5], [1, 2], [-100, -100]]), (3, 12, 2), (3, 2)),
        "span_classification": Case({**plain, **targets}, multi_hot, (4, 3), (4, 3)),
        "word_classification": Case({**plain, **targets}, torch.tensor([2, 0, 1, 1]), (4, 3), (4,)),
    }
