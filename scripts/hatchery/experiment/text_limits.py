"""What is known of a corpus before anything is read: whether there is text at its paths, and how much it is at most.

Of text of one's own, names and sizes of the files tell whether a reader takes them, and whether there is enough for a
development split. Of a corpus of sequences, the configuration tells the windows that a selection draws from a text, the
documents that are taken of a data set of the hub, and the numbers that a corpus is cut to. How many sentences lie
within a vocabulary is known when it is read: the log of a training says how many epochs it reads.
"""

import fnmatch
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hatchery.corpora.raw_files import SHORTEST, uncompressed_suffix
from hatchery.corpora.readers import READERS
from hatchery.corpora.readers.plain_text import PlainTextOptions, files, is_cut
from hatchery.corpora.settings import number_of
from hatchery.corpora.tables import format_of
from hatchery.errors import ConfigError, SourceError
from hatchery.experiment.text_files import CorpusFile, Group
from hatchery.raw.archives import archive_suffix
from hatchery.raw.registration import RawSource, unregistered
from hatchery.settings.fields import ABSENT
from hatchery.settings.problems import Problems
from hatchery.training.start_settings import NEARLY
from hatchery.units import size

if TYPE_CHECKING:
    from hatchery.experiment.experiment_file import Experiment
    from hatchery.experiment.project import Project


# Of a folder with more files than this, several are read.
_FILES_SEEN = 50
_FILES_WEIGHED = 5_000
_FILES_NAMED = 3
_TURN_INTO_TEXT = (".docx", ".doc", ".odt", ".rtf", ".pdf", ".epub")


def check_files(corpus: CorpusFile, where: str, project: "Project") -> None:
    """Raise ConfigError for every source at whose path the files are not there that its reader takes."""
    problems = Problems()
    for index, source in enumerate(corpus.sources):
        found = source_at(_path(project, source))
        if found is None or not found.files:
            continue
        try:
            READERS[source.reader].files(found, source.options)
        except SourceError as error:
            remedy = _remedy(found) if source.reader == "plain_text" else ""
            problems.add(f"{where}: sources.{index}: data.{source.data}.path: {error}{remedy}")
    problems.raise_any()


def _remedy(found: RawSource) -> str:
    """What to do where texts lie in files of other kinds."""
    names = [str(found.root), *found.files]
    if any(name.endswith(_TURN_INTO_TEXT) for name in names):
        return ", or save documents as plain text (.txt)"
    if any(archive_suffix(name) for name in found.files):
        return ", or unpack the archive, or give its own path"
    return ""


def unread_to_tell(corpora: Iterable[str], project: "Project") -> Iterator[str]:
    """What to say of text of one's own most of whose bytes lie in files that are not read."""
    for name in corpora:
        block = project.corpus(name)
        for source in block.sources if block.made_from == "sources" else ():
            if source.reader != "plain_text" or source.options.files != PlainTextOptions.files:
                continue
            path = _path(project, source)
            found = None if path is None else unregistered(Path(path), _FILES_WEIGHED)
            try:
                chosen = set(files(found, source.options)) if found is not None else set()
            except SourceError:
                # Told with the corpus.
                continue
            if found is None:
                continue
            left = sorted((file for file in found.files if file not in chosen), key=lambda file: -found.size(file))
            total, unread = (sum(map(found.size, names)) for names in (found.files, left))
            if 2 * unread > total:
                named = ", ".join(f"{file} ({size(found.size(file))})" for file in left[:_FILES_NAMED])
                more = f" and {len(left) - _FILES_NAMED:,} more" if len(left) > _FILES_NAMED else ""
                yield (
                    f"corpus {name!r}: {size(unread)} of the {size(total)} at {path} lie in files that are not read: "
                    f"{named}{more}; set the option `files`{_remedy(found)}, or save them as .txt, .csv, .jsonl or "
                    ".parquet"
                )


def check_own_text(project: "Project", corpus: str) -> None:
    """Raise ConfigError where a corpus can have no development document; it says what to do.

    Looks at names and sizes only, and at nothing that is not there yet. A table's rows are counted when it is read.
    """
    problem = _split_problem(project, corpus)
    if problem is not None:
        raise ConfigError(problem)


