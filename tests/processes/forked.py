"""Python processes that start in milliseconds: they are forked from a server that has loaded torch and other packages.

`Forked(command)` is `subprocess.Popen(command)` for a command `python <script of this repository> ...` or `python -m
snakemake ...`: a process with the same status, output, folder, environment and signals. It skips only the start
(imports, an own hash seed) and the cleanup at the end. Tests of start and cleanup use real processes, and so do
commands that the server cannot run: other scripts, other code, other settings of Python.

Run as a program, this file is the server (`--serve`), or the program `python` in the shell commands of a workflow under
test. The server has no threads and computes nothing, so that its children can begin with one thread or with many.
"""

import contextlib
import functools
import io
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

SERVER = "HATCHERY_TESTS_FORK_SERVER"
# This variable names a log file for the paths of all files that a forked process opens, one path a line.
WATCH = "HATCHERY_TESTS_WATCH"
# This variable names a folder of stages: the first job of each stage starts as a user's does, and reports its imports.
FIRST = "HATCHERY_TESTS_FIRST"
SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
STATUS = struct.Struct("i")
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP)
# Modules that the scripts, the library and Snakemake import only when they need them.
LOADED = (
    *("transformers", "scipy.special", "scipy.stats", "sacrebleu"),
    *("snakemake.api", "snakemake.cli", "snakemake.profiles", "snakemake.report"),
    *("snakemake.assets", "snakemake.benchmark", "snakemake.storage", "smart_open", "pydantic.dataclasses"),
)
# Modules that are not loaded: few processes need the first ones, and every fork would copy their memory. Triton has no
# wheel for a CPU.
LARGE = (
    *("hatchery.export.modeling_", "hatchery.export.transformers_", "hatchery.raw.hub"),
    "hatchery.modeling.kernels.triton_",
)
# Settings of Python that change no test result, and the Makefile's variable PYTHON, which Python does not read.
HARMLESS = {"PYTHON", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}


def can_be_forked(arguments: list[str], folder: str, environment: dict[str, str]) -> bool:
    """Return whether a child of the server behaves like `python *arguments`."""
    if {name for name in environment if name.startswith("PYTHON")} - HARMLESS:
        return False
    if arguments[:2] == ["-m", "snakemake"]:
        here = Path(folder, "scripts")
        return not here.exists() or here.resolve() == SCRIPTS
    return arguments[0].endswith(".py") and Path(folder, arguments[0]).parent.resolve() == SCRIPTS


