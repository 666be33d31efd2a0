"""How much text a corpus of sequences can hold at most, as far as the configuration tells it before anything is read.

Known are the windows that a selection draws from a text, the documents that are taken of a data set of the hub, and
the numbers that a corpus is cut to. How many sentences lie within a vocabulary, and what stands in files at a path, is
known when it is read: the log of a training says how many epochs it reads.
"""

import fnmatch
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from hatchery.corpora.grouping import number_of
from hatchery.corpora.raw_texts import RawTextOptions
from hatchery.experiment.text_files import CorpusFile, Group, SelectionFile
from hatchery.raw.settings import Hub
from hatchery.settings.fields import ABSENT
from hatchery.settings.problems import Problems

if TYPE_CHECKING:
    from hatchery.experiment.project import Project

_HELD_OUT = ("development", "test", "set_aside")
_WORTH_TELLING = 1.05
"""Epochs above which a training is said to read its text more than once."""


class Most(NamedTuple):
    """The most texts that a selection can have, and what to change for more."""

    number: int
    advice: str


def check_quotas(corpus: CorpusFile, where: str, project: "Project") -> None:
    """Raise ConfigError, a line for each, for quotas and held-out numbers that the text surely cannot fill."""
    problems = Problems()
    for index, group in enumerate(corpus.sequences.groups):
        place = f"{where}: sequences.groups.{index}"
        for name, quota in group.quotas.items():
            most = _most_texts(name, quota, project)
            if most is not None and most.number < quota:
                problems.add(
                    f"{place}.quotas.{name}: got {quota:,}, but this selection can have {most.number:,} texts at most; "
                    f"{most.advice}"
                )
        sequences = _most_sequences(group, project)
        if sequences is not None and _held_out(group, sequences) >= sequences:
            numbers = ", ".join(f"{key} {amount:,}" for key in _HELD_OUT if (amount := getattr(group, key)))
            problems.add(
                f"{place}: got {numbers} of {sequences:,} sequences at most, which leaves none for training; give "
                "smaller numbers, or shares such as 0.01"
            )
    problems.raise_any()


def epochs_to_tell(experiments: Iterable[str], project: "Project") -> Iterator[str]:
    """A line for each of these experiments whose corpus surely has less text than its longest training reads."""
    for name in experiments:
        experiment = project.experiment(name)
        corpus = project.corpus(experiment.corpus)
        if corpus.made_from != "sequences":
            continue
        groups = [(group, _most_sequences(group, project)) for group in corpus.sequences.groups]
        there = sum(most - _held_out(group, most) for group, most in groups if most is not None)
        # Each text is one sequence where documents are the segments.
        trainings = (run.pretraining for run in experiment.runs.values())
        read = max(
            (
                training.steps * training.batch_size
                for training in trainings
                if getattr(training.objective, "segments", None) == "documents" and training.long_sequence is None
            ),
            default=0,
        )
        if all(most is not None for _, most in groups) and read >= _WORTH_TELLING * there:
            yield (
                f"experiment {name!r}: a training reads {read:,} sequences, and its corpus {experiment.corpus!r} "
                f"can have {there:,} at most: {read / there:.1f} epochs or more"
            )


def _most_texts(name: str, wanted: int, project: "Project") -> Most | None:
    """The most texts of a selection, from which `wanted` are to be drawn; None where nothing is known."""
    selection = project.selection(name)
    if selection.level != "windows":
        return None
    each = selection.windows_per_text
    of_each = f"windows_per_text ({each:,}) of {project.place('selection', name)}"
    if selection.documents_per_text is None:
        return Most(each, f"raise {of_each}")
    hub = _limited_hub(selection, project)
    if hub is None or hub.documents is None:
        return None
    splits = [split for split in hub.splits if _is_read(split, selection.options)]
    # A text is one document or several, so there are no more texts than documents.
    documents = hub.documents * len(splits)
    key = f"data.{selection.data}.hub.documents"
    least = -(-wanted // (each * max(len(splits), 1)))
    return Most(
        documents * each,
        f"raise {key} ({hub.documents:,}) in {project.folder / 'config.yaml'} to {least:,} at least, or {of_each}",
    )


def _limited_hub(selection: SelectionFile, project: "Project") -> Hub | None:
    """The data set of the hub that a selection reads, of which perhaps only some documents are taken."""
    data = None if selection.data is ABSENT else project.raw_input(selection.data)
    return None if data is None or data.path is not None else data.hub


def _is_read(split: str, options: RawTextOptions) -> bool:
    """Whether patterns of files match what is fetched of a split."""
    return any(fnmatch.fnmatchcase(f"{split}-00000.parquet", pattern) for pattern in options.files)


def _most_sequences(group: Group, project: "Project") -> int | None:
    """The most sequences of a level, which have one text at least; None where that is unknown."""
    limits = [] if group.maximum_sequences is None else [group.maximum_sequences]
    texts = []
    for name in group.selections:
        most = _most_texts(name, 1, project)
        known = [number for number in (group.quotas.get(name), most and most.number) if number is not None]
        texts.append(min(known, default=None))
    if None not in texts:
        limits.append(sum(number for number in texts if number is not None))
    return min(limits, default=None)


def _held_out(group: Group, sequences: int) -> int:
    return sum(number_of(getattr(group, key), sequences) for key in _HELD_OUT)
