"""Pacman alone against ghosts that move at random: a game of MAX and CHANCE nodes, for expectimax.

After the game of Iwatani (1980) as Berkeley's teaching project plays it on a grid (DeNero and Klein 2010), with turns:
Pacman steps north, east, south or west or stops, then each ghost in turn makes a random step, a chance node of its
own. Ghosts never stop unless walls close them in; each open direction is equally likely. A ghost may turn back; with
`reversing=false` only where there is no other way.

The score, which is Pacman's utility:
    -1     each of Pacman's moves
    +10    each piece of food
    +500   the last piece of food: the game is won and over, even if a ghost waits there
    -500   Pacman and a ghost in the same cell, whoever moved there: the game is lost and over
    +200   the same with a frightened ghost, which starts again from its first cell and fears no more
           (where Pacman, if that is the very cell, falls to it)
A capsule frightens all ghosts until each has moved 20 times more. After `max_steps` moves of Pacman, and those of the
ghosts after the last one, the game is over with the score that it has. In the teaching project frightened ghosts are
slow and fear lasts 40 moves; ours keep their pace.

`pacman_maps.py` says how maps are written. Open cells are numbered row by row; food and capsules are bits on them. All
that differs between maps is run-time data, so that all maps share compiled code.

Moves and outcomes are north, east, south, west and stop, or their first letters. Positions are moves from the start
("east west north"), or the rows of the map with the food that is left, and all else by name, cells by row and column:

    %%%%%/%__.%/%_%_%/%.__%/%%%%% pacman 2,3 ghosts 4,3 score -2 steps 2 turn 1

A ghost's heading (n, e, s, w), where it matters, and ! for a frightened one follow its cell: 4,3w!
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from envs import pacman_maps as maps
from envs.bits import ONE, lowest, mix, popcount, without_lowest
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, Game, State

FOOD_POINTS, WIN_POINTS, DEATH_POINTS, GHOST_POINTS, STEP_POINTS = 10, 500, -500, 200, -1
FEAR = 20  # moves of a ghost
STOP = 4  # the action; as a heading: none yet
NAMES = ("north", "east", "south", "west", "stop")
GOES_ON, WON, LOST = 0, 1, 2
_WORDS = maps.MOST_CELLS // 64
_COLOURS = {"%": "34", ".": "97", "o": "1;97", "C": "1;93", "G": "91", "g": "94", " ": "0"}
_PLANES = 8


@dataclass(frozen=True)
class Pacman(Game):
    """Parameters: the map by name, as text or as a file, how many moves Pacman has, and whether ghosts turn back."""

    map: str = "small"
    max_steps: int = 200
    reversing: bool = True

    title = "Pacman"
    notation = "moves and ghosts' steps: east west north stop; or the map's rows and all else by name"
    state = np.dtype(
        [
            ("food", "u8", (_WORDS,)),
            ("capsules", "u8", (_WORDS,)),
            ("score", "i4"),
            ("steps", "i4"),  # Pacman's moves so far
            ("ghosts", "i2", (maps.MOST_GHOSTS,)),  # cells
            ("headings", "i2", (maps.MOST_GHOSTS,)),  # the last step, where it matters
            ("fear", "i2", (maps.MOST_GHOSTS,)),  # moves until a ghost is brave again
            ("pacman", "i2"),
            ("turn", "i2"),  # 0 Pacman, i the i-th ghost
            ("over", "i4"),  # GOES_ON, WON, LOST
        ],
        align=True,
    )
    num_players = 1
    num_actions = 5
    max_legal = 5
    num_outcomes = 5
    zero_sum = False
    num_features = 9

    def __post_init__(self) -> None:
        text = maps.read(self.map)
        object.__setattr__(self, "layout", maps.parse(text))
        names = {rows: name for name, rows in maps.MAPS.items()}
        object.__setattr__(self, "map", names.get(text, text))
        if not 1 <= self.max_steps <= 1_000_000:
            raise InputError(f"pacman: max_steps={self.max_steps} must be from 1 to 1000000")

    @property
    def ghost_count(self) -> int:
        return len(self.layout.ghosts)

    @property
    def has_chance(self) -> bool:
        return self.ghost_count > 0

    @property
    def max_length(self) -> int:
        return self.max_steps * (1 + self.ghost_count)

    @property
    def min_utility(self) -> float:
        return float(STEP_POINTS * self.max_steps + DEATH_POINTS)

    @property
    def max_utility(self) -> float:
        feasts = GHOST_POINTS * self.ghost_count * len(self.layout.capsules)
        return float(STEP_POINTS + FOOD_POINTS * len(self.layout.food) + WIN_POINTS + feasts)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        # walls, food, capsules, Pacman, ghosts, frightened ghosts, how long they fear, moves left
        return (_PLANES, self.layout.rows, self.layout.columns)

    def tables(self) -> dict[str, np.ndarray]:
        layout, size = self.layout, maps.MOST_CELLS
        count = len(layout.places)
        near = np.full((size, 4), -1, np.int16)
        near[:count] = layout.neighbours()
        far = np.full((size, size), maps.FAR, np.uint8)
        far[:count, :count] = layout.distances()
        place = np.zeros((size, 2), np.int16)
        place[:count] = layout.places
        homes = np.zeros(maps.MOST_GHOSTS, np.int16)
        homes[: self.ghost_count] = layout.ghosts
        numbers = ("ghost_count", "has_chance", "max_length", "min_utility", "max_utility", "max_steps", "reversing")
        arrays: dict[str, Any] = {"near": near, "far": far, "place": place, "homes": homes}
        arrays |= {"first_food": _bits(layout.food), "first_capsules": _bits(layout.capsules)}
        arrays |= {"first_cell": np.array(layout.pacman), "cell_count": np.array(count)}
        return arrays | {name: np.array(getattr(self, name)) for name in numbers}

    # --- the rules -----------------------------------------------------------------------------------

    def start(self, state: State) -> None:
        for word in range(_WORDS):
            state.food[word] = self.first_food[word]
            state.capsules[word] = self.first_capsules[word]
        for ghost in range(maps.MOST_GHOSTS):
            state.ghosts[ghost] = self.homes[ghost]
            state.headings[ghost] = STOP
            state.fear[ghost] = 0
        state.pacman = self.first_cell
        state.score = 0
        state.steps = 0
        state.turn = 0
        state.over = GOES_ON

    def player(self, state: State) -> int:
        if state.over != GOES_ON:
            return TERMINAL
        if state.turn != 0:
            return CHANCE
        return 0 if state.steps < self.max_steps else TERMINAL

    def actions(self, state: State, out: Any) -> int:
        count = 0
        for direction in range(4):
            if self.near[state.pacman, direction] >= 0:
                out[count] = direction
                count += 1
        out[count] = STOP
        return count + 1

    def outcomes(self, state: State, out: Any, probabilities: Any) -> int:
        ghost = state.turn - 1
        cell, back = state.ghosts[ghost], (state.headings[ghost] + 2) & 3
        ahead_only = state.headings[ghost] != STOP and not self.reversing
        count = 0
        for direction in range(4):
            if self.near[cell, direction] >= 0 and not (ahead_only and direction == back):
                out[count] = direction
                count += 1
        if count == 0:  # a dead end, or a cell without an exit
            out[0] = back if ahead_only and self.near[cell, back] >= 0 else STOP
            count = 1
        for i in range(count):
            probabilities[i] = 1.0 / count
        return count

    def play(self, state: State, action: Any) -> None:
        if state.turn == 0:
            self.move_pacman(state, action)
        else:
            self.move_ghost(state, action, state.turn - 1)
        if state.over != GOES_ON or state.turn == self.ghost_count:
            state.turn = 0
        else:
            state.turn += 1

    def move_pacman(self, state: State, action: Any) -> None:
        if action != STOP:
            state.pacman = self.near[state.pacman, action]
        state.steps += 1
        state.score += STEP_POINTS
        word, bit = state.pacman >> 6, ONE << np.uint64(state.pacman & 63)
        if state.food[word] & bit != 0:
            state.food[word] &= ~bit
            state.score += FOOD_POINTS
            if not self.food_left(state):
                state.score += WIN_POINTS
                state.over = WON
                return
        elif state.capsules[word] & bit != 0:
            state.capsules[word] &= ~bit
            for ghost in range(self.ghost_count):
                state.fear[ghost] = FEAR
        for ghost in range(self.ghost_count):
            self.meet(state, ghost)

    def move_ghost(self, state: State, action: Any, ghost: Any) -> None:
        if action != STOP:
            state.ghosts[ghost] = self.near[state.ghosts[ghost], action]
        if not self.reversing:
            state.headings[ghost] = action
        self.meet(state, ghost)
        if state.fear[ghost] > 0:
            state.fear[ghost] -= 1

    def meet(self, state: State, ghost: Any) -> None:
        """What happens if Pacman and that ghost are in one cell."""
        if state.ghosts[ghost] != state.pacman or state.over != GOES_ON:
            return
        if state.fear[ghost] > 0:
            state.score += GHOST_POINTS
            state.ghosts[ghost] = self.homes[ghost]
            state.headings[ghost] = STOP
            state.fear[ghost] = 0
        if state.ghosts[ghost] == state.pacman and state.fear[ghost] == 0:  # also one that starts again here
            state.score += DEATH_POINTS
            state.over = LOST

    def food_left(self, state: State) -> Any:
        count = 0
        for word in range(_WORDS):
            count += popcount(state.food[word])
        return count

    def utility(self, state: State, player: Any) -> float:
        return np.float64(state.score)

    def key(self, state: State) -> Any:
        score = np.uint64(np.int64(state.score) + 2**31)  # never negative
        total = mix((np.uint64(state.steps) << np.uint64(32)) ^ score)
        total = mix(total ^ np.uint64(np.int64(state.pacman) * 32 + state.turn * 4 + state.over))
        for ghost in range(self.ghost_count):
            place = (np.int64(state.ghosts[ghost]) * 8 + state.headings[ghost]) * 32 + state.fear[ghost]
            total = mix(total ^ np.uint64(place))
        for word in range((self.cell_count + 63) >> 6):
            total = mix(total ^ state.food[word])
            total = mix(total ^ state.capsules[word])
        return total

    # --- what learners and evaluations see -----------------------------------------------------------

    def observe(self, state: State, planes: Any) -> None:
        planes[0] = 1.0
        for cell in range(self.cell_count):
            row, column, bit = self.place[cell, 0], self.place[cell, 1], np.uint64(cell & 63)
            planes[0, row, column] = 0.0
            planes[1, row, column] = (state.food[cell >> 6] >> bit) & ONE
            planes[2, row, column] = (state.capsules[cell >> 6] >> bit) & ONE
        planes[3, self.place[state.pacman, 0], self.place[state.pacman, 1]] = 1.0
        for ghost in range(self.ghost_count):
            row, column = self.place[state.ghosts[ghost], 0], self.place[state.ghosts[ghost], 1]
            if state.fear[ghost] == 0:
                planes[4, row, column] += 1.0
            else:
                planes[5, row, column] += 1.0
                planes[6, row, column] = max(planes[6, row, column], state.fear[ghost] / FEAR)
        planes[7] = 1.0 - state.steps / self.max_steps

    def earned(self, state: State) -> float:
        return np.float64(state.score)

    def nearest(self, state: State, board: Any) -> Any:
        """The steps from Pacman to the nearest bit; FAR if there is none that can be reached."""
        best: Any = maps.FAR
        for word in range(_WORDS):
            rest = board[word]
            while rest != 0:
                best = min(best, np.int64(self.far[state.pacman, 64 * word + lowest(rest)]))
                rest = without_lowest(rest)
        return best

    def features(self, state: State, out: Any) -> int:
        for i in range(self.num_features):
            out[i] = 0.0
        left = self.food_left(state)
        out[0] = state.score / 100.0
        out[1] = left
        if left > 0:
            out[2] = self.nearest(state, state.food)
        capsule = self.nearest(state, state.capsules)
        if capsule < maps.FAR:
            out[3] = 1.0 / (1.0 + capsule)
        for ghost in range(self.ghost_count):
            steps = np.int64(self.far[state.pacman, state.ghosts[ghost]])
            if steps == maps.FAR:
                continue
            closeness = 1.0 / (1.0 + steps)
            if state.fear[ghost] == 0:
                out[4] = max(out[4], closeness)
                out[5] += steps <= 1
                out[6] += steps == 2
            else:
                out[7] = max(out[7], closeness)
        out[8] = 1.0
        return self.num_features

    # --- for people ----------------------------------------------------------------------------------

    def feature_names(self) -> tuple[str, ...]:
        ghosts = ("closeness of the nearest ghost", "ghosts within one step", "ghosts two steps away")
        food = ("score in hundreds", "food left", "steps to the nearest food", "closeness of the nearest capsule")
        return (*food, *ghosts, "closeness of the nearest frightened ghost", "to move")

    def _has(self, board: Any, cell: int) -> bool:
        return bool((int(board[cell >> 6]) >> (cell & 63)) & 1)

    def _rows(self, state: State) -> list[list[str]]:
        """The walls, the food and the capsules."""
        rows = [[maps.WALL] * self.layout.columns for _ in range(self.layout.rows)]
        for cell, (row, column) in enumerate(self.layout.places):
            letter = maps.FOOD if self._has(state.food, cell) else maps.OPEN
            rows[row][column] = maps.CAPSULE if self._has(state.capsules, cell) else letter
        return rows

    def glyphs(self, state: State) -> list[list[str]]:
        rows = [["" if letter == maps.OPEN else letter for letter in row] for row in self._rows(state)]
        figures = [(state.pacman, "C")]
        figures += [(state.ghosts[g], "g" if state.fear[g] else "G") for g in range(self.ghost_count)]
        for cell, letter in figures:
            row, column = self.layout.places[int(cell)]
            rows[row][column] = letter
        return rows

    def cells(self, state: State) -> np.ndarray:
        kinds = {"": 0, ".": 0, "o": 0, "C": 1, "G": 2, "g": 3, "%": 4}
        return np.array([[kinds[letter] for letter in row] for row in self.glyphs(state)], np.int8)

    def show(self, state: State) -> str:
        lines = []
        for row in self.glyphs(state):
            lines.append("".join(f"\033[{_COLOURS[letter or ' ']}m{letter or ' '}\033[0m" for letter in row))
        return "\n".join([*lines, f"score {int(state.score)}, {self.max_steps - int(state.steps)} moves left"])

    def action_name(self, state: State, action: int) -> str:
        return NAMES[int(action)]

    def parse_action(self, state: State, text: str) -> int:
        letters = {name[0]: name for name in NAMES if name != "stop"}
        word = text.strip().lower()
        return super().parse_action(state, letters.get(word, word))

    def position_text(self, state: State) -> str:
        def place(cell: Any) -> str:
            row, column = self.layout.places[int(cell)]
            return f"{row + 1},{column + 1}"

        text = "/".join("".join(row) for row in self._rows(state)) + f" pacman {place(state.pacman)}"
        ghosts = [
            f"{place(state.ghosts[g])}{'nesw '[state.headings[g]].strip()}{'!' * bool(state.fear[g])}"
            + (str(int(state.fear[g])) if state.fear[g] else "")
            for g in range(self.ghost_count)
        ]
        text += f" ghosts {' '.join(ghosts)}" if ghosts else ""
        return f"{text} score {int(state.score)} steps {int(state.steps)} turn {int(state.turn)}"

    def parse_position(self, text: str) -> State:
        if maps.OPEN in text:  # as every board has one: Pacman's own cell is empty
            return _Position(self, text).state()
        return super().parse_position(text)


def _bits(cells: list[int]) -> np.ndarray:
    total = sum(1 << cell for cell in cells)
    return np.array([(total >> 64 * word) & (2**64 - 1) for word in range(_WORDS)], np.uint64)


class _Position:
    """Reads the text of a position."""

    def __init__(self, game: Pacman, text: str):
        self.game, self.text = game, text
        self.cell = {place: i for i, place in enumerate(game.layout.places)}
        self.board, *words = text.split()
        self.values: dict[str, list[str]] = {}
        name = ""
        for word in words:
            if word in ("pacman", "ghosts", "score", "steps", "turn"):
                if word in self.values:
                    self.fail(f"{word} is given twice")
                name = word
                self.values[name] = []
            elif not name:
                self.fail(f"expected pacman, ghosts, score, steps or turn, not {word!r}")
            else:
                self.values[name].append(word)

    def fail(self, why: str) -> None:
        raise InputError(f"position {self.text!r}: {why}")

    def number(self, name: str, least: int, most: int) -> int:
        words = self.values.get(name, ["0"])
        if (
            len(words) != 1
            or not re.fullmatch(r"[+-]?\d{1,9}", words[0], re.ASCII)
            or not least <= int(words[0]) <= most
        ):
            self.fail(f"{name} {' '.join(words)!r} must be a whole number from {least} to {most}")
        return int(words[0])

    def place(self, word: str) -> int:
        found = re.fullmatch(r"(\d{1,3}),(\d{1,3})", word, re.ASCII)
        cell = self.cell.get((int(found[1]) - 1, int(found[2]) - 1)) if found else None
        if cell is None:
            self.fail(f"{word!r} must be the row and the column of an open cell, like 2,3")
        return cell  # type: ignore[return-value]

    def ghost(self, word: str) -> tuple[int, int, int]:
        """The cell, the heading and the fear."""
        found = re.fullmatch(r"([\d,]+)([nesw]?)(?:!(\d{1,2}))?", word, re.ASCII)
        if not found or not 0 <= int(found[3] or 0) <= FEAR or (found[2] and self.game.reversing):
            self.fail(f"ghost {word!r} must be a cell, a heading only if ghosts can't turn back, and !1 to !{FEAR}")
        assert found
        return self.place(found[1]), "nesw".index(found[2]) if found[2] else STOP, int(found[3] or 0)

    def state(self) -> State:
        game, layout = self.game, self.game.layout
        state = game.new()[0]
        rows = self.board.split("/")
        if len(rows) != layout.rows or any(len(row) != layout.columns for row in rows):
            self.fail(f"expected {layout.rows} rows of {layout.columns} cells, divided by slashes")
        food, capsules = set(layout.food), set(layout.capsules)
        for (row, column), letter in maps._letters(rows):
            cell = self.cell.get((row, column))
            allowed = "%" if cell is None else "_." if cell in food else "_o" if cell in capsules else "_"
            if letter not in allowed:
                self.fail(f"row {row + 1}, column {column + 1} is {letter!r}; the map allows {' or '.join(allowed)}")
        left = {kind: [self.cell[place] for place, letter in maps._letters(rows) if letter == kind] for kind in ".o"}
        state.food[:], state.capsules[:] = _bits(left["."]), _bits(left["o"])
        state.pacman = self.place(" ".join(self.values.get("pacman", [""])))
        if state.pacman in left["."] or state.pacman in left["o"]:
            self.fail("Pacman's cell can't hold food or a capsule")
        ghosts = self.values.get("ghosts", [])
        if len(ghosts) != game.ghost_count:
            self.fail(f"the map has {game.ghost_count} ghosts, not {len(ghosts)}")
        for i, word in enumerate(ghosts):
            state.ghosts[i], state.headings[i], state.fear[i] = self.ghost(word)
        state.score = self.number("score", int(game.min_utility), int(game.max_utility))
        state.steps = self.number("steps", 0, game.max_steps)
        state.turn = self.number("turn", 0, game.ghost_count)
        caught = any(state.ghosts[i] == state.pacman and not state.fear[i] for i in range(game.ghost_count))
        state.over = WON if not left["."] else LOST if caught else GOES_ON
        if state.turn and (state.over != GOES_ON or not state.steps):
            self.fail("turn must be 0 before the first move and when the game is over")
        return state
