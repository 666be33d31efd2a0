"""Reading and filtering of text, compared with datatrove: equal input files, and equal texts as Parquet.

- reading: JSON lines of web-like pages to Parquet. Our stage also draws the splits, detects duplicates, and counts
  words, paragraphs and sentences; datatrove only copies texts.
- filtering: from gzip-compressed JSON lines, the sentences whose words are all in a list, as in the reduced-vocabulary
  study. datatrove has no filter of this kind; the peer is a plain implementation in datatrove: NLTK's Punkt, then a
  lookup of each word.

Both programs write Parquet with zstd, and must write equal texts.
"""

import gzip
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from nltk.tokenize.punkt import PunktSentenceTokenizer
from select_text import MINIMUM, ours
from web_pages import make_vocabulary, write_pages

from hatchery.artifacts.manifests import stage_run
from hatchery.corpora.sentences import pinned_splitter
from hatchery.corpora.settings import ConvertSettings
from hatchery.corpora.stages.convert_corpus import convert_corpus
from hatchery.raw.registration import register_source
from hatchery.typed import build
from hatchery.vocabulary.comparison import COMPARISONS, Rule, plain_sentences
from hatchery.vocabulary.word_lists import read_vocabulary

LEVEL, READING = "sentences", "corrected"
# Use a separator that is not a line end, because a sentence may contain line ends.
BETWEEN = "\x1e"
Sides = tuple[str, Callable[[], object], Callable[[], object]]
"""Name of the work, datatrove's function, our function."""


def sides(folder: Path, characters: int) -> Iterator[Sides]:
    """Yield (name of the work, datatrove's function, Hatchery's function) for reading and for filtering of text. Both
    functions must return equal texts. Raises ImportError without datatrove.
    """
    from datatrove.pipeline.filters.base_filter import BaseFilter
    from datatrove.pipeline.readers.jsonl import JsonlReader
    from datatrove.pipeline.writers.parquet import ParquetWriter
    from loguru import logger

    logger.remove()
    packed, plain = folder / "packed", folder / "plain"
    write_pages(packed, characters)
    plain.mkdir()
    lines = gzip.decompress((packed / "pages-00000.json.gz").read_bytes()).splitlines()
    # Write one line per page, because Hatchery's reader would turn lines into paragraphs.
    rows = [{"text": " ".join(json.loads(line)["text"].split())} for line in lines]
    (plain / "pages.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    for pages in (packed, plain):
        register_source("pages", pages, folder / f"{pages.name}.json")

    def written(name: str, reader: Any, *steps: Any) -> Path:
        target = folder / name
        run_steps([reader, *steps, ParquetWriter(str(target), compression="zstd")])
        return target

    def read() -> Path:
        return written("read", JsonlReader(str(plain)))

    source = {"name": "pages", "reader": "plain_text", "options": {"sentences": "line", "cleaning": "none"}}
    settings = build(ConvertSettings, {"sources": [source], "split": {"development_fraction": 0.0}}, "corpus")

    def convert() -> Path:
        target = folder / "corpus"
        with stage_run(target / "manifest.json", {}) as run:
            convert_corpus(settings, {"pages": folder / "plain.json"}, run)
        return target

    require_equal(texts(read()), texts(convert()))
    yield "reading JSON lines into Parquet", read, convert
    vocabulary = make_vocabulary(folder)
    rule = Rule(read_vocabulary(vocabulary), COMPARISONS[READING], MINIMUM[LEVEL], lower_case=True)
    punkt = PunktSentenceTokenizer(pinned_splitter().model.parameters())
    seen: set[str] = set()

    class KnownSentences(BaseFilter):
        """Keep each sentence whose words are all in the vocabulary; of equal sentences, keep only the first."""

        name = "known sentences"

        def filter(self, doc: Any) -> bool:
            found = plain_sentences(doc.text, rule, punkt.tokenize)
            kept = [item for item, _ in found.accepted if not (item in seen or seen.add(item))]  # type: ignore[func-returns-value]
            doc.text = BETWEEN.join(kept)
            return bool(kept)

    def filtered() -> Path:
        seen.clear()
        return written("filtered", JsonlReader(str(packed), compression="gzip"), KnownSentences())

    select = partial(ours, packed, folder / "packed.json", vocabulary, LEVEL, READING, folder / "selected")
    select()
    sentences = sorted(line for text in texts(filtered()) for line in text.split(BETWEEN))
    require_equal(sentences, texts(folder / "selected", "items-*.parquet"))
    yield "selecting sentences of known words", filtered, select


def run_steps(steps: list[Any]) -> None:
    """Run a pipeline of datatrove in this process, without its executor's logs."""
    data: Any = None
    for step in steps:
        data = step.run(data, 0, 1)
    for _ in data:
        pass


def texts(folder: Path, pattern: str = "*.parquet") -> list[str]:
    """Return the sorted texts of the Parquet files in `folder` whose names match `pattern`."""
    found: list[str] = pl.concat([pl.read_parquet(path, columns=["text"]) for path in folder.glob(pattern)])[
        "text"
    ].to_list()
    return sorted(found)


def require_equal(theirs: list[str], own: list[str]) -> None:
    """Raise ValueError if datatrove and Hatchery wrote different texts."""
    if theirs != own:
        raise ValueError(f"the texts differ: datatrove wrote {len(theirs):,} texts, Hatchery wrote {len(own):,} texts")
