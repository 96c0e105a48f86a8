"""The evaluations in configs/: they name features that exist, stay below a win, and play better than simpler ones."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from envs.compiled import njit
from envs.game import TERMINAL
from envs.registry import make
from envs.rng import below, generator

CONFIGS = Path(__file__).parent.parent / "configs"
GAMES = ["othello", "checkers", "connect_four", "tic_tac_toe", "mnk", "gomoku"]
# What the evaluation has to beat, and by which share of the points.
RIVALS = {
    "othello": ({"discs, early": 1.0, "discs, late": 1.0}, 0.9),
    "checkers": ({"men": 100.0, "kings": 140.0}, 0.7),
    "connect_four": ({}, 0.8),
    "tic_tac_toe": ({}, 0.55),
    "gomoku": ({}, 0.9),
}


def evaluation(name):
    return tomllib.loads((CONFIGS / f"{name}.toml").read_text(encoding="utf-8"))["evaluation"]


def vector(game, weights, scale):
    return scale * np.array([weights.get(name, 0.0) for name in game.feature_names()])


@njit
def judged(game, state, viewer, weights, features, largest):
    """Utility or evaluation from the viewer's side; notes the largest evaluation."""
    player = game.player(state)
    if player == TERMINAL:
        return game.utility(state, viewer)
    value = 0.0
    for i in range(game.features(state, features)):
        value += weights[i] * features[i]
    largest[0] = max(largest[0], abs(value))
    return value if player == viewer else -value


@njit
def choice(game, states, moves, weights, features, largest, rng):
    """The best of states[0]'s actions two plies deep, the first found of equals, in random order."""
    viewer = game.player(states[0])
    count = game.actions(states[0], moves[0])
    best, chosen = -1e9, moves[0, 0]
    first = below(rng, count)
    for i in range(count):
        action = moves[0, (first + i) % count]
        states[1] = states[0]
        game.play(states[1], action)
        player = game.player(states[1])
        if player == TERMINAL:
            value = game.utility(states[1], viewer)
        else:
            sign = 1.0 if player == viewer else -1.0  # the same player may move again
            value = -1e9
            for k in range(game.actions(states[1], moves[1])):
                states[2] = states[1]
                game.play(states[2], moves[1, k])
                value = max(value, sign * judged(game, states[2], viewer, weights, features, largest))
            value *= sign
        if value > best:
            best, chosen = value, action
    return chosen


@njit
def match(game, states, moves, ours, theirs, pairs, plies, features, largest, rng):
    """Two games from each random opening, sides changed; returns our points, one for a win and half for a draw."""
    points = 0.0
    seeds = np.empty(2, np.uint64)
    for _ in range(pairs):
        seeds[0], seeds[1] = rng[0], rng[1]
        for side in range(2):
            rng[0], rng[1] = seeds[0], seeds[1]  # the same opening for both
            game.start(states[0])
            ply = 0
            while game.player(states[0]) != TERMINAL:
                if ply < plies:
                    action = game.random_action(states[0], moves[0], rng)
                elif game.player(states[0]) == side:
                    action = choice(game, states, moves, ours, features, largest, rng)
                else:
                    action = choice(game, states, moves, theirs, features, np.zeros(1), rng)
                game.play(states[0], action)
                ply += 1
            points += 0.5 + 0.5 * np.sign(game.utility(states[0], side))
    return points


@pytest.mark.parametrize("name", GAMES)
def test_the_weights_name_features(name):
    found = evaluation(name)
    assert set(found) == {"scale", "weights"} and found["scale"] > 0
    assert set(found["weights"]) <= set(make(name).feature_names())
    assert all(isinstance(weight, float) and np.isfinite(weight) for weight in found["weights"].values())


@pytest.mark.parametrize("name", ["othello", "checkers", "connect_four"])
def test_an_evaluation_beats_a_simpler_one(name):
    check_match(name, pairs=100)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tic_tac_toe", "gomoku", "othello", "checkers", "connect_four"])
def test_an_evaluation_beats_a_simpler_one_in_many_games(name):
    check_match(name, pairs=4 if name == "gomoku" else 1000)


def check_match(name, pairs):
    game, found, (rival, share) = make(name), evaluation(name), RIVALS[name]
    ours, theirs = vector(game, **found), vector(game, rival, found["scale"])
    states, moves, largest = game.new(3), np.empty((2, game.max_legal), np.int64), np.zeros(1)
    plies = 1 if name == "tic_tac_toe" else 6
    points = match(
        game, states, moves, ours, theirs, pairs, plies, np.zeros(game.num_features), largest, generator(1)
    )  # fmt: skip
    assert points / (2 * pairs) > share
    assert 0.05 < largest[0] < 0.95 * game.max_utility
