"""What every solver returns: the truth about a position, and how it was found."""

from dataclasses import dataclass, field

import numpy as np

from envs.compiled import njit
from envs.errors import InputError
from envs.game import Game, State, state_bytes
from selfplay.search.result import Limits

NO_LIMITS = Limits()


@dataclass(frozen=True)
class MoveValue:
    """A move's value for the player who makes it, and the plies from before the move to the end of the game."""

    value: float
    distance: int | None
    score: int | None = None  # as in Solution


@dataclass(frozen=True)
class Solution:
    """The value for the mover, the plies to the end under best play, and all best moves.

    Best play means: the best value; among winning moves the quickest win, among losing ones the longest defence.
    Where the value is neither the game's highest nor its lowest, all moves that keep it are best, and the distance is
    that of one such line of play (None where chance decides it). `moves` holds what is known exactly of the moves.
    """

    value: float
    distance: int | None
    best: tuple[int, ...]
    nodes: int
    seconds: float
    method: str
    moves: dict[int, MoveValue] = field(default_factory=dict)
    score: int | None = None  # Connect Four: the score of Pons' test sets; Othello: discs
    values: tuple[float, ...] = ()  # every player's value, where there are more than two


class Unsolved(InputError):
    """The position is too large for the limits."""


def refuse(tried: str, nodes: int, seconds: float) -> Unsolved:
    """The one sentence for a position that is too large."""
    return Unsolved(
        f"the position is too large to solve: {tried} gave up after {nodes:,} nodes and {seconds:.1f} s; "
        "give a later position, or raise the limits on nodes, seconds or megabytes"
    )


@njit
def mover(game, state):
    return game.player(state)


@njit
def play(game, state, action):
    game.play(state, action)


@njit
def final_utility(game, state, player):
    return game.utility(state, player)


@njit
def write_actions(game, state, out):
    return game.actions(state, out)


@njit
def image_of(game, state, symmetry):
    game.transform(state, symmetry)


def legal(game: Game, state: State) -> list[int]:
    """The legal actions, by compiled code."""
    out = np.empty(max(game.max_legal, 1), np.int32)
    return [int(a) for a in out[: write_actions(game, state, out)]]


def after(game: Game, state: State, action: int) -> State:
    """A new state: the given one after the action."""
    child = np.array([state], game.state).view(np.recarray)
    play(game, child[0], action)
    return child[0]


def warm_up(game: Game) -> None:
    """Compiles what solvers call from Python, or loads it from the cache, before a clock starts."""
    state = game.new()[0]
    actions = legal(game, state)
    child = after(game, state, actions[0])
    mover(game, child)
    final_utility(game, child, 0)
    if game.num_symmetries > 1:
        image_of(game, child, 1)


def canonical(game: Game, state: State) -> bytes:
    """The same for all images of a position under the game's symmetries, different otherwise."""
    images = []
    for symmetry in range(game.num_symmetries):
        image = np.array([state], game.state).view(np.recarray)
        if symmetry:
            image_of(game, image[0], symmetry)
        images.append(state_bytes(image[0]))
    return min(images)


class Solver:
    """Base class; a solver keeps what it learned from position to position."""

    limits: Limits = NO_LIMITS
    default_seconds: float = 60.0  # what a command allows where the caller says nothing; 0: as long as it takes

    def solve(self, state: State) -> Solution:
        """The truth about a position where a player is to move; `Unsolved` where the limits do not suffice."""
        raise NotImplementedError

    def values(self, state: State) -> dict[int, float]:
        """Every legal move's utility for the mover."""
        return {action: move.value for action, move in self.solve(state).moves.items()}

    def all_moves(self, state: State) -> dict[int, MoveValue]:
        """Every legal move's value and, where the solver knows it, its distance and score."""
        return {action: MoveValue(value, None) for action, value in self.values(state).items()}

    def reset(self) -> None:
        """Forgets everything, so that the same position costs the same nodes."""
