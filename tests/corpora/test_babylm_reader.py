"""The BabyLM release: the files that are read, and properties that hold for any text."""

import csv
import io
import itertools
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hatchery.corpora.babylm import Treatment, collapse
from hatchery.corpora.documents import RawDocument, ReaderContext, Rejections, cut
from hatchery.corpora.readers.babylm import NORMALISERS, BabylmCorpus, BabylmOptions, files, output_lines, read
from hatchery.errors import SourceError
from hatchery.raw.obtain import register_settings
from hatchery.raw.registration import RawSource, open_source, register_source

RELEASE = {
    "babylm_data/babylm_10M/qed.train": "Ten.\n",
    "babylm_data/babylm_100M/qed.train": "Ten.\nHundred.\n",
    "babylm_data/babylm_dev/qed.dev": "Development.\n",
    "babylm_data/babylm_test/qed.test": "Test.\n",
    "babylm_data/babylm_100M/cbt.train": "Another corpus .\n",
    "babylm_data/README.md": "qed.train and so on\n",
}
SourceOf = Callable[..., RawSource]


def reading(options: BabylmOptions) -> ReaderContext:
    return ReaderContext("x", options, Rejections(), lambda paragraph: [paragraph])


def documents(source: RawSource, **options: Any) -> list[RawDocument]:
    chosen = BabylmOptions(**{"corpus": "qed", **options})
    return [document for file in files(source, chosen) for document in read(source, file, reading(chosen))]


def texts(source: RawSource, **options: Any) -> dict[str, str | None]:
    return {document.text: document.split for document in documents(source, **options)}


@pytest.mark.parametrize(
    ("track", "expected"),
    [
        ("10M", {'"Ten."': "train", '"Development."': "dev", '"Test."': "test"}),
        ("100M", {'"Ten."\n\n"Hundred."': "train", '"Development."': "dev", '"Test."': "test"}),
        ("dev", {'"Development."': "dev"}),
        ("test", {'"Test."': "test"}),
    ],
)
def test_each_track_of_the_whole_release_is_usable_alone(
    source_of: SourceOf, track: str, expected: dict[str, str]
) -> None:
    assert texts(source_of(**RELEASE), track=track) == expected


def test_folder_and_zip_of_the_release_give_the_same_documents(source_of: SourceOf, tmp_path: Path) -> None:
    folder = source_of(**RELEASE)
    archive = shutil.make_archive(str(tmp_path / "babylm_data"), "zip", folder.root)
    register_settings({"name": "zip", "path": archive}, tmp_path / "zip.json", tmp_path / "fetched")
    expected = documents(folder, track="100M")
    assert documents(open_source(tmp_path / "zip.json"), track="100M") == expected
    assert [document.doc_id for document in expected] == [
        "x/qed.train/000000",
        "x/qed.dev/000000",
        "x/qed.test/000000",
    ]


def test_the_folder_of_one_track_leaves_development_to_the_corpus(source_of: SourceOf, tmp_path: Path) -> None:
    root = source_of(**RELEASE).root / "babylm_data" / "babylm_100M"
    register_source("track", root, tmp_path / "track.json")
    source = open_source(tmp_path / "track.json")
    assert texts(source, track="100M") == texts(source) == {'"Ten."\n\n"Hundred."': None}
    with pytest.raises(SourceError, match=r"no file babylm_10M/qed\.train of the track 10M; it has qed\.train"):
        files(source, BabylmOptions("qed", track="10M"))


def test_several_tracks_without_a_choice_are_refused(source_of: SourceOf) -> None:
    with pytest.raises(SourceError, match=r"both .*10M/qed\.train and .*option `track`|both .*100M/qed\.train and"):
        files(source_of(**RELEASE), BabylmOptions("qed"))


def test_patterns_pick_files_and_refuse_two_of_one_name(source_of: SourceOf) -> None:
    source = source_of(**RELEASE)
    assert texts(source, files=("*babylm_100M/qed.train",)) == {'"Ten."\n\n"Hundred."': None}
    with pytest.raises(SourceError, match="the option `files` selects both"):
        files(source, BabylmOptions("qed", files=("qed.*",)))


def test_a_missing_corpus_is_an_error_that_names_its_files(source_of: SourceOf) -> None:
    with pytest.raises(SourceError, match=r"no file matches qed\.train, qed\.dev, qed\.test"):
        files(source_of(cbt__train="x\n"), BabylmOptions("qed"))


def test_the_reading_is_an_option(source_of: SourceOf) -> None:
    source = source_of(gutenberg__train="Only paragraph.\n")
    assert texts(source, corpus="gutenberg") == {"Only paragraph.": None}
    assert texts(source, corpus="gutenberg", reading="as_published") == {}


