"""Early divergences and the drift of the bias: what they are by definition, on which positions, at which steps."""

import dataclasses
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from hatchery.errors import ConfigError, TrainingError
from hatchery.modeling.families import model_config
from hatchery.modeling.language_model import LanguageModel, initialise_
from hatchery.modeling.ltg.family import LtgBertConfig
from hatchery.objectives.padding import PaddedExamples
from hatchery.tokenization.special_tokens import UNLABELLED
from hatchery.tokenization.token_reader import TokenShards
from hatchery.training import output_probes as module
from hatchery.training.development import DevelopmentSet
from hatchery.training.objectives import objective_of
from hatchery.training.objectives.masked import MaskedSettings
from hatchery.training.output_bias import prepare_output_
from hatchery.training.output_probes import (
    DRIFT,
    MEASURES,
    BiasDrift,
    DivergenceProbe,
    divergences,
    is_logged,
    unigram_of_run,
)
from hatchery.training.precision import resolve_precision
from hatchery.training.settings import pretrain_settings
from hatchery.training.start_settings import OutputBiasSettings
from hatchery.training.topology import SINGLE_PROCESS

pytestmark = pytest.mark.usefixtures("single_process")

SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2}
UNIGRAM = OutputBiasSettings(kind="unigram")


def random_unigram(n_types: int, seed: int) -> np.ndarray:
    weights = np.random.default_rng(seed).pareto(1.0, n_types) + 1e-6
    return weights / weights.sum()


def by_definition(logits: np.ndarray, targets: np.ndarray, unigram: np.ndarray) -> list[float]:
    """Sums over the rows, each distribution written out in double precision."""
    logits = logits.astype(np.float64)
    n_types = len(unigram)
    everything = np.exp(logits - logits.max(axis=1, keepdims=True))
    model = everything / everything.sum(axis=1, keepdims=True)
    of_types = model[:, :n_types] / model[:, :n_types].sum(axis=1, keepdims=True)
    uniform = np.full(n_types, 1 / n_types)

    def divergence(first: np.ndarray, second: np.ndarray) -> float:
        first, second = np.broadcast_arrays(first, second)
        return float((first * np.log(first / second)).sum())

    model_at_types = model[:, :n_types]
    return [
        divergence(unigram, model_at_types),
        divergence(uniform, model_at_types),
        float(-np.log(model[np.arange(len(targets)), targets]).sum()),
        divergence(of_types, unigram),
        divergence(of_types, uniform),
        float(len(targets)),
    ]


@pytest.mark.parametrize("rows_beyond", [0, 10])
@pytest.mark.parametrize("scale", [0.0, 1.0, 8.0])
def test_each_measure_is_what_its_formula_says(scale: float, rows_beyond: int) -> None:
    rng = np.random.default_rng(3)
    n_types, positions = 1_237, 41
    logits = (scale * rng.standard_normal((positions, n_types + rows_beyond)) + 30).astype(np.float32)
    targets, unigram = rng.integers(0, n_types, positions), random_unigram(n_types, 4)
    sums = divergences(torch.from_numpy(logits), torch.from_numpy(targets), torch.from_numpy(unigram))
    assert sums.dtype == torch.float64
    np.testing.assert_allclose(sums.numpy(), by_definition(logits, targets, unigram), rtol=1e-9, atol=1e-9)


def test_a_large_vocabulary_is_looked_at_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    logits = torch.from_numpy(rng.standard_normal((7, 500)).astype(np.float32))
    targets, unigram = torch.from_numpy(rng.integers(0, 490, 7)), torch.from_numpy(random_unigram(490, 6))
    at_once = divergences(logits, targets, unigram)
    monkeypatch.setattr(module, "_LOGITS_AT_A_TIME", 7 * 13)
    torch.testing.assert_close(divergences(logits, targets, unigram), at_once, rtol=1e-12, atol=1e-12)


