"""Connect Four solved exactly: bitboards, moves that do not lose at once, threats first, a table of bounds, and empty
windows on the distance (the ideas of Allen 1988, Allis 1988, Tromp's Fhourstones and Pons's solver notes).

Scores are in half-moves to the win, from the mover's view: a win with t discs on the board scores
(cells + 2 - t) // 2, a loss the same below zero, a draw 0. On 7x6 that is 22 minus the discs that the winner has
used, the convention of Pons' test sets.

The bound contract of `search`, fail-soft, for the empty window (alpha, alpha + 1): a value <= alpha is an upper bound
of the true score, a value > alpha a lower bound. The mover must not be able to win at once.

Everything in the table is a fact about a position, so it stays true from search to search.
"""

import time
from typing import Any

import numpy as np

from envs.bits import ONE, ZERO, popcount, without_lowest
from envs.compiled import njit
from envs.connect_four import ConnectFour
from envs.game import TERMINAL, State
from selfplay.search.result import Limits, clock, require_player
from selfplay.solvers.prefetch import prefetch
from selfplay.solvers.solution import (
    NO_LIMITS,
    MoveValue,
    Solution,
    Solver,
    after,
    final_utility,
    legal,
    mover,
    refuse,
    warm_up,
)

LEVELS = 64  # no board has more cells
_MOVES = 16
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd, so that multiplying loses nothing
_VALUE_BITS = 7  # the score plus 32, and whether it is a lower bound
_WORK_BITS = 2  # how much work an entry stands for
_SPARE = _VALUE_BITS + _WORK_BITS
MIRROR_PLIES = 16  # beyond so many discs mirror images hardly meet, and looking for them costs more than it saves
PROBE_PLIES = 26  # up to here all children are looked up before the first is searched


@njit
def completing(stones, step):
    """The cells that would complete four in a line whose cells are `step` bits apart."""
    once, twice, thrice = np.uint64(step), np.uint64(2 * step), np.uint64(3 * step)
    left, right = stones << once, stones >> once
    found = left & (stones << twice) & ((stones << thrice) | right)
    return found | (right & (stones >> twice) & ((stones >> thrice) | left))


@njit
def winning_cells(game, stones):
    """The cells that would complete four in a line, whether they are empty, playable, or not."""
    upright = (stones << np.uint64(1)) & (stones << np.uint64(2)) & (stones << np.uint64(3))  # only on top
    level, falling, rising = game.rows + 1, game.rows, game.rows + 2
    return upright | completing(stones, level) | completing(stones, falling) | completing(stones, rising)


@njit
def position_key(game, mine, occupied, plies):
    """One word per position: adding the bottom row marks each column's height. Early on the lesser of two mirror images."""
    key = mine + occupied + game.bottom
    if plies <= MIRROR_PLIES:
        key = min(key, game.mirrored(mine) + game.mirrored(occupied) + game.bottom)
    return key


@njit
def fetch(table, work, key):
    """Tells the processor that the position's entry will be asked for: memory is slower than all the rest."""
    prefetch(table, (((key * _MULTIPLIER) & work.key_mask) >> work.tag_bits) << ONE)


@njit
def probe(table, work, key):
    """The value part of the position's entry, or 0. The hash is a bijection, so equal tags are equal positions."""
    spread = (key * _MULTIPLIER) & work.key_mask
    first = (spread >> work.tag_bits) << ONE
    tag = (spread & work.tag_mask) << np.uint64(_SPARE)
    entry = np.uint64(table[first])
    if (entry ^ tag) >> np.uint64(_SPARE) != ZERO or entry == ZERO:
        entry = np.uint64(table[first + ONE])
        if (entry ^ tag) >> np.uint64(_SPARE) != ZERO:
            return np.int64(0)
    return np.int64((entry >> np.uint64(_WORK_BITS)) & np.uint64((1 << _VALUE_BITS) - 1))


