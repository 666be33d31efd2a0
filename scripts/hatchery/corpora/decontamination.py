"""Search for lines of training text that share n consecutive words with evaluation data, so that a corpus can leave
these lines out.

Case and punctuation are ignored. The method is that of Brown et al. 2020, "Language Models are Few-Shot Learners",
Appendix C, with n = 13. Sequences of n words are compared by hashes of 64 bits (keys), as in `duplicates`. Evaluation
texts with fewer than n words have no effect.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from hatchery.artifacts.atomic import json_value
from hatchery.corpora.documents import document_text
from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource, open_source

SHARED = "line that shares a run of words with evaluation data"
"""Reason under which removed lines are counted in `rejected.csv`."""
_WORD = re.compile(r"[^\W_]+")


def runs(text: str, words: int) -> Iterator[int]:
    """Yield a hash of 64 bits (key) for each sequence of `words` consecutive words of a text. Case and punctuation are
    ignored.
    """
    found = _WORD.findall(text.casefold())
    for start in range(len(found) - words + 1):
        run = " ".join(found[start : start + words])
        yield int.from_bytes(blake2b(run.encode(), digest_size=8).digest(), "big")


class Contamination:
    """The keys (hashes) of all sequences of `words` consecutive words in evaluation data."""

    def __init__(self, texts: Iterable[str], words: int) -> None:
        self.words = words
        self.keys = frozenset(key for text in texts for key in runs(text, words))

    @classmethod
    def read(cls, manifests: Mapping[str, Path], words: int) -> "Contamination":
        """Read evaluation data, and return the keys (hashes) of all sequences of `words` consecutive words in their
        texts. `manifests` are the manifests of these data by name. Raises SourceError for a file that is not UTF-8, and
        for JSON that cannot be read.
        """
        return cls((text for path in manifests.values() for text in texts_of(open_source(path))), words)

    def shares(self, line: str) -> bool:
        """Return True if a line shares at least `words` consecutive words with the evaluation data."""
        return any(key in self.keys for key in runs(line, self.words))

    def cleaned(self, text: str) -> tuple[str, int]:
        """Return a document without the lines that share at least `words` consecutive words with the evaluation data,
        and the number of removed lines. If no line is removed, the document is returned unchanged.
        """
        paragraphs = [paragraph.split("\n") for paragraph in text.split("\n\n")]
        kept = [[line for line in lines if not self.shares(line)] for lines in paragraphs]
        dropped = sum(map(len, paragraphs)) - sum(map(len, kept))
        return (document_text(kept), dropped) if dropped else (text, 0)


def texts_of(source: RawSource) -> Iterator[str]:
    """Yield the texts of all files: every string in a JSON or JSON Lines file, except for keys of objects, and every
    line of any other file.

    Raises SourceError for a file that is not UTF-8, and for JSON that cannot be read.
    """
    for name in source.names():
        with source.open(name) as stream:
            for number, raw in enumerate([stream.read()] if name.endswith(".json") else stream, 1):
                try:
                    line = raw.decode("utf-8-sig")
                    is_json = name.endswith((".json", ".jsonl"))
                    yield from _strings(json_value(line)) if is_json and line.strip() else [line]
                except (UnicodeDecodeError, json.JSONDecodeError) as error:
                    raise SourceError(f"{name}, line {number}: expected text or JSON in UTF-8: {error}") from error


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
