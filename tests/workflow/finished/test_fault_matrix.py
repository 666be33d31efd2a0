"""Every stage against damage to every kind of file that it reads: named in one line, or without influence.

The stages come from the registry and their commands from the workflow, so a new stage is in the matrix automatically,
or fails it. One observed run shows the files that a stage reads; each cell of the matrix then runs in its own process.
"""

import json
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, STDOUT, TimeoutExpired

import pytest
from faults import DAMAGE, damaged
from forked import WATCH, run
from projects import CAUSAL, STUDY_PAGE, TINY, snakemake

from hatchery.runner import arguments_of
from hatchery.stage import function_of
from hatchery.workflow.registry import STAGES

pytestmark = pytest.mark.slow

# Stages that the tiny experiment does not use. The runner compares the inputs of every stage (tests/test_runner.py).
ELSEWHERE = {
    *("import_model", "export_milestone", "select_tokenizer", "finetune_tasks", "score_suites", "translate_tests"),
    *("measure_reading", "measure_reading_times", "measure_acquisition"),
    *("write_submission", "write_multilingual_submission", "write_tables", "write_crate"),
}
# Folders of unfinished work that a stage uses if none is given.
UNFINISHED = {"pretrain": ["checkpoints"], "finetune": ["checkpoints"], "register_source": ["fetched"]}
# Files that are not compared: they contain time and place of a run, or the place of raw files.
VOLATILE = ("provenance.json", ".location.json", ".listing.json", "speed.jsonl")
SECONDS = 120


@dataclass(frozen=True)
class Outcome:
    """The status, the output and the written files (relative name to bytes) of a command."""

    status: int
    said: str
    wrote: dict[str, bytes]


@dataclass(frozen=True)
class Command:
    """A command of the workflow: the file of its call, and the other arguments of its stage."""

    stage: str
    call: str
    given: str

    def run(self, project: Path, scratch: Path, watched: Path | None = None) -> Outcome:
        """Run in a process that writes below `scratch`; add the paths of the files that it opens to `watched`.

        The process is forked from a server without threads, because a fork of this process might inherit a thread's
        lock.
        """
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        command = [sys.executable, "scripts/run.py", self.stage, self.call, self._into(scratch)]
        environment = {**os.environ, **({} if watched is None else {WATCH: str(watched)})}
        try:
            done = run(command, cwd=project, env=environment, stdout=PIPE, stderr=STDOUT, timeout=SECONDS)
        except TimeoutExpired:
            return Outcome(-signal.SIGALRM, f"not ended after {SECONDS} s", {})
        files = [path for path in scratch.rglob("*") if path.is_file() and not path.name.endswith(VOLATILE)]
        wrote = {path.relative_to(scratch).as_posix(): path.read_bytes() for path in sorted(files)}
        return Outcome(done.returncode, done.stdout.decode("utf-8", "replace"), wrote)

    def _into(self, scratch: Path) -> str:
        """Return the arguments for one process, with other output paths; the results of other jobs keep their paths."""
        places = {name for name, each in arguments_of(function_of(self.stage)).items() if each.is_place} - {"results"}
        places.add("output")
        given = json.loads(self.given)
        given |= {name: str(scratch / Path(path).name) for name, path in given.items() if name in places}
        given |= {name: str(scratch / name) for name in UNFINISHED.get(self.stage, ())}
        return json.dumps(given | {name: 1 for name in ("workers", "threads") if name in given})


def commands_of(project: Path) -> dict[str, list[Command]]:
    """Return the commands of every stage, from dry runs of all targets.

    A stage has the first command of the masked models and, if it differs, the first command of the causal model. A
    stage without either has the first command of the study.
    """
    found: dict[str, list[Command]] = {}
    for targets in (TINY, CAUSAL, (STUDY_PAGE,)):
        planned = snakemake(project, "--dry-run", "--forceall", "--printshellcmds", *targets)
        assert planned.returncode == 0, planned.stdout + planned.stderr
        first: dict[str, Command] = {}
        for line in re.findall(r"^Shell command: (.*)$", planned.stdout + planned.stderr, flags=re.MULTILINE):
            words = shlex.split(line.split(" 2>&1")[0].split(" > logs/")[0])
            if "scripts/run.py" in words:
                stage, call, given = words[words.index("scripts/run.py") + 1 :]
                first.setdefault(stage, Command(stage, call, given))
        for stage, command in first.items():
            known = found.setdefault(stage, [])
            if command not in known and (targets == CAUSAL or not known):
                known.append(command)
    return found