@pytest.mark.parametrize(("limit", "sizes"), [(10, [10, 10, 5]), (None, [25]), (1, [1] * 25)])
def test_a_corpus_without_boundaries_is_cut(source_of: SourceOf, limit: int | None, sizes: list[int]) -> None:
    source = source_of(aochildes__train="".join(f"line number {index} .\n" for index in range(25)))
    found = documents(source, corpus="aochildes", lines_per_document=limit)
    assert [document.text.count("\n\n") + 1 for document in found] == sizes
    expected = "\n\n".join(f'"Line number {index}."' for index in range(25))
    assert "\n\n".join(document.text for document in found) == expected


def test_sentences_of_a_line_form_one_paragraph(source_of: SourceOf) -> None:
    source = source_of(wikipedia__dev="= = = Dog = = =\n\nA dog barks. It runs.\n\nIt sleeps.\n")
    options = BabylmOptions("wikipedia")
    context = ReaderContext("x", options, Rejections(), lambda paragraph: paragraph.replace(". ", ".\n").split("\n"))
    (document,) = read(source, "wikipedia.dev", context)
    assert document.text == "Dog\n\nA dog barks.\nIt runs.\n\nIt sleeps."
    assert document.split == "dev"


def test_the_last_document_of_a_corpus_stays_apart_from_the_first_of_the_next_file(source_of: SourceOf) -> None:
    source = source_of(qed__train="One.\n", qed__dev="Two.\n")
    assert texts(source) == {'"One."': "train", '"Two."': "dev"}


class _Endless(io.RawIOBase):
    """An endless stream of bytes; counts the bytes that are read."""

    def __init__(self, content: bytes) -> None:
        self._content = itertools.cycle([content])
        self._rest = b""
        self.taken = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while len(self._rest) < len(buffer):
            self._rest += next(self._content)
        buffer[:], self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        self.taken += len(buffer)
        return len(buffer)


class _EndlessSource(RawSource):
    def stream(self, content: bytes) -> _Endless:
        object.__setattr__(self, "handle", _Endless(content))
        return self.handle  # type: ignore[attr-defined, no-any-return]

    def open(self, name: str) -> IO[bytes]:
        return self.handle  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("how", ["as_published", "corrected"])
@pytest.mark.parametrize("corpus", sorted(NORMALISERS))
def test_documents_come_before_the_file_is_read_to_its_end(
    corpus: BabylmCorpus, how: Any, embedded_folder: Path
) -> None:
    source = _EndlessSource(Path("m"), "x", "folder", Path("raw"), {f"{corpus}.train": (1, "")})
    handle = source.stream((embedded_folder / "babylm" / f"{corpus}.train").read_bytes())
    options = BabylmOptions(corpus, reading=how)
    found = list(itertools.islice(read(source, f"{corpus}.train", reading(options)), 3))
    assert len(found) == 3
    assert handle.taken <= 2 << 20


def test_sizes_in_print_name_corpora_and_sources_that_exist_and_add_up(repository: Path) -> None:
    with (repository / "config" / "published" / "corpora" / "sizes.csv").open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    for corpus in ("babylm_10M", "babylm_100M"):
        block = yaml.safe_load((repository / "config" / "corpora" / f"{corpus}.yaml").read_text(encoding="utf-8"))
        sizes = {row["source"]: float(row["value"]) for row in rows if row["corpus"] == corpus}
        total = sizes.pop("total")
        assert sorted(sizes) == sorted(source["name"] for source in block["sources"]) == sorted(NORMALISERS)
        assert sum(sizes.values()) == pytest.approx(total)
    tokens = [
        (row["source"], float(row["value"]))
        for row in rows
        if row["corpus"] == "reduced_vocabulary" and row["measure"] == "tokens"
    ]
    assert sum(value for source, value in tokens if source != "total") == dict(tokens)["total"] == 1125


@pytest.mark.parametrize("track", ["10M", "100M", "dev", "test"])
def test_the_block_of_a_track_reads_all_ten_corpora_of_it(track: str, repository: Path) -> None:
    text = (repository / "config" / "corpora" / f"babylm_{track}.yaml").read_text(encoding="utf-8")
    options = [BabylmOptions(**source["options"]) for source in yaml.safe_load(text)["sources"]]
    assert {chosen.track for chosen in options} == {track}
    assert sorted(chosen.corpus for chosen in options) == sorted(NORMALISERS)


CORPORA = sorted(NORMALISERS)
BOTH_READINGS = pytest.mark.parametrize("corrected", [False, True])
EVERY_CORPUS = pytest.mark.parametrize("corpus", CORPORA)

