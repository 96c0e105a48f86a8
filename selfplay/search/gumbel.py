"""Choosing moves as Gumbel AlphaZero does: Danihelka et al. 2022, "Policy improvement by planning with Gumbel".

At the root, sequential halving among the moves that the Gumbel trick drew; below it, the move whose share of the visits
lags most behind the improved policy.
"""

import math
from typing import Any

import numpy as np

from envs.compiled import njit
from selfplay.search.network_tree import is_known, is_lost, scaled


def halving_schedule(moves: int, simulations: int) -> list[int]:
    """Sequential halving as a list: how many visits the move tried at each simulation has by then.

    All moves in the race are tried once before any is tried again, then half of them go.

    >>> halving_schedule(4, 8)
    [0, 0, 0, 0, 1, 1, 2, 2]
    """
    if moves <= 1:
        return list(range(simulations))
    rounds = max(1, math.ceil(math.log2(moves)))
    order: list[int] = []
    racing, visits = moves, 0
    while len(order) < simulations:
        for _ in range(max(1, simulations // (rounds * racing))):
            order += [visits] * racing
            visits += 1
        racing = max(2, racing // 2)
    return order[:simulations]


def fill_schedule(options: Any, simulations: int) -> None:
    """Writes the schedules of searches of that many simulations; shorter searches take `halving_schedule` too."""
    for moves in range(1, 17):
        options.schedule[moves, :simulations] = halving_schedule(moves, simulations)


@njit
def completed_value(game, tree, node, edges):
    """v_mix of Danihelka et al. 2022, appendix D: the value taken for moves without visits; and the most visits."""
    visits, mass, weighted, most = 0, 0.0, 0.0, 0
    for k in range(node.first, node.first + node.count):
        edge = edges[k]
        if edge.visits > 0:
            visits += edge.visits
            mass += edge.prior
            weighted += edge.prior * np.float64(edge.value)
            most = max(most, edge.visits)
    if visits == 0 or mass <= 0.0:
        return np.float64(node.value), np.int64(0)
    return (np.float64(node.value) + visits * weighted / mass) / (1 + visits), np.int64(most)


@njit
def improved_scale(options, most):
    """sigma's factor: Danihelka et al. 2022, eq. 8."""
    return (options.c_visit + most) * options.c_scale


@njit
def improved_score(game, tree, edge, mixed, factor):
    """Logit plus transformed completed value, whose softmax is the improved policy; moves that lose have no share."""
    if is_lost(game, edge):
        return -1e3
    value = np.float64(edge.value) if is_known(edge) else mixed
    return edge.logit + factor * scaled(game, tree, value)


@njit
def improved_edge(game, options, tree, node, edges):
    """Below the root: the move whose share of visits lags most behind the improved policy (eq. 14)."""
    mixed, most = completed_value(game, tree, node, edges)
    factor = improved_scale(options, most)
    highest = -np.inf
    visits = 0
    for k in range(node.first, node.first + node.count):
        edge = edges[k]
        highest = max(highest, improved_score(game, tree, edge, mixed, factor))
        visits += edge.visits + edge.flying
    total = 0.0
    for k in range(node.first, node.first + node.count):
        total += math.exp(improved_score(game, tree, edges[k], mixed, factor) - highest)
    best, best_score = node.first, -np.inf
    for k in range(node.first, node.first + node.count):
        edge = edges[k]
        share = math.exp(improved_score(game, tree, edge, mixed, factor) - highest) / total
        score = share - (edge.visits + edge.flying) / (1.0 + visits)
        if score > best_score and not is_lost(game, edge):
            best, best_score = k, score
    return np.int64(best)


@njit
def halving_edge(game, options, tree, node, edges):
    """At the root: of the moves with as many visits as the schedule says, the best by Gumbel, logit and value."""
    done = min(tree.simulations + tree.flying, tree.limit - 1)
    wanted = options.schedule[tree.considered, min(done, options.schedule.shape[1] - 1)]
    mixed, most = completed_value(game, tree, node, edges)
    factor = improved_scale(options, most)
    best, best_score = np.int64(-1), -np.inf
    least, fewest = np.int64(node.first), np.int64(1 << 30)
    for k in range(node.count):
        edge = edges[node.first + k]
        if is_lost(game, edge):
            continue
        tries = np.int64(edge.visits + edge.flying - tree.before[k])
        score = tree.gumbel[k] + improved_score(game, tree, edge, mixed, factor)
        if tries == wanted and score > best_score:
            best, best_score = np.int64(node.first + k), score
        if tries < fewest:
            least, fewest = np.int64(node.first + k), tries
    return best if best >= 0 else least  # a schedule for other numbers: the least tried
