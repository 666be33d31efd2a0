"""Check that a training that is stopped 200 times at random moments gives the same bytes as an undisturbed training.

A tiny GPT-BERT is trained. The training uses all features that a checkpoint must store: masked and causal sequences, an
average of the weights, growing batches, longer sequences at the end, milestones, a training state that is kept with the
model, and measurements of the development loss. `--seed` determines signals and moments; the machine's speed determines
the training's progress at these moments. Every attempt is stopped. Three properties of each stop are drawn:

- the signal: SIGKILL, SIGTERM, or no signal. Without a signal, the next attempt requests the run folder from the
  running attempt, which then stops.
- the moment: a number of steps after the start of the attempt, while the attempt writes a checkpoint, or at any moment,
  also before the first step
- the start of the next attempt: after this attempt has ended, or while this attempt is still running

The attempts also differ in three settings: whether the training waits while a checkpoint is written, the number of
steps between checkpoints (one to five), and whether a thread or another process draws the batches. At the end, every
file of the exported folder is compared, except files of times and speeds. The exit status is 1 if a byte differs, or if
an attempt ended in a way that its signal does not explain. Each attempt is a process, forked from a server that has
imported all modules (`tests/processes/forked.py`), so that an attempt starts in a fraction of a second.

    python benchmarks/soak.py [--kills 200] [--minutes 60] [--seed 0] [--folder FOLDER]

After `--minutes`, no attempt is stopped any more, and the last attempt runs to the end.
"""

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "processes"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from forked import Forked
from stage_command import stage_command

from demo.documents import story
from demo.grammar import text_of
from hatchery.artifacts.manifests import PROVENANCE
from hatchery.corpora.stages.convert_corpus import convert_corpus
from hatchery.raw.registration import register_source
from hatchery.runner import run_stage
from hatchery.tokenization.stages.encode_corpus import encode_corpus
from hatchery.tokenization.stages.train_tokenizer import train_tokenizer
from hatchery.training.interruption import EXIT_STATUS_INTERRUPTED
from hatchery.training.telemetry import SPEED_FILE

STEPS_PER_KILL = 25
"""Steps of the training per kill, slightly more than the mean number of steps of an attempt."""
MOST_STEPS = 25
"""Largest number of steps after which an attempt is stopped, if its moment is drawn as a number of steps."""
DOCUMENTS = 150
UNCOMPARED = {PROVENANCE, SPEED_FILE}
"""Files of times and speeds, which are not compared."""
LONGEST_SECONDS = 600.0
"""Longest wait, in seconds, for the moment at which an attempt is stopped; a busy machine is slow."""


