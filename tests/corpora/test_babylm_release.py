"""The BabyLM reader on files: layouts of the release, splits, cuts, streaming, damaged input, and sizes in print."""

import csv
import io
import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest
import yaml

from hatchery.corpora.documents import RawDocument, ReaderContext, Rejections
from hatchery.corpora.readers.babylm import NORMALISERS, BabylmCorpus, BabylmOptions, files, read
from hatchery.errors import ConfigError, SourceError
from hatchery.raw.obtain import register_settings
from hatchery.raw.registration import RawSource, open_source, register_source
from hatchery.typed import build

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


def test_a_track_misses_its_own_file(source_of: SourceOf) -> None:
    with pytest.raises(SourceError, match=r"no file babylm_10M/cbt\.train of the track 10M; it has .*100M/cbt\.train"):
        files(source_of(**RELEASE), BabylmOptions("cbt", track="10M"))


def test_patterns_pick_files_and_refuse_two_of_one_name(source_of: SourceOf) -> None:
    source = source_of(**RELEASE)
    assert texts(source, files=("*babylm_100M/qed.train",)) == {'"Ten."\n\n"Hundred."': None}
    with pytest.raises(SourceError, match="`files` picks them"):
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


def test_lines_per_document_must_be_positive() -> None:
    with pytest.raises(ConfigError, match="lines_per_document: got 0"):
        build(BabylmOptions, {"corpus": "qed", "lines_per_document": 0})


def test_sentences_of_a_line_form_one_paragraph(source_of: SourceOf) -> None:
    source = source_of(wikipedia__dev="= = = Dog = = =\n\nA dog barks. It runs.\n\nIt sleeps.\n")
    options = BabylmOptions("wikipedia")
    told = ReaderContext("x", options, Rejections(), lambda paragraph: paragraph.replace(". ", ".\n").split("\n"))
    (document,) = read(source, "wikipedia.dev", told)
    assert document.text == "Dog\n\nA dog barks.\nIt runs.\n\nIt sleeps."
    assert document.split == "dev"


def test_the_last_document_of_a_corpus_stays_apart_from_the_first_of_the_next_file(source_of: SourceOf) -> None:
    source = source_of(qed__train="One.\n", qed__dev="Two.\n")
    assert texts(source) == {'"One."': "train", '"Two."': "dev"}


@pytest.mark.parametrize("corpus", sorted(NORMALISERS))
def test_wrong_encoding_is_an_error_that_names_file_and_byte(corpus: BabylmCorpus, source_of: SourceOf) -> None:
    source = source_of(**{f"{corpus}.train": b"Good line.\n" * 200_000 + b"bad \xe9 line\n"})
    with pytest.raises(SourceError, match=rf"{corpus}\.train: byte 2200004 is not utf-8"):
        documents(source, corpus=corpus)


class _Endless(io.RawIOBase):
    """Bytes that never end; remembers how many were taken."""

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
