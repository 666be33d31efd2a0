"""The thin shell that the programs in `scripts/` share: arguments in, exit code out."""

import argparse
import atexit
import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from hatchery.artifacts.atomic import json_value
from hatchery.errors import ConfigError, HatcheryError, refusal
from hatchery.job_spec import read_call
from hatchery.sanitize import visible


def load_settings(text: str) -> dict[str, Any]:
    """Parse the value of `--settings` or `--runtime`: a JSON object, or the path of a file that holds one.

    Raises ConfigError when the file is missing or the text is not a JSON object.
    """
    inline = text.lstrip().startswith("{")
    where = "the command line" if inline else text
    if not inline:
        try:
            text = Path(text).read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{where}: the settings file cannot be read: {error.strerror}") from error
    try:
        value = json_value(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{where}: the settings are not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: the settings must be a JSON object, not {type(value).__name__}")
    return value


def expanded(words: Sequence[str], project: Path = Path()) -> list[str]:
    """The command line with the content of a call's file in place of each word `@file`, relative to `project`.

    Raises ConfigError.
    """
    lists = (read_call(project / word[1:]).command_line() if word.startswith("@") else [word] for word in words)
    return [word for words in lists for word in words]


def named_paths(pairs: list[str] | None) -> dict[str, Path]:
    """Parse repeated `NAME=path` arguments, keeping their order.

    Raises ConfigError for an argument without `=` or for a repeated name.
    """
    paths: dict[str, Path] = {}
    for pair in pairs or []:
        name, separator, path = pair.partition("=")
        if not (name and separator and path):
            raise ConfigError(f"the command line: expected NAME=path, got {pair!r}")
        if name in paths:
            raise ConfigError(f"the command line: {name!r} is given twice")
        paths[name] = Path(path)
    return paths


def run_command(main: Callable[[argparse.Namespace], None], parser: argparse.ArgumentParser) -> NoReturn:
    """Parse the arguments, call `main`, and leave with 0, or with 1 after one line.

    The line names the user's mistake, or what the machine refuses: memory, room on the disk, the right to write. Any
    other exception is a defect of ours and keeps its traceback. A word `@results/settings/<digest>.json` stands for
    the arguments in that file.
    """
    try:
        main(parser.parse_args(expanded(sys.argv[1:])))
    except HatcheryError as error:
        _print_error(str(error))
        sys.exit(1)
    except KeyboardInterrupt:
        _print_error("interrupted")
        sys.exit(130)
    except Exception as error:
        line = refusal(error)
        if line is None:
            raise
        _print_error(line)
        sys.exit(1)
    if getattr(sys.modules["__main__"], "main", None) is main:
        _exit_at_once()
    sys.exit(0)


def _exit_at_once() -> None:
    """End the program with status 0, without taking its memory apart: that takes half a second where torch is loaded.

    Returns where what was printed cannot be written; then Python's own way out says so.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _print_error(message: str) -> None:
    try:
        print(f"error: {visible(message)}", file=sys.stderr, flush=True)
    except OSError:
        # The log may lie on the disk that is full. Python would write the rest again at its end, fail, and leave with
        # a status of its own.
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
