"""Settings and lists of inputs travel in files that are named by their content, and are compared with their names."""

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from hatchery.artifacts.checksums import canonical_json, sha256_file
from hatchery.command import expanded, load_settings, named_paths
from hatchery.errors import ConfigError
from hatchery.job_spec import Call, read_call

SETTINGS = canonical_json({"epochs": 1, "name": "a \u2028 b\n\x85 ä"})


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_file_stands_for_the_arguments_of_the_command_line() -> None:
    call = Call(
        SETTINGS, {"source": {"b": "one", "a": "two"}, "held_out": ["x"], "none": [], "model": "m", "nobody": {}}
    )
    call.write()
    words = expanded([f"@{call.path}", "--output", "o"])
    assert words[:2] == ["--settings", SETTINGS]
    assert words[2:] == ["--source", "b=one", "a=two", "--held-out", "x", "--model", "m", "--output", "o"]
    assert load_settings(words[1])["name"] == "a \u2028 b\n\x85 ä"
    assert read_call(call.path).content == call.content


def test_lists_of_a_thousand_models_with_forty_tasks_reach_a_command() -> None:
    # Linux allows 128 KiB for one argument, and the command of a rule is one argument of its shell.
    names = {
        f"m{model}-s1:task_{task}": f"results/finetuning/m{model}/t{task}"
        for model in range(1000)
        for task in range(40)
    }
    call = Call(SETTINGS, {"finetuning": names})
    call.write()
    parser = argparse.ArgumentParser()
    parser.add_argument("--settings")
    parser.add_argument("--finetuning", nargs="+", action="extend")
    assert len(named_paths(parser.parse_args(expanded([f"@{call.path}"])).finetuning)) == 40_000


@pytest.mark.parametrize("damage", [(b'"epochs":1', b'"epochs":2'), (b"one", b"two"), (b"}", b"")])
def test_an_altered_file_is_one_line_with_what_was_expected_and_found(damage: tuple[bytes, bytes]) -> None:
    call = Call(SETTINGS, {"source": {"a": "one"}})
    call.write()
    call.path.write_bytes(call.content.replace(*damage))
    found = sha256_file(call.path)[:16]
    message = f"{call.path}: the settings were altered: expected the SHA-256 {call.digest}..., found {found}..."
    with pytest.raises(ConfigError) as error:
        expanded([f"@{call.path}"])
    assert str(error.value).startswith(message) and "\n" not in str(error.value)
    call.write()
    assert read_call(call.path).settings == SETTINGS


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir(parents=True)])
def test_a_missing_file_or_a_folder_is_one_line(make) -> None:
    make(Path("results/settings/0123456789abcdef.json"))
    with pytest.raises(ConfigError, match=r"results/settings/0123456789abcdef.json: the settings file cannot be read"):
        read_call("results/settings/0123456789abcdef.json")


def test_an_altered_file_ends_a_command_in_one_line(repository: Path) -> None:
    call = Call(SETTINGS, {})
    call.write()
    call.path.write_bytes(call.content.replace(b":1", b":2"))
    command = [
        sys.executable,
        str(repository / "scripts/run.py"),
        "write_cost",
        f"@{call.path}",
        "--output",
        "a",
        "--markdown",
        "b",
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1 and result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: {call.path}: the settings were altered: expected the SHA-256 ")


@pytest.mark.parametrize(
    "path", sorted(Path(__file__).resolve().parents[1].glob("workflow/rules/*.smk")), ids=lambda p: p.stem
)
def test_no_rule_puts_settings_or_lists_on_the_command_line_and_every_log_is_seen(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "--settings" not in text
    for command in text.split("    shell:\n")[1:]:
        assert "{params.settings" not in command
        assert "> {log}" not in command and "tee {log}" in command
