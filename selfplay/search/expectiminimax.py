"""Expectiminimax and expectimax, with Star1 and Star2 pruning (Michie 1966; Ballard 1983; Hauk, Buro, Schaeffer 2004).

    value(s) = UTILITY(s)                                     if TERMINAL-TEST(s)
               EVAL(s)                                        if a player is to move and the depth is used up
               max over a of value(RESULT(s, a))              if PLAYER(s) = MAX
               min over a of value(RESULT(s, a))              if PLAYER(s) = MIN
               sum over r of P(r) * value(RESULT(s, r))       if PLAYER(s) = CHANCE

The depth counts players' moves; chance costs nothing. So `depth=1` looks at each move and, where dice follow, at
every outcome, and asks EVAL where the next player would choose; where one move is made of several actions
(backgammon, checkers), the whole move counts one. A learned evaluation may know afterstates (`Evaluation.afterstates`):
then EVAL is asked at the chance node itself where the depth is used up, before the dice.

Values here are for a `viewer`, the player who chose last above; the sign flips with the player. The bound contract is
alpha-beta's, fail-soft. Star1 prunes at chance nodes: with all utilities in [L, U], the outcomes not yet seen can add
only so much. Star2 first probes one move behind each outcome, which bounds that outcome's value from one side.
Neither changes a value. EVAL must be linear in the expected utility: an order-preserving change of the utilities can
change the choice here, unlike in minimax.
"""

import time
from typing import Any

import numpy as np

from envs.compiled import njit, njit_part
from envs.game import CHANCE, TERMINAL, Game, State
from selfplay.search.fit import require_expectation
from selfplay.search.result import EXACT, UPPER, Limits, MoveReport, Result, clock, require_player
from selfplay.search.transposition import COMPLETE, EXACT_VALUE, LOWER_BOUND, UPPER_BOUND, find, new_table, store
from selfplay.search.workspace import LEVELS, extend_line, rounded, workspace

FEW_MOVES = 4  # with fewer, a probe costs about as much as the search that it might save


@njit
def first_move(game, work, table, level):
    """The move to try first in work.states[level], the one the table knows or the loudest; and how many there are."""
    state = work.states[level]
    count = game.actions(state, work.moves[level])
    if work.table:
        found = find(table, np.uint64(game.key(state)))
        if found >= 0 and table[found].move >= 0:
            for i in range(count):
                if work.moves[level, i] == table[found].move:
                    return table[found].move, count
    best, most = work.moves[level, 0], game.move_value(state, work.moves[level, 0])
    for i in range(1, count):
        value = game.move_value(state, work.moves[level, i])
        if value > most:
            best, most = work.moves[level, i], value
    return best, count


@njit
def remaining(work, level, first, count, bounds):
    """The sum of probability * bound over the outcomes first .. count - 1."""
    total = 0.0
    for i in range(first, count):
        total += work.probabilities[level, i] * bounds[level, i]
    return total


