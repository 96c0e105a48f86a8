"""Alpha-beta at the root: iterative deepening, aspiration windows, and values that never claim too much.

With pruning, a root move that is not better than the best one is only known by an upper bound, which may happen to
equal the best value. Such a move is reported as a bound and never chosen (`full_root` gives every move its exact value).
"""

import time
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from envs.compiled import njit
from envs.errors import InputError
from envs.game import TERMINAL, Game, State
from selfplay.search.alphabeta import NULL_WINDOW, SORT_DEPTH, next_move, score_moves, search
from selfplay.search.fit import require_two_players
from selfplay.search.result import EXACT, LOWER, UNKNOWN, UPPER, Limits, MoveReport, Result, clock, require_player
from selfplay.search.transposition import EXACT_VALUE, LOWER_BOUND, NO_BOUND, UPPER_BOUND, new_table
from selfplay.search.wins import leaf_utility, plain_value, plies_of_win, win_value
from selfplay.search.workspace import LEVELS, rounded, workspace

_BOUND_NAMES = {NO_BOUND: UNKNOWN, UPPER_BOUND: UPPER, LOWER_BOUND: LOWER, EXACT_VALUE: EXACT}
_MOST_CUTS = 33  # depths with ProbCut parameters


@njit
def search_root(game, evaluation, work, table, count, alpha, beta, depth):
    """One iteration over the root's moves in their present order; returns the best value.

    Each move's value and bound go to `root_value` and `root_bound`: a move that was only shown not to be better
    than the best keeps an upper bound, and is never chosen.
    """
    one = np.int64(1)  # a literal level would be a type of its own, and compile everything once more
    player = game.player(work.states[0])
    best = -np.inf
    for i in range(count):
        action = work.root_move[i]
        work.states[1] = work.states[0]
        game.play(work.states[1], action)
        mover = game.player(work.states[1])
        low = -np.inf if work.full_root else alpha
        if mover == TERMINAL:
            work.nodes += 1
            work.line_length[1] = 0
            value = leaf_utility(game, work.states[1], player, one)
            low, high = -np.inf, np.inf
        else:
            sign = 1.0 if mover == player else -1.0
            rest = depth if game.compound_moves and mover == player else depth - 1
            high = beta
            if work.pvs and i > 0 and not work.full_root:
                high = min(beta, alpha + NULL_WINDOW)
            low_child, high_child = (low, high) if mover == player else (-high, -low)
            value = sign * search(game, evaluation, work, table, one, low_child, high_child, rest, np.int64(0))
            if high < beta and alpha < value < beta and not work.stopped:
                high = beta
                low_child, high_child = (low, high) if mover == player else (-high, -low)
                value = sign * search(game, evaluation, work, table, one, low_child, high_child, rest, np.int64(0))
        if work.stopped:
            return best
        work.root_value[i] = value
        work.root_bound[i] = UPPER_BOUND if value <= low else LOWER_BOUND if value >= high else EXACT_VALUE
        work.root_line_length[i] = 1 + work.line_length[1]
        work.root_line[i, 0] = action
        for k in range(work.line_length[1]):
            work.root_line[i, k + 1] = work.line[1, k]
        best = max(best, value)
        if value > alpha:
            alpha = value
            if alpha >= beta:
                for k in range(i + 1, count):
                    work.root_bound[k] = NO_BOUND
                break
    return best


@njit
def best_first(work, count):
    """Puts the best root move first and the others by their values, for the next iteration; equal ones keep order."""
    for i in range(1, count):
        for k in range(i, 0, -1):
            here, before = work.root_bound[k], work.root_bound[k - 1]
            better = work.root_value[k] > work.root_value[k - 1]
            if here == NO_BOUND:
                better = False
            elif before == NO_BOUND:
                better = True
            elif work.root_value[k] == work.root_value[k - 1]:  # an upper bound is no match for the value itself
                better = here != UPPER_BOUND and before == UPPER_BOUND
            if not better:
                break
            swap_root(work, k)


@njit
def swap_root(work, k):
    """Exchanges the root moves k - 1 and k."""
    work.root_move[k], work.root_move[k - 1] = work.root_move[k - 1], work.root_move[k]
    work.root_value[k], work.root_value[k - 1] = work.root_value[k - 1], work.root_value[k]
    work.root_bound[k], work.root_bound[k - 1] = work.root_bound[k - 1], work.root_bound[k]
    for j in range(max(work.root_line_length[k], work.root_line_length[k - 1])):
        work.root_line[k, j], work.root_line[k - 1, j] = work.root_line[k - 1, j], work.root_line[k, j]
    work.root_line_length[k], work.root_line_length[k - 1] = work.root_line_length[k - 1], work.root_line_length[k]


