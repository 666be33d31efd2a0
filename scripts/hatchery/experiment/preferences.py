"""Checks of preference training. The corpus must contain preference pairs, and the tokenizer must encode a word at the
beginning of a text with the same tokens as later in the text. Suites whose pairs are training text are reported.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from hatchery.experiment.continuation import Origin, ancestors, origin_of, pretraining_of, trains
from hatchery.experiment.experiment_file import Experiment
from hatchery.experiment.held_out_text import holds_only, sources_of
from hatchery.raw.listings import source_of
from hatchery.settings.fields import ABSENT
from hatchery.settings.problems import Problems

if TYPE_CHECKING:
    from hatchery.experiment.project import Project

PREFERENCE = "preference"
CONTENT = "preferences"
"""Value of `Reader.holds` for readers of preference pairs."""


def check_preferences(name: str, experiment: Experiment, where: str, project: "Project") -> None:
    """Raise ConfigError, one line per problem, if runs, corpus and evaluations of a preference training do not fit each
    other.
    """
    tasks = {run: entry.pretraining.objective.task for run, entry in experiment.runs.items()}
    trained = {run: task for run, task in tasks.items() if trains(experiment.runs[run].pretraining)}
    pairs, problems = holds_only(project, experiment.corpus, CONTENT), Problems()
    if pairs:
        for run, task in trained.items():
            if task != PREFERENCE:
                problems.add(
                    f"{where}: runs.{run}.pretraining.objective.task: got {task!r}, expected {PREFERENCE}, "
                    "because the rejected texts of the corpus of pairs "
                    f"{experiment.corpus!r} would become training text"
                )
    for run in (run for run, task in trained.items() if task == PREFERENCE):
        for problem in _initial_problems(project, Origin(name, run, experiment.runs[run].seeds[0])):
            problems.add(f"{where}: runs.{run}.pretraining.{problem}")
    if PREFERENCE in tasks.values():
        if not pairs:
            problems.add(
                f"{where}: corpus: got {experiment.corpus!r}, which contains no preference pairs; expected a corpus "
                f"whose sources have reader preference_pairs, because objective.task is {PREFERENCE}"
            )
        if experiment.perplexity.splits:
            problems.add(
                f"{where}: perplexity.splits: got {', '.join(experiment.perplexity.splits)}, expected none with "
                f"objective.task {PREFERENCE}, because the corpus contains rejected texts"
            )
        if _encodes_first_words_differently(project, experiment.tokenizer):
            problems.add(
                f"{where}: tokenizer: {experiment.tokenizer!r} has encoded_units: documents and adds no space before a "
                f"document, so the first words of a pair's texts would have different tokens; expected encoded_units: "
                "sentences"
            )
    problems.raise_any()


def _initial_problems(project: "Project", run: Origin) -> Iterator[str]:
    """Yield a message if the initial model of a run does not fit the run's preference training: the model predicts no
    next tokens, or the run's settings state another kind of objective or another end token than the model was trained
    with. The message begins with the configuration key to change.
    """
    origin = origin_of(project, run.experiment, run.run, run.seed)
    if origin is None:
        return
    ours, theirs = (pretraining_of(project, one).objective for one in (run, origin))
    if "causal" not in theirs.kinds:
        yield (
            f"initialise_from: {origin.run!r} of {origin.experiment} is not a causal model, expected a causal or a "
            "hybrid model, because a masked model needs one pass for each token to compute the mean log-probability of "
            "a text"
        )
    elif ours.kinds != theirs.kinds:
        kind = "causal" if theirs.kinds == ("causal",) else "hybrid"
        yield f"objective.initial_task: expected {kind}, because {origin.run!r} of {origin.experiment} is {kind}"
    elif ours.appends_end_token != theirs.appends_end_token:
        wanted = str(theirs.appends_end_token).lower()
        yield (
            f"objective.end_token: expected {wanted}, because the training texts of {origin.run!r} of "
            f"{origin.experiment} ended {'with' if theirs.appends_end_token else 'without'} an end token"
        )


def _encodes_first_words_differently(project: "Project", name: str) -> bool:
    """Return True if a word has other tokens at the beginning of a document than later in the document.

    Tokenizers that are read from a file are not checked.
    """
    tokenizer = project.tokenizer(name)
    if tokenizer.path is not ABSENT or tokenizer.encoded_units == "sentences":
        return False
    adds_space = tokenizer.prefix_space or tokenizer.normalizer == "gpt_bert"
    return tokenizer.pre_tokenizer == "byte_level" and not adds_space


def preference_warnings(experiments: Iterable[str], project: "Project") -> Iterator[str]:
    """Yield a warning for each minimal-pair suite whose raw input also contains training text: preference pairs on
    which a run or one of its initial models was trained.
    """
    for name in experiments:
        experiment = project.experiment(name)
        trained: dict[str, list[str]] = {}
        for run, entry in experiment.runs.items():
            for source in {source for seed in entry.seeds for source in _preferred(project, Origin(name, run, seed))}:
                trained.setdefault(source, []).append(run)
        for suite in experiment.minimal_pairs:
            if runs := trained.get(source := source_of(project.suite(suite))):
                yield (
                    f"experiment {name!r}: minimal_pairs: {suite!r} reads the raw input {source!r}, on whose pairs "
                    f"{', '.join(runs)} learned preferences; accuracies on these training pairs are not test results. "
                    "The analysis training_overlap counts the suite's sentences in the experiment's training text"
                )


def _preferred(project: "Project", run: Origin) -> Iterator[str]:
    """Yield the raw inputs of the preference pairs on which a run and its initial models were trained."""
    for origin in (run, *ancestors(project, run.experiment, run.run, run.seed)):
        pretraining = pretraining_of(project, origin)
        if pretraining.objective.task == PREFERENCE and trains(pretraining):
            corpus = project.experiment(origin.experiment).corpus
            yield from map(source_of, sources_of(project, corpus))