def _split_problem(project: "Project", corpus: str) -> str | None:
    block = project.corpus(corpus)
    if block.made_from != "sources" or len(block.sources) != 1 or block.sources[0].reader != "plain_text":
        return None
    split, source = block.split, block.sources[0]
    wanted = split.development_documents
    if split.development_fraction == 0 if wanted is None else wanted < 1:
        return None
    path = _path(project, source)
    found = source_at(path)
    if found is None:
        return None
    try:
        names = files(found, source.options)
    except SourceError:
        # Told with the corpus, or by the stage that reads.
        return None
    if len(names) != 1 or not _is_one_document(found, names[0], source.options):
        return None
    return (
        f"{project.place('corpus', corpus)}: split: the text at data.{source.data}.path, {path}, is one "
        "document, so there is none to hold out for development: bring more text, set "
        "sources.0.options.lines_per_document, or set split.development_fraction to 0"
    )


def _path(project: "Project", source: Any) -> str | None:
    found = None if source.data is ABSENT else project.raw_input(source.data)
    return None if found is None else found.path


def _is_one_document(source: RawSource, name: str, options: PlainTextOptions) -> bool:
    try:
        is_text = format_of(name, options) == "text" and uncompressed_suffix(name) == Path(name).suffix
    except ConfigError:
        return False
    if not is_text or options.lines_per_document is not None:
        return False
    return not is_cut(source, name, options, 1) or source.size(name) <= SHORTEST


def source_at(place: str | None) -> RawSource | None:
    """The names and sizes at a path as a source without checksums; None where they cannot be told at once."""
    return None if place is None else unregistered(Path(place), _FILES_SEEN)


_BYTES_OF_WORD = 2
"""Smallest number of bytes of a word: a letter and a blank."""
_PACKED = (".parquet", ".arrow", ".xlsx")


def check_epochs(name: str, experiment: "Experiment", where: str, project: "Project") -> None:
    """Raise ConfigError for every budget of words that the text surely cannot fill in the epochs that are allowed.

    The number of words is known when the text is encoded; here it is bounded by the sizes of plain files.
    """
    problems, most = Problems(), _most_words(experiment.corpus, project)
    for run, entry in experiment.runs.items():
        budget = entry.pretraining.budget
        if most is None or budget is None or budget.words is None or entry.pretraining.steps == 0:
            continue
        epochs = project.within_track(name, budget).epochs
        if epochs is not None and epochs * most < NEARLY * budget.words:
            problems.add(
                f"{where}: runs.{run}.pretraining.budget.words_seen: got {budget.words:,}, expected at most "
                f"{int(epochs * most):,}: {epochs:g} epochs of the corpus {experiment.corpus!r}, whose files have at "
                f"most {most:,} words"
            )
    problems.raise_any()


def _most_words(corpus: str, project: "Project") -> int | None:
    """Upper bound of the number of words of a corpus of local text; None if its size is not known."""
    block, total = project.corpus(corpus), 0
    for source in block.sources if block.made_from == "sources" else ():
        path = _path(project, source)
        found = None if path is None else unregistered(Path(path), _FILES_WEIGHED)
        names = [] if found is None else list(found.files)
        packed = any(archive_suffix(file) or uncompressed_suffix(file) != Path(file).suffix for file in names)
        if found is None or packed or any(file.endswith(_PACKED) for file in names):
            return None
        total += sum(map(found.size, names))
    return total // _BYTES_OF_WORD or None


_HELD_OUT = ("development", "test", "set_aside")
_WORTH_TELLING = 1.05
"""Epochs above which a training is said to read its text more than once."""


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


def epochs_to_tell(experiments: Iterable[str], project: "Project") -> Iterator[str]:
    """A line for each of these experiments whose corpus surely has less text than its longest training reads."""
    from hatchery.training.step_plan import StepPlan

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
                round(plan.sequences())
                for plan in map(StepPlan, trainings)
                if getattr(plan.settings.objective, "segments", None) == "documents" and len(plan.lengths) == 1
            ),
            default=0,
        )
        if all(most is not None for _, most in groups) and read >= _WORTH_TELLING * there:
            yield (
                f"experiment {name!r}: a training reads {read:,} sequences, and its corpus {experiment.corpus!r} "
                f"can have {there:,} at most: {read / there:.1f} epochs or more"
            )


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
