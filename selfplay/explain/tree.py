"""The tree that a search is shown on: every node down to the depth, with its children from left to right.

Works for any game through its methods, interpreted, so nothing has to compile. The depth is counted as the searches
count it: players' moves, chance for free, a move made of several actions (checkers, backgammon) as one.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, Game, State
from envs.game_tree import GameTree

MAX, MIN, CHANCE_NODE, PLAYER, LEAF = "max", "min", "chance", "player", "leaf"
MOST_LEVELS = 200  # the searches here are recursive Python


@dataclass(eq=False)
class Node:
    """One node and, once the search has come by, what it knows of it: the true value lies in [low, high]."""

    index: int
    name: str  # as the tree calls it, or the moves from the root
    move: str  # how the parent calls the way here
    probability: float  # of that way, if the parent is a chance node
    kind: str  # max, min, chance, player (max^n) or leaf
    player: int  # who moves here
    level: int
    state: Any
    parent: "Node | None" = None
    children: list["Node"] = field(default_factory=list)
    utilities: tuple[float, ...] = ()  # of a leaf, for every player
    is_estimate: bool = False  # a leaf where EVAL spoke, since the depth ended there
    value: Any = None  # what the search returned
    low: float = -np.inf
    high: float = np.inf
    best: "Node | None" = None  # the child that gave the value


@dataclass
class Tree:
    """All nodes in the order in which they were made, the root first; MAX is the player whose values are drawn."""

    game: Game
    nodes: list[Node]
    max_player: int
    opposed: bool  # one or two players, drawn as MAX and MIN; otherwise each has boxes of their own

    @property
    def root(self) -> Node:
        return self.nodes[0]

    def leaves_below(self, node: Node) -> list[Node]:
        """The leaves of a subtree from left to right."""
        if node.kind == LEAF:
            return [node]
        return [leaf for child in node.children for leaf in self.leaves_below(child)]


def copy_of(game: Game, state: State) -> State:
    """A state of its own, with the same fields."""
    return np.array([state], game.state).view(np.recarray)[0]


def moves_of(game: Game, state: State) -> list[tuple[int, float]]:
    """The actions with probability 1, or the outcomes of a chance node with theirs, from left to right."""
    out = np.empty(max(game.max_legal, game.num_outcomes, 1), np.int64)
    if int(game.player(state)) == CHANCE:
        probabilities = np.empty(len(out))
        count = game.outcomes(state, out, probabilities)
        return [(int(action), float(p)) for action, p in zip(out[:count], probabilities[:count], strict=True)]
    return [(int(action), 1.0) for action in out[: game.actions(state, out)]]


def estimates(game: Game, evaluation: Any, state: State, player: int) -> tuple[float, ...]:
    """EVAL for every player, shared out as in max^n: the others get minus the same, or the middle of what is possible."""
    scratch = np.zeros(max(1, game.num_features), np.float64)
    value = float(evaluation.evaluate(game, state, scratch))
    others = -value / (game.num_players - 1) if game.zero_sum else 0.5 * (game.min_utility + game.max_utility)
    return tuple(value if p == player else float(others) for p in range(game.num_players))


class Grower:
    """Makes nodes one at a time; `most` bounds their number."""

    def __init__(self, game: Game, state: State, opposed: bool, most: int):
        self.game, self.most = game, most
        player = int(game.player(state))
        if player == TERMINAL:
            raise InputError("the game is over in this position: there is nothing to explain")
        # A tree says itself who is MAX; elsewhere it is the player to move at the root, as in the book.
        named = isinstance(game, GameTree) and game.num_players <= 2
        first = 0 if named or player == CHANCE else player
        self.tree = Tree(game, [], first, opposed)
        self.add(None, copy_of(game, state), "", 1.0)

    def add(self, parent: Node | None, state: State, move: str, probability: float) -> Node:
        game, tree = self.game, self.tree
        if len(tree.nodes) >= self.most:
            raise InputError(
                f"the tree has more than {self.most:,} nodes: give a smaller --depth or another --position"
            )
        player = int(game.player(state))
        level = parent.level + 1 if parent else 0
        if level > MOST_LEVELS:
            raise InputError(f"the tree has more than {MOST_LEVELS} levels: give a smaller --depth")
        if isinstance(game, GameTree):
            name = game.node_name(state)
        else:
            name = "root" if parent is None else move if parent.parent is None else f"{parent.name} {move}"
        kind = PLAYER
        if player in (CHANCE, TERMINAL):
            kind = CHANCE_NODE if player == CHANCE else LEAF
        elif tree.opposed:
            kind = MAX if player == tree.max_player else MIN
        node = Node(len(tree.nodes), name, move, probability, kind, player, level, state, parent)
        if player == TERMINAL:
            node.utilities = tuple(float(game.utility(state, p)) for p in range(game.num_players))
        tree.nodes.append(node)
        if parent:
            parent.children.append(node)
        return node

    def child(self, node: Node, action: int, probability: float) -> Node:
        state = copy_of(self.game, node.state)
        self.game.play(state, action)
        return self.add(node, state, self.game.action_name(node.state, action), probability)


def grow(game: Game, state: State, depth: int, evaluation: Any, opposed: bool, most: int) -> Tree:
    """The whole tree to a depth; 0 goes to the end of the game."""
    grower = Grower(game, state, opposed, most)
    waiting = [(grower.tree.root, depth or 1 << 30)]
    while waiting:  # a stack, its nodes in reading order
        node, rest = waiting.pop()
        if node.kind == LEAF:
            continue
        if rest <= 0 and node.kind != CHANCE_NODE:
            node.kind, node.is_estimate = LEAF, True
            node.utilities = estimates(game, evaluation, node.state, node.player)
            continue
        following = []
        for action, probability in moves_of(game, node.state):
            child = grower.child(node, action, probability)
            same_move = game.compound_moves and child.player == node.player
            following.append((child, rest if node.kind == CHANCE_NODE or same_move else rest - 1))
        waiting += reversed(following)
    return grower.tree
