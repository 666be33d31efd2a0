"""How fast BNC texts become documents beside lxml's bare parse of the same bytes, on generated texts.

Baseline: `lxml.etree.fromstring` of every text, the tree thrown away. Ours: the reader's whole way from bytes to
documents in both readings, its own parse included, in the same process, turn and turn about, in CPU time; the median
round counts. The limit: at most 2.5 times the bare parse. Then the same texts in 1 and in 2 processes by the clock.
Last, what our copy of the punctuation normaliser saves: sacremoses on the same blocks, where it is installed.
Usage: benchmarks/convert_bnc.py [--megabytes 10] [--rounds 7] [--processes 2]; exit code 1 above the limit.
"""

import argparse
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from lxml import etree

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from hatchery.corpora.documents import ReaderContext, Rejections
from hatchery.corpora.readers.bnc_xml import BncOptions, read
from hatchery.corpora.typography import normalise_punctuation
from hatchery.raw.registration import RawSource, open_source, register_source
from hatchery.settings.base import ReadingName

LIMIT = 2.5
TEXT_MEGABYTES = 1.0
WORD_TYPES = 20_000
# A tenth of the words of the BNC is speech.
SPOKEN_EVERY = 10
_TAGS = (("AT0", "ART"), ("NN1", "SUBST"), ("PRP", "PREP"), ("VVD", "VERB"), ("AJ0", "ADJ"), ("NN2", "SUBST"))