@njit
def alphabeta(game, evaluation, work, table, first_depth, last_depth):
    """Iterative deepening (Slate and Atkin 1977); returns the deepest finished depth. The root arrays hold its result."""
    count = game.actions(work.states[0], work.moves[0])
    zero = np.int64(0)
    score_moves(game, evaluation, work, zero, count, np.int32(-1), game.player(work.states[0]), np.int64(SORT_DEPTH))
    for i in range(count):
        work.root_move[i] = next_move(work, zero, i, count)
        work.root_bound[i] = NO_BOUND
    work.root_count = count
    finished = 0
    value = 0.0
    for depth in range(first_depth, last_depth + 1):
        keep_root(work, count)
        work.root_depth = depth
        low, high = -np.inf, np.inf
        width = work.aspiration * (game.max_utility - game.min_utility)
        if width > 0.0 and finished >= 2 and not work.full_root and abs(value) < win_value(game):
            low, high = value - width, value + width
        while True:
            work.horizon = 0
            value = search_root(game, evaluation, work, table, count, low, high, depth)
            if work.stopped or low < value < high:
                break
            best_first(work, count)  # the window was too narrow: open it on the side that failed
            if value >= high:
                high = np.inf
            else:
                low = -np.inf
        if work.stopped:
            restore_root(work, count)
            break
        best_first(work, count)
        finished = depth
        if work.horizon == 0:
            break  # nothing lies beyond: the values are those of the whole game
        if abs(value) >= win_value(game) and not work.full_root and plies_of_win(game, value) <= depth:
            break  # a forced win or loss, and no shorter one: all depths below were searched
    return finished


@njit
def keep_root(work, count):
    """Keeps the last finished iteration, in case the next one is stopped."""
    for i in range(count):
        work.kept_move[i] = work.root_move[i]
        work.kept_value[i] = work.root_value[i]
        work.kept_bound[i] = work.root_bound[i]
        work.kept_line_length[i] = work.root_line_length[i]
        for k in range(work.root_line_length[i]):
            work.kept_line[i, k] = work.root_line[i, k]


@njit
def restore_root(work, count):
    """Takes the last finished iteration back."""
    for i in range(count):
        work.root_move[i] = work.kept_move[i]
        work.root_value[i] = work.kept_value[i]
        work.root_bound[i] = work.kept_bound[i]
        work.root_line_length[i] = work.kept_line_length[i]
        for k in range(work.kept_line_length[i]):
            work.root_line[i, k] = work.kept_line[i, k]


@dataclass(frozen=True)
class Switches:
    """What is added to plain alpha-beta. The first group changes no value, the second may."""

    deepening: bool = True  # iterative deepening; off: one search to the full depth
    table: bool = True  # transposition table
    symmetry: bool = True  # mirror images share an entry of the table
    order: bool = True  # loud moves first, by `Game.move_value`
    killers: bool = True  # Akl and Newborn 1977
    history: bool = True  # Schaeffer 1983
    sort: bool = True  # by the evaluation, far from the leaves
    pvs: bool = True  # principal variation search
    aspiration: float = 0.02  # half the first window, as a part of the utility's range; 0: an open window
    full_root: bool = False  # the exact value of every root move
    quiescence: bool = True  # play out loud moves at the horizon
    extend: bool = False  # a ply more where the move gives check (or leaves no choice but to capture)
    beam: int = 0  # only so many moves at a node; 0: all
    null: bool = False  # null move, where the game says it may
    reductions: bool = False  # late-move reductions
    probcut: float = 0.0  # how many standard deviations make a cut (Buro: 1.5); 0: off

    def __post_init__(self) -> None:
        if self.beam < 0 or self.probcut < 0 or self.aspiration < 0:
            raise InputError("beam, probcut and aspiration must be 0 (off) or more")


PLAIN = Switches(False, False, False, False, False, False, False, False, 0.0, False, False)


