"""A result that Snakemake calls up to date, although its inputs have changed, is named with the cure."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import forked
import pytest

from hatchery.artifacts.checksums import write_checksums
from hatchery.artifacts.manifests import stage_run
from hatchery.workflow.stale_results import stale_lines

SNAKEFILE = """
import sys
sys.path.insert(0, {scripts!r})
from hatchery.artifacts.checksums import write_checksums
from hatchery.artifacts.manifests import stage_run
from hatchery.workflow.stale_results import watch_stale_results

watch_stale_results(workflow, dry_run=False)

rule encode_corpus:
    input: "results/tokenizers/t/manifest.json"
    output: "results/tokens/t/manifest.json"
    run:
        with stage_run(output[0], {{}}, {{"tokenizer": input[0]}}) as made:
            made.add_output(made.folder / "ids").write_bytes(b"ids")
"""
TOKENS, TOKENIZER = "results/tokens/t/manifest.json", "results/tokenizers/t/manifest.json"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *arguments, "--", TOKENS]
    return forked.run(command, cwd=folder, capture_output=True, text=True, check=False)


def made(output: Path, **settings: int) -> None:
    with stage_run(output, settings):
        pass


@pytest.mark.slow
def test_after_a_clock_was_set_back_what_is_older_than_its_input_is_named_and_the_cure_holds(
    tmp_path: Path, repository: Path
) -> None:
    (tmp_path / "Snakefile").write_text(SNAKEFILE.format(scripts=str(repository / "scripts")), encoding="utf-8")
    made(tmp_path / TOKENIZER, seed=1)
    first = run(tmp_path)
    assert first.returncode == 0 and "warning: " not in first.stderr
    os.utime(tmp_path / TOKENS, (time.time() + 7200, time.time() + 7200))
    made(tmp_path / TOKENIZER, seed=2)
    result = run(tmp_path)
    assert "Nothing to be done" in result.stderr and result.returncode == 1
    assert [line for line in result.stderr.splitlines() if line.startswith("warning: ")] == [
        f"warning: wrongly considered up to date: {TOKENS} was made from other content of its input "
        "'tokenizer' than the file contains now; to make this result again, give the same command with --forcerun "
        "encode_corpus"
    ]
    forced = run(tmp_path, "--forcerun", "encode_corpus")
    assert forced.returncode == 0 and "warning: " not in forced.stderr


def test_inputs_that_are_gone_and_dates_ahead_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made(Path(TOKENIZER))
    with stage_run(TOKENS, {}, {"tokenizer": TOKENIZER}):
        pass
    job = SimpleNamespace(rule=SimpleNamespace(name="encode_corpus"), input=[TOKENIZER], output=[TOKENS])
    assert list(stale_lines([job])) == []
    # Snakemake's input may be another file, such as the manifest of a job with several outputs.
    job.input = ["results/jobs/manifest.json"]
    made(Path(job.input[0]), other=1)
    assert list(stale_lines([job])) == []
    os.utime(TOKENS, (time.time() + 7200, time.time() + 7200))
    ((line, is_wrong),) = stale_lines([job])
    assert not is_wrong and line.startswith(
        f"{TOKENS}: its modification time is 2 h 00 min ahead of this machine's clock"
    )
    assert line.endswith("--forcerun encode_corpus")
    Path(TOKENIZER).unlink()
    ((line, is_wrong),) = stale_lines([job])
    assert not is_wrong
    assert f"{TOKENS} was made from {TOKENIZER}, which no longer exists; to make this result again" in line
    # A second result of the same rule has an input with other content.
    other, others_tokenizer = (Path(name.replace("/t/", "/u/")) for name in (TOKENS, TOKENIZER))
    made(others_tokenizer, seed=1)
    with stage_run(other, {}, {"tokenizer": others_tokenizer}):
        pass
    made(others_tokenizer, seed=2)
    second = SimpleNamespace(rule=job.rule, output=[other])
    for jobs in ([job, second], [second, job]):
        assert [found.is_wrong for found in stale_lines(jobs)] == [True]
    # Results of two further rules have inputs that no longer exist.
    rules = ["pretrain", "train_tokenizer"]
    further = [SimpleNamespace(rule=SimpleNamespace(name=name), output=[TOKENS]) for name in rules]
    ((line, is_wrong),) = stale_lines([second, *further])
    assert is_wrong and line.startswith(f"wrongly considered up to date: {other} ")
    assert "than the file contains now (and results of 2 more rules); to make these results again" in line
    assert line.endswith("--forcerun encode_corpus pretrain train_tokenizer")
    ((line, is_wrong),) = stale_lines(further)
    assert not is_wrong and line.startswith("considered up to date, but perhaps outdated: ")


def test_last_results_that_were_altered_or_exchanged_between_experiments_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one, other = (Path("results") / name for name in ("one", "other"))
    for folder in (one, other):
        made(folder / "analyses/best/manifest.json")
        (folder / "submission.json").write_text(folder.name, encoding="utf-8")
        write_checksums([folder / "submission.json"])
    jobs = [
        SimpleNamespace(rule=SimpleNamespace(name=rule), output=[one / output])
        for rule, output in (("analyse", "analyses/best/manifest.json"), ("write_submission", "submission.json"))
    ]
    assert list(stale_lines(jobs)) == []
    for old, new in ((one, "kept"), (other, one), ("kept", other)):
        Path(old).rename(new)
    assert all(line.is_wrong for line in stale_lines(jobs))
    found = [line.text for job in jobs for line in stale_lines([job])]
    assert found[0].startswith(
        f"{one}/analyses/best/manifest.json: the result was made in results/other/analyses/best; move the result"
    )
    assert found[1].startswith(f"{one}/submission.json: the file was made in results/other/, expected a file made in")
    assert [line.text.partition(" (")[2] for line in stale_lines(jobs)] == ["1 more results were altered)"]
