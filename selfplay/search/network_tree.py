"""The arrays of a tree search with a network (`puct.py`): nodes, edges, a tree's counters, leaves that wait.

Values are in the network's units and, along a path, a vector with one entry per player; an edge keeps the mean for the
player who chooses there, so players need not alternate, there may be any number of them, and chance may move in between.
"""

import math

import numpy as np

from envs.compiled import njit
from envs.game import CHANCE, Game

NO_CHILD, TERMINAL_CHILD = -1, -2
MOST_DRAWN = 32
MOST_DEPTH = 256  # plies of the longest line
SPARE = 4  # chance nodes in a row beyond it
WAITING, BACKED_UP = 1, 0
MOST_AHEAD = 8  # plies that foresight may look ahead
LOST = -0.9999  # a value at or below it is a proven loss, of two players
_NEVER = -1e3  # the logit of a move that loses

NODE = np.dtype(
    [
        ("first", "i4"),  # its edges are first .. first + count - 1
        ("count", "i4"),
        ("tried", "i4"),  # as many as count; named as `tree_reuse` wants it
        ("player", "i4"),  # who chooses, or CHANCE
        ("visits", "i4"),  # the sum of its edges' visits
        ("proof", "i4"),  # 1: its value is exact
        ("value", "f4"),  # what the network says for the mover; once proven, the exact value
        ("moved_to", "i4"),  # for compaction
    ],
    align=True,
)
EDGE = np.dtype(
    [
        ("prior", "f4"),  # the network's probability of the move, or the chance of the outcome
        ("logit", "f4"),  # its logarithm
        ("value", "f4"),  # the mean for the player who chooses, or the exact value once proven
        ("visits", "i4"),
        ("flying", "i4"),  # simulations that went through and wait for the network (virtual loss)
        ("action", "i4"),
        ("child", "i4"),  # the node beyond, or NO_CHILD or TERMINAL_CHILD
        ("proof", "i4"),
    ],
    align=True,
)


def tree_dtype(game: Game, simulations: int) -> np.dtype:
    """One tree's counters, its root position and the options of the search that runs in it."""
    width = max(game.max_legal, game.num_outcomes, 1)
    return np.dtype(
        [
            ("root", game.state),
            ("rng", "u8", (2,)),
            ("drawn", "f8", (MOST_DRAWN,)),  # by depth: the first random number of chance there, in this search
            ("num_nodes", "i8"),
            ("num_edges", "i8"),
            ("simulations", "i8"),  # done in this search
            ("limit", "i8"),
            ("flying", "i8"),  # waiting for the network
            ("low", "f8"),  # one player: the range of values seen, by which they are scaled
            ("high", "f8"),
            ("gumbel", "f4", (width,)),  # per root edge
            ("before", "i4", (width,)),  # the root edges' visits when the search began
            ("solved_move", "i8"),  # the action that an exact search of the root found, or -1
            ("solved_value", "f8"),  # and the root's value, in network units
            ("planned", "i8"),  # simulations and noise of the search that begins once the root is a node
            ("planned_noise", "i8"),
            ("noise", "i8"),  # explore at the root (Dirichlet noise, forced playouts, Gumbel noise)
            ("considered", "i8"),  # Gumbel: root moves in sequential halving
            ("choices", "i8", (width,)),
            ("probabilities", "f8", (width,)),
        ],
        align=True,
    )


def options_dtype(game: Game, simulations: int) -> np.dtype:
    return np.dtype(
        [
            ("gumbel", "i8"),  # 1: Gumbel AlphaZero, 0: PUCT
            ("c_init", "f8"),  # PUCT's exploration; AlphaZero: 1.25
            ("c_base", "f8"),  # AlphaZero: 19652
            ("fpu", "f8"),  # an unvisited move is worth that much less than its node, times sqrt of the visited priors
            ("c_visit", "f8"),  # Danihelka et al. 2022: 50
            ("c_scale", "f8"),  # Danihelka et al. 2022: 1.0
            ("forced", "f8"),  # KataGo's forced playouts; Wu 2019: 2
            ("dirichlet_alpha", "f8"),  # per game; AlphaZero: 10 / typical number of moves
            ("dirichlet_part", "f8"),  # AlphaZero: 0.25
            ("gumbel_scale", "f8"),  # 1 for self-play, 0 for play without randomness
            ("middle", "f8"),  # utilities to the network's units: (utility - middle) / half
            ("half", "f8"),
            ("to_go", "i8"),  # 1: the network values what will still be earned
            ("leaves_per_tree", "i8"),
            ("evaluations", "i8"),  # counters: rows given to the network,
            ("cached", "i8"),  # leaves that the cache knew, or that another leaf of the batch asked for,
            ("decided", "i8"),  # simulations that ended in a proven or finished position
            ("beyond_chance", "i8"),  # 0: the network's value before chance decides stands, where it has one
            ("foresight", "i8"),  # positions that may be looked at before the network is asked; 0: none
            ("looked", "i8"),  # counter: positions looked at
            ("ahead", game.state, (MOST_AHEAD + 1,)),
            ("moves", "i4", (MOST_AHEAD + 1, max(game.max_legal, 1))),
            ("schedule", "i4", (17, max(simulations, 1))),  # Gumbel: the visits that a move to be tried must have
        ],
        align=True,
    )


