"""Encoder and decoder equal torch's own Transformer, also step by step, and ignore padding and later tokens."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from hatchery.modeling.encoder_decoder.model import TranslationModel
from hatchery.modeling.families import FAMILIES, forward_flops
from hatchery.modeling.flops import PassShape
from hatchery.modeling.layers import MultiHeadAttention
from hatchery.modeling.norm_and_dropout import Dropout
from hatchery.modeling.store import load_language_model, save_model

VOCABULARY = 61
ModelOf = Callable[..., TranslationModel]


@pytest.fixture
def model_of(make_model: ModelOf) -> ModelOf:
    """A small translation model in evaluation mode."""
    return lambda **changes: make_model(3, family="encoder_decoder", **{"num_hidden_layers": 2, **changes}).eval()


def batch() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    source = torch.randint(5, VOCABULARY, (3, 7), generator=generator)
    target = torch.randint(5, VOCABULARY, (3, 5), generator=generator)
    mask = torch.arange(7)[None] < torch.tensor([7, 4, 6])[:, None]
    labels = target.clone()
    labels[1, 3:] = -100
    return {"input_ids": source.masked_fill(~mask, 1), "attention_mask": mask, "target_ids": target, "labels": labels}


def copied(ours: MultiHeadAttention, theirs: nn.MultiheadAttention, scale: float) -> None:
    query, key, value = ours.query_projection, ours.key_projection, ours.value_projection
    theirs.in_proj_weight.data = torch.cat([query.weight, key.weight, scale * value.weight]).detach().clone()
    theirs.in_proj_bias.data = torch.cat([query.bias, key.bias, scale * value.bias]).detach().clone()
    theirs.out_proj.load_state_dict(ours.output_projection.state_dict())


def waves(length: int, size: int) -> Tensor:
    """Sinusoids of "Attention Is All You Need", section 3.5, all sines before all cosines, rounded to the model's
    precision."""
    angles = [[place / 10_000 ** (2 * number / size) for number in range(size // 2)] for place in range(length)]
    values = [[*map(math.sin, row), *map(math.cos, row)] for row in angles]
    return torch.tensor(values, dtype=torch.float32)


class Kept(nn.Module):
    """Stands for dropout: the values are multiplied by the probability of keeping an element."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, values: Tensor) -> Tensor:
        return self.share * values


def torch_logits(
    model: TranslationModel, given: dict[str, Tensor], kept: float = 1.0, kept_probabilities: float = 1.0
) -> tuple[Tensor, nn.Transformer]:
    """Logits of the same model, and the model, built with torch's own layers.

    If dropout keeps the share `kept_probabilities` of the attention probabilities, the values are scaled by this share.
    """
    config = model.config
    pre = config.normalisation == "pre_norm"
    theirs = nn.Transformer(
        *(config.hidden_size, config.num_attention_heads, config.num_hidden_layers, config.decoder_layers),
        dim_feedforward=config.intermediate_size,
        dropout=0.0,
        batch_first=True,
        norm_first=pre,
        dtype=torch.float64,
    )
    pairs = [(ours, layer) for ours, layer in zip(model.encoder.layers, theirs.encoder.layers, strict=True)]
    for ours, layer in [*pairs, *zip(model.decoder, theirs.decoder.layers, strict=True)]:
        copied(ours.attention, layer.self_attn, kept_probabilities)
        # Torch also drops elements inside the feed-forward block; our block has no dropout there.
        for name in ("dropout1", "dropout2", "dropout3"):
            setattr(layer, name, Kept(kept))
        layer.linear1.load_state_dict(ours.feed_forward.input_projection.state_dict())
        layer.linear2.load_state_dict(ours.feed_forward.output_projection.state_dict())
        norms = [ours.attention.pre_layer_norm if pre else ours.attention_norm]
        if hasattr(ours, "source_attention"):
            copied(ours.source_attention, layer.multihead_attn, kept_probabilities)
            norms.append(ours.source_attention.pre_layer_norm if pre else ours.source_attention_norm)
        norms.append(ours.feed_forward.pre_layer_norm if pre else ours.feed_forward_norm)
        for number, ours_norm in enumerate(norms, 1):
            getattr(layer, f"norm{number}").load_state_dict(ours_norm.state_dict())
    if pre:
        theirs.encoder.norm.load_state_dict(model.encoder.final_norm.state_dict())
        theirs.decoder.norm.load_state_dict(model.decoder_norm.state_dict())
    else:
        theirs.encoder.norm = theirs.decoder.norm = None

    def embedded(ids: Tensor) -> Tensor:
        words = model.encoder.embedding.weight[ids] * math.sqrt(config.hidden_size)
        return kept * (words + waves(ids.shape[1], config.hidden_size))

    length = given["target_ids"].shape[1]
    hidden = theirs(
        embedded(given["input_ids"]),
        embedded(given["target_ids"]),
        tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
        src_key_padding_mask=~given["attention_mask"],
        memory_key_padding_mask=~given["attention_mask"],
    )
    weight, bias = model.output_layer
    return hidden @ weight.T + (0 if bias is None else bias), theirs


