"""Othello (Reversi): discs that are outflanked change colour; who has more at the end wins.

Rules of the World Othello Federation: black (X) begins; a move must outflank at least one opposing disc, along any
of the eight directions, and turns every disc that it outflanks. Who has no move passes; the pass is an action of its
own and then the only legal one. The game is over when neither side has a move, full board or not.

Boards of 4x4, 6x6 and 8x8. Cell and action `size * row + column`, row 1 on top as players write it; the pass is
action `size * size`. Bit i of a board is cell i, so on 8x8:

      a  b  c ... h
    1 0  1  2 ... 7        steps: right 1, down-left size - 1, down size, down-right size + 1, and back
    2 8  9 10 ... 15
    . .

The value in discs is the plain difference of the final discs; with `credit_empties` the winner also gets the cells
left empty, as tournaments and endgame suites such as FForum score it (4x4: -8 and -10 for black).

Moves are written `d3` and `pass` (read too: `ps`, `pa`, `--`). A position is written in OBF, the cells from a1 along
the rows as X, O and -, then the side to move. Read too: the moves played, `f5d6c3` or `f5 d6 c3`. Positions that no
game reaches are refused (see `othello_notation.py`).

OpenSpiel's `othello` (8x8) has the same rules, action numbers, explicit passes and results; there is no difference.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from envs import othello_notation as notation_of
from envs.bits import FULL, ONE, ZERO, highest, lowest, mix, popcount, without_lowest
from envs.compiled import njit
from envs.errors import InputError
from envs.game import TERMINAL, Game, State, Symmetry, board_symmetries
from envs.rng import below

_TOP = np.uint64(1 << 63)
_WHITE_TO_MOVE = np.uint64(0x9E3779B97F4A7C15)

_DIFFERENCES = (
    "discs",
    "mobility",
    "empty cells beside the other's discs",  # potential mobility
    "discs beside an empty cell",  # the frontier, better small
    "corners",
    "corners in reach",
    "X-squares of empty corners",
    "C-squares of empty corners",
    "edges",
    "stable discs",
    "last move by parity",
    "to move",
)


@njit
def nth_bit(board: Any, n: Any) -> Any:
    """The index of the set bit with n set bits below it, found by halving: no branch depends on chance."""
    start = 0
    for width in (32, 16, 8, 4, 2, 1):
        below_middle = popcount((board >> np.uint64(start)) & ((ONE << np.uint64(width)) - ONE))
        if n >= below_middle:
            n -= below_middle
            start += width
    return start


@dataclass(frozen=True)
class Othello(Game):
    """Parameters: the board's size, and whether utility is the disc difference instead of win, draw and loss."""

    size: int = 8
    discs: bool = False
    credit_empties: bool = False

    title = "Othello"
    notation = "moves d3 or pass; positions in OBF (X, O, - and the side to move) or the moves played: f5d6c3"
    # mine: the player to move; moves: that player's legal cells, kept since every node needs them.
    state = np.dtype([("mine", "u8"), ("theirs", "u8"), ("moves", "u8"), ("turn", "i4"), ("over", "i4")], align=True)
    num_symmetries = 8
    num_features = 2 * len(_DIFFERENCES)
    perft_counts_finished = True
    num_words = 2
    cell_values = 3  # empty, mine, theirs

    def __post_init__(self) -> None:
        if self.size not in (4, 6, 8):
            raise InputError(f"othello: size={self.size!r} must be 4, 6 or 8")
        if self.credit_empties and not self.discs:
            raise InputError("othello: credit_empties=True changes nothing unless discs=True")

    @property
    def num_cells(self) -> int:
        return self.size * self.size

    @property
    def most_filled(self) -> int:
        return self.num_cells

    @property
    def num_actions(self) -> int:
        return self.num_cells + 1

    @property
    def max_legal(self) -> int:
        return self.num_cells - 4  # never reached, but safe for every position that can be set up

    @property
    def max_length(self) -> int:
        return 2 * (self.num_cells - 4)  # no two passes in a row, and none after the last disc

    @property
    def min_utility(self) -> float:
        return -self.max_utility

    @property
    def max_utility(self) -> float:
        return float(self.num_cells) if self.discs else 1.0

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (3, self.size, self.size)  # mine, theirs, my legal moves

    # --- masks, constants in compiled code -----------------------------------------------------------

    def _mask(self, chosen: Any) -> np.uint64:
        size = self.size
        return np.uint64(sum(1 << size * r + c for r in range(size) for c in range(size) if chosen(r, c)))

    @cached_property
    def board(self) -> np.uint64:
        return self._mask(lambda r, c: True)

    @cached_property
    def left(self) -> np.uint64:
        return self._mask(lambda r, c: c == 0)

    @cached_property
    def right(self) -> np.uint64:
        return self._mask(lambda r, c: c == self.size - 1)

    @cached_property
    def ends(self) -> np.uint64:
        return self._mask(lambda r, c: r in (0, self.size - 1))  # the top and the bottom row

    @cached_property
    def middle(self) -> np.uint64:
        return self.board & ~(self.left | self.right)  # discs that a line can cross without leaving its row

    @cached_property
    def border(self) -> np.uint64:
        return self.left | self.right | self.ends

    @cached_property
    def corners(self) -> np.uint64:
        return (self.left | self.right) & self.ends

    @cached_property
    def centre(self) -> np.uint64:
        half = self.size // 2
        return self._mask(lambda r, c: {r, c} <= {half - 1, half})

    def tables(self) -> dict[str, np.ndarray]:
        size = self.size
        rays = np.zeros((self.num_cells, 8), np.uint64)  # first those towards higher bits, then towards lower
        steps = ((0, 1), (1, -1), (1, 0), (1, 1), (0, -1), (-1, 1), (-1, 0), (-1, -1))
        for cell in range(self.num_cells):
            for i, (down, right) in enumerate(steps):
                row, column = cell // size + down, cell % size + right
                while 0 <= row < size and 0 <= column < size:
                    rays[cell, i] |= np.uint64(1 << size * row + column)
                    row, column = row + down, column + right
        return {"rays": rays, "images": np.array(board_symmetries(size, size), np.int64)}

    # --- the rules -----------------------------------------------------------------------------------

    def start(self, state: State) -> None:
        half = self.size // 2
        upper, lower = np.uint64(self.size * (half - 1) + half), np.uint64(self.size * half + half - 1)
        state.mine = (ONE << upper) | (ONE << lower)
        state.theirs = (ONE << (upper - ONE)) | (ONE << (lower + ONE))
        state.moves = self.reach(state.mine, state.theirs)
        state.turn = 0
        state.over = 0

    def reach(self, mine: Any, theirs: Any) -> Any:
        """The empty cells where `mine` outflanks `theirs`: fills in all directions, lengths doubled (Kogge-Stone)."""
        found = ZERO
        inner = theirs & self.middle
        for step in (1, self.size - 1, self.size, self.size + 1):
            line = theirs if step == self.size else inner
            once, twice = np.uint64(step), np.uint64(2 * step)
            pairs = line & (line << once)
            up = line & (mine << once)
            up |= line & (up << once)
            up |= pairs & (up << twice)
            up |= pairs & (up << twice)  # 1 + 1 + 2 + 2: no line holds more than six discs to turn
            pairs >>= once
            down = line & (mine >> once)
            down |= line & (down >> once)
            down |= pairs & (down >> twice)
            down |= pairs & (down >> twice)
            found |= (up << once) | (down >> once)
        return found & self.board & ~(mine | theirs)

    def flips(self, mine: Any, theirs: Any, cell: Any) -> Any:
        """The discs of `theirs` that a disc of `mine` on the cell turns.

        On each ray the first cell that is not theirs decides; if it is mine, all before it turn. The extra bit
        stands for a ray full of their discs: it is then never mine and on the ray.
        """
        turned = ZERO
        for i in range(4):
            ray = self.rays[cell, i]
            others = (ray & ~theirs) | _TOP
            end = others & ~(others - ONE) & mine & ray
            turned |= ray & (end - np.uint64(end != ZERO))
        for i in range(4, 8):
            ray = self.rays[cell, i]
            first = np.uint64(highest((ray & ~theirs) | ONE))
            end = (ONE << first) & mine & ray
            turned |= ray & (FULL << (first + ONE)) if end != ZERO else ZERO
        return turned

    def player(self, state: State) -> int:
        return TERMINAL if state.over != 0 else int(state.turn)

    def actions(self, state: State, out: Any) -> int:
        rest = state.moves
        if rest == ZERO:
            out[0] = self.num_cells
            return 1
        count = 0
        while rest != ZERO:
            out[count] = lowest(rest)
            rest = without_lowest(rest)
            count += 1
        return count

    def random_action(self, state: State, out: Any, rng: Any) -> Any:
        if state.moves == ZERO:
            return np.int64(self.num_cells)
        return np.int64(nth_bit(state.moves, below(rng, popcount(state.moves))))

    def play(self, state: State, action: Any) -> None:
        mine, theirs = state.mine, state.theirs
        if action < self.num_cells:
            turned = self.flips(mine, theirs, action)
            mine |= turned | (ONE << np.uint64(action))
            theirs &= ~turned
        state.mine = theirs
        state.theirs = mine
        state.turn = 1 - state.turn
        self.settle(state)

    def settle(self, state: State) -> None:
        """Brings the moves, and whether the game is over, up to date with the discs."""
        state.moves = self.reach(state.mine, state.theirs)
        state.over = 0
        if state.moves == ZERO and self.reach(state.theirs, state.mine) == ZERO:
            state.over = 1

    def utility(self, state: State, player: Any) -> float:
        own, other = popcount(state.mine), popcount(state.theirs)
        lead = own - other if player == state.turn else other - own
        if not self.discs:
            return 1.0 if lead > 0 else (-1.0 if lead < 0 else 0.0)
        if self.credit_empties and lead != 0:
            empties = self.num_cells - own - other
            lead += empties if lead > 0 else -empties
        return float(lead)

    def key(self, state: State) -> Any:
        return mix(mix(state.mine ^ (_WHITE_TO_MOVE * np.uint64(state.turn))) ^ state.theirs)

    def transform(self, state: State, symmetry: Any) -> None:
        state.mine = self.image(state.mine, symmetry)
        state.theirs = self.image(state.theirs, symmetry)
        state.moves = self.image(state.moves, symmetry)

    def image(self, board: Any, symmetry: Any) -> Any:
        image, rest = ZERO, board
        while rest != ZERO:
            image |= ONE << np.uint64(self.images[symmetry, lowest(rest)])
            rest = without_lowest(rest)
        return image

    def is_loud(self, state: State, action: Any) -> bool:
        """Taking a corner: that disc is there for good and steadies its neighbours, and such moves run out soon.

        Every move turns discs, so to call all captures loud would make quiescence search the whole game.
        """
        return action < self.num_cells and ((self.corners >> np.uint64(action)) & ONE) != ZERO

    # --- what learners see ---------------------------------------------------------------------------

    def observe(self, state: State, planes: Any) -> None:
        for row in range(self.size):
            for column in range(self.size):
                cell = np.uint64(self.size * row + column)
                planes[0, row, column] = (state.mine >> cell) & ONE
                planes[1, row, column] = (state.theirs >> cell) & ONE
                planes[2, row, column] = (state.moves >> cell) & ONE

    def board_word(self, state: State, index: Any) -> Any:
        return state.mine if index == 0 else state.theirs

    def filled(self, state: State) -> int:
        return popcount(state.mine | state.theirs)

    def word_cells(self) -> tuple[np.ndarray, np.ndarray]:
        bits = np.arange(64)
        cells = np.where(bits < self.num_cells, bits, -1)
        return np.stack([cells, cells]), np.array([[1], [2]]) * np.ones(64, np.int64)

    def around(self, board: Any) -> Any:
        """The cells of the board and their neighbours in all eight directions."""
        rows = board | ((board & ~self.right) << ONE) | ((board & ~self.left) >> ONE)
        return (rows | (rows << np.uint64(self.size)) | (rows >> np.uint64(self.size))) & self.board

    def stable(self, discs: Any) -> Any:
        """Discs that never turn again, grown from the corners: safe on one side along each of the four lines."""
        safe, grown = discs, ZERO
        while safe != grown:
            safe = grown
            grown = discs & (self.left | self.right | (safe << ONE) | (safe >> ONE))
            grown &= self.ends | (safe << np.uint64(self.size)) | (safe >> np.uint64(self.size))
            for step in (self.size - 1, self.size + 1):
                grown &= self.border | (safe << np.uint64(step)) | (safe >> np.uint64(step))
        return safe

    def features(self, state: State, out: Any) -> int:
        """Differences, mine minus theirs, twice: weighted with the empty share of the board and with the full one.

        A linear evaluation can thus shift its weights as the board fills: mobility counts early, discs late.
        """
        mine, theirs, half = state.mine, state.theirs, self.num_features // 2
        empty = self.board & ~(mine | theirs)
        replies = self.reach(theirs, mine)
        by_mine, by_theirs, frontier = self.around(mine), self.around(theirs), self.around(empty)
        # The cells beside an empty corner: the X-square on the diagonal, the two C-squares on the edges.
        beside = self.around(empty & self.corners) & ~self.corners
        x_squares, c_squares, edges = beside & ~self.border, beside & self.border, self.border & ~self.corners
        out[0] = popcount(mine) - popcount(theirs)
        out[1] = popcount(state.moves) - popcount(replies)
        out[2] = popcount(by_theirs & empty) - popcount(by_mine & empty)
        out[3] = popcount(frontier & mine) - popcount(frontier & theirs)
        out[4] = popcount(mine & self.corners) - popcount(theirs & self.corners)
        out[5] = popcount(state.moves & self.corners) - popcount(replies & self.corners)
        out[6] = popcount(mine & x_squares) - popcount(theirs & x_squares)
        out[7] = popcount(mine & c_squares) - popcount(theirs & c_squares)
        out[8] = popcount(mine & edges) - popcount(theirs & edges)
        out[9] = popcount(self.stable(mine)) - popcount(self.stable(theirs))
        out[10] = 1.0 if popcount(empty) & 1 else -1.0  # with an odd number left, the mover fills the last one
        out[11] = 1.0
        late = (popcount(mine | theirs) - 4) / (self.num_cells - 4.0)
        for i in range(half):
            out[half + i] = late * out[i]
            out[i] *= 1.0 - late
        return self.num_features

    def feature_names(self) -> tuple[str, ...]:
        return (*(f"{name}, early" for name in _DIFFERENCES), *(f"{name}, late" for name in _DIFFERENCES))

    def symmetries(self) -> list[Symmetry]:
        none = np.arange(0)
        return [Symmetry(cells, np.append(cells, self.num_cells), none) for cells in self.images]

    # --- for people ----------------------------------------------------------------------------------

    def cells(self, state: State) -> np.ndarray:
        boards = (state.mine, state.theirs) if state.turn == 0 else (state.theirs, state.mine)
        black, white = (np.array([int(board) >> i & 1 for i in range(self.num_cells)], np.int8) for board in boards)
        return (black + 2 * white).reshape(self.size, self.size)

    def show(self, state: State) -> str:
        return notation_of.drawing(self, state)

    def action_name(self, state: State, action: int) -> str:
        if action == self.num_cells:
            return "pass"
        return f"{'abcdefgh'[int(action) % self.size]}{int(action) // self.size + 1}"

    def parse_action(self, state: State, text: str) -> int:
        return super().parse_action(state, "pass" if text.strip().lower() in notation_of.PASSES else text)

    def parse_position(self, text: str) -> State:
        return notation_of.parse_position(self, text)

    def position_text(self, state: State) -> str:
        return notation_of.position_text(self, state)
