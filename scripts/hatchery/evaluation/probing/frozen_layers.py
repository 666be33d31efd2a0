"""Compute the hidden states of a frozen encoder once for all epochs, seeds and learning rates of a job.

Only the hidden states (vectors) of tokens inside spans are cached, in float32, up to `mib` MiB. Vectors beyond this
limit are computed again for every batch. A batch of cached vectors has no padding: all tokens are concatenated in one
row. Cached and newly computed vectors differ only by rounding, because they come from different batches.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hatchery.evaluation.finetuning.batches import Batch
from hatchery.evaluation.probing.encoding import EncodedSpans, TokenSequences, flat_ranges, starts_of
from hatchery.evaluation.tasks.settings import HeadSettings
from hatchery.modeling.encoder import Encoder
from hatchery.modeling.heads.span_classifier import LayerReading, layer_vectors

SEQUENCES_AT_A_TIME = 32
BYTES_PER_NUMBER = 4
NOT_KEPT = -1


def can_be_kept(head: HeadSettings) -> bool:
    """Return True if the head's inputs are equal in every epoch, so that they can be cached. This is true of a probe on
    a frozen encoder, because a frozen encoder runs without dropout.
    """
    return head.kind == "span_classification" and head.options.get("encoder_mode", "frozen") == "frozen"


class FrozenLayers:
    """The cache of layer vectors that all data sets of one job share, on the device of the training.

    `encoder` must not change after the first call of `wrap`; it is moved to `device` and set to evaluation mode.
    """

    def __init__(self, encoder: Encoder, reading: LayerReading, mib: int, device: torch.device) -> None:
        self.encoder = encoder.to(device).eval()
        self.reading, self.device = reading, device
        self.bytes_left = mib << 20

    def wrap(self, data: EncodedSpans) -> "LayeredSpans":
        """Return `data` with batches that contain the key `layers` (vectors) instead of `input_ids`.

        Vectors that fit in the memory limit are computed now and cached; all others are computed again for every batch.
        """
        inside = _inside_of_spans(data)
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(inside)])
        sizes = before[data.sequences.starts[1:]] - before[data.sequences.starts[:-1]]
        width = self.encoder.n_layers * self.encoder.config.hidden_size
        # Cache short sequences first. The cache then holds more sequences, and sequences of similar length share a
        # batch with little padding.
        order = np.argsort(data.sequences.lengths, kind="stable")
        order = order[sizes[order] > 0]
        kept = order[np.cumsum(sizes[order]) * width * BYTES_PER_NUMBER <= self.bytes_left]
        self.bytes_left -= int(sizes[kept].sum()) * width * BYTES_PER_NUMBER
        places = np.full(len(sizes), NOT_KEPT, dtype=np.int64)
        places[kept] = starts_of(sizes[kept])[:-1]
        shape = (self.encoder.n_layers, int(sizes[kept].sum()), self.encoder.config.hidden_size)
        vectors = torch.empty(shape, dtype=torch.float32, device=self.device)
        for first in range(0, len(kept), SEQUENCES_AT_A_TIME):
            group = kept[first : first + SEQUENCES_AT_A_TIME]
            place = int(places[group[0]])
            vectors[:, place : place + int(sizes[group].sum())] = self.compute(data.sequences, inside, group)
        return LayeredSpans(data, self, _Kept(inside, before, sizes, places, vectors))

    @torch.no_grad()
    def compute(self, sequences: TokenSequences, inside: np.ndarray, group: np.ndarray) -> Tensor:
        """Return the layer vectors of the tokens in spans, float32 [layers, N, width], for the sequences whose indices
        are in `group`. The N tokens are in the order of `group`.

        `inside` is a bool for each token of `sequences`: True for the tokens in spans.
        """
        ids, mask = sequences.padded(group)
        wanted = torch.zeros_like(mask)
        wanted[mask] = torch.from_numpy(inside[flat_ranges(sequences.starts[group], sequences.lengths[group])])
        # The training of the head may have set the encoder to training mode, so set evaluation mode again.
        self.encoder.eval()
        states = self.encoder(ids.to(self.device), mask.to(self.device))
        return layer_vectors(self.encoder, states, self.reading)[:, wanted.to(self.device)].float()


@dataclass(frozen=True)
class _Kept:
    """The cached layer vectors of the tokens in spans. The vectors of sequence s begin at the index `places[s]`, which
    is NOT_KEPT if the sequence is not cached.

    `inside` has an entry for each token of all sequences: True for tokens in spans. `before` contains, for each token,
    the number of earlier tokens that are in spans. `sizes` contains, for each sequence, the number of its tokens that
    are in spans.
    """

    inside: np.ndarray
    before: np.ndarray
    sizes: np.ndarray
    places: np.ndarray
    vectors: Tensor


@dataclass(frozen=True)
class LayeredSpans:
    """Encoded sentences with targets, whose batches contain the encoder's layer vectors instead of token ids. Subsets
    share the cached vectors. See `FrozenLayers.wrap`.
    """

    data: EncodedSpans
    source: FrozenLayers
    kept: _Kept

    @property
    def lengths(self) -> np.ndarray:
        """Return the number of tokens of each encoded sentence. These lengths do not depend on the cached layer
        vectors, so batches contain the same sentences with and without cached vectors.
        """
        return self.data.lengths

    @property
    def n_units(self) -> int:
        """Number of units: the targets of all sentences."""
        return self.data.n_units

    @property
    def labels(self) -> np.ndarray:
        """Labels of all units, that is, of the targets of all sentences."""
        return self.data.labels

    @property
    def dropped(self) -> int:
        """Number of sentences that were dropped because they were too long or had no subword."""
        return self.data.dropped

    @property
    def share_kept(self) -> float:
        """Return, of all tokens in spans, the fraction that have cached layer vectors."""
        return self.kept.vectors.shape[1] / max(1, int(self.kept.sizes.sum()))

    def batch(self, items: np.ndarray) -> Batch:
        """Return the batch of the U units (targets) of the sentences `items`. `layers` [layers, 1, N, width], on the
        device, are the layer vectors of the N tokens inside spans. `spans` int64 [U, S, 2] are start and end of the S
        spans of each unit, as positions among these N tokens.
        """
        items = np.asarray(items, dtype=np.int64)
        kept, starts = self.kept, self.data.sequences.starts
        units = self.data.units_of(items)
        sequences, sequence_of_item = np.unique(self.data.sequence_of[items], return_inverse=True)
        counts = np.diff(self.data.unit_starts)[items]
        row_starts = starts_of(kept.sizes[sequences])
        # Spans refer to positions in a sequence, but the cache holds only the tokens inside spans. Convert each
        # position twice: to a position among the cached tokens of its sequence, then to a position among the cached
        # tokens of the batch.
        sequence_of_unit = np.repeat(sequence_of_item, counts)
        begin = starts[sequences][sequence_of_unit][:, None]
        spans = self.data.spans[units]
        first = kept.before[begin + spans[..., 0]] - kept.before[begin] + row_starts[sequence_of_unit][:, None]
        widths = spans[..., 1] - spans[..., 0]
        inputs = {
            "layers": self._layers(sequences).unsqueeze(1),
            "spans": torch.from_numpy(np.stack([first, first + widths], axis=-1)),
            "sentences": torch.zeros(len(units), dtype=torch.int64),
            "widest": int(widths.max(initial=1)),
        }
        return Batch(inputs, torch.from_numpy(self.data.labels[units]), units)

    def subset(self, items: Sequence[int]) -> "LayeredSpans":
        """Return the sentences with the indices `items`, in this order; the subset shares the cached layer vectors."""
        return LayeredSpans(self.data.subset(items), self.source, self.kept)

    def _layers(self, sequences: np.ndarray) -> Tensor:
        """Return the layer vectors, [layers, N, width], of the N tokens in spans of the sequences with the indices
        `sequences`, in this order. The indices are distinct.
        """
        kept, sizes = self.kept, self.kept.sizes[sequences]
        in_memory = kept.places[sequences] != NOT_KEPT
        rows = torch.from_numpy(flat_ranges(kept.places[sequences][in_memory], sizes[in_memory]))
        found = kept.vectors.index_select(1, rows.to(self.source.device))
        missing = sequences[~in_memory & (sizes > 0)]
        if len(missing) == 0:
            return found
        layers = found.new_empty((found.shape[0], int(sizes.sum()), found.shape[2]))
        is_found = torch.from_numpy(np.repeat(in_memory, sizes)).to(self.source.device)
        layers[:, is_found] = found
        layers[:, ~is_found] = self.source.compute(self.data.sequences, kept.inside, missing)
        return layers


def _inside_of_spans(data: EncodedSpans) -> np.ndarray:
    """Return a bool for each token of all sequences: True if the token is in a span of any target."""
    begin = np.repeat(data.sequences.starts[data.sequence_of], np.diff(data.unit_starts))
    flat = (begin[:, None, None] + data.spans).reshape(-1, 2)
    inside = np.zeros(len(data.sequences.ids), dtype=bool)
    inside[flat_ranges(flat[:, 0], flat[:, 1] - flat[:, 0])] = True
    return inside