def kind_of(path: Path) -> str:
    """Return the file's name without numbers; filled and continued sentences are two kinds."""
    if path.name == "sentences.json" and json.loads(path.read_bytes())["task"] == "continue":
        return "continued sentences.json"
    return re.sub(r"\d+", "#", path.name) if "results" in path.parts else path.suffix or path.name


def files_read(project: Path, watched: Path) -> dict[tuple[str, str], Path]:
    """Return one file of each kind that was opened below results/ and resources/, by kind."""
    kinds: dict[tuple[str, str], Path] = {}
    for line in watched.read_text(encoding="utf-8", errors="replace").splitlines():
        path = Path(os.path.normpath(project / line))
        below = path.relative_to(project).parts if path.is_relative_to(project) else ("",)
        # The tests of the configuration compare frozen settings with their file's name.
        if below[0] in ("results", "resources") and below[1] != "settings" and path.is_file() and path.stat().st_size:
            kinds.setdefault((below[1].removesuffix("_causal"), kind_of(path)), path)
    return kinds


def damages(read: Iterable[Path]) -> Iterator[tuple[Path, Collection[str]]]:
    """Yield each file with its kinds of damage: all kinds for the first file, one or two for each of the others.

    Each file gets a changed digit, which only a checksum shows, and every second file another kind in turn.
    """
    others = [kind for kind in DAMAGE if kind != "digit changed"]
    for place, path in enumerate(read):
        more = [others[place // 2 % len(others)]] if place % 2 else []
        yield path, ["digit changed", *(others if place == 0 else more)]


def is_reported(outcome: Outcome, path: Path) -> bool:
    """Return whether the command ended with one line that names the file."""
    errors = [line for line in outcome.said.splitlines() if line.startswith("error: ")]
    return outcome.status == 1 and "Traceback" not in outcome.said and len(errors) == 1 and path.name in errors[0]


def is_on_page(stage: str, outcome: Outcome, sound: Outcome) -> bool:
    """Return whether the page of provenance names the damage; the page is written even if results are missing."""
    told = (b"Missing or changed files", b"provenance.json: ")
    before, after = b"".join(sound.wrote.values()), b"".join(outcome.wrote.values())
    return stage == "write_provenance" and outcome.status == 0 and any(after.count(t) > before.count(t) for t in told)


def may_be_gone(path: Path, damage: str, outcome: Outcome) -> bool:
    """Return whether only the time and place of a run are missing, which a page then omits."""
    return path.name == "provenance.json" and damage in ("deleted", "unreadable") and outcome.status == 0


def test_every_stage_is_in_the_matrix_or_has_no_use_in_the_tiny_experiment(commands: dict[str, list[Command]]) -> None:
    assert set(commands) & set(STAGES) | ELSEWHERE == set(STAGES)


@pytest.mark.parametrize("stage", sorted(set(STAGES) - ELSEWHERE))
def test_no_damage_to_what_a_stage_reads_is_used_silently(
    stage: str, finished_project: Path, tmp_path: Path, commands: dict[str, list[Command]]
) -> None:
    silent, cells, named = [], 0, 0
    kinds: set[tuple[str, str]] = set()
    for command in commands[stage]:
        watched = tmp_path / "opened.txt"
        watched.write_text("", encoding="utf-8")
        sound = command.run(finished_project, tmp_path / "sound", watched)
        assert sound.status == 0, sound.said
        read = files_read(finished_project, watched)
        # Of a second command, use only kinds of files that the first command has not read.
        for path, chosen in damages(path for kind, path in read.items() if kind not in kinds):
            for damage in chosen:
                with damaged(path, damage):
                    outcome = command.run(finished_project, tmp_path / "sound")
                cells += 1
                is_named = is_reported(outcome, path) or is_on_page(stage, outcome, sound)
                named += is_named
                unchanged = (outcome.status, outcome.wrote) == (0, sound.wrote)
                if not is_named and not unchanged and not may_be_gone(path, damage, outcome):
                    last = outcome.said.strip().splitlines()[-1:] or [""]
                    silent.append(f"{path.relative_to(finished_project)}, {damage}: {outcome.status}, {last[0][:200]}")
        kinds |= read.keys()
    print(f"{stage}: {cells} cells, {named} named, {cells - named - len(silent)} without influence")
    assert not silent, "\n".join(silent)


@pytest.fixture(scope="module")
def commands(study: Path) -> dict[str, list[Command]]:
    return commands_of(study)
