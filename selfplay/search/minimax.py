"""Minimax, as in the textbook (Russell and Norvig, Artificial Intelligence, ch. 5; von Neumann 1928):

    MINIMAX(s) = UTILITY(s)                                       if TERMINAL-TEST(s)
                 EVAL(s)                                          if CUTOFF-TEST(s, depth)
                 max over a in ACTIONS(s) of MINIMAX(RESULT(s, a))   if PLAYER(s) = MAX
                 min over a in ACTIONS(s) of MINIMAX(RESULT(s, a))   if PLAYER(s) = MIN

MAX is the player to move at the root. This is the reference that the other searches are tested against, so it
keeps MAX and MIN apart and has no refinement at all.
"""

import time
from typing import Any

import numpy as np

from envs.compiled import njit
from envs.game import TERMINAL, Game, State
from selfplay.search.fit import require_two_players
from selfplay.search.result import Limits, MoveReport, Result, clock, require_player
from selfplay.search.workspace import LEVELS, extend_line, workspace

TO_THE_END = 1 << 20  # a depth that no game reaches


@njit
def minimax(game, evaluation, work, level, depth, max_player):
    """MINIMAX of work.states[level], for MAX; writes the best line."""
    state = work.states[level]
    player = game.player(state)
    work.nodes += 1
    work.line_length[level] = 0
    if player == TERMINAL:
        return game.utility(state, max_player)
    if work.stop != 0 or work.nodes > work.node_limit:
        work.stopped = 1
        return 0.0
    if depth <= 0 or level + 1 >= work.levels:
        value = evaluation.evaluate(game, state, work.features)
        return value if player == max_player else -value
    best = -np.inf if player == max_player else np.inf
    for i in range(game.actions(state, work.moves[level])):
        action = work.moves[level, i]
        work.states[level + 1] = work.states[level]  # RESULT(s, a) is played on a copy
        game.play(work.states[level + 1], action)
        same_move = game.compound_moves and game.player(work.states[level + 1]) == player
        value = minimax(game, evaluation, work, level + 1, depth if same_move else depth - 1, max_player)
        if value > best if player == max_player else value < best:
            best = value
            extend_line(work, level, action)
    return best


class Minimax:
    """Minimax to a depth, or to the end of the game for depth 0."""

    def __init__(self, game: Game, evaluation: Any, limits: Limits):
        require_two_players(game, "minimax")
        self.game, self.evaluation, self.limits = game, evaluation, limits
        self.work = workspace(game, "minimax", [("line", "i4", (LEVELS, LEVELS)), ("line_length", "i4", (LEVELS,))])
        self.ready = False

    def reset(self) -> None:
        """There is nothing to forget."""

    def stop(self) -> None:
        """Ends a running search; for use from another thread."""
        self.work.stop = 1

    def search(self, state: State) -> Result:
        """The exact value of every move, within the depth."""
        game, work = self.game, self.work
        player = require_player(game, state)
        if not self.ready:  # compile before the clock starts
            work.states[0], work.node_limit = state, 0
            minimax(game, self.evaluation, work, 0, 0, player)
            self.ready = True
        work.nodes, work.stopped = 1, 0
        work.node_limit = self.limits.nodes or np.iinfo(np.int64).max
        depth = self.limits.depth or TO_THE_END
        reports: list[MoveReport] = []
        with clock(work, self.limits.seconds) as started:
            work.states[0] = state
            for action in [int(a) for a in work.moves[0][: game.actions(state, work.moves[0])]]:
                work.states[1] = state
                with np.errstate(over="ignore"):
                    game.play(work.states[1], action)
                same_move = game.compound_moves and game.player(work.states[1]) == player
                value = float(minimax(game, self.evaluation, work, 1, depth - (not same_move), player))
                if work.stopped:
                    break
                line = (action, *(int(a) for a in work.line[1][: work.line_length[1]]))
                reports.append(MoveReport(action, value, line=line))
        return _result(reports, work, self.limits.depth, time.perf_counter() - started)


def _result(reports: list[MoveReport], work: Any, depth: int, seconds: float) -> Result:
    if not reports:  # stopped before the first move was known
        action = int(work.moves[0][0])
        return Result(action, 0.0, (), (action,), int(work.nodes), 0, seconds)
    best = max(reports, key=lambda report: report.value)  # the first of equals, as in the book
    return Result(best.action, best.value, tuple(reports), best.line, int(work.nodes), depth or len(best.line), seconds)
