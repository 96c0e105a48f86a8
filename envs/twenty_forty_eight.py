"""2048: slide the tiles, equal ones merge, and a new tile appears by chance after every move (Cirulli 2014).

The rules and the score are those of Gabriele Cirulli's game: two tiles at the start; a move slides all tiles as far
as they go; of equal neighbours in the direction of the move the foremost two merge first, and a merged tile merges
no more in that move; each merge scores the value of the new tile; a move that changes nothing is not legal; then a 2
(or, with `four_probability`, a 4) appears on an empty cell, each equally likely. One player, whose utility is the
score. Without a `target` the game goes on until no move is left.

The board is one word of 16 nibbles, each an exponent (0 empty, 1 a 2, 2 a 4, ..., 15 a 32768), in rows of four; a
smaller board lies in the top left corner and the rest stays 0:

    nibble   0  1  2  3        A row of four nibbles is an index into tables of 65536 entries that
             4  5  6  7        hold the row after a move and its score; columns are the rows of the
             8  9 10 11        transposed board. (Rows from the table: the idea is Robert Xiao's.)
            12 13 14 15

A nibble holds no 16, so two tiles of 32768 do not merge; they block each other like different tiles. That bounds the
game: of n cells one holds at most 2 ** min(n + 1, 15) and the others as much as n - 1 cells can (`tile_limits`).

Like OpenSpiel's `2048(max_tile=2048)`, and tested move for move beside it: the same actions (up, right, down, left),
the same outcomes (cell * 2, plus 1 for a 4), the same score, and the end right after the move that makes the target
tile, without a new tile. The differences: by default we have no target (OpenSpiel: 2048); OpenSpiel's stated
`max_utility` and `max_game_length` are exceeded by ordinary games, ours hold; OpenSpiel has one board and one
probability of a 4, 0.1; and OpenSpiel (1.6) calls a move illegal that slides nothing and merges only into tiles that
the move before made (it looks at the marks of that move), which the original allows, and which may leave it without a
legal move in the middle of a game. The test predicts these moves one by one.

Moves are "up", "right", "down", "left"; outcomes the new tile and its cell, "2@1,3" (row, column). Positions are the
rows from the top, "2 0 0 4/0 0 0 0/0 0 2 0/0 0 0 0 score 4", and "spawns 1" at the end before a tile appears.
"""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.bits import lowest, mix, popcount, without_lowest
from envs.compiled import njit
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, Game, State, Symmetry, board_symmetries
from envs.rng import below, uniform

UP, RIGHT, DOWN, LEFT = 0, 1, 2, 3
NAMES = ("up", "right", "down", "left")
LARGEST = 15  # exponent

# Where each direction goes under the symmetries of `board_symmetries`: flips of rows, columns, both, then the same
# followed by the transposition.
DIRECTIONS = (
    (UP, RIGHT, DOWN, LEFT),
    (DOWN, RIGHT, UP, LEFT),
    (UP, LEFT, DOWN, RIGHT),
    (DOWN, LEFT, UP, RIGHT),
    (LEFT, DOWN, RIGHT, UP),
    (RIGHT, DOWN, LEFT, UP),
    (LEFT, UP, RIGHT, DOWN),
    (RIGHT, UP, LEFT, DOWN),
)


@njit
def transposed(board: Any) -> Any:
    """Rows become columns: first within the four 2x2 blocks, then the blocks."""
    a = board & np.uint64(0xF0F00F0FF0F00F0F)
    b = board & np.uint64(0x0000F0F00000F0F0)
    c = board & np.uint64(0x0F0F00000F0F0000)
    d = a | (b << np.uint64(12)) | (c >> np.uint64(12))
    e = d & np.uint64(0xFF00FF0000FF00FF)
    f = d & np.uint64(0x00FF00FF00000000)
    g = d & np.uint64(0x00000000FF00FF00)
    return e | (f >> np.uint64(24)) | (g << np.uint64(24))


@njit
def rows_reversed(board: Any) -> Any:
    """The four rows in reverse order."""
    a = (board >> np.uint64(32)) | (board << np.uint64(32))
    low = np.uint64(0x0000FFFF0000FFFF)
    return ((a & low) << np.uint64(16)) | ((a >> np.uint64(16)) & low)


