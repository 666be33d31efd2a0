"""Bad input through the real commands: exit code 1, one line that names file and place, and nothing half-written."""

import json
import os
import random
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forked
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hatchery.artifacts.checksums import digest, sha256_file
from hatchery.raw.registration import register_source

HEADER = "<teiHeader><fileDesc><sourceDesc><bibl><title>T</title></bibl></sourceDesc></fileDesc></teiHeader>"
SENTENCE = "<p><s><w>Hello </w><w>there</w><c>.</c></s></p>"
GOOD = f"<bncDoc>{HEADER}\n<wtext>\n{SENTENCE}\n</wtext></bncDoc>"
SPOKEN = f'<bncDoc>{HEADER}\n<stext>\n<u who="PS0"><s><w>Hi</w></s></u>\n<u><s><w>Hi</w></s></u>\n</stext></bncDoc>'
BOMB = (
    '<?xml version="1.0"?>\n<!DOCTYPE b [\n<!ENTITY a0 "' + "ha" * 500 + '">'
    + "".join(f'<!ENTITY a{level + 1} "{f"&a{level};" * 20}">' for level in range(9))
    + f"]>\n<bncDoc>{HEADER}<wtext>&a9;</wtext></bncDoc>"
)  # fmt: skip
RAW_TEXT = {"format": "json_lines", "files": ["*.jsonl"]}


@dataclass(frozen=True)
class Finished:
    """How a command ended."""

    code: int
    stderr: str

    @property
    def error(self) -> str:
        """The one line of the error, after checking that it is one and that there is no traceback."""
        assert self.code == 1, self.stderr
        assert "Traceback" not in self.stderr
        lines = [line for line in self.stderr.splitlines() if line.startswith("error: ")]
        assert len(lines) == 1, self.stderr
        assert self.stderr.splitlines()[-1] == lines[0]
        return lines[0]


Command = Callable[..., Finished]


