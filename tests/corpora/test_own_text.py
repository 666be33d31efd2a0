"""The user's own text in any form: documents that can be held out, equal for any number of processes."""

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hatchery.artifacts.manifests import Manifest, read_manifest, stage_run
from hatchery.artifacts.parquet import read_tables
from hatchery.corpora.documents import ReaderContext, Rejections
from hatchery.corpora.plain_text_options import PlainTextOptions
from hatchery.corpora.readers.plain_text import read
from hatchery.corpora.settings import ConvertSettings
from hatchery.corpora.stages.convert_corpus import convert_corpus
from hatchery.errors import CorpusError, SourceError
from hatchery.raw.registration import RawSource, register_source
from hatchery.typed import build

Sources = Callable[..., RawSource]
PARAGRAPH = "Some words of a letter that somebody wrote, é, and\nwent on to write. More of it came.\n\n"


def convert(root: Path, output: Path, workers: int = 1, **settings: Any) -> Manifest:
    manifest = output / "source.json"
    output.mkdir(parents=True, exist_ok=True)
    register_source("mine", root, manifest)
    options = settings.pop("options", {})
    body = {"sources": [{"name": "mine", "reader": "plain_text", "options": options}], **settings}
    with stage_run(output / "manifest.json", {"stage": "convert_corpus", **body}, {"mine": manifest}) as run:
        convert_corpus(build(ConvertSettings, body), {"mine": manifest}, run, workers=workers)
    return read_manifest(output / "manifest.json")


def rows_of(manifest: Manifest) -> list[tuple[str, str, str]]:
    rows = read_tables(manifest.files(".parquet")).to_pylist()
    return sorted((row["doc_id"], row["split"], row["text"]) for row in rows)


