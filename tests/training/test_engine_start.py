"""Starting the engine compiles nothing, prints nothing and needs no thread."""

import subprocess
import sys
from pathlib import Path

PROBE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import logging, torch
# Where CUDA's tools are and no GPU is, this import says so; nothing of ours makes it.
logging.disable(logging.WARNING)
import torch.utils.cpp_extension
logging.disable(logging.NOTSET)
def refuse(*arguments, **options):
    raise SystemExit("DeepSpeed tried to compile something")
torch.utils.cpp_extension.load = refuse
from hatchery.training.engine import Engine
from hatchery.training.lamb import Lamb
from hatchery.training.precision import Precision
from hatchery.training.processes import process_group
from hatchery.training.topology import SINGLE_PROCESS
cpu = torch.device("cpu")
with process_group(SINGLE_PROCESS, cpu):
    model = torch.nn.Linear(2, 1)
    with Engine(model, Lamb(model.parameters(), lr=0.1), 1.0, Precision("fp32"), cpu, SINGLE_PROCESS) as engine:
        pass
del engine
alive = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
left = [name for name in alive if "gloo" in name]
if left:
    raise SystemExit(f"threads of the process group outlive it: {left}")
"""


def test_starting_compiles_nothing_says_nothing_and_leaves_neither_threads_nor_traces_in_the_home_folder(
    repository: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROBE, str(repository / "scripts")]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=60)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "" and result.stderr == ""
    assert list(home.iterdir()) == []


ALONE = """
import os, resource, sys
sys.path.insert(0, sys.argv[1])
import torch
from hatchery.training.engine import Engine
from hatchery.training.lamb import Lamb
from hatchery.training.precision import Precision
from hatchery.training.processes import import_deepspeed, process_group
from hatchery.training.topology import SINGLE_PROCESS
cpu = torch.device("cpu")
import_deepspeed(cpu).initialize
if os.getuid() == 0:
    # No limit holds for root.
    os.setgid(65534)
    os.setuid(65534)
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
model = torch.nn.Linear(2, 1)
before = len(os.listdir("/proc/self/task"))
with process_group(SINGLE_PROCESS, cpu, shares_state=False):
    with Engine(model, Lamb(model.parameters(), lr=0.1), 1.0, Precision("fp32"), cpu, SINGLE_PROCESS) as engine:
        assert len(os.listdir("/proc/self/task")) == before
"""


def test_one_process_trains_where_no_thread_can_be_started(repository: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", ALONE, str(repository / "scripts")]
    environment = {
        "HOME": str(tmp_path),
        "PATH": "/usr/bin:/bin",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    result = subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/", timeout=100)
    assert result.returncode == 0, result.stderr