def settings(steps: int) -> dict[str, Any]:
    """Return the settings of the training; its number of steps is a multiple of 20."""
    return {
        "stage": "pretrain",
        "model": {
            "family": "gpt_bert",
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "position_bucket_size": 8,
            "max_position_embeddings": 64,
            "hidden_dropout_prob": 0.1,
            "attention_probs_dropout_prob": 0.1,
        },
        "objective": {
            "task": "hybrid",
            "segments": "blocks",
            "kind": "short_span",
            "causal_share": 0.25,
            "mask_probability": 0.3,
            "final_mask_probability": 0.15,
            "z_loss": 1e-4,
        },
        "optimizer": {"name": "lamb", "decay": "weights"},
        "schedule": {"warmup_fraction": 0.05, "cooldown_fraction": 0.02},
        "weight_average": {"decay": 0.98, "keep_raw_weights": True},
        "steps": steps,
        "sequence_length": 16,
        "batch_size": 16,
        "initial_batch_fraction": 0.5,
        "length_schedule": [{"from_fraction": 0.7, "factor": 2}, {"from_fraction": 0.9, "factor": 4}],
        "milestones": [number * steps // 20 for number in range(1, 20)],
        "keep_training_state": True,
        "precision": "fp32",
        "evaluation_interval_steps": steps // 20,
        "evaluation_sequences": 8,
        "seed": 42,
    }


def encoded_text(folder: Path) -> dict[str, Path]:
    """Convert, tokenise and encode generated stories; return the manifests that a training reads."""
    rng = random.Random(0)
    (folder / "raw").mkdir(parents=True)
    for number in range(DOCUMENTS):
        lines = [text_of(sentence) for sentence in story(rng).sentences]
        (folder / "raw" / f"{number:03}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    register_source("stories", folder / "raw", folder / "stories.json")
    corpus, tokenizer, tokens = (folder / name / "manifest.json" for name in ("corpus", "tokenizer", "tokens"))
    sources = [{"name": "stories", "reader": "plain_text", "options": {"sentences": "line"}}]
    split = {"development_fraction": 0.1}
    made_of = {"stage": "convert_corpus", "sources": sources, "split": split}
    run_stage(convert_corpus, made_of, corpus, source={"stories": folder / "stories.json"}, workers=1)
    entries = {"kind": "byte_bpe", "vocabulary_size": 384, "allow_smaller": True, "individual_digits": False}
    as_published = dict.fromkeys(("special_tokens", "normalizer", "pre_tokenizer"), "gpt_bert")
    run_stage(train_tokenizer, {"stage": "train_tokenizer", **entries, **as_published}, tokenizer, corpus=[corpus])
    run_stage(encode_corpus, {"stage": "encode_corpus"}, tokens, corpus=corpus, tokenizer=tokenizer)
    return {"tokens": tokens, "tokenizer": tokenizer}


@dataclass
class Training:
    """One training in a separate folder; any number of attempts continue this training."""

    settings: dict[str, Any]
    inputs: dict[str, Path]
    folder: Path

    @property
    def output(self) -> Path:
        """Return the manifest of the finished model."""
        return self.folder / "output" / "manifest.json"

    def start(self, number: int, **runtime: Any) -> "Attempt":
        """Start an attempt, which continues where the last attempt was stopped."""
        given = {**self.inputs, "checkpoints": self.folder / "checkpoints"}
        given["runtime"] = {"device": "cpu", "threads": 1, "log_interval_steps": 1, "keep_checkpoints": 2, **runtime}
        command = stage_command("pretrain", self.settings, self.output, **given)
        log = self.folder / f"attempt_{number}.log"
        with log.open("wb") as file:
            return Attempt(Forked(command, stdout=file, stderr=file), log)

    def finished_steps(self) -> int:
        """Return the number of steps whose metrics are written; 0 before the first checkpoint folder."""
        files = list(self.folder.glob("checkpoints/*/metrics.jsonl"))
        return files[0].read_bytes().count(b"\n") if files else 0

    def is_writing(self) -> bool:
        """True if a checkpoint is being written now."""
        return any(self.folder.glob("checkpoints/*/.step_*.partial"))

    def files(self) -> dict[str, bytes]:
        """Return the contents of the finished model's files by path, without the files of times and speeds."""
        folder = self.output.parent
        places = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}
        return {place: path.read_bytes() for place, path in places.items() if path.name not in UNCOMPARED}


@dataclass
class Attempt:
    """A training process and the exit statuses that are correct for it."""

    process: "subprocess.Popen[Any]"
    log: Path
    sent: signal.Signals | None = None

    def end(self) -> str | None:
        """Wait for the end of the process. Return a message if its exit status or its log is wrong, otherwise None."""
        status = self.process.wait()
        said = self.log.read_text(encoding="utf-8", errors="replace")
        expected = {None: 0, signal.SIGKILL: -signal.SIGKILL, signal.SIGTERM: EXIT_STATUS_INTERRUPTED}[self.sent]
        # Any running attempt may request the folder, and a signal may come after the last step.
        if "stopped by another attempt of the same job" in said:
            expected = EXIT_STATUS_INTERRUPTED
        if self.sent == signal.SIGTERM and "steps done in" in said:
            expected = 0
        if self.sent == signal.SIGTERM and not said:
            # Until the command has installed its signal handlers, a signal ends the process at once.
            expected = -signal.SIGTERM
        if status == expected and "Traceback" not in said:
            return None
        return (
            f"{self.log}: ended with status {status}, expected {expected}; last line: {said.strip().splitlines()[-1:]}"
        )


@dataclass
class Soak:
    """The attempts of a training, one after another. `counts` contains the number of stops by signal and moment, and by
    the start of the next attempt.
    """

    training: Training
    rng: random.Random
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    # Attempts that have received a stop request, but whose exit status has not been read yet.
    still_there: list[Attempt] = field(default_factory=list)
    # Seconds of an attempt until its first step. Most moments that are drawn as times are before that step.
    start_seconds: float = 1.0

    def stop_often(self, kills: int, until: float) -> None:
        """Stop `kills` attempts of the training, each at a random moment. Stop fewer attempts if `until`
        (`time.monotonic`) comes first.
        """
        for kill in range(kills):
            if time.monotonic() > until or self.wrong:
                return
            if self.training.output.exists():
                # The attempts trained more steps than planned, so the training ended before the last planned kill.
                return
            attempt = self.start(kill)
            moment = self.rng.choice(("after steps", "after steps", "while it writes", "at any moment"))
            self.await_moment(attempt, moment)
            number = self.rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, None))
            waits = number is not None and self.rng.random() < 0.5
            attempt.sent = number
            if number is not None:
                attempt.process.send_signal(number)
            self.counts[f"stopped by {number.name if number else 'the next attempt'}; moment: {moment}"] += 1
            self.counts[
                "ended before the next attempt started" if waits else "still running when the next attempt started"
            ] += 1
            if waits:
                self.await_ends([attempt])
            else:
                self.still_there.append(attempt)

    def start(self, number: int) -> Attempt:
        """Start the next attempt, with random values of the three settings in which attempts differ."""
        return self.training.start(
            number,
            checkpoint_interval_steps=self.rng.randint(1, 5),
            background_checkpoints=self.rng.random() < 0.5,
            workers=int(self.rng.random() < 0.25),
        )

    def await_moment(self, attempt: Attempt, moment: str) -> None:
        """Wait until the attempt is to be stopped: after a number of steps, during a checkpoint, or after a random
        time.
        """
        if moment == "at any moment":
            time.sleep(self.rng.random() * 1.2 * self.start_seconds)
            return
        # The processes of earlier attempts keep training until the new attempt requests the run folder.
        self.await_that(attempt, lambda: all(other.process.poll() is not None for other in self.still_there))
        before, started = self.training.finished_steps(), time.monotonic()
        self.await_that(attempt, lambda: self.training.finished_steps() > before)
        self.start_seconds = time.monotonic() - started
        wanted = before + self.rng.randint(1, MOST_STEPS)
        self.await_that(attempt, lambda: self.training.finished_steps() >= wanted)
        if moment == "while it writes":
            self.await_that(attempt, self.training.is_writing)
        else:
            time.sleep(self.rng.random() * 0.05)

    def await_that(self, attempt: Attempt, condition: Callable[[], bool]) -> None:
        """Wait until the condition is true or the attempt's process has ended."""
        until = time.monotonic() + LONGEST_SECONDS
        while not condition() and attempt.process.poll() is None and time.monotonic() < until:
            time.sleep(0.001)

    def await_ends(self, attempts: list[Attempt]) -> None:
        """Wait until attempts have ended, and record a message for each attempt whose exit status or log is wrong."""
        self.wrong += [problem for problem in (attempt.end() for attempt in attempts) if problem is not None]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument(
        "--minutes",
        type=float,
        default=60.0,
        help="minutes in which the training is killed and restarted repeatedly; then the last attempt runs to its end",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="folder in which all files are kept; it must not exist yet")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hatchery-soak-") as name:
        folder = arguments.folder or Path(name) / "soak"
        return soak(folder, arguments.kills, arguments.minutes, arguments.seed)


