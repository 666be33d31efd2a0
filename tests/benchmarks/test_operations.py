"""The count of kernels and bytes: views are free, and a kernel counts what it reads and writes."""

import torch

from benchmarks.operations import Kernels


def test_a_kernel_counts_the_bytes_that_it_reads_and_writes_and_a_view_none():
    ones = torch.ones(6, 4)
    with Kernels() as kernels:
        ones.t().reshape(-1, 2)[1:]
        (ones + ones).mul_(2.0)
    # The reshape of the transposed matrix copies 96 bytes, the sum has three operands, and mul_ reads and writes one.
    assert (kernels.number, kernels.bytes) == (3, 2 * 96 + 3 * 96 + 2 * 96)
