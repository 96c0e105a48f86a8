"""max^n: every player maximises their own part of a vector of utilities (Luckhardt and Irani 1986); and the paranoid
variant, where all others are taken to play against the one at the root (Sturtevant and Korf 2000).

Works for any number of players, zero-sum or not, with chance nodes (the vectors' average). Among equal values the
first move is chosen, by convention: in max^n a tie decides what the others get, so there the value is not unique.
At the depth's end the evaluation estimates the mover's utility; where utilities sum to zero, the others share the rest
equally, elsewhere theirs is taken for the middle of what is possible.
"""

import time
from typing import Any

import numpy as np

from envs.compiled import njit
from envs.game import CHANCE, TERMINAL, Game, State
from selfplay.search.result import EXACT, UPPER, Limits, MoveReport, Result, clock, require_player
from selfplay.search.workspace import LEVELS, extend_line, rounded, workspace


@njit
def estimate(game, evaluation, work, level, player):
    """Writes every player's estimated utility to work.values[level]."""
    value = evaluation.evaluate(game, work.states[level], work.features)
    for p in range(game.num_players):
        if p == player:
            work.values[level, p] = value
        elif game.zero_sum:
            work.values[level, p] = -value / (game.num_players - 1)
        else:
            work.values[level, p] = 0.5 * (game.min_utility + game.max_utility)


@njit
def maxn(game, evaluation, work, level, depth):
    """Writes the value vector of work.states[level] to work.values[level]; returns how often the depth ran out."""
    state = work.states[level]
    player = game.player(state)
    work.nodes += 1
    work.line_length[level] = 0
    if player == TERMINAL:
        for p in range(game.num_players):
            work.values[level, p] = game.utility(state, p)
        return 0
    if work.stop != 0 or work.nodes > work.node_limit:
        work.stopped = 1
        return 1
    if player != CHANCE and (depth <= 0 or level + 2 >= work.levels):
        estimate(game, evaluation, work, level, player)
        return 1
    if player == CHANCE:
        count = game.outcomes(state, work.moves[level], work.probabilities[level])
        for p in range(game.num_players):
            work.values[level, p] = 0.0
    else:
        count = game.actions(state, work.moves[level])
    best, horizon = -np.inf, 0
    for i in range(count):
        work.states[level + 1] = work.states[level]
        game.play(work.states[level + 1], work.moves[level, i])
        rest = depth - 1
        if player == CHANCE or (game.compound_moves and game.player(work.states[level + 1]) == player):
            rest = depth
        horizon += maxn(game, evaluation, work, level + 1, rest)
        if work.stopped:
            return 1
        if player == CHANCE:
            for p in range(game.num_players):
                work.values[level, p] += work.probabilities[level, i] * work.values[level + 1, p]
        elif work.values[level + 1, player] > best:
            best = work.values[level + 1, player]
            for p in range(game.num_players):
                work.values[level, p] = work.values[level + 1, p]
            extend_line(work, level, work.moves[level, i])
    return horizon


@njit
def paranoid(game, evaluation, work, level, depth, alpha, beta, viewer):
    """The value for the viewer if all others play against them: alpha-beta between one and the rest, fail-soft."""
    state = work.states[level]
    player = game.player(state)
    work.nodes += 1
    work.line_length[level] = 0
    if player == TERMINAL:
        return game.utility(state, viewer)
    if work.stop != 0 or work.nodes > work.node_limit:
        work.stopped = 1
        return 0.0
    if player != CHANCE and (depth <= 0 or level + 2 >= work.levels):
        work.horizon += 1
        estimate(game, evaluation, work, level, player)
        return work.values[level, viewer]
    if player == CHANCE:
        count = game.outcomes(state, work.moves[level], work.probabilities[level])
    else:
        count = game.actions(state, work.moves[level])
    total, best = 0.0, -np.inf if player == viewer else np.inf
    for i in range(count):
        work.states[level + 1] = work.states[level]
        game.play(work.states[level + 1], work.moves[level, i])
        rest, low, high = depth - 1, alpha, beta
        if player == CHANCE:
            rest, low, high = depth, -np.inf, np.inf  # an average needs exact values
        elif game.compound_moves and game.player(work.states[level + 1]) == player:
            rest = depth
        value = paranoid(game, evaluation, work, level + 1, rest, low, high, viewer)
        if work.stopped:
            return 0.0
        if player == CHANCE:
            total += work.probabilities[level, i] * value
        elif value > best if player == viewer else value < best:
            best = value
            extend_line(work, level, work.moves[level, i])
            if player == viewer:
                alpha = max(alpha, value)
            else:
                beta = min(beta, value)
            if alpha >= beta:
                break
    return total if player == CHANCE else best


