"""The tracks of the BabyLM challenge. Broken rules of a track are reported before any job starts.

Source: docs/babylm.md, "What is allowed". Where the calls for papers of 2025 and 2026 differ, the stricter rule
applies. Only the number of words in the training text is checked later, by the training job before its first step.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeVar

from hatchery.corpora.word_counting import WordCountName
from hatchery.experiment.continuation import Origin, ancestors, path_of, pretraining_of, trained_before, trains
from hatchery.experiment.distillation import order_model_of, taught_by, teachers_of
from hatchery.settings.fields import ABSENT
from hatchery.settings.problems import Problems
from hatchery.training.start_settings import BudgetSettings

if TYPE_CHECKING:
    from hatchery.experiment.experiment_file import Experiment
    from hatchery.experiment.project import Project
    from hatchery.training.settings import PretrainingSettings

COUNTS = "a track counts all text from which models, tokenizers and selections of text learn"
UNKNOWN = "expected a `run`, because the training text of a model in a folder is not known"

Number = TypeVar("Number", int, float)

TrackName = Literal["strict_small", "strict", "multilingual", "chinese"]


@dataclass(frozen=True)
class Track:
    """The limits of a BabyLM track."""

    words_seen: int | None
    """Maximum number of words that the model reads, including repetitions, summed over all trainings on which the model
    depends. None: no limit.
    """
    corpus_words: int
    """Maximum number of words in the training text."""
    epochs: int | None = 10
    """Maximum number of passes over the training text. None: no limit."""
    word_count: WordCountName = "white_space"
    """Rule for counting words. This rule applies to the limit of the corpus and to the limit of the training."""

    def limited(self, budget: BudgetSettings) -> BudgetSettings:
        """Return the budget, with limits on epochs and corpus words lowered to the limits of this track."""
        epochs = None if self.epochs is None else float(self.epochs)
        corpus_words = _smaller(budget.corpus_words, self.corpus_words)
        return replace(budget, epochs=_smaller(budget.epochs, epochs), corpus_words=corpus_words)


TRACKS: dict[TrackName, Track] = {
    "strict_small": Track(100_000_000, 10_000_000),
    "strict": Track(1_000_000_000, 100_000_000),
    "multilingual": Track(1_000_000_000, 100_000_000, word_count="adjusted"),
    "chinese": Track(None, 100_000_000, epochs=None, word_count="jieba"),
}


def check_track(name: str, experiment: "Experiment", where: str, project: "Project") -> None:
    """Raise ConfigError, with one line per broken rule, if the experiment `name` breaks rules of its track."""
    if experiment.track is None:
        return
    track, problems = TRACKS[experiment.track], Problems()
    broken = f"{where}: track: {experiment.track}"
    handed_in = experiment.submission and experiment.submission.track
    if handed_in and handed_in != experiment.track:
        problems.add(f"{broken}: expected the track of `submission`, {handed_in}")
    for problem in (*_size(track, experiment, project), *_other_text(experiment, project)):
        problems.add(f"{broken}: {problem}")
    for run, entry in experiment.runs.items():
        place = f"{broken}: runs.{run}.pretraining"
        for problem in _own(track, entry.pretraining, project):
            problems.add(place + problem)
        for seed in entry.seeds:
            with problems.collecting():
                own = Origin(name, run, seed)
                for problem in _earlier(track, name, experiment, own, project):
                    problems.add(f"{place}.initialise_from: {problem}")
                key = _key_of_others(project, own)
                for problem in _taught(track, name, experiment, own, project):
                    problems.add(f"{place}.{key}: {problem}")
    problems.raise_any()


def _size(track: Track, experiment: "Experiment", project: "Project") -> Iterator[str]:
    """Yield a message if the corpus counts words by another rule than the track, or if a multilingual sample has too
    many words.
    """
    corpus = project.corpus(experiment.corpus)
    if corpus.word_count != track.word_count:
        yield (
            f"the words of the corpus {experiment.corpus!r} are counted by the rule {corpus.word_count}, expected "
            f"`word_count: {track.word_count}` in its file"
            + (", with its `byte_premium`" if track.word_count == "adjusted" else "")
        )
    words = corpus.sample.adjusted_words if corpus.made_from == "sample" else None
    if track.word_count == "adjusted" and words is not None and words > track.corpus_words:
        yield (
            f"the languages of the corpus {experiment.corpus!r} have {words:,} adjusted words together, "
            f"expected at most {track.corpus_words:,}"
        )


def _other_text(experiment: "Experiment", project: "Project") -> Iterator[str]:
    """Yield a message if the tokenizer or a selection of text depends on text outside of the experiment's training
    text.
    """
    name, tokenizer = experiment.tokenizer, project.tokenizer(experiment.tokenizer)
    if tokenizer.path is not ABSENT:
        yield f"the tokenizer {name!r} is imported; {COUNTS}"
        return
    for other in tokenizer.trained_on:
        if other not in (ABSENT, experiment.corpus):
            yield (
                f"the tokenizer {name!r} is trained on {other!r}, expected the experiment's corpus "
                f"{experiment.corpus!r}: {COUNTS}"
            )
    if held_out := [split for split in tokenizer.splits if split != "train"]:
        yield (
            f"the tokenizer {name!r} is trained on held-out text, `splits` has {' and '.join(held_out)}; expected "
            f"`splits: [train]`: {COUNTS}"
        )
    for vocabulary, selection in vocabularies_in(experiment.corpus, project):
        yield (
            f"the text of the corpus {experiment.corpus!r} is selected by the vocabulary {vocabulary!r} "
            f"(selection {selection!r}), which is drawn from other text; expected a corpus without this selection, or "
            f"a vocabulary of the selected text itself: {COUNTS}"
        )


def vocabularies_in(corpus: str, project: "Project", seen: frozenset[str] = frozenset()) -> list[tuple[str, str]]:
    """Return (vocabulary, selection) for each selection on which the text of a corpus depends, if vocabulary and
    selected text are from different raw inputs.

    Selections of windows are omitted, because their text does not depend on a vocabulary. `seen` are the corpora that
    the recursion has visited.
    """
    block, seen = project.corpus(corpus), seen | {corpus}
    if block.made_from == "sample" and block.sample.corpus not in seen:
        return vocabularies_in(block.sample.corpus, project, seen)
    found: list[tuple[str, str]] = []
    groups = block.sequences.groups if block.made_from == "sequences" else ()
    for name in (name for group in groups for name in group.selections):
        selection = project.selection(name)
        vocabulary = project.vocabulary(selection.vocabulary)
        own = (vocabulary.data, vocabulary.embedded) == (selection.data, selection.embedded)
        if selection.level != "windows" and not own:
            found.append((selection.vocabulary, name))
        if selection.corpus is not ABSENT and selection.corpus not in seen:
            found += vocabularies_in(selection.corpus, project, seen)
    return found


def _own(track: Track, pretraining: "PretrainingSettings", project: "Project") -> Iterator[str]:
    """Yield a message for each rule that the settings of a run break. The message begins with the key."""
    if path_of(project, pretraining) is not None:
        yield f".initialise_from.path: {UNKNOWN}"
    if not trains(pretraining):
        return
    words, budget = pretraining.words_budget, pretraining.budget
    if words is None:
        yield ": expected a `budget` of words, which the track limits"
    elif track.words_seen is not None and words > track.words_seen:
        yield (
            f".budget.words_seen: got {words:,}, expected at most {track.words_seen:,}, repetitions and earlier "
            "trainings included"
        )
    if budget is not None and track.epochs is not None and (budget.epochs or 0) > track.epochs:
        yield f".budget.epochs: got {budget.epochs:g}, expected at most {track.epochs}"


def _earlier(track: Track, name: str, experiment: "Experiment", run: Origin, project: "Project") -> Iterator[str]:
    """Yield a message for each rule that a run breaks through its initial model, this model's own initial model, and so
    on. These models may belong to any experiment.

    Invalid settings of runs of this experiment are omitted, because `check_track` reports them at the keys of these
    runs.
    """
    chain = ancestors(project, run.experiment, run.run, run.seed)
    for origin in chain:
        other, pretraining = project.experiment(origin.experiment), pretraining_of(project, origin)
        called = f"{origin.run!r} of {origin.experiment}"
        if other.corpus != experiment.corpus:
            yield (
                f"{called} trains on {other.corpus!r}, expected {experiment.corpus!r}: the words of both corpora "
                "would count; combine the two corpora into one corpus"
            )
        if origin.experiment != name:
            yield from (f"{called}: pretraining{problem}" for problem in _own(track, pretraining, project))
    last = next((one for one in (run, *chain) if trains(pretraining_of(project, one))), run)
    # Check the limits only for the last training of the chain, because its words and epochs include the earlier
    # trainings.
    if last.experiment != name and project.experiment(last.experiment).track != experiment.track:
        yield (
            f"{last.run!r} of {last.experiment} is the last training before this run, but its words are not counted, "
            f"because experiment {last.experiment} has no `track: {experiment.track}`; add this key to that experiment"
        )


def _taught(track: Track, name: str, experiment: "Experiment", run: Origin, project: "Project") -> Iterator[str]:
    """Yield a message for each rule that is broken because a run depends on teachers, or on models whose loss
    determines the order of the training text. The run may depend on these models directly or through other runs.

    The words of all trainings on which the run depends are summed, each training once. The summand of a training is its
    budget minus the budget of its initial model, because a budget includes the words of the initial model.
    """
    everything = [run, *(one for one in taught_by(project, run) if one != run)]
    teachers = [(one, teacher) for one in everything for teacher in _teachers(project, one)]
    if not teachers:
        return
    for one, teacher in teachers:
        if isinstance(teacher, str):
            yield f"{one.run!r} of {one.experiment} depends on {teacher}: {UNKNOWN}"
    chain = [run, *ancestors(project, run.experiment, run.run, run.seed)]
    for one in everything:
        other, called = project.experiment(one.experiment), f"{one.run!r} of {one.experiment}"
        if one in chain:
            continue
        if other.corpus != experiment.corpus:
            yield (
                f"{called} trains on {other.corpus!r}, expected {experiment.corpus!r}: the words of both corpora "
                "would count; combine the two corpora into one corpus"
            )
        if one.experiment != name:
            yield from (
                f"{called}: pretraining{problem}" for problem in _own(track, pretraining_of(project, one), project)
            )
            if other.track != experiment.track:
                yield (
                    f"the words of {called} are not counted, because experiment {one.experiment} has no "
                    f"`track: {experiment.track}`; set this track in that experiment, too"
                )
    trainings = [one for one in everything if trains(pretraining_of(project, one))]
    names = ", ".join(f"{one.experiment}/{one.name}" for one in trainings)
    words = [_increment(project, one, "words_seen") for one in trainings]
    # If the budget of a training is not in words, another check has already reported this training, with the key of its
    # budget.
    if track.words_seen is not None and None not in words and (total := sum(filter(None, words))) > track.words_seen:
        yield (
            f"the budgets of {names} have {total:,.0f} words together, expected at most {track.words_seen:,}, because "
            "the words seen by teachers and by models that order the text also count"
        )
    epochs = [_increment(project, one, "epochs") for one in trainings]
    if track.epochs is None:
        return
    if None in epochs:
        missing = next(one for one, count in zip(trainings, epochs, strict=True) if count is None)
        yield (
            f"{missing.run!r} of {missing.experiment} has no `budget.epochs`; expected this key in all of {names}, "
            f"with a sum of at most {track.epochs}, because the epochs of these models also count"
        )
    elif (total := sum(filter(None, epochs))) > track.epochs:
        yield f"the budgets of {names} have {total:g} epochs together, expected at most {track.epochs}"


def _teachers(project: "Project", run: Origin) -> list[Origin | str]:
    """Return the models that are used to train a run: its teachers, and the model whose loss determines the order of
    the training text, if there is one. A model is a run (`Origin`) or the path of a manifest.
    """
    of = project, run.experiment, run.run, run.seed
    return [*teachers_of(*of), *order_model_of(*of)]


def _key_of_others(project: "Project", run: Origin) -> str:
    """Return the configuration key that makes a run depend on other models."""
    of = project, run.experiment, run.run, run.seed
    if teachers_of(*of):
        return "distillation"
    return "order.model" if order_model_of(*of) else "initialise_from"


def _increment(project: "Project", run: Origin, key: str) -> float | None:
    """Return the words or epochs (`key`) of a run's budget minus the words or epochs of its initial model's budget;
    None if a budget is unknown.
    """
    before = trained_before(project, run.experiment, run.run, run.seed)
    own = _budgeted(project, run, key)
    earlier = 0 if before is None else _budgeted(project, before, key)
    return None if own is None or earlier is None else own - earlier


def _budgeted(project: "Project", run: Origin, key: str) -> float | None:
    budget = pretraining_of(project, run).budget
    value = None if budget is None else getattr(budget, key)
    return None if value is ABSENT else value


def _smaller(*limits: Number | None) -> Number | None:
    """Return the smallest of the limits that are not None; None if all limits are None."""
    return min((limit for limit in limits if limit is not None), default=None)
