"""The lines of a corpus as tokenizers learn from them: streamed, stripped, cut at special tokens, counted.

As published (docs/papers/elc-bert.md, "Tokenizers") empty lines are skipped and `[TAB] ` is removed. The stream can be
gone through more than once, for trainers that need two passes, and holds one batch of documents.
"""

import re
from collections.abc import Collection, Iterator
from pathlib import Path

from hatchery.progress import Progress
from hatchery.tokenization.documents import read_batches
from hatchery.tokenization.special_tokens import SPECIAL_SETS, TAB

DOCUMENTS_PER_BATCH = 256
ANY_SPECIAL_TOKEN = re.compile(
    "|".join(re.escape(name) for name in sorted({name for known in SPECIAL_SETS.values() for name in known.order}))
)


def training_lines(text: str) -> Iterator[str]:
    """The lines of a document as the tokenizer learns from them: stripped, none empty, no special token in them.

    A line with a special token, of whatever set, is cut there, as encoding cuts it, because the trainer would otherwise
    learn the letters of `[UNK]` as a word.
    """
    for line in text.split("\n"):
        for piece in ANY_SPECIAL_TOKEN.split(line.strip().replace(f"{TAB} ", "")):
            if piece and not piece.isspace():
                yield piece


class LineStream:
    """Lists of training lines, document by document; `documents` and `lines` count the last time through.

    `sources` leaves out the documents of other sources; `keep` is (lines to keep, lines there are), spread evenly.
    """

    def __init__(
        self,
        shards: list[Path],
        progress: Progress,
        sources: Collection[str] | None = None,
        keep: tuple[int, int] | None = None,
    ) -> None:
        self.shards = shards
        self.progress = progress
        self.sources = sources
        self.keep = keep
        self.seen = self.lines = self.documents = 0

    def __iter__(self) -> Iterator[list[str]]:
        self.seen = self.lines = self.documents = 0
        for path in self.shards:
            for batch in read_batches(path, DOCUMENTS_PER_BATCH):
                for source, text in zip(batch.sources, batch.texts, strict=True):
                    if self.sources is None or source in self.sources:
                        self.documents += 1
                        yield [line for line in training_lines(text) if self._kept()]
                self.progress.update(len(batch.texts))

    def _kept(self) -> bool:
        index = self.seen
        self.seen += 1
        if self.keep is not None:
            limit, total = self.keep
            if (index + 1) * limit // total == index * limit // total:
                return False
        self.lines += 1
        return True
