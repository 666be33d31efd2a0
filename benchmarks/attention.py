"""CPU speed of the attention's parts: the disentangled scores, and the code paths of the attention core.

The first table compares ways to compute the scores; training_step.py compares whole models. `plain` writes the position
vector of every pair of tokens (T x T x head size), as in the formula of LTG-BERT, Section 4. `gather` computes a score
for each token and position bucket, and selects the scores of the token pairs with `torch.gather`. `limit` computes only
the content scores, with one batched product. Every implementation of the complete scores also computes this product, so
`limit` is a lower bound of its time.

The second table is about the attention core. It contains the time of separate operations divided by the time of torch's
fused kernel. The rule by which `attend` chooses between the two on the CPU, for inputs that the kernel supports,
follows from these ratios.

    PYTHONPATH=scripts python benchmarks/attention.py --threads 1
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor

from hatchery.modeling.attention import attend_fused, attend_written_out
from hatchery.modeling.ltg.attention import DisentangledSelfAttention
from hatchery.modeling.ltg.config import LtgBertConfig
from hatchery.modeling.norm_and_dropout import Dropout
from hatchery.modeling.relative_positions import RelativePositions

SIZES = ((128, 4, 32, 32), (128, 4, 32, 64), (192, 6, 32, 128), (192, 3, 32, 128))
CORE_SIZES = ((32, 4, 32, 32), (2, 12, 128, 64), (8, 12, 128, 64), (2, 12, 512, 64))


class Case:
    """Inputs of one size, and methods that compute attention scores from these inputs. Except for `limit`, all methods
    return the same scores.
    """

    def __init__(self, hidden_size: int, heads: int, batch: int, length: int) -> None:
        config = LtgBertConfig(
            vocab_size=1,
            hidden_size=hidden_size,
            intermediate_size=1,
            num_hidden_layers=1,
            num_attention_heads=heads,
            attention_probs_dropout_prob=0.0,
        )
        self.attention = DisentangledSelfAttention(config)
        positions = RelativePositions(config.position_bucket_size, config.max_position_embeddings)
        self.positions, self.rows = positions(length), positions.rows(length)
        self.hidden = torch.randn(batch, length, hidden_size, requires_grad=True)
        self.relative = torch.randn(2 * config.position_bucket_size - 1, hidden_size, requires_grad=True)
        self.heads, self.width, self.scale = heads, config.head_size, self.attention.scale

    def hatchery(self) -> Tensor:
        """Return the attention scores as Hatchery's model computes them."""
        return self.attention.scores(self.hidden, self.relative, self.positions)

    def limit(self) -> Tensor:
        """Return the content scores, which are scaled products of queries and keys, without position scores."""
        query, key = self._content()
        return query @ key.transpose(-1, -2) * self.scale

    def plain(self) -> Tensor:
        """Return the attention scores by LTG-BERT's formula, with one position vector per pair of tokens."""
        query, key = self._content()
        position_query, position_key = self._position(self.relative)
        scores = query @ key.transpose(-1, -2)
        scores = scores + torch.einsum("bhid,hijd->bhij", query, position_key[:, self.rows])
        return (scores + torch.einsum("bhjd,hijd->bhij", key, position_query[:, self.rows])) * self.scale

    def gather(self) -> Tensor:
        """Return the attention scores. Position scores are computed for each pair of a token and a position bucket, and
        torch.gather selects the bucket of each pair of tokens.
        """
        query, key = self._content()
        first, last = self.positions.first_row, self.positions.first_row + self.positions.n_rows
        position_query, position_key = self._position(self.relative[first:last])
        scores = query @ key.transpose(-1, -2)
        columns = (self.rows - first).expand(scores.shape)
        scores = scores + (query @ position_key.transpose(-1, -2)).gather(-1, columns)
        return (scores + (position_query @ key.transpose(-1, -2)).gather(-2, columns)) * self.scale

    def _content(self) -> tuple[Tensor, Tensor]:
        batch, length, _ = self.hidden.shape
        projected = self.attention.query_key_projection(self.hidden)
        projected = projected.view(batch, length, 2, self.heads, self.width).permute(2, 0, 3, 1, 4).contiguous()
        query, key = projected.unbind(0)
        return query, key

    def _position(self, relative: Tensor) -> tuple[Tensor, Tensor]:
        projected = self.attention.query_key_projection(relative).view(-1, 2, self.heads, self.width)
        query, key = projected.permute(1, 2, 0, 3).unbind(0)
        return query, key


