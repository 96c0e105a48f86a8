"""Endgame tables as a solver: what they cover is known at once, the rest is for another solver."""

import time

from envs.game import Game, State
from selfplay.search.result import Limits, require_player
from selfplay.search.wins import plain_value, plies_to_end
from selfplay.solvers.solution import MoveValue, Solution, Solver
from selfplay.tables.probe import best_moves, distance, prober

_SAME = 1e-12  # values that differ by less are equal; a ply of delay is worth more


class TableSolver(Solver):
    """The tables first, then the other solver."""

    def __init__(self, game: Game, other: Solver):
        self.game, self.other = game, other

    @property
    def limits(self) -> Limits:
        return self.other.limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        self.other.limits = limits

    def solve(self, state: State) -> Solution:
        started = time.perf_counter()
        require_player(self.game, state)
        found = best_moves(self.game, state)
        if not found:
            return self.other.solve(state)
        chance, top = self.game.has_chance, found[0][1]
        moves = {
            action: MoveValue(value, None)
            if chance
            else MoveValue(plain_value(self.game, value), plies_to_end(self.game, value))
            for action, value in found
        }
        best = tuple(sorted(action for action, value in found if abs(value - top) < _SAME))
        value = float(top) if chance else plain_value(self.game, top)
        seconds = time.perf_counter() - started
        plies = None if chance else distance(self.game, state)
        return Solution(value, plies, best, len(found), seconds, "endgame tables", moves)

    def values(self, state: State) -> dict[int, float]:
        moves = self.solve(state).moves if best_moves(self.game, state) else None
        return self.other.values(state) if moves is None else {action: move.value for action, move in moves.items()}

    def reset(self) -> None:
        self.other.reset()


def has_tables(game: Game) -> bool:
    """Whether tables for the game are built."""
    return prober(game) is not None
