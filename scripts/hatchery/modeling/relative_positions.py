"""Relative positions: the row of the relative embedding for the distance between a query and a key.

Source: LTG-BERT's published code, with DeBERTa's log-bucketed distances (docs/papers/ltg-bert.md, "Attention").
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from hatchery.modeling.position_buckets import bucket_of_distance


class PositionIndices(NamedTuple):
    """Indices for looking up the position scores of query i and key j, for one sequence length T.

    Each head has two score tables, one for queries and one for keys. A table has a row for each token and `n_rows`
    columns. Column c belongs to row `first_row` + c of the relative embedding; the other rows of the embedding do not
    occur at this length. Indices refer to the flattened table [T * n_rows].
    """

    first_row: int
    n_rows: int
    by_query: Tensor
    """int64 [T * T]: element i * T + j is the index of (row i, column of distance i - j)."""
    by_key: Tensor
    """int64 [T * T]: element i * T + j is the index of (row j, column of distance i - j)."""
    row_of_distance: Tensor
    """int32 [2 T - 1]: the column of each distance from 1 - T to T - 1."""
    first_distance: Tensor
    """int32 [R], R a power of 2 above `n_rows`: the smallest distance of each column, and T for indices above the last
    column."""

    def reached(self, relative_embedding: Tensor) -> Tensor:
        """Return the rows [n_rows, D] of `relative_embedding` that sequences of T tokens use."""
        return relative_embedding[self.first_row : self.first_row + self.n_rows]

    def of_queries_from(self, first: int, length: int) -> "PositionIndices":
        """Return the indices for the queries from position `first` on. They refer to a table of query scores without
        rows for the queries before `first`. `length` is the sequence length T.
        """
        if first == 0:
            return self
        by_query = self.by_query.view(length, length)[first:] - first * self.n_rows
        by_key = self.by_key.view(length, length)[first:]
        return self._replace(by_query=by_query.flatten(), by_key=by_key.flatten())

    def columns(self, length: int) -> Tensor:
        """Return, for each pair of query i and key j, the column that the distance i - j has in the score tables: int64
        [T, T]. `length` is T.
        """
        return self.by_query.view(length, length) % self.n_rows


class RelativePositions(nn.Module):
    """The mapping from distances to rows of the relative embedding, shared by all layers of an encoder. It has no
    parameters and is not stored.
    """

    def __init__(self, bucket_size: int, max_positions: int) -> None:
        super().__init__()
        self.bucket_size = bucket_size
        self.buckets = tuple(bucket_of_distance(d, bucket_size, max_positions) for d in range(max_positions))
        rows = [bucket_size - 1 - bucket for bucket in self.buckets[:0:-1]]
        rows += [bucket_size - 1 + bucket for bucket in self.buckets]
        # The explicit device keeps the values if a model is built on the meta device and filled later.
        self.register_buffer("row_of_distance", torch.tensor(rows, device="cpu"), persistent=False)
        self.row_of_distance: Tensor

    def rows(self, length: int) -> Tensor:
        """Return int64 [length, length]: for query i and key j, the index of the row of the relative embedding."""
        farthest = len(self.buckets) - 1
        position = torch.arange(length, device=self.row_of_distance.device)
        distance = (position[:, None] - position[None, :]).clamp(-farthest, farthest)
        return self.row_of_distance[distance + farthest]

    def forward(self, length: int) -> PositionIndices:
        """Return the indices that select position scores in sequences of `length` tokens, on this module's device."""
        reach = self.buckets[min(length, len(self.buckets)) - 1]
        first_row, n_rows = self.bucket_size - 1 - reach, 2 * reach + 1
        columns = self.rows(length) - first_row
        table_row = torch.arange(length, device=columns.device) * n_rows
        by_query, by_key = columns + table_row[:, None], columns + table_row[None, :]
        row_of_distance = torch.cat([columns[0].flip(0), columns[1:, 0]])
        room = torch.arange(max(16, 1 << n_rows.bit_length()), device=columns.device)
        first_distance = torch.searchsorted(row_of_distance, room) - (length - 1)
        by_distance = row_of_distance.int(), first_distance.int()
        return PositionIndices(first_row, n_rows, by_query.flatten(), by_key.flatten(), *by_distance)
