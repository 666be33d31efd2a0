"""Peak memory and processor time of a program, measured by the system."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence

# Start the program from a small intermediate process, because a process inherits the peak memory of the process that
# starts it.
_BETWEEN = """
import json, os, sys
answer = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, used = os.wait4(child, 0)
answer.write(json.dumps([os.waitstatus_to_exitcode(status), used.ru_maxrss, used.ru_utime + used.ru_stime]))
"""


def peak_memory(command: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """Return the peak resident memory (MB) and the processor seconds of a program and its children.

    The standard output of the program is sent to the standard error. Raises RuntimeError if the program fails.
    """
    between = [sys.executable, "-I", "-S", "-c", _BETWEEN]
    done = subprocess.run([*between, *command], env=dict(environment), stdout=subprocess.PIPE, text=True, check=True)
    code, kibibytes, seconds = json.loads(done.stdout)
    if code:
        raise RuntimeError(f"{' '.join(command)[:200]}: ended with status {code}")
    return kibibytes * 1024 / 1e6, seconds
