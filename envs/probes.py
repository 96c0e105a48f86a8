"""Compiled functions of one call each: how Python code asks a game about one state at native speed."""

import numpy as np

from envs.compiled import njit
from envs.game import CHANCE, TERMINAL


@njit
def look(game, state, out, probabilities, planes, numbers, utilities):
    """Everything the contract can say about a state: player, count of actions, count of features, key."""
    player = game.player(state)
    count, features = 0, 0
    if player == TERMINAL:
        for p in range(game.num_players):
            utilities[p] = game.utility(state, p)
    elif player == CHANCE:
        count = game.outcomes(state, out, probabilities)
        planes[:] = np.float32(0.0)
        if game.chance_view(state) >= 0:
            game.observe(state, planes)
    else:
        count = game.actions(state, out)
        planes[:] = np.float32(0.0)
        game.observe(state, planes)
        features = game.features(state, numbers)
    return player, count, features, game.key(state)


@njit
def choose(game, state, out, rng):
    return game.random_action(state, out, rng)


@njit
def hints(game, state, action, out, rng):
    """What searches ask besides: count of actions, playout action, loudness, value for ordering, check."""
    count, playout = game.count_actions(state, out), game.playout_action(state, out, rng)
    return count, playout, game.is_loud(state, action), game.move_value(state, action), game.in_check(state)


@njit
def step(game, state, action):
    game.play(state, action)


@njit
def begin(game, state):
    game.start(state)


@njit
def image(game, state, symmetry):
    game.transform(state, symmetry)
