"""Bit operations against brute force over the digits, compiled and interpreted."""

import random

import numpy as np
import pytest

from envs.bits import highest, lowest, mix, popcount, swap_bytes, without_lowest
from envs.compiled import njit

NUMBERS = [0, 1, 2, 3, 1 << 31, 1 << 32, 1 << 63, (1 << 64) - 1, 0x0102030405060708]
NUMBERS += [random.Random(1).getrandbits(64) >> random.Random(i).randrange(64) for i in range(300)]


@njit
def all_of(board):
    return popcount(board), lowest(board), highest(board), swap_bytes(board), without_lowest(board)


def brute(number: int) -> tuple[int, int, int, int, int]:
    ones = [i for i in range(64) if number >> i & 1]
    digits = f"{number:016x}"
    swapped = int("".join(digits[i : i + 2] for i in range(14, -1, -2)), 16)
    rest = sum(1 << i for i in ones[1:])
    return len(ones), ones[0] if ones else 64, ones[-1] if ones else -1, swapped, rest


@pytest.mark.parametrize("function", [all_of, getattr(all_of, "py_func", all_of)], ids=["compiled", "interpreted"])
def test_against_brute_force(function):
    for number in NUMBERS:
        assert tuple(map(int, function(np.uint64(number)))) == brute(number), hex(number)


def test_results_of_compiled_code_are_signed_where_they_count():
    """A count or an index mixes with ordinary integers; unsigned it would turn sums into floats."""

    @njit
    def kinds(board):
        return popcount(board) - 100, lowest(board) - 100, highest(board) - 100

    assert kinds(np.uint64(8)) == (-99, -97, -97)


def test_mix_is_a_bijection_with_avalanche():
    rng = random.Random(7)
    mixed = {int(mix(np.uint64(i))) for i in range(20_000)}
    assert len(mixed) == 20_000
    flips = []
    for _ in range(300):
        number, bit = rng.getrandbits(64), rng.randrange(64)
        changed = int(mix(np.uint64(number))) ^ int(mix(np.uint64(number ^ 1 << bit)))
        flips.append(changed.bit_count())
    assert 30 < np.mean(flips) < 34  # half of 64 bits, whichever bit of the input changes


def test_mix_is_the_finaliser_of_splitmix64():
    """The first outputs of splitmix64 with seed 1234567, as published with the reference code of xoshiro."""
    golden, state, mask = 0x9E3779B97F4A7C15, 1234567, (1 << 64) - 1
    words = []
    for _ in range(5):
        state = state + golden & mask
        words.append(int(mix(np.uint64(state))))
    assert words == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
