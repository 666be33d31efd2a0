"""The tracks of the BabyLM challenge, and which of their rules an experiment breaks, told before anything runs.

Source: docs/babylm.md, "What is allowed". Where the calls of 2025 and 2026 word a rule differently, the stricter
reading is taken. Words of the text itself are counted by the job, before its first step.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hatchery.errors import ConfigError
from hatchery.experiment.continuation import origin_of, path_of
from hatchery.experiment.text_files import ADJUSTED_BYTES_PER_WORD
from hatchery.settings.fields import ABSENT
from hatchery.settings.problems import Problems

if TYPE_CHECKING:
    from hatchery.experiment.experiment_file import Experiment
    from hatchery.experiment.project import Project
    from hatchery.experiment.text_files import CorpusFile

TrackName = Literal["strict_small", "strict", "multilingual"]


@dataclass(frozen=True)
class Track:
    """What a model of a track may see."""

    words_seen: int
    """Words that it is shown, repetitions included, over all trainings that it comes from."""
    corpus_words: int | None
    """Words of the text that it is trained on; None where bytes are counted."""
    epochs: int = 10
    """How often it may read the text."""
    corpus_bytes: int | None = None
    """Bytes (UTF-8) of English text; those of another language are divided by its byte premium. None: words count."""

    def bytes_of(self, corpus: "CorpusFile") -> int | None:
        """Bytes that a text may have in its own language; None where the track counts words, or nobody knows."""
        if self.corpus_bytes is None:
            return None
        if corpus.made_from == "sample" and corpus.sample.languages is not ABSENT:
            return sum(part.bytes for part in corpus.sample.languages.values())
        return None if corpus.byte_premium is None else int(self.corpus_bytes * corpus.byte_premium)


TRACKS: dict[TrackName, Track] = {
    "strict_small": Track(100_000_000, 10_000_000),
    "strict": Track(1_000_000_000, 100_000_000),
    "multilingual": Track(1_000_000_000, None, corpus_bytes=543_000_000),
}


def check_track(name: str, experiment: "Experiment", where: str, project: "Project") -> None:
    """Raise ConfigError with every rule of its track that the experiment `name` breaks; nothing without a track."""
    if experiment.track is None:
        return
    track, problems = TRACKS[experiment.track], Problems()
    broken = f"{where}: track: {experiment.track}"
    handed_in = experiment.submission and experiment.submission.track
    if handed_in and handed_in != experiment.track:
        problems.add(f"{broken}: expected the track of `submission`, {handed_in}")
    if track.corpus_bytes is not None:
        corpus = project.corpus(experiment.corpus)
        words = corpus.sample.adjusted_words if corpus.made_from == "sample" else None
        if words is None and corpus.byte_premium is None:
            problems.add(
                f"{broken}: the corpus {experiment.corpus!r} has no `byte_premium`, by which its size is compared with "
                "that of others: 1 of English text, of Dutch and Mandarin what babybabellm_nld and babybabellm_zho have"
            )
        elif words is not None and words * ADJUSTED_BYTES_PER_WORD > track.corpus_bytes:
            problems.add(
                f"{broken}: the languages of the corpus {experiment.corpus!r} have {words:,} adjusted words together, "
                f"expected at most {round(track.corpus_bytes / ADJUSTED_BYTES_PER_WORD):,}"
            )
    tokenizer = project.tokenizer(experiment.tokenizer)
    if tokenizer.path is not ABSENT:
        problems.add(f"{broken}: the tokenizer {experiment.tokenizer!r} is imported; all that learns from text counts")
    learnt = (tokenizer.corpus,) if tokenizer.corpora is ABSENT else tokenizer.corpora
    for other in learnt:
        if other not in (ABSENT, experiment.corpus):
            problems.add(
                f"{broken}: the tokenizer {experiment.tokenizer!r} is trained on {other!r}, expected the experiment's "
                f"corpus {experiment.corpus!r}: all that learns from text counts"
            )
    for run, entry in experiment.runs.items():
        pretraining, place = entry.pretraining, f"{broken}: runs.{run}.pretraining"
        if pretraining.steps == 0:
            continue
        words = pretraining.words_budget
        if words is None:
            problems.add(f"{place}: expected a `budget` of words: they are what is limited")
        elif words > track.words_seen:
            problems.add(
                f"{place}.budget.words_seen: got {words:,}, expected at most "
                f"{track.words_seen:,}, repetitions and earlier trainings included"
            )
        if pretraining.budget is not None and (pretraining.budget.epochs or 0) > track.epochs:
            problems.add(f"{place}.budget.epochs: got {pretraining.budget.epochs:g}, expected at most {track.epochs}")
        if path_of(project, pretraining) is not None:
            problems.add(
                f"{place}.initialise_from.path: expected a `run`: who trained a folder's model on what, nobody knows"
            )
        for seed in entry.seeds:
            with problems.collecting():
                _check_origin(project, name, run, seed, experiment, f"{place}.initialise_from")
    problems.raise_any()


def _check_origin(project: "Project", name: str, run: str, seed: int, experiment: "Experiment", place: str) -> None:
    """What a run starts from has seen text of the same budget: that of the corpus, and counted."""
    origin = origin_of(project, name, run, seed)
    if origin is None:
        return
    other = project.experiment(origin.experiment)
    if other.corpus != experiment.corpus:
        raise ConfigError(
            f"{place}: {origin.experiment} trains on {other.corpus!r}, expected {experiment.corpus!r}: the words of "
            "both would count; make one corpus of them"
        )
    before = other.runs[origin.run].pretraining
    if before.words_budget is None and before.steps:
        raise ConfigError(
            f"{place}: {origin.run!r} has no `budget`: words are added up over models that start from each other"
        )
