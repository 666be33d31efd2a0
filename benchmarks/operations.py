"""Operations in a training step, and bytes that the step reads and writes: LTG-BERT compared with models of the same
size from the library `transformers`, all without dropout.

A step is a forward and backward pass of 8 sequences of 128 tokens; in masked models, 15 % of the tokens are masked. The
program prints for each model the number of multiplications and additions in matrix products, the number of bytes that
all kernels read and write, and the number of kernels. The counts do not depend on the processor. They show which speed
the loops of `peers.py` can reach.

    python benchmarks/operations.py
"""

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import torch
import transformers
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode
from training_step import Width

from hatchery.modeling.language_model import LanguageModel, initialise_
from hatchery.modeling.ltg.config import LtgBertConfig

SIZES = {"narrow": (Width(4096, 128, 4, 344), 6), "wide": (Width(), 4)}
IGNORED = -100


class Kernels(TorchDispatchMode):
    """Counts the kernels that run inside the context, and the bytes of their tensors; views run no kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.number, self.bytes = 0, 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = function(*args, **(kwargs or {}))
        read = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        written = [each for each in tree_leaves(output) if isinstance(each, Tensor)]
        storages = {each.untyped_storage().data_ptr() for each in read}
        is_view = written and all(each.untyped_storage().data_ptr() in storages for each in written)
        in_place = function._schema.is_mutable
        if written and (in_place or not is_view) and "empty" not in function.__name__:
            self.number += 1
            self.bytes += sum(each.numel() * each.element_size() for each in (*read, *written))
        return output


def models(width: Width, layers: int, causal: bool) -> dict[str, nn.Module]:
    """Return a GPT-2 or BERT of the library `transformers`, and Hatchery's LTG-BERT of the same width and depth,
    without dropout. The feed-forward blocks of both models have equal numbers of weights.
    """
    peer: nn.Module
    if causal:
        sizes = {
            "n_embd": width.hidden,
            "n_layer": layers,
            "n_head": width.heads,
            "n_inner": 3 * width.intermediate // 2,
        }
        nothing = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
        peer = transformers.GPT2LMHeadModel(
            transformers.GPT2Config(vocab_size=width.vocabulary, **sizes, **nothing, n_positions=128)
        )
    else:
        sizes = {"hidden_size": width.hidden, "num_hidden_layers": layers, "num_attention_heads": width.heads}
        nothing = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        config = transformers.BertConfig(
            vocab_size=width.vocabulary, **sizes, **nothing, intermediate_size=3 * width.intermediate // 2
        )
        peer = transformers.BertForMaskedLM(config)
    own = LtgBertConfig(
        vocab_size=width.vocabulary,
        hidden_size=width.hidden,
        intermediate_size=width.intermediate,
        num_hidden_layers=layers,
        num_attention_heads=width.heads,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = LanguageModel(own, causal=causal)
    initialise_(model, 1)
    return {"GPT-2" if causal else "BERT": peer, "LTG-BERT": model}


def step_of(model: nn.Module, vocabulary: int, causal: bool) -> Callable[[], None]:
    """Return a function that runs one forward and backward pass."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(8, vocabulary, (8, 128), generator=generator)
    labels = ids.where(torch.rand(ids.shape, generator=generator) < 0.15, IGNORED)
    if causal:
        labels = torch.cat([ids[:, 1:], torch.full_like(ids[:, :1], IGNORED)], dim=1)

    def step() -> None:
        if isinstance(model, LanguageModel):
            output = model(ids, None, labels)
            loss = output.loss_sum / output.n_labelled
        else:
            loss = model(ids, labels=ids if causal else labels).loss
        loss.backward()
        model.zero_grad(set_to_none=True)

    return step


def main() -> int:
    logging.disable()
    print(
        "Each row is one training step of one model: a forward and backward pass of 8 sequences of 128 tokens.\n"
        f"{'model':24}{'GFLOP in matrix products':>26}{'MB read or written':>20}{'kernels':>9}"
    )
    for size, (width, layers) in SIZES.items():
        for causal in (False, True):
            for name, model in models(width, layers, causal).items():
                step = step_of(model.train(), width.vocabulary, causal)
                step()
                with FlopCounterMode(display=False) as products:
                    step()
                with Kernels() as kernels:
                    step()
                label = f"{size} {'causal' if causal else 'masked'} {name}"
                gigaflops, megabytes = products.get_total_flops() / 1e9, kernels.bytes / 1e6
                print(f"{label:24}{gigaflops:26.2f}{megabytes:20,.0f}{kernels.number:9,}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
