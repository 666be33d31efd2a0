"""Check that the selections of a corpus have enough text for its quotas and its held-out sequences.

In a selection of windows, two settings limit the number of selected windows. The first is the number of windows drawn
per text. The second is the number of documents downloaded from a data set of the Hugging Face hub: a text contains at
least one document, so there are at most as many texts as documents. This check computes an upper bound at planning
time. Only the job that groups sequences knows the exact number, after hours of downloading and selecting.
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
    """The maximum number of texts (windows of words) in a selection of text, and advice on how to raise this number."""

    number: int
    advice: str


def check_quotas(corpus: CorpusFile, where: str, project: "Project") -> None:
    """Raise ConfigError, one line per problem, if the selections are too small for a quota or a number of held-out
    sequences.
    """
    problems = Problems()
    for index, group in enumerate(corpus.sequences.groups):
        place = f"{where}: sequences.groups.{index}"
        for name, quota in group.quotas.items():
            most = _most_texts(name, quota, project)
            if most is not None and most.number < quota:
                problems.add(
                    f"{place}.quotas.{name}: got {quota:,}, but this selection has at most {most.number:,} texts; "
                    f"{most.advice}"
                )
        sequences = _most_sequences(group, project)
        if sequences is not None and _held_out(group, sequences) >= sequences:
            numbers = ", ".join(f"{key} {amount:,}" for key in _HELD_OUT if (amount := getattr(group, key)))
            problems.add(
                f"{place}: got {numbers}, but the corpus has at most {sequences:,} sequences, so no sequences are left "
                "for training; set smaller numbers, or shares such as 0.01"
            )
    problems.raise_any()


def _most_texts(name: str, wanted: int, project: "Project") -> QuotaLimit | None:
    """Return the maximum number of windows that a selection of windows can contain; None if this number is unknown. For
    a selection of sentences or spans, return None, because their number is known only after the selection. `wanted` is
    the requested number of windows.
    """
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
    # Windows are drawn from texts, and each text is made from at least one document of the source. So the number of
    # documents limits the number of texts, and of windows.
    documents = hub.documents * len(splits)
    key = f"data.{selection.data}.hub.documents"
    least = -(-wanted // (each * max(len(splits), 1)))
    return QuotaLimit(
        documents * each,
        f"raise {key} in {project.folder / 'config.yaml'} from {hub.documents:,} to at least {least:,}, or {of_each}",
    )


def _most_sequences(group: Group, project: "Project") -> int | None:
    """Return the maximum number of sequences of a group; None if this number is unknown. The limits are
    `maximum_sequences` and the number of selected texts, because each sequence contains at least one selected text.
    """
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
