"""The contract of a game: the textbook's formal definition (S0, PLAYER, ACTIONS, RESULT, TERMINAL-TEST,
UTILITY), plus chance.

A game is a frozen dataclass derived from `Game`. Its fields are its parameters; its state is a flat NumPy
record. The methods of the first part compile to native code (see `compiled.py`) and run interpreted as they
stand; those of the second part are for people and stay Python. `envs/check.py` tests every promise made here.

One sign convention: utilities belong to a player by number; `observe` and `features` look from the side of
the player to move. Nothing may assume that players alternate.
"""

import functools
from typing import Any, ClassVar, NamedTuple

import numpy as np

from envs.compiled import Compiled, njit, python_only
from envs.errors import InputError
from envs.rng import below, uniform

CHANCE = -1
TERMINAL = -2

State = Any  # a record of the game's `state` dtype; np.record when interpreted


class Symmetry(NamedTuple):
    """One symmetry of the rules: what is at `i` goes to `cells[i]`, action `a` becomes `actions[a]`.

    `cells` permutes the last two axes of the observation, flattened; `outcomes` the chance outcomes.
    """

    cells: np.ndarray
    actions: np.ndarray
    outcomes: np.ndarray


class Game(Compiled):
    """Base class of all games. Static facts first; a subclass gives those that differ."""

    title: ClassVar[str] = ""  # for people: "Connect Four"
    notation: ClassVar[str] = ""  # for people: how moves and positions are written
    num_players: Any = 2
    num_actions: Any = 0  # actions are 0 .. num_actions - 1
    max_legal: Any = 0  # no state has more legal actions
    max_length: Any = 0  # no game has more plies, chance included
    has_chance: Any = False
    num_outcomes: Any = 0  # chance outcomes are 0 .. num_outcomes - 1
    zero_sum: Any = True  # the players' utilities sum to zero
    min_utility: Any = -1.0
    max_utility: Any = 1.0
    observation_shape: Any = (0,)
    num_features: Any = 0
    num_symmetries: Any = 1  # the identity counts, as symmetry 0
    num_words: Any = 0  # words of 64 bits that hold the board, for pattern features; 0: the game has none
    cell_values: Any = 0  # kinds of content that a cell can have, "empty" included, for pattern features
    most_filled: Any = 0  # `filled` is never more
    compound_moves: Any = False  # actions in a row by one player are parts of one move (checkers, backgammon)
    perft_counts_finished: Any = False  # a game that ended earlier stays a leaf (Othello's custom)
    perft_by_turn: Any = False  # moves in a row by one player count as one (checkers' custom)
    state: Any = np.dtype([])
    history_fields: ClassVar[tuple[str, ...]] = ()  # fields that `key` leaves out: counters, former positions

    # --- compiled: the rules -------------------------------------------------------------------------

    def start(self, state: State) -> None:
        """Writes S0 over whatever the record held."""
        raise NotImplementedError

    def player(self, state: State) -> int:
        """0 .. num_players - 1, or CHANCE, or TERMINAL."""
        raise NotImplementedError

    def actions(self, state: State, out: Any) -> int:
        """Writes the legal actions, ascending, and returns their number. Only for a player's node."""
        raise NotImplementedError

    def play(self, state: State, action: Any) -> None:
        """RESULT, in place. On a chance node the action is the outcome. Illegal actions are undefined."""
        raise NotImplementedError

    def outcomes(self, state: State, out: Any, probabilities: Any) -> int:
        """Writes the chance outcomes, ascending, and their probabilities; returns their number."""
        return 0

    def utility(self, state: State, player: Any) -> float:
        """Only for terminal states."""
        raise NotImplementedError

    def key(self, state: State) -> Any:
        """64 bits for transposition tables and repetitions; equal for equal positions, different otherwise."""
        raise NotImplementedError

    def observe(self, state: State, planes: Any) -> None:
        """Writes the network's input, from the mover's side, into a zeroed float32 array."""
        raise NotImplementedError

    def chance_view(self, state: State) -> int:
        """Before chance: the player from whose side `observe` describes the position, so that a network can value it
        without knowing the outcome; -1 where it does not describe such positions."""
        return -1

    def earned(self, state: State) -> float:
        """One player: the part of the utility that is safe by now, such as points scored; networks learn the rest."""
        return 0.0

    def features(self, state: State, out: Any) -> int:
        """Writes the linear evaluation's input, from the mover's side; returns `num_features`."""
        return 0

    def board_word(self, state: State, index: Any) -> Any:
        """Word `index` of the board's `num_words`, from the mover's side; `word_cells` says what its bits mean."""
        return np.uint64(0)

    def filled(self, state: State) -> int:
        """How far the game has come, as the number of men on the board: evaluations have their phases by it."""
        return 0

    def count_actions(self, state: State, out: Any) -> int:
        """The number of legal actions; games override it where counting is cheaper than listing."""
        return self.actions(state, out)

    def is_loud(self, state: State, action: Any) -> bool:
        """Whether quiescence search must look at this action (a capture, a promotion)."""
        return False

    # Hints for searches; all have defaults that are right for any game.

    def move_value(self, state: State, action: Any) -> int:
        """For move ordering: 0 for a quiet action, otherwise the more, the better it looks (most valuable victim,
        least valuable attacker)."""
        return 1 if self.is_loud(state, action) else 0

    def loses_material(self, state: State, action: Any) -> bool:
        """Whether a loud action loses material after all that can be taken back on its square: quiescence search may
        leave it out, and others try it late."""
        return False

    def in_check(self, state: State) -> bool:
        """Whether standing still is no option for the mover: quiescence search then looks at every action."""
        return False

    def can_pass(self, state: State) -> bool:
        """Whether a null move is possible and, the game's experts say, worse than some real move."""
        return False

    def pass_turn(self, state: State) -> None:
        """The null move of search: the turn passes. Only where `can_pass` is true."""

    def playout_action(self, state: State, out: Any, rng: Any) -> Any:
        """A random action as the game's own playout policy chooses it (Go: not into its own eyes)."""
        return self.random_action(state, out, rng)

    def transform(self, state: State, symmetry: Any) -> None:
        """Replaces the state by its image under that symmetry."""

    def random_action(self, state: State, out: Any, rng: Any) -> Any:
        """A legal action, each equally likely; games override it where that can be done faster."""
        return out[below(rng, self.actions(state, out))]

    def random_outcome(self, state: State, out: Any, probabilities: Any, rng: Any) -> Any:
        """A chance outcome by its probability."""
        count = self.outcomes(state, out, probabilities)
        rest = uniform(rng)
        for i in range(count - 1):
            rest -= probabilities[i]
            if rest < 0:
                return out[i]
        return out[count - 1]

    # --- Python: for people --------------------------------------------------------------------------

    @python_only
    def symmetries(self) -> list[Symmetry]:
        """All `num_symmetries` symmetries of the rules, the identity first."""
        cells = int(np.prod(self.observation_shape[-2:])) if len(self.observation_shape) >= 2 else 0
        return [Symmetry(np.arange(cells), np.arange(self.num_actions), np.arange(self.num_outcomes))]

    @python_only
    def feature_names(self) -> tuple[str, ...]:
        """A name for each of the features."""
        return tuple(f"feature {i}" for i in range(self.num_features))

    @python_only
    def word_cells(self) -> tuple[np.ndarray, np.ndarray]:
        """Two arrays of shape (num_words, 64): the cell that a bit speaks of (numbered as in `Symmetry.cells`, -1 for
        none), and what the bit, if set, adds to that cell's value. Values run from 0 to `cell_values` - 1."""
        return np.zeros((0, 64), np.int64), np.zeros((0, 64), np.int64)

    @python_only
    def show(self, state: State) -> str:
        """The position as text, several lines, with ANSI colours where they help."""
        return str(state)

    @python_only
    def cells(self, state: State) -> np.ndarray | None:
        """The board as small integers for `render_mode="rgb_array"` (0 empty, p + 1 a piece of player p)."""
        return None

    @python_only
    def glyphs(self, state: State) -> list[list[str]] | None:
        """A letter for each of the `cells`, "" where there is none, for games whose pieces differ in kind (chess: K,
        Q, R, B, N, P of either colour); None where a disc says it all."""
        return None

    @python_only
    def action_name(self, state: State, action: int) -> str:
        """The move as its players write it; on a chance node the outcome."""
        return str(int(action))

    @python_only
    def parse_action(self, state: State, text: str) -> int:
        """The legal action that the text names; raises `InputError` otherwise."""
        legal = {self.action_name(state, action).lower(): action for action in legal_actions(self, state)}
        try:
            return legal[text.strip().lower()]
        except KeyError:
            names = ", ".join(list(legal)[:40]) + (", …" if len(legal) > 40 else "")
            raise InputError(f"move {text!r} is not legal here; legal moves: {names}") from None

    @python_only
    def parse_position(self, text: str) -> State:
        """The state that the text describes in the game's notation; raises `InputError` otherwise.

        By default moves from the start, separated by spaces; on a chance node the outcome.
        """
        states = self.new()
        for number, word in enumerate(text.split(), 1):
            if self.player(states[0]) == TERMINAL:
                raise InputError(f"position {text!r}: the game is over before move {number}, {word!r}")
            try:
                action = self.parse_action(states[0], word)
            except InputError as error:
                raise InputError(f"position {text!r}, move {number}: {error}") from None
            self.play(states[0], action)
        return states[0]

    @python_only
    def position_text(self, state: State) -> str | None:
        """The inverse of `parse_position`, or None where a state does not determine it."""
        return None

    @python_only
    def for_perft(self) -> "Game":
        """The game as published perft tables count it (chess: without the draw rules)."""
        return self

    @python_only
    def new(self, count: int = 1) -> Any:
        """An array of `count` states, all at the start."""
        states = np.zeros(count, self.state).view(np.recarray)
        if count:
            with np.errstate(over="ignore"):
                self.start(states[0])
            states[1:] = states[0]
        return states


