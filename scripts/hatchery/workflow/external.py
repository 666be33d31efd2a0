"""External commands with a time limit: a cluster whose controller does not answer must not hang the one who asks."""

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

ANSWER_SECONDS = 30.0


@dataclass(frozen=True)
class Answer:
    """What a command said; `problem` is empty when it ended with status 0."""

    output: str
    problem: str = ""


Ask = Callable[[Sequence[str]], Answer]
"""Runs a command and returns its answer; the checks take one, so that tests can hand in recorded answers."""


def ask(command: Sequence[str], timeout: float = ANSWER_SECONDS) -> Answer:
    """Run a command without a shell and without input; never raises for what the command does.

    `timeout` in seconds.
    """
    if shutil.which(command[0]) is None:
        return Answer("", f"{command[0]}: there is no such command on PATH")
    try:
        done = subprocess.run(
            list(command), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return Answer("", f"{command[0]} gave no answer within {timeout:g} s")
    except OSError as error:
        return Answer("", f"{command[0]} cannot be started: {error.strerror}")
    if done.returncode != 0:
        words = [line.strip() for line in (done.stderr + "\n" + done.stdout).splitlines() if line.strip()]
        return Answer(done.stdout, f"{command[0]} ended with status {done.returncode}: {' '.join(words[:2])}")
    return Answer(done.stdout)
