"""The tree of Monte Carlo tree search: two flat arrays that are allocated once.

An edge is a move (or a chance outcome) with the statistics of all simulations that went through it; a node is a
block of edges. A node is made when its position is reached for the second time, so a position that was seen once
costs no more than the edge that leads to it. Positions are not stored: a simulation replays them from the root.

    node   first ─┐  count 5, tried 3
                  ▼
    edges  [ e0 e1 e2 | e3 e4 ]      tried edges come first, in the random order in which they were tried

Means are utilities of the player who chooses at the node (at a chance node: of player 0).
"""

import math
from typing import Any, NamedTuple

import numpy as np

from envs.compiled import njit
from envs.game import CHANCE, Game
from selfplay.search.workspace import rounded

NO_CHILD, TERMINAL_CHILD = -1, -2
CERTAIN = 1e30  # the bonus of a move that is known to win, and minus that of one with nothing left to explore
_TINY = 1e-20  # times CERTAIN it is still more than any utility
MOST_DEPTH = 4096  # the longest line of a tree, in plies

NODE = np.dtype(
    [
        ("first", "i4"),  # its edges are first .. first + count - 1
        ("count", "i4"),
        ("tried", "i4"),
        ("visits", "i4"),  # the sum of its edges' visits
        ("spread", "f8"),  # sqrt(ln visits), the part of UCB1's bonus that its edges share
        ("player", "i4"),  # who chooses, or CHANCE
        ("known", "i4"),  # the best edge with a proven value, counted from the first, or NO_CHILD
        ("moved_to", "i4"),  # for compaction
    ],
    align=True,
)
EDGE = np.dtype(
    [
        ("value", "f8"),  # the mean of the utilities seen beyond, or the exact value once proven
        ("bonus", "f8"),  # 1 / sqrt(visits), UCB1's second term without what all edges of the node share
        ("visits", "i4"),
        ("action", "i4"),
        ("child", "i4"),  # the node beyond, or NO_CHILD or TERMINAL_CHILD
        ("proof", "i4"),  # 0: open; value proofs: 1; winner proofs: 1 + who wins
    ],
    align=True,
)


class Edge(NamedTuple):
    """One of the edges for Python code, its fields in the order of EDGE."""

    value: float
    bonus: float
    visits: int
    action: int
    child: int
    proof: int


