"""JSON lines: one object per line, the text in a field of it, as C4 and most web corpora are handed out.

Source: the C4 files of the hub (`c4-train.00000-of-01024.json.gz` with `text`, `timestamp`, `url`). Every line becomes
one text; a line that is not an object with that field is an error with file and line.
"""

from collections.abc import Iterator

from hatchery.corpora.raw_texts import RawText, index_key
from hatchery.corpora.rows import json_rows
from hatchery.corpora.text_files import Lines
from hatchery.errors import SourceError


def read(lines: Lines, field: str) -> Iterator[RawText]:
    """The texts in the field `field`, in the order of the lines; a null is an empty text.

    Raises SourceError for a damaged line, a missing field, or a field that holds something else than text.
    """
    for index, (place, row) in enumerate(json_rows(lines), lines.first):
        if field not in row:
            raise SourceError(f"{place}: there is no field {field!r}; there are: {', '.join(sorted(row))}")
        text = row[field]
        if text is None:
            text = ""
        elif not isinstance(text, str):
            raise SourceError(f"{place}: field {field!r}: expected text, got {type(text).__name__}")
        yield RawText(index_key(index), text)
