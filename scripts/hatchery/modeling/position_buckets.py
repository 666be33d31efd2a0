"""Buckets of distances between tokens: each small distance has its own bucket, and the buckets of large distances grow
logarithmically.

Source: DeBERTa, in the form of LTG-BERT's published code (docs/papers/ltg-bert.md, "Attention"). The module needs no
torch.
"""

import math


def bucket_of_distance(distance: int, bucket_size: int, max_positions: int) -> int:
    """Return the bucket (0 to bucket_size - 1) of a pair of tokens whose `distance` is at least 0.

    All distances from `max_positions` on have the bucket of `max_positions - 1`. The result is limited to the last
    bucket, because rounding errors of the logarithm can give the largest distance the next bucket, which does not
    exist.
    """
    middle = bucket_size // 2
    distance = min(distance, max_positions - 1)
    if distance <= middle:
        return distance
    share = math.log(distance / middle) / math.log((max_positions - 1) / middle)
    return min(middle + math.ceil(share * (middle - 1)), bucket_size - 1)


def reached_rows(length: int, bucket_size: int, max_positions: int) -> int:
    """Return the number of rows of the relative embedding that a sequence of `length` tokens uses."""
    return 2 * bucket_of_distance(length - 1, bucket_size, max_positions) + 1
