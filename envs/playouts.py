"""Random play, compiled: the quickest use of the rules, and the measure of their speed."""

from typing import Any

import numpy as np

from envs.compiled import njit
from envs.game import CHANCE, TERMINAL, Game
from envs.rng import generator


@njit
def playout(game, state, out, probabilities, rng):
    """Plays uniformly random moves until the game is over; returns the number of plies."""
    plies = 0
    while True:
        player = game.player(state)
        if player == TERMINAL:
            return plies
        if player == CHANCE:
            game.play(state, game.random_outcome(state, out, probabilities, rng))
        else:
            game.play(state, game.random_action(state, out, rng))
        plies += 1


@njit
def random_games(game, states, count, out, probabilities, rng):
    """Plays `count` random games in states[0]; returns the number of plies."""
    plies = 0
    for _ in range(count):
        game.start(states[0])
        plies += playout(game, states[0], out, probabilities, rng)
    return plies


def buffers(game: Game) -> tuple[np.ndarray, np.ndarray]:
    """Room for one node's actions or outcomes, and for the outcomes' probabilities."""
    return np.empty(max(game.max_legal, game.num_outcomes, 1), np.int64), np.empty(max(game.num_outcomes, 1))


def play_random_games(game: Game, count: int, seed: int = 0) -> int:
    """Plays `count` random games and returns the number of plies."""
    states: Any = game.new()
    return int(random_games(game, states, count, *buffers(game), generator(seed)))
