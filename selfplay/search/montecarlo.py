"""Flat Monte Carlo search (Abramson 1990): N random games from each move, and the move with the best average.

No tree: every move gets the same number of playouts, in turns, so that a time limit leaves them equal within one.
Works for any number of players and with chance; each player's average is kept.
"""

import time
from dataclasses import dataclass

import numpy as np

from envs.compiled import njit
from envs.errors import InputError
from envs.game import Game, State
from envs.rng import generator
from models.evaluation import Evaluation
from selfplay.search.playouts import NOTHING, UNIFORM, Greedy, Policy, playout, playout_fields
from selfplay.search.result import AVERAGE, UNKNOWN, MoveReport, Result, clock, require_player
from selfplay.search.workspace import rounded, workspace

NO_LIMIT = np.iinfo(np.int64).max


@njit
def montecarlo(game, evaluation, policy, work):
    """Rounds of one playout from each root move, until the limit or until another thread says stop."""
    count = game.actions(work.states[0], work.moves[0])
    work.root_count = count
    for i in range(count):
        work.visits[i] = 0
        for player in range(game.num_players):
            work.totals[i, player] = 0.0
    for _ in range(work.playout_limit):
        for i in range(count):
            work.states[1] = work.states[0]
            game.play(work.states[1], work.moves[0, i])
            if work.stop != 0 or not playout(game, evaluation, policy, work, work.states[1]):
                return
            work.visits[i] += 1
            work.nodes += 1
            for player in range(game.num_players):
                work.totals[i, player] += work.values[player]


@dataclass(frozen=True)
class Options:
    """How much and how to play out."""

    playouts: int = 1000  # from each move; 0: no such limit
    seconds: float = 0.0  # 0: no such limit
    cutoff: int = 0  # plies of a playout before the evaluation; 0: to the end of the game

    def __post_init__(self) -> None:
        if self.playouts < 0:
            raise InputError(f"playouts={self.playouts} must be 1 or more")
        if not self.seconds >= 0:
            raise InputError(f"seconds={self.seconds} must be 0 (no limit) or more")
        if self.playouts == 0 and self.seconds == 0:
            raise InputError("playouts=0 must be 1 or more, unless seconds is the limit")
        if self.cutoff < 0:
            raise InputError(f"cutoff={self.cutoff} must be 0 (play to the end) or more plies")


class MonteCarlo:
    """Flat Monte Carlo search for one game; remembers nothing but its random numbers."""

    def __init__(
        self,
        game: Game,
        evaluation: Evaluation = NOTHING,
        options: Options = Options(),
        policy: Policy = UNIFORM,
        seed: int = 0,
    ):
        self.game, self.options, self.policy, self.seed = game, options, policy, seed
        asked = options.cutoff > 0 or isinstance(policy, Greedy)
        self.evaluation = evaluation if asked else NOTHING
        room = rounded(game.max_legal)
        totals = [("totals", "f8", (room, rounded(game.num_players))), ("visits", "i8", (room,))]
        limits = [("root_count", "i8"), ("playout_limit", "i8")]
        self.work = workspace(game, "montecarlo", [*playout_fields(game), *totals, *limits])
        self.work.playout_limit = options.playouts or NO_LIMIT
        self.work.cutoff = options.cutoff
        self.ready = False
        self.reset()

    def reset(self) -> None:
        """Starts the random numbers again, so that the same position gives the same result."""
        self.work.rng = generator(self.seed)

    def stop(self) -> None:
        """Ends a running search; for use from another thread."""
        self.work.stop = 1

    def search(self, state: State) -> Result:
        """The move with the best average for the mover; among equals the first."""
        work = self.work
        player = require_player(self.game, state)
        work.states[0], work.nodes = state, 0
        if not self.ready:  # compile before the clock starts
            work.stop = 1
            montecarlo(self.game, self.evaluation, self.policy, work)
            self.ready = True
        with clock(work, self.options.seconds) as started:
            montecarlo(self.game, self.evaluation, self.policy, work)
        return self._result(player, time.perf_counter() - started)

    def _result(self, player: int, seconds: float) -> Result:
        work, count = self.work, int(self.work.root_count)
        actions, visits = work.moves[0][:count].tolist(), work.visits[:count].tolist()
        averages = (work.totals[:count] / np.maximum(work.visits[:count, None], 1)).tolist()
        rows = zip(actions, averages, visits, strict=True)
        reports = [
            MoveReport(action, average[player], AVERAGE if visited else UNKNOWN, visited, (action,))
            for action, average, visited in rows
        ]
        tried = [i for i in range(count) if visits[i] > 0]
        best = max(tried or [0], key=lambda i: averages[i][player])
        order = sorted(range(count), key=lambda i: (i != best, visits[i] == 0, -averages[i][player]))
        chosen = reports[best]
        values = tuple(averages[best][: self.game.num_players]) if tried else ()
        moves = tuple(reports[i] for i in order)
        return Result(chosen.action, chosen.value, moves, (chosen.action,), int(work.nodes), 1, seconds, values)
