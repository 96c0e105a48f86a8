"""Go by the rules of Tromp and Taylor (tromp.github.io/go.html): area scoring, positional superko.

- Black begins; a move is a stone on an empty point or a pass. Opponent's chains without a liberty come off,
  then the mover's own. A move that leaves the mover's own stones without a liberty is illegal, unless
  `suicide` is on (Tromp and Taylor allow it; Chinese and Japanese rules, OpenSpiel and GNU Go do not).
- Positional superko: no stone may bring back any former position of the board, whoever was to move. A pass is
  always legal. (With `superko` off only the simple ko is forbidden: to take back at once the single stone that
  has just taken a single stone.) A stone that takes only itself off changes nothing and is never legal.
- Two passes in a row end the game, and so does its `length`-th ply (by default twice the points as in AlphaGo
  Zero, but at least 150, so that small boards are played out). Then all stones count as alive: the score is the
  stones of a colour and the empty points that reach only that colour; White adds `komi`.
- The winner's utility is 1, the loser's -1, a draw's 0; with `margin`, the difference in points.

Points are numbered row by row from the top left, the pass comes last. A state holds the whole game: moves,
stones set up before them, and a 64-bit hash of each former position (see `go_board.py`); 3.2 KB on 9x9,
14 KB on 19x19. `key` covers the board, the mover, the passes in a row and the simple ko. It leaves out former
positions and the number of plies, so two states with the same key may differ in what superko forbids (rare
beyond the simple ko) and in how near the length bound is.

Playouts (`playout_action`) play random stones but do not fill single-point eyes of their own, and pass when no
other stone is left; so two passes end them, on 9x9 after 111 plies on average.

Perft counts sequences of moves, passes included. A game that two passes end has no continuation: with S(n)
sequences that end in a stone (OEIS A048289 for 19x19), perft n is S(n) + S(n-1) + S(n-2), from n = 2 on.

What other programs do differently:
- OpenSpiel's `go` forbids the simple ko only. A stone that repeats another former position is legal there and
  ends the game as a draw. It allows no more than 2 * points plies on any board. Its point 0 is a1, bottom left.
- GNU Go (as recorded in the tests) forbids the simple ko only and plays on after a longer repetition.

Moves are GTP coordinates; positions are moves, diagrams or SGF (see `go_text.py`).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from envs.bits import mix
from envs.errors import InputError
from envs.game import TERMINAL, State, Symmetry, python_only
from envs.go_board import EMPTY
from envs.go_features import GoFeatures
from envs.go_text import PASS, SGF, cell_name, is_diagram, parse_cell, parse_diagram, parse_sgf, shown, write_sgf
from envs.rng import below

PLAYOUT_DRAWS = 6  # random points that a playout tries before it lists what is left


@dataclass(frozen=True)
class Go(GoFeatures):
    """Parameters: size, komi, suicide, margin, rows, length, superko; see the fields in `GoBoard`."""

    title = "Go"
    notation = "GTP moves: D4 pass; a diagram: .x./o../... b; or SGF"
    history_fields: ClassVar[tuple[str, ...]] = (
        *("history", "seen", "moves", "setup", "ply", "area"),
        *("liberties", "head", "next", "stones", "empty", "unused"),  # follow from the board, not in one way only
    )

    @property
    def num_actions(self) -> int:
        return self.points + 1

    @property
    def max_legal(self) -> int:
        return self.points + 1

    @property
    def max_utility(self) -> float:
        return self.points + abs(self.komi) if self.margin else 1.0

    @property
    def min_utility(self) -> float:
        return -self.max_utility

    @property
    def num_symmetries(self) -> int:
        return 8 if self.height == self.size else 4

    # --- the rules -----------------------------------------------------------------------------------

    def start(self, state: State) -> None:
        for a in range(self.points):
            state.setup[a] = EMPTY
        for i in range(self.max_length):
            state.moves[i] = 0
        self.clear(state)
        self.remember(state)

    def player(self, state: State) -> Any:
        if state.passes >= 2 or state.ply >= self.max_length:
            return TERMINAL
        return np.int64(state.turn)

    def actions(self, state: State, out: Any) -> int:
        count = 0
        for action in range(self.points):
            point = self.point_of[action]
            if state.colour[point] == EMPTY and self.is_legal(state, point):
                out[count] = action
                count += 1
        out[count] = self.points
        return count + 1

    def random_action(self, state: State, out: Any, rng: Any) -> Any:
        # Draws from the empty points and the pass until the draw is legal: uniform over what is legal.
        while True:
            i = below(rng, state.open + 1)
            if i == state.open:
                return np.int64(self.points)
            point = state.empty[i]
            if self.is_legal(state, point):
                return self.action_of[point]

    def playout_action(self, state: State, out: Any, rng: Any) -> Any:
        """A stone that is no suicide and fills none of the mover's own eyes, each equally likely; else a pass."""
        for _ in range(PLAYOUT_DRAWS):
            point = state.empty[below(rng, state.open)]
            if self.is_sensible(state, point):
                return self.action_of[point]
        count = 0
        for i in range(state.open):
            if self.is_sensible(state, state.empty[i]):
                out[count] = self.action_of[state.empty[i]]
                count += 1
        return out[below(rng, count)] if count else np.int64(self.points)

    def is_sensible(self, state: State, point: Any) -> bool:
        if self.is_eye(state, point, np.int64(state.turn) + 1):
            return False
        return self.is_legal(state, point) and not (self.suicide and self.is_suicide(state, point))

    def play(self, state: State, action: Any) -> None:
        state.moves[state.ply] = action
        if action == self.points:
            state.passes += 1
            state.ko = 0
        else:
            state.passes = 0
            self.put(state, self.point_of[action], np.int64(state.turn))
        state.turn = 1 - state.turn
        state.ply += 1
        self.remember(state)
        if state.passes == 2 or state.ply == self.max_length:
            state.area = self.score(state)

    def utility(self, state: State, player: Any) -> float:
        lead = np.float64(state.area) - self.komi
        if player == 1:
            lead = -lead
        if self.margin:
            return lead
        return 1.0 if lead > 0 else (-1.0 if lead < 0 else 0.0)

    def key(self, state: State) -> Any:
        rest = np.uint64(state.turn) | np.uint64(state.passes) << np.uint64(1) | np.uint64(state.ko) << np.uint64(3)
        return mix(state.hash ^ rest)

    def is_loud(self, state: State, action: Any) -> bool:
        """Captures are loud."""
        return self.move_value(state, action) > 0

    def move_value(self, state: State, action: Any) -> Any:
        """The number of stones that the move captures."""
        if action == self.points:
            return 0
        point, captured = self.point_of[action], np.int64(0)
        for k in range(4):
            n = self.neighbours[point, k]
            foe = state.colour[n] == 2 - np.int64(state.turn)
            if foe and self.in_atari(state, state.head[n], point) and self.first_touch(state, point, k):
                captured += np.int64(state.stones[state.head[n]])
        return captured

    def transform(self, state: State, symmetry: Any) -> None:
        # Hashes of former positions have no image of their own, so the image of the game is played again.
        first, plies = (np.int64(state.turn) + np.int64(state.ply)) & 1, np.int64(state.ply)
        for a in range(self.points):
            state.stones[self.images[symmetry, a]] = state.setup[a]  # room that is cleared before its next use
        for a in range(self.points):
            state.setup[a] = state.stones[a]
        self.set_up(state, first)
        for i in range(plies):
            action = np.int64(state.moves[i])
            self.play(state, self.images[symmetry, action] if action < self.points else action)

    def symmetries(self) -> list[Symmetry]:
        none = np.arange(0)
        return [Symmetry(cells, np.append(cells, self.points), none) for cells in self.images]

    # --- for people ----------------------------------------------------------------------------------

    def cells(self, state: State) -> np.ndarray:
        return state.colour[self.point_of].reshape(self.height, self.size).astype(np.int8)

    def show(self, state: State) -> str:
        marks = [".", "\033[1;36mx\033[0m", "\033[1;33mo\033[0m"]
        last = int(state.moves[state.ply - 1]) if state.ply else self.points
        letters = "   " + " ".join(cell_name(self.size, self.height, column)[0] for column in range(self.size))
        lines = [letters]
        for y, row in enumerate(self.cells(state)):
            line = f"{self.height - y:2}"
            for x, cell in enumerate(row):
                line += ("(" if y * self.size + x == last else ")" if y * self.size + x - 1 == last and x else " ") + (
                    marks[cell]
                )
            lines.append(line + (")" if last == y * self.size + self.size - 1 else "") + f" {self.height - y}")
        return "\n".join([*lines, letters, self.status(state)])

    @python_only
    def status(self, state: State) -> str:
        """One line: who is to move, or the result."""
        if self.player(state) == TERMINAL:
            return f"game over: {self.result(state)}"
        passed = ", after a pass" if state.passes else ""
        return f"{('Black (x)', 'White (o)')[int(state.turn)]} to move{passed}"

    @python_only
    def result(self, state: State) -> str:
        """The result of a finished game as SGF writes it: "B+3.5", "W+1", "0" for a draw."""
        lead = float(state.area) - self.komi
        return "0" if lead == 0 else f"{'B' if lead > 0 else 'W'}+{abs(lead):g}"

    def action_name(self, state: State, action: int) -> str:
        return "pass" if action == self.points else cell_name(self.size, self.height, int(action))

    def parse_action(self, state: State, text: str) -> int:
        cell = parse_cell(self.size, self.height, text)
        if cell == PASS:
            return self.points
        point = self.point_of[cell]
        if state.colour[point] != EMPTY:
            raise InputError(f"move {text!r} is not legal here: there is a stone already")
        if not self.is_legal(state, point):
            suicide = self.landing(state, point) == state.hash
            why = "it would have no liberty" if suicide else "it would repeat a former position (superko)"
            raise InputError(f"move {text!r} is not legal here: {why}")
        return cell

    def parse_position(self, text: str) -> State:
        text = text.strip()
        if text.startswith("("):
            return self.state_of(parse_sgf(text))
        words = text.split()
        if not words or not is_diagram(words[0]):
            return self.follow(self.new()[0], words)
        stones, first, words = parse_diagram(self.size, self.height, text)
        return self.follow(self.with_stones(stones, first), words)

    def position_text(self, state: State) -> str:
        names = [self.action_name(state, action) for action in self.moves_of(state)]
        first = self.first_of(state)
        if first == 0 and not state.setup.any():
            return " ".join(names)
        rows = state.setup.reshape(self.height, self.size)
        diagram = "/".join("".join(".xo"[cell] for cell in row) for row in rows)
        return " ".join([diagram, "bw"[first], *names])

    @python_only
    def sgf(self, state: State) -> str:
        """The game that the state holds, as SGF."""
        setup = {cell: int(colour) - 1 for cell, colour in enumerate(state.setup) if colour}
        moves = [PASS if action == self.points else action for action in self.moves_of(state)]
        record = SGF(self.size, self.height, self.komi, setup, self.first_of(state), moves)
        return write_sgf(record, self.result(state) if self.player(state) == TERMINAL else None)

    @python_only
    def moves_of(self, state: State) -> list[int]:
        return [int(action) for action in state.moves[: state.ply]]

    @python_only
    def first_of(self, state: State) -> int:
        return (int(state.turn) + int(state.ply)) % 2

    @python_only
    def state_of(self, record: SGF) -> State:
        """The state after the moves of an SGF game, which must have this game's size and komi."""
        if (record.columns, record.rows) != (self.size, self.height):
            raise InputError(
                f"SGF: the board is {record.columns}x{record.rows}, not {self.size}x{self.height} as in {self}"
            )
        if record.komi is not None and record.komi != self.komi:
            raise InputError(
                f"SGF: the komi is {record.komi:g}, not {self.komi:g} as in {self}; use go:komi={record.komi:g}"
            )
        state = self.with_stones(record.setup, record.first)
        names = ["pass" if cell == PASS else cell_name(self.size, self.height, cell) for cell in record.moves]
        return self.follow(state, names)

    @python_only
    def with_stones(self, stones: dict[int, int], first: int) -> State:
        """The state with these stones (cell -> player) on the board and no history."""
        state = self.new()[0]
        for cell, player in stones.items():
            state.setup[cell] = player + 1
        self.set_up(state, first)
        for cell, player in stones.items():
            point = self.point_of[cell]
            if state.colour[point] != player + 1 or state.liberties[state.head[point]] == 0:
                name = cell_name(self.size, self.height, cell)
                raise InputError(f"position: the chain at {name}, or one beside it, has no liberty")
        return state

    @python_only
    def follow(self, state: State, names: list[str]) -> State:
        """Plays the named moves."""
        for number, name in enumerate(names, 1):
            if self.player(state) == TERMINAL:
                raise InputError(f"position: the game is over before move {number}, {shown(name)}")
            try:
                action = self.parse_action(state, name)
            except InputError as error:
                raise InputError(f"position, move {number}: {error}") from None
            self.play(state, action)
        return state


def open_sgf(text: str) -> tuple[Go, State]:
    """The game with the size and komi of an SGF text, and the state after its main line."""
    record = parse_sgf(text)
    komi = Go.komi if record.komi is None else record.komi
    game = Go(size=record.columns, rows=0 if record.rows == record.columns else record.rows, komi=komi)
    return game, game.state_of(record)
