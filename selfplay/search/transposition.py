"""The transposition table: what is known of positions that other move orders reach again (Greenblatt et al. 1967).

Bounded memory: buckets of two entries. A new result replaces an entry of the same position, else one of a former
search, else the shallower one. Values of wins count their distance from the stored position, not from the root.
"""

from typing import Any

import numpy as np

from envs.compiled import njit

COMPLETE = 32_000  # the depth of what is known to the end of the game
NO_BOUND, UPPER_BOUND, LOWER_BOUND, EXACT_VALUE = 0, 1, 2, 3

ENTRY = np.dtype(
    [
        ("key", "u8"),
        ("value", "f8"),
        ("move", "i4"),  # the best or refuting action, or -1
        ("depth", "i2"),
        ("bound", "u1"),
        ("search", "u1"),  # which search stored it, modulo 256
    ],
    align=True,
)


def new_table(megabytes: float) -> Any:
    """A table of at most that size; its length is a power of two, at least one bucket."""
    entries = max(2, int(megabytes * 2**20) // ENTRY.itemsize)
    return np.zeros(1 << (entries.bit_length() - 1), ENTRY).view(np.recarray)


@njit
def find(table, key):
    """The index of the position's entry, or -1."""
    first = np.int64(key & np.uint64(len(table) - 2))
    if table[first].key == key and table[first].bound != NO_BOUND:
        return first
    if table[first + 1].key == key and table[first + 1].bound != NO_BOUND:
        return first + 1
    return np.int64(-1)


@njit
def store(table, key, value, bound, depth, move, search):
    """Keeps a result, in the place that matters least."""
    first = np.int64(key & np.uint64(len(table) - 2))
    chosen = first
    if table[first].key != key:
        second = table[first + 1]
        if second.key == key:
            chosen = first + 1
        else:
            old_first, old_second = table[first].search != search, second.search != search
            if old_first == old_second:
                chosen = first if table[first].depth <= second.depth else first + 1
            else:
                chosen = first if old_first else first + 1
    entry = table[chosen]
    if entry.key == key and move < 0:
        move = entry.move  # a bound without a move keeps the move that was known
    entry.key = key
    entry.value = value
    entry.move = move
    entry.depth = depth
    entry.bound = bound
    entry.search = search
