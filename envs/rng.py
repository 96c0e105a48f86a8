"""A compiled random generator with explicit state: xoroshiro128++ (Blackman and Vigna 2021).

The state is an array of two 64-bit words that the caller owns, saves and restores. Same seed, same numbers,
compiled or interpreted.
"""

from typing import Any

import numpy as np

from envs.bits import mix
from envs.compiled import njit


def generator(seed: int, stream: int = 0) -> np.ndarray:
    """A generator's state; different streams of one seed are independent.

    >>> rng = generator(7)
    >>> [int(below(rng, 6)) for _ in range(5)] == [int(below(generator(7), 6)) for _ in range(1)] * 5
    False
    """
    words = np.random.SeedSequence([seed & 0xFFFF_FFFF_FFFF_FFFF, stream]).generate_state(2, np.uint64)
    words[0] |= np.uint64(1)  # all zeros is the one forbidden state
    return words


@njit
def next_word(rng: Any) -> Any:
    """64 random bits."""
    a, b = rng[0], rng[1]
    total = a + b
    word = ((total << np.uint64(17)) | (total >> np.uint64(47))) + a
    b ^= a
    rng[0] = ((a << np.uint64(49)) | (a >> np.uint64(15))) ^ b ^ (b << np.uint64(21))
    rng[1] = (b << np.uint64(28)) | (b >> np.uint64(36))
    return word


@njit
def below(rng: Any, bound: Any) -> Any:
    """An integer from 0 to bound - 1, each equally likely (Lemire 2019: multiply, reject the remainder)."""
    n = np.uint64(bound)
    product = (next_word(rng) >> np.uint64(32)) * n
    low = product & np.uint64(0xFFFF_FFFF)
    if low < n:
        threshold = (np.uint64(0x1_0000_0000) - n) % n
        while low < threshold:
            product = (next_word(rng) >> np.uint64(32)) * n
            low = product & np.uint64(0xFFFF_FFFF)
    return np.int64(product >> np.uint64(32))


@njit
def uniform(rng: Any) -> Any:
    """A float in [0, 1)."""
    return np.float64(next_word(rng) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


__all__ = ["below", "generator", "mix", "next_word", "uniform"]
