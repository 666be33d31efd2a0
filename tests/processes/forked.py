"""Python processes that start in milliseconds: they are forked from a server that has loaded torch and other packages.

`Forked(command)` is `subprocess.Popen(command)` for a command `python <script of this repository> ...` or `python -m
snakemake ...`: a process with the same status, output, folder, environment and signals. It skips only the start
(imports, an own hash seed) and the cleanup at the end. Tests of start and cleanup use real processes, and so do
commands that the server cannot run: other scripts, other code, other settings of Python.

Run as a program, this file is the server. The server has no threads and computes nothing, so that its children can
begin with one thread or with many. All test processes of a call of pytest share the servers.
"""

import _socket
import atexit
import contextlib
import fcntl
import functools
import io
import marshal
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any, NoReturn

from forked_client import SCRIPTS, SERVER, WORD, can_be_forked, packed, receive, request, unpacked

# This variable contains the id of the process with which all servers end, and their folder.
SHARED = "HATCHERY_TESTS_SHARED"
# Servers that this process has started.
STARTED: list[subprocess.Popen[bytes]] = []
# This variable names a log file for the paths of all files that a forked process opens, one path a line.
WATCH = "HATCHERY_TESTS_WATCH"
# This variable names modules, separated by spaces, that the server imports, once, before it forks.
LOAD = "HATCHERY_TESTS_LOAD"
# Modules that the scripts, the library and Snakemake import only when they need them.
LOADED = (
    *("transformers", "scipy.special", "scipy.stats", "sacrebleu"),
    *("snakemake.api", "snakemake.cli", "snakemake.profiles", "snakemake.report"),
    *("snakemake.assets", "snakemake.benchmark", "snakemake.storage", "smart_open", "pydantic.dataclasses"),
    *("scipy.signal", "pyarrow.dataset", "pyarrow.pandas_compat", "pyarrow.vendored.version"),
)
# Modules that are not loaded: few processes need the first ones, and every fork would copy their memory. Triton has no
# wheel for a CPU.
LARGE = (
    *("hatchery.export.modeling_", "hatchery.export.transformers_", "hatchery.raw.hub"),
    "hatchery.modeling.kernels.triton_",
)


class Forked(subprocess.Popen[Any]):
    """A process that the server forks if possible, and otherwise an ordinary process."""

    _connection: _socket.socket | None = None

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
        self._connection, self.pid = request(place, arguments, folder, environment, streams, session)
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if self._connection is None:
            return super()._try_wait(wait_flags)
        self._connection.setblocking(not wait_flags & os.WNOHANG)
        try:
            status = self._connection.recv(WORD, socket.MSG_WAITALL)
        except BlockingIOError:
            return 0, 0
        return self.pid, unpacked(status)

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


def share_servers() -> None:
    """Let this process and all processes that it starts use the same servers, which end with this process."""
    if SHARED not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="hatchery-tests-")
        atexit.register(folder.cleanup)
        os.environ[SHARED] = f"{os.getpid()} {folder.name}"


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
    """Start a server, unless it runs; return the file that workflows run as `python`, and the server's socket."""
    share_servers()
    owner, _, folder = os.environ[SHARED].partition(" ")
    # Tests of another checkout, which a test may start, have their own servers.
    name = f"{zlib.crc32(f'{sys.executable} {SCRIPTS}'.encode())}-{number}"
    place = Path(folder, name, "socket")
    python = python_beside(place)
    with Path(folder, f"{name}.lock").open("w", encoding="utf-8") as lock:
        # Another test process may be starting the same server.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            python.parent.mkdir(parents=True, exist_ok=True)
            client = Path(__file__).resolve().with_name("forked_client.py")
            python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{client}" "$@"\n', encoding="utf-8")
            python.chmod(0o755)
            command = [sys.executable, __file__, str(place), owner]
            server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            STARTED.append(server)
            ready = server.stdout is not None and server.stdout.readline() == b"ready\n"
            assert ready, "the fork server does not start"
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

    sys.path[0] = SCRIPTS
    for name in LOADED:
        importlib.import_module(name)
    for script in sorted(Path(SCRIPTS).glob("*.py")):
        runpy.run_path(str(script), run_name="imported")
    for module in pkgutil.walk_packages([f"{SCRIPTS}/hatchery"], "hatchery."):
        if not module.name.startswith(LARGE):
            importlib.import_module(module.name)
    importlib.import_module("hatchery.training.processes").import_deepspeed(torch.device("cpu"))
    # The engine of DeepSpeed imports these modules. The decorators of the first one import the compiler, for an
    # optimizer that we do not use.
    with mock.patch.object(torch, "compile", lambda function: function):
        for name in ("runtime.zero.muon.muon_optimizer", "module_inject.auto_ep_layer", "comm.mori"):
            importlib.import_module(f"deepspeed.{name}")
    # Every call of Snakemake begins with finding its plugins and building validators of settings classes.
    importlib.import_module("snakemake.cli").get_argument_parser()
    project = importlib.import_module("hatchery.experiment.project").Project(Path(SCRIPTS).with_name("config"))
    project.experiment("strict_mini")
    # Build the validators of all settings and compile all templates, which most jobs would do first.
    typed, templates = (importlib.import_module(f"hatchery.{name}") for name in ("typed", "rendering.templates"))
    for stage in importlib.import_module("hatchery.workflow.registry").STAGES.values():
        if stage.settings_class is not None:
            typed.adapter(stage.settings_class)
    for template in templates.FOLDER.glob("*.j2"):
        templates._environment(template.name.endswith(".html.j2")).get_template(template.name)
    # Draw once, because a drawing loads fonts and the PDF writer.
    drawing = importlib.import_module("matplotlib.figure").Figure()
    drawing.text(0, 0, "a")
    drawing.savefig(io.BytesIO(), format="pdf")
    # Collect the versions of packages and of this code, which are kept for the rest of the process.
    importlib.import_module("hatchery.artifacts.host").surroundings(0)
    # Disable fsync: tests kill jobs, but the machine does not lose its power.
    os.fsync = lambda descriptor: None  # type: ignore[assignment]
    _keep_loaded()
    gc.enable()
    _keep_in_huge_pages()


