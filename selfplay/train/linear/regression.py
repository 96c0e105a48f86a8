"""Fits weights to positions with known targets: the chance of winning, by logistic regression.

EVAL is the hyperbolic tangent of the weighted sum, that is 2 P(win) - 1 with twice the sum as the log of the odds, and
the loss is the cross entropy of that chance with the target's. Its gradient is (target - estimate) times feature.

Patterns are fitted by passes over the positions in random order, with step sizes per weight (`steps.py`); named
features alone by Newton's method, which gives the exact optimum and, from the curvature, error bars.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.compiled import njit
from envs.game import Game
from models.evaluation import INSIDE
from selfplay.train.linear.steps import move_weight
from selfplay.train.linear.td import read_places, sum_places


@njit
def fit_pass(
    game, evaluation, canonical, weights, first, second, features, states, target, order, rate, decay, kind, scratch
):
    """One pass over the positions in the given order; returns the sum of the losses before each step.

    `features` holds weights, first and second of the named features: (3, phases, number). `decay` pulls each touched
    weight towards zero by that share of the rate.
    """
    loss = 0.0
    places = np.zeros(max(evaluation.count, 1), np.uint32)
    for i in order:
        state = states[i]
        phase = np.int64(evaluation.phase_of[game.filled(state)])
        total = 0.0
        if evaluation.count > 0:
            read_places(game, evaluation, canonical, state, places)
            total = sum_places(evaluation, weights, phase, places)
        if evaluation.num_weighted > 0:
            game.features(state, scratch)
            for k in range(evaluation.num_weighted):
                total += np.float64(features[0, phase, k]) * scratch[k]
        value = INSIDE * np.tanh(total)
        error = target[i] - value
        loss += cross_entropy(value, np.float64(target[i]))
        if rate > 0.0:
            each = rate / max(evaluation.count, 1)
            for k in range(evaluation.count):
                at = np.int64(places[k])
                push = error - decay * np.float64(weights[phase, at])
                move_weight(weights[phase], first[phase], second[phase], at, push, each, kind)
            for k in range(evaluation.num_weighted):
                push = error * scratch[k]
                if push != 0.0:
                    move_weight(features[0, phase], features[1, phase], features[2, phase], k, push, each, kind)
    return loss


@njit
def cross_entropy(value, target):
    """Of the chances of winning that two values in [-1, 1] stand for."""
    chance, wanted = 0.5 + 0.5 * value, 0.5 + 0.5 * target
    return -wanted * np.log(chance) - (1.0 - wanted) * np.log(1.0 - chance)


@njit
def write_features(game, states, out):
    """The named features of all positions."""
    scratch = np.zeros(max(game.num_features, 1))
    for i in range(len(states)):
        game.features(states[i], scratch)
        for k in range(game.num_features):
            out[i, k] = scratch[k]


@dataclass
class Fit:
    """Weights of named features with their standard errors, in half log-odds per unit."""

    weights: np.ndarray
    errors: np.ndarray
    loss: float
    held_out: float


def newton(
    inputs: np.ndarray, target: np.ndarray, owner: np.ndarray, ridge: float, start: np.ndarray | None = None
) -> Fit:
    """Logistic regression by Newton's method; a tenth of the games is held out.

    Positions of one game share its result, so the errors are from the sums of the gradients by game (the sandwich
    estimator of Huber and White), not from the curvature alone.
    """
    held = owner % 10 == 9
    x, t, who = inputs[~held].astype(np.float64), target[~held].astype(np.float64), owner[~held]
    size = x.shape[1]
    weights = np.zeros(size) if start is None else start.astype(np.float64).copy()
    curvature = np.eye(size)
    for _ in range(30):
        value = np.tanh(x @ weights)
        gradient = x.T @ (t - value) - ridge * weights
        slope = 1.0 - value * value
        curvature = (x * slope[:, None]).T @ x + ridge * np.eye(size)
        step = np.linalg.solve(curvature, gradient)
        longest = np.abs(step).max()
        weights += step * min(1.0, 1.0 / max(longest, 1e-9))
        if longest < 1e-7:
            break
    value = np.tanh(x @ weights)
    games, inverse = np.unique(who, return_inverse=True)
    scores = np.zeros((len(games), size))
    np.add.at(scores, inverse, x * (t - value)[:, None])
    bread = np.linalg.inv(curvature)
    errors = np.sqrt(np.maximum(np.diag(bread @ (scores.T @ scores) @ bread), 0.0))
    return Fit(weights, errors, mean_loss(x @ weights, t), mean_loss(inputs[held] @ weights, target[held]))


def mean_loss(total: np.ndarray, target: np.ndarray) -> float:
    """The mean cross entropy; 0 for no positions."""
    if not len(total):
        return 0.0
    chance = np.clip(0.5 + 0.5 * np.tanh(total), 1e-6, 1 - 1e-6)
    wanted = 0.5 + 0.5 * target
    return float(-(wanted * np.log(chance) + (1 - wanted) * np.log(1 - chance)).mean())


def inputs_of(game: Game, states: Any) -> np.ndarray:
    """The named features of positions as a matrix."""
    out = np.zeros((len(states), game.num_features), np.float32)
    write_features(game, states, out)
    return out


@njit
def sums_of(game, evaluation, canonical, weights, features, states, total, phases):
    """The weighted sums and the phases of positions."""
    places = np.zeros(max(evaluation.count, 1), np.uint32)
    scratch = np.zeros(max(game.num_features, 1))
    for i in range(len(states)):
        phase = np.int64(evaluation.phase_of[game.filled(states[i])])
        phases[i] = phase
        if evaluation.count > 0:
            read_places(game, evaluation, canonical, states[i], places)
            total[i] = sum_places(evaluation, weights, phase, places)
        if evaluation.num_weighted > 0:
            game.features(states[i], scratch)
            for k in range(evaluation.num_weighted):
                total[i] += np.float64(features[phase, k]) * scratch[k]
