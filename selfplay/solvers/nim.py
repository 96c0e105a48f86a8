"""Nim by theory (Bouton 1901; Sprague 1935; Grundy 1939).

A heap of h objects of which a move takes at most k is worth as much as a heap of h mod (k + 1) in plain nim; the mover
loses exactly if the exclusive or of these numbers is 0. In misere play the same holds while some number exceeds 1;
once all are 0 or 1, the mover loses exactly if their sum is odd (such heaps are "tame": Berlekamp, Conway and Guy,
"Winning Ways", ch. 13).

Theory knows values only, so here every move that keeps the value is best. The distance (the quickest win against
the longest defence) is found by induction where there are few positions, else it is unknown.
"""

import functools
import math
import time

from envs.game import State
from envs.nim import Nim
from selfplay.search.result import Limits, require_player
from selfplay.solvers.solution import NO_LIMITS, MoveValue, Solution, Solver

MOST_POSITIONS, MOST_OBJECTS = 20_000, 200


class NimSolver(Solver):
    """Solves every position of every nim game at once."""

    def __init__(self, game: Nim, limits: Limits = NO_LIMITS, megabytes: float = 0.0):
        self.game, self.take = game, game.most
        self._distance = functools.lru_cache(maxsize=None)(self._find_distance)

    def wins(self, left: tuple[int, ...]) -> bool:
        """Whether the player to move wins."""
        rests = [heap % (self.take + 1) for heap in left]
        nim_sum = functools.reduce(int.__xor__, rests)
        if self.game.misere and max(rests) <= 1:
            return nim_sum == 0
        return nim_sum != 0

    def solve(self, state: State) -> Solution:
        started = time.perf_counter()
        require_player(self.game, state)
        left = tuple(int(heap) for heap in state.left)
        small = math.prod(heap + 1 for heap in left) <= MOST_POSITIONS and sum(left) <= MOST_OBJECTS
        win = self.wins(left)
        moves = {}
        for heap, objects in self._moves(left):
            child = _without(left, heap, objects)
            value = -1.0 if self.wins(child) else 1.0
            distance = 1 + self._distance(tuple(sorted(child))) if small else None
            moves[heap * self.take + objects - 1] = MoveValue(value, distance)
        value = 1.0 if win else -1.0
        best = tuple(action for action, move in moves.items() if move.value == value)
        distance = self._distance(tuple(sorted(left))) if small else None
        seconds = time.perf_counter() - started
        return Solution(value, distance, best, 1 + len(moves), seconds, "theory", moves)

    def all_moves(self, state: State) -> dict[int, MoveValue]:
        return self.solve(state).moves

    def _moves(self, left: tuple[int, ...]) -> list[tuple[int, int]]:
        return [(i, n) for i, heap in enumerate(left) for n in range(1, min(heap, self.take) + 1)]

    def _find_distance(self, left: tuple[int, ...]) -> int:
        children = {tuple(sorted(_without(left, heap, objects))) for heap, objects in self._moves(left)}
        if not children:
            return 0
        if self.wins(left):
            return 1 + min(self._distance(child) for child in children if not self.wins(child))
        return 1 + max(self._distance(child) for child in children)


def _without(left: tuple[int, ...], heap: int, objects: int) -> tuple[int, ...]:
    return (*left[:heap], left[heap] - objects, *left[heap + 1 :])