def _request(
    place: str, arguments: list[str], folder: str, environment: dict[str, str], streams: list[int], session: bool
) -> tuple[socket.socket, int]:
    """Ask the server for a process; return the connection and the process id."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(place)
    words = json.dumps([arguments, folder, environment, session], ensure_ascii=False)
    content = words.encode("utf-8", "surrogateescape")
    socket.send_fds(connection, [STATUS.pack(len(content))], streams)
    connection.sendall(content)
    return connection, STATUS.unpack(_receive(connection, STATUS.size))[0]


def _receive(connection: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        part = connection.recv(size - len(content))
        if not part:
            raise ConnectionError("the fork server has ended")
        content += part
    return content


class Forked(subprocess.Popen[Any]):
    """A process that the server forks if possible, and otherwise an ordinary process."""

    _connection: socket.socket | None = None

    def _execute_child(
        self, args: Any, executable: Any, preexec_fn: Any, close_fds: Any, pass_fds: Any, cwd: Any, env: Any, *rest: Any
    ) -> None:
        environment = {os.fsdecode(name): os.fsdecode(value) for name, value in (env or os.environ).items()}
        folder, arguments = str(Path(cwd or ".").absolute()), [os.fspath(word) for word in args][1:]
        plain = args[0] == sys.executable and preexec_fn is None and not pass_fds and arguments
        if not plain or not can_be_forked(arguments, folder, environment):
            super()._execute_child(args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *rest)
            return
        _, _, _, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, _, _, _, _, _, session, _ = rest
        streams = [given if given >= 0 else usual for usual, given in enumerate((p2cread, c2pwrite, errwrite))]
        place = environment.get(SERVER) or surroundings()[SERVER]
        self._connection, self.pid = _request(place, arguments, folder, environment, streams, session)
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if self._connection is None:
            return super()._try_wait(wait_flags)
        self._connection.setblocking(not wait_flags & os.WNOHANG)
        try:
            status = self._connection.recv(STATUS.size, socket.MSG_WAITALL)
        except BlockingIOError:
            return 0, 0
        return self.pid, STATUS.unpack(status)[0]

    def _internal_poll(self, *arguments: Any, **choices: Any) -> int | None:
        if self._connection is None:
            return super()._internal_poll(*arguments, **choices)
        if self.returncode is None:
            pid, status = self._try_wait(os.WNOHANG)
            if pid == self.pid:
                self._handle_exitstatus(status)
        return self.returncode


def run(
    command: list[Any], timeout: float | None = None, check: bool = False, capture_output: bool = False, **choices: Any
) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run` with a forked process."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} if capture_output else {}
    with Forked(command, **pipes, **choices) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(process.args, process.returncode, output, errors)
    if check:
        done.check_returncode()
    return done


def surroundings(number: int = 0) -> dict[str, str]:
    """Return variables that direct a workflow's shell commands to the server, which the first call starts.

    With these variables, `python` is this file. All children of one server have the same hash seed; servers with
    different numbers have different seeds.
    """
    python, place = _server(number)
    search = [str(python.parent), str(Path(sys.executable).parent), os.environ["PATH"]]
    return {SERVER: str(place), "PATH": os.pathsep.join(search)}


def python_beside(place: Path) -> Path:
    """Return the path of the program that workflows run as `python`, for a server that listens at `place`."""
    return place.with_name("bin") / "python"


@functools.cache
def _server(number: int) -> tuple[Path, Path]:
    """Start a server; return the file that workflows run as `python`, and the server's socket."""
    import atexit
    import tempfile

    folder = tempfile.TemporaryDirectory(prefix="hatchery-tests-")
    place = Path(folder.name, "socket")
    python = python_beside(place)
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{Path(__file__).resolve()}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    server = subprocess.Popen(
        [sys.executable, __file__, "--serve", str(place)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    atexit.register(folder.cleanup)
    atexit.register(server.kill)
    assert server.stdout is not None and server.stdout.readline() == b"ready\n", "the fork server does not start"
    return python, place


# The server


def _load() -> None:
    import gc
    import importlib
    import pkgutil
    import runpy
    from unittest import mock

    # Disable garbage collection, because imports create many objects and hardly any garbage.
    gc.disable()
    import torch

    sys.path[0] = str(SCRIPTS)
    for name in LOADED:
        importlib.import_module(name)
    for script in sorted(SCRIPTS.glob("*.py")):
        runpy.run_path(str(script), run_name="imported")
    for module in pkgutil.walk_packages([str(SCRIPTS / "hatchery")], "hatchery."):
        if not module.name.startswith(LARGE):
            importlib.import_module(module.name)
    importlib.import_module("hatchery.training.processes").import_deepspeed(torch.device("cpu"))
    # Every process with ZeRO imports this module; its decorators import the compiler, for an optimizer that we do not
    # use.
    with mock.patch.object(torch, "compile", lambda function: function):
        importlib.import_module("deepspeed.runtime.zero.muon.muon_optimizer")
    # Every call of Snakemake begins with finding its plugins and building validators of settings classes.
    importlib.import_module("snakemake.cli").get_argument_parser()
    project = importlib.import_module("hatchery.experiment.project").Project(SCRIPTS.parent / "config")
    project.experiment("strict_mini")
    # Draw once, because a drawing loads fonts and the PDF writer.
    drawing = importlib.import_module("matplotlib.figure").Figure()
    drawing.text(0, 0, "a")
    drawing.savefig(io.BytesIO(), format="pdf")
    # Collect the versions of packages and of this code, which are kept for the rest of the process.
    importlib.import_module("hatchery.artifacts.host").surroundings(0)
    # Disable fsync: tests kill jobs, but the machine does not lose its power.
    os.fsync = lambda descriptor: None  # type: ignore[assignment]
    # Freeze the loaded objects, because garbage collection would copy the memory that children share.
    gc.freeze()
    gc.enable()
    _keep_in_huge_pages()


def _keep_in_huge_pages() -> None:
    """Move loaded memory into pages of 2 MiB if Linux can, because a fork copies an entry for each page."""
    import ctypes

    size, huge, collapse = 1 << 21, 14, 25
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        addresses, access, _, _, _, *name = line.split()
        first, end = (int(address, 16) for address in addresses.split("-"))
        first, end = -(-first // size) * size, end // size * size
        if access == "rw-p" and name in ([], ["[heap]"]) and first < end:
            # Linux may refuse either call, which costs only time.
            madvise(first, end - first, huge)
            madvise(first, end - first, collapse)


def _serve(place: str) -> list[str]:
    """Answer requests; return only in forked children, with the arguments of their Python."""
    waiting = selectors.DefaultSelector()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(place)
    listener.listen(64)
    waiting.register(listener, selectors.EVENT_READ)
    os.write(1, b"ready\n")
    while True:
        for key, _ in waiting.select():
            if key.data is not None:
                waiting.unregister(key.fd)
                _tell_end(key.fd, *key.data)
                continue
            connection, _ = listener.accept()
            streams: list[int] = []
            try:
                content, streams, _, _ = socket.recv_fds(connection, STATUS.size, 3)
                words = _receive(connection, STATUS.unpack(content)[0])
            except (OSError, struct.error):
                # The process that asked was killed meanwhile.
                connection.close()
                for stream in streams:
                    os.close(stream)
                continue
            child = os.fork()
            if child == 0:
                for other in list(waiting.get_map().values()):
                    if other.data is not None:
                        os.close(other.fd)
                        other.data[1].close()
                for mine in (waiting, listener, connection):
                    mine.close()
                return _become(words, streams)
            for stream in streams:
                os.close(stream)
            with contextlib.suppress(OSError):
                connection.sendall(STATUS.pack(child))
            waiting.register(os.pidfd_open(child), selectors.EVENT_READ, (child, connection))


def _tell_end(ended: int, child: int, connection: socket.socket) -> None:
    """Send the status of an ended child to the process that asked for it, and close the child's descriptor `ended`."""
    os.close(ended)
    _, status = os.waitpid(child, 0)
    with connection, contextlib.suppress(OSError):
        connection.sendall(STATUS.pack(status))


def _become(words: bytes, streams: list[int]) -> list[str]:
    arguments, folder, environment, session = json.loads(words.decode("utf-8", "surrogateescape"))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    if session:
        os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if SERVER in environment:
        # Snakemake puts the folder of `sys.executable` first on the PATH of its jobs.
        sys.executable = str(python_beside(Path(environment[SERVER])))
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    if watched := environment.get(WATCH):
        log = Path(watched).open("a", buffering=1, encoding="utf-8", errors="replace")  # noqa: SIM115
        sys.addaudithook(lambda event, values: event == "open" and print(values[0], file=log))
    return arguments


def _run(arguments: list[str]) -> NoReturn:
    """Run `python *arguments`, and exit without cleaning up what the server has loaded."""
    import atexit
    import runpy
    import threading
    import traceback

    status, number = 0, None
    try:
        if arguments[0] == "-m":
            sys.argv, sys.path[0] = arguments[1:], str(Path.cwd())
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv, sys.path[0] = arguments, str(Path(arguments[0]).absolute().parent)
            runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
        if status == 1 and error.code != 1:
            print(error.code, file=sys.stderr)
    except KeyboardInterrupt:
        number = signal.SIGINT
        traceback.print_exc()
    except BaseException:
        status = 1
        traceback.print_exc()
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    if number is not None:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(status & 255)


def _is_first(arguments: list[str], environment: dict[str, str]) -> bool:
    if FIRST not in environment or arguments[0] != "scripts/run.py":
        return False
    try:
        Path(environment[FIRST], arguments[1]).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _pass_on(arguments: list[str]) -> int:
    """Run `python` for a workflow's shell command, as a child of the server or as the real Python."""
    folder, environment = str(Path.cwd()), dict(os.environ)
    if not arguments or not can_be_forked(arguments, folder, environment):
        os.execv(sys.executable, [sys.executable, *arguments])
    if _is_first(arguments, environment):
        os.execve(sys.executable, [sys.executable, *arguments], {**environment, "PYTHONPROFILEIMPORTTIME": "1"})
    connection, child = _request(environment[SERVER], arguments, folder, environment, [0, 1, 2], False)
    for number in FORWARDED:
        signal.signal(number, lambda given, _: os.kill(child, given))
    status = os.waitstatus_to_exitcode(STATUS.unpack(_receive(connection, STATUS.size))[0])
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    if sys.argv[1:2] != ["--serve"]:
        sys.exit(_pass_on(sys.argv[1:]))
    _load()
    _run(_serve(sys.argv[2]))