# Fragments of the raw files, and patterns that the rules match.
FRAGMENTS = (
    "",
    " ",
    "    ",
    "Anna sang.",
    "- ",
    "-",
    ":",
    '"',
    "’s",
    " n't ",
    "``",
    " ''",
    "-LRB-",
    "_BOOK_TITLE_ : A",
    "[TAB] ",
    "[12]",
    "[[a|b]]",
    "[[File:a|b [[c]]]]",
    "[[",
    "]]",
    "= = = A = = =",
    "= = = ",
    "<i>",
    "</i>",
    "<",
    "&lt;",
    "&gt;",
    "&amp;lt;",
    "&nbsp;",
    "&#10;",
    "&#x2028;",
    "&#32;",
    "->",
    "is a city in",
    "(",
    ")",
    ".",
    "...",
    "Ã©",
    "\u2028",
    "\x85",
    "\ufeff",
    "\u00a0",
    "\x1b[0m",
    "ﬁ",
)
any_line = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=12),
    st.lists(st.sampled_from(FRAGMENTS), max_size=5).map("".join),
)
any_lines = st.lists(any_line, max_size=10)
WORDS = ("the", "Cat", "is a city in", "do n't", "Anna's", "10", "-", "- ", '"', "(", ")", ",", ".", "?", ":", "    ")
plain_line = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
plain_lines = st.lists(plain_line, max_size=12)


class Ledger(Rejections):
    """Rejections that store every sample."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def count(self, reason: str, number: int = 1, sample: str | None = None) -> None:
        assert number == 1
        assert sample
        self.lines.append(sample)


def run(corpus: BabylmCorpus, lines: Iterable[str], corrected: bool) -> tuple[list[str], list[str]]:
    """Return the output lines and the rejected lines."""
    ledger = Ledger()
    return list(output_lines(corpus, lines, Treatment(corrected, ledger))), ledger.lines


def letters(lines: Iterable[str]) -> Counter[str]:
    text = "".join(line.removeprefix("[TAB]") for line in lines)
    return Counter(character for character in text.casefold() if character.isalpha())


@BOTH_READINGS
@EVERY_CORPUS
@settings(max_examples=60)
@given(lines=any_lines)
@example(lines=list(FRAGMENTS))
@example(lines=[f"Anna {fragment} sang." for fragment in FRAGMENTS])
def test_any_text_gives_the_same_single_lines_every_time(
    corpus: BabylmCorpus, corrected: bool, lines: list[str]
) -> None:
    output, left_out = run(corpus, lines, corrected)
    assert all("\n" not in line and "\r" not in line for line in output)
    "\n".join(output).encode()
    assert run(corpus, lines, corrected) == (output, left_out)


@pytest.mark.parametrize("corpus", [corpus for corpus in CORPORA if corpus != "gutenberg"])
@settings(max_examples=80)
@given(lines=any_lines)
@example(lines=list(FRAGMENTS))
@example(lines=[f"Anna {fragment} sang." for fragment in FRAGMENTS])
def test_corrected_writes_or_counts_every_line_that_is_not_blank(corpus: BabylmCorpus, lines: list[str]) -> None:
    output, left_out = run(corpus, lines, corrected=True)
    assert sum(1 for line in lines if line.strip()) == sum(1 for line in output if line) + len(left_out)
    assert all(line.strip() == line for line in output)


@settings(max_examples=80)
@given(lines=any_lines)
@example(lines=list(FRAGMENTS))
@example(lines=[f"Anna {fragment} sang." for fragment in FRAGMENTS])
def test_corrected_gutenberg_writes_or_counts_every_line_that_is_not_blank(lines: list[str]) -> None:
    output, left_out = run("gutenberg", lines, corrected=True)
    treatment = Treatment(True, Rejections())
    cleaned = [treatment.minimal(collapse(line)) for line in lines if line.strip()]
    assert " ".join(line for line in output if line) == " ".join(text for text in cleaned if text)
    assert len(left_out) == cleaned.count("")


@BOTH_READINGS
@EVERY_CORPUS
@settings(max_examples=80)
@given(lines=plain_lines)
@example(lines=[f"Cat {word} the" for word in WORDS])
def test_every_letter_of_plain_english_is_written_or_counted(
    corpus: BabylmCorpus, corrected: bool, lines: list[str]
) -> None:
    output, left_out = run(corpus, lines, corrected)
    assert letters(output) + letters(left_out) == letters(lines)


@EVERY_CORPUS
@settings(max_examples=40)
@given(lines=plain_lines, lines_per_document=st.one_of(st.none(), st.integers(1, 5)))
def test_cutting_keeps_all_lines_in_order(
    corpus: BabylmCorpus, lines: list[str], lines_per_document: int | None
) -> None:
    output, _ = run(corpus, lines, corrected=True)
    documents = list(cut(output, lines_per_document))
    assert [line for document in documents for line in document] == [line for line in output if line]
    assert all(0 < len(document) <= (lines_per_document or len(output)) for document in documents)


@pytest.mark.parametrize("corpus", ["aochildes", "bnc_spoken", "open_subtitles", "qed", "switchboard"])
@settings(max_examples=40)
@given(lines=plain_lines)
@example(lines=[f"Cat {word} the" for word in WORDS])
def test_corrected_speech_repeats_no_line_within_a_document(corpus: BabylmCorpus, lines: list[str]) -> None:
    output, _ = run(corpus, lines, corrected=True)
    assert all(first != second for first, second in pairwise(output) if first)
