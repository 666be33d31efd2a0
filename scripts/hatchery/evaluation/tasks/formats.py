"""Read the records of tasks in all file formats.

The files of a split are the files of the source that match the task's patterns for this split. `probing.formats` reads
the formats of edge probing, which contain sentences with spans (`jiant`, `conllu`, `conll2012`, `treebanks`). This
module reads all other formats. In the format `rows`, the suffix of a file determines the reader.

- `rows`, `.json` or `.jsonl`: JSON lines, the format of SuperGLUE, BabyLM 2023 and MSGS.
- `rows`, `.parquet`: the format of data sets on the Hugging Face hub.
- `rows`, `.tsv` or `.txt`: tab-separated tables, the format of the original GLUE and HANS. Quotes are plain characters,
  unless the column names in the header are quoted, as in tables that R wrote. CoLA has no header; the task's settings
  contain its column names. In QQP's training file, line breaks inside questions split a few rows. As in the hub's copy,
  these rows are omitted, up to the fraction MOST_TORN_ROWS.
- `rows`, `.csv`: tables that a spreadsheet program saved, with a header line, quotes where a cell needs them, and
  commas, semicolons or tabs between the cells.
- `labelled_lines`: collections that are not divided into training and validation, such as the subjectivity data set
  (Pang and Lee 2004). The validation rows are drawn later with the task's `split_seed`.
- `rte_xml`: the files of the RTE challenges 1 to 3 (Dagan et al. 2006), `pair` elements with a text `t` and a
  hypothesis `h`. The values `value="TRUE|FALSE"` (RTE-1) and `entailment="YES|NO"` (RTE-2 and RTE-3) become the labels
  of GLUE, `entailment` and `not_entailment`. The parser loads no DTD, expands no entities and downloads nothing.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from lxml import etree

from hatchery.corpora.csv_tables import csv_rows, has_surplus, read_head
from hatchery.corpora.text_files import Lines
from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import Record, decode_lines, read_json_lines, shorten, some
from hatchery.evaluation.tasks.settings import Format, TaskSettings
from hatchery.raw.registration import RawSource

LINE_FIELDS = ("sentence",)


def read_labelled_lines(source: RawSource, name: str, label: str) -> Iterator[Record]:
    """Return the lines of a file as records with the label `label`. Runs of white space become one space.

    Raises SourceError naming the file and the first byte that is not UTF-8, and EvaluationError naming a file without
    lines.
    """
    lines = decode_lines(source, name)
    return some(
        (Record({"sentence": " ".join(text.split()), "label": label}, f"{name}:{line}", line) for line, text in lines),
        name,
    )


RTE_FIELDS = ("premise", "hypothesis")
LABEL_OF_VALUE = {
    "TRUE": "entailment",
    "YES": "entailment",
    "FALSE": "not_entailment",
    "NO": "not_entailment",
}


def read_rte_xml(source: RawSource, name: str) -> Iterator[Record]:
    """Yield the pairs (text, hypothesis) of an RTE file, in order.

    Raises EvaluationError naming file and line for malformed XML or a malformed pair. Raises EvaluationError naming the
    file if the file has no pairs.
    """
    parser = etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False)
    try:
        root = etree.fromstring(source.read_bytes(name), parser)
    except etree.XMLSyntaxError as error:
        raise EvaluationError(f"{name}:{error.lineno or 1}: malformed XML: {error.msg}") from error
    seen: set[str] = set()
    for pair in root.iter("pair"):
        where = f"{name}:{pair.sourceline}"
        identifier = pair.get("id")
        if identifier is None or identifier in seen:
            raise EvaluationError(
                f"{where}: got the pair id {shorten(identifier)}, expected an id that occurs only once in the file"
            )
        seen.add(identifier)
        value = pair.get("value", pair.get("entailment"))
        values = {
            "premise": _text(pair, "t", where),
            "hypothesis": _text(pair, "h", where),
            "label": LABEL_OF_VALUE.get(value or "", value),
        }
        yield Record(values, where, pair.sourceline or 0)
    if not seen:
        raise EvaluationError(f"{name}: the file contains no pair elements")


def _text(pair: etree._Element, tag: str, where: str) -> str:
    elements = pair.findall(tag)
    if len(elements) != 1:
        raise EvaluationError(f"{where}: expected one {tag!r} in the pair, found {len(elements)}")
    if any(child.tag is etree.Entity for child in elements[0].iter()):
        raise EvaluationError(
            f"{where}: the text of {tag!r} uses an XML entity that the file defines; such entities are not expanded"
        )
    text = " ".join("".join(elements[0].itertext()).split())
    if not text:
        raise EvaluationError(f"{where}: the text of {tag!r} is empty")
    return text


MOST_TORN_ROWS = 1e-3
"""Largest share of rows with a wrong number of cells, above which a table is refused. In QQP, about one row in ten
thousand is wrong.
"""


def read_tsv(source: RawSource, name: str, columns: Sequence[str] = ()) -> Iterator[Record]:
    """Yield the rows of a tab-separated table in order; `columns` contains the column names of a file without a header.

    If the number of cells in a row differs from the number of columns, for example because of a line break inside a
    cell, the row is omitted. Quotes are plain characters, as in GLUE. If the header begins with a quote, the table was
    written by R and is read by `read_csv`. Raises EvaluationError naming file and line for a header that repeats a
    name, and if the fraction of omitted rows exceeds MOST_TORN_ROWS.
    """
    names, rows, torn, first_torn = list(columns), 0, 0, ""
    for line, text in decode_lines(source, name):
        cells = text.split("\t")
        if not names and text.startswith('"'):
            yield from read_csv(source, name)
            return
        if not names:
            names = [cell.strip() for cell in cells]
            if len(set(names)) < len(names):
                raise EvaluationError(
                    f"{name}:{line}: a column name occurs twice in the header; if the file has no header, add one"
                )
            continue
        rows += 1
        if len(cells) == len(names):
            yield Record(dict(zip(names, cells, strict=True)), f"{name}:{line}", line)
        else:
            torn += 1
            first_torn = first_torn or f"{name}:{line}: has {len(cells)} cells, expected {len(names)}"
    if torn > rows * MOST_TORN_ROWS:
        raise EvaluationError(f"{first_torn} ({', '.join(names)})")


def read_csv(source: RawSource, name: str, complete: bool = False) -> Iterator[Record]:
    """Yield the rows of a table in CSV, as spreadsheet programs save it; empty rows are omitted.

    A line such as `sep=;` states the separator. Without it, the separator is the most frequent one of comma, semicolon,
    tab and `|` in the header. Raises EvaluationError naming file and line for a row with more cells than the header
    and, if `complete` is true, for a row with fewer cells. Raises SourceError for a malformed table, and for a table
    that is not UTF-8.
    """
    lines = Lines(source, name, has_options=False)
    lines.where, lines.mark = name, ":"
    head = read_head(lines)
    for where, row in csv_rows(lines, head=head):
        if has_surplus(row):
            marked = {"\t": "tabs", " ": "blanks"}.get(head.delimiter, repr(head.delimiter))
            raise EvaluationError(
                f"{where}: the row has more cells than the header; put quotes around each text that contains {marked}, "
                "and add a column name for row names to the header (in R, omit row names: `row.names = FALSE`)"
            )
        if complete and any(row.values()) and None in row.values():
            present = sum(cell is not None for cell in row.values())
            raise EvaluationError(
                f"{where}: has {present} cells, expected {len(row)}, the number of cells in the header"
            )
        if any(row.values()):
            yield Record({column: cell or "" for column, cell in row.items()}, where, lines.record_line)


def read_parquet(source: RawSource, name: str, wanted: Collection[str] | None) -> Iterator[Record]:
    """Return the rows of a Parquet file in order, with the columns in `wanted`, or with all columns if `wanted` is
    None. The `line` of a record is the number of its row, counted from 1.

    Raises SourceError naming file and row for a damaged file, and for a wanted column whose values JSON cannot
    represent.
    """
    # Import inside the function: planning imports this module, but opens no Parquet file.
    from hatchery.corpora.parquet_files import parquet_rows

    rows = parquet_rows(source, name, wanted, name)
    return (Record(values, where, number) for number, (where, values) in enumerate(rows, 1))


READERS: dict[str, Callable[[RawSource, str, Sequence[str], Collection[str] | None], Iterator[Record]]] = {
    ".json": lambda source, name, columns, wanted: read_json_lines(source, name),
    ".jsonl": lambda source, name, columns, wanted: read_json_lines(source, name),
    ".parquet": lambda source, name, columns, wanted: read_parquet(source, name, wanted),
    ".csv": lambda source, name, columns, wanted: read_csv(source, name),
    ".tsv": lambda source, name, columns, wanted: read_tsv(source, name, columns),
    ".txt": lambda source, name, columns, wanted: read_tsv(source, name, columns),
}


def is_table(name: str) -> bool:
    """Return True if `read_rows` reads a file with this suffix as a table. Return False for the suffix .txt, because a
    .txt file may also contain running text.
    """
    ending = PurePosixPath(name).suffix.lower()
    return ending in READERS and ending != ".txt"


def read_rows(source: RawSource, name: str, columns: Sequence[str], wanted: Collection[str] | None) -> Iterator[Record]:
    """Return the records of one file.

    `columns` contains the column names of a tab-separated table without a header. `wanted` are the fields to read;
    other fields may be skipped. If `wanted` is None, all fields are read.

    Raises EvaluationError for an unknown suffix, and EvaluationError or SourceError naming file and line for malformed
    rows.
    """
    ending = PurePosixPath(name).suffix.lower()
    if ending not in READERS:
        raise EvaluationError(f"{name}: the ending {ending!r} is unknown, expected one of {', '.join(READERS)}")
    return some(READERS[ending](source, name, columns, wanted), name)


def task_files(source: RawSource, task: TaskSettings, key: str) -> list[str]:
    """Return the names of the files that match the patterns for `key`, a key of the task's setting `files`, such as a
    split. The files are in the order of the patterns; the files of one pattern are sorted.

    Raises EvaluationError if a pattern matches no file.
    """
    patterns = task.files[key]
    names: dict[str, None] = {}
    for pattern in (patterns,) if isinstance(patterns, str) else patterns:
        matches = source.names(pattern)
        if not matches:
            raise EvaluationError(f"{source.root}: no file matches {pattern!r}, the {key!r} files of {task.name!r}")
        names |= dict.fromkeys(matches)
    return list(names)


def check_disjoint(source: RawSource, task: TaskSettings) -> None:
    """Raise EvaluationError if a training file is also a file of a scored split."""
    training = set(task_files(source, task, "train")) if "train" in task.files else set()
    for key in task.files:
        shared = training.intersection(task_files(source, task, key)) if key != "train" else ()
        if shared:
            raise EvaluationError(
                f"{source.root}: {min(shared)!r} is both a training and a {key!r} file of the task {task.name!r}"
            )


@dataclass(frozen=True)
class FormatDefinition:
    """A file format of tasks.

    `read(source, task, key, name, wanted)` returns the records of the file `name`, which is listed in
    `task.files[key]`, with the fields `wanted`. `fields` are the default text fields, for tasks whose settings contain
    no `fields`. If `files_by_label` is true, the keys of `task.files` are the task's labels, and the training rows come
    from the files of all labels.
    """

    read: Callable[[RawSource, TaskSettings, str, str, Collection[str]], Iterator[Record]]
    fields: tuple[str, ...] = ()
    files_by_label: bool = False


FORMATS: dict[Format, FormatDefinition] = {
    "rows": FormatDefinition(lambda source, task, key, name, wanted: read_rows(source, name, task.columns, wanted)),
    "rte_xml": FormatDefinition(lambda source, task, key, name, wanted: read_rte_xml(source, name), RTE_FIELDS),
    "labelled_lines": FormatDefinition(
        lambda source, task, key, name, wanted: read_labelled_lines(source, name, key),
        LINE_FIELDS,
        files_by_label=True,
    ),
}


def text_fields(task: TaskSettings) -> tuple[str, ...]:
    """Return the text fields or templates of a task; the default is the text fields of the task's format."""
    return task.fields or FORMATS[task.format].fields


def set_names(task: TaskSettings) -> list[str]:
    """Return the names of the splits that a task's files contain: "train", then "validation", then the other scored
    splits in their order. If the format has files for each label instead of each split (`labelled_lines`), the only
    split is "train".
    """
    if FORMATS[task.format].files_by_label:
        return ["train"]
    order = {"train": 0, "validation": 1}
    return sorted(task.files, key=lambda name: order.get(name, 2))


def read_records(
    source: RawSource, task: TaskSettings, name: str, wanted: Collection[str]
) -> Iterator[Iterator[Record]]:
    """Yield one iterator over records for each file of the split called `name`, in the order of the files."""
    definition = FORMATS[task.format]
    for key in task.label_names if definition.files_by_label else (name,):
        for file in task_files(source, task, key):
            yield definition.read(source, task, key, file, wanted)
