"""Keeping what is still of use of a tree once the game has gone on.

A search is given a position and not how it came about, so the new root is looked for among the descendants of the
old one: the moves of both players and of chance are replayed, and positions compared. What does not hang below the
new root is then removed in place.
"""

from typing import Any

import numpy as np

from envs.compiled import njit
from envs.game import Game, State, state_bytes
from selfplay.search.tree import NO_CHILD

MOST_PLIES = 12  # both players' moves and dice, in parts (backgammon)
MOST_PLAYS = 100_000  # replayed moves: some milliseconds
_MOST_CANDIDATES = 8  # positions with the right key but another history


@njit
def find_descendant(game, work, nodes, edges, key, depth, skip):
    """The node exactly `depth` plies below the root with that key, after `skip` others; NO_CHILD if there is none.

    Leaves the position in work.states[depth].
    """
    if depth == 0:
        found = np.uint64(game.key(work.states[0])) == key and skip == 0
        return np.int64(0) if found else np.int64(NO_CHILD)
    level = np.int64(0)
    work.stack_node[0] = 0
    work.stack_edge[0] = 0
    while level >= 0:
        node = nodes[work.stack_node[level]]
        if work.stack_edge[level] >= node.tried:
            level -= 1
            continue
        edge = edges[node.first + work.stack_edge[level]]
        work.stack_edge[level] += 1
        if edge.child < 0:
            continue
        work.plays += 1
        if work.plays > MOST_PLAYS:
            break
        work.states[level + 1] = work.states[level]
        game.play(work.states[level + 1], edge.action)
        if level + 1 < depth:
            level += 1
            work.stack_node[level] = edge.child
            work.stack_edge[level] = 0
        elif np.uint64(game.key(work.states[level + 1])) == key:
            if skip == 0:
                return np.int64(edge.child)
            skip -= 1
    return np.int64(NO_CHILD)


@njit
def keep_subtree(work, nodes, edges, root):
    """Removes all but the subtree of that node, which becomes the root.

    A child is always younger than its parent, and blocks of edges are as old as their nodes. So one pass from old to
    new finds what is kept, and another one can slide it down: nothing is overwritten before it was moved.
    """
    for i in range(root, work.num_nodes):
        nodes[i].moved_to = NO_CHILD
    nodes[root].moved_to = 0
    kept = 0
    for i in range(root, work.num_nodes):
        node = nodes[i]
        if node.moved_to != NO_CHILD:
            node.moved_to = kept  # the parents, all older, have marked it by now
            kept += 1
            for k in range(node.first, node.first + node.tried):
                if edges[k].child >= 0:
                    nodes[edges[k].child].moved_to = 0
    end = 0
    for i in range(root, work.num_nodes):
        old = nodes[i]
        if old.moved_to == NO_CHILD:
            continue
        first, count, index = old.first, old.count, old.moved_to
        for k in range(count):
            edges[end + k] = edges[first + k]
            if edges[end + k].child >= 0:
                edges[end + k].child = nodes[edges[end + k].child].moved_to
        nodes[index] = nodes[i]
        nodes[index].first = end
        end += count
    work.num_nodes = kept
    work.num_edges = end


def move_root(game: Game, work: Any, nodes: Any, edges: Any, state: State) -> bool:
    """Makes the node of this position the root, if the tree has it; says whether it has."""
    wanted = state_bytes(state)
    with np.errstate(over="ignore"):
        key = np.uint64(game.key(state))
    work.plays = 0
    for depth in range(min(MOST_PLIES, game.max_length) + 1):
        for skip in range(_MOST_CANDIDATES):
            found = int(find_descendant(game, work, nodes, edges, key, depth, skip))
            if found == NO_CHILD:
                break
            if state_bytes(work.states[depth]) == wanted:
                if found != 0:
                    keep_subtree(work, nodes, edges, found)
                work.states[0] = state
                return True
        if work.plays > MOST_PLAYS:
            break
    return False
