"""What the class of a block cannot say: that it fits what lies here, and the other blocks that it names.

An experiment fits its models, its corpus, its machine and its paper. Of a corpus it is known before it is made which
encodings it has, what it is made from, and which splits it may have.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hatchery.analysis.published_values import check_choice, read_numbers
from hatchery.errors import ConfigError
from hatchery.experiment.block_bodies import task_body
from hatchery.experiment.blocks import Blocks
from hatchery.experiment.continuation import check_continuation
from hatchery.experiment.held_out_text import check_perplexity_splits, check_translation
from hatchery.experiment.kinds import FILES
from hatchery.experiment.overrides import pretraining_of
from hatchery.experiment.own_text import check_files, check_own_text
from hatchery.experiment.paper_tables import VALUES, check_paper_tables, check_published_rows
from hatchery.experiment.protocols import reads_first_token, resolve_protocol
from hatchery.experiment.text_limits import check_quotas
from hatchery.modeling.configuration import EncoderSizes
from hatchery.settings.problems import ALLOWED, Problems, offered
from hatchery.training.settings import EVALUATION_INTERVAL_STEPS, PretrainingSettings, require_zero_stage
from hatchery.typed import build, validated

INTERVAL = "evaluation_interval_steps"


def check_encodings(corpus: Mapping[str, Any], where: str) -> None:
    """Raise ConfigError for a source with an encoding of text that Python does not know."""
    for index, source in enumerate(corpus["sources"]):
        encoding = source["options"].get("encoding", "utf-8")
        try:
            "a".encode(encoding)
        except (LookupError, ValueError):
            raise ConfigError(
                f"{where}: sources.{index}.options.encoding: there is no encoding of text called {encoding!r}; "
                "utf-8, utf-16, latin-1 and cp1252 are frequent ones"
            ) from None


def check_circle(name: str, blocks: Blocks, where: str) -> None:
    """Raise ConfigError where a corpus is made from itself, directly or through others.

    Files are read as they stand: loading the other corpora could lead back to this one.
    """
    paths, seen = [[name]], {name}
    while paths:
        path = paths.pop()
        for other in _corpora_in("corpus", path[-1], blocks):
            if other == name:
                way = " -> ".join([*path, name])
                raise ConfigError(f"{where}: the corpus is made from itself: {way}; name another corpus in one of them")
            if other not in seen:
                seen.add(other)
                paths.append([*path, other])


def _corpora_in(kind: str, name: str, blocks: Blocks) -> Iterator[str]:
    """The corpora that a corpus names, itself or through its selections."""
    for reference in blocks.references_of(kind, name):
        if reference.kind == "corpus":
            yield reference.name
        elif reference.kind == "selection":
            yield from _corpora_in("selection", reference.name, blocks)


def check_experiment(experiment: dict[str, Any], where: str, blocks: Blocks) -> None:
    """The settings of every run fit each other, their model, their corpus and their paper. Raises ConfigError."""
    problems = Problems()
    lengths = {}
    for task in experiment["finetuning"]["tasks"]:
        with problems.collecting():
            lengths[task] = int(resolve_protocol(experiment["finetuning"], task, blocks, where)["max_length"])
    for run in experiment["runs"]:
        with problems.collecting():
            model = blocks.model_of_run(experiment["runs"][run], f"{where}: runs.{run}")
            with problems.collecting():
                _check_run(experiment, run, model, where, blocks)
            check_positions(experiment, run, model, lengths, where)
    for check in (
        check_within_steps,
        check_published_rows,
        check_published,
        check_perplexity_splits,
        check_translation,
    ):
        with problems.collecting():
            check(experiment, where, blocks)
    with problems.collecting():
        check_own_text(blocks, experiment["corpus"])
    problems.raise_any()


def _check_run(experiment: dict[str, Any], run: str, model: Mapping[str, Any], where: str, blocks: Blocks) -> None:
    place = f"{where}: runs.{run}.pretraining"
    pretraining = validated(PretrainingSettings, pretraining_of(experiment, run), place)
    scale = pretraining["output_bias"]["weight_scale"]
    if scale != "own" and model["tie_word_embeddings"]:
        raise ConfigError(
            f"{place}: output_bias.weight_scale: got {scale!r}, expected own: the output matrix of this model is its "
            "word embedding (tie_word_embeddings), which must keep its scale"
        )
    if pretraining["objective"]["task"] == "causal":
        finetuning = experiment["finetuning"]
        for task in finetuning["tasks"]:
            if reads_first_token(finetuning, blocks.block("task", task)["head"]):
                raise ConfigError(
                    f"{place}: objective.task: got 'causal', expected masked where the head of a task ({task}) reads "
                    "the first token, which has seen nothing in a causal model: say "
                    "finetuning.head_options: {pooling: last_token}"
                )
    stage = blocks.config["compute"]["zero_stage"]
    require_zero_stage(f"{place}: compute.zero_stage", stage, build(PretrainingSettings, pretraining, place))
    micro = blocks.config["compute"]["micro_batch_size"]
    # A batch of translation has as many pairs as its tokens happen to be.
    counts_sequences = pretraining["objective"]["task"] != "translation"
    if micro is not None and counts_sequences and pretraining["batch_size"] % micro:
        raise ConfigError(
            f"{place}: batch_size: got {pretraining['batch_size']}, "
            f"expected a multiple of compute.micro_batch_size ({micro}) of {blocks.folder / 'config.yaml'}"
        )


def check_within_steps(experiment: Mapping[str, Any], where: str, blocks: Blocks) -> None:
    """Raise ConfigError for a warm-up that is longer than a training, or an interval longer than all that have it.

    Each is told once, where it is written. What keeps its state may be the beginning of a longer training.
    """
    problems, trainings = Problems(), {run: pretraining_of(experiment, run) for run in experiment["runs"]}
    lasting = {run: one for run, one in trainings.items() if one["steps"] and not one["keep_training_state"]}
    for key, limit, which in (("schedule.warmup_steps", min, "shortest"), (INTERVAL, max, "longest")):
        steps: dict[tuple[str, int], list[int]] = {}
        for run, training in lasting.items():
            is_own = _at(experiment["runs"][run]["pretraining"], key) is not None
            value = _at(training, key)
            if value is not None and (key, value) != (INTERVAL, EVALUATION_INTERVAL_STEPS):
                steps.setdefault((f"runs.{run}." if is_own else "", value), []).append(training["steps"])
        for (place, value), lengths in steps.items():
            if value > limit(lengths):
                problems.add(
                    f"{where}: {place}pretraining.{key}: got {value}, expected at most {limit(lengths)}, the steps of "
                    f"{'the training' if place else f'the {which} training'}"
                )
    problems.raise_any()


def _at(settings: Mapping[str, Any], key: str) -> Any:
    """The value at a key such as `schedule.warmup_steps`; None where there is none."""
    value: Any = settings
    for part in key.split("."):
        value = value.get(part, {})
    return value if value != {} else None


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


def check_published(experiment: Mapping[str, Any], where: str, blocks: Blocks) -> None:
    """Raise ConfigError for a paper, a track or rows that no table of published numbers has, each on a line."""
    chosen, folder = experiment["published"], blocks.folder / VALUES
    if chosen is None:
        return
    papers = sorted(path.stem for path in folder.glob("*.csv"))
    if chosen["paper"] not in papers:
        raise ConfigError(
            f"{where}: published.paper: got {chosen['paper']!r}{offered(chosen['paper'], papers, ALLOWED)}"
        )
    problems = Problems()
    with problems.collecting(where):
        check_choice(read_numbers(folder / f"{chosen['paper']}.csv"), chosen["track"], chosen["rows"])
    problems.raise_any()


Block = Mapping[str, Any]


def check_block(kind: str, name: str, block: dict[str, Any], where: str, blocks: Blocks) -> None:
    """Raise ConfigError for values of a block that do not fit each other; the blocks that it names exist."""
    if kind in _CHECKS:
        _CHECKS[kind](name, block, where, blocks)


def _experiment(name: str, block: dict[str, Any], where: str, blocks: Blocks) -> None:
    problems = Problems()
    with problems.collecting():
        check_experiment(block, where, blocks)
    with problems.collecting():
        check_continuation(name, block, where, blocks)
    with problems.collecting():
        check_paper_tables(name, block, where, blocks)
    problems.raise_any()


def _corpus(name: str, block: Block, where: str, blocks: Blocks) -> None:
    check_circle(name, blocks, where)
    if "sources" in block:
        check_encodings(block, where)
        check_files(block, where, blocks)
    if "sequences" in block:
        check_quotas(block, where, blocks)


def _tokenizer(name: str, block: Block, where: str, blocks: Blocks) -> None:
    if "path" in block and not Path(block["path"]).expanduser().is_file():
        raise ConfigError(f"{where}: path: got {block['path']!r}, there is no such file; expected a tokenizer.json")


def _task(name: str, block: Block, where: str, blocks: Blocks) -> None:
    from hatchery.evaluation.tasks.checks import check_task
    from hatchery.evaluation.tasks.settings import TaskSettings

    with _said_in(where, f"task {name!r}: "):
        check_task(build(TaskSettings, task_body(name, block)))
    for task in block["transfer_tasks"]:
        if blocks.block("task", task)["transfer"] is None:
            raise ConfigError(f"{where}: transfer_tasks: the task {task!r} says nothing under `transfer`")


@contextmanager
def _said_in(where: str, prefix: str = "") -> Iterator[None]:
    """What a stage says about its settings, with the file in front instead of the stage's own `prefix`."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{where}: {str(error).removeprefix(prefix)}") from None


_CHECKS: dict[str, Callable[[str, dict[str, Any], str, Blocks], None]] = {
    "experiment": _experiment,
    "corpus": _corpus,
    "tokenizer": _tokenizer,
    "task": _task,
}
