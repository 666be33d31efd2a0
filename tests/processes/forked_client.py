"""The program `python` in the shell commands of a workflow under test: it asks a server of `forked` for the process.

Every job starts this program, so it is small and imports few modules.
"""

# The import of pathlib takes a third of the program's time.
# ruff: noqa: PTH109, PTH110, PTH118, PTH120

import json
import os
import signal
import socket
import struct
import sys

SERVER = "HATCHERY_TESTS_FORK_SERVER"
# This variable names a folder of stages: the first job of each stage starts as a user's does, and reports its imports.
FIRST = "HATCHERY_TESTS_FIRST"
SCRIPTS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))), "scripts")
STATUS = struct.Struct("i")
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP)
# Settings of Python that change no test result, and the Makefile's variable PYTHON, which Python does not read.
HARMLESS = {"PYTHON", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}


def can_be_forked(arguments: list[str], folder: str, environment: dict[str, str]) -> bool:
    """Return whether a child of the server behaves like `python *arguments`."""
    if {name for name in environment if name.startswith("PYTHON")} - HARMLESS:
        return False
    if arguments[:2] == ["-m", "snakemake"]:
        here = os.path.join(folder, "scripts")
        return not os.path.exists(here) or os.path.realpath(here) == SCRIPTS
    place = os.path.dirname(os.path.join(folder, arguments[0]))
    return arguments[0].endswith(".py") and os.path.realpath(place) == SCRIPTS


def request(
    place: str, arguments: list[str], folder: str, environment: dict[str, str], streams: list[int], session: bool
) -> tuple[socket.socket, int]:
    """Ask the server for a process; return the connection and the process id."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(place)
    words = json.dumps([arguments, folder, environment, session], ensure_ascii=False)
    content = words.encode("utf-8", "surrogateescape")
    socket.send_fds(connection, [STATUS.pack(len(content))], streams)
    connection.sendall(content)
    return connection, STATUS.unpack(receive(connection, STATUS.size))[0]


def receive(connection: socket.socket, size: int) -> bytes:
    """Return the next `size` bytes; raise ConnectionError if the server ends before."""
    content = b""
    while len(content) < size:
        part = connection.recv(size - len(content))
        if not part:
            raise ConnectionError("the fork server has ended")
        content += part
    return content


def _is_first(arguments: list[str], environment: dict[str, str]) -> bool:
    if FIRST not in environment or arguments[0] != "scripts/run.py":
        return False
    try:
        os.close(os.open(os.path.join(environment[FIRST], arguments[1]), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def main(arguments: list[str]) -> int:
    """Run `python *arguments` as a child of the server or as the real Python; return the status."""
    folder, environment = os.getcwd(), dict(os.environ)
    if not arguments or not can_be_forked(arguments, folder, environment):
        os.execv(sys.executable, [sys.executable, *arguments])
    if _is_first(arguments, environment):
        os.execve(sys.executable, [sys.executable, *arguments], {**environment, "PYTHONPROFILEIMPORTTIME": "1"})
    connection, child = request(environment[SERVER], arguments, folder, environment, [0, 1, 2], False)
    for number in FORWARDED:
        signal.signal(number, lambda given, _: os.kill(child, given))
    status = os.waitstatus_to_exitcode(STATUS.unpack(receive(connection, STATUS.size))[0])
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
