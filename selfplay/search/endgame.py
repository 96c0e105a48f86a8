"""Exact play where the rest of the game is small enough to be searched: alpha-beta instead of the network.

Before a network searches a position, alpha-beta without any evaluation searches it, to the end of the game or to a forced
win, as far as a budget of positions lasts. What it settles is the game's own result under best play: the quickest win,
the longest defence. In self-play such positions become labels without noise, and cost less than a search with the network.

Only for two players without chance, whose utilities sum to zero.
"""

from typing import Any

import numpy as np

from envs.game import Game, State
from envs.rng import uniform
from models.evaluation import Nothing
from selfplay.search.deepening import AlphaBeta, Switches
from selfplay.search.foresight import can_foresee
from selfplay.search.result import Limits

_MEGABYTES = 16.0
_MOST_PLIES = 512  # beyond, positions count as equally late
_LEAST = 0.02  # the share of positions that are tried even where it never succeeded
_MEMORY = 256.0  # trials that the success rate rests on


class Endgame:
    """Tries positions, and learns at which ply of a game it pays to try."""

    def __init__(self, game: Game, nodes: int):
        self.nodes = nodes if can_foresee(game) else 0
        self.tried = np.zeros(_MOST_PLIES)
        self.solved = np.zeros(_MOST_PLIES)
        if self.nodes:
            # A key leaves former positions out: where those decide (repetitions), the table could not be trusted.
            switches = Switches(quiescence=False, aspiration=0.0, sort=False, table=not game.history_fields)
            self.search: Any = AlphaBeta(game, Nothing(), Limits(nodes=self.nodes), switches, _MEGABYTES)

    def reset(self) -> None:
        """Forgets positions, but not when it pays to try."""
        if self.nodes:
            self.search.reset()

    def solve(self, state: State) -> tuple[int, float] | None:
        """The best action and the position's value for the mover, or None where the budget does not suffice."""
        return self.search.solve(state) if self.nodes else None

    def try_solve(self, state: State, plies: int, rng: Any) -> tuple[int, float] | None:
        """As `solve`, but hardly ever where that rarely succeeds."""
        if not self.nodes:
            return None
        at = min(plies, _MOST_PLIES - 1)
        rate = (self.solved[at] + 1.0) / (self.tried[at] + 2.0)
        if uniform(rng) >= max(_LEAST, 2.0 * rate):
            return None
        found = self.solve(state)
        if self.tried[at] >= _MEMORY:
            self.tried[at] *= 0.5
            self.solved[at] *= 0.5
        self.tried[at] += 1.0
        self.solved[at] += found is not None
        return found
