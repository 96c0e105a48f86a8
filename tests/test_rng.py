"""The random generator: the published algorithm, uniform, repeatable, the same compiled and interpreted."""

import numpy as np
import pytest

from envs.compiled import njit
from envs.rng import below, generator, next_word, uniform

MASK = (1 << 64) - 1


def rotate(x: int, k: int) -> int:
    return (x << k | x >> (64 - k)) & MASK


def xoroshiro(a: int, b: int) -> tuple[int, int, int]:
    """xoroshiro128++ as its authors state it (Blackman and Vigna 2021), in Python's integers."""
    word = (rotate(a + b & MASK, 17) + a) & MASK
    b ^= a
    return word, rotate(a, 49) ^ b ^ (b << 21 & MASK), rotate(b, 28)


@njit
def draw(rng, bound, counts, floats):
    for _ in range(len(floats)):
        counts[below(rng, bound)] += 1
    for i in range(len(floats)):
        floats[i] = uniform(rng)


def test_words_are_those_of_the_published_algorithm():
    rng = generator(42)
    a, b = map(int, rng)
    for _ in range(200):
        word, a, b = xoroshiro(a, b)
        assert int(next_word(rng)) == word
        assert list(map(int, rng)) == [a, b]


def test_interpreted_and_compiled_agree():
    compiled, plain = generator(3), generator(3)
    with np.errstate(over="ignore"):
        for bound in (1, 2, 7, 1000, 2**31):
            assert int(below(compiled, bound)) == int(below.py_func(plain, bound))
            assert uniform(compiled) == uniform.py_func(plain)
    assert np.array_equal(compiled, plain)


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 100])
def test_below_is_uniform(bound):
    counts, floats = np.zeros(bound, np.int64), np.empty(100_000)
    draw(generator(1), bound, counts, floats)
    expected = len(floats) / bound
    assert counts.sum() == len(floats)
    # chi squared, at six standard deviations
    assert ((counts - expected) ** 2 / expected).sum() <= bound - 1 + 6 * np.sqrt(2 * max(bound - 1, 1))
    assert 0 <= floats.min() and floats.max() < 1
    assert abs(floats.mean() - 0.5) < 6 * np.sqrt(1 / 12 / len(floats))


def test_a_bound_near_the_limit_of_32_bits_is_unbiased():
    """Without Lemire's rejection, bounds near 2**32 * 2/3 would favour some numbers twice as much."""
    bound = 3 << 30
    rng = generator(5)
    low = sum(int(below(rng, bound)) % 3 == 0 for _ in range(20_000))
    assert abs(low / 20_000 - 1 / 3) < 0.02


def test_seeds_and_streams():
    def words(seed: int, stream: int = 0) -> list[int]:
        rng = generator(seed, stream)
        return [int(next_word(rng)) for _ in range(4)]

    assert words(1) == words(1)
    seen = {tuple(words(seed, stream)) for seed in range(20) for stream in range(20)}
    assert len(seen) == 400
    assert words(-1) == words(-1) != words(1)  # any integer is a seed


def test_the_state_is_explicit():
    rng = generator(9)
    next_word(rng)
    saved = rng.copy()
    first = [int(next_word(rng)) for _ in range(5)]
    rng[:] = saved
    assert [int(next_word(rng)) for _ in range(5)] == first