def new_tree(game: Game, megabytes: float, simulations: int) -> tuple[Any, Any]:
    """Room for nodes and edges within so many megabytes, and no more than that many simulations can fill."""
    branching = max(game.max_legal, game.num_outcomes, 1)
    typical = min(branching, 32)  # one node per so many edges; fuller nodes only fill the edges sooner
    room = int(megabytes * 2**20)
    nodes = max(1, room // (NODE.itemsize + typical * EDGE.itemsize))
    edges = max(branching, (room - nodes * NODE.itemsize) // EDGE.itemsize)
    most = 2 * simulations + 2  # twice, because a part of the former tree may be kept
    nodes, edges = min(nodes, most, 2**31 - 1), min(edges, most * branching, 2**31 - 1)
    return np.empty(nodes, NODE).view(np.recarray), np.empty(edges, EDGE).view(np.recarray)


def tree_fields(game: Game) -> list[tuple[Any, ...]]:
    """What the tree needs in the workspace of a search."""
    depth = rounded(min(game.max_length + 2, MOST_DEPTH))
    return [
        ("path_node", "i4", (depth,)),
        ("path_edge", "i4", (depth,)),
        ("path_known", "i4", (depth,)),  # a proven edge that is better than the one taken, or NO_CHILD
        ("totals", "f8", (rounded(game.num_players),)),  # their sums over the search
        ("c", "f8"),  # UCB1's constant
        ("low", "f8"),  # the bounds that scale utilities to [0, 1]
        ("high", "f8"),
        ("solver", "i8"),
        ("num_nodes", "i8"),
        ("num_edges", "i8"),
        ("simulations", "i8"),
        ("simulation_limit", "i8"),
        ("deepest", "i8"),
        ("root_proof", "i8"),
        ("full", "i8"),  # how often there was no room for a node
        ("plays", "i8"),  # moves replayed in the search for a new root
        ("stack_node", "i4", (_STACK,)),
        ("stack_edge", "i4", (_STACK,)),
    ]


_STACK = 16


@njit
def expand(game, work, nodes, edges, state, player):
    """Makes the node of this position; returns its index, or NO_CHILD if the tree is full."""
    index = work.num_nodes
    first = work.num_edges
    if index >= len(nodes):
        work.full += 1
        return np.int64(NO_CHILD)
    if player == CHANCE:
        count = game.outcomes(state, work.choices, work.probabilities[1])
    else:
        count = game.actions(state, work.choices)
    if first + count > len(edges):
        work.full += 1
        return np.int64(NO_CHILD)
    node = nodes[index]
    node.first = first
    node.count = count
    node.tried = 0
    node.visits = 0
    node.spread = 0.0
    node.player = player
    node.known = NO_CHILD
    for i in range(count):
        edge = edges[first + i]
        edge.value = 0.0
        edge.bonus = 0.0
        edge.visits = 0
        edge.action = work.choices[i]
        edge.child = NO_CHILD
        edge.proof = 0
    work.num_nodes = index + 1
    work.num_edges = first + count
    return np.int64(index)


@njit
def best_edge(work, node, edges, depth):
    """UCB1 (Auer, Cesa-Bianchi and Fischer 2002; Kocsis and Szepesvari 2006): the edge that maximises

        mean + C * sqrt(ln N / n),   with means scaled to [0, 1] by the bounds low and high

    where N is the sum of the visits n of all edges. Scaling all terms back to utilities changes no comparison and
    saves a multiplication per edge. Ties: the first.

    A simulation through a proven edge would teach nothing. So if such an edge is the best, the best open one is taken
    all the same, and the proven one noted in work.path_known: what goes up from this node is then its exact value.
    """
    factor = max(work.c * (work.high - work.low) * node.spread, _TINY)
    best = np.int64(node.first)
    best_score = edges[best].value + factor * edges[best].bonus
    for i in range(node.first + 1, node.first + node.count):
        score = edges[i].value + factor * edges[i].bonus
        if score > best_score:
            best_score = score
            best = np.int64(i)
    if node.known != NO_CHILD and edges[node.first + node.known].value > best_score:
        work.path_known[depth] = node.first + node.known
    return best


@njit
def tried_edge(node, edges, rank):
    """Moves the untried edge of that rank to the end of the tried ones and returns its index."""
    edge = np.int64(node.first + node.tried)
    chosen = edge + rank
    edges[edge].action, edges[chosen].action = edges[chosen].action, edges[edge].action
    node.tried += 1
    return edge


@njit
def outcome_edge(node, edges, outcome):
    """The edge of a chance outcome; its first time, the outcome takes the next free edge."""
    end = np.int64(node.first + node.tried)
    for i in range(node.first, end):
        if edges[i].action == outcome:
            return np.int64(i)
    if node.tried == node.count:
        return end - 1  # a game that deals an outcome it does not list; `selfplay check` reports it
    for i in range(end, node.first + node.count):
        if edges[i].action == outcome:
            edges[i].action = edges[end].action
    edges[end].action = outcome
    node.tried += 1
    return end


# --- proofs (MCTS-Solver: Winands, Björnsson and Saito 2008) ---------------------------------------------
#
# One player, or two opposed ones: a proof is an exact value, so draws and scores are proven as well as wins. A node
# is proven if one edge is proven to give all there is to win, or if all edges are proven. More players, or not
# opposed: a proof says which player can force the game's highest utility. Chance is proven only where all outcomes
# are proven to the same value or winner.


@njit
def has_value_proofs(game):
    return game.num_players == 1 or (game.num_players == 2 and game.zero_sum)


@njit
def leaf_proof(game, work):
    """The proof that a finished game gives, with its utilities in work.values."""
    if has_value_proofs(game):
        return np.int64(1)
    for player in range(game.num_players):
        if work.values[player] == game.max_utility:
            return np.int64(1 + player)
    return np.int64(0)


@njit
def node_proof(game, node, edges):
    """What follows for a node from its edges' proofs: the proof, and with value proofs the mover's value."""
    value_proofs = has_value_proofs(game)
    complete = node.tried == node.count
    best = -np.inf
    same = np.int64(-1)  # the one winner of all edges so far
    for i in range(node.first, node.first + node.tried):
        edge = edges[i]
        if edge.proof == 0:
            complete = False
            continue
        if node.player == CHANCE:
            if edge.proof != edges[node.first].proof or (value_proofs and edge.value != edges[node.first].value):
                return np.int64(0), 0.0
        elif not value_proofs and edge.proof == 1 + node.player:
            return np.int64(edge.proof), 0.0
        if same == -1:
            same = np.int64(edge.proof)
        elif same != edge.proof:
            same = np.int64(0)
        best = max(best, edge.value)
    if value_proofs:
        if complete or (node.player != CHANCE and best == game.max_utility):
            return np.int64(1), best
        return np.int64(0), 0.0
    if complete and same > 0:
        return same, 0.0
    return np.int64(0), 0.0


@njit
def settles(game, node, proof):
    """Whether a node's proof leaves its mover nothing to look for: not so if all that is known is who else wins."""
    return proof != 0 and (has_value_proofs(game) or proof == 1 + node.player)


@njit
def back_up(game, work, nodes, edges, depth, proof):
    """Adds work.values to the statistics of the path, and carries a proof upwards as far as it goes."""
    value_proofs = has_value_proofs(game)
    for level in range(depth - 1, -1, -1):
        node = nodes[work.path_node[level]]
        edge = edges[work.path_edge[level]]
        chooser = max(node.player, 0)
        node.visits += 1
        node.spread = math.sqrt(math.log(np.float64(node.visits)))
        edge.visits += 1
        if edge.proof != 0 and (value_proofs or edge.proof == 1 + chooser):
            proof = np.int64(0)  # known already, and so is what follows from it
            continue
        edge.value += (work.values[chooser] - edge.value) / edge.visits
        edge.bonus = 1.0 / math.sqrt(np.float64(edge.visits))
        if proof != 0 and edge.proof == 0:
            edge.proof = proof
            if value_proofs:
                edge.value = work.values[chooser]
                edge.bonus = -CERTAIN
                if node.known == NO_CHILD or edge.value > edges[node.first + node.known].value:
                    node.known = work.path_edge[level] - node.first
            elif proof == 1 + node.player:
                edge.value = game.max_utility
                edge.bonus = CERTAIN
            proof, value = node_proof(game, node, edges)
        else:
            proof, value = np.int64(0), 0.0
        # From here up, what is known counts, not this simulation's result.
        known = work.path_known[level]
        if value_proofs and (proof != 0 or known != NO_CHILD):
            if proof == 0:
                value = edges[known].value
            work.values[chooser] = value
            if game.num_players == 2:
                work.values[1 - chooser] = -value
    if proof != 0 and settles(game, nodes[0], proof):
        work.root_proof = proof