@pytest.mark.parametrize("normalisation", ["pre_norm", "post_norm"])
@pytest.mark.parametrize("tied", [False, True])
def test_logits_and_gradients_are_those_of_torch(model_of: ModelOf, normalisation: str, tied: bool) -> None:
    model, given = model_of(normalisation=normalisation, tie_word_embeddings=tied, disturbed=0.1), batch()
    theirs, transformer = torch_logits(model.double().train(), given)
    ours = model.logits_at(model.decode(given["target_ids"], model.begin(given["input_ids"], given["attention_mask"])))
    torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=0)
    weights = torch.randn(ours.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(9))
    (ours * weights).sum().backward()
    gradient = model.encoder.layers[0].attention.output_projection.weight.grad
    embedding = model.encoder.embedding.weight.grad.clone()
    model.zero_grad()
    (theirs * weights).sum().backward()
    expected = transformer.encoder.layers[0].self_attn.out_proj.weight.grad
    torch.testing.assert_close(gradient, expected, atol=1e-10, rtol=1e-9)
    torch.testing.assert_close(embedding, model.encoder.embedding.weight.grad, atol=1e-10, rtol=1e-9)


@torch.no_grad()
@pytest.mark.parametrize("normalisation", ["pre_norm", "post_norm"])
def test_what_is_dropped_in_training_is_dropped_where_torch_does_and_at_its_own_rate(
    model_of: ModelOf, normalisation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dropout, "forward", lambda dropout, values: values * (1 - dropout.probability))
    rates = {"hidden_dropout_prob": 0.3, "attention_probs_dropout_prob": 0.6}
    model, given = model_of(normalisation=normalisation, disturbed=0.1, **rates).double().train(), batch()
    theirs, _ = torch_logits(model, given, 0.7, 0.4)
    ours = model.logits_at(model.decode(given["target_ids"], model.begin(given["input_ids"], given["attention_mask"])))
    torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=0)


@pytest.mark.parametrize("normalisation", ["pre_norm", "post_norm"])
@pytest.mark.parametrize("pieces", [[2, 1, 1, 1], [2, 3], [1, 2, 2]])
def test_piece_by_piece_gives_what_one_pass_gives(model_of: ModelOf, normalisation: str, pieces: list[int]) -> None:
    model, given = model_of(normalisation=normalisation), batch()
    with torch.no_grad():
        whole = model.decode(given["target_ids"], model.begin(given["input_ids"], given["attention_mask"]))
        state = model.begin(given["input_ids"], given["attention_mask"])
        parts = [model.decode(piece, state) for piece in given["target_ids"].split(pieces, dim=1)]
    assert torch.allclose(torch.cat(parts, dim=1), whole, atol=1e-5)


def test_padding_of_the_source_and_what_comes_later_change_nothing(model_of: ModelOf) -> None:
    model, given = model_of(), batch()
    with torch.no_grad():
        whole = model.decode(given["target_ids"], model.begin(given["input_ids"], given["attention_mask"]))
        alone = model.decode(given["target_ids"][1:2, :3], model.begin(given["input_ids"][1:2, :4], None))
    assert torch.allclose(whole[1, :3], alone[0], atol=1e-5)


def test_the_loss_is_that_of_the_targets(model_of: ModelOf) -> None:
    model, given = model_of(), batch()
    with torch.no_grad():
        output = model(**given)
        hidden, targets = model.labelled_hidden(given)
        log_probabilities = model.logits_at(hidden).log_softmax(dim=-1)
    assert output.n_labelled == len(targets) == 13
    assert torch.allclose(
        output.loss_sum, nn.functional.nll_loss(log_probabilities, targets, reduction="sum"), atol=1e-3
    )


def test_a_saved_model_is_the_same_model(model_of: ModelOf, tmp_path: Path) -> None:
    model = model_of(num_decoder_layers=1)
    save_model(tmp_path, model)
    loaded = load_language_model(tmp_path)
    assert isinstance(loaded, TranslationModel)
    assert (len(loaded.encoder.layers), len(loaded.decoder)) == (2, 1)
    given = batch()
    assert torch.equal(loaded.eval()(**given).loss_sum, model(**given).loss_sum)


def test_operations_are_those_of_the_matrix_products(model_of: ModelOf) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    # Dropout avoids the fused CPU kernel, whose operations torch does not count.
    model, given = model_of(attention_probs_dropout_prob=0.1).train(), batch()
    given["attention_mask"] = torch.ones(3, 7, dtype=torch.bool)
    given["labels"] = given["target_ids"]
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(**given)
    shape = PassShape(3, 7, 15, target_length=5)
    assert sum(forward_flops(model.config, shape).values()) == counter.get_total_flops()
    # Kaplan's formula counts neither the embedding nor its 61 rows of width 24: 100 parameters remain.
    work = [(3, 7), (2, 5)]
    assert FAMILIES["encoder_decoder"].paper_flops(model.config, 61 * 24 + 100, work) == 6 * 100 * (21 + 10)


def test_the_paper_s_initialisation_of_the_output_matrix_has_variance_one_over_d(model_of: ModelOf) -> None:
    weight, bias = model_of(hidden_size=48, vocab_size=400).output_layer
    assert float(weight.detach().std()) == pytest.approx(48**-0.5, rel=0.05)
    assert bias is not None and not bias.any()


def test_matrices_start_by_xaviers_rule_and_embeddings_at_one_over_the_root_of_the_width(model_of: ModelOf) -> None:
    for tied in (False, True):
        model = model_of(hidden_size=48, intermediate_size=240, vocab_size=400, tie_word_embeddings=tied)
        for name, parameter in model.named_parameters():
            values = parameter.detach()
            if values.dim() == 2:
                is_table = "embedding" in name or "vocabulary" in name
                expected = 48**-0.5 if is_table else math.sqrt(2 / sum(values.shape))
                assert float(values.std()) == pytest.approx(expected, rel=0.08), name
            else:
                is_gain = "norm" in name and name.endswith("weight")
                assert bool((values == float(is_gain)).all()), name
