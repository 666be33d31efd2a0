"""The experiments of the natural-bias paper have the paper's settings."""

import json
from dataclasses import replace
from fnmatch import fnmatchcase

import pytest
from shipped import PROJECT

from hatchery.training.learning_rates import learning_rate, warmup_steps
from hatchery.training.settings import PretrainSettings, pretrain_settings
from hatchery.workflow.jobs import Jobs

ALL = [name for name in PROJECT.names("experiment") if name.startswith("natural_bias")]
EXPERIMENTS = ("natural_bias_iwslt14_de_en", "natural_bias_mini")


def typed(experiment: str, run: str) -> PretrainSettings:
    return pretrain_settings(json.loads(Jobs(PROJECT).settings("pretrain", experiment=experiment, run=f"{run}-s0")))


def parts_of(experiment: str) -> list[tuple[str, str]]:
    """Return pairs of an initial run and the run that continues it."""
    runs = PROJECT.experiment(experiment).runs
    starts = {run: block.pretraining.initialise_from for run, block in runs.items()}
    return [(start.run, run) for run, start in starts.items() if start is not None]


@pytest.mark.parametrize(
    ("experiment", "beginning", "continuation"),
    [(experiment, *parts) for experiment in EXPERIMENTS for parts in parts_of(experiment)],
)
def test_a_beginning_and_its_continuation_have_the_rates_of_a_run_planned_whole(
    experiment: str, beginning: str, continuation: str
) -> None:
    first, second, whole = (typed(experiment, run) for run in (beginning, continuation, "zero"))
    assert first.steps < second.steps == whole.steps
    assert first.objective.unigram_penalty > 0 == second.objective.unigram_penalty
    rates = [learning_rate(first.optimizer.learning_rate, first.schedule, s, first.steps) for s in range(first.steps)]
    rates += [
        learning_rate(second.optimizer.learning_rate, second.schedule, step, second.steps)
        for step in range(first.steps, second.steps)
    ]
    peak = whole.optimizer.learning_rate
    assert rates == [learning_rate(peak, whole.schedule, step, whole.steps) for step in range(whole.steps)]


def test_every_strength_and_length_of_the_appendix_is_there_once() -> None:
    parts = parts_of("natural_bias_iwslt14_de_en")
    beginnings = [typed("natural_bias_iwslt14_de_en", beginning) for beginning, _ in parts]
    assert [(run.objective.unigram_penalty, run.steps) for run in beginnings] == [
        (strength, steps) for strength in (0.01, 0.1, 0.5) for steps in (500, 1000, 5000)
    ]


@pytest.mark.parametrize(
    "experiment", [name for name in PROJECT.names("experiment") if name.startswith("natural_bias")]
)
def test_the_warm_up_does_not_depend_on_the_length_of_a_run(experiment: str) -> None:
    chosen = typed(experiment, "zero")
    expected = 15 if experiment == "natural_bias_mini" else 4000
    assert warmup_steps(chosen.schedule, chosen.steps) == warmup_steps(chosen.schedule, 1) == expected


TRANSLATION = [name for name in ALL if not name.endswith(("_mini", "_language_model"))]


def test_there_are_seven_directions_and_the_language_model_trains_as_long() -> None:
    assert len(TRANSLATION) == 7
    assert typed("natural_bias_wmt14_language_model", "zero").steps == 50_000


# Section 4.1 and Appendix A, copied again: heads, feed-forward width, and the vocabulary size if it is our choice.
PRINTED = {
    "wmt14_de_en": (8, 512, 32_000),
    "iwslt14_de_en": (4, 256, 20_480),
    "iwslt14_en_de": (4, 256, 20_480),
    "afromt_run_en": (4, 256, None),
    "afromt_en_run": (4, 256, None),
    "afromt_af_en": (8, 256, None),
    "afromt_en_af": (8, 256, None),
}


