"""GPT-BERT against numbers measured on its authors' code, the authors' tensor names, and properties of the model."""

import csv
import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from hatchery.errors import ModelError
from hatchery.modeling.block_sums import BlockSums
from hatchery.modeling.families import model_config
from hatchery.modeling.gpt_bert.published_names import from_published, in_training, our_name
from hatchery.modeling.language_model import LanguageModel, build_language_model

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "gpt_bert"
CHOICES: dict[str, dict[str, Any]] = {
    "model_gate_dwa": {},
    "model_plain": {"attention_gate": False, "layer_weighting": "none"},
}
CASES = ("a_bidirectional_padded", "b_block_diagonal", "c_block_causal")
WITHOUT_DROPOUT = {"family": "gpt_bert", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


class Golden(NamedTuple):
    """A golden model of the authors and one of its inputs, in our layout: batch first, mask True at keys."""

    model: LanguageModel
    arrays: dict[str, np.ndarray]
    facts: dict[str, Any]

    @property
    def ids(self) -> Tensor:
        return torch.from_numpy(self.arrays["input_ids"]).t().contiguous()

    @property
    def mask(self) -> Tensor:
        return ~torch.from_numpy(self.arrays["attention_mask"])

    @property
    def labels(self) -> Tensor:
        return torch.from_numpy(self.arrays["labels"]).t().contiguous()

    def published(self, key: str) -> Tensor:
        """Return an array as published; some arrays are time first."""
        return torch.from_numpy(self.arrays[key])


@cache
def arrays_of(path: str) -> dict[str, np.ndarray]:
    return dict(np.load(GOLDEN / f"{path}.npz"))


@pytest.fixture(params=[(kind, case) for kind in CHOICES for case in CASES], ids="-".join)
def golden(request: pytest.FixtureRequest) -> Golden:
    kind, case = request.param
    info = json.loads((GOLDEN / kind / "info.json").read_text())
    model = LanguageModel(model_config({**info["config"], **WITHOUT_DROPOUT, **CHOICES[kind]}))
    state = {name.removeprefix("state."): torch.from_numpy(a) for name, a in arrays_of(f"{kind}/weights").items()}
    model.load_state_dict(from_published(state))
    assert sum(parameter.numel() for parameter in model.parameters()) == info["n_parameters"]
    return Golden(model, arrays_of(f"{kind}/{case}"), info["cases"][case])


def close(ours: Tensor, published: Tensor, atol: float, rtol: float = 0.0) -> None:
    torch.testing.assert_close(ours.detach(), published, atol=atol, rtol=rtol)


def test_states_and_logits_are_the_published_ones_padding_included(golden):
    states = golden.model.encoder(golden.ids, golden.mask)
    close(states[0].transpose(0, 1), golden.published("embedding"), atol=5e-5)
    # The state after each layer: with mixing, the mixture after the layer's second block.
    behind = golden.published("mixes" if "mixes" in golden.arrays else "residual_sums")[1::2]
    close(torch.stack(states[1:]).transpose(1, 2), behind, atol=5e-5)
    close(golden.model.logits_at(states[-1]).transpose(0, 1), golden.published("logits"), atol=2e-5)


def test_loss_and_gradients_are_the_published_ones(golden):
    golden.model.train()
    output = golden.model(golden.ids, golden.mask, golden.labels)
    loss = output.loss_sum / output.n_labelled
    assert int(output.n_labelled) == golden.facts["n_targets"]
    assert loss.item() == pytest.approx(golden.facts["loss"], abs=5e-6)
    loss.backward()
    parameters = dict(golden.model.named_parameters())
    compared = [key.removeprefix("grad.") for key in golden.arrays if key.startswith("grad.")]
    for name in compared:
        close(parameters[our_name(name)].grad, golden.published(f"grad.{name}"), atol=5e-6, rtol=1e-4)
    norms = golden.facts["grad_l2_norm_loss"]
    assert {our_name(name) for name in norms} == set(parameters)
    for name, norm in norms.items():
        assert parameters[our_name(name)].grad.norm().item() == pytest.approx(norm, rel=1e-4, abs=1e-7), name


def test_attention_probabilities_are_the_published_ones(golden):
    encoder = golden.model.encoder
    tokens, inputs = encoder.embed(golden.ids, golden.mask)
    close(inputs.relative_embedding, golden.published("relative_embedding_normed"), atol=5e-5)
    attention = encoder.layers[0].attention
    scores = attention.scores(attention.pre_layer_norm(tokens), inputs.relative_embedding, inputs.positions)
    hidden = ~golden.mask[:, None]
    probabilities = torch.softmax(scores.masked_fill(hidden, torch.finfo().min), dim=-1).masked_fill(hidden, 0)
    close(probabilities, golden.published("attention_probs_layer0"), atol=2e-6)


def sizes(kind: str) -> dict[str, Any]:
    return {
        "base_V16384": {"hidden_size": 768, "intermediate_size": 2560, "num_attention_heads": 12, "vocab_size": 16384},
        "small_V8192": {"hidden_size": 384, "intermediate_size": 1280, "num_attention_heads": 6, "vocab_size": 8192},
    }[kind] | {"num_hidden_layers": 12}


@pytest.mark.parametrize("size", ["base_V16384", "small_V8192"])
@pytest.mark.parametrize(
    ("published", "choices"), [("gate_dwa", CHOICES["model_gate_dwa"]), ("plain", CHOICES["model_plain"])]
)
def test_published_sizes_have_the_published_parameters_under_all_their_names(size, published, choices):
    with torch.device("meta"):
        model = build_language_model(model_config({"family": "gpt_bert", **sizes(size), **choices}))
    ours = {name: list(parameter.shape) for name, parameter in model.named_parameters()}
    counts = json.loads((GOLDEN / "names" / "counts.json").read_text())["parameters"]
    assert sum(parameter.numel() for parameter in model.parameters()) == counts[published][size]
    if published == "plain":
        return
    with (GOLDEN / "names" / f"{size}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    named = {}
    for row in rows:
        assert in_training(row["exported_name_by_the_rule_of_the_digest"]) == row["training_name"]
        if (name := our_name(row["training_name"])) is not None:
            named[name] = [int(number) for number in row["shape"].split("x")]
    assert named == ours
    assert sum(p.numel() for name, p in model.named_parameters() if ".layer_weights." in name) == 324


def test_an_unknown_name_is_refused():
    with pytest.raises(ModelError, match=r"transformer\.layers\.0\.attention"):
        our_name("transformer.layers.0.attention.in_proj_qk.weight")


@pytest.mark.parametrize(("buckets", "positions", "length"), [(32, 512, 512), (8, 64, 64), (32, 512, 640), (8, 64, 90)])
def test_the_position_table_is_the_published_one_also_of_longer_inputs(make_model, buckets, positions, length):
    model = make_model(family="gpt_bert", position_bucket_size=buckets, max_position_embeddings=positions)
    rows = model.encoder.relative_positions.rows(length)
    name = f"table_bucket{buckets}_max{positions}" + (f"_extended_to{length}" if length > positions else "")
    published = np.load(GOLDEN / "positions" / "tables.npz")[name]
    same = torch.cat([rows[-1], rows[0, 1:]]).numpy() == published
    # The authors' longer table always assumes 512 positions: for other models, only exact distances agree.
    is_exact = np.abs(np.arange(length - 1, -length, -1)) < buckets // 2
    assert same.all() if length == positions or positions == 512 else same[is_exact].all() and not same.all()


def test_nothing_but_the_import_of_published_weights_names_the_family():
    """Families, objectives and maskers are discovered by their location, so a new one needs no entry in a list."""
    library = Path(__file__).resolve().parents[2] / "scripts/hatchery"
    named = {"modeling.gpt_bert": [], "training.objectives.hybrid": [], "masking.short_span": []}
    for path in library.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for module, files in named.items():
            if f"hatchery.{module}" in text.replace("objectives.masking", "masking"):
                files.append(path.relative_to(library).as_posix())
    outside = [name for files in named.values() for name in files if not name.startswith("modeling/gpt_bert/")]
    assert outside == ["export/published_checkpoint.py"]


def test_at_the_start_mixing_is_the_plain_residual_stream(make_model, batch):
    mixed, plain = (make_model(family="gpt_bert", layer_weighting=name) for name in ("unrestricted", "none"))
    for ours, theirs in zip(mixed.encoder(*batch[:2]), plain.encoder(*batch[:2]), strict=True):
        assert torch.equal(ours, theirs)


def test_what_is_kept_for_later_sums_is_the_sum_and_not_its_mixture(make_model, batch):
    """The scale of the first mixture must not affect the first block's output in the second mixture."""
    model = make_model(family="gpt_bert", num_hidden_layers=1, disturbed=0.1).eval()
    encoder, mixture = model.encoder, model.encoder.mixture
    tokens, inputs = encoder.embed(batch[0], batch[1])
    layer = encoder.layers[0]
    first = tokens + layer.attention(tokens, inputs)
    a, b = mixture.layer_weights
    stream = a[0] * tokens + a[1] * first
    second = stream + layer.feed_forward(stream)
    expected = b[0] * tokens + b[1] * first + b[2] * second
    torch.testing.assert_close(encoder(*batch[:2])[-1], expected, atol=1e-5, rtol=0)


def test_blocks_of_a_packed_sequence_do_not_see_each_other(make_model):
    model = make_model(family="gpt_bert", disturbed=0.1).double().eval()
    ids = torch.randint(5, 61, (1, 12), generator=torch.Generator().manual_seed(2))
    block = torch.tensor([0] * 5 + [1] * 6 + [2])
    mask = (block[:, None] == block)[None]
    # The last position is padding: no token attends to it, and it attends to no token.
    mask[0, 11] = False
    before = model.encoder(ids, mask)[-1]
    altered = ids.clone()
    altered[0, 7] = 5
    altered[0, 11] = 6
    after = model.encoder(altered, mask)[-1]
    assert torch.equal(after[0, :5], before[0, :5])
    assert ((after - before)[0, 5:11].abs().amax(dim=1) > 1e-6).all()
    # A block may have any offset in a sequence, because there are no absolute positions.
    alone = model.encoder(ids[:, 5:11])[-1]
    torch.testing.assert_close(before[:, 5:11], alone, atol=1e-10, rtol=0)


def test_every_parameter_learns_also_through_recomputed_layers(make_model, batch):
    from hatchery.training.engine import recompute_layers_

    gradients = []
    for recomputed in (False, True):
        model = make_model(family="gpt_bert", disturbed=0.1).train()
        if recomputed:
            recompute_layers_(model)
        model(*batch).loss_sum.backward()
        gradients.append({name: parameter.grad for name, parameter in model.named_parameters()})
    assert all(gradient is not None and gradient.abs().max() > 0 for gradient in gradients[0].values())
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, atol=1e-5, rtol=1e-5)


def test_without_a_gate_there_is_one_projection_less(make_model):
    gated, plain = make_model(family="gpt_bert"), make_model(family="gpt_bert", attention_gate=False)
    assert gated.encoder.layers[0].attention.value_projection.weight.shape == (48, 24)
    assert plain.encoder.layers[0].attention.value_projection.weight.shape == (24, 24)


def test_gradients_of_combined_sums_are_those_of_the_written_out_formula():
    generator = torch.Generator().manual_seed(4)
    embedded = torch.randn(2, 3, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    weights = [torch.randn(n, generator=generator, dtype=torch.float64, requires_grad=True) for n in (2, 3, 4)]

    def written_out(embedded: Tensor, *weights: Tensor) -> Tensor:
        sums, stream = [embedded], embedded
        for vector in weights:
            sums.append(stream + torch.sin(stream))
            stream = sum(weight * one for weight, one in zip(vector, sums, strict=True))
        return stream

    def combined(embedded: Tensor, *weights: Tensor) -> Tensor:
        sums, stream = BlockSums(embedded, weights), embedded
        for block in range(len(weights)):
            stream = sums.combined(block, stream + torch.sin(stream))
        return stream

    results = []
    for function in (written_out, combined):
        output = function(embedded, *weights)
        results.append([output, *torch.autograd.grad(output.pow(2).sum(), [embedded, *weights])])
    for expected, ours in zip(*results, strict=True):
        torch.testing.assert_close(ours, expected, atol=1e-12, rtol=1e-12)
