"""What a search with a network found at its root: the value, the improved policy, the move to play."""

import math

import numpy as np

from envs.compiled import njit
from envs.rng import uniform
from selfplay.search.gumbel import completed_value, improved_scale, improved_score
from selfplay.search.network_tree import is_known, is_lost


@njit
def root_value(game, options, node, edges, policy):
    """What the search thinks of the root, for its mover; `policy` is the target policy.

    Gumbel: the values under that policy, since sequential halving gives visits to bad moves as well. PUCT: their mean.
    """
    if node.proof == 1:
        return np.float64(node.value)
    if options.gumbel == 1:
        expected = 0.0
        for k in range(node.count):
            edge = edges[node.first + k]
            expected += policy[k] * np.float64(edge.value if is_known(edge) else node.value)
        return expected
    total, visits = np.float64(node.value), 1
    for k in range(node.first, node.first + node.count):
        edge = edges[k]
        total += edge.visits * np.float64(edge.value)
        visits += edge.visits
    return total / visits


@njit
def target_policy(game, options, tree, node, edges, policy):
    """The policy that the search found better than the network's, over the root's edges.

    Gumbel: softmax of logits and completed values. PUCT: the visits, less those that were forced (Wu 2019).
    A proven root has all its weight on the best proven moves.
    """
    if node.proof == 1:
        count = 0
        for k in range(node.count):
            edge = edges[node.first + k]
            best = edge.proof == 1 and edge.value >= node.value - 1e-6
            policy[k] = 1.0 if best else 0.0
            count += 1 if best else 0
        for k in range(node.count):
            policy[k] /= count
        return
    if options.gumbel == 1:
        mixed, most = completed_value(game, tree, node, edges)
        factor = improved_scale(options, most)
        highest = -np.inf
        for k in range(node.count):
            edge = edges[node.first + k]
            policy[k] = improved_score(game, tree, edge, mixed, factor)
            highest = max(highest, np.float64(policy[k]))
        total = 0.0
        for k in range(node.count):
            policy[k] = math.exp(policy[k] - highest)
            total += policy[k]
        for k in range(node.count):
            policy[k] /= total
        return
    most, best_index, visits = -1, 0, 0
    for k in range(node.count):
        edge = edges[node.first + k]
        visits += edge.visits
        if edge.visits > most:
            most, best_index = edge.visits, k
    rate = options.c_init + math.log((1.0 + visits + options.c_base) / options.c_base)
    factor = rate * math.sqrt(max(1.0, np.float64(visits)))
    best = edges[node.first + best_index]
    best_score = best.value + factor * best.prior / (1 + best.visits)
    total = 0.0
    for k in range(node.count):
        edge = edges[node.first + k]
        kept = np.float64(edge.visits)
        if k != best_index and tree.noise == 1 and edge.visits > 0 and game.num_players > 1:
            forced = math.sqrt(options.forced * edge.prior * visits)
            gap = best_score - edge.value
            needed = factor * edge.prior / gap - 1.0 if gap > 1e-9 else kept
            kept = max(kept - forced, min(kept, max(0.0, needed)))
            if kept <= 1.0 and options.forced > 0.0:
                kept = 0.0
        if is_lost(game, edge) and k != best_index:
            kept = 0.0
        policy[k] = kept
        total += kept
    for k in range(node.count):
        policy[k] = policy[k] / total if total > 0.0 else edges[node.first + k].prior


@njit
def chosen_edge(game, options, tree, node, edges, policy, temperature):
    """The root edge to play. Proven: the best. Gumbel: the survivor of the halving, PUCT: the most visited; with
    a temperature, one drawn from the target policy to the power of 1 / temperature."""
    if node.proof == 1 or temperature <= 0.0:
        best, best_score = 0, -np.inf
        mixed, most = completed_value(game, tree, node, edges)
        factor = improved_scale(options, most)
        most_tries = 0
        for k in range(node.count):
            most_tries = max(most_tries, edges[node.first + k].visits - tree.before[k])
        for k in range(node.count):
            edge = edges[node.first + k]
            if node.proof == 1:
                score = policy[k]
            elif options.gumbel == 1:
                score = tree.gumbel[k] + improved_score(game, tree, edge, mixed, factor)
                if edge.visits - tree.before[k] < most_tries:
                    score -= 1e9
            else:
                score = edge.visits + 1e-3 * edge.prior + 1e-4 * edge.value
            if node.proof == 0 and is_lost(game, edge):
                score -= 1e12
            if score > best_score:
                best, best_score = k, score
        return np.int64(best)
    total = 0.0
    for k in range(node.count):
        total += math.pow(np.float64(policy[k]), 1.0 / temperature)
    rest = uniform(tree.rng) * total
    last = 0
    for k in range(node.count):
        weight = math.pow(np.float64(policy[k]), 1.0 / temperature)
        if weight > 0.0:
            last = k
            rest -= weight
            if rest < 0.0:
                return np.int64(k)
    return np.int64(last)
