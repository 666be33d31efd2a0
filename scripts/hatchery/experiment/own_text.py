"""What can be told about text of one's own before anything is read, by the names and sizes of what lies at its path.

There may be nothing that a reader of text takes, or too little for a development split.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.corpora.cutting import SHORTEST
from hatchery.corpora.packed_files import uncompressed_suffix
from hatchery.corpora.readers.plain_text import PlainTextOptions, files, format_of, is_cut
from hatchery.errors import ConfigError, SourceError
from hatchery.experiment.text_files import CorpusFile
from hatchery.raw.archives import archive_suffix
from hatchery.raw.registration import RawSource, unregistered
from hatchery.settings.fields import ABSENT
from hatchery.settings.problems import Problems

if TYPE_CHECKING:
    from hatchery.experiment.project import Project

# Of a folder with more files than this, several are read.
_FILES_SEEN = 50
_TURN_INTO_TEXT = (".docx", ".doc", ".odt", ".rtf", ".pdf", ".epub")


def check_files(corpus: CorpusFile, where: str, project: "Project") -> None:
    """Raise ConfigError for a source of plain text at whose path no file is one that its reader takes."""
    problems = Problems()
    for index, source in enumerate(corpus.sources):
        found = source_at(_path(project, source))
        if found is None or not found.files or source.reader != "plain_text":
            continue
        try:
            files(found, source.options)
        except SourceError as error:
            problems.add(f"{where}: sources.{index}: data.{source.data}.path: {error}{_remedy(found)}")
    problems.raise_any()


def _remedy(found: RawSource) -> str:
    """What to do where texts lie in files of other kinds."""
    names = [str(found.root), *found.files]
    if any(name.endswith(_TURN_INTO_TEXT) for name in names):
        return ", or save documents as plain text (.txt)"
    if any(archive_suffix(name) for name in found.files):
        return ", or unpack the archive, or give its own path"
    return ""


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
