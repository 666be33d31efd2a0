"""The GPU kernels, by Triton's interpreter on a CPU, against the attention that is written out.

PyTorch for CPUs does not install Triton; `make test-kernels` installs it and sets TRITON_INTERPRET.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from test_attention import BATCH, HEADS, Case
from torch import Tensor

if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("make test-kernels runs them: Triton is told before it is imported", allow_module_level=True)
pytest.importorskip("triton")

from hatchery.modeling.attention import Packing, join_heads, split_heads
from hatchery.modeling.kernels.position_attention import attend_with_positions, serves, use_kernels_
from hatchery.modeling.norm_and_dropout import Dropout
from hatchery.modeling.relative_positions import RelativePositions

SIZE, HEAD = 48, 16
SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture(autouse=True)
def heads_that_the_kernels_can_lay_out(monkeypatch):
    monkeypatch.setattr("test_attention.SIZE", SIZE)


@pytest.mark.parametrize(("length", "mask"), [(1, "none"), (17, "none"), (17, "padded"), (17, "pairs"), (70, "padded")])
def test_outputs_and_gradients_are_those_of_the_looked_up_scores(length, mask):
    """70 tokens need several blocks and exceed the bucket table of 40."""
    case = Case(length, mask)
    expected = case.results(case.fast)
    case.fast.attend_at_once = attend_with_positions
    case.check(case.fast, expected)


@pytest.mark.parametrize("choices", [{"position_head_layout": "bnc"}, {"position_to_content_index": "key_minus_query"}])
def test_other_layouts_and_readings_of_positions_are_computed_too(choices):
    case = Case(17, "padded", **choices)
    expected = case.results(case.fast)
    case.fast.attend_at_once = attend_with_positions
    case.check(case.fast, expected)


def test_causal_sequences_see_nothing_behind_a_token():
    case = Case(33)
    case.inputs = case.inputs._replace(mask=torch.ones(1, 33, 33, dtype=torch.bool).tril())
    expected = case.results(case.fast)
    case.fast.attend_at_once = attend_with_positions
    case.check(case.fast, expected)


def test_packed_texts_and_texts_that_grow_go_the_other_way():
    case = Case(17, "packed")
    assert isinstance(case.inputs.packing, Packing)
    expected = case.results(case.fast)
    case.fast.attend_at_once = _never
    case.check(case.fast, expected)


def _never(*_: object) -> Tensor:
    raise AssertionError("this text is not whole")


def test_compiled_layers_have_no_break_at_the_kernels():
    case = Case(17, "padded")
    expected = case.results(case.fast)
    case.fast.attend_at_once = attend_with_positions
    case.check(torch.compile(case.fast, backend="aot_eager", fullgraph=True), expected)


class Drawn:
    """Attention of random tensors with dropout, and the probabilities that the kernels drop for a seed."""

    length = 20

    def __init__(self, probability: float) -> None:
        generator = torch.Generator().manual_seed(1)
        self.positions = RelativePositions(8, 40)(self.length)
        self.probability = probability
        shapes = [(BATCH, self.length, 2 * SIZE), (BATCH, self.length, SIZE)]
        shapes += [(HEADS, self.positions.n_rows, HEAD)] * 2
        self.leaves = [torch.randn(shape, generator=generator).requires_grad_() for shape in shapes]
        self.weights = torch.randn((BATCH, self.length, SIZE), generator=generator)

    def context(self, value: Tensor | None = None) -> Tensor:
        torch.manual_seed(7)
        query_key, own, *tables = self.leaves
        at = self.positions
        fixed = at.row_of_distance, at.first_distance, None, Dropout(self.probability), HEADS, 0.2
        return attend_with_positions(query_key, own if value is None else value, *tables, *fixed)

    def dropped_probabilities(self) -> Tensor:
        """Return the probabilities after dropout [B, H, T, T]: contexts of one-hot values, one block of columns at a
        time."""
        found = torch.zeros(BATCH, HEADS, self.length, self.length)
        for start in range(0, self.length, HEAD):
            width = min(HEAD, self.length - start)
            value = torch.zeros(BATCH, HEADS, self.length, HEAD)
            value[:, :, start : start + width, :width] = torch.eye(width)
            context = split_heads(self.context(join_heads(value)), HEADS)
            found[..., start : start + width] = context[..., :width].detach()
        return found

    def gradients(self, context: Tensor) -> list[Tensor]:
        return list(torch.autograd.grad((context * self.weights).sum(), self.leaves))


def test_gradients_belong_to_the_probabilities_that_were_dropped():
    drawn = Drawn(0.3)
    dropped = drawn.dropped_probabilities()
    kept = (dropped != 0).float() / 0.7
    query_key, value, position_key, position_query = drawn.leaves
    query, key = (split_heads(part, HEADS) for part in query_key.chunk(2, dim=-1))
    columns = drawn.positions.columns(drawn.length).expand(BATCH, HEADS, -1, -1)
    by_query = (query @ position_key.transpose(1, 2)).gather(3, columns)
    by_key = (key @ position_query.transpose(1, 2)).gather(3, columns.transpose(2, 3)).transpose(2, 3)
    probabilities = torch.softmax(0.2 * (query @ key.transpose(2, 3) + by_query + by_key), dim=-1) * kept
    torch.testing.assert_close(dropped, probabilities.detach(), atol=1e-5, rtol=1e-5)
    expected = join_heads(probabilities @ split_heads(value, HEADS))
    for found, wanted in zip(drawn.gradients(drawn.context()), drawn.gradients(expected), strict=True):
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


def test_the_asked_share_of_probabilities_is_dropped_alike_in_all_heads_and_not_in_the_same_places():
    kept = Drawn(0.3).dropped_probabilities() != 0
    assert abs(float(kept.float().mean()) - 0.7) < 0.03
    assert (kept.float().mean(dim=(2, 3)) - 0.7).abs().max() < 0.1
    flat = kept.flatten(0, 1).flatten(1).float()
    agreement = (flat[:, None] == flat[None]).float().mean(dim=-1) - torch.eye(len(flat))
    assert agreement.max() < 0.7, "independent draws agree in 0.58 of the places"


def test_the_same_seed_drops_the_same_and_another_one_something_else():
    drawn = Drawn(0.3)
    first = drawn.context()
    assert torch.equal(first, drawn.context())
    torch.manual_seed(8)
    query_key, value, *tables = drawn.leaves
    at = drawn.positions
    other = attend_with_positions(
        query_key, value, *tables, at.row_of_distance, at.first_distance, None, Dropout(0.3), HEADS, 0.2
    )
    assert not torch.equal(first, other)


def test_only_what_the_blocks_were_measured_with_is_computed_by_kernels():
    assert serves(Case(17).fast)
    assert not serves(Case(17, position_embedding="absolute").fast)
    assert not serves(Case(17, position_bucket_size=64).fast)
    assert use_kernels_(Case(17).fast, torch.device("cpu")) == []


RESOURCES = """
import json, subprocess, sys, tempfile
from pathlib import Path
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from hatchery.modeling.kernels import triton_attention
from hatchery.modeling.kernels.position_attention import FORWARD, KEY_GRADIENT, QUERY_GRADIENT

