"""Othello endgames solved exactly, to the disc.

The `score` of a solution is the disc difference for the mover: with the empty cells given to the winner as
tournaments and the FForum suite count it, but for a game with discs=True and credit_empties=False the plain one. The
best moves are those with the best score, whatever the game's utility is.
"""

import time
from typing import Any

import numpy as np

from envs.compiled import njit
from envs.game import TERMINAL, State
from envs.othello import Othello
from selfplay.search.result import Limits, clock, require_player
from selfplay.solvers.othello_search import STABILITY, deep
from selfplay.solvers.solution import (
    NO_LIMITS,
    MoveValue,
    Solution,
    Solver,
    after,
    canonical,
    legal,
    mover,
    refuse,
    warm_up,
)

_CELLS = 64
_MOVES = 40

ENTRY = np.dtype(
    [
        ("mine", "u8"),
        ("theirs", "u8"),
        ("lower", "i1"),
        ("upper", "i1"),
        ("cell", "i1"),
        ("empties", "i1"),  # 0: an unused place
    ],
    align=True,
)
WORK = np.dtype(
    [
        ("for_othello", "i8"),
        ("quarter", "u8", (4,)),
        ("cells", "i8", (_CELLS, _MOVES)),  # by the number of empty cells
        ("scores", "i8", (_CELLS, _MOVES)),
        ("turned", "u8", (_CELLS, _MOVES)),
        ("credit", "i8"),
        ("stability", "i8"),
        ("nodes", "i8"),
        ("node_limit", "i8"),
        ("stop", "i8"),
        ("stopped", "i8"),
    ],
    align=True,
)


@njit
def difference(game, work, table, state, alpha, beta):
    """The mover's disc difference within the window, by the searches' contract."""
    return deep(game, work, table, state.mine, state.theirs, alpha, beta, np.int64(0))


class OthelloSolver(Solver):
    """Endgames of any board size; up to some twenty empty cells on 8x8."""

    default_seconds = 600.0

    def __init__(self, game: Othello, limits: Limits = NO_LIMITS, megabytes: float = 256.0):
        self.game, self.limits, self.most = game, limits, game.num_cells
        self.rules = Othello(game.size)  # whatever the utility: all games of one size share compiled code
        entries = max(2, int(megabytes * 2**20) // ENTRY.itemsize)
        self.table: Any = np.zeros(1 << (entries.bit_length() - 1), ENTRY).view(np.recarray)
        self.work: Any = np.zeros(1, WORK).view(np.recarray)[0]
        half = game.size // 2
        for i in range(4):
            self.work.quarter[i] = sum(
                1 << game.size * row + column
                for row in range(game.size)
                for column in range(game.size)
                if (row >= half) + 2 * (column >= half) == i
            )
        self.work.credit = game.credit_empties or not game.discs
        self.work.stability = int(STABILITY * self.most)
        self.started = 0.0

    def reset(self) -> None:
        self.table[:] = np.zeros(1, ENTRY)

    def solve(self, state: State) -> Solution:
        require_player(self.game, state)
        with self._clock():
            score = self._exact(state, 0)
            best = self._best(state, score)
            distance = self._line(state, score)
        value = self._utility(score)
        moves = {action: MoveValue(value, distance, score) for action in best}
        nodes, seconds = int(self.work.nodes), time.perf_counter() - self.started
        return Solution(value, distance, best, nodes, seconds, "Othello endgame solver", moves, score)

    def score(self, state: State) -> int:
        """The exact disc difference for the mover."""
        with self._clock():
            return self._exact(state, 0)

    def scores(self, state: State) -> dict[int, int]:
        """Every legal move's exact disc difference for the mover."""
        found: dict[int, int] = {}
        with self._clock():
            for action in legal(self.game, state):
                guess = max(found.values(), default=0)
                found[action] = -self._exact(after(self.game, state, action), -guess)
        return found

    def values(self, state: State) -> dict[int, float]:
        low, high = (-self.most, self.most) if self.game.discs else (-1, 1)
        with self._clock():
            return {a: self._utility(self._move(state, a, low, high)) for a in legal(self.game, state)}

    def all_moves(self, state: State) -> dict[int, MoveValue]:
        return {a: MoveValue(self._utility(score), None, score) for a, score in self.scores(state).items()}

    def _utility(self, score: int) -> float:
        return float(score) if self.game.discs else float(np.sign(score))

    def _difference(self, state: State, alpha: int, beta: int) -> int:
        found = int(difference(self.rules, self.work, self.table, state, alpha, beta))
        if self.work.stopped:
            raise refuse("the Othello endgame solver", int(self.work.nodes), time.perf_counter() - self.started)
        return found

    def _exact(self, state: State, guess: int) -> int:
        """The exact difference, by windows around a guess that move and grow until they hold it.

        From (-1, 1) on this took two thirds of the nodes of one search with an open window (FForum 40 to 42).
        """
        low, high, width = -self.most, self.most, 1
        while low < high:
            alpha, beta = max(guess - width, low - 1), min(guess + width, high + 1)
            guess = self._difference(state, alpha, beta)
            if alpha < guess < beta:
                return guess
            if guess <= alpha:
                high = guess
            else:
                low = guess
            width *= 2
        return low

    def _best(self, state: State, score: int) -> tuple[int, ...]:
        """The moves that reach the score; images of each other count as one search (the first move has four)."""
        known: dict[bytes, bool] = {}
        best = []
        for action in legal(self.game, state):
            image = canonical(self.game, after(self.game, state, action))
            if image not in known:
                known[image] = self._move(state, action, score - 1, score) >= score
            if known[image]:
                best.append(action)
        return tuple(best)

    def _move(self, state: State, action: int, alpha: int, beta: int) -> int:
        return -self._difference(after(self.game, state, action), -beta, -alpha)

    def _line(self, state: State, score: int) -> int:
        """The length of one line of best play, passes included; the table knows most of it."""
        length = 0
        while mover(self.game, state) != TERMINAL:
            action = next(a for a in legal(self.game, state) if self._move(state, a, score - 1, score) >= score)
            state, score, length = after(self.game, state, action), -score, length + 1
        return length

    def _clock(self) -> Any:
        self.work.nodes, self.work.stopped = 0, 0
        self.work.node_limit = self.limits.nodes or np.iinfo(np.int64).max
        if not self.started:  # compile before the clock starts
            warm_up(self.game)
            self.work.stop = 1
            difference(self.rules, self.work, self.table, self.game.new()[0], 0, 1)
            self.work.nodes, self.work.stopped = 0, 0
        self.started = time.perf_counter()
        return clock(self.work, self.limits.seconds)
