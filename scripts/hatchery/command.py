"""The frame that the programs in `scripts/` share: parse the arguments, call `main`, return an exit status."""

import argparse
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
    """Return the arguments of a stage from a JSON object, or from the path of a JSON file.

    The file of a call has all inputs under `arguments`; its name is checked against its content. Raises ConfigError
    when the file is missing, altered, or holds no JSON object.
    """
    inline = word.lstrip().startswith("{")
    where = "the command line" if inline else word
    try:
        text = word if inline else Path(word).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no UTF-8"
        raise ConfigError(f"{where}: the file cannot be read: {reason}") from error
    if not inline and is_call(Path(word)):
        read_call(word)
    try:
        value = json_value(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{where}: not JSON: {error}") from error
    if not isinstance(value, dict) or not isinstance(value.get("arguments", {}), dict):
        raise ConfigError(
            f"{where}: expected a JSON object with the arguments of the stage, not {type(value).__name__}"
        )
    return {**value.pop("arguments", {}), **value}


def run_command(main: Callable[[argparse.Namespace], None], parser: argparse.ArgumentParser) -> NoReturn:
    """Parse the arguments, call `main`, and exit as `leave_after` does."""
    leave_after(lambda: main(parser.parse_args()))


def leave_after(main: Callable[[], None]) -> NoReturn:
    """Call `main`, and exit with status 0, or with status 1 after one line on standard error.

    The line reports the user's mistake, or a failed operation of the system: no memory, no disk space, no permission
    to write. If the reader of standard output has exited, as in `| head`, the command ends without a line and with
    141, the shell's status for this case. Any other exception is a defect of ours and keeps its traceback.
    """
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
    """Redirect the rest of standard output to the null device; otherwise Python reports an error when it exits."""
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _print_error(message: str) -> None:
    try:
        print(f"error: {visible(message)}", file=sys.stderr, flush=True)
    except OSError:
        # The log may be on the full disk. At exit, Python would write its buffer again, fail, and change the exit
        # status.
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
