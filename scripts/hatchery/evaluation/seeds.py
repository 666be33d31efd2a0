"""Independent random streams for the parts of an evaluation.

Each use of chance (which pairs, which split, which order, which initial head) gets its own seed from the run's seed
and a name, so changing one part never shifts another. SHA-256 keeps the derivation the same on every machine.
"""

import hashlib

import numpy as np


def derived_seed(seed: int, *purpose: str | int) -> int:
    """A seed in [0, 2**63) for one purpose, a pure function of the arguments."""
    text = "\x1f".join([str(seed), *map(str, purpose)])
    return int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8], "little") >> 1


def generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """A NumPy random generator for one purpose."""
    return np.random.default_rng(derived_seed(seed, *purpose))
