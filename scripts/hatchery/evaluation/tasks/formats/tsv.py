"""Tab-separated tables as GLUE and HANS were first released: a header line, no quoting, every value a text.

CoLA has no header; the task names its columns. QQP's training file has a few rows that line breaks inside a question
tore apart; the hub's copy leaves them out, and so do we, as long as they are few.
"""

from collections.abc import Iterator, Sequence

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import Record, decode_lines
from hatchery.storage.sources import RawSource

MOST_TORN_ROWS = 1e-3
"""Share of the rows that may have a wrong number of cells; QQP has one in some ten thousand."""


def read_tsv(source: RawSource, name: str, columns: Sequence[str] = ()) -> Iterator[Record]:
    """Yield the rows of a table in order; `columns` names the columns of a file without a header.

    Torn rows are left out. Raises EvaluationError naming file and line for a header that repeats a name, for more torn
    rows than MOST_TORN_ROWS, and naming the file when it holds no row.
    """
    names, rows, torn, first_torn = list(columns), 0, 0, ""
    for line, text in decode_lines(source, name):
        cells = text.split("\t")
        if not names:
            names = [cell.strip() for cell in cells]
            if len(set(names)) < len(names):
                raise EvaluationError(f"{name}:{line}: a name stands twice in the header; does the file have one?")
            continue
        rows += 1
        if len(cells) == len(names):
            yield Record(dict(zip(names, cells, strict=True)), f"{name}:{line}", line)
        else:
            torn += 1
            first_torn = first_torn or f"{name}:{line}: has {len(cells)} cells, expected {len(names)}"
    if torn > rows * MOST_TORN_ROWS:
        raise EvaluationError(f"{first_torn} ({', '.join(names)})")
    if rows == 0:
        raise EvaluationError(f"{name}: the file holds no records")