class TextGenerator:
    """Writes texts of Zipf-distributed invented words with the mark-up of the BNC, about 45 bytes per word."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        syllables = [c + v for c in "bcdfghklmnprstvw" for v in ("a", "e", "i", "o", "ou", "an")]
        self._types = [
            "".join(self._rng.choices(syllables, k=self._rng.choice((1, 2, 2, 3, 4)))) for _ in range(WORD_TYPES)
        ]
        self._weights = [1 / (rank + 3) for rank in range(WORD_TYPES)]
        self._sentences = 0

    def text(self, identifier: str, size_in_bytes: int, spoken: bool) -> bytes:
        """One text of about `size_in_bytes`."""
        header = (
            '<?xml version="1.0" encoding="UTF-8" standalone="no"?>\n'
            f'<bncDoc xml:id="{identifier}"><teiHeader><fileDesc>'
            f"<titleStmt><title>{identifier}. Sample containing about 9 words</title></titleStmt><sourceDesc><bibl>"
            "<title>A title. </title></bibl></sourceDesc></fileDesc><profileDesc><particDesc>"
            '<person xml:id="PS1"><persName>ada</persName></person></particDesc></profileDesc></teiHeader>\n'
        )
        body, length = [], 0
        while length < size_in_bytes:
            body.append(self._division(spoken))
            length += len(body[-1])
        tag = "stext" if spoken else "wtext"
        return f'{header}<{tag} type="X">{"".join(body)}</{tag}></bncDoc>\n'.encode()

    def _division(self, spoken: bool) -> str:
        rng = self._rng
        blocks = []
        for _ in range(40):
            if spoken:
                sentences = "".join(self._sentence(rng.randint(1, 14)) for _ in range(rng.choice((1, 1, 1, 2, 3))))
                blocks.append(f'<u who="PS{rng.randint(1, 4)}">{sentences}</u>\n')
                continue
            quoted = rng.random() < 0.3
            sentences = "".join(self._sentence(rng.randint(3, 32), quoted) for _ in range(rng.randint(1, 7)))
            kind = rng.random()
            if kind < 0.03:
                blocks.append(f"<quote><p>{sentences}</p></quote>\n")
            elif kind < 0.06:
                blocks.append(f"<list><label>{self._word('a')}</label><item>{sentences}</item></list>\n")
            else:
                blocks.append(f"<p>{sentences}</p>\n")
        number = rng.randint(1, 99)
        head = "" if spoken else f'<head type="MAIN">{self._sentence(3)}</head>\n'
        return f'<div level="1" n="{number}" type="chapter">\n{head}{"".join(blocks)}</div>\n'

    def _sentence(self, words: int, quoted: bool = False) -> str:
        rng = self._rng
        self._sentences += 1
        pieces = [f'<s n="{self._sentences}">']
        if quoted:
            pieces.append('<c c5="PUQ">‘</c>')
        for index, word in enumerate(rng.choices(self._types, self._weights, k=words)):
            last = index == words - 1
            chance = rng.random()
            comma = not last and chance < 0.06
            space = "" if last or comma else " "
            if chance > 0.98:
                pieces.append(self._word("do", "") + self._word("n't", space))
            elif chance > 0.965:
                pieces.append(self._word(f"£{rng.randint(1, 999)}", space))
            elif chance > 0.96:
                pieces.append(f'<mw c5="AV0">{self._word(word)}{self._word(word, space)}</mw>')
            elif chance > 0.955:
                pieces.append('<gap desc="name" reason="anonymization"/>' if chance > 0.957 else "<unclear/>")
            elif chance > 0.95:
                pieces.append(f'<hi rend="it">{self._word(word + "é", space)}</hi>')
            else:
                pieces.append(self._word(word.capitalize() if index == 0 else word, space))
            if comma:
                pieces.append('<c c5="PUN">, </c>')
        pieces.append('<c c5="PUN">.</c>')
        if quoted:
            pieces.append('<c c5="PUQ">’</c>')
        return "".join(pieces) + "</s>"

    def _word(self, word: str, space: str = " ") -> str:
        tag, part_of_speech = self._rng.choice(_TAGS)
        return f'<w c5="{tag}" hw={quoteattr(word)} pos="{part_of_speech}">{escape(word)}{space}</w>'


def convert(source: RawSource, names: Sequence[str], reading: ReadingName) -> list[str]:
    """The texts of the documents of some files."""
    settings = ReaderContext("bnc", BncOptions(reading=reading), Rejections(), lambda text: [text])
    return [document.text for name in names for document in read(source, name, settings)]


def convert_share(manifest: Path, names: Sequence[str]) -> int:
    """Number of characters that some files gave; for a process of its own."""
    return sum(map(len, convert(open_source(manifest), names, "corrected")))


def cpu_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def pooled_seconds(manifest: Path, names: Sequence[str], processes: int) -> tuple[float, float]:
    """Seconds by the clock, and CPU seconds of all processes, of converting the files in a pool that has started."""
    with ProcessPoolExecutor(processes) as pool:
        list(pool.map(convert_share, [manifest] * processes, [names[:1]] * processes))
        started = time.perf_counter()
        list(pool.map(convert_share, [manifest] * len(names), [[name] for name in names]))
        wall = time.perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=10.0, help="size of all texts together")
    parser.add_argument("--rounds", type=int, default=7, help="the median round of each counts")
    parser.add_argument("--processes", type=int, default=2, help="processes of the scaling run")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root, manifest = Path(folder) / "Texts", Path(folder) / "bnc.json"
        root.mkdir()
        generator = TextGenerator(seed=0)
        for number in range(max(2, round(arguments.megabytes / TEXT_MEGABYTES))):
            spoken = number % SPOKEN_EVERY == SPOKEN_EVERY - 1
            content = generator.text(f"X{number:02d}", int(TEXT_MEGABYTES * 1e6), spoken)
            (root / f"X{number:02d}.xml").write_bytes(content)
        register_source("bnc", root, manifest)
        source = open_source(manifest)
        names = source.names("*.xml")
        contents = [source.read_bytes(name) for name in names]
        size, words = sum(map(len, contents)), sum(content.count(b"<w ") for content in contents)
        ways: dict[str, Callable[[], object]] = {
            "bare parse": lambda: [etree.fromstring(content).tag for content in contents],
            "as_published": lambda: convert(source, names, "as_published"),
            "corrected": lambda: convert(source, names, "corrected"),
        }
        # The first round, in which the process still grows, does not count.
        rounds = [{way: cpu_seconds(work) for way, work in ways.items()} for _ in range(1 + arguments.rounds)][1:]
        print(f"{len(names)} texts, {size / 1e6:.1f} MB, {words:,} words, {size / words:.0f} bytes per word")
        for way in ways:
            seconds = statistics.median(times[way] for times in rounds)
            print(f"{way:14}{size / seconds / 1e6:7.1f} MB/s per core ({seconds / words * 1e9:,.0f} ns per word)")
        ratio = max(
            statistics.median(times[way] / times["bare parse"] for times in rounds)
            for way in ("as_published", "corrected")
        )
        print(f"ratio {ratio:.2f}, limit {LIMIT}: {'kept' if ratio <= LIMIT else 'MISSED'}")
        compare_normalisers(convert(source, names[:1], "as_published")[0].split("\n\n"))
        (one_wall, one_cpu), (wall, cpu) = (
            pooled_seconds(manifest, names, processes) for processes in (1, arguments.processes)
        )
        print(f"{arguments.processes} processes: {one_wall / wall:.2f} times the rate of one by the clock,", end=" ")
        # The second figure counts both pools.
        print(f"{(cpu - one_cpu) / one_cpu:.2f} times its CPU seconds")
    return 0 if ratio <= LIMIT else 1


def compare_normalisers(blocks: Sequence[str]) -> None:
    """Print how much slower the library's punctuation normaliser is; only where it is installed."""
    try:
        from sacremoses import MosesPunctNormalizer
    except ImportError:
        print("sacremoses is not installed: its normaliser was not compared")
        return
    library = MosesPunctNormalizer(lang="en", penn=False)
    ours = cpu_seconds(lambda: [normalise_punctuation(block) for block in blocks])
    theirs = cpu_seconds(lambda: [library.normalize(block) for block in blocks])
    print(f"punctuation normaliser: sacremoses takes {theirs / ours:.0f} times our time")


if __name__ == "__main__":
    sys.exit(main())
