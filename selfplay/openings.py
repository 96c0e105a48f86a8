"""Random openings for matches: seeded, distinct, not yet decided.

Deterministic agents would play the same game again and again; so each pair of games starts from an opening of random
moves, which is then played from both sides. In games of chance the dice make the difference, and no move is needed.
"""

from typing import Any

import numpy as np

from envs.compiled import njit
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, Game, State, legal_actions
from envs.playouts import buffers
from envs.rng import generator

ENOUGH = 1000  # openings that a game should have at the default length
_MISSES = 2000  # after so many openings in a row that are known or decided there is hardly another one


def default_plies(game: Game) -> int:
    """An even number of plies that gives about a thousand openings (Connect Four and chess 4, Othello 6, Go 2), at
    most a quarter of the longest game; none in games of chance, where the dice differ from pair to pair."""
    if game.has_chance or game.num_players == 1:
        return 0
    start = game.new()[0]
    branches = len(legal_actions(game, start)) if int(game.player(start)) >= 0 else 0
    longest = game.max_length // 4
    plies = 2
    while plies < longest and max(branches, 2) ** plies < ENOUGH:
        plies += 2
    return min(plies, longest)


@njit
def random_opening(game, states, plies, out, probabilities, rng, actions):
    """Plays random moves in states[0], on with states[1] as room; returns whether the result is undecided: nobody can
    end the game with the next move, but for worse."""
    game.start(states[0])
    for ply in range(plies):
        player = game.player(states[0])
        if player == TERMINAL:
            return False
        if player == CHANCE:
            action = game.random_outcome(states[0], out, probabilities, rng)
        else:
            action = game.random_action(states[0], out, rng)
        actions[ply] = action
        game.play(states[0], action)
    player = game.player(states[0])
    if player == TERMINAL:
        return False
    if player != CHANCE:
        count = game.actions(states[0], out)
        for i in range(count):
            states[1] = states[0]
            game.play(states[1], out[i])
            if game.player(states[1]) == TERMINAL and game.utility(states[1], player) > 0:
                return False
    return True


@njit
def position_key(game, state):
    return game.key(state)


def openings(game: Game, count: int, plies: int | None = None, seed: int = 0) -> list[list[int]]:
    """Up to `count` openings, all with different positions; fewer only where the game has no more of that length.

    A longer list of the same seed begins with the shorter one.
    """
    length = default_plies(game) if plies is None else plies
    if length < 0:
        raise InputError(f"--openings {length} must be 0 (from the start) or more plies")
    if length == 0:
        return [[]]
    if length >= game.max_length:
        raise InputError(f"--openings {length} leaves nothing to play: a game has at most {game.max_length} plies")
    rng = generator(seed, stream=2)
    states: Any = game.new(2)
    actions = np.zeros(length, np.int64)
    out, probabilities = buffers(game)
    found: dict[int, list[int]] = {}
    misses = 0
    while len(found) < count and misses < _MISSES:
        misses += 1
        with np.errstate(over="ignore"):
            if not random_opening(game, states, length, out, probabilities, rng, actions):
                continue
            key = int(position_key(game, states[0]))
        if key not in found:
            found[key] = actions.tolist()
            misses = 0
    if not found:
        raise InputError(f"--openings {length}: after so many random moves the game is decided; take fewer")
    return list(found.values())


def position_after(game: Game, actions: list[int]) -> State:
    """The state after these actions from the start, each checked."""
    state = game.new()[0]
    for number, action in enumerate(actions, 1):
        if int(game.player(state)) == TERMINAL or action not in legal_actions(game, state):
            raise InputError(f"action {action}, number {number} of the opening, is not legal")
        with np.errstate(over="ignore"):
            game.play(state, action)
    return state
