"""The log-bucketed distances of relative positions, as plain arithmetic.

Source: LTG-BERT's published code, with DeBERTa's buckets (docs/papers/ltg-bert.md, "Attention"). Nothing here needs
torch, so that planning can count a model's operations without loading it.
"""

import math


def bucket_of_distance(distance: int, bucket_size: int, max_positions: int) -> int:
    """The bucket (0 to bucket_size - 1) of two tokens `distance` >= 0 apart.

    Distances of `max_positions` and more fall into the bucket of `max_positions - 1`. The result is clamped, because
    the logarithm can round the largest distance up into a bucket that does not exist.
    """
    middle = bucket_size // 2
    distance = min(distance, max_positions - 1)
    if distance <= middle:
        return distance
    share = math.log(distance / middle) / math.log((max_positions - 1) / middle)
    return min(middle + math.ceil(share * (middle - 1)), bucket_size - 1)
