"""The memory of a search: one record that compiled code gets as a single pointer, so that no node allocates.

A record with nested arrays also makes recursion cheap: an array is passed as seven words, this record as one.
"""

from typing import Any

import numpy as np

from envs.compiled import njit
from envs.game import Game

LEVELS = 128  # positions of one line that a search holds at once: the deepest line of any search


def rounded(count: int) -> int:
    """The next power of two, at least 8: sizes are part of compiled code's types, so few different ones are wanted."""
    return 1 << max(3, (count - 1).bit_length())


def workspace(game: Game, search: str, fields: list[tuple[Any, ...]]) -> Any:
    """A zeroed record of `states`, `moves`, `probabilities` by level, room for features, counters, and `fields`."""
    dtype = np.dtype(
        [
            (f"for_{search}", "i8"),  # else Numba takes a search's record for an extension of another's
            ("states", game.state, (LEVELS,)),
            ("moves", "i4", (LEVELS, rounded(max(game.max_legal, game.num_outcomes)))),
            ("probabilities", "f8", (LEVELS, rounded(game.num_outcomes))),
            ("features", "f8", (rounded(game.num_features + 1),)),
            ("nodes", "i8"),  # positions looked at so far
            ("node_limit", "i8"),
            ("stop", "i8"),  # set by another thread to end the search
            ("stopped", "i8"),  # set by the search once it gave up: values are void from then on
            ("levels", "i8"),
            *fields,
        ],
        align=True,
    )
    work: Any = np.zeros(1, dtype).view(np.recarray)[0]
    work.levels = LEVELS
    work.node_limit = np.iinfo(np.int64).max
    return work


@njit
def extend_line(work, level, action):
    """The best line from here: the action, then the best line of the child."""
    work.line[level, 0] = action
    for k in range(work.line_length[level + 1]):
        work.line[level, k + 1] = work.line[level + 1, k]
    work.line_length[level] = work.line_length[level + 1] + 1