@njit_part
def value_of(game, evaluation, work, table, level, viewer, alpha, beta, depth):
    """The value of work.states[level] for the viewer, by the contract above."""
    state = work.states[level]
    player = game.player(state)
    work.nodes += 1
    work.line_length[level] = 0
    if player == TERMINAL:
        return game.utility(state, viewer)
    known = evaluation.known(game, state, viewer)
    if not np.isnan(known):
        return known  # what tables know needs no search
    if work.stop != 0 or work.nodes > work.node_limit:
        work.stopped = 1
        return 0.0
    if player == CHANCE and depth <= 0 and evaluation.afterstates:
        work.horizon += 1
        return evaluation.evaluate_after(game, state, work.features, viewer)
    sign = 1.0 if player == CHANCE or player == viewer else -1.0
    if player != CHANCE and (depth <= 0 or level + 3 >= work.levels):
        work.horizon += 1
        return sign * evaluation.evaluate(game, state, work.features)

    if player == CHANCE:
        # 1. Every outcome lies in [L, U] until more is known of it.
        count = game.outcomes(state, work.moves[level], work.probabilities[level])
        for i in range(count):
            work.lower[level, i], work.upper[level, i] = game.min_utility, game.max_utility

        # 2. Star2: a single move of the player behind an outcome bounds that outcome's value.
        if work.star2 and depth >= 1 and count > 1:
            for i in range(count):
                work.states[level + 1] = work.states[level]
                game.play(work.states[level + 1], work.moves[level, i])
                mover = game.player(work.states[level + 1])
                if mover == TERMINAL or mover == CHANCE:
                    continue
                action, moves = first_move(game, work, table, level + 1)
                if moves < FEW_MOVES:
                    continue
                work.states[level + 2] = work.states[level + 1]
                game.play(work.states[level + 2], action)
                rest = depth - 1
                if game.compound_moves and game.player(work.states[level + 2]) == mover:
                    rest = depth
                # One of MIN's moves bounds the outcome from above, one of MAX's from below. What is asked for is only
                # whether the bound settles the node with all other outcomes at theirs.
                chance = work.probabilities[level, i]
                low, high = game.min_utility, game.max_utility
                if mover == viewer:
                    others = remaining(work, level, 0, count, work.lower) - chance * work.lower[level, i]
                    high = min(high, (beta - others) / chance)
                else:
                    others = remaining(work, level, 0, count, work.upper) - chance * work.upper[level, i]
                    low = max(low, (alpha - others) / chance)
                value = value_of(game, evaluation, work, table, level + 2, viewer, low, high, rest)
                if work.stopped:
                    return 0.0
                if mover == viewer:
                    work.lower[level, i] = max(value, game.min_utility)
                    bound = remaining(work, level, 0, count, work.lower)
                    if bound >= beta:
                        return bound
                else:
                    work.upper[level, i] = min(value, game.max_utility)
                    bound = remaining(work, level, 0, count, work.upper)
                    if bound <= alpha:
                        return bound

        # 3. Star1: the window that is left for outcome i if all later ones turn out at their bounds.
        total = 0.0
        for i in range(count):
            chance = work.probabilities[level, i]
            later_high = remaining(work, level, i + 1, count, work.upper)
            later_low = remaining(work, level, i + 1, count, work.lower)
            low, high = -np.inf, np.inf
            if work.star1:
                low = (alpha - total - later_high) / chance
                high = (beta - total - later_low) / chance
            work.states[level + 1] = work.states[level]
            game.play(work.states[level + 1], work.moves[level, i])
            value = value_of(game, evaluation, work, table, level + 1, viewer, low, high, depth)
            if work.stopped:
                return 0.0
            total += chance * value
            if value <= low:
                return total + later_high
            if value >= high:
                return total + later_low
        return total

    # 4. A player's node, as in alpha-beta, from the mover's view.
    if player != viewer:
        alpha, beta = -beta, -alpha
    first_alpha, horizon = alpha, work.horizon
    hash_move = np.int32(-1)
    key = np.uint64(0)
    if work.table:
        key = np.uint64(game.key(state))
        found = find(table, key)
        if found >= 0:
            entry = table[found]
            hash_move = entry.move
            settled = entry.bound == EXACT_VALUE
            settled |= entry.bound == LOWER_BOUND and entry.value >= beta
            settled |= entry.bound == UPPER_BOUND and entry.value <= alpha
            if settled and (entry.depth == depth or entry.depth == COMPLETE):
                work.horizon += entry.depth != COMPLETE
                return sign * entry.value
    count = game.actions(state, work.moves[level])
    if hash_move >= 0:
        for i in range(1, count):
            if work.moves[level, i] == hash_move:
                for k in range(i, 0, -1):
                    work.moves[level, k] = work.moves[level, k - 1]
                work.moves[level, 0] = hash_move
    best = -np.inf
    best_move = np.int32(-1)
    for i in range(count):
        action = work.moves[level, i]
        work.states[level + 1] = work.states[level]
        game.play(work.states[level + 1], action)
        rest = depth - 1
        if game.compound_moves and game.player(work.states[level + 1]) == player:
            rest = depth
        value = value_of(game, evaluation, work, table, level + 1, player, alpha, beta, rest)
        if work.stopped:
            return 0.0
        if value > best:
            best, best_move = value, action
            if work.prune:
                alpha = max(alpha, value)
            extend_line(work, level, action)
            if alpha >= beta:
                break
    if work.table:
        bound = LOWER_BOUND if best >= beta else UPPER_BOUND if best <= first_alpha else EXACT_VALUE
        known = COMPLETE if work.horizon == horizon else depth
        store(table, key, best, bound, known, best_move, work.search)
    return sign * best