@pytest.mark.parametrize(
    "text", [PARAGRAPH * 200, PARAGRAPH.replace("\n\n", "\n") * 500, PARAGRAPH.split("\n")[0] * 2000]
)
def test_one_text_file_gives_documents_for_training_and_for_development(text: str, tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text(text)
    measures = convert(tmp_path / "book.txt", tmp_path / "out").measures
    assert measures["dev"]["documents"] >= 1
    assert measures["train"]["documents"] >= 1


@pytest.mark.parametrize("form", ["csv", "jsonl", "txt"])
def test_thirty_documents_have_one_for_development_whatever_the_seed(form: str, tmp_path: Path) -> None:
    root = tmp_path / "raw"
    root.mkdir()
    if form == "txt":
        for index in range(30):
            (root / f"{index}.txt").write_text(f"Letter number {index}.")
    elif form == "csv":
        (root / "a.csv").write_text("text\n" + "".join(f"Letter {index}.\n" for index in range(30)))
    else:
        (root / "a.jsonl").write_text("".join(f'{{"text": "Letter {index}."}}\n' for index in range(30)))
    for seed in range(8):
        split = {"development_fraction": 0.02, "seed": seed}
        assert convert(root, tmp_path / f"{seed}", split=split).measures["dev"]["documents"] >= 1


def test_a_corpus_of_one_document_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("A short note.")
    with pytest.raises(CorpusError, match=r"only one document.*lines_per_document.*development_fraction to 0"):
        convert(tmp_path / "note.txt", tmp_path / "out")
    none = convert(tmp_path / "note.txt", tmp_path / "out", split={"development_fraction": 0.0})
    assert none.measures["train"]["documents"] == 1


def test_files_are_cut_where_there_are_few_of_them_or_when_they_are_long(source_of: Sources) -> None:
    source = source_of(a__txt=PARAGRAPH * 100, b__txt=PARAGRAPH * 12_000)

    def names(file: str, files: int, **options: Any) -> list[str]:
        reading = ReaderContext("mine", PlainTextOptions(**options), Rejections(), lambda text: [text], files)
        return [document.doc_id for document in read(source, file, reading)]

    assert names("a.txt", 20) == ["mine/a.txt"]
    assert names("a.txt", 19)[:2] == ["mine/a.txt/000000", "mine/a.txt/000001"]
    assert len(names("b.txt", 20)) > 100
    assert names("b.txt", 1, cut_files="never") == ["mine/b.txt"]
    assert len(names("a.txt", 20, cut_files="always")) > 1
    assert len(names("a.txt", 1, lines_per_document=60)) == 2


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def set_to(size: int) -> None:
        for module in ("file_groups", "text_files"):
            monkeypatch.setattr(f"hatchery.corpora.{module}.PIECE_BYTES", size)

    return set_to


def test_a_large_file_gives_the_same_corpus_whatever_its_division(
    pieces: Callable[[int], None], tmp_path: Path
) -> None:
    root = tmp_path / "raw"
    root.mkdir()
    (root / "a.txt").write_text("\ufeffBefore it.")
    (root / "b.txt").write_bytes("".join(f"{index}. {PARAGRAPH}" for index in range(2000)).encode())
    (root / "c.txt").write_text("After it.")
    found = []
    for size, workers in ((1 << 30, 1), (20_000, 2), (50_001, 2)):
        pieces(size)
        convert(root, tmp_path / f"{size}", workers)
        found.append((tmp_path / f"{size}" / "manifest.json").read_bytes())
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("form", ["gz", "utf-16", "cp1252"])
def test_a_large_file_is_divided_in_any_encoding_and_compressed(
    form: str, pieces: Callable[[int], None], tmp_path: Path
) -> None:
    text = "".join(f"{index}. {PARAGRAPH}" for index in range(2000))
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain/a.txt").write_text(text)
    pieces(1 << 30)
    expected = [row[2] for row in rows_of(convert(tmp_path / "plain", tmp_path / "expected"))]
    encoding = form if form in ("utf-16", "cp1252") else "utf-8"
    root = tmp_path / "raw"
    root.mkdir()
    if form == "gz":
        (root / "a.txt.gz").write_bytes(gzip.compress(text.encode()))
    else:
        (root / "a.txt").write_bytes(text.encode(encoding))
    options = {"files": "*", "encoding": encoding}
    pieces(1_000 if form == "gz" else 30_000)
    divided = convert(root, tmp_path / "divided", workers=2, options=options)
    pieces(1 << 30)
    whole = convert(root, tmp_path / "whole", options=options)
    assert rows_of(divided) == rows_of(whole)
    if form != "cp1252":
        assert [row[2] for row in rows_of(divided)] == expected


@pytest.mark.parametrize("end", ["\n\n", "\n", " "])
def test_memory_stays_flat_as_one_text_grows_whatever_its_lines(end: str, source_of: Sources) -> None:
    def peak_bytes(copies: int) -> int:
        source = source_of(a__txt=f"A sentence of several words that says nothing new.{end}" * copies)
        reading = ReaderContext("mine", PlainTextOptions(cleaning="none"), Rejections(), lambda text: [text], 1)
        tracemalloc.start()
        for _ in read(source, "a.txt", reading):
            pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    # Because both files are longer than the blocks of one megabyte in which files are read.
    assert peak_bytes(120_000) < 1.3 * peak_bytes(40_000)


TYPOGRAPHY = "Die „Straße“ war leer; l’été – ‚so‘ … ﬁn, ½\u00a0Ａ\u200b e\u0301 &amp; <i>\t zwei  Leerzeichen"


NO_SPLIT = {"development_fraction": 0.0}


def lines_in(manifest: Manifest) -> list[str]:
    return [line for _, _, text in rows_of(manifest) for line in text.split("\n")]


@pytest.mark.parametrize("ending", ["txt", "md", "csv", "tsv", "jsonl"])
def test_a_file_with_an_utterance_per_line_is_read_as_it_is(ending: str, tmp_path: Path) -> None:
    lines = [f"{index}: {TYPOGRAPHY}" for index in range(40)] + ["Der 3. Oktober. Usw. und so weiter.", "no no"] * 200
    content = {
        "csv": "text\n" + "\n".join(f'"{line}"' for line in lines),
        "tsv": "text\n" + "\n".join(f'"{line}"' for line in lines),
        "jsonl": "\n".join(json.dumps({"text": line}) for line in lines),
    }.get(ending, "\n".join(lines))
    path = tmp_path / f"mine.{ending}"
    path.write_text(content, encoding="utf-8")
    manifest = convert(path, tmp_path / "out", languages=["en"], split=NO_SPLIT)
    assert sorted(line for line in lines_in(manifest) if line) == sorted(lines)
    if ending in ("txt", "md"):
        assert lines_in(manifest) == lines


def test_white_space_at_line_ends_and_nul_go_and_blank_lines_become_one(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_bytes("\ufeff eins \t\r\nzwei\0\r\r\n\n \n\u3000drei\u2028vier".encode())
    manifest = convert(path, tmp_path / "out", split=NO_SPLIT)
    assert [text for _, _, text in rows_of(manifest)] == ["eins\nzwei\n\ndrei\u2028vier"]


@pytest.mark.parametrize(
    ("languages", "expected"),
    [
        (["en"], ["Mr. Finch  said „no“.", "He went to the garden behind the house of his sister"]),
        ([], ["Mr. Finch  said „no“. He went to the garden behind the house of his sister"]),
        (["de"], ["Mr. Finch  said „no“. He went to the garden behind the house of his sister"]),
        (["de", "en"], ["Mr. Finch  said „no“. He went to the garden behind the house of his sister"]),
    ],
)
def test_wrapped_paragraphs_are_cut_as_english_only_where_the_corpus_says_so(
    languages: list[str], expected: list[str], tmp_path: Path
) -> None:
    lines = ["Mr. Finch  said „no“. He went to the garden behind the house", "of his sister", ""] * 30
    (tmp_path / "mine.txt").write_text("\n".join(lines))
    manifest = convert(tmp_path / "mine.txt", tmp_path / "out", languages=languages, split=NO_SPLIT)
    found = [line for line in lines_in(manifest) if line]
    assert found == expected * 30
    assumed = (tmp_path / "out/assumed.csv").read_text()
    cut = "cut into sentences as English" if languages == ["en"] else "not cut into sentences"
    assert cut in assumed and "wrapped lines joined" in assumed


def test_what_was_assumed_and_what_was_not_read_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "raw"
    root.mkdir()
    (root / "a.md").write_text("Eine schÃ¶ne Zeile\nnoch eine\n" * 20)
    (root / "b.txt").write_text("\n".join(["Vieles, was hier steht, ist an einem Rand umbrochen worden,", "weil"] * 20))
    for name in ("c.docx", "d.docx", "LIESMICH"):
        (root / name).write_text("x")
    convert(root, tmp_path / "out", split=NO_SPLIT)
    assert (tmp_path / "out/assumed.csv").read_text().splitlines()[1:] == [
        "mine,line or paragraph whose broken encoding was repaired,20",
        "mine,lines kept as they are,1",
        'mine,"wrapped lines joined to paragraphs, not cut into sentences (sentences: punkt:<language> does)",1',
    ]
    # Other files of the folder do not affect the corpus.
    assert not (tmp_path / "out/rejected.csv").read_text().splitlines()[1:]
    messages = capsys.readouterr().err
    repaired = "20 x line or paragraph whose broken encoding was repaired"
    assert f"assumptions about the text (assumed.csv): {repaired}, 1 x lines kept" in messages
    assert "source 'mine': files not read: 2 x .docx, 1 x no ending" in messages
    # If the options name the files and the meaning of a line, there are no messages.
    convert(root, tmp_path / "said", options={"files": "*.md", "sentences": "line", "cleaning": "none"}, split=NO_SPLIT)
    assert not (tmp_path / "said/assumed.csv").exists()
    assert "files not read" not in capsys.readouterr().err


def test_of_a_data_set_of_the_hub_the_data_is_read_and_not_what_describes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "raw/data").mkdir(parents=True)
    (tmp_path / "raw/README.md").write_text("---\nlicense: mit\n---\n# What this is\n")
    (tmp_path / "raw/dataset_infos.json").write_text('{\n "default": {}\n}')
    texts = {"id": [1, 2, 3], "text": ["Der erste.\n\nUnd mehr.", None, "Der dritte."], "kind": ["a", "a", "b"]}
    pq.write_table(pa.table(texts), tmp_path / "raw/data/train-00000-of-00001.parquet", row_group_size=2)
    manifest = convert(tmp_path / "raw", tmp_path / "out", split=NO_SPLIT)
    file = "mine/data/train-00000-of-00001.parquet"
    assert rows_of(manifest) == [
        (f"{file}/000000", "train", "Der erste.\n\nUnd mehr."),
        (f"{file}/000002", "train", "Der dritte."),
    ]
    rejected = manifest.file("rejected.csv").read_text().splitlines()[1:]
    assert rejected == ["mine,row without text,1"]
    assert "source 'mine': files not read: 1 x README.md, 1 x dataset_infos.json" in capsys.readouterr().err
    manifest = convert(tmp_path / "raw", tmp_path / "one", options={"keep": {"kind": ["b"]}}, split=NO_SPLIT)
    assert [doc_id for doc_id, *_ in rows_of(manifest)] == [f"{file}/000002"]
    manifest = convert(tmp_path / "raw", tmp_path / "kinds", options={"document_column": "kind"}, split=NO_SPLIT)
    assert [doc_id for doc_id, *_ in rows_of(manifest)] == [f"{file}/a", f"{file}/b"]
    with pytest.raises(SourceError, match=r"there is no column 'body'; there are: id, kind, text"):
        convert(tmp_path / "raw", tmp_path / "none", options={"column": "body"})


def test_a_table_with_tabs_has_as_many_rows_as_lines_whatever_its_quotes(tmp_path: Path) -> None:
    rows = [
        '"He went."\t1',
        'a 5" pipe\t2',
        '"No, he said\t3',
        'Yes"\t4',
        '"So ""big"" it is"\t5',
        '"\t6',
        'x "y" z\t7',
        '"So\t8"',
        '"a\tb"\t9',
    ]
    (tmp_path / "a.tsv").write_text("text\tid\n" + "\n".join(rows) + "\n")
    found = [text for _, _, text in rows_of(convert(tmp_path / "a.tsv", tmp_path / "out", split=NO_SPLIT))]
    assert found == ["He went.", 'a 5" pipe', '"No, he said', 'Yes"', 'So "big" it is', '"', 'x "y" z', '"So', "a\tb"]


@pytest.mark.parametrize("text", ["one\ntwo three\n\nfour\n", "A sentence. " * 20 + "\n"])
def test_divided_lines_give_the_same_documents_of_so_many_lines(
    text: str, pieces: Callable[[int], None], tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{number} {text}" for number in range(3000)))
    found = []
    for size in (1 << 30, 7_000):
        pieces(size)
        options = {"lines_per_document": 50}
        found.append(rows_of(convert(tmp_path / "a.txt", tmp_path / f"{size}", workers=2, options=options)))
    assert found[0] == found[1]
    assert len(found[0]) == (180 if "one" in text else 60)


def test_captions_come_back_as_they_were(real_data: Path, tmp_path: Path) -> None:
    path = real_data / "multi30k/train.de.gz"
    captions = [line.strip() for line in gzip.decompress(path.read_bytes()).decode().split("\n") if line.strip()]
    manifest = convert(path, tmp_path / "out", options={"files": "*", "format": "text"}, languages=["de"])
    assert [line for line in lines_in(manifest) if line] == captions
    assert len(captions) == 29_000
