"""Selection of the attention kernels by module, package and chip. No kernel runs."""

import importlib.util
from typing import Any

import pytest
import torch
from torch import nn

from hatchery.modeling.kernels.position_attention import attend_with_positions, serves, use_kernels_
from hatchery.modeling.ltg.attention import DisentangledSelfAttention


class Attention(DisentangledSelfAttention):
    """An attention without weights, which has only the sizes by which kernels are selected."""

    def __init__(self, is_relative: bool = True, head_size: int = 16, position_bucket_size: int = 8) -> None:
        nn.Module.__init__(self)
        self.is_relative, self.head_size, self.position_bucket_size = is_relative, head_size, position_bucket_size


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({}, True),
        ({"is_relative": False}, False),
        # The kernels support 64 table columns: the 2 * 32 - 1 rows of the table, and one more.
        ({"position_bucket_size": 32}, True),
        ({"position_bucket_size": 33}, False),
        *(({"head_size": size}, True) for size in (32, 64, 128)),
        *(({"head_size": size}, False) for size in (8, 24, 256)),
    ],
)
def test_kernels_fit_some_sizes(sizes: dict[str, Any], expected: bool) -> None:
    assert serves(Attention(**sizes)) is expected


@pytest.mark.parametrize(
    ("device", "capability", "package", "used"),
    [
        ("cuda", (9, 0), True, 1),
        ("cuda", (10, 0), True, 1),
        ("cuda", (8, 9), True, 0),
        ("cuda", (9, 0), False, 0),
        ("cpu", (9, 0), True, 0),
    ],
)
def test_kernels_are_used_on_hopper_chips_where_triton_is_installed(
    monkeypatch: pytest.MonkeyPatch, device: str, capability: tuple[int, int], package: bool, used: int
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if package else None)
    model = nn.ModuleList([Attention(), Attention(head_size=8), nn.Linear(1, 1)])
    found = use_kernels_(model, torch.device(device))
    assert found == list(model)[:used]
    assert [getattr(one, "attend_at_once", None) is attend_with_positions for one in model] == [
        bool(used),
        False,
        False,
    ]
