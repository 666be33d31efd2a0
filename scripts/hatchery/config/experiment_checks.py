"""What an experiment's settings ask of other files: that they fit its models, its corpus, its machine and its paper."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hatchery.analysis.published_values import check_choice, read_numbers
from hatchery.config.corpus_checks import held_out_splits
from hatchery.config.kinds import FILES
from hatchery.config.overrides import pretraining_of
from hatchery.config.own_text import check_own_text
from hatchery.config.paper_tables import check_published_rows
from hatchery.config.problems import Problems
from hatchery.config.protocols import resolve_protocol
from hatchery.errors import ConfigError
from hatchery.modeling.configuration import EncoderSizes
from hatchery.pretraining.settings import PretrainingSettings
from hatchery.settings.problems import nearest
from hatchery.typed import build, validated

if TYPE_CHECKING:
    from hatchery.config.project import Project

VALUES = "published/values"
"""Folder of the papers' numbers, below the configuration."""

_SPLIT_KEYS = {"dev": "split.development_fraction", "test": "split.test_fraction"}


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
    place = f"{where}: runs.{run}.pretraining"
    pretraining = validated(PretrainingSettings, pretraining_of(experiment, run), place)
    scale = pretraining["output_bias"]["weight_scale"]
    if scale != "own" and model["tie_word_embeddings"]:
        raise ConfigError(
            f"{place}: output_bias.weight_scale: got {scale!r}, expected own: the output matrix of this model is its "
            "word embedding (tie_word_embeddings), which must keep its scale"
        )
    micro = project.config["compute"]["micro_batch_size"]
    if micro is not None and pretraining["batch_size"] % micro:
        raise ConfigError(
            f"{place}: batch_size: got {pretraining['batch_size']}, "
            f"expected a multiple of compute.micro_batch_size ({micro}) of {project.folder / 'config.yaml'}"
        )


def check_perplexity_splits(experiment: Mapping[str, Any], where: str, project: "Project") -> None:
    """Raise ConfigError for a split to measure perplexity on that the experiment's corpus surely has not."""
    chosen = experiment["perplexity"]["splits"]
    if not chosen:
        return
    name = experiment["corpus"]
    there = held_out_splits(project, name)
    file = project.folder / "corpora" / f"{name}.yaml"
    problems = Problems()
    for split in chosen:
        if split not in there:
            key = _SPLIT_KEYS[split] if "sources" in project.block("corpus", name) else "what it holds out"
            lacks = f"got {split!r}, a split that the corpus {name!r} does not have"
            problems.add(f"{where}: perplexity.splits: {lacks}; see {key} in {file}")
    problems.raise_any()


def check_positions(
    experiment: Mapping[str, Any], run: str, model: Mapping[str, Any], finetuned: Mapping[str, int], where: str
) -> None:
    """Raise ConfigError where a model with absolute positions meets longer sequences than it has positions for.

    `model` is the run's, with its changes; `finetuned` are the greatest lengths of the inputs of the tasks, in tokens.
    """
    sizes: EncoderSizes = build(FILES["model"], model)
    most = sizes.position_limit
    if most is None:
        return
    name, problems = experiment["runs"][run]["model"], Problems()
    for key, length in _lengths(experiment, run, finetuned):
        if length > most:
            problems.add(
                f"{where}: runs.{run}: {key} allows sequences of {length} tokens, but the model {name!r} has "
                f"absolute positions for {most}: raise its max_position_embeddings, or shorten the sequences"
            )
    problems.raise_any()


def _lengths(experiment: Mapping[str, Any], run: str, finetuned: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    pretraining = pretraining_of(experiment, run)
    length, long = pretraining["sequence_length"], pretraining["long_sequence"]
    yield "pretraining.sequence_length", length
    if long is not None and long["from_fraction"] < 1 and pretraining["steps"] > 0:
        yield "pretraining.long_sequence.factor", length * long["factor"]
    perplexity = experiment["perplexity"]
    if perplexity["splits"] and perplexity["sequence_length"] is not None:
        yield "perplexity.sequence_length", perplexity["sequence_length"]
    for task, most in finetuned.items():
        yield f"max_length of finetuning.tasks.{task}", most


def check_published(experiment: Mapping[str, Any], where: str, project: "Project") -> None:
    """Raise ConfigError for a paper, a track or rows that no table of published numbers has, each on a line."""
    chosen, folder = experiment["published"], project.folder / VALUES
    # The copy of the configuration that jobs of a cluster read holds no tables; its original was checked.
    if chosen is None or not folder.is_dir():
        return
    papers = sorted(path.stem for path in folder.glob("*.csv"))
    if chosen["paper"] not in papers:
        raise ConfigError(
            f"{where}: published.paper: got {chosen['paper']!r}, allowed are: {', '.join(papers)}"
            f"{nearest(chosen['paper'], papers)}"
        )
    problems = Problems()
    with problems.collecting(where):
        check_choice(read_numbers(folder / f"{chosen['paper']}.csv"), chosen["track"], chosen["rows"])
    problems.raise_any()
