"""From a call's file to the function of a stage and its manifest; wrong or altered inputs are one line."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forked
import pytest
from faults import DAMAGE
from stage_command import given_json

from hatchery.artifacts.checksums import canonical_json, sha256_file, write_checksums
from hatchery.artifacts.manifests import Manifest, StageRun, read_manifest, stage_run
from hatchery.command import read_given
from hatchery.errors import ConfigError, ManifestError, SourceError
from hatchery.job_spec import Call, paths_of, read_call
from hatchery.raw.registration import register_source
from hatchery.runner import Job, OutputPath, arguments_of, run_given, run_stage, verify_inputs
from hatchery.settings.base import Settings
from hatchery.stage import Stage, function_of, stage_files

SEEN: dict[str, Any] = {}


@dataclass(frozen=True)
class CountSettings(Settings):
    least: int


@dataclass(frozen=True)
class CountRuntime(Settings):
    threads: int = 1


@Stage(
    version=1,
    settings=lambda project: {},
    environment="analysis",
    runs_on="local",
    memory_mb=100,
    minutes=1,
    keep=True,
    input_names={"source": "source {}"},
)
def count(
    job: Job,
    settings: CountSettings,
    runtime: CountRuntime,
    corpus: Manifest,
    source: Mapping[str, Path],
    more: Sequence[Manifest],
    words: Path | None,
    scratch: OutputPath,
    run: StageRun,
    workers: int = 3,
) -> None:
    """Count."""
    SEEN.clear()
    SEEN.update(locals())
    run.add_output(run.folder / "out.txt").write_text(str(settings.least))


def altering(settings: CountSettings, corpus: Manifest, run: StageRun) -> None:
    """Alter what is read."""
    corpus.file("a.txt").write_text("other")


def joining(settings: CountSettings, first: Mapping[str, Path], second: Mapping[str, Path], output: Path) -> None:
    """Write no manifest."""


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    for name in ("corpus", "one", "two"):
        with stage_run(tmp_path / name / "manifest.json", {}) as run:
            run.add_output(run.folder / "a.txt").write_text(name)
    (tmp_path / "raw.json").write_text("{}")
    return {
        "runtime": {"threads": 2},
        "corpus": tmp_path / "corpus/manifest.json",
        "source": {"b": tmp_path / "raw.json"},
        "more": [tmp_path / "one/manifest.json", tmp_path / "two/manifest.json"],
        "scratch": tmp_path / "scratch",
    }


SETTINGS = {"stage": "count", "stage_version": 4, "least": 2}


def test_a_function_gets_settings_manifests_and_paths_and_its_manifest_names_the_inputs(
    given: dict[str, Any], tmp_path: Path
) -> None:
    output = tmp_path / "out/manifest.json"
    run_stage(count, SETTINGS, output, **given)
    assert (SEEN["settings"], SEEN["runtime"], SEEN["workers"]) == (CountSettings(2), CountRuntime(2), 3)
    assert [each.path for each in (SEEN["corpus"], *SEEN["more"])] == [given["corpus"], *given["more"]]
    assert (SEEN["source"], SEEN["words"], SEEN["scratch"]) == (given["source"], None, tmp_path / "scratch")
    made = read_manifest(output)
    assert made.settings == SETTINGS == SEEN["job"].settings
    assert set(made.inputs) == {"corpus", "source b", "more", "more_2"} == set(SEEN["job"].inputs)


def test_json_says_the_same(given: dict[str, Any], tmp_path: Path) -> None:
    run_stage(count, SETTINGS, tmp_path / "a/manifest.json", **given, workers=7)
    called = dict(SEEN)
    whole = {"settings": SETTINGS, "output": tmp_path / "b/manifest.json", "workers": 7, "words": [], **given}
    run_given(count, json.loads(given_json(whole)))
    assert {name: SEEN[name] for name in SEEN if name not in ("job", "run")} == {
        name: called[name] for name in called if name not in ("job", "run")
    }
    assert (tmp_path / "a/manifest.json").read_bytes() == (tmp_path / "b/manifest.json").read_bytes()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"corpora": "a"}, "run.py count: unknown argument 'corpora'; did you mean 'corpus'?"),
        ({"corpus": ["a", "b"]}, r"run.py count: corpus: got \['a', 'b'\], expected a path"),
        ({"source": ["a"]}, r"run.py count: source: got \['a'\], expected an object of paths"),
        ({"more": {"a": "b"}}, "run.py count: more: got {'a': 'b'}, expected a list of paths"),
        ({"workers": "7"}, "run.py count: workers: got '7', expected a number"),
        ({"output": 3}, "run.py count: output: got 3, expected a path"),
        ({"corpus": None}, "run.py count: missing arguments: corpus; `run.py count` lists all"),
    ],
)
def test_what_is_missing_unknown_or_of_another_type_is_one_line(
    changes: dict[str, Any], message: str, given: dict[str, Any], tmp_path: Path
) -> None:
    whole = {"settings": SETTINGS, "output": tmp_path / "b/manifest.json", **given, **changes}
    with pytest.raises(ConfigError, match=f"^{message}"):
        run_given(count, json.loads(given_json(whole)))


@pytest.mark.parametrize("name", ["corpus", "one", "two"])
def test_an_altered_input_is_named_before_the_function_is_called(
    name: str, given: dict[str, Any], tmp_path: Path
) -> None:
    SEEN.clear()
    (tmp_path / name / "a.txt").write_text("other")
    with pytest.raises(ManifestError, match=rf"{name}/a\.txt: "):
        run_stage(count, SETTINGS, tmp_path / "out/manifest.json", **given)
    assert not SEEN and not (tmp_path / "out/manifest.json").exists()


def test_inputs_of_two_arguments_may_have_one_name_and_both_are_compared(given: dict[str, Any], tmp_path: Path) -> None:
    both = {"first": {"same": given["more"][0]}, "second": {"same": given["more"][1]}}
    for name in ("one", "two"):
        (tmp_path / name / "a.txt").write_text("other")
        with pytest.raises(ManifestError, match=rf"{name}/a\.txt: "):
            run_stage(joining, SETTINGS, tmp_path / "out.csv", **both)
        (tmp_path / name / "a.txt").write_text(name)
    run_stage(joining, SETTINGS, tmp_path / "out.csv", **both)


def test_an_input_that_was_altered_while_it_was_read_is_named_and_no_manifest_written(
    given: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(ManifestError, match=r"corpus/a\.txt: "):
        run_stage(altering, SETTINGS, tmp_path / "out/manifest.json", corpus=given["corpus"])
    assert not (tmp_path / "out/manifest.json").exists()


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("kind", ["output", "raw file", "view"])
def test_every_damage_to_what_is_vouched_for_is_named(kind: str, damage: str, tmp_path: Path) -> None:
    file = tmp_path / "in/numbers.csv"
    file.parent.mkdir()
    file.write_text("a,b\n1,2\n" * 20)
    if kind == "output":
        given = file.with_name("manifest.json")
        with stage_run(given, {}) as run:
            run.add_output(file)
    elif kind == "raw file":
        given = tmp_path / "raw.json"
        register_source("raw", file.parent, given)
    else:
        given = file
        write_checksums([file])
    verify_inputs([given])
    DAMAGE[damage](file)
    with pytest.raises((ManifestError, SourceError), match=r"numbers\.csv"):
        verify_inputs([given])


def test_wrong_settings_are_named_by_stage_and_key(given: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^count\.least: "):
        run_stage(count, SETTINGS | {"least": "two"}, tmp_path / "out/manifest.json", **given)
    with pytest.raises(ConfigError, match=r"^runtime\.threads: "):
        run_stage(count, SETTINGS, tmp_path / "out/manifest.json", **given | {"runtime": {"threads": None}})


def test_finished_work_is_taken_where_the_stage_keeps_it(given: dict[str, Any], tmp_path: Path) -> None:
    output = tmp_path / "out/manifest.json"
    run_stage(count, SETTINGS, output, **given)
    output.unlink()
    SEEN.clear()
    run_stage(count, SETTINGS, output, **given)
    assert not SEEN and output.is_file()
    output.unlink()
    run_stage(count, SETTINGS | {"least": 3}, output, **given)
    assert SEEN["settings"] == CountSettings(3)
    output.unlink()
    # With another input, the finished result is not reused.
    run_stage(count, SETTINGS | {"least": 3}, output, **given | {"corpus": given["more"][0]})
    assert SEEN["corpus"].path == given["more"][0]


def test_a_stage_that_is_not_there_is_told_with_the_nearest(repository: Path) -> None:
    command = [sys.executable, "scripts/run.py", "pretrian", "{}"]
    done = forked.run(command, cwd=repository, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: run.py: unknown stage 'pretrian'; did you mean 'pretrain'?\n"


def test_a_stage_without_anything_says_what_it_is_given(repository: Path) -> None:
    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        done: subprocess.CompletedProcess[str] = forked.run(
            [sys.executable, "scripts/run.py", "write_cost", *words], cwd=repository, capture_output=True, text=True
        )
        return done

    done = run()
    assert done.returncode == 0 and done.stdout.startswith("usage: run.py write_cost JSON...")
    assert "  markdown: a path\n  page: a path\n" in done.stdout
    done = run('{"settings": {}}', '{"output": "x"}')
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: run.py write_cost: missing arguments: markdown, page; ")


@pytest.mark.parametrize("name", stage_files())
def test_the_file_of_a_stage_has_its_function(name: str) -> None:
    function = function_of(name)
    assert function.__name__ == name and "settings" in arguments_of(function)


CANONICAL = canonical_json({"epochs": 1, "name": "a \u2028 b\n\x85 ä"})


pytestmark = pytest.mark.usefixtures("folder_of_its_own")


def test_a_file_holds_what_a_stage_is_given() -> None:
    arguments = {"source": {"b": "one", "a": "two"}, "held_out": ["x"], "none": [], "model": "m", "nobody": {}}
    call = Call(CANONICAL, arguments)
    call.write()
    given = read_given(str(call.path))
    assert given == {**arguments, "settings": {"epochs": 1, "name": "a \u2028 b\n\x85 ä"}}
    assert list(given["source"]) == ["b", "a"]
    assert read_call(call.path).content == call.content
    assert paths_of(call.arguments.values()) == ["one", "two", "x", "m"]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("{", "the command line: not JSON: "),
        ("nowhere.json", "nowhere.json: the file cannot be read: No such file"),
        ("bytes.json", "bytes.json: the file cannot be read: not UTF-8 text"),
    ],
)
def test_what_is_no_object_is_one_line(word: str, message: str) -> None:
    Path("list.json").write_text("[]")
    Path("bytes.json").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=f"^{message}"):
        read_given(word)


@pytest.mark.parametrize("damage", [(b'"epochs":1', b'"epochs":2'), (b"one", b"two"), (b"}", b"")])
def test_an_altered_file_is_one_line_with_what_was_expected_and_found(damage: tuple[bytes, bytes]) -> None:
    call = Call(CANONICAL, {"source": {"a": "one"}})
    call.write()
    call.path.write_bytes(call.content.replace(*damage))
    found = sha256_file(call.path)[:16]
    message = (
        f"{call.path}: the specification of the job was altered: expected the SHA-256 {call.digest}..., got {found}..."
    )
    with pytest.raises(ConfigError) as error:
        read_given(str(call.path))
    assert str(error.value).startswith(message) and "\n" not in str(error.value)
    call.write()
    assert read_call(call.path).settings == CANONICAL


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir(parents=True)])
def test_a_missing_file_or_a_folder_is_one_line(make) -> None:
    make(Path("results/settings/0123456789abcdef.json"))
    with pytest.raises(
        ConfigError, match=r"results/settings/0123456789abcdef.json: the specification of the job cannot be read"
    ):
        read_call("results/settings/0123456789abcdef.json")