@pytest.mark.parametrize("experiment", TRANSLATION)
def test_models_and_training_are_those_of_the_papers_appendix_a(experiment: str) -> None:
    heads, width, entries = PRINTED[experiment.removeprefix("natural_bias_")]
    block = PROJECT.experiment(experiment)
    for run, chosen in block.runs.items():
        training = typed(experiment, run)
        model = training.model
        assert model["num_hidden_layers"] == 6, run
        assert (model["num_attention_heads"], model["intermediate_size"]) == (heads, width), run
        assert model["hidden_dropout_prob"] == model["attention_probs_dropout_prob"] == 0.1, run
        # The "standard Transformer" of 2017 is post-norm; pre-norm is our variant.
        assert model["normalisation"] == ("pre_norm" if run.endswith("_pre_norm") else "post_norm"), run
        assert (training.optimizer.beta1, training.optimizer.beta2) == (0.9, 0.997), run
        smoothing = 0.0 if run.endswith("_no_label_smoothing") else 0.1
        assert training.objective.label_smoothing == smoothing, run
        assert (training.objective.search.beam, len(set(chosen.seeds))) == (5, 5), run
        # Footnote 10 and Section 4.1: the model is selected on the whole development text.
        assert training.steps == 50_000 or training.objective.unigram_penalty, run
        assert training.objective.development_translations is None, run
    # Section 4.1: the beam is chosen on validation text.
    decides = block.translation.tests[block.translation.beams.test]
    assert (decides.corpus, decides.split) == (block.corpus, "dev") and 5 in block.translation.beams.sizes
    assert {"no_bias", "zero", "unigram"} <= block.runs.keys()
    backward = experiment.removeprefix("natural_bias_") in ("iwslt14_en_de", "afromt_en_run", "afromt_en_af")
    assert (block.pretraining.objective.direction == "backward") == backward
    if entries:
        assert PROJECT.tokenizer(block.tokenizer).vocabulary_size == entries


def test_variants_are_tried_with_zeros_and_with_the_unigram_distribution_and_differ_in_this_alone() -> None:
    """The variants are a uniform matrix and no label smoothing (Appendix A), and pre-norm."""
    experiment, ends = "natural_bias_iwslt14_de_en", ("", "_uniform", "_no_label_smoothing", "_pre_norm")
    for start in ("zero", "unigram"):
        plain, uniform, unsmoothed, pre_norm = (typed(experiment, start + end) for end in ends)
        # `own` is the family's initialisation, a normal distribution with the same variance.
        assert plain.output_bias.weight_scale == "own"
        assert uniform == replace(plain, output_bias=replace(plain.output_bias, weight_scale="unit_uniform"))
        assert unsmoothed == replace(plain, objective=replace(plain.objective, label_smoothing=0.0))
        assert pre_norm == replace(plain, model={**plain.model, "normalisation": "pre_norm"})


@pytest.mark.parametrize("corpus", ["wmt14_de_en", "wmt14_en"])
def test_wmt14_from_the_hub_has_the_files_and_columns_that_its_corpora_read(corpus: str) -> None:
    (source,) = PROJECT.corpus(corpus).sources
    hub = PROJECT.config.data[source.data].hub
    assert hub is not None
    fetched = [f"{split}-00000.parquet" for split in hub.splits]
    options = source.options
    patterns = options.files
    if isinstance(patterns, dict):
        patterns = [pattern for of_split in patterns.values() for pattern in of_split]
    assert all(any(fnmatchcase(name, pattern) for name in fetched) for pattern in patterns)
    columns = getattr(options, "columns", None) or [options.field]
    assert {column.partition(".")[0] for column in columns} == set(hub.columns)
    assert (hub.dataset, hub.config) == ("wmt/wmt14", "de-en")


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_a_beginning_is_not_translated_and_what_goes_on_from_it_is(experiment: str) -> None:
    translated = {name.rpartition("-s")[0] for name in Jobs(PROJECT).results.of_kind(experiment, "translation")}
    beginnings = {beginning for beginning, _ in parts_of(experiment)}
    assert translated == set(PROJECT.experiment(experiment).runs) - beginnings
