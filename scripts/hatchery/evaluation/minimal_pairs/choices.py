"""Read multiple-choice rows: a prompt, and several choices that may follow it. For data sets of the Hugging Face hub,
derive the names of paradigms and documents.

Layouts: MuBench (a list of choices, and a label as an index, digits or text) and GlobalPIQA (a column for each choice).
Sources: docs/papers/babylm-2026.md, "The multilingual track". The names of files on the hub are guesses, because no
data set of the track was available.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import Record, checked_text, shorten
from hatchery.evaluation.minimal_pairs.items import Candidate, Item
from hatchery.evaluation.settings import ChoiceColumns, SuiteSettings
from hatchery.evaluation.tasks.formats import read_rows
from hatchery.raw.registration import RawSource
from hatchery.sanitize import plain_name

MUBENCH = ChoiceColumns()
_SPLIT = re.compile(r"(train|test|dev|validation|data)(-\d+-of-\d+)?")
HUB_METADATA = ("dataset_infos.json", "dataset_dict.json", "dataset_info.json", "state.json")
"""JSON files that the library `datasets` writes next to the rows of a data set."""


def paradigm_of_file(name: str, suite: SuiteSettings) -> str:
    """Return the paradigm of a file: the file's stem. In the multilingual track, a file in a folder may be named after
    a split (such as `test.jsonl`); its paradigm is the folder's name.
    """
    path = PurePosixPath(name)
    is_split = suite.track == "multilingual" and _SPLIT.fullmatch(path.stem) is not None
    return plain_name(path.parent.name if is_split and path.parent.name else path.stem)


def read_choices(source: RawSource, suite: SuiteSettings, name: str) -> Iterator[Item]:
    """Yield an item for each row. The candidates are the row's choices, the correct choice first. A space is added
    before each choice, and the prompt is the context of all choices.

    Raises EvaluationError naming file and line for a malformed row.
    """
    columns, paradigm = suite.choices or MUBENCH, paradigm_of_file(name, suite)
    several = (columns.choices,) if isinstance(columns.choices, str) else columns.choices
    for record in read_rows(source, name, (), {columns.prompt, columns.label, *several}):
        choices = choices_of(record, columns.choices)
        label = label_index(record, columns.label, choices)
        ordered = [choices[label], *choices[:label], *choices[label + 1 :]]
        prompt = record.text(columns.prompt)
        candidates = tuple(Candidate(f" {choice}", prompt) for choice in ordered)
        yield Item(paradigm, paradigm, str(record.line), candidates, place=label)


def choices_of(record: Record, columns: str | tuple[str, ...]) -> list[str]:
    """Return the choices of a row: a list in one column, or a text in each of several columns.

    The texts in the last columns may be missing, null or empty. Raises EvaluationError for fewer than two choices.
    """
    if isinstance(columns, str):
        choices, where = record.value(columns), f"{record.where}: the field {columns!r}"
        if (
            not isinstance(choices, list)
            or len(choices) < 2
            or not all(isinstance(one, str) and one for one in choices)
        ):
            raise EvaluationError(f"{where} must be a list of two or more non-empty texts, got {shorten(choices)}")
        return [checked_text(one, where) for one in choices]
    given = [column for column in columns if record.values.get(column) not in (None, "")]
    if len(given) < 2 or given != list(columns[: len(given)]):
        expected = f"expected one text in each of the fields {', '.join(columns)}; the last fields may be missing"
        raise EvaluationError(f"{record.where}: got choices in {', '.join(given) or 'no field'}; {expected}")
    return [record.text(column) for column in given]


def label_index(record: Record, name: str, choices: list[str]) -> int:
    """Return the index of the correct choice. The field `name` holds this index as an integer or as digits, or the text
    of the choice.

    Raises EvaluationError for a label of another form, and for an index without a choice.
    """
    label = record.value(name)
    if isinstance(label, str) and label.isdecimal() and label.isascii() and int(label) < len(choices):
        return int(label)
    if isinstance(label, str) and label in choices:
        return choices.index(label)
    if type(label) is int and 0 <= label < len(choices):
        return label
    raise EvaluationError(
        f"{record.where}: the field {name!r} must be an index from 0 to {len(choices) - 1}, this index as digits, or "
        f"the text of a choice, got {shorten(label)}"
    )


def document_name(index: int, record: Record) -> str:
    """Return a row's name as lm-evaluation-harness names documents: `<index>:<hash>`, with the hash of all columns of
    the row.
    """
    text = json.dumps(dict(record.values), indent=2, ensure_ascii=False, default=str)
    return f"{index}:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"