def best_milliseconds(function: Callable[[], Tensor], repetitions: int) -> float:
    """Return the minimum processor time of one forward and backward pass, in milliseconds, divided by the number of
    threads.

    Processor time does not depend on other jobs on the machine.
    """
    gradient = torch.randn_like(function())
    times = []
    for _ in range(repetitions):
        start = time.process_time()
        function().backward(gradient)
        times.append(time.process_time() - start)
    return 1000 * min(times) / torch.get_num_threads()


def core_ratio(size: tuple[int, ...], dtype: torch.dtype, positions: bool, training: bool, repetitions: int) -> float:
    """Return the processor time of attention by separate operations, divided by the processor time of torch's fused
    kernel. Both have a padding mask. `size` is (batch, heads, length, head size).
    """
    batch, heads, length, width = size
    inputs = [torch.randn(batch, length, heads, width).to(dtype).transpose(1, 2) for _ in range(3)]
    query, key, value = (tensor.requires_grad_(training) for tensor in inputs)
    position_scores = torch.randn(batch, heads, length, length) if positions else None
    mask = (torch.arange(length) < 3 * length // 4).expand(batch, 1, 1, length)
    best = {attend_fused: float("inf"), attend_written_out: float("inf")}
    for _ in range(repetitions):
        for path in best:
            start = time.process_time()
            with torch.set_grad_enabled(training):
                context = path(query, key, value, width**-0.5, mask, Dropout(0.0), position_scores)
                if training:
                    context.sum().backward()
            best[path] = min(best[path], time.process_time() - start)
    return best[attend_written_out] / best[attend_fused]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1, help="number of CPU threads of torch")
    parser.add_argument(
        "--repetitions",
        type=int,
        default=30,
        help="number of passes per measurement; the minimum of their times is printed",
    )
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(
        f"Each row is one implementation of the attention scores; ms is the CPU time of a forward and backward pass.\n"
        f"plain: LTG-BERT's formula; gather: look-up by torch.gather; hatchery: as in the model; limit: content scores "
        f"only.\n"
        f"D: hidden size, H: number of heads, B: number of sequences, T: number of tokens per sequence\n"
        f"{'D':>4} {'H':>3} {'B':>3} {'T':>4} {'scores':>9} {'ms':>8} "
        f"{'ms / ms of plain':>17} {'ms / ms of limit':>17}"
    )
    for size in SIZES:
        case = Case(*size)
        reference = case.plain()
        measured = {}
        for way in (case.plain, case.gather, case.hatchery, case.limit):
            if way != case.limit:
                torch.testing.assert_close(way(), reference, atol=1e-4, rtol=1e-4)
            measured[way.__name__] = best_milliseconds(way, arguments.repetitions)
        for name, milliseconds in measured.items():
            ratios = f"{milliseconds / measured['plain']:17.2f} {milliseconds / measured['limit']:17.2f}"
            print(" ".join(f"{n:{w}}" for n, w in zip(size, (4, 3, 3, 4), strict=True)), f"{name:>9}", end=" ")
            print(f"{milliseconds:8.2f} {ratios}")
    print(
        "\nEach row is one size of the attention. The numbers are CPU time of separate operations / CPU time of the "
        "fused kernel of torch.\n"
        "B: number of sequences, H: number of heads, T: number of tokens per sequence, d: head size\n"
        f"{'B':>4} {'H':>3} {'T':>4} {'d':>3} {'dtype':>9} {'inference':>10} "
        f"{'inference with position scores':>31} {'training':>9}"
    )
    for size in CORE_SIZES:
        for dtype in (torch.float32, torch.bfloat16):
            uses = ((False, False), (True, False), (False, True))
            ratios = [core_ratio(size, dtype, *use, arguments.repetitions) for use in uses]
            print(" ".join(f"{n:{w}}" for n, w in zip(size, (4, 3, 4, 3), strict=True)), end=" ")
            print(f"{str(dtype).removeprefix('torch.'):>9} {ratios[0]:10.2f} {ratios[1]:31.2f} {ratios[2]:9.2f}")


if __name__ == "__main__":
    main()