@njit
def store(table, work, key, code, work_class):
    """Two places per position: one for what cost most, the other for the latest."""
    spread = (key * _MULTIPLIER) & work.key_mask
    first = (spread >> work.tag_bits) << ONE
    tag = (spread & work.tag_mask) << np.uint64(_SPARE)
    entry = tag | np.uint64(code << _WORK_BITS) | np.uint64(work_class)
    old = np.uint64(table[first])
    same = (old ^ tag) >> np.uint64(_SPARE) == ZERO
    if same or np.int64(old & np.uint64((1 << _WORK_BITS) - 1)) <= work_class:
        if not same and old != ZERO:
            table[first + ONE] = old
        table[first] = entry
    else:
        table[first + ONE] = entry


@njit
def search(game, work, table, mine, occupied, alpha):
    """The score of a position as a bound relative to alpha, by the contract above; walks the tree with its own stack."""
    cells = game.rows * game.columns
    base = popcount(occupied)
    level = 0
    work.mine[0], work.occupied[0] = mine, occupied
    value = 0
    while True:
        # 1. A new node. What the opponent threatens leaves few moves.
        work.nodes += 1
        if work.stop != 0 or work.nodes > work.node_limit:
            work.stopped = 1
            return 0
        mine, occupied = work.mine[level], work.occupied[level]
        plies = base + level
        window = alpha if level & 1 == 0 else -alpha - 1
        playable = (occupied + game.bottom) & game.board
        threats = winning_cells(game, mine ^ occupied) & game.board & ~occupied
        forced = playable & threats
        moves = playable
        if forced != ZERO:
            moves = forced if without_lowest(forced) == ZERO else ZERO
        moves &= ~(threats >> ONE)
        leaf = True
        if moves == ZERO:
            value = -((cells - plies) // 2)  # the opponent wins with the next disc
        elif plies >= cells - 2:
            value = 0
        elif (cells - 1 - plies) // 2 <= window:
            value = (cells - 1 - plies) // 2  # a win with the second disc from here is the best there can be
        elif -((cells - 2 - plies) // 2) > window:
            value = -((cells - 2 - plies) // 2)
        else:
            leaf = False
        if not leaf:
            work.before[level] = work.nodes
            work.best[level] = -((cells - 2 - plies) // 2)
            work.index[level] = 0
            if without_lowest(moves) == ZERO:
                work.count[level] = 1  # forced: nothing to order, and nothing worth a place in the table
                work.moves[level, 0] = moves
                work.keys[level] = ZERO
                fetch(table, work, position_key(game, mine ^ occupied, occupied | moves, plies + 1))
            else:
                # 2. The table.
                key = position_key(game, mine, occupied, plies)
                work.keys[level] = key
                code = probe(table, work, key)
                if code != 0:
                    known = (code >> 1) - 32
                    if code & 1 == 1:
                        if known > window:
                            leaf, value = True, known
                        elif known > work.best[level]:
                            work.best[level] = known
                    elif known <= window:
                        leaf, value = True, known
                if not leaf:
                    # 3. The moves, those that make most threats first, the centre before the sides.
                    count = 0
                    for k in range(game.columns):
                        move = moves & work.column[k]
                        if move != ZERO:
                            after = winning_cells(game, mine | move) & game.board & ~(occupied | move)
                            score = popcount(after)
                            fetch(table, work, position_key(game, mine ^ occupied, occupied | move, plies + 1))
                            i = count
                            while i > 0 and work.scores[level, i - 1] < score:
                                work.scores[level, i] = work.scores[level, i - 1]
                                work.moves[level, i] = work.moves[level, i - 1]
                                i -= 1
                            work.scores[level, i] = score
                            work.moves[level, i] = move
                            count += 1
                    work.count[level] = count
                    # 4. Enhanced transposition cut-offs (Plaat et al. 1996): a child may be known to refute.
                    if plies <= PROBE_PLIES:
                        for i in range(count):
                            move = work.moves[level, i]
                            key = position_key(game, mine ^ occupied, occupied | move, plies + 1)
                            code = probe(table, work, key)
                            if code != 0 and code & 1 == 0 and 32 - (code >> 1) > window:
                                leaf, value = True, 32 - (code >> 1)
                                break
        # 5. Back up as far as nodes are finished, then go down the next move.
        if leaf:
            while True:
                if level == 0:
                    return value
                level -= 1
                value = -value
                window = alpha if level & 1 == 0 else -alpha - 1
                work.best[level] = max(work.best[level], value)
                if value > window or work.index[level] == work.count[level]:
                    value = value if value > window else work.best[level]
                    if work.keys[level] != ZERO:
                        spent = work.nodes - work.before[level]
                        work_class = (spent >= 64) + (spent >= 2048) + (spent >= 65536)
                        code = ((value + 32) << 1) | (1 if value > window else 0)
                        store(table, work, work.keys[level], code, work_class)
                    continue
                break
        move = work.moves[level, work.index[level]]
        work.index[level] += 1
        work.mine[level + 1] = work.mine[level] ^ work.occupied[level]
        work.occupied[level + 1] = work.occupied[level] | move
        level += 1


@njit
def can_win_at_once(game, mine, occupied):
    playable = (occupied + game.bottom) & game.board
    return winning_cells(game, mine) & playable != ZERO


@njit
def score(game, work, table, mine, occupied, low, high):
    """The exact score if it lies within low .. high (else the nearer end), by empty windows that start at zero."""
    cells, plies = game.rows * game.columns, popcount(occupied)
    if plies == cells:
        return np.int64(0)
    if can_win_at_once(game, mine, occupied):
        return np.int64((cells + 1 - plies) // 2)
    low = max(low, -((cells - plies) // 2))
    high = min(high, (cells - 1 - plies) // 2)
    while low < high:
        middle = low + (high - low) // 2
        if middle <= 0 and -(-low // 2) < middle:
            middle = -(-low // 2)
        elif middle >= 0 and high // 2 > middle:
            middle = high // 2
        value = search(game, work, table, mine, occupied, np.int64(middle))
        if work.stopped:
            return np.int64(0)
        if value <= middle:
            high = value
        else:
            low = value
    return np.int64(low)


@njit
def score_all(game, work, table, states, scores):
    """The exact scores of many positions."""
    for i in range(len(states)):
        scores[i] = score(game, work, table, states[i].mine, states[i].occupied, np.int64(-LEVELS), np.int64(LEVELS))


WORK = np.dtype(
    [
        ("for_connect_four", "i8"),
        ("mine", "u8", (LEVELS,)),
        ("occupied", "u8", (LEVELS,)),
        ("keys", "u8", (LEVELS,)),  # 0: not for the table
        ("best", "i8", (LEVELS,)),
        ("before", "i8", (LEVELS,)),  # nodes when the node began
        ("count", "i8", (LEVELS,)),
        ("index", "i8", (LEVELS,)),
        ("scores", "i8", (LEVELS, _MOVES)),
        ("moves", "u8", (LEVELS, _MOVES)),  # as bits
        ("column", "u8", (_MOVES,)),  # the columns' cells, the centre first
        ("key_mask", "u8"),
        ("tag_mask", "u8"),
        ("tag_bits", "u8"),
        ("nodes", "i8"),
        ("node_limit", "i8"),
        ("stop", "i8"),
        ("stopped", "i8"),
    ],
    align=True,
)


def new_table(bits: int, megabytes: float) -> tuple[np.ndarray, int]:
    """A zeroed table of at most that size for keys of so many bits, and the number of bits of a pair's index.

    Four bytes an entry where tag, value and work fit in, else eight.
    """
    for size, kind in ((4, np.uint32), (8, np.uint64)):
        pairs = max(1, int(megabytes * 2**20) // (2 * size))
        index = min(pairs.bit_length() - 1, bits - 1)
        if bits - index + _SPARE <= 8 * size:
            return np.zeros(2 << index, kind), index
    index = bits + _SPARE - 64  # the least that leaves room for the tag: a few kilobytes
    return np.zeros(2 << index, np.uint64), index


class ConnectFourSolver(Solver):
    """Solves any position of any board with four in a line; the table stays from position to position."""

    default_seconds = 0.0

    def __init__(self, game: ConnectFour, limits: Limits = NO_LIMITS, megabytes: float = 512.0):
        self.game, self.limits = game, limits
        self.cells = game.rows * game.columns
        bits = (game.rows + 1) * game.columns
        self.table, index = new_table(bits, megabytes)
        self.work: Any = np.zeros(1, WORK).view(np.recarray)[0]
        self.work.key_mask = 2**bits - 1
        self.work.tag_bits, self.work.tag_mask = bits - index, 2 ** (bits - index) - 1
        for i, column in enumerate(sorted(range(game.columns), key=lambda c: abs(2 * c - game.columns + 1))):
            self.work.column[i] = (2**game.rows - 1) << (game.rows + 1) * column
        self.started = 0.0

    def reset(self) -> None:
        self.table[:] = 0

    def solve(self, state: State) -> Solution:
        require_player(self.game, state)
        with self._clock():
            score = self._score(state, -self.cells, self.cells)
            scores = {action: self._move(state, action, score, score) for action in legal(self.game, state)}
            best = tuple(action for action, found in scores.items() if found == score)
        distance = self.distance(state, score)
        value = float(np.sign(score))
        return Solution(
            value,
            distance,
            best,
            int(self.work.nodes),
            time.perf_counter() - self.started,
            "Connect Four solver",
            {action: MoveValue(value, distance, score) for action in best},
            score,
        )

    def score(self, state: State) -> int:
        """The position's score in the convention of the test sets."""
        with self._clock():
            return self._score(state, -self.cells, self.cells)

    def score_many(self, states: Any) -> np.ndarray:
        """The scores of an array of positions; the limits hold for all of them together."""
        found = np.zeros(len(states), np.int64)
        with self._clock():
            score_all(self.game, self.work, self.table, states, found)
        if self.work.stopped:
            raise refuse("the Connect Four solver", int(self.work.nodes), time.perf_counter() - self.started)
        return found

    def scores(self, state: State) -> dict[int, int]:
        """Every legal move's exact score for the mover."""
        with self._clock():
            return {a: self._move(state, a, -self.cells, self.cells) for a in legal(self.game, state)}

    def values(self, state: State) -> dict[int, float]:
        with self._clock():
            return {a: float(np.sign(self._move(state, a, -1, 1))) for a in legal(self.game, state)}

    def all_moves(self, state: State) -> dict[int, MoveValue]:
        return {
            action: MoveValue(float(np.sign(score)), self.distance(state, score), score)
            for action, score in self.scores(state).items()
        }

    def distance(self, state: State, score: int) -> int:
        """The plies to the end of the game that a score says; a draw fills the board."""
        plies = popcount(state.occupied)
        if score == 0:
            return self.cells - plies
        discs = self.cells + 2 - 2 * abs(score)  # or one less: the winner's turn decides
        if (discs - plies) % 2 != (score > 0):
            discs -= 1
        return discs - plies

    def _score(self, state: State, low: int, high: int) -> int:
        found = int(score(self.game, self.work, self.table, state.mine, state.occupied, low, high))
        if self.work.stopped:
            seconds = time.perf_counter() - self.started
            raise refuse("the Connect Four solver", int(self.work.nodes), seconds)
        return found

    def _move(self, state: State, action: int, low: int, high: int) -> int:
        """The score of a move for the mover, exact within low .. high and one beyond on either side."""
        child = after(self.game, state, action)
        if mover(self.game, child) == TERMINAL:
            full = popcount(child.occupied)
            return (self.cells + 2 - full) // 2 if final_utility(self.game, child, full % 2) else 0
        return -self._score(child, -high - 1, -low + 1)

    def _clock(self) -> Any:
        self.work.nodes, self.work.stopped = 0, 0
        self.work.node_limit = self.limits.nodes or np.iinfo(np.int64).max
        if not self.started:  # compile before the clock starts
            warm_up(self.game)
            start = self.game.new()[0]
            self.work.stop = 1
            score(self.game, self.work, self.table, start.mine, start.occupied, -1, 1)
            self.work.nodes, self.work.stopped = 0, 0
        self.started = time.perf_counter()
        return clock(self.work, self.limits.seconds)