@python_only
def legal_actions(game: Game, state: State) -> list[int]:
    """The legal actions of a player's node or the outcomes of a chance node, as a list."""
    out = np.empty(max(game.max_legal, game.num_outcomes), np.int64)
    with np.errstate(over="ignore"):
        if game.player(state) == CHANCE:
            count = game.outcomes(state, out, np.empty(len(out)))
        else:
            count = game.actions(state, out)
    return [int(action) for action in out[:count]]


def state_bytes(state: State) -> bytes:
    """The fields of a state or of states as bytes: equal exactly where the states are.

    Not `tobytes()`: NumPy does not copy the bytes between the fields of an aligned record, so those may be anything.
    """
    packed = _packed(state.dtype)
    return state.tobytes() if packed.itemsize == state.dtype.itemsize else np.asarray(state).astype(packed).tobytes()


@functools.lru_cache(maxsize=256)
def _packed(dtype: np.dtype) -> np.dtype:
    """The same fields without gaps."""
    if dtype.names is None:
        return np.dtype((_packed(dtype.base), dtype.shape)) if dtype.shape else dtype
    return np.dtype([(name, _packed(dtype[name])) for name in dtype.names])


@njit
def advance(game, state, action):
    """`game.play`, compiled."""
    game.play(state, action)


def board_symmetries(rows: int, columns: int) -> list[np.ndarray]:
    """The permutations of a board's cells: eight on a square, four on another rectangle, identity first."""
    board = np.arange(rows * columns).reshape(rows, columns)
    images = [board, board[::-1], board[:, ::-1], board[::-1, ::-1]]
    if rows == columns:
        images += [image.T for image in images]
    # An image lists the sources in target order; the permutation wanted says where each source goes.
    return [np.argsort(image.reshape(-1)) for image in images]