class MaxN:
    """max^n to a depth (0: to the end), or its paranoid variant."""

    def __init__(self, game: Game, evaluation: Any, limits: Limits, paranoid: bool = False):
        self.game, self.evaluation, self.limits, self.paranoid = game, evaluation, limits, paranoid
        self.work = workspace(
            game,
            "maxn",
            [
                ("line", "i4", (LEVELS, LEVELS)),
                ("line_length", "i4", (LEVELS,)),
                ("values", "f8", (LEVELS, rounded(game.num_players))),
                ("horizon", "i8"),
            ],
        )
        self.ready = False

    def reset(self) -> None:
        """There is nothing to forget."""

    def stop(self) -> None:
        """Ends a running search; for use from another thread."""
        self.work.stop = 1

    def search(self, state: State) -> Result:
        """Every move's value; in max^n with the whole vector of the best one."""
        game, work, limits = self.game, self.work, self.limits
        player = require_player(game, state)
        if not self.ready:  # compile before the clock starts
            work.states[0], work.node_limit = state, 0
            self._value(0, 0, player, -np.inf)
            self.ready = True
        work.nodes, work.stopped, work.horizon = 1, 0, 0
        work.node_limit = limits.nodes or np.iinfo(np.int64).max
        depth = limits.depth or game.max_length + 1
        actions = [int(a) for a in work.moves[0][: game.actions(state, work.moves[0])]]
        reports: list[MoveReport] = []
        best = -np.inf
        vector: tuple[float, ...] = ()
        with clock(work, limits.seconds) as started:
            for action in actions:
                work.states[1] = state
                with np.errstate(over="ignore"):
                    game.play(work.states[1], action)
                same_move = game.compound_moves and game.player(work.states[1]) == player
                value = self._value(1, depth if same_move else depth - 1, player, best)
                if work.stopped:
                    break
                bound = UPPER if self.paranoid and reports and value <= best else EXACT
                line = (action, *(int(a) for a in work.line[1][: work.line_length[1]]))
                reports.append(MoveReport(action, value, bound, line=line))
                if value > best:
                    best, vector = value, tuple(float(v) for v in work.values[1][: game.num_players])
        seconds, nodes = time.perf_counter() - started, int(work.nodes)
        if not reports:
            return Result(actions[0], 0.0, (), (actions[0],), nodes, 0, seconds)
        chosen = max((r for r in reports if r.bound == EXACT), key=lambda report: report.value)
        proven = bool(work.horizon == 0 and not work.stopped and not self.paranoid)
        values = () if self.paranoid else vector
        reached = limits.depth or len(chosen.line)
        return Result(chosen.action, best, tuple(reports), chosen.line, nodes, reached, seconds, values, proven)

    def _value(self, level: int, depth: int, player: int, alpha: float) -> float:
        if self.paranoid:
            return float(paranoid(self.game, self.evaluation, self.work, level, depth, alpha, np.inf, player))
        self.work.horizon += maxn(self.game, self.evaluation, self.work, level, depth)
        return float(self.work.values[level][player])
