"""Pig for two players, solved by value iteration (Neller and Presser, "Optimal Play of the Dice Game Pig", 2004).

Scores never fall, so the positions with scores (i, j) depend only on each other, on those with (j, i), and on higher
scores: from the highest sum of scores down, each such pair of layers is iterated until it moves no more. The draw after
the game's horizon is left out; with the default of 1000 decisions it has no weight that a double holds.
"""

import time

import numpy as np

from envs.compiled import njit
from envs.game import State
from envs.pig import HOLD, ROLL, Pig
from selfplay.search.result import Limits, require_player
from selfplay.solvers.solution import NO_LIMITS, MoveValue, Solution, Solver

MOST_GOAL = 300  # 27 million positions of 8 bytes
_PRECISION = 1e-13


@njit
def _if_rolled(chance, goal, sides, own, other, total):
    """The mover's chance of winning if it rolls."""
    sum_ = 1.0 - chance[other, own, 0]
    for face in range(2, sides + 1):
        later = total + face
        sum_ += 1.0 if own + later >= goal else chance[own, other, later]
    return sum_ / sides


@njit
def _if_held(chance, goal, own, other, total):
    """The mover's chance of winning if it holds."""
    return 1.0 if own + total >= goal else 1.0 - chance[other, own + total, 0]


@njit
def iterate(chance, goal, sides):
    """Fills chance[own, other, turn's total] with the mover's chance of winning; returns the sweeps made."""
    sweeps = 0
    for both in range(2 * goal - 2, -1, -1):
        for low in range(max(0, both - goal + 1), both // 2 + 1):
            high = both - low
            moved = 1.0
            while moved > _PRECISION:
                moved = 0.0
                sweeps += 1
                for side in range(2):
                    own, other = (low, high) if side == 0 else (high, low)
                    for total in range(goal - own - 1, -1, -1):
                        best = max(
                            _if_rolled(chance, goal, sides, own, other, total),
                            _if_held(chance, goal, own, other, total),
                        )
                        moved = max(moved, abs(best - chance[own, other, total]))
                        chance[own, other, total] = best
    return sweeps


class PigSolver(Solver):
    """Knows every position after one second at the first question."""

    def __init__(self, game: Pig, limits: Limits = NO_LIMITS, megabytes: float = 0.0):
        self.game = game
        self.chance: np.ndarray | None = None

    def solve(self, state: State) -> Solution:
        started = time.perf_counter()
        require_player(self.game, state)
        goal, sides = self.game.goal, self.game.sides
        nodes = 1
        if self.chance is None:
            self.chance = np.full((goal, goal, goal), 0.5)
            nodes = int(iterate(self.chance, goal, sides)) * goal
        own, other = int(state.scores[state.turn]), int(state.scores[1 - state.turn])
        total = int(state.total)
        held = 2.0 * float(_if_held(self.chance, goal, own, other, total)) - 1.0
        moves = {HOLD: MoveValue(held, None)}
        if own + total < goal:
            rolled = 2.0 * float(_if_rolled(self.chance, goal, sides, own, other, total)) - 1.0
            moves[ROLL] = MoveValue(rolled, None)
        value = max(move.value for move in moves.values())
        best = tuple(action for action, move in sorted(moves.items()) if move.value > value - 1e-9)
        return Solution(value, None, best, nodes, time.perf_counter() - started, "value iteration", moves)

    def all_moves(self, state: State) -> dict[int, MoveValue]:
        return self.solve(state).moves
