"""The program `python` in the shell commands of a workflow under test: it asks a server of `forked` for the process.

Every job starts this program, so it is small, and it only imports modules in C and those that Python has loaded: json,
pathlib, signal and socket would take more time than everything else.
"""

# ruff: noqa: PTH109, PTH110, PTH118, PTH120

import _signal
import _socket
import marshal
import os
import sys

SERVER = "HATCHERY_TESTS_FORK_SERVER"
# This variable names a folder of stages: the first job of each stage starts as a user's does, and reports its imports.
FIRST = "HATCHERY_TESTS_FIRST"
SCRIPTS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))), "scripts")
# Number of bytes of a status, of the id of a process, and of the length of a request.
WORD = 4
FORWARDED = (_signal.SIGTERM, _signal.SIGINT, _signal.SIGUSR1, _signal.SIGHUP)
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
) -> tuple[_socket.socket, int]:
    """Ask the server for a process; return the connection and the process id."""
    connection = _socket.socket(_socket.AF_UNIX)
    connection.connect(place)
    content = marshal.dumps([arguments, folder, environment, session])
    descriptors = b"".join(map(packed, streams))
    connection.sendmsg([packed(len(content))], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptors)])
    connection.sendall(content)
    return connection, unpacked(receive(connection, WORD))


def packed(value: int) -> bytes:
    """Return an integer as bytes, which `unpacked` reads."""
    return value.to_bytes(WORD, sys.byteorder)


def unpacked(content: bytes) -> int:
    """Return the integer that `packed` wrote; raise ConnectionError if there are too few bytes: the sender ended."""
    if len(content) < WORD:
        raise ConnectionError("the other process has ended")
    return int.from_bytes(content, sys.byteorder)


def receive(connection: _socket.socket, size: int) -> bytes:
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
    for forwarded in FORWARDED:
        _signal.signal(forwarded, lambda given, _: os.kill(child, given))
    status = os.waitstatus_to_exitcode(unpacked(receive(connection, WORD)))
    if status < 0:
        _signal.signal(-status, _signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