def soak(folder: Path, kills: int, minutes: float, seed: int) -> int:
    """Train twice in `folder`, undisturbed and with kills, and return the exit status of the program."""
    inputs = encoded_text(folder / "text")
    steps = -(-kills * STEPS_PER_KILL // 20) * 20 + 20
    undisturbed, stopped = (Training(settings(steps), inputs, folder / name) for name in ("undisturbed", "stopped"))
    for training in (undisturbed, stopped):
        training.folder.mkdir()
    started = time.monotonic()
    problem = undisturbed.start(0).end()
    if problem is not None:
        print(problem)
        return 1
    print(f"undisturbed training: {steps:,} steps in {time.monotonic() - started:.0f} seconds", flush=True)
    started = time.monotonic()
    runs = Soak(stopped, random.Random(seed))
    runs.stop_often(kills, started + 60 * minutes)
    runs.await_ends([*runs.still_there, stopped.start(kills)])
    for what, count in sorted(runs.counts.items()):
        print(f"{count:5} attempts {what}")
    differing = differences(undisturbed.files(), stopped.files()) if not runs.wrong else []
    for problem in [*runs.wrong, *differing]:
        print(problem)
    files = undisturbed.files()
    print(
        f"{sum(runs.counts.values()) // 2} attempts stopped in {(time.monotonic() - started) / 60:.0f} minutes; "
        f"compared {len(files)} files with {sum(map(len, files.values())):,} bytes: "
        + ("DIFFERENT" if runs.wrong or differing else "all equal")
    )
    return 1 if runs.wrong or differing else 0


def differences(expected: dict[str, bytes], found: dict[str, bytes]) -> list[str]:
    """Return a line for each file that is missing, unexpected, or has other bytes than expected."""
    names = sorted(expected.keys() | found.keys())
    return [
        f"{name}: missing, unexpected, or not equal to the file of the undisturbed training"
        for name in names
        if expected.get(name) != found.get(name)
    ]


if __name__ == "__main__":
    sys.exit(main())
