"""Whether the selections of a corpus of sequences can have the texts that its quotas and held-out numbers ask for.

The configuration bounds the number of texts: by the windows that a selection draws from a text, and by the documents
that are taken of a data set of the hub. The job that groups sequences compares the exact numbers, after documents were
downloaded and selected for hours.
"""

import fnmatch
from typing import TYPE_CHECKING, NamedTuple

from hatchery.corpora.settings import number_of
from hatchery.experiment.text_files import CorpusFile, Group
from hatchery.settings.fields import ABSENT
from hatchery.settings.problems import Problems

if TYPE_CHECKING:
    from hatchery.experiment.project import Project

_HELD_OUT = ("development", "test", "set_aside")


class QuotaLimit(NamedTuple):
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


def _most_texts(name: str, wanted: int, project: "Project") -> QuotaLimit | None:
    """The most texts of a selection, from which `wanted` are to be drawn; None where nothing is known."""
    selection = project.selection(name)
    if selection.level != "windows":
        return None
    each = selection.windows_per_text
    of_each = f"windows_per_text ({each:,}) of {project.place('selection', name)}"
    if selection.documents_per_text is None:
        return QuotaLimit(each, f"raise {of_each}")
    data = None if selection.data is ABSENT else project.raw_input(selection.data)
    hub = None if data is None or data.path is not None else data.hub
    if hub is None or hub.documents is None:
        return None
    shards, patterns = {split: f"{split}-00000.parquet" for split in hub.splits}, selection.options.files
    splits = [split for split in hub.splits if any(fnmatch.fnmatchcase(shards[split], each) for each in patterns)]
    # A text is one document or several, so there are no more texts than documents.
    documents = hub.documents * len(splits)
    key = f"data.{selection.data}.hub.documents"
    least = -(-wanted // (each * max(len(splits), 1)))
    return QuotaLimit(
        documents * each,
        f"raise {key} ({hub.documents:,}) in {project.folder / 'config.yaml'} to {least:,} at least, or {of_each}",
    )


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
