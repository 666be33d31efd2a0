"""Common code of the programs in `scripts/`: parse the arguments, call `main`, and exit with a status."""

import argparse
import atexit
import gc
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from hatchery.artifacts.atomic import json_value
from hatchery.errors import ConfigError, HatcheryError, refusal
from hatchery.job_spec import is_call, read_call
from hatchery.sanitize import visible


def read_given(word: str) -> dict[str, Any]:
    """Return the arguments of a stage from `word`, which is a JSON object or the path of a file with a JSON object.

    If the object has a key `arguments`, as in a job's specification (`job_spec`), the result contains the keys of the
    object `arguments` instead of this key. If the file has the name of a specification, its content must match the
    digest in the name. Raises ConfigError if the file is missing, was altered, or contains no JSON object.
    """
    inline = word.lstrip().startswith("{")
    where = "the command line" if inline else word
    try:
        text = word if inline else Path(word).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigError(f"{where}: the file cannot be read: {reason}") from error
    if not inline and is_call(Path(word)):
        read_call(word)
    try:
        value = json_value(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{where}: not JSON: {error}") from error
    if not isinstance(value, dict) or not isinstance(value.get("arguments", {}), dict):
        raise ConfigError(
            f"{where}: got {type(value).__name__}, expected a JSON object with the arguments of the stage"
        )
    return {**value.pop("arguments", {}), **value}


def run_command(main: Callable[[argparse.Namespace], None], parser: argparse.ArgumentParser) -> NoReturn:
    """Parse the arguments of the command line, call `main` with them, and exit. `leave_after` describes the exit
    status.
    """
    leave_after(lambda: main(parser.parse_args()))


def leave_after(main: Callable[[], None]) -> NoReturn:
    """Call `main`, and exit with status 0, or with status 1 after one line on standard error.

    The line reports a mistake of the user, or an error of the machine: no memory, no disk space, no write permission.
    If the program that reads standard output has exited, as in `| head`, no line is written and the status is 141, as
    in a shell. After Ctrl-C, the status is 130. Other exceptions are bugs of Hatchery and are shown with a traceback.
    """
    # At exit, the garbage collector would traverse all objects of the imported libraries to free memory that the system
    # frees anyway. If a process only imports PyTorch, this collection takes a fifth of its processor time.
    atexit.register(gc.freeze)
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError as error:
        if error.filename is not None:
            raise
        leave_output_unread()
        sys.exit(141)
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
    sys.exit(0)


def leave_output_unread() -> None:
    """Redirect standard output to the null device. Call this function after the program that reads standard output has
    exited, because Python would report an error for each further output.
    """
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _print_error(message: str) -> None:
    try:
        print(f"error: {visible(message)}", file=sys.stderr, flush=True)
    except OSError:
        # The error line could not be written, perhaps because the log is on a full disk. Replace standard error:
        # otherwise, Python would try to write the line again at exit, fail, and change the exit status.
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