@pytest.fixture
def command(repository: Path) -> Command:
    def run(name: str, settings: dict[str, Any], *arguments: str | Path) -> Finished:
        script = repository / "scripts" / "run.py"
        finished = forked.run(
            [sys.executable, script, name, "--settings", json.dumps(settings), *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        return Finished(finished.returncode, finished.stderr)

    return run


def convert(
    command: Command,
    manifest: Path,
    output: Path,
    reader: str = "bnc_xml",
    options: dict[str, Any] | None = None,
    workers: int = 1,
) -> Finished:
    settings = {"sources": [{"name": "raw", "reader": reader, "options": options or {}}]}
    arguments = ("--source", f"raw={manifest}", "--workers", str(workers), "--output", output / "manifest.json")
    return command("convert_corpus", settings, *arguments)


def assert_nothing_half_written(output: Path) -> None:
    """Nothing lies in the folder but finished parts, each as large as its facts say and readable to the end."""
    if not output.exists():
        return
    assert [path.name for path in output.iterdir() if path.name != ".parts"] == []
    parts = list((output / ".parts").iterdir()) if (output / ".parts").exists() else []
    assert not [path for path in parts if path.suffix == ".partial"]
    facts = {path.stem: json.loads(path.read_text()) for path in parts if path.suffix == ".json"}
    assert {path.name for path in parts if path.suffix != ".json"} == set(facts)
    for name, known in facts.items():
        assert known["sha256"] == digest([sha256_file(output / ".parts" / name), known["facts"]])
        assert pq.read_table(output / ".parts" / name).num_rows == known["facts"]["documents"]


def made_source(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / "raw" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    register_source("raw", folder / "raw", folder / "raw.json")
    return folder / "raw.json"


BAD_FILES: dict[str, tuple[str, dict[str, Any], str, bytes, str]] = {
    "truncated XML": ("bnc_xml", {}, "B.xml", GOOD.encode()[:-30], "line 3: not well-formed XML"),
    "unknown element": ("bnc_xml", {}, "B.xml", GOOD.replace("<p>", "<zzz/><p>").encode(), "line 3: element <zzz>"),
    "empty XML file": ("bnc_xml", {}, "B.xml", b"", "line 1: the file is empty"),
    "turn without who": ("bnc_xml", {}, "B.xml", SPOKEN.encode(), "line 4"),
    "entity bomb": ("bnc_xml", {}, "B.xml", BOMB.encode(), "line 3: the text declares XML entities"),
    "XML in another encoding": ("bnc_xml", {}, "B.xml", GOOD.replace("Hello", "H\xe9llo").encode("latin-1"), "line 3"),
    "text in another encoding": ("plain_text", {}, "b.txt", b"Good.\ncaf\xe9\n", "byte 9 is not utf-8"),
    "JSON lines cut": ("raw_text", RAW_TEXT, "b.jsonl", b'{"text": "Good."}\n{"text": "Tru', "line 2"),
    "JSON lines without the field": ("raw_text", RAW_TEXT, "b.jsonl", b'{"body": "Good."}\n', "line 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_among_good_ones_is_told_by_file_and_place(case: str, command: Command, tmp_path: Path) -> None:
    reader, options, name, content, place = BAD_FILES[case]
    good = {"B.xml": GOOD.encode(), "b.txt": b"Good. Text.\n", "b.jsonl": b'{"text": "Good."}\n'}[name]
    manifest = made_source(tmp_path, {f"A{name}": good, name: content, f"C{name}": good})
    error = convert(command, manifest, tmp_path / "out", reader, options).error
    assert f"{name}: {place}" in error
    assert_nothing_half_written(tmp_path / "out")


def test_parts_that_were_finished_before_the_error_are_kept_whole(command: Command, tmp_path: Path) -> None:
    # Three tasks: the large file is divided in two pieces, and the other is a group of its own.
    large = b"One sentence of many" * 840_000 + b"."
    manifest = made_source(tmp_path, {"a.txt": large, "b.txt": b"caf\xe9"})
    for workers in (1, 2):
        output = tmp_path / f"out{workers}"
        assert "b.txt: byte 3 is not utf-8" in convert(command, manifest, output, "plain_text", workers=workers).error
        assert_nothing_half_written(output)
        assert len(list((output / ".parts").glob("*.json"))) == 2


@pytest.mark.parametrize("change", ["size", "content"])
def test_a_file_that_changed_since_it_was_registered_is_told(change: str, command: Command, tmp_path: Path) -> None:
    manifest = made_source(tmp_path, {"a.txt": b"First text.", "b.txt": b"Second text."})
    (tmp_path / "raw" / "b.txt").write_bytes(b"Another text, longer." if change == "size" else b"Sec0nd text.")
    error = convert(command, manifest, tmp_path / "out", "plain_text").error
    assert "b.txt" in error
    assert "to register it as it is now: snakemake" in error
    assert_nothing_half_written(tmp_path / "out")


def test_a_file_that_is_gone_is_told(command: Command, tmp_path: Path) -> None:
    manifest = made_source(tmp_path, {"a.txt": b"First text.", "b.txt": b"Second text."})
    (tmp_path / "raw" / "b.txt").unlink()
    assert "b.txt" in convert(command, manifest, tmp_path / "out", "plain_text").error
    assert_nothing_half_written(tmp_path / "out")


def make_zip(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


@pytest.fixture
def register(command: Command, tmp_path: Path) -> Callable[[Path], Finished]:
    def run(path: Path) -> Finished:
        settings = {"name": "raw", "path": str(path)}
        return command(
            "register_source", settings, "--output", tmp_path / "raw.json", "--fetched", tmp_path / "fetched"
        )

    return run


def test_a_truncated_zip_is_refused_when_it_is_registered(register: Callable[[Path], Finished], tmp_path: Path) -> None:
    path = tmp_path / "raw.zip"
    make_zip(path, {"Texts/A.xml": GOOD.encode() * 100, "Texts/B.xml": GOOD.encode()})
    path.write_bytes(path.read_bytes()[:-40])
    assert "raw.zip" in register(path).error
    assert not (tmp_path / "raw.json").exists()
    assert not (tmp_path / "raw.location.json").exists()


@pytest.mark.parametrize("name", ["../escaped.xml", "Texts/../../escaped.xml", "/escaped.xml"])
def test_a_zip_with_paths_outside_is_refused(name: str, register: Callable[[Path], Finished], tmp_path: Path) -> None:
    folder = tmp_path / "inner" / "deep"
    folder.mkdir(parents=True)
    make_zip(folder / "raw.zip", {"Texts/A.xml": GOOD.encode(), name: GOOD.encode()})
    error = register(folder / "raw.zip").error
    assert "raw.zip" in error
    assert "escaped.xml" in error
    assert not list(tmp_path.rglob("escaped.xml"))
    assert not (tmp_path / "raw.json").exists()


def incompressible(megabytes: float, seed: int) -> bytes:
    words = random.Random(seed)
    return " ".join(f"{words.getrandbits(128):032x}." for _ in range(int(megabytes * 1e6 / 34))).encode()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("megabytes", "stage"), [(4, "while parts are written"), (1.3, "while shards are written")])
def test_a_full_disk_is_told_and_leaves_nothing_half_written(
    megabytes: float, stage: str, workers: int, command: Command, tmp_path: Path, small_disk: Path
) -> None:
    manifest = made_source(tmp_path, {f"{n}.txt": incompressible(megabytes / 2, n) for n in range(2)})
    error = convert(command, manifest, small_disk / "out", "plain_text", workers=workers).error
    assert "No space left on device" in error
    assert str(small_disk) in error
    assert_nothing_half_written(small_disk / "out")


def test_the_check_for_half_written_files_finds_them(tmp_path: Path) -> None:
    parts = tmp_path / "out" / ".parts"
    parts.mkdir(parents=True)
    pq.write_table(pa.table({"a": [1, 2]}), parts / "one")
    facts = {"documents": 2}
    known = {"sha256": digest([sha256_file(parts / "one"), facts]), "facts": facts}
    (parts / "one.json").write_text(json.dumps(known))
    assert_nothing_half_written(tmp_path / "out")
    (parts / "two").write_bytes(b"half")
    with pytest.raises(AssertionError):
        assert_nothing_half_written(tmp_path / "out")
    (parts / "two").unlink()
    (tmp_path / "out" / "train-00000-of-00001.parquet").write_bytes(b"half")
    with pytest.raises(AssertionError):
        assert_nothing_half_written(tmp_path / "out")
