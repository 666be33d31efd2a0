"""The six prepared corpora of BabyLM since 2024, in every form of their distribution."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hatchery.corpora.documents import RawDocument, ReaderContext, Rejections
from hatchery.corpora.readers.babylm import BabylmOptions, files, read
from hatchery.raw.obtain import register_settings
from hatchery.raw.registration import RawSource, open_source, register_source
from hatchery.settings.base import RefusedError

SourceOf = Callable[..., RawSource]
# Invented lines in the layouts that the organisers' scripts write.
TEXT = {
    "childes": "= = = Ann/010203.cha = = =\n*MOT:\tlook at the dog .\n*CHI:\tdog [laughs] !\n"
    "= = = Ann/010300.cha = = =\n*FAT:\tit 's cold .\n",
    "bnc_spoken": "Well I never.\nDid you?\n\nThe next file.\n",
    "gutenberg": "= = = PG11 = = =\nA first paragraph. It has two sentences.\n\nA second one.\n"
    "= = = PG12 = = =\nAnother book.\n",
    "open_subtitles": "- Where to?\nHome.\n",
    "simple_wiki": "= = = Water = = =\nWater is wet.\nIt flows.\n\n= = = Fire = = =\nFire is hot.\n",
    "switchboard": "A:\tOkay.\nB:\tUh-huh.\n",
}
READ = {
    "childes": ["*MOT: look at the dog .\n\n*CHI: dog [laughs] !", "*FAT: it 's cold ."],
    "bnc_spoken": ["Well I never.\n\nDid you?", "The next file."],
    "gutenberg": ["A first paragraph. It has two sentences.\n\nA second one.", "Another book."],
    "open_subtitles": ["- Where to?\n\nHome."],
    "simple_wiki": ["Water\n\nWater is wet.\n\nIt flows.", "Fire\n\nFire is hot."],
    "switchboard": ["A: Okay.\n\nB: Uh-huh."],
}


def documents(source: RawSource, corpus: str, rejections: Rejections | None = None, **more: Any) -> list[RawDocument]:
    options = BabylmOptions(corpus, edition=2024, **more)  # type: ignore[arg-type]
    context = ReaderContext("x", options, rejections or Rejections(), lambda paragraph: [paragraph])
    return [document for file in files(source, options) for document in read(source, file, context)]


def texts(source: RawSource, corpus: str, **more: Any) -> list[str]:
    return [document.text for document in documents(source, corpus, **more)]


@pytest.mark.parametrize("corpus", TEXT)
def test_each_corpus_is_read_as_it_is_and_ends_its_documents_at_headers(source_of: SourceOf, corpus: str) -> None:
    rejections = Rejections()
    source = source_of(**{f"{corpus}.train.txt": TEXT[corpus]})
    assert [document.text for document in documents(source, corpus, rejections)] == READ[corpus]
    headers = TEXT[corpus].count("= = =") // 2 if corpus != "simple_wiki" else 0
    assert rejections.counts == ({"header with the name of a file": headers} if headers else {})


def test_speakers_may_go(source_of: SourceOf) -> None:
    source = source_of(**{f"{corpus}.train.txt": TEXT[corpus] for corpus in ("childes", "switchboard")})
    assert texts(source, "childes", speakers=False) == ["look at the dog .\n\ndog [laughs] !", "it 's cold ."]
    assert texts(source, "switchboard", speakers=False) == ["Okay.\n\nUh-huh."]


def test_folders_of_2024_files_of_2026_a_zip_and_parquet_are_one_text(source_of: SourceOf, tmp_path: Path) -> None:
    release = {f"train_10M/{name}.train": text for name, text in TEXT.items()}
    release |= {"train_100M/childes.train": "*MOT:\tmore .\n", "dev/childes.dev": "*MOT:\theld out .\n"}
    old = source_of(**release)
    assert [(document.text, document.split) for document in documents(old, "childes", track="10M")] == [
        *((text, "train") for text in READ["childes"]),
        ("*MOT: held out .", "dev"),
    ]
    assert texts(old, "childes", track="100M") == ["*MOT: more .", "*MOT: held out ."]
    archive = shutil.make_archive(str(tmp_path / "train_10M"), "zip", old.root / "train_10M")
    register_settings({"name": "zip", "path": archive}, tmp_path / "zip.json", tmp_path / "fetched")
    (tmp_path / "parquet").mkdir()
    for name, text in TEXT.items():
        lines = text.removesuffix("\n").split("\n")
        pq.write_table(pa.table({"text": lines}), tmp_path / f"parquet/{name}.train.parquet")
    register_source("parquet", tmp_path / "parquet", tmp_path / "parquet.json")
    for corpus, expected in READ.items():
        for form in ("zip", "parquet"):
            assert texts(open_source(tmp_path / f"{form}.json"), corpus) == expected


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"corpus": "childes"}, "corpus: got 'childes', expected a corpus of edition 2023: aochildes, "),
        (
            {"corpus": "qed", "edition": 2024},
            "corpus: got 'qed', expected a corpus of edition 2024: bnc_spoken, childes",
        ),
        ({"corpus": "childes", "edition": 2024, "reading": "as_published"}, "reading: got 'as_published'"),
        ({"corpus": "gutenberg", "edition": 2024, "speakers": False}, "speakers: got false"),
    ],
)
def test_what_an_edition_does_not_have_is_one_line(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(RefusedError, match=complaint):
        BabylmOptions(**options)