@njit
def expectiminimax(game, evaluation, work, table, depth):
    """One search of all root moves to a depth; their values and bounds go to the root arrays."""
    one = np.int64(1)
    player = game.player(work.states[0])
    count = game.actions(work.states[0], work.moves[0])
    best = -np.inf
    for i in range(count):
        action = work.moves[0, i]
        work.states[1] = work.states[0]
        game.play(work.states[1], action)
        rest = depth - 1
        if game.compound_moves and game.player(work.states[1]) == player:
            rest = depth
        alpha = -np.inf
        if work.prune and not work.full_root:
            alpha = best
        value = value_of(game, evaluation, work, table, one, player, alpha, np.inf, rest)
        if work.stopped:
            return i
        work.root_value[i] = value
        work.root_bound[i] = UPPER_BOUND if value <= alpha and i > 0 else EXACT_VALUE
        work.root_line[i, 0] = action
        for k in range(work.line_length[1]):
            work.root_line[i, k + 1] = work.line[1, k]
        work.root_line_length[i] = work.line_length[1] + 1
        best = max(best, value)
    return count


class Expectiminimax:
    """Expectiminimax for two players or one (then it is expectimax)."""

    def __init__(
        self,
        game: Game,
        evaluation: Any,
        limits: Limits,
        prune: bool = True,
        star1: bool = True,
        star2: bool = True,
        table: bool = True,
        full_root: bool = False,
        megabytes: float = 16.0,
        name: str = "expectiminimax",
    ):
        require_expectation(game, name)
        self.game, self.evaluation, self.limits = game, evaluation, limits
        self.table = new_table(megabytes if table else 0)
        levels, moves, chances = LEVELS, rounded(game.max_legal), rounded(game.num_outcomes)
        switches = {"prune": prune, "star1": star1 and prune, "star2": star2 and prune, "table": table}
        switches["full_root"] = full_root
        self.work = workspace(
            game,
            "expectiminimax",
            [
                ("line", "i4", (levels, levels)),
                ("line_length", "i4", (levels,)),
                ("lower", "f8", (levels, chances)),
                ("upper", "f8", (levels, chances)),
                ("root_value", "f8", (moves,)),
                ("root_bound", "i4", (moves,)),
                ("root_line", "i4", (moves, levels)),
                ("root_line_length", "i4", (moves,)),
                ("search", "i8"),
                ("horizon", "i8"),  # how often the search ended short of the game's end
                *((switch, "i8") for switch in switches),
            ],
        )
        for switch, on in switches.items():
            self.work[switch] = on
        self.ready = False

    def reset(self) -> None:
        """Forgets everything, so that the same position gives the same result."""
        self.table.view(np.uint8)[:] = 0  # as bytes: sixty times quicker than record by record
        self.work.search = 0

    def stop(self) -> None:
        """Ends a running search; for use from another thread."""
        self.work.stop = 1

    def search(self, state: State) -> Result:
        """The best move: at the given depth, or the deepest depth that the other limits leave time for."""
        game, work, limits = self.game, self.work, self.limits
        require_player(game, state)
        work.states[0] = state
        if not self.ready:  # compile before the clock starts
            work.node_limit, work.nodes = 0, 0
            expectiminimax(game, self.evaluation, work, self.table, 1)
            self.ready = True
        work.nodes, work.stopped = 1, 0
        work.node_limit = limits.nodes or np.iinfo(np.int64).max
        work.search = (int(work.search) + 1) % 256
        depths = [limits.depth] if limits.depth else range(1, game.max_length + 1)
        reports: list[MoveReport] = []
        reached = 0
        with clock(work, limits.seconds) as started:
            for depth in depths:
                work.horizon = 0
                count = int(expectiminimax(game, self.evaluation, work, self.table, depth))
                if work.stopped:
                    if not reports:
                        reports = self._reports(count)
                    break
                reports, reached = self._reports(count), depth
                if work.horizon == 0:
                    break  # nothing lies beyond
            proven = bool(reached and work.horizon == 0)
        return self._result(reports, reached, proven, time.perf_counter() - started)

    def _reports(self, count: int) -> list[MoveReport]:
        work = self.work
        return [
            MoveReport(
                int(work.root_line[i][0]),
                float(work.root_value[i]),
                UPPER if work.root_bound[i] == UPPER_BOUND else EXACT,
                line=tuple(int(a) for a in work.root_line[i][: work.root_line_length[i]]),
            )
            for i in range(count)
        ]

    def _result(self, reports: list[MoveReport], depth: int, proven: bool, seconds: float) -> Result:
        nodes = int(self.work.nodes)
        if not reports:
            action = int(self.work.moves[0][0])
            return Result(action, 0.0, (), (action,), nodes, 0, seconds)
        best = max((r for r in reports if r.bound == EXACT), key=lambda report: report.value)
        reports.sort(key=lambda report: (-report.value, report.bound != EXACT))
        return Result(best.action, best.value, tuple(reports), best.line, nodes, depth, seconds, proven=proven)