@njit
def empty_cells(board: Any) -> Any:
    """The lowest bit of each empty nibble."""
    filled = board | (board >> np.uint64(1))
    filled |= filled >> np.uint64(2)
    return ~filled & np.uint64(0x1111111111111111)


def slide(line: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """A line of exponents after a move towards its first cell, and the score.

    >>> slide((1, 1, 1, 1)), slide((0, 2, 2, 3))
    (((2, 2, 0, 0), 8), ((3, 3, 0, 0), 8))
    """
    moved: list[int] = []
    score, may_merge = 0, False
    for tile in filter(None, line):
        if may_merge and moved[-1] == tile < LARGEST:
            moved[-1] += 1
            score += 1 << moved[-1]
            may_merge = False
        else:
            moved.append(tile)
            may_merge = True
    return tuple(moved + [0] * (len(line) - len(moved))), score


@functools.cache
def line_tables(length: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """For each line of `length` nibbles: itself after a move to the first and to the last cell, the score
    (the same in both directions), and bits 1 and 2 where those moves change it. Arrays have `size` entries."""
    first, last = np.zeros(size, np.uint16), np.zeros(size, np.uint16)
    score, changes = np.zeros(size, np.uint32), np.zeros(size, np.uint8)
    for index in range(16**length):
        line = tuple((index >> 4 * i) & 15 for i in range(length))
        moved, score[index] = slide(line)
        first[index] = sum(tile << 4 * i for i, tile in enumerate(moved))
        moved, _ = slide(line[::-1])
        last[index] = sum(tile << 4 * i for i, tile in enumerate(moved[::-1]))
        changes[index] = (first[index] != index) + 2 * (last[index] != index)
    return first, last, score, changes


@dataclass(frozen=True)
class TwentyFortyEight(Game):
    """Parameters: the board's size, how often a new tile is a 4, and the tile that ends the game (0: none)."""

    rows: int = 4
    columns: int = 4
    four_probability: float = 0.1
    target: int = 0

    title = "2048"
    notation = 'moves: up, right, down, left, and new tiles: 2@1,3; positions: "2 0 0 4/…/0 0 2 0 score 4"'
    state = np.dtype(
        [
            ("board", "u8"),
            ("score", "u4"),
            ("spawns", "u2"),  # tiles about to appear: 2 at the start, 1 after a move
            ("legal", "u2"),  # a bit per legal move, on the player's nodes only
        ],
        align=True,
    )
    num_players = 1
    num_actions = 4
    max_legal = 4
    has_chance = True
    zero_sum = False
    min_utility = 0.0
    num_features = 8
    num_words = 1
    cell_values = LARGEST + 1

    def __post_init__(self) -> None:
        if not (2 <= self.rows <= 4 and 2 <= self.columns <= 4):
            raise InputError(f"{self}: rows and columns must be from 2 to 4")
        if not 0.0 <= self.four_probability <= 1.0:
            raise InputError(f"{self}: four_probability must be from 0 to 1")
        if self.target and self.target not in [1 << k for k in range(3, LARGEST + 1)]:
            raise InputError(f"{self}: target must be 0 (none) or a power of two from 8 to {1 << LARGEST}")

    @property
    def num_outcomes(self) -> int:
        return 2 * self.rows * self.columns

    @property
    def target_exponent(self) -> int:
        return self.target.bit_length() - 1 if self.target else 99

    def tile_limits(self) -> list[int]:
        """Bounds on the exponents of the tiles that can lie on the board together, each at least the real one.

        Of the tiles on a board of n cells one goes back to the earliest new tile. While it was built up, all the
        others had n - 1 cells. It was last merged from two tiles, of which one was built in n - 1 cells, so it is
        at most twice what those allow; one cell allows a 4.
        """
        most = min(LARGEST, self.target_exponent)
        return [min(n + 1, most) for n in range(1, self.rows * self.columns + 1)]

    @property
    def max_length(self) -> int:
        # Each new tile adds 2 or more to the sum of the tiles; plies are new tiles and no more moves than those.
        return sum(1 << k for k in self.tile_limits())

    @property
    def max_utility(self) -> float:
        # A tile 2 ** k made of 2s alone has scored (k - 1) * 2 ** k; a 4 that appears makes it less.
        return float(sum((k - 1) << k for k in self.tile_limits()))

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (LARGEST + 2, self.rows, self.columns)  # empty, 2, 4, ..., 32768, a new tile is due

    @property
    def num_symmetries(self) -> int:
        return 8 if self.rows == self.columns else 4

    @property
    def column_table(self) -> int:
        return 0 if self.rows == self.columns else 1  # the tables' index for columns

    @property
    def board_cells(self) -> np.uint64:
        return np.uint64(sum(1 << 4 * (4 * r + c) for r in range(self.rows) for c in range(self.columns)))

    def tables(self) -> dict[str, np.ndarray]:
        lengths = [self.columns] if self.rows == self.columns else [self.columns, self.rows]
        names = ("to_first", "to_last", "line_score", "line_changes")
        kinds = [line_tables(length, 16 ** max(lengths)) for length in lengths]
        return {name: np.stack(arrays) for name, arrays in zip(names, zip(*kinds, strict=True), strict=True)}

    # --- the rules -----------------------------------------------------------------------------------

    def start(self, state: State) -> None:
        state.board = 0
        state.score = 0
        state.spawns = 2
        state.legal = 0

    def player(self, state: State) -> int:
        if state.spawns != 0:
            return CHANCE
        return 0 if state.legal != 0 else TERMINAL

    def legal_moves(self, board: Any) -> Any:
        """A bit per move that changes the board."""
        turned = transposed(board)
        across, along = np.int64(0), np.int64(0)
        for i in range(4):
            shift = np.uint64(16 * i)
            across |= np.int64(self.line_changes[0, np.int64((board >> shift) & np.uint64(0xFFFF))])
            line = np.int64((turned >> shift) & np.uint64(0xFFFF))
            along |= np.int64(self.line_changes[self.column_table, line])
        # across: bit 0 left, bit 1 right; along: bit 0 up, bit 1 down
        return (along & 1) | (across & 2) | (along & 2) << 1 | (across & 1) << 3

    def actions(self, state: State, out: Any) -> int:
        count = 0
        for action in range(4):
            if (state.legal >> action) & 1:
                out[count] = action
                count += 1
        return count

    def random_action(self, state: State, out: Any, rng: Any) -> Any:
        rest = np.uint64(state.legal)
        for _ in range(below(rng, popcount(rest))):
            rest = without_lowest(rest)
        return lowest(rest)

    def outcomes(self, state: State, out: Any, probabilities: Any) -> int:
        rest = empty_cells(state.board) & self.board_cells
        share = 1.0 / popcount(rest)
        count = 0
        while rest != 0:
            nibble = lowest(rest) >> 2
            rest = without_lowest(rest)
            cell = (nibble >> 2) * self.columns + (nibble & 3)
            if self.four_probability < 1.0:
                out[count] = 2 * cell
                probabilities[count] = share * (1.0 - self.four_probability)
                count += 1
            if self.four_probability > 0.0:
                out[count] = 2 * cell + 1
                probabilities[count] = share * self.four_probability
                count += 1
        return count

    def random_outcome(self, state: State, out: Any, probabilities: Any, rng: Any) -> Any:
        rest = empty_cells(state.board) & self.board_cells
        for _ in range(below(rng, popcount(rest))):
            rest = without_lowest(rest)
        nibble = lowest(rest) >> 2
        cell = (nibble >> 2) * self.columns + (nibble & 3)
        return 2 * cell + (1 if uniform(rng) < self.four_probability else 0)

    def play(self, state: State, action: Any) -> None:
        if state.spawns != 0:
            cell = np.int64(action) >> 1
            nibble = 4 * (cell // self.columns) + cell % self.columns
            state.board |= np.uint64(1 + (action & 1)) << np.uint64(4 * nibble)
            state.spawns -= 1
            if state.spawns == 0:
                state.legal = self.legal_moves(state.board)
            return
        upright = action == UP or action == DOWN
        kind = self.column_table if upright else 0
        before = transposed(state.board) if upright else state.board
        after = before & np.uint64(0)
        gained = np.int64(0)
        for i in range(4):
            shift = np.uint64(16 * i)
            line = np.int64((before >> shift) & np.uint64(0xFFFF))
            if action == UP or action == LEFT:
                after |= np.uint64(self.to_first[kind, line]) << shift
            else:
                after |= np.uint64(self.to_last[kind, line]) << shift
            gained += np.int64(self.line_score[kind, line])
        state.board = transposed(after) if upright else after
        state.score += gained
        state.legal = 0
        if self.target == 0 or gained < self.target or not self.holds_target(state.board):
            state.spawns = 1

    def holds_target(self, board: Any) -> bool:
        """Whether a tile of the target's size, or a larger one, is on the board."""
        while board != 0:
            if np.int64(board & np.uint64(15)) >= self.target_exponent:
                return True
            board >>= np.uint64(4)
        return False

    def utility(self, state: State, player: Any) -> float:
        return np.float64(state.score)

    def key(self, state: State) -> Any:
        rest = (np.uint64(state.score) << np.uint64(2)) | np.uint64(state.spawns)
        return mix(mix(state.board) ^ rest)

    def board_word(self, state: State, index: Any) -> Any:
        return state.board

    def word_cells(self) -> tuple[np.ndarray, np.ndarray]:
        nibble = np.arange(64) // 4
        row, column = nibble // 4, nibble % 4
        cells = np.where((row < self.rows) & (column < self.columns), row * self.columns + column, -1)
        return cells[None], (1 << np.arange(64) % 4)[None]

    def transform(self, state: State, symmetry: Any) -> None:
        board = state.board
        if symmetry & 1:
            board = rows_reversed(board) >> np.uint64(16 * (4 - self.rows))
        if symmetry & 2:
            board = transposed(rows_reversed(transposed(board))) >> np.uint64(4 * (4 - self.columns))
        if symmetry & 4:
            board = transposed(board)
        state.board = board
        if state.legal != 0:
            state.legal = self.legal_moves(board)

    # --- what learners and evaluations see -----------------------------------------------------------

    def observe(self, state: State, planes: Any) -> None:
        for row in range(self.rows):
            for column in range(self.columns):
                exponent = np.int64((state.board >> np.uint64(4 * (4 * row + column))) & np.uint64(15))
                planes[exponent, row, column] = 1.0
                planes[LARGEST + 1, row, column] = state.spawns

    def earned(self, state: State) -> float:
        return np.float64(state.score)

    def chance_view(self, state: State) -> int:
        return 0

    def features(self, state: State, out: Any) -> int:
        for i in range(8):
            out[i] = 0.0
        largest: Any = 0
        for row in range(self.rows):
            for column in range(self.columns):
                here = np.int64((state.board >> np.uint64(4 * (4 * row + column))) & np.uint64(15))
                largest = max(largest, here)
                if here == 0:
                    out[1] += 1.0
                for step in range(2):
                    r, c = row + step, column + 1 - step
                    if r >= self.rows or c >= self.columns:
                        continue
                    there = np.int64((state.board >> np.uint64(4 * (4 * r + c))) & np.uint64(15))
                    if here == there and here > 0:
                        out[2] += 1.0
                    elif here > 0 and there > 0:
                        out[3] += abs(here - there)
        for i in range(4):  # the corners
            nibble = 4 * (i >> 1) * (self.rows - 1) + (i & 1) * (self.columns - 1)
            if np.int64((state.board >> np.uint64(4 * nibble)) & np.uint64(15)) == largest:
                out[5] = 1.0
        out[0] = state.score / 1000.0
        out[4] = largest
        out[6] = popcount(np.uint64(state.legal))
        out[7] = 1.0
        return 8

    def feature_names(self) -> tuple[str, ...]:
        counts = ("score in thousands", "empty cells", "equal neighbours", "steps between neighbours")
        return (*counts, "exponent of the largest tile", "the largest tile in a corner", "legal moves", "to move")

    def symmetries(self) -> list[Symmetry]:
        found = []
        for cells, actions in zip(board_symmetries(self.rows, self.columns), DIRECTIONS, strict=False):
            outcomes = np.stack([2 * cells, 2 * cells + 1], axis=1).reshape(-1)
            found.append(Symmetry(cells, np.array(actions), outcomes))
        return found

    # --- for people ----------------------------------------------------------------------------------

    def cells(self, state: State) -> np.ndarray:
        board = int(state.board)
        exponents = [(board >> 4 * (4 * r + c)) & 15 for r in range(self.rows) for c in range(self.columns)]
        return np.array(exponents, np.int8).reshape(self.rows, self.columns)

    def show(self, state: State) -> str:
        lines = []
        for row in self.cells(state).tolist():
            # Exponents run through the terminal's six bright colours.
            words = [f"\033[9{1 + k % 6}m{1 << k:6d}\033[0m" if k else f"{'.':>6}" for k in row]
            lines.append("".join(words))
        return "\n".join([*lines, f"score {int(state.score)}"])

    def action_name(self, state: State, action: int) -> str:
        if self.player(state) == CHANCE:
            row, column = divmod(int(action) >> 1, self.columns)
            return f"{4 if action & 1 else 2}@{row + 1},{column + 1}"
        return NAMES[int(action)]

    def position_text(self, state: State) -> str:
        rows = "/".join(" ".join(str(1 << k) if k else "0" for k in row) for row in self.cells(state).tolist())
        return f"{rows} score {int(state.score)}{f' spawns {int(state.spawns)}' if state.spawns else ''}"

    def parse_position(self, text: str) -> State:
        if "/" not in text:
            return super().parse_position(text)
        words = text.lower().split()
        tail = next((i for i, word in enumerate(words) if word in ("score", "spawns")), len(words))
        rows = [row.split() for row in " ".join(words[:tail]).split("/")]
        tiles = [word for row in rows for word in row]
        if len(rows) != self.rows or any(len(row) != self.columns for row in rows):
            raise InputError(f"position {text!r}: expected {self.rows} rows of {self.columns} tiles, split by slashes")
        known = {str(1 << k): k for k in range(1, LARGEST + 1)} | {"0": 0, ".": 0}
        wrong = [word for word in tiles if word not in known]
        if wrong:
            raise InputError(f"position {text!r}: {wrong[0]!r} is no tile; tiles are 0, 2, 4, ..., {1 << LARGEST}")
        count = sum(known[word] > 0 for word in tiles)
        score, spawns = self._parse_rest(text, words[tail:], max(0, 2 - count))
        due = {0: (2,), len(tiles): (0,), 1: (1,)}.get(count, (0, 1))
        if spawns not in due:
            raise InputError(f"position {text!r}: with {count} tile(s) spawns must be {' or '.join(map(str, due))}")
        state = self.new()[0]
        state.board = sum(
            known[word] << 4 * (4 * (i // self.columns) + i % self.columns) for i, word in enumerate(tiles)
        )
        state.score, state.spawns = score, spawns
        over = self.target and self.holds_target(state.board)
        if over:
            state.spawns = 0
        elif spawns == 0:
            state.legal = self.legal_moves(state.board)
        return state

    def _parse_rest(self, text: str, words: list[str], spawns: int) -> tuple[int, int]:
        """The score and the number of new tiles that are due."""
        found = {"score": 0, "spawns": spawns}
        names, numbers = words[::2], words[1::2]
        if names not in ([], ["score"], ["spawns"], ["score", "spawns"]) or len(numbers) < len(names):
            raise InputError(f"position {text!r}: expected score and spawns at most once each, in that order")
        for name, number in zip(names, numbers, strict=True):
            if not (number.isascii() and number.isdecimal() and len(number) <= 10):
                raise InputError(f"position {text!r}: {name} {number!r} must be a whole number")
            found[name] = int(number)
        if found["score"] > self.max_utility or found["score"] % 4:
            raise InputError(
                f"position {text!r}: score {found['score']} must be a multiple of 4, at most {int(self.max_utility)}"
            )
        return found["score"], found["spawns"]
