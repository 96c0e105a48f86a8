"""Connect Four: two players drop discs into columns; four in a line wins (Allen 1988; Allis 1988).

Any board of which rows + 1 bits per column fit into 64 bits. Bit (rows + 1) * column + row, row 0 at the
bottom; the spare bit on top of each column stops lines from running over into the next column:

    6 13 20 ...      <- always empty
    5 12 19 ...
    . .  .
    0  7 14 ...

Moves are written as columns 1, 2, ...; positions as the columns played ("4453") or as the rows from the top,
separated by slashes, with x for the first player, o for the second and . for empty.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.bits import ONE, lowest, mix, popcount, without_lowest
from envs.errors import InputError
from envs.game import TERMINAL, Game, State, Symmetry
from envs.rng import below


@dataclass(frozen=True)
class ConnectFour(Game):
    """Parameters: the board's size and how many in a line win."""

    rows: int = 6
    columns: int = 7
    connect: int = 4

    title = "Connect Four"
    notation = "columns played: 4453"
    state = np.dtype([("mine", "u8"), ("occupied", "u8")], align=True)  # mine: the player to move
    num_symmetries = 2
    num_words = 3
    cell_values = 4  # out of reach, mine, theirs, the next to fall on (Thill, Koch, Konen 2012)

    def __post_init__(self) -> None:
        if self.rows < 1 or self.columns < 1 or self.connect < 2:
            raise InputError(f"{self}: rows and columns must be at least 1, connect at least 2")
        if (self.rows + 1) * self.columns > 64:
            raise InputError(f"{self}: the board does not fit: (rows + 1) * columns must be at most 64")
        if self.columns > 9:
            raise InputError(f"{self}: columns must be at most 9, one digit each")

    @property
    def num_actions(self) -> int:
        return self.columns

    @property
    def max_legal(self) -> int:
        return self.columns

    @property
    def max_length(self) -> int:
        return self.rows * self.columns

    @property
    def most_filled(self) -> int:
        return self.rows * self.columns

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (6, self.rows, self.columns)  # mine, theirs, where a disc can fall, my threats, theirs, odd rows

    @property
    def bottom(self) -> np.uint64:
        return np.uint64(sum(1 << (self.rows + 1) * c for c in range(self.columns)))

    @property
    def board(self) -> np.uint64:
        return np.uint64(sum(((1 << self.rows) - 1) << (self.rows + 1) * c for c in range(self.columns)))

    @property
    def num_features(self) -> int:
        return 2 * self.connect

    def feature_names(self) -> tuple[str, ...]:
        names = [f"{n} of {self.connect} in an open line" for n in range(1, self.connect)]
        return (*names, *(f"theirs: {name}" for name in names), "centre column", "to move")

    def tables(self) -> dict[str, np.ndarray]:
        lines, starts, steps = [], [0, 0, 0, 0], self.steps()
        for row in range(self.rows):
            for column in range(self.columns):
                for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                    last_row, last_column = row + down * (self.connect - 1), column + right * (self.connect - 1)
                    if last_row < self.rows and 0 <= last_column < self.columns:
                        bits = [(self.rows + 1) * (column + i * right) + row + i * down for i in range(self.connect)]
                        lines.append(sum(1 << bit for bit in bits))
                        starts[steps.index(abs(bits[1] - bits[0]))] |= 1 << min(bits)
        return {"lines": np.array(lines, np.uint64), "line_starts": np.array(starts, np.uint64)}

    def start(self, state: State) -> None:
        state.mine = 0
        state.occupied = 0

    def steps(self) -> tuple[int, int, int, int]:
        """From a cell's bit to the next one's: up, down to the right, to the right, up to the right."""
        return 1, self.rows, self.rows + 1, self.rows + 2

    def connected(self, stones: Any) -> bool:
        """Whether the stones hold a line: stones & (stones >> step) & ... with `connect` terms."""
        for step in self.steps():
            if self.connect == 4:
                pairs = stones & (stones >> np.uint64(step))
                run = pairs & (pairs >> np.uint64(2 * step))
            else:
                run = stones
                for i in range(1, self.connect):
                    run &= stones >> np.uint64(step * i)
            if run != 0:
                return True
        return False

    def player(self, state: State) -> int:
        if self.connected(state.mine ^ state.occupied) or state.occupied == self.board:
            return TERMINAL
        return popcount(state.occupied) & 1

    def openings(self, state: State) -> Any:
        """The cells where a disc can fall: the lowest empty one of each column."""
        return (state.occupied + self.bottom) & self.board

    def actions(self, state: State, out: Any) -> int:
        count = 0
        rest = self.openings(state)
        while rest != 0:
            out[count] = lowest(rest) // (self.rows + 1)
            rest = without_lowest(rest)
            count += 1
        return count

    def random_action(self, state: State, out: Any, rng: Any) -> Any:
        rest = self.openings(state)
        for _ in range(below(rng, popcount(rest))):
            rest = without_lowest(rest)
        return lowest(rest) // (self.rows + 1)

    def play(self, state: State, action: Any) -> None:
        state.mine ^= state.occupied
        state.occupied |= state.occupied + (ONE << np.uint64((self.rows + 1) * action))

    def utility(self, state: State, player: Any) -> float:
        if not self.connected(state.mine ^ state.occupied):
            return 0.0
        return 1.0 if player != popcount(state.occupied) & 1 else -1.0

    def key(self, state: State) -> Any:
        # Adding the bottom row marks each column's height, so one word holds the whole position.
        return mix(state.mine + state.occupied + self.bottom)

    def transform(self, state: State, symmetry: Any) -> None:
        if symmetry == 1:
            state.mine = self.mirrored(state.mine)
            state.occupied = self.mirrored(state.occupied)

    def mirrored(self, stones: Any) -> Any:
        column = (ONE << np.uint64(self.rows + 1)) - ONE
        image = stones & np.uint64(0)
        for c in range(self.columns):
            bits = (stones >> np.uint64((self.rows + 1) * c)) & column
            image |= bits << np.uint64((self.rows + 1) * (self.columns - 1 - c))
        return image

    def observe(self, state: State, planes: Any) -> None:
        self.observe_stones(state.mine, planes[0])
        self.observe_stones(state.mine ^ state.occupied, planes[1])
        self.observe_stones(self.openings(state), planes[2])
        # Who wins the endgame is a matter of threats and of the rows that they are in (Allis 1988, "zugzwang").
        self.observe_stones(self.threats(state.mine, state.occupied), planes[3])
        self.observe_stones(self.threats(state.mine ^ state.occupied, state.occupied), planes[4])
        for row in range(self.rows - 1, -1, -2):
            for column in range(self.columns):
                planes[5, row, column] = 1.0

    def threats(self, stones: Any, occupied: Any) -> Any:
        """The empty cells, in reach or not, that would complete a line of these stones."""
        found = stones & ~stones
        rest = self.board & ~occupied
        while rest != 0:
            others = without_lowest(rest)
            cell = rest ^ others
            if self.connected(stones | cell):
                found |= cell
            rest = others
        return found

    def observe_stones(self, stones: Any, plane: Any) -> None:
        """Bit by bit: boards are sparse, so this is quicker than to look at every cell."""
        rest = stones
        while rest != 0:
            cell = lowest(rest)
            rest = without_lowest(rest)
            plane[self.rows - 1 - cell % (self.rows + 1), cell // (self.rows + 1)] = 1.0  # the top row first

    def board_word(self, state: State, index: Any) -> Any:
        if index == 2:
            return self.openings(state)
        return state.mine if index == 0 else state.mine ^ state.occupied

    def filled(self, state: State) -> int:
        return popcount(state.occupied)

    def word_cells(self) -> tuple[np.ndarray, np.ndarray]:
        column, row = np.divmod(np.arange(64), self.rows + 1)
        cells = np.where((row < self.rows) & (column < self.columns), (self.rows - 1 - row) * self.columns + column, -1)
        return np.stack([cells] * 3), np.array([[1], [2], [3]]) * np.ones(64, np.int64)

    def count_lines(self, mine: Any, theirs: Any, out: Any, first: Any) -> None:
        """Adds to out[first + n - 1] the lines that hold n of my discs (n < connect) and none of theirs.

        All lines of one direction at once, each at the bit of its first cell: three words hold the binary digits
        of every line's number of discs.
        """
        for direction in range(4):
            step = np.uint64(self.steps()[direction])
            open_lines = self.line_starts[direction]
            ones, twos, fours = mine, mine & ~mine, mine & ~mine
            open_lines &= ~theirs
            for i in range(1, self.connect):
                shift = step * np.uint64(i)
                open_lines &= ~(theirs >> shift)
                added = mine >> shift
                carry = ones & added
                ones ^= added
                fours |= twos & carry
                twos ^= carry
            for n in range(1, self.connect):
                lines = open_lines & (ones if n & 1 else ~ones) & (twos if n & 2 else ~twos)
                out[first + n - 1] += popcount(lines & (fours if n & 4 else ~fours))

    def features(self, state: State, out: Any) -> int:
        theirs = state.mine ^ state.occupied
        for i in range(self.num_features):
            out[i] = 0.0
        if self.connect < 8:
            self.count_lines(state.mine, theirs, out, 0)
            self.count_lines(theirs, state.mine, out, self.connect - 1)
        else:
            for i in range(len(self.lines)):
                own, other = popcount(state.mine & self.lines[i]), popcount(theirs & self.lines[i])
                if other == 0 and 0 < own < self.connect:
                    out[own - 1] += 1.0
                elif own == 0 and 0 < other < self.connect:
                    out[self.connect - 2 + other] += 1.0
        centre = ((ONE << np.uint64(self.rows)) - ONE) << np.uint64((self.rows + 1) * (self.columns // 2))
        out[2 * self.connect - 2] = popcount(state.mine & centre) - popcount(theirs & centre)
        out[2 * self.connect - 1] = 1.0
        return self.num_features

    def symmetries(self) -> list[Symmetry]:
        cells = np.arange(self.rows * self.columns).reshape(self.rows, self.columns)
        actions, none = np.arange(self.columns), np.arange(0)
        return [
            Symmetry(cells.reshape(-1), actions, none),
            Symmetry(cells[:, ::-1].reshape(-1), actions[::-1].copy(), none),
        ]

    def cells(self, state: State) -> np.ndarray:
        planes = np.zeros(self.observation_shape, np.float32)
        self.observe(state, planes)
        mover = popcount(state.occupied) & 1
        return (planes[0] * (mover + 1) + planes[1] * (2 - mover)).astype(np.int8)

    def show(self, state: State) -> str:
        marks = [".", "\033[91mx\033[0m", "\033[93mo\033[0m"]
        rows = [" ".join(marks[cell] for cell in row) for row in self.cells(state)]
        return "\n".join([*rows, " ".join(str(c + 1) for c in range(self.columns))])

    def action_name(self, state: State, action: int) -> str:
        return str(int(action) + 1)

    def parse_position(self, text: str) -> State:
        text = text.strip()
        if not set(text) <= set(".xo/"):
            spaced = " ".join(text.replace(" ", ""))
            try:
                return super().parse_position(spaced)
            except InputError as error:
                raise InputError(str(error).replace(repr(spaced), repr(text), 1)) from None
        rows = text.split("/")
        if len(rows) != self.rows or any(len(row) != self.columns for row in rows):
            raise InputError(f"position {text!r}: expected {self.rows} rows of {self.columns} cells (x, o or .)")
        if not 0 <= text.count("x") - text.count("o") <= 1:
            raise InputError(f"position {text!r}: x must have as many discs as o, or one more")
        stones = {"x": 0, "o": 0}
        for column in range(self.columns):
            heights = [row[column] != "." for row in reversed(rows)]
            if sorted(heights, reverse=True) != heights:
                raise InputError(f"position {text!r}: a disc in column {column + 1} hangs in the air")
            for row, line in enumerate(reversed(rows)):
                if line[column] != ".":
                    stones[line[column]] |= 1 << (self.rows + 1) * column + row
        mover = "x" if text.count("x") == text.count("o") else "o"
        if self.connected(np.uint64(stones[mover])):
            raise InputError(f"position {text!r}: the player to move has connected already")
        state = self.new()[0]
        state.mine, state.occupied = stones[mover], stones["x"] | stones["o"]
        return state

    def position_text(self, state: State) -> str:
        return "/".join("".join(".xo"[cell] for cell in row) for row in self.cells(state))
