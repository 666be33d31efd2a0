"""Documents like web pages for the benchmarks of the vocabulary filter: real prose if it exists, else generated text.

The NLTK corpora next to the checkout are converted to running text with capitals. A document begins at a random
paragraph and has a random length; the mean length is about 2,200 characters, as in C4. A paragraph may occur in several
documents.
"""

import gzip
import json
import random
import re
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from demo.stages.generate_embedded_sources import generate_embedded_sources
from hatchery.artifacts.manifests import stage_run
from hatchery.raw.registration import register_source
from hatchery.raw.settings import EmbeddedSettings
from hatchery.vocabulary.settings import VocabularySettings
from hatchery.vocabulary.stages.build_vocabulary import build_vocabulary

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
MEAN_CHARACTERS = 2200
_BEFORE_MARKS = re.compile(r" ([.,;:?!)]|n't\b|'\w+\b)")
_STARTS = re.compile(r"(^|[.?!] )([a-z])")
_CORPORA = {
    "abc": "*.txt",
    "brown": "c[a-r][0-9][0-9]",
    "inaugural": "*.txt",
    "movie_reviews": "*.txt",
    "state_union": "*.txt",
    "webtext": "*.txt",
}


def paragraphs() -> Iterator[str]:
    """Yield paragraphs of running English."""
    if not (SHARED / "nltk").is_dir():
        yield from _generated()
        return
    for corpus, pattern in _CORPORA.items():
        with zipfile.ZipFile(SHARED / "nltk" / f"{corpus}.zip") as archive:
            for name in sorted(archive.namelist()):
                if not Path(name).match(pattern) or "README" in name:
                    continue
                lines = archive.read(name).decode("latin-1").splitlines()
                if corpus == "movie_reviews":
                    # A line is a sentence in this corpus; five sentences make a paragraph.
                    lines = [" ".join(lines[start : start + 5]) for start in range(0, len(lines), 5)]
                for line in lines:
                    text = " ".join(line.split())
                    if corpus == "brown":
                        text = " ".join(word.rsplit("/", 1)[0] for word in text.split(" "))
                    if corpus in ("brown", "movie_reviews"):
                        text = _BEFORE_MARKS.sub(r"\1", text)
                    if corpus == "movie_reviews":
                        text = _STARTS.sub(lambda match: match[1] + match[2].upper(), text)
                    if text:
                        yield text


def _generated() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = EmbeddedSettings(seed=0, documents=4000, pairs_per_paradigm=2, examples_per_task=2)
        with stage_run(folder / "manifest.json", {}) as run:
            generate_embedded_sources(settings, run)
        for path in sorted((folder / "c4").iterdir()):
            with gzip.open(path, "rt", encoding="utf-8") as handle:
                for line in handle:
                    yield from json.loads(line)["text"].split("\n")


def write_pages(folder: Path, characters: int, files: int = 1) -> int:
    """Write about `characters` of text as gzip-compressed JSON lines in `files` files; return the exact number of
    characters.
    """
    known = list(paragraphs())
    draw = random.Random(0)
    folder.mkdir(parents=True, exist_ok=True)
    written = 0
    for number in range(files):
        with gzip.open(folder / f"pages-{number:05d}.json.gz", "wt", encoding="utf-8", compresslevel=6) as handle:
            while written < characters * (number + 1) / files:
                start, length = draw.randrange(len(known)), draw.expovariate(1 / MEAN_CHARACTERS)
                page = ""
                while len(page) < length:
                    page += known[start % len(known)] + "\n"
                    start += 1
                row = {"text": page.strip(), "timestamp": "2019-04-25T12:57:54Z", "url": "https://example.invalid/"}
                handle.write(json.dumps(row) + "\n")
                written += len(row["text"])
    return written


def make_vocabulary(folder: Path) -> Path:
    """Build a vocabulary and return its manifest. If `aochildes_word_frequency.csv` exists, the vocabulary contains the
    words of this file, which the reduced-vocabulary study released. Otherwise, it contains 15 of every 16 words of the
    texts.
    """
    released = SHARED / "aochildes_word_frequency.csv"
    if not released.is_file():
        released = folder / "words.csv"
        words = sorted({word for text in paragraphs() for word in re.findall("[a-z]+", text.lower())})
        rows = [f"{word},1" for index, word in enumerate(words) if index % 16]
        released.write_text("word,frequency\n" + "\n".join(rows) + "\n", encoding="utf-8")
    register_source("released", released, folder / "released.json")
    settings = VocabularySettings(kind="word_list")
    with stage_run(folder / "vocabulary" / "manifest.json", {}) as run:
        build_vocabulary(settings, folder / "released.json", None, None, run)
    return folder / "vocabulary" / "manifest.json"