class AlphaBeta:
    """Alpha-beta for one game and evaluation; keeps its table from move to move until `reset`."""

    def __init__(
        self,
        game: Game,
        evaluation: Any,
        limits: Limits,
        switches: Switches = Switches(),
        megabytes: float = 64.0,
        cuts: Any = None,
    ):
        require_two_players(game, "alphabeta")
        self.game, self.evaluation, self.limits, self.switches = game, evaluation, limits, switches
        self.table = new_table(megabytes if switches.table else 0)
        self.work = workspace(game, "alphabeta", _fields(game))
        for field in fields(switches):
            self.work[field.name] = getattr(switches, field.name)
        self.work.probcut = switches.probcut > 0
        self.work.cut_margin = switches.probcut
        self.work.symmetry = switches.symmetry and game.num_symmetries > 1
        if self.work.symmetry:
            for i, image in enumerate(game.symmetries()):
                self.work.target[i][: game.num_actions] = image.actions
                self.work.source[i][: game.num_actions] = np.argsort(image.actions)
        self.ready = False
        if switches.probcut > 0:
            self._set_cuts(cuts)

    def _set_cuts(self, cuts: Any) -> None:
        if not cuts:
            raise InputError("probcut needs fitted parameters, and this game and evaluation have none")
        for cut in cuts:
            depth = cut["depth"]
            if 0 < depth < _MOST_CUTS:
                self.work.cut_depth[depth] = cut["shallow"]
                self.work.cut_slope[depth], self.work.cut_offset[depth] = cut["slope"], cut["offset"]
                self.work.cut_sigma[depth] = cut["sigma"]

    def reset(self) -> None:
        """Forgets everything, so that the same position gives the same result."""
        self.table.view(np.uint8)[:] = 0  # as bytes: sixty times quicker than record by record
        self.work.success[:] = 0
        self.work.killer[:] = -1
        self.work.search = 0

    def search(self, state: State) -> Result:
        """The best move within the limits; the deepest finished iteration decides."""
        game, work, limits = self.game, self.work, self.limits
        require_player(game, state)
        self._prepare(state)
        last = min(limits.depth or game.max_length, game.max_length)
        with clock(work, limits.seconds) as started:
            first = 1 if self.switches.deepening else last
            depth = int(alphabeta(game, self.evaluation, work, self.table, first, last))
        return self._result(depth, time.perf_counter() - started)

    def _prepare(self, state: State) -> None:
        """A new search of that position; compiled before a clock starts."""
        work = self.work
        work.states[0] = state
        if not self.ready:
            alphabeta(self.game, self.evaluation, work, self.table, 1, 0)
            self.ready = True
        work.nodes, work.stopped = 1, 0
        work.node_limit = self.limits.nodes or np.iinfo(np.int64).max
        work.search = (int(work.search) + 1) % 256
        work.killer[:] = -1

    def solve(self, state: State) -> tuple[int, float] | None:
        """The best action and its exact value, or None where the limit of nodes comes first: `search` for those who
        ask thousands of times a second, and want to know nothing else."""
        self._prepare(state)
        depth = int(alphabeta(self.game, self.evaluation, self.work, self.table, 1, self.game.max_length))
        if self.work.stopped or not self._is_proven(depth):
            return None
        return int(self.work.root_move[0]), plain_value(self.game, float(self.work.root_value[0]))

    def _is_proven(self, depth: int) -> bool:
        return depth > 0 and (
            bool(self.work.horizon == 0) or abs(float(self.work.root_value[0])) >= win_value(self.game)
        )

    def stop(self) -> None:
        """Ends a running search; for use from another thread."""
        self.work.stop = 1

    def _result(self, depth: int, seconds: float) -> Result:
        game, work = self.game, self.work
        reports = []
        for i in range(int(work.root_count)):
            bound = _BOUND_NAMES[int(work.root_bound[i])]
            value = plain_value(game, float(work.root_value[i])) if bound != UNKNOWN else 0.0
            line = tuple(int(a) for a in work.root_line[i][: work.root_line_length[i]]) if bound != UNKNOWN else ()
            reports.append(MoveReport(int(work.root_move[i]), value, bound, line=line))
        best = reports[0]
        line = best.line or (best.action,)
        found = best.action, best.value, tuple(reports), line, int(work.nodes), depth, seconds
        return Result(*found, proven=self._is_proven(depth))


def _fields(game: Game) -> list[tuple[Any, ...]]:
    levels, moves, actions = LEVELS, rounded(game.max_legal), rounded(game.num_actions)
    images = rounded(game.num_symmetries) if game.num_symmetries > 1 else 1
    root: list[tuple[Any, ...]] = [("move", "i4", (moves,)), ("value", "f8", (moves,)), ("bound", "i4", (moves,))]
    root += [("line", "i4", (moves, levels)), ("line_length", "i4", (moves,))]
    return [
        ("scores", "i4", (levels, moves)),
        ("line", "i4", (levels, levels)),
        ("line_length", "i4", (levels,)),
        ("killer", "i4", (levels, 2)),
        ("success", "i4", (2, actions)),
        ("target", "i4", (images, actions)),  # where each symmetry takes an action, and what it brings there
        ("source", "i4", (images, actions)),
        ("horizon", "i8"),  # how often the search ended short of the game's end
        ("search", "i8"),
        ("root_depth", "i8"),
        ("root_count", "i8"),
        *((f"root_{name}", *rest) for name, *rest in root),
        *((f"kept_{name}", *rest) for name, *rest in root),
        *((field.name, "f8" if field.name == "aspiration" else "i8") for field in fields(Switches)),
        ("cut_margin", "f8"),
        ("cut_depth", "i8", (_MOST_CUTS,)),
        ("cut_slope", "f8", (_MOST_CUTS,)),
        ("cut_offset", "f8", (_MOST_CUTS,)),
        ("cut_sigma", "f8", (_MOST_CUTS,)),
    ]
