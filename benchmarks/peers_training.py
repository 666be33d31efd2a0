"""The trainings of `peers.py`: a causal step of Hatchery and of `transformers`, and the speed of the Trainer of
`transformers`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from processor_time import seconds

from hatchery.modeling.language_model import LanguageModel, initialise_
from hatchery.modeling.ltg.config import LtgBertConfig


def causal_step(kind: str, setting: Any) -> Callable[[], None]:
    """Return a function that runs a step in which a GPT-2 or Hatchery's causal model predicts every next token."""
    from transformers import GPT2Config, GPT2LMHeadModel

    width = setting.width
    sizes = {"vocab_size": width.vocabulary, "n_embd": width.hidden, "n_layer": setting.layers, "n_head": width.heads}
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(8, width.vocabulary, (setting.sequences, setting.length), generator=generator)
    following = torch.cat([ids[:, 1:], torch.full_like(ids[:, :1], -100)], dim=1)
    if kind == "gpt2":
        # This width gives a feed-forward block the number of weights of our gated block.
        gpt = GPT2LMHeadModel(GPT2Config(**sizes, n_inner=3 * width.intermediate // 2, n_positions=setting.length))
        gpt.train()

        def peer() -> None:
            gpt(ids, labels=ids).loss.backward()
            gpt.zero_grad(set_to_none=True)

        return peer
    config = LtgBertConfig(
        vocab_size=width.vocabulary,
        hidden_size=width.hidden,
        intermediate_size=width.intermediate,
        num_hidden_layers=setting.layers,
        num_attention_heads=width.heads,
    )
    model = LanguageModel(config, causal=True)
    initialise_(model, 42)
    model.train()

    def ours() -> None:
        output = model(ids, None, following)
        (output.loss_sum / output.n_labelled).backward()
        model.zero_grad(set_to_none=True)

    return ours


def trainer_speed(folder: Path, width: Any, layers: int, sequences: int, steps: int, causal: bool) -> float:
    """Return tokens per processor second of the Trainer of `transformers`, from the third step on."""
    from transformers import (
        BertConfig,
        BertForMaskedLM,
        GPT2Config,
        GPT2LMHeadModel,
        PrinterCallback,
        Trainer,
        TrainerCallback,
        TrainingArguments,
    )

    # This width gives a feed-forward block the number of weights of our gated block.
    vocabulary, feed_forward = width.vocabulary, 3 * width.intermediate // 2
    if causal:
        sizes = {"n_embd": width.hidden, "n_layer": layers, "n_head": width.heads, "n_inner": feed_forward}
        nothing = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
        model = GPT2LMHeadModel(GPT2Config(vocab_size=vocabulary, **sizes, **nothing, n_positions=128))
    else:
        sizes = {
            "hidden_size": width.hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": width.heads,
            "intermediate_size": feed_forward,
        }
        nothing = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        model = BertForMaskedLM(BertConfig(vocab_size=vocabulary, **sizes, **nothing, max_position_embeddings=128))
    rows = torch.randint(8, vocabulary, (sequences * steps, 128), generator=torch.Generator().manual_seed(2))

    def batch_of(batch: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
        ids = torch.stack([row["input_ids"] for row in batch])
        if causal:
            return {"input_ids": ids, "labels": ids}
        hidden = torch.rand(ids.shape) < 0.15
        return {"input_ids": ids.masked_fill(hidden, 4), "labels": ids.where(hidden, -100)}

    ends: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            ends.append(seconds())

    options = {"report_to": [], "use_cpu": True, "disable_tqdm": True, "save_strategy": "no", "logging_steps": 1}
    training = TrainingArguments(
        str(folder / "trainer"), max_steps=steps, per_device_train_batch_size=8,
        gradient_accumulation_steps=sequences // 8, max_grad_norm=2.0, **options,
    )  # fmt: skip
    data = [{"input_ids": row} for row in rows]
    trainer = Trainer(model, training, data_collator=batch_of, train_dataset=data, callbacks=[Clock()])
    # Remove the callback, which would print into the table.
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return sequences * 128 * (len(ends) - 2) / (ends[-1] - ends[1])
