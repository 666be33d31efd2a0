"""The device that costs are estimated for where the configuration names none: what the jobs will compute on.

With GPUs asked of a cluster, or with one in this machine that jobs would take, that is a GPU; otherwise this machine's
processor. Costs tell of the machine, no table of results does, so this alone may depend on where the plan is made.
"""

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from hatchery.storage.gpu_claims import visible_gpus

GPU = "h100"
CPU = "cpu"


def planned_device(config: Mapping[str, Any]) -> str:
    """`cluster.planned_device` of the main configuration, or what null stands for."""
    cluster, compute = config["cluster"], config["compute"]
    if cluster["planned_device"] is not None:
        return str(cluster["planned_device"])
    if cluster["gpus_per_node"]:
        return GPU
    match compute["device"]:
        case "cpu":
            return CPU
        case "cuda":
            return GPU
        case _:
            return GPU if _has_gpu() else CPU


@cache
def _has_gpu() -> bool:
    return bool(visible_gpus(os.environ))
