"""m,n,k-games: players place stones in turn on any empty cell; `connect` in a line wins.

Tic-tac-toe is 3,3,3, free gomoku 15,15,5 (Berlekamp, Conway and Guy, "Winning Ways", ch. 22; Allis 1994).
With `exactly`, longer lines do not win: standard gomoku. With three players the winner gets 1 and the two
others -1/2 each; a full board without a line is a draw, 0 for all.

A board of which rows * (columns + 1) bits fit into 64 bits is one word per player; the spare bit at the end
of each row stops lines from running over into the next one. Three by three, the top row first, as drawn:

    0 1 2  (3)
    4 5 6  (7)
    8 9 10 (11)

A bigger board is one 32-bit word per row and player. Then only the lines through the last move are looked at.

Actions count the cells from the top left, row by row, like the cells of the observation. Moves are written as
in chess, a letter for the column and a number for the row, row 1 at the bottom; all letters are used, i too
(a to s on 19 columns). Positions are moves from the start ("b2 a1"), or the rows from the top, separated by
slashes, with x, o and z for the players in the order of their turns and . for empty ("x.o/.x./...").
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.bits import FULL, ONE, ZERO, mix, popcount, without_lowest
from envs.bits import lowest as lowest_bit
from envs.compiled import njit
from envs.errors import InputError
from envs.game import TERMINAL, Game, State, Symmetry, board_symmetries
from envs.rng import below

MARKS = ".xoz"
NOBODY = -1
_COLOURS = ("90", "91", "93", "94")  # ANSI: empty cells grey, the players red, yellow, blue
_DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))  # down, right
_MOST = 19
_LANE = 20  # one bit more than the longest line


@dataclass(frozen=True)
class MNK(Game):
    """Parameters: the board's size, how many in a line win, two or three players, and whether longer lines win."""

    rows: int = 3
    columns: int = 3
    connect: int = 3
    players: int = 2
    exactly: bool = False

    title = "m,n,k-game"
    notation = "moves from the start: b2 a1; or rows from the top: x.o/.x./..."

    def __post_init__(self) -> None:
        if not (1 <= self.rows <= _MOST and 1 <= self.columns <= _MOST):
            raise InputError(f"{self}: rows and columns must be from 1 to {_MOST}")
        if not 1 <= self.connect <= max(self.rows, self.columns):
            raise InputError(f"{self}: connect must be from 1 to the longer side of the board")
        if self.players not in (2, 3):
            raise InputError(f"{self}: players must be 2 or 3")

    @property
    def state(self) -> np.dtype:
        # mover: as player() returns it; winner: NOBODY until there is one
        stones = ("stones", "u8" if self.one_word else "u4", (self.players, self.words))
        return np.dtype([stones, ("count", "i4"), ("mover", "i2"), ("winner", "i2")], align=True)

    @property
    def one_word(self) -> bool:
        return self.rows * (self.columns + 1) <= 64

    @property
    def words(self) -> int:
        return 1 if self.one_word else self.rows

    @property
    def area(self) -> int:
        return self.rows * self.columns

    @property
    def num_players(self) -> int:
        return self.players

    @property
    def num_actions(self) -> int:
        return self.area

    @property
    def max_legal(self) -> int:
        return self.area

    @property
    def max_length(self) -> int:
        return self.area

    @property
    def min_utility(self) -> float:
        return -1.0 / (self.players - 1)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (self.players, self.rows, self.columns)  # mine, then the others' in the order of their turns

    @property
    def num_symmetries(self) -> int:
        return 8 if self.rows == self.columns else 4

    @property
    def num_features(self) -> int:
        return self.players * (self.connect - 1) + 1

    @property
    def board(self) -> np.uint64:
        """The cells of one word: all of them, or those of one row."""
        rows = self.rows if self.one_word else 1
        return np.uint64(sum(((1 << self.columns) - 1) << (self.columns + 1) * row for row in range(rows)))

    @property
    def tiny(self) -> bool:
        """Whether a table of all occupations is small enough: tic-tac-toe."""
        return self.rows * (self.columns + 1) <= 12

    def tables(self) -> dict[str, np.ndarray]:
        images = board_symmetries(self.rows, self.columns)
        swaps = [images[1], images[2], images[4 if len(images) == 8 else 0]]
        return {
            "swaps": np.array(swaps, np.int64),  # upside down, left to right, transposed
            "starts": self._starts(),
            "nth_of_byte": _nth_of_word(8),
            "nth_empty": self._nth_empty(),
        }

    def _starts(self) -> np.ndarray:
        """By direction and word: the cells where a line of `connect` cells begins, as bits."""
        starts = np.zeros((len(_DIRECTIONS), self.words), np.uint64)
        for direction, (down, right) in enumerate(_DIRECTIONS):
            for row in range(self.rows):
                for column in range(self.columns):
                    last_row, last_column = row + down * (self.connect - 1), column + right * (self.connect - 1)
                    if last_row < self.rows and 0 <= last_column < self.columns:
                        word, bit = (0, row * (self.columns + 1) + column) if self.one_word else (row, column)
                        starts[direction, word] |= ONE << np.uint64(bit)
        return starts

    def _nth_empty(self) -> np.ndarray:
        """[occupied cells as bits, rank]: the action of that rank; one entry where the board is not tiny."""
        if not self.tiny:
            return np.zeros((1, 1), np.int8)
        bits = self.rows * (self.columns + 1)
        nth = _nth_of_word(bits)[int(self.board) & ~np.arange(1 << bits)]
        return (nth - nth // (self.columns + 1)).astype(np.int8)

    # --- the rules -----------------------------------------------------------------------------------

    def start(self, state: State) -> None:
        for player in range(self.players):
            for word in range(self.words):
                state.stones[player, word] = 0
        state.count = 0
        state.mover = 0
        state.winner = NOBODY

    def player(self, state: State) -> int:
        return state.mover

    def word_of(self, action: Any) -> int:
        return 0 if self.one_word else action // self.columns

    def bit_of(self, action: Any) -> Any:
        row = action // self.columns
        # One word: each row above adds its spare bit to the cell's number.
        return ONE << np.uint64(action + row if self.one_word else action - row * self.columns)

    def occupied(self, state: State, word: Any) -> Any:
        stones = np.uint64(state.stones[0, word]) | np.uint64(state.stones[1, word])
        if self.players == 3:
            stones |= np.uint64(state.stones[self.players - 1, word])
        return stones

    def actions(self, state: State, out: Any) -> int:
        count = 0
        for word in range(self.words):
            empty = self.board & ~self.occupied(state, word)
            while empty != 0:
                bit = lowest_bit(empty)
                out[count] = bit - bit // (self.columns + 1) if self.one_word else word * self.columns + bit
                empty = without_lowest(empty)
                count += 1
        return count

    def random_action(self, state: State, out: Any, rng: Any) -> Any:
        empties = self.area - state.count
        if self.tiny:
            return np.int64(self.nth_empty[np.int64(self.occupied(state, 0)), below(rng, empties)])
        if self.one_word:
            bit = self.nth(self.board & ~self.occupied(state, 0), below(rng, empties))
            return bit - bit // (self.columns + 1)
        if 4 * empties >= self.area:  # a random cell is soon an empty one
            while True:
                action = below(rng, self.area)
                if self.occupied(state, self.word_of(action)) & self.bit_of(action) == 0:
                    return action
        rest = below(rng, empties)
        for word in range(self.words):
            empty = self.board & ~self.occupied(state, word)
            count = popcount(empty)
            if rest < count:
                return word * self.columns + self.nth(empty, rest)
            rest -= count
        return 0

    def nth(self, bits: Any, rank: Any) -> int:
        """The index of the set bit that has `rank` set bits below it, without a branch (Vigna 2008)."""
        counts = bits - ((bits >> ONE) & np.uint64(0x5555555555555555))
        counts = (counts & np.uint64(0x3333333333333333)) + ((counts >> np.uint64(2)) & np.uint64(0x3333333333333333))
        counts = (counts + (counts >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
        sums = counts * np.uint64(0x0101010101010101)  # byte i: the set bits of the bytes 0 .. i
        ranks = np.uint64(rank) * np.uint64(0x0101010101010101) | np.uint64(0x8080808080808080)
        place = np.uint64(8 * popcount((ranks - sums) & np.uint64(0x8080808080808080)))
        left = np.uint64(rank) - (((sums << np.uint64(8)) >> place) & np.uint64(0xFF))
        return np.int64(place) + self.nth_of_byte[np.int64((bits >> place) & np.uint64(0xFF)), np.int64(left)]

    def play(self, state: State, action: Any) -> None:
        player, word = state.mover, self.word_of(action)
        state.stones[player, word] = np.uint64(state.stones[player, word]) | self.bit_of(action)
        state.count += 1
        if self.has_line(state, player, action, ZERO):
            state.winner = player
            state.mover = TERMINAL
        elif state.count == self.area:
            state.mover = TERMINAL
        else:
            state.mover = player + 1 if player + 1 < self.players else 0

    def has_line(self, state: State, player: Any, action: Any, extra: Any) -> bool:
        """Whether the player has a winning line, with the stones `extra` added to the action's word.

        On a big board only the lines through the action count.
        """
        if self.one_word:
            stones = np.uint64(state.stones[player, 0]) | extra
            found = self.runs(stones, np.uint64(1)) | self.runs(stones, np.uint64(self.columns))
            found |= self.runs(stones, np.uint64(self.columns + 1)) | self.runs(stones, np.uint64(self.columns + 2))
            return found != 0
        row = action // self.columns
        column = action - row * self.columns
        lines = ZERO  # three lanes: the column and the two diagonals, one bit per row
        for y in range(self.rows):  # a fixed number of rows runs faster than those near the move alone
            stones = np.uint64(state.stones[player, y])
            if y == row:
                stones |= extra
            stones <<= np.uint64(_LANE)  # so that no shift below is negative
            lines |= ((stones >> np.uint64(_LANE + column)) & ONE) << np.uint64(y)
            lines |= ((stones >> np.uint64(_LANE + column + y - row)) & ONE) << np.uint64(_LANE + y)
            lines |= ((stones >> np.uint64(_LANE + column - y + row)) & ONE) << np.uint64(2 * _LANE + y)
        own_row = np.uint64(state.stones[player, row]) | extra
        return (self.runs(lines, ONE) | self.runs(own_row, ONE)) != 0

    def runs(self, stones: Any, step: Any) -> Any:
        """The first cells of all winning lines in steps of so many bits."""
        shifted = stones
        found = stones
        for _ in range(1, self.connect):
            shifted = shifted >> step
            found &= shifted
        if self.exactly:
            found &= ~(shifted >> step) & ~(stones << step)
        return found

    def utility(self, state: State, player: Any) -> float:
        if state.winner == NOBODY:
            return 0.0
        return 1.0 if state.winner == player else self.min_utility

    def key(self, state: State) -> Any:
        # The stones determine the rest of the state.
        total = ZERO
        for player in range(self.players):
            for word in range(self.words):
                place = np.uint64(player * self.words + word + 1) << np.uint64(32)
                salt = place << np.uint64(16) if self.one_word else place  # one word fills bits from below
                total ^= mix(mix(salt) ^ np.uint64(state.stones[player, word]))
        return total

    def is_loud(self, state: State, action: Any) -> bool:
        """Whether the move completes a line, or takes the cell where somebody else would."""
        bit = self.bit_of(action)
        for player in range(self.players):
            if self.has_line(state, player, action, bit):
                return True
        return False

    def transform(self, state: State, symmetry: Any) -> None:
        for kind in range(3):
            if (symmetry >> kind) & 1:
                for a in range(self.area):
                    b = self.swaps[kind, a]
                    if a < b:
                        self.swap(state, a, b)

    def swap(self, state: State, a: Any, b: Any) -> None:
        """Exchanges what is on two cells."""
        word_a, word_b, bit_a, bit_b = self.word_of(a), self.word_of(b), self.bit_of(a), self.bit_of(b)
        for player in range(self.players):
            on_a = np.uint64(state.stones[player, word_a]) & bit_a != 0
            on_b = np.uint64(state.stones[player, word_b]) & bit_b != 0
            if on_a != on_b:
                state.stones[player, word_a] = np.uint64(state.stones[player, word_a]) ^ bit_a
                state.stones[player, word_b] = np.uint64(state.stones[player, word_b]) ^ bit_b

    def observe(self, state: State, planes: Any) -> None:
        mover = state.count % self.players
        for plane in range(self.players):
            player = (mover + plane) % self.players
            for action in range(self.area):
                if np.uint64(state.stones[player, self.word_of(action)]) & self.bit_of(action) != 0:
                    planes[plane, action // self.columns, action % self.columns] = 1.0

    # --- the linear evaluation's input ---------------------------------------------------------------

    @property
    def num_words(self) -> int:
        return self.players * self.words

    @property
    def cell_values(self) -> int:
        return self.players + 1  # empty, mine, then the others' in the order of their turns

    @property
    def most_filled(self) -> int:
        return self.area

    def board_word(self, state: State, index: Any) -> Any:
        player = (state.count + index // self.words) % self.players
        return np.uint64(state.stones[player, index % self.words])

    def filled(self, state: State) -> int:
        return int(state.count)

    def word_cells(self) -> tuple[np.ndarray, np.ndarray]:
        row, column = np.divmod(np.arange(64), self.columns + 1)
        cells = np.full((self.num_words, 64), -1)
        for word in range(self.num_words):
            top = 0 if self.one_word else word % self.words
            inside = (column < self.columns) & (row < (self.rows if self.one_word else 1))
            cells[word] = np.where(inside, (top + row) * self.columns + column, -1)
        return cells, (1 + np.arange(self.num_words) // self.words)[:, None] * np.ones(64, np.int64)

    def features(self, state: State, out: Any) -> int:
        """Lines that only one player has stones on, counted by player and by stones."""
        for i in range(self.num_features - 1):
            out[i] = 0.0
        mover = state.count % self.players
        for plane in range(self.players):
            for direction in range(4):
                for word in range(self.words):
                    if self.starts[direction, word] != 0:
                        self.count_lines(state, (mover + plane) % self.players, direction, word, plane, out)
        out[self.num_features - 1] = 1.0
        return self.num_features

    def count_lines(self, state: State, player: Any, direction: Any, word: Any, plane: Any, out: Any) -> None:
        """Adds up the player's lines that start in this word, all at once: counters made of one bit per line."""
        ones, twos, fours, eights, sixteens = ZERO, ZERO, ZERO, ZERO, ZERO
        blocked = ZERO
        for i in range(self.connect):
            own = self.ahead(np.uint64(state.stones[player, self.word_ahead(word, direction, i)]), direction, i)
            everybody = self.ahead(self.occupied(state, self.word_ahead(word, direction, i)), direction, i)
            blocked |= everybody & ~own
            carry = ones & own
            ones ^= own
            twos, carry = twos ^ carry, twos & carry
            fours, carry = fours ^ carry, fours & carry
            eights, carry = eights ^ carry, eights & carry
            sixteens ^= carry
        open_lines = self.starts[direction, word] & ~blocked
        for n in range(1, self.connect):
            # A counter equals n where none of its five bits differs from n's.
            differs = (ones ^ flag(n, 0)) | (twos ^ flag(n, 1)) | (fours ^ flag(n, 2))
            differs |= (eights ^ flag(n, 3)) | (sixteens ^ flag(n, 4))
            out[plane * (self.connect - 1) + n - 1] += popcount(open_lines & ~differs)

    def word_ahead(self, word: Any, direction: Any, i: Any) -> int:
        return word if self.one_word or direction == 0 else word + i

    def ahead(self, stones: Any, direction: Any, i: Any) -> Any:
        """The word shifted so that the i-th cell of each line in this direction is where the line starts."""
        if self.one_word:
            step = 1 if direction == 0 else self.columns + (1, 1, 2, 0)[direction]
            return stones >> np.uint64(step * i)
        if direction == 1:
            return stones
        return stones << np.uint64(i) if direction == 3 else stones >> np.uint64(i)

    # --- for people ----------------------------------------------------------------------------------

    def feature_names(self) -> tuple[str, ...]:
        others = ["theirs: "] if self.players == 2 else ["next player: ", "player after: "]
        counts = range(1, self.connect)
        return (*(f"{who}{n} of {self.connect} in an open line" for who in ["", *others] for n in counts), "to move")

    def symmetries(self) -> list[Symmetry]:
        return [Symmetry(image, image, np.arange(0)) for image in board_symmetries(self.rows, self.columns)]

    def cells(self, state: State) -> np.ndarray:
        board = np.zeros(self.area, np.int8)
        for action in range(self.area):
            for player in range(self.players):
                if np.uint64(state.stones[player, self.word_of(action)]) & self.bit_of(action):
                    board[action] = player + 1
        return board.reshape(self.rows, self.columns)

    def show(self, state: State) -> str:
        marks = [f"\033[{colour}m{mark}\033[0m" for colour, mark in zip(_COLOURS, MARKS, strict=True)]
        lines = [
            " ".join([f"{self.rows - y:2}", *(marks[cell] for cell in row)]) for y, row in enumerate(self.cells(state))
        ]
        return "\n".join([*lines, "   " + " ".join(chr(ord("a") + x) for x in range(self.columns))])

    def action_name(self, state: State, action: int) -> str:
        y, x = divmod(int(action), self.columns)
        return f"{chr(ord('a') + x)}{self.rows - y}"

    def parse_position(self, text: str) -> State:
        rows = text.strip().lower().split("/")
        if not text.strip() or not set("".join(rows)) <= set(MARKS):
            return super().parse_position(text)
        marks = MARKS[1 : self.players + 1]
        if (
            len(rows) != self.rows
            or any(len(row) != self.columns for row in rows)
            or set("".join(rows)) - {".", *marks}
        ):
            accepted = ", ".join(marks)
            raise InputError(f"position {text!r}: expected {self.rows} rows of {self.columns} cells ({accepted} or .)")
        board = "".join(rows)
        counts = [board.count(mark) for mark in marks]
        total = sum(counts)
        if counts != [(total + self.players - 1 - p) // self.players for p in range(self.players)]:
            raise InputError(f"position {text!r}: the players ({marks}) move in turn, but have {counts} stones")
        state = self.new()[0]
        for action, mark in enumerate(board):
            if mark != ".":
                player, word = marks.index(mark), self.word_of(action)
                state.stones[player, word] = np.uint64(state.stones[player, word]) | self.bit_of(action)
        last = (total - 1) % self.players
        for player in range(self.players):
            cells = [action for action, mark in enumerate(board) if mark == marks[player]]
            winning = [action for action in cells if self.has_line(state, player, action, ZERO)]
            if winning and player != last:
                raise InputError(f"position {text!r}: {marks[player]} has a line, but did not move last")
            if winning and not any(self._first_line(state, player, action, cells) for action in winning):
                raise InputError(f"position {text!r}: {marks[player]} has two lines that no one move completes")
            state.winner = player if winning else state.winner
        state.count = total
        state.mover = TERMINAL if state.winner != NOBODY or total == self.area else total % self.players
        return state

    def _first_line(self, state: State, player: int, action: int, cells: list[int]) -> bool:
        """Whether the player had no line before that move."""
        word, bit = self.word_of(action), self.bit_of(action)
        state.stones[player, word] = np.uint64(state.stones[player, word]) ^ bit
        found = any(self.has_line(state, player, cell, ZERO) for cell in cells if cell != action)
        state.stones[player, word] = np.uint64(state.stones[player, word]) ^ bit
        return not found

    def position_text(self, state: State) -> str:
        return "/".join("".join(MARKS[cell] for cell in row) for row in self.cells(state))


def _nth_of_word(width: int) -> np.ndarray:
    """[word of so many bits, rank]: the index of the set bit of the word that has `rank` set bits below it."""
    table = np.zeros((1 << width, width), np.int8)
    for word in range(1 << width):
        for rank, bit in enumerate(bit for bit in range(width) if word >> bit & 1):
            table[word, rank] = bit
    return table


@njit
def flag(number: Any, bit: Any) -> Any:
    """All 64 bits set if that bit of the number is, else none."""
    return FULL if (number >> bit) & 1 else ZERO