def _keep_loaded() -> None:
    """Exclude all present objects from garbage collection, which would copy the memory that children share, and from
    finalization at the end of a child: removing each of torch's operators would take half the time of a short process.
    """
    import gc
    import weakref

    gc.freeze()
    for finalizer in weakref.finalize._registry:  # type: ignore[attr-defined]
        finalizer.atexit = False


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


def _serve(place: str, owner: int) -> list[str]:
    """Answer requests until the process `owner` ends; return only in forked children, with their Python's arguments."""
    waiting = selectors.DefaultSelector()
    waiting.register(os.pidfd_open(owner), selectors.EVENT_READ, "owner")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(place)
    listener.listen(64)
    waiting.register(listener, selectors.EVENT_READ)
    os.write(1, b"ready\n")
    while True:
        for key, _ in waiting.select():
            if key.data == "owner":
                os._exit(0)
            if key.data is not None:
                waiting.unregister(key.fd)
                _tell_end(key.fd, *key.data)
                continue
            connection, _ = listener.accept()
            streams: list[int] = []
            try:
                size, streams, _, _ = socket.recv_fds(connection, WORD, 3)
                words = receive(connection, unpacked(size))
            except OSError:
                # The process that asked was killed meanwhile.
                connection.close()
                for stream in streams:
                    os.close(stream)
                continue
            _load_more(words)
            child = os.fork()
            if child == 0:
                for other in list(waiting.get_map().values()):
                    if other.data is not None:
                        os.close(other.fd)
                    if other.data not in (None, "owner"):
                        other.data[1].close()
                for mine in (waiting, listener, connection):
                    mine.close()
                return _become(words, streams)
            for stream in streams:
                os.close(stream)
            with contextlib.suppress(OSError):
                connection.sendall(packed(child))
            waiting.register(os.pidfd_open(child), selectors.EVENT_READ, (child, connection))


def _load_more(words: bytes) -> None:
    """Import the modules that a request names in the variable LOAD."""
    import importlib

    _, _, environment, _ = marshal.loads(words)
    names = [name for name in environment.get(LOAD, "").split() if name not in sys.modules]
    for name in names:
        importlib.import_module(name)
    if names:
        _keep_loaded()


def _tell_end(ended: int, child: int, connection: socket.socket) -> None:
    """Send the status of an ended child to the process that asked for it, and close the child's descriptor `ended`."""
    os.close(ended)
    _, status = os.waitpid(child, 0)
    with connection, contextlib.suppress(OSError):
        connection.sendall(packed(status))


def _become(words: bytes, streams: list[int]) -> list[str]:
    arguments, folder, environment, session = marshal.loads(words)
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


if __name__ == "__main__":
    _load()
    _run(_serve(sys.argv[1], int(sys.argv[2])))
