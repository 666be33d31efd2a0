"""How much text a corpus of sequences can hold at most, as far as the configuration tells it before anything is read.

Known are the windows that a selection draws from a text, the documents that are taken of a data set of the hub, and
the numbers that a corpus is cut to. How many sentences lie within a vocabulary, and what stands in files at a path, is
known when it is read: the log of a training says how many epochs it reads.
"""

import fnmatch
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from hatchery.corpora.sequence_settings import number_of
from hatchery.experiment.blocks import Blocks
from hatchery.experiment.overrides import pretraining_of
from hatchery.settings.problems import Problems

_HELD_OUT = ("development", "test", "set_aside")
_WORTH_TELLING = 1.05
"""Epochs above which a training is said to read its text more than once."""


class Most(NamedTuple):
    """The most texts that a selection can have, and what to change for more."""

    number: int
    advice: str


def check_quotas(corpus: Mapping[str, Any], where: str, blocks: Blocks) -> None:
    """Raise ConfigError, a line for each, for quotas and held-out numbers that the text surely cannot fill."""
    problems = Problems()
    for index, group in enumerate(corpus["sequences"]["groups"]):
        place = f"{where}: sequences.groups.{index}"
        for name, quota in group["quotas"].items():
            most = _most_texts(name, quota, blocks)
            if most is not None and most.number < quota:
                problems.add(
                    f"{place}.quotas.{name}: got {quota:,}, but this selection can have {most.number:,} texts at most; "
                    f"{most.advice}"
                )
        sequences = _most_sequences(group, blocks)
        if sequences is not None and _held_out(group, sequences) >= sequences:
            numbers = ", ".join(f"{key} {group[key]:,}" for key in _HELD_OUT if group[key])
            problems.add(
                f"{place}: got {numbers} of {sequences:,} sequences at most, which leaves none for training; give "
                "smaller numbers, or shares such as 0.01"
            )
    problems.raise_any()


def epochs_to_tell(experiments: Iterable[str], blocks: Blocks) -> Iterator[str]:
    """A line for each of these experiments whose corpus surely has less text than its longest training reads."""
    for name in experiments:
        experiment = blocks.block("experiment", name)
        corpus = blocks.block("corpus", experiment["corpus"])
        if "sequences" not in corpus:
            continue
        groups = [(group, _most_sequences(group, blocks)) for group in corpus["sequences"]["groups"]]
        there = sum(most - _held_out(group, most) for group, most in groups if most is not None)
        # Each text is one sequence where documents are the segments.
        trainings = (pretraining_of(experiment, run) for run in experiment["runs"])
        read = max(
            (
                training["steps"] * training["batch_size"]
                for training in trainings
                if training["objective"].get("segments") == "documents" and training["long_sequence"] is None
            ),
            default=0,
        )
        if all(most is not None for _, most in groups) and read >= _WORTH_TELLING * there:
            yield (
                f"experiment {name!r}: a training reads {read:,} sequences, and its corpus {experiment['corpus']!r} "
                f"can have {there:,} at most: {read / there:.1f} epochs or more"
            )


def _most_texts(name: str, wanted: int, blocks: Blocks) -> Most | None:
    """The most texts of a selection, from which `wanted` are to be drawn; None where nothing is known."""
    selection = blocks.block("selection", name)
    if selection["level"] != "windows":
        return None
    each = selection["windows_per_text"]
    of_each = f"windows_per_text ({each:,}) of {blocks.place('selection', name)}"
    if selection["documents_per_text"] is None:
        return Most(each, f"raise {of_each}")
    hub = _limited_hub(selection, blocks)
    if hub is None:
        return None
    splits = [split for split in hub["splits"] if _is_read(split, selection["options"])]
    # A text is one document or several, so there are no more texts than documents.
    documents = hub["documents"] * len(splits)
    key = f"data.{selection['data']}.hub.documents"
    least = -(-wanted // (each * max(len(splits), 1)))
    return Most(
        documents * each,
        f"raise {key} ({hub['documents']:,}) in {blocks.folder / 'config.yaml'} to {least:,} at least, or {of_each}",
    )


def _limited_hub(selection: Mapping[str, Any], blocks: Blocks) -> Mapping[str, Any] | None:
    """The data set of the hub that a selection reads, if only some of its documents are taken."""
    data = blocks.raw_input(selection["data"]) if "data" in selection else None
    hub = None if data is None or data["path"] is not None else data["hub"]
    return None if hub is None or hub["documents"] is None else hub


def _is_read(split: str, options: Mapping[str, Any]) -> bool:
    """Whether patterns of files match what is fetched of a split."""
    return any(fnmatch.fnmatchcase(f"{split}-00000.parquet", pattern) for pattern in options["files"])


def _most_sequences(group: Mapping[str, Any], blocks: Blocks) -> int | None:
    """The most sequences of a level, which have one text at least; None where that is unknown."""
    limits = [] if group["maximum_sequences"] is None else [group["maximum_sequences"]]
    texts = []
    for name in group["selections"]:
        most = _most_texts(name, 1, blocks)
        known = [number for number in (group["quotas"].get(name), most and most.number) if number is not None]
        texts.append(min(known, default=None))
    if None not in texts:
        limits.append(sum(number for number in texts if number is not None))
    return min(limits, default=None)


def _held_out(group: Mapping[str, Any], sequences: int) -> int:
    return sum(number_of(group[key], sequences) for key in _HELD_OUT)
