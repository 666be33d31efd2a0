"""Checks that a schema cannot express: values that must fit each other."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hatchery.config.experiment_checks import check_perplexity_splits, check_positions, check_published
from hatchery.config.overrides import pretraining_of
from hatchery.config.own_text import check_own_text
from hatchery.config.paper_tables import check_published_rows
from hatchery.config.problems import Problems
from hatchery.config.protocols import resolve_protocol
from hatchery.errors import ConfigError

if TYPE_CHECKING:
    from hatchery.config.project import Project


def check_sources(corpus: Mapping[str, Any], where: str) -> None:
    """Source names are unique, and the split leaves documents to train on. Raises ConfigError."""
    for name, count in Counter(source["name"] for source in corpus["sources"]).items():
        if count > 1:
            raise ConfigError(f"{where}: sources: the name {name!r} is given {count} times, expected once")
    split = corpus["split"]
    held_out = split["development_fraction"] + split["test_fraction"]
    if held_out >= 1:
        raise ConfigError(f"{where}: split: development_fraction + test_fraction is {held_out:g}, expected less than 1")


def check_model(model: Mapping[str, Any], where: str) -> None:
    """Sizes and choices of a model fit each other. Raises ConfigError."""
    if model["hidden_size"] % model["num_attention_heads"]:
        raise ConfigError(
            f"{where}: num_attention_heads: got {model['num_attention_heads']}, "
            f"expected a divisor of hidden_size ({model['hidden_size']})"
        )
    if model["family"] == "ltg" and model["normalisation"] == "normformer" and model["block_norm_affine"] is not None:
        raise ConfigError(
            f"{where}: block_norm_affine: got {model['block_norm_affine']}, expected null with normalisation normformer"
        )
    narrow = model["family"] == "roberta" and model["embedding_size"] not in (None, model["hidden_size"])
    if narrow and model["tie_word_embeddings"]:
        raise ConfigError(
            f"{where}: tie_word_embeddings: got true, expected false with embedding_size {model['embedding_size']}: "
            f"the output matrix is as wide as hidden_size ({model['hidden_size']})"
        )


def _check_objective(pretraining: Mapping[str, Any], model: Mapping[str, Any], place: str) -> None:
    objective = pretraining["objective"]
    if objective["random_probability"] + objective["keep_probability"] > 1:
        raise ConfigError(f"{place}: objective.random_probability + objective.keep_probability is more than 1")
    segments = objective["segments"]
    if objective["sentence_pairs"] != "none" and segments in ("packed", "documents"):
        raise ConfigError(
            f"{place}: objective.sentence_pairs: got {objective['sentence_pairs']!r} with segments {segments!r}, "
            "expected none: pairs are made of whole sentences; use the segments babylm or bnc"
        )
    for key in ("padding_in_loss", "padding_attended"):
        if objective[key] and segments == "packed":
            raise ConfigError(f"{place}: objective.{key}: got true, expected false: packed sequences have no padding")
    output_bias = pretraining["output_bias"]
    if output_bias["weight_scale"] in ("centred", "frobenius") and output_bias["kind"] != "unigram":
        raise ConfigError(
            f"{place}: output_bias.weight_scale: got {output_bias['weight_scale']!r}, expected own, unit or a number: "
            f"it matches the norm of the bias, and kind {output_bias['kind']!r} has none"
        )
    if output_bias["weight_scale"] != "own" and model["tie_word_embeddings"]:
        raise ConfigError(
            f"{place}: output_bias.weight_scale: got {output_bias['weight_scale']!r}, expected own: the output matrix "
            "of this model is its word embedding (tie_word_embeddings), which must keep its scale"
        )


def check_experiment(experiment: dict[str, Any], where: str, project: "Project") -> None:
    """The settings of every run fit each other, their model, their corpus and their paper. Raises ConfigError."""
    problems = Problems()
    lengths = {}
    for task in experiment["finetuning"]["tasks"]:
        with problems.collecting():
            lengths[task] = int(resolve_protocol(experiment["finetuning"], task, project, where)["max_length"])
    for run in experiment["runs"]:
        with problems.collecting():
            model = project.model_of_run(experiment["runs"][run], f"{where}: runs.{run}")
            with problems.collecting():
                _check_run(experiment, run, model, where, project)
            check_positions(experiment, run, model, lengths, where)
    for check in (check_published_rows, check_published, check_perplexity_splits):
        with problems.collecting():
            check(experiment, where, project)
    with problems.collecting():
        check_own_text(project, experiment["corpus"])
    problems.raise_any()


def _check_run(experiment: dict[str, Any], run: str, model: Mapping[str, Any], where: str, project: "Project") -> None:
    pretraining = pretraining_of(experiment, run)
    place = f"{where}: runs.{run}.pretraining"
    _check_objective(pretraining, model, place)
    long = pretraining["long_sequence"]
    if long is not None and pretraining["batch_size"] % long["factor"]:
        raise ConfigError(
            f"{place}: batch_size: got {pretraining['batch_size']}, "
            f"expected a multiple of long_sequence.factor ({long['factor']})"
        )
    micro = project.config["compute"]["micro_batch_size"]
    if micro is not None and pretraining["batch_size"] % micro:
        raise ConfigError(
            f"{place}: batch_size: got {pretraining['batch_size']}, "
            f"expected a multiple of compute.micro_batch_size ({micro}) of {project.folder / 'config.yaml'}"
        )