TYPES = dict.fromkeys(("row_of_distance", "first_distance"), "*i32") | {"mask": "*i1", "seed": "*i64"}
TYPES |= dict.fromkeys(("log_sums", "deltas"), "*fp32") | dict.fromkeys(("scale", "kept_scale"), "fp32")
TYPES |= dict.fromkeys(("length", "n_rows", "threshold"), "i32")
chosen = {"forward_kernel": FORWARD, "query_gradient_kernel": QUERY_GRADIENT, "key_gradient_kernel": KEY_GRADIENT}
for name, blocks in chosen.items():
    kernel = getattr(triton_attention, name)
    constants = {"H": 12, "D": 64, "R": 64, "M": blocks.queries, "N": blocks.keys, "MASK": "keys", "DROPOUT": True}
    constants["PRECISION"] = "ieee"
    kinds = {name: TYPES.get(name, "i32" if "stride" in name else "*bf16") for name in kernel.arg_names}
    kinds |= dict.fromkeys(constants, "constexpr")
    even = ("length", "table_stride_h")
    aligned = [i for i, n in enumerate(kernel.arg_names) if kinds[n].startswith("*") or n in even]
    source = ASTSource(kernel, kinds, {(kernel.arg_names.index(n),): v for n, v in constants.items()},
                       {(i,): [["tt.divisibility", 16]] for i in aligned})
    options = {"num_warps": blocks.warps, "num_stages": blocks.stages}
    made = triton.compile(source, target=GPUTarget("cuda", int(sys.argv[1]), 32), options=options)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        Path(file.name).write_bytes(made.asm["cubin"])
        tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
        said = subprocess.run([tool, "--dump-resource-usage", file.name], capture_output=True, text=True).stdout
    found = dict(part.split(":") for part in said.split() if part.startswith(("REG:", "STACK:")))
    print(json.dumps([kernel.__name__, int(found["REG"]), int(found["STACK"]), made.metadata.shared]))
"""


@pytest.mark.parametrize(
    ("architecture", "shared_bytes", "stacks"), [(90, 232_448, (0, 96, 512)), (80, 166_912, (256, 1024, 2048))]
)
def test_the_kernels_compile_and_fit_into_a_multiprocessor(architecture, shared_bytes, stacks, tmp_path):
    """H100 and A100. On a Hopper chip, these kernels, which spill registers, were faster than smaller blocks, which
    spill less."""
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    environment |= {"PYTHONPATH": f"{SCRIPTS}:{os.environ.get('PYTHONPATH', '')}", "TRITON_CACHE_DIR": str(tmp_path)}
    # Triton reads the source of a kernel, so the script must be a file.
    script = tmp_path / "resources.py"
    script.write_text(RESOURCES)
    command = [sys.executable, str(script), str(architecture)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == 3
    for (name, registers, stack, shared), most in zip(found, stacks, strict=True):
        print(architecture, name, "registers", registers, "spilled bytes", stack, "shared bytes", shared)
        assert registers <= 255 and shared <= shared_bytes and stack <= most, name
