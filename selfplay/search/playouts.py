"""Playouts: how a simulation goes on beyond the tree, and what a position's result is for each player.

A policy is a compiled object, like an evaluation, so that only the one in use is compiled.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.compiled import Compiled, njit
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, Game, State
from envs.rng import below, uniform
from models.evaluation import Nothing
from selfplay.search.workspace import rounded


def playout_fields(game: Game) -> list[tuple[Any, ...]]:
    """What playouts need in the workspace of a search."""
    return [
        ("values", "f8", (rounded(game.num_players),)),  # each player's result of the present playout
        ("rng", "u8", (2,)),
        # Room for actions or outcomes; 64 bits, because a game's `random_action` may keep boards in it.
        ("choices", "i8", (rounded(max(game.max_legal, game.num_outcomes)),)),
        ("looks", "i8", (rounded(max(game.max_legal, game.num_outcomes)),)),  # the same for a look ahead
        ("cutoff", "i8"),  # plies before the evaluation; 0: to the end
    ]


class Policy(Compiled):
    """Base class; `choose` gives a legal action at a player's node."""

    def choose(self, game: Any, evaluation: Any, work: Any, state: State, player: Any) -> Any:
        raise NotImplementedError


@dataclass(frozen=True)
class Uniform(Policy):
    """Every legal move equally likely."""

    def choose(self, game: Any, evaluation: Any, work: Any, state: State, player: Any) -> Any:
        return game.random_action(state, work.choices, work.rng)


@dataclass(frozen=True)
class Own(Policy):
    """The game's own policy (Go: not into its own eyes); uniform where the game has none."""

    def choose(self, game: Any, evaluation: Any, work: Any, state: State, player: Any) -> Any:
        return game.playout_action(state, work.choices, work.rng)


@dataclass(frozen=True)
class Greedy(Policy):
    """The move after which the evaluation likes the position best, one random move in 1 / epsilon; ties at random."""

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        if not 0.0 <= self.epsilon <= 1.0:
            raise InputError(f"epsilon={self.epsilon} must be from 0 to 1")

    def tables(self) -> dict[str, np.ndarray]:
        return {"epsilon": np.array(self.epsilon)}  # a run-time number: all epsilons share their compiled code

    def choose(self, game: Any, evaluation: Any, work: Any, state: State, player: Any) -> Any:
        count = game.actions(state, work.choices)
        if self.epsilon > 0.0 and uniform(work.rng) < self.epsilon:
            return np.int64(work.choices[below(work.rng, count)])
        best, ties, chosen = -np.inf, 0, np.int64(work.choices[0])
        for i in range(count):
            action = np.int64(work.choices[i])
            work.states[2] = state
            game.play(work.states[2], action)
            value = look(game, evaluation, work, work.states[2], player)
            if value > best:
                best, ties, chosen = value, 1, action
            elif value == best:  # each of the equal ones ends up chosen equally often
                ties += 1
                if below(work.rng, ties) == 0:
                    chosen = action
        return chosen


@njit
def look(game, evaluation, work, state, player):
    """The evaluation of a position for that player, after the dice if chance is to move; the utility at an end."""
    mover = game.player(state)
    while mover == CHANCE:
        game.play(state, game.random_outcome(state, work.looks, work.probabilities[2], work.rng))
        mover = game.player(state)
    if mover == TERMINAL:
        return np.float64(game.utility(state, player))
    return value_for(game, evaluation.evaluate(game, state, work.features), mover, player)


@njit
def value_for(game, value, mover, player):
    """What the mover's value says about a player: the others share the opposite where the game is zero-sum."""
    if mover == player:
        return np.float64(value)
    if game.zero_sum:
        return -value / max(game.num_players - 1, 1)
    return 0.5 * (game.min_utility + game.max_utility)


@njit
def playout(game, evaluation, policy, work, state):
    """Plays on to the end, or to the cut-off, and writes each player's result to work.values.

    The cut-off lets chance move first: an evaluation looks at positions where a player is to move. Returns whether
    the playout was finished; it is not if the search was stopped meanwhile.
    """
    left = work.cutoff if work.cutoff > 0 else np.int64(1) << np.int64(62)
    while True:
        player = game.player(state)
        if player == TERMINAL:
            for p in range(game.num_players):
                work.values[p] = game.utility(state, p)
            return True
        if player == CHANCE:
            game.play(state, game.random_outcome(state, work.choices, work.probabilities[1], work.rng))
        elif left == 0:
            value = evaluation.evaluate(game, state, work.features)
            for p in range(game.num_players):
                work.values[p] = value_for(game, value, player, p)
            return True
        else:
            if work.stop != 0:
                return False
            game.play(state, policy.choose(game, evaluation, work, state, player))
        left = max(left - 1, 0)


NOTHING, UNIFORM = Nothing(), Uniform()
POLICIES = ("uniform", "own", "greedy")


def make_policy(name: str, epsilon: float = 0.1) -> Policy:
    """The playout policy of that name."""
    if name == "greedy":
        return Greedy(epsilon)
    if name not in POLICIES:
        raise InputError(f"unknown playout policy {name!r}; policies: {', '.join(POLICIES)}")
    return UNIFORM if name == "uniform" else Own()
