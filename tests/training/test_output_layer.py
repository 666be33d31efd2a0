"""The prior in a run's output layer, and the divergence of a model's predictions from distributions."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from hatchery.errors import ConfigError, TrainingError
from hatchery.modeling.count_distributions import smoothed_distribution
from hatchery.modeling.families import model_config
from hatchery.modeling.language_model import LanguageModel, initialise_
from hatchery.modeling.output_bias import SPARE_ROW_BIAS, log_prior, output_bias, set_output_bias_
from hatchery.objectives.padded_examples import PaddedExamples
from hatchery.tokenization.special_tokens import UNLABELLED
from hatchery.tokenization.token_shards import TokenShards
from hatchery.training import run_parts
from hatchery.training.decay_groups import parameter_groups
from hatchery.training.development import DevelopmentSet
from hatchery.training.objectives import objective_of
from hatchery.training.objectives.masked import MaskedSettings
from hatchery.training.optimizer_settings import OptimizerSettings
from hatchery.training.optimizers import build_optimizer
from hatchery.training.output_divergences import MEASURES, DivergenceProbe
from hatchery.training.output_prior import larger_corpus_counts, prepare_output_, prior_distribution, unigram_of_run
from hatchery.training.precision import resolve_precision
from hatchery.training.start_settings import OutputBiasSettings
from hatchery.training.topology import SINGLE_PROCESS

pytestmark = pytest.mark.usefixtures("single_process")

SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2}
UNIGRAM = OutputBiasSettings(kind="unigram")


@pytest.fixture(scope="module")
def shards(token_data) -> TokenShards:
    return TokenShards.open(token_data.tokens, "train")


@pytest.fixture(scope="module")
def make_examples(shards: TokenShards) -> Callable[..., PaddedExamples]:
    def make(masking: MaskedSettings | None = None, **changes: Any) -> PaddedExamples:
        return objective_of(replace(masking or MaskedSettings(), **changes)).examples(shards, 32)

    return make


@pytest.fixture
def make_model(shards: TokenShards) -> Callable[..., LanguageModel]:
    def make(**changes: Any) -> LanguageModel:
        model = LanguageModel(model_config({**SIZES, "vocab_size": shards.vocabulary_size, **changes}))
        initialise_(model, 3)
        return model

    return make


def untouched() -> PaddedExamples:
    raise AssertionError("nothing is to be counted here")


def labels_of(examples: PaddedExamples, seed: int) -> np.ndarray:
    labels = [examples.example(seed, 0, index).labels for index in range(len(examples))]
    flat = np.concatenate(labels)
    return flat[flat != UNLABELLED]


@pytest.mark.parametrize(
    "masking",
    [
        MaskedSettings("span"),
        MaskedSettings("span", "as_published"),
        MaskedSettings("whole_word"),
        MaskedSettings("subword", special_tokens_maskable=True),
    ],
    ids=lambda masking: f"{masking.kind} {masking.reading}",
)
def test_the_bias_is_the_log_frequency_of_the_labels_that_training_sees(make_model, make_examples, shards, masking):
    model, examples = make_model(), make_examples(masking)
    measures = prepare_output_(model, UNIGRAM, lambda: examples, shards, seed=7, show=False)
    counts = np.bincount(labels_of(examples, 7), minlength=shards.vocabulary_size)
    expected = np.log((counts + 1) / (counts.sum() + len(counts)))
    np.testing.assert_allclose(model.head.vocabulary_bias.detach(), expected, rtol=1e-5)
    assert measures["counted_labels"] == counts.sum() and measures["label_types"] == (counts > 0).sum()
    assert measures["bias_divergence_from_prior"] == 0
    # A centred bias differs from these log frequencies by their mean.
    prepare_output_(model, replace(UNIGRAM, centred=True), lambda: examples, shards, seed=7, show=False)
    np.testing.assert_allclose(model.head.vocabulary_bias.detach(), expected - expected.mean(), rtol=1e-4, atol=1e-5)


def test_counts_are_smoothed_by_a_number_for_each_type_or_by_a_share_of_the_uniform_distribution() -> None:
    counts = np.array([6, 2, 0, 0])
    by_number = prior_distribution(counts, OutputBiasSettings(smoothing=0.5))
    assert by_number.tolist() == pytest.approx([0.65, 0.25, 0.05, 0.05])
    by_share = prior_distribution(counts, OutputBiasSettings(label_smoothing=0.2))
    assert by_share.tolist() == pytest.approx([0.65, 0.25, 0.05, 0.05])
    by_share = prior_distribution(counts, OutputBiasSettings(label_smoothing=0.1))
    assert by_share.tolist() == pytest.approx([0.7, 0.25, 0.025, 0.025])


def test_padding_that_is_predicted_is_counted(make_model, make_examples, shards) -> None:
    model = make_model()
    examples = make_examples(MaskedSettings("subword"), padding_in_loss=True, padding_attended=True)
    prepare_output_(model, UNIGRAM, lambda: examples, shards, seed=7, show=False)
    assert model.head.vocabulary_bias.argmax() == examples.padding.pad_id


@pytest.mark.parametrize("family", ["ltg", "roberta"])
def test_the_first_loss_is_what_the_report_expects(make_model, make_examples, shards, family) -> None:
    model, examples = make_model(family=family), make_examples()
    measures = prepare_output_(model, UNIGRAM, lambda: examples, shards, seed=7, show=False)
    with torch.no_grad():
        output = model.eval()(**examples.batch(7, 0, np.arange(len(examples))))
    loss = float(output.loss_sum) / int(output.n_labelled)
    assert loss == pytest.approx(measures["expected_first_loss"], abs=0.1)
    assert measures["prior_loss"] < loss < measures["prior_loss"] + 1
    assert measures["features_rms"] == pytest.approx(1, abs=0.01)
    assert loss < math.log(shards.vocabulary_size) - 1


def test_every_process_and_every_attempt_arrives_at_the_same_model_and_report(make_model, make_examples, shards):
    results = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        model = make_model()
        results.append((prepare_output_(model, UNIGRAM, make_examples, shards, 7, show=False), model.state_dict()))
    (first, first_state), (second, second_state) = results
    assert first == second
    assert all(torch.equal(first_state[name], second_state[name]) for name in first_state)


@pytest.mark.parametrize("kind", ["zero", "none"])
def test_a_plain_baseline_is_left_alone_and_reported_only_when_asked(make_model, make_examples, shards, kind) -> None:
    model = make_model(vocabulary_bias=kind == "zero")
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    settings = OutputBiasSettings(kind=kind)
    assert prepare_output_(model, settings, untouched, shards, 7) == {}
    measures = prepare_output_(model, replace(settings, report=True), make_examples, shards, 7, False)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert measures["divergence_from_prior"] > 1 and measures.get("bias_norm", 0.0) == 0


def test_corpus_counts_hold_no_special_token(make_model, make_examples, shards) -> None:
    model = make_model()
    settings = replace(UNIGRAM, counts="corpus")
    measures = prepare_output_(model, settings, make_examples, shards, 7, show=False)
    ids = np.concatenate([document.ids for document in shards])
    n_protected = len(shards.special.order) - 1
    assert measures["counted_labels"] == (ids >= n_protected).sum() < len(ids)
    assert torch.all(model.head.vocabulary_bias[:n_protected] == model.head.vocabulary_bias.min())


def test_spare_rows_of_a_vocabulary_stay_out_of_norms_and_predictions(make_model, make_examples, shards) -> None:
    settings = replace(UNIGRAM, weight_scale="frobenius")
    fields = {"family": "roberta", "tie_word_embeddings": False}
    padded = make_model(**fields, extra_vocabulary_rows=10)
    measures = prepare_output_(padded, settings, make_examples, shards, 7, show=False)
    bias = padded.head.vocabulary_bias.detach()
    assert len(bias) == shards.vocabulary_size + 10 and torch.all(bias[-10:] == SPARE_ROW_BIAS)
    torch.testing.assert_close(padded.head.vocabulary_weight.detach().norm(), bias[:-10].norm())
    assert measures["first_loss"] > math.log(shards.vocabulary_size) > measures["prior_entropy"]


def test_a_larger_corpus_counts_what_targets_are_and_needs_training_text(token_data, tmp_path) -> None:
    shards = TokenShards.open(token_data.tokens, "train")
    special = shards.special
    counts = larger_corpus_counts(token_data.tokens, token_data.tokenizer, special)
    whole = sum(np.bincount(document.ids, minlength=shards.vocabulary_size) for document in shards)
    end = special.ids[special.sep]
    others = np.arange(len(counts)) != end
    assert np.array_equal(counts[others], whole[others])
    assert counts[end] == sum(len(document.sentence_starts) for document in shards)
    manifest = json.loads(token_data.tokens.read_text())
    del manifest["measures"]["splits"]["train"]
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ConfigError, match=r"has no split 'train', in which output_bias\.larger_corpus is counted"):
        larger_corpus_counts(tmp_path / "manifest.json", token_data.tokenizer, special)
    with pytest.raises(ConfigError, match="were encoded with another tokenizer than"):
        larger_corpus_counts(token_data.tokens, token_data.corpus, special)


@pytest.mark.parametrize("counts", [None, Path("larger/manifest.json")])
def test_divergences_use_the_targets_of_the_run_where_the_bias_is_that_of_a_larger_corpus(
    monkeypatch: pytest.MonkeyPatch, counts: Path | None
) -> None:
    monkeypatch.setattr(run_parts, "unigram_of_run", lambda compared, *_: compared)
    more = {"counts": "labels"} if counts is None else {"counts": "larger_corpus", "larger_corpus": "c"}
    bias = replace(UNIGRAM, smoothing=0.5, **more)  # type: ignore[arg-type]
    settings = SimpleNamespace(output_bias=bias, sequence_length=32, seed=7)
    given: Any = SimpleNamespace(settings=settings, inputs=SimpleNamespace(counts=counts), topology=SINGLE_PROCESS)
    given._examples, given.shards, given.objective = untouched, None, SimpleNamespace(target_counts=None)
    found: Any = run_parts.RunParts._unigram(given)
    assert (found.counts, found.smoothing) == ("labels" if counts is None else "corpus", 0.5)


RATE = 0.01
TINY = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}


@pytest.fixture(params=["ltg tied", "ltg untied", "roberta tied", "roberta untied", "sentence pairs", "linear"])
def layer(request: pytest.FixtureRequest) -> tuple[nn.Module, torch.Tensor]:
    """Return a model and the bias of one of its output layers, set to a prior."""
    if request.param == "linear":
        linear = nn.Linear(8, 5)
        model: nn.Module = nn.ModuleDict({"output": linear})
        found = linear
    else:
        family, tied = ("roberta" if "roberta" in request.param else "ltg"), "untied" not in request.param
        fields = {**TINY, "family": family, "tie_word_embeddings": tied, "sentence_pair_head": True}
        model = LanguageModel(model_config(fields))
        initialise_(model, 1)
        found = model.pair_head.output if request.param == "sentence pairs" else model.head
    bias = output_bias(found)
    set_output_bias_(found, log_prior(smoothed_distribution(np.arange(len(bias)))) - 1)
    return model, bias


@pytest.mark.parametrize("name", ["lamb", "adamw"])
def test_one_step_moves_the_bias_by_at_most_the_learning_rate_and_never_decays_it(layer, name) -> None:
    model, bias = layer
    before = bias.detach().clone()

    def moved_by(gradient: torch.Tensor) -> torch.Tensor:
        optimizer = build_optimizer(model, OptimizerSettings(name, RATE))
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        bias.grad = gradient
        optimizer.step()
        return (bias.detach() - before).abs()

    assert torch.all(moved_by(torch.zeros_like(bias)) == 0)
    moved = moved_by(torch.randn(bias.shape, generator=torch.Generator().manual_seed(1)))
    # A trust ratio would move every coordinate by the learning rate times the mean size of the bias.
    assert 0.9 * RATE < moved.max() <= RATE + 1e-6


def test_no_bias_of_an_output_layer_is_decayed(layer) -> None:
    model, bias = layer
    (group,) = [
        group for group in parameter_groups(model, OptimizerSettings()) if any(bias is p for p in group["params"])
    ]
    assert group["weight_decay"] == 0


@pytest.fixture(scope="module")
def examples(make_examples: Callable[..., PaddedExamples]) -> PaddedExamples:
    return make_examples()


@pytest.fixture(scope="module")
def development(token_data) -> DevelopmentSet:
    held_out = objective_of(MaskedSettings()).examples(TokenShards.open(token_data.tokens, "dev"), 32)
    return DevelopmentSet(held_out, 30, 8, SINGLE_PROCESS)


@pytest.fixture
def unigram(shards: TokenShards) -> np.ndarray:
    """Return a distribution over the types."""
    return np.arange(1, shards.vocabulary_size + 1) / np.arange(1, shards.vocabulary_size + 1).sum()


@pytest.fixture
def make_engine(make_model: Callable[..., LanguageModel]) -> Callable[..., Any]:
    """Make an object with the attributes of an engine that the probe reads, and a real model."""

    def make(**changes: Any) -> Any:
        device = torch.device("cpu")
        return SimpleNamespace(model=make_model(**changes), device=device, precision=resolve_precision("fp32", device))

    return make


def without_matrix(engine: Any) -> Any:
    with torch.no_grad():
        engine.model.head.vocabulary_weight.zero_()
    return engine


@pytest.mark.parametrize(
    "settings",
    [
        UNIGRAM,
        replace(UNIGRAM, counts="corpus", smoothing=0.5),
        replace(UNIGRAM, label_smoothing=0.1),
        replace(UNIGRAM, centred=True),
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
    # These are KL(u || omega) and log V - H(omega).
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
def test_the_empirical_divergence_is_the_development_loss(make_engine, development, unigram, family) -> None:
    engine = make_engine(family=family)
    engine.model.eval()
    with torch.no_grad():
        outputs = [engine.model(**batch) for batch in development.batches]
    loss = sum(float(output.loss_sum) for output in outputs) / sum(int(output.n_labelled) for output in outputs)
    probe = DivergenceProbe(development.batches, unigram)
    score = probe.score(engine)
    assert tuple(score) == MEASURES
    assert score["kl_empirical"] == pytest.approx(loss, rel=1e-5)
    assert score == probe.score(engine)


def test_half_precision_is_measured_in_the_precision_of_the_run(make_engine, development, unigram) -> None:
    probe = DivergenceProbe(development.batches, unigram)
    engine = make_engine()
    full = probe.score(engine)
    engine.precision = resolve_precision("bf16", engine.device)
    half = probe.score(engine)
    assert half != full and half == pytest.approx(full, rel=0.02, abs=0.02)


def test_measuring_draws_no_dropout_and_leaves_the_model_in_training(make_engine, development, unigram) -> None:
    engine = make_engine(hidden_dropout_prob=0.5)
    engine.model.train()
    probe = DivergenceProbe(development.batches, unigram)
    state = torch.get_rng_state()
    first = probe.score(engine)
    assert torch.equal(state, torch.get_rng_state()) and first == probe.score(engine)
    assert engine.model.training
    assert all(parameter.grad is None for parameter in engine.model.parameters())


@pytest.mark.parametrize("unigram", [np.array([0.5, 0.5, 0.0]), np.array([0.5, 0.6])], ids=["zero", "sum"])
def test_what_is_no_distribution_over_all_types_is_refused(unigram: np.ndarray) -> None:
    with pytest.raises(TrainingError, match="values above 0 that sum to 1"):
        DivergenceProbe([], unigram)


def test_development_sequences_without_a_label_are_refused(make_engine, development, unigram) -> None:
    batch = development.batches[0]
    unlabelled = {**batch, "labels": torch.full_like(batch["labels"], UNLABELLED)}
    with pytest.raises(TrainingError, match="have no labelled tokens"):
        DivergenceProbe([unlabelled], unigram).score(make_engine())


def test_an_output_that_is_not_finite_is_told(make_engine, development, unigram) -> None:
    engine = make_engine()
    with torch.no_grad():
        engine.model.head.vocabulary_bias[3] = math.nan
    with pytest.raises(TrainingError, match="kl_unigram is nan"):
        DivergenceProbe(development.batches, unigram).score(engine)