def test_a_vocabulary_of_thirty_thousand_is_never_copied_in_double_precision() -> None:
    largest = 0

    class Watched(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
            nonlocal largest
            result = function(*arguments, **(keywords or {}))
            if isinstance(result, torch.Tensor) and result.dtype == torch.float64:
                largest = max(largest, result.numel())
            return result

    logits = torch.zeros(100, 30_000)
    with Watched():
        divergences(logits, torch.zeros(100, dtype=torch.int64), torch.full((30_000,), 1 / 30_000).double())
    assert 0 < largest <= 2**20 < logits.numel()


@pytest.mark.parametrize("height", [0.0, 3e4, -3e4])
def test_a_constant_that_is_added_to_all_logits_changes_nothing(height: float) -> None:
    logits = torch.linspace(-20, 20, 300).repeat(4, 1).round()
    targets, unigram = torch.tensor([0, 10, 200, 299]), torch.from_numpy(random_unigram(300, 1))
    torch.testing.assert_close(divergences(logits + height, targets, unigram), divergences(logits, targets, unigram))


def test_sums_of_parts_add_up_to_the_whole() -> None:
    logits, targets = torch.randn(20, 60), torch.randint(0, 60, (20,))
    unigram = torch.from_numpy(random_unigram(60, 2))
    parts = sum(divergences(logits[part], targets[part], unigram) for part in (slice(0, 3), slice(3, 3), slice(3, 20)))
    torch.testing.assert_close(parts, divergences(logits, targets, unigram))


def test_steps_double_and_fall_on_the_evaluation_grid() -> None:
    assert [step for step in range(70) if is_logged(step, 25)] == [0, 1, 2, 4, 8, 16, 25, 32, 50, 64]


@pytest.fixture(scope="module")
def shards(token_data) -> TokenShards:
    return TokenShards.open(token_data.tokens, "train")


@pytest.fixture(scope="module")
def examples(shards: TokenShards) -> PaddedExamples:
    return objective_of(MaskedSettings()).examples(shards, 32)


@pytest.fixture(scope="module")
def development(token_data) -> DevelopmentSet:
    held_out = objective_of(MaskedSettings()).examples(TokenShards.open(token_data.tokens, "dev"), 32)
    return DevelopmentSet(held_out, 30, 8, SINGLE_PROCESS)


@pytest.fixture
def make_engine(shards: TokenShards) -> Callable[..., Any]:
    """What the probe needs of an engine, around a real model."""

    def make(**changes: Any) -> Any:
        model = LanguageModel(model_config({**SIZES, "vocab_size": shards.vocabulary_size, **changes}))
        initialise_(model, 3)
        device = torch.device("cpu")
        return SimpleNamespace(model=model, device=device, precision=resolve_precision("fp32", device))

    return make


def without_matrix(engine: Any) -> Any:
    with torch.no_grad():
        engine.model.head.vocabulary_weight.zero_()
    return engine


@pytest.mark.parametrize(
    "settings",
    [
        UNIGRAM,
        dataclasses.replace(UNIGRAM, counts="corpus", smoothing=0.5),
        dataclasses.replace(UNIGRAM, label_smoothing=0.1),
        dataclasses.replace(UNIGRAM, centred=True),
    ],
    ids=["labels", "corpus", "label smoothing", "centred"],
)
@pytest.mark.parametrize("spare_rows", [0, 10])
def test_a_model_that_is_its_prior_starts_at_no_divergence_from_unigram(
    make_engine, examples, shards, development, settings, spare_rows
) -> None:
    family = {"family": "roberta", "extra_vocabulary_rows": spare_rows} if spare_rows else {}
    engine = make_engine(tie_word_embeddings=False, **family)
    prepare_output_(engine.model, settings, lambda: examples, shards, seed=7, show=False)
    unigram = unigram_of_run(settings, lambda: examples, shards, seed=7, show=False)
    score = DivergenceProbe(development.batches, unigram).score(without_matrix(engine))
    n_types = len(unigram)
    assert score["kl_unigram"] == pytest.approx(0, abs=1e-9)
    assert score["reverse_kl_unigram"] == pytest.approx(0, abs=1e-9)
    # KL(u || omega) and log V - H(omega).
    assert score["kl_uniform"] == pytest.approx(-np.log(n_types * unigram).mean(), abs=1e-6)
    assert score["reverse_kl_uniform"] == pytest.approx(math.log(n_types) + unigram @ np.log(unigram), abs=1e-6)


def test_a_model_that_says_nothing_starts_at_no_divergence_from_uniform(
    make_engine, examples, shards, development
) -> None:
    unigram = unigram_of_run(OutputBiasSettings(), lambda: examples, shards, seed=7, show=False)
    score = DivergenceProbe(development.batches, unigram).score(without_matrix(make_engine(tie_word_embeddings=False)))
    assert score["kl_uniform"] == pytest.approx(0, abs=1e-9) == score["reverse_kl_uniform"]
    assert score["kl_unigram"] == pytest.approx(math.log(len(unigram)) + unigram @ np.log(unigram), abs=1e-6)
    assert score["kl_empirical"] == pytest.approx(math.log(len(unigram)))


@pytest.mark.parametrize("family", ["ltg", "roberta"])
def test_the_empirical_divergence_is_the_development_loss(make_engine, development, shards, family) -> None:
    engine = make_engine(family=family)
    engine.model.eval()
    with torch.no_grad():
        outputs = [engine.model(**batch) for batch in development.batches]
    loss = sum(float(output.loss_sum) for output in outputs) / sum(int(output.n_labelled) for output in outputs)
    probe = DivergenceProbe(development.batches, random_unigram(shards.vocabulary_size, 0))
    score = probe.score(engine)
    assert tuple(score) == MEASURES
    assert score["kl_empirical"] == pytest.approx(loss, rel=1e-5)
    assert score == probe.score(engine)


def test_half_precision_is_measured_in_the_precision_of_the_run(make_engine, development, shards) -> None:
    probe = DivergenceProbe(development.batches, random_unigram(shards.vocabulary_size, 0))
    engine = make_engine()
    full = probe.score(engine)
    engine.precision = resolve_precision("bf16", engine.device)
    half = probe.score(engine)
    assert half != full and half == pytest.approx(full, rel=0.02, abs=0.02)


def test_measuring_draws_no_dropout_and_leaves_the_model_in_training(make_engine, development, shards) -> None:
    engine = make_engine(hidden_dropout_prob=0.5)
    engine.model.train()
    probe = DivergenceProbe(development.batches, random_unigram(shards.vocabulary_size, 0))
    state = torch.get_rng_state()
    first = probe.score(engine)
    assert torch.equal(state, torch.get_rng_state()) and first == probe.score(engine)
    assert engine.model.training
    assert all(parameter.grad is None for parameter in engine.model.parameters())


@pytest.mark.parametrize("unigram", [np.array([0.5, 0.5, 0.0]), np.array([0.5, 0.6])], ids=["zero", "sum"])
def test_what_is_no_distribution_over_all_types_is_refused(unigram: np.ndarray) -> None:
    with pytest.raises(TrainingError, match="above 0 that sums to 1"):
        DivergenceProbe([], unigram)


def test_development_sequences_without_a_label_are_refused(make_engine, development, shards) -> None:
    batch = development.batches[0]
    unlabelled = {**batch, "labels": torch.full_like(batch["labels"], UNLABELLED)}
    with pytest.raises(TrainingError, match="no position"):
        DivergenceProbe([unlabelled], random_unigram(shards.vocabulary_size, 0)).score(make_engine())


def test_an_output_that_is_not_finite_is_told(make_engine, development, shards) -> None:
    engine = make_engine()
    with torch.no_grad():
        engine.model.head.vocabulary_bias[3] = math.nan
    with pytest.raises(TrainingError, match="kl_unigram is nan"):
        DivergenceProbe(development.batches, random_unigram(shards.vocabulary_size, 0)).score(engine)


def make_model() -> LanguageModel:
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    return LanguageModel(LtgBertConfig(vocab_size=4, **sizes))


def test_a_bias_at_the_unigram_distribution_has_no_divergence_and_moves_by_what_is_added() -> None:
    model, unigram = make_model(), np.array([0.5, 0.25, 0.125, 0.125])
    bias = model.output_layer[1]
    bias.data = torch.from_numpy(np.log(unigram)).float()
    drift, engine = BiasDrift(model, unigram), SimpleNamespace(model=model)
    start = drift.score(engine)
    assert tuple(start) == DRIFT
    assert start["bias_kl_unigram"] == pytest.approx(0, abs=1e-7)
    assert start["bias_norm"] == pytest.approx(float(np.linalg.norm(np.log(unigram))))
    assert start["bias_change"] == start["largest_bias_change"] == 0
    bias.data += torch.tensor([0.3, 0.0, 0.0, -0.4])
    moved = drift.score(engine)
    assert moved["bias_change"] == pytest.approx(0.5) and moved["largest_bias_change"] == pytest.approx(0.4)
    new = np.exp(bias.detach().double().numpy())
    new /= new.sum()
    assert moved["bias_kl_unigram"] == pytest.approx(float((unigram * np.log(unigram / new)).sum()), rel=1e-5)
    assert moved["reverse_bias_kl_unigram"] == pytest.approx(float((new * np.log(new / unigram)).sum()), rel=1e-5)


def test_a_bias_of_zero_is_as_far_as_the_uniform_distribution() -> None:
    unigram = np.array([0.5, 0.25, 0.125, 0.125])
    found = BiasDrift(make_model(), unigram).score(SimpleNamespace(model=make_model()))
    assert found["bias_kl_unigram"] == pytest.approx(math.log(4) + float((unigram * np.log(unigram)).sum()))
    assert found["bias_norm"] == 0


def test_a_drift_without_a_bias_is_refused(pretrain_slice) -> None:
    with pytest.raises(ConfigError, match=r"bias_drift: got True, expected false with output_bias\.kind none"):
        pretrain_settings({**pretrain_slice(output_bias__kind="none"), "bias_drift": True})