def leaf_dtype(game: Game) -> np.dtype:
    depth = min(game.max_length + 1, MOST_DEPTH) + 2 * SPARE
    return np.dtype(
        [
            ("state", game.state),
            ("path_node", "i4", (depth,)),
            ("path_edge", "i4", (depth,)),
            ("depth", "i8"),
            ("slot", "i8"),
            ("row", "i8"),  # of the batch
            ("key", "u8"),
            ("player", "i8"),
            ("values", "f8", (max(game.num_players, 1),)),
            ("verdict", "f4", (max(game.max_legal, 1),)),  # by legal move: its value where that is settled, else NaN
            ("outcome", "f8"),  # the position's own value once it is settled
        ],
        align=True,
    )


@njit
def has_value_proofs(game):
    """Whether the value of the player to move says it for all: then proofs are exact values."""
    return game.num_players == 1 or (game.num_players == 2 and game.zero_sum)


@njit
def scaled(game, tree, value):
    """A value of the network's units in [0, 1]."""
    if game.num_players == 1:
        if tree.high - tree.low < 1e-9:
            return 0.5
        return min(max((value - tree.low) / (tree.high - tree.low), 0.0), 1.0)
    return 0.5 * (value + 1.0)


@njit
def is_lost(game, edge):
    """Whether the move is known to lose, so that it is only played where nothing else is left."""
    return game.num_players == 2 and edge.proof == 1 and edge.value <= LOST


@njit
def is_known(edge):
    """Whether the edge has a value of its own."""
    return edge.visits > 0 or edge.proof == 1


@njit
def make_node(game, tree, nodes, edges, leaf, player, logits, value):
    """Adds the node of a player's position; returns its index, or NO_CHILD where there is no room.

    Moves whose value the leaf knows are proven from the start, and those that lose are never chosen.
    """
    if tree.num_nodes >= len(nodes):
        return np.int64(NO_CHILD)
    count = game.actions(leaf.state, tree.choices)
    if tree.num_edges + count > len(edges):
        return np.int64(NO_CHILD)
    index, first = tree.num_nodes, tree.num_edges
    tree.num_nodes += 1
    tree.num_edges += count
    highest = -np.inf
    for i in range(count):
        edge = edges[first + i]
        clear_edge(edge, tree.choices[i])
        edge.logit = logits[tree.choices[i]]
        verdict = np.float64(leaf.verdict[i])
        if not np.isnan(verdict):
            edge.proof = 1
            edge.value = verdict
            if verdict <= LOST:
                edge.logit = _NEVER
        highest = max(highest, np.float64(edge.logit))
    total = 0.0
    for i in range(count):
        total += math.exp(np.float64(edges[first + i].logit) - highest)
    log_total = math.log(total)
    for i in range(count):
        edge = edges[first + i]
        edge.logit = np.float64(edge.logit) - highest - log_total
        edge.prior = math.exp(edge.logit)
    node = nodes[index]
    node.first, node.count, node.tried, node.player = first, count, count, player
    node.visits, node.proof, node.value = 0, 0, value
    return np.int64(index)


@njit
def clear_edge(edge, action):
    edge.value = 0.0
    edge.visits = 0
    edge.flying = 0
    edge.action = action
    edge.child = NO_CHILD
    edge.proof = 0


@njit
def make_chance_node(game, tree, nodes, edges, state):
    if tree.num_nodes >= len(nodes):
        return np.int64(NO_CHILD)
    count = game.outcomes(state, tree.choices, tree.probabilities)
    if tree.num_edges + count > len(edges):
        return np.int64(NO_CHILD)
    index, first = tree.num_nodes, tree.num_edges
    tree.num_nodes += 1
    tree.num_edges += count
    for i in range(count):
        edge = edges[first + i]
        edge.prior = tree.probabilities[i]
        edge.logit = 0.0
        clear_edge(edge, tree.choices[i])
    node = nodes[index]
    node.first, node.count, node.tried, node.player = first, count, count, CHANCE
    node.visits, node.proof, node.value = 0, 0, 0.0
    return np.int64(index)


@njit
def clear(tree):
    """An empty tree; its root has to be evaluated anew."""
    tree.num_nodes = 0
    tree.num_edges = 0
    tree.simulations = 0
    tree.flying = 0
    tree.limit = 0
    tree.planned = 0
    tree.solved_move = -1
    tree.low = np.inf
    tree.high = -np.inf
