"""Checks that the runs of an experiment fit their models, their corpus, this machine and each other."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hatchery.errors import ConfigError
from hatchery.evaluation.ways_of_scoring import Edition, never_hidden, unlearned, why_not
from hatchery.experiment.continuation import check_continuation
from hatchery.experiment.distillation import check_distillation
from hatchery.experiment.experiment_file import Experiment
from hatchery.experiment.held_out_text import check_perplexity_splits, check_translation
from hatchery.experiment.milestones import check_acquisition, check_milestones
from hatchery.experiment.paper_tables import check_paper_tables, check_published_rows
from hatchery.experiment.preferences import check_preferences
from hatchery.experiment.tracks import check_track
from hatchery.modeling.configuration import EncoderSizes
from hatchery.settings.fields import ABSENT
from hatchery.settings.problems import Problems
from hatchery.training.runtime_settings import require_zero_stage
from hatchery.training.settings import EVALUATION_INTERVAL_STEPS

if TYPE_CHECKING:
    from hatchery.experiment.project import Project

INTERVAL = "evaluation_interval_steps"


def check_experiment(name: str, experiment: Experiment, where: str, project: "Project") -> None:
    """Check all runs and evaluations of an experiment. The settings of each run must fit each other. They must also fit
    the run's model, and the experiment's corpus and track. Names in `published.rows` must be runs or baselines. Raises
    ConfigError with one line per problem.
    """
    problems = Problems()
    lengths = {}
    for task in experiment.finetuning.tasks:
        with problems.collecting():
            lengths[task] = project.protocol_of(name, task).max_length
    for run in experiment.runs:
        with problems.collecting():
            model = project.model_of(name, run)
            with problems.collecting():
                _check_run(experiment, run, model, where, project)
            check_positions(experiment, run, model, lengths, where)
    with problems.collecting():
        check_within_steps(experiment, project.expansion(name).own, where)
    with problems.collecting():
        check_scoring(experiment, where, project)
    with problems.collecting():
        check_published_rows(experiment, where)
    with problems.collecting():
        check_perplexity_splits(experiment, where, project)
    with problems.collecting():
        check_translation(name, experiment, where, project)
    with problems.collecting():
        check_preferences(name, experiment, where, project)
    with problems.collecting():
        check_continuation(name, experiment, where, project)
    with problems.collecting():
        check_distillation(name, experiment, where, project)
    with problems.collecting():
        check_milestones(name, experiment, where, project)
    with problems.collecting():
        check_acquisition(experiment, where)
    with problems.collecting():
        check_track(name, experiment, where, project)
    with problems.collecting():
        check_paper_tables(name, experiment, where, project)
    problems.raise_any()


def check_scoring(experiment: Experiment, where: str, project: "Project") -> None:
    """Raise ConfigError if a run or a baseline does not support the scoring method of a suite or text."""
    problems = Problems()
    objectives = {run: entry.pretraining.objective for run, entry in experiment.runs.items()}
    asked: dict[str, tuple[Sequence[str], int]] = {
        run: (objective.kinds, objective.predicted_before) for run, objective in objectives.items()
    }
    for name in experiment.baselines:
        baseline = project.baseline(name)
        asked[name] = (baseline.architecture,), int(baseline.predicts_next)
    for key, way, edition in _ways(experiment, project):
        reasons = {model: why_not(way, *use, edition) for model, use in asked.items()}
        for reason in dict.fromkeys(filter(None, reasons.values())):
            models = ", ".join(model for model, why in reasons.items() if why == reason)
            with problems.collecting():
                raise ConfigError(f"{where}: {key} does not fit {models}: scoring {reason}")
    problems.raise_any()


def _ways(experiment: Experiment, project: "Project") -> Iterator[tuple[str, str, Edition]]:
    """Yield (configuration key, scoring method, year of BabyLM's rules) for all suites and texts that an experiment
    scores.
    """
    for name in experiment.minimal_pairs:
        suite = project.suite(name)
        yield f"minimal_pairs: {name!r}", suite.scoring, suite.edition
    for name, texts in experiment.surprisal.items():
        yield f"surprisal.{name}", texts.scoring, 2023
    for name in experiment.reading_times:
        yield f"reading_times: {name!r}", project.reading_table(name).scoring, 2023
    for key, entry in (("reading", experiment.reading), ("acquisition", experiment.acquisition)):
        if entry is not None:
            yield key, entry.scoring, 2023


def unlearned_warnings(experiments: Iterable[str], project: "Project") -> Iterator[str]:
    """Yield a warning for each suite or text whose scoring method does not fit the models' training.

    The method may need predictions that a model never learned, or a share of masked tokens that never occurred in
    training.
    """
    for name in experiments:
        experiment = project.experiment(name)
        objectives = {run: entry.pretraining.objective for run, entry in experiment.runs.items()}
        for key, way, _ in _ways(experiment, project):
            reasons = {run: unlearned(way, one.kinds, one.learned) for run, one in objectives.items()}
            loose = {run: never_hidden(way, one) for run, one in objectives.items()}
            reasons = {run: reason or loose[run] for run, reason in reasons.items()}
            for reason in dict.fromkeys(filter(None, reasons.values())):
                models = ", ".join(run for run, why in reasons.items() if why == reason)
                advice = (
                    "with scoring: auto, each model is scored by the kind of predictions that the model was trained for"
                )
                yield f"experiment {name!r}: {key}, {models}: scoring {reason}; {advice}"


def _check_order_column(corpus: str, column: str, place: str, project: "Project") -> None:
    """Raise ConfigError if a source of a corpus has no numeric column with the name `column`, or if the corpus has the
    key `sequences` instead of `sources`. For a sample, the sources of the sampled corpus are checked.
    """
    block = project.corpus(corpus)
    if block.made_from == "sample":
        _check_order_column(block.sample.corpus, column, place, project)
        return
    if block.made_from == "sequences":
        raise ConfigError(f"{place}: the corpus {corpus!r} is made from `sequences`, expected a corpus with `sources`")
    for source in block.sources:
        columns = getattr(source.options, "numeric_columns", ())
        if column not in columns:
            raise ConfigError(
                f"{place}: got {column!r}, but the source {source.name!r} of the corpus {corpus!r} has the numeric "
                f"columns: {', '.join(columns) or 'none'}; expected the column among the `numeric_columns` of every "
                "source, an option of the reader plain_text"
            )


def _check_run(experiment: Experiment, run: str, model: EncoderSizes, where: str, project: "Project") -> None:
    place, pretraining = f"{where}: runs.{run}.pretraining", experiment.runs[run].pretraining
    if pretraining.order is not None and pretraining.order.column is not None:
        _check_order_column(experiment.corpus, pretraining.order.column, f"{place}.order.column", project)
    scale = pretraining.output_bias.weight_scale
    if scale != "own" and model.tie_word_embeddings:
        raise ConfigError(
            f"{place}: output_bias.weight_scale: got {scale!r}, expected own: the output matrix of this model is its "
            "word embedding (tie_word_embeddings), which must keep its scale"
        )
    compute = project.config.compute
    require_zero_stage(f"{place}: compute.zero_stage", compute.zero_stage, pretraining)
    micro = compute.micro_batch_size
    # For translation, the batch size need not be a multiple of the micro-batch size: the number of sentence pairs
    # differs from batch to batch, because it depends on their lengths.
    counts_sequences = pretraining.objective.task != "translation"
    if micro is not None and counts_sequences and pretraining.batch_size % micro:
        raise ConfigError(
            f"{place}: batch_size: got {pretraining.batch_size}, "
            f"expected a multiple of compute.micro_batch_size ({micro}) of {project.folder / 'config.yaml'}"
        )


def check_within_steps(experiment: Experiment, written: Mapping[str, Any], where: str) -> None:
    """Raise ConfigError if a warm-up is longer than its training, or if an evaluation interval is longer than all
    trainings that use it.

    Each problem is reported once, at its key in the file. `written` maps runs to the pretraining keys that their
    entries in the file contain. Three cases are not checked: runs that save their training state, because a later
    training may continue these runs; runs without `steps`; and intervals with the default value.
    """
    problems, trainings = Problems(), {run: entry.pretraining for run, entry in experiment.runs.items()}
    counted = {run: one for run, one in trainings.items() if one.steps is not ABSENT}
    lasting = {run: one for run, one in counted.items() if one.steps and not one.keep_training_state}
    warmups = {run: one.schedule.warmup_steps for run, one in lasting.items()}
    intervals = {run: one.evaluation_interval_steps for run, one in lasting.items()}
    for key, values, limit, which in (
        ("schedule.warmup_steps", warmups, min, "shortest"),
        (INTERVAL, intervals, max, "longest"),
    ):
        steps: dict[tuple[str, int], list[int]] = {}
        for run, value in values.items():
            if value is not ABSENT and (key, value) != (INTERVAL, EVALUATION_INTERVAL_STEPS):
                own = f"runs.{run}." if _has_key(written[run], key) else ""
                steps.setdefault((own, value), []).append(lasting[run].steps)
        for (place, value), lengths in steps.items():
            if value > limit(lengths):
                problems.add(
                    f"{where}: {place}pretraining.{key}: got {value}, expected at most {limit(lengths)}, the steps of "
                    f"{'the training' if place else f'the {which} training'}"
                )
    problems.raise_any()


def _has_key(keys: Mapping[str, Any], key: str) -> bool:
    """Return True if the mapping `keys` has a value at a key such as `schedule.warmup_steps`."""
    first, _, rest = key.partition(".")
    return first in keys and (not rest or _has_key(keys[first], rest))


def check_positions(
    experiment: Experiment, run: str, model: EncoderSizes, finetuned: Mapping[str, int], where: str
) -> None:
    """Raise ConfigError if a model with absolute positions reads sequences longer than its number of positions.

    `model` is the architecture of the run, including its `model_changes`. `finetuned` are the maximum input lengths of
    the tasks, in tokens.
    """
    most = model.position_limit
    if most is None:
        return
    name, problems = experiment.runs[run].model, Problems()
    for key, length in _lengths(experiment, run, finetuned):
        if length > most:
            problems.add(
                f"{where}: runs.{run}: {key} allows sequences of {length} tokens, but the model {name!r} has "
                f"absolute positions for {most} tokens: raise its max_position_embeddings, or shorten the sequences"
            )
    problems.raise_any()


def _lengths(experiment: Experiment, run: str, finetuned: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    pretraining, perplexity = experiment.runs[run].pretraining, experiment.perplexity
    from hatchery.training.step_plan import StepPlan

    length = pretraining.sequence_length
    yield "pretraining.sequence_length", length
    longest = max(StepPlan(pretraining).lengths, default=length)
    if longest > length:
        key = "length_schedule" if pretraining.length_schedule else "long_sequence.factor"
        yield f"pretraining.{key}", longest
    if perplexity.splits and perplexity.sequence_length is not None:
        yield "perplexity.sequence_length", perplexity.sequence_length
    for task, most in finetuned.items():
        yield f"max_length of finetuning.tasks.{task}", most
