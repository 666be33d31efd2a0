"""Plain text with one example per line and one file (or set of files) per label.

Made for collections such as the subjectivity data set (Pang and Lee 2004) that come without a split: the validation
rows are drawn later with the task's `split_seed`. A record has the fields `sentence` and `label`.
"""

from collections.abc import Iterator

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import Record, decode_lines
from hatchery.storage.sources import RawSource

FIELDS = ("sentence",)


def read_labelled_lines(source: RawSource, name: str, label: str) -> Iterator[Record]:
    """The lines of a file, white space collapsed, all with `label`.

    Raises EvaluationError naming file and line for bytes that are not UTF-8, and a file without lines.
    """
    empty = True
    for line, text in decode_lines(source, name):
        empty = False
        yield Record({"sentence": " ".join(text.split()), "label": label}, f"{name}:{line}", line)
    if empty:
        raise EvaluationError(f"{name}: the file holds no lines")
