"""A game given by its tree, as textbooks draw it: MAX, MIN and CHANCE nodes, or any number of players.

The vocabulary is that of Russell and Norvig, "Artificial Intelligence: A Modern Approach", ch. 5; the default is the
tree of their figure 5.2. `game_tree_text.py` says how trees are written: nested lists, or named nodes in TOML or JSON,
as text, as a file's path or as Python objects:

    GameTree([[3, 12, 8], [2, 4, 6], [14, 5, 2]])
    GameTree([[[0.9, [2, 2]], [0.1, [3, 3]]], [[0.9, [1, 1]], [0.1, [4, 4]]]], levels="max-chance-min")
    GameTree("tree.toml")

In nested lists the level says who moves: `levels`, from the root down and then again from its beginning; by default
the players in turn. Players are max and min, or numbers from 1. With one or two players a leaf is a number, the
utility of MAX; MIN's is its negative, so two players play a zero-sum game. With more players, or with `vector`, a leaf
is a list of one number for each player, and the sum may be anything.

All that differs between trees is run-time data, the static facts included, so that any number of trees shares
compiled code: there is one specialisation for all trees of up to 1024 nodes (times players), one for those up to
16,384, and so on.

Moves carry the names that the tree gives them, else 1, 2, ... from the left; positions are the moves from the root
("left 2"), or "@" and the name of a node ("@B").
"""

from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np

from envs.bits import mix
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, Game, State
from envs.game_tree_text import (
    MOST_PLAYERS,
    Node,
    canonical,
    grow,
    infer_players,
    infer_vector,
    kind_name,
    parse_levels,
    read,
)
from envs.rng import below

MOST_PLANES = 4096  # a tree of more nodes is observed by the binary digits of the node's number
_LINES = 60  # of a drawing
_MARKS = {"max": "△ max", "min": "▽ min", "chance": "○ chance"}


def padded(count: int) -> int:
    """The size of the tables: few different ones, since each is compiled for."""
    size = 1024
    while size < count:
        size *= 16
    return size


@dataclass(frozen=True)
class GameTree(Game):
    """Parameters: the tree, whose turn it is by level, the number of players (0: as the tree says), and whether
    leaves hold a number for each player."""

    tree: Any = "[[3;12;8];[2;4;6];[14;5;2]]"
    levels: str = ""
    players: int = 0
    vector: bool = False

    title = "Game tree"
    notation = 'moves from the root by name: "1 2"; or a node: "@B"'
    state = np.dtype([("node", "i4")])
    num_features = 2

    def __post_init__(self) -> None:
        """Reads and checks the tree, and writes all fields in one way, so that equal trees are equal games."""
        for name, kind in (("levels", str), ("players", int), ("vector", bool)):
            if not isinstance(getattr(self, name), kind):
                raise InputError(f"game_tree: {name}={getattr(self, name)!r} must be of type {kind.__name__}")
        description = read(self.tree)
        given: dict[str, Any] = {"levels": self.levels, "players": self.players, "vector": self.vector}
        if isinstance(description, dict):
            description = _lift(dict(description), given)
        kinds = parse_levels(given["levels"])
        inferred = infer_players(description, kinds)
        players = given["players"] or inferred
        if not 1 <= players <= MOST_PLAYERS:
            raise InputError(f"game_tree: players={players} must be from 1 to {MOST_PLAYERS}")
        if any(kind >= players for kind in kinds):
            raise InputError(f"game_tree: levels={given['levels']!r} names more than {players} player(s)")
        vector = given["vector"] or infer_vector(description, players)
        nodes = grow(description, players, kinds or list(range(players)), vector)
        fields: dict[str, Any] = {
            "tree": canonical(description),
            "levels": "-".join(kind_name(kind, players) for kind in kinds if kinds != list(range(players))),
            "vector": vector and not infer_vector(description, players),
        }
        again = infer_players(description, parse_levels(fields["levels"]))
        facts = {"players": 0 if players == again else players, "nodes": tuple(nodes), "num_players": players}
        for name, value in (fields | facts | _facts(nodes, players)).items():
            object.__setattr__(self, name, value)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        nodes = len(self.nodes)
        return (nodes,) if nodes <= MOST_PLANES else (nodes.bit_length(),)

    def tables(self) -> dict[str, np.ndarray]:
        players = self.num_players
        size = padded(len(self.nodes) * players)
        kinds, first, counts = np.full(size, TERMINAL, np.int64), np.zeros(size, np.int32), np.zeros(size, np.int32)
        chances, utilities, evals = np.zeros(size), np.zeros(size), np.zeros(size)
        for node in self.nodes:
            i = node.index
            kinds[i], first[i], counts[i], chances[i] = node.kind, node.first, len(node.moves), node.probability
            for values, target in ((node.utility, utilities), (node.eval, evals)):
                if values:
                    target[i * players : (i + 1) * players] = values
        arrays: dict[str, Any] = {"kinds": kinds, "first": first, "counts": counts, "chances": chances}
        arrays |= {"utilities": utilities, "evals": evals}
        numbers = {"node_count": len(self.nodes), "players": self.players, "vector": self.vector}
        numbers |= {name: getattr(self, name) for name in ("num_players", *_FACTS)}
        return arrays | {name: np.array(n) for name, n in numbers.items()}

    # --- the rules -----------------------------------------------------------------------------------

    def start(self, state: State) -> None:
        state.node = 0

    def player(self, state: State) -> int:
        return self.kinds[state.node]

    def actions(self, state: State, out: Any) -> int:
        count: Any = np.int64(self.counts[state.node])
        for i in range(count):
            out[i] = i
        return count

    def count_actions(self, state: State, out: Any) -> Any:
        return np.int64(self.counts[state.node])

    def random_action(self, state: State, out: Any, rng: Any) -> Any:
        return below(rng, self.counts[state.node])

    def outcomes(self, state: State, out: Any, probabilities: Any) -> int:
        count: Any = np.int64(self.counts[state.node])
        for i in range(count):
            out[i] = i
            probabilities[i] = self.chances[self.first[state.node] + i]
        return count

    def play(self, state: State, action: Any) -> None:
        state.node = self.first[state.node] + action

    def utility(self, state: State, player: Any) -> float:
        return self.utilities[state.node * self.num_players + player]

    def key(self, state: State) -> Any:
        return mix(np.uint64(state.node) + np.uint64(1))

    def observe(self, state: State, planes: Any) -> None:
        if self.node_count <= MOST_PLANES:
            planes[state.node] = 1.0
        else:
            for i in range(len(planes)):
                planes[i] = (state.node >> i) & 1

    def features(self, state: State, out: Any) -> int:
        mover = max(0, self.kinds[state.node])
        out[0] = self.evals[state.node * self.num_players + mover]
        out[1] = 1.0
        return 2

    # --- for people ----------------------------------------------------------------------------------

    def feature_names(self) -> tuple[str, ...]:
        return ("eval of the node, 0 if the tree gives none", "to move")

    def node_name(self, state: State) -> str:
        """The node's name in the tree: as given, else the numbers of the moves that lead to it."""
        return self.nodes[int(state.node)].name

    def action_name(self, state: State, action: int) -> str:
        return self.nodes[int(state.node)].moves[int(action)]

    def position_text(self, state: State) -> str:
        return " ".join(node.move for node in self._path(int(state.node))[1:])

    def parse_position(self, text: str) -> State:
        text = text.strip()
        if not text.startswith("@"):
            return super().parse_position(text)
        found = [node.index for node in self.nodes if node.name == text[1:]]
        if len(found) != 1:
            why = "there is no such node" if not found else f"{len(found)} nodes have that name"
            raise InputError(f"position {text!r}: {why}; give the moves from the root or @ and a node's name")
        state = self.new()[0]
        state.node = found[0]
        return state

    def show(self, state: State) -> str:
        """The tree, indented, with the current node marked; of a big tree the way to the node and what is below."""
        here = int(state.node)
        way = {node.index for node in self._path(here)}
        lines: list[str] = []
        waiting = [self.nodes[0]]
        while waiting and len(lines) < _LINES:
            node = waiting.pop()
            lines.append(self._line(node, here))
            children = self.nodes[node.first : node.first + len(node.moves)]
            if len(self.nodes) > _LINES and node.index in way and node.index != here:
                children = tuple(child for child in children if child.index in way)
            waiting += reversed(children)
        return "\n".join([*lines, f"… {len(self.nodes)} nodes in all"] if waiting else lines)

    def _line(self, node: Node, here: int) -> str:
        parent = self.nodes[node.parent]
        move = f"{node.move} " if node.parent >= 0 else ""
        chance = f"({node.probability:.4g}) " if node.parent >= 0 and parent.kind == CHANCE else ""
        if node.kind == TERMINAL:
            values = node.utility if self.num_players > 2 or self.vector or fsum(node.utility) else node.utility[:1]
            what = " ".join(f"{value:g}" for value in values)
        else:
            name = kind_name(node.kind, self.num_players)
            what = _MARKS.get(name, f"player {name}")
            if node.name not in (node.move, "root") and not node.name.endswith(f".{node.move}"):
                what += f" {node.name}"
            what += f" eval {node.eval[0]:g}" if node.eval else ""
        text = f"{'  ' * node.depth}{move}{chance}{what}"
        return f"\033[1;93m{text}  ←\033[0m" if node.index == here else text

    def _path(self, index: int) -> list[Node]:
        """The nodes from the root to this one."""
        path = [self.nodes[index]]
        while path[-1].parent >= 0:
            path.append(self.nodes[path[-1].parent])
        return path[::-1]


_FACTS = (
    "num_actions",
    "max_legal",
    "num_outcomes",
    "has_chance",
    "max_length",
    "zero_sum",
    "min_utility",
    "max_utility",
)


def _facts(nodes: list[Node], players: int) -> dict[str, Any]:
    """The static facts of the contract, exactly."""
    most = max((len(node.moves) for node in nodes if node.kind >= 0), default=0)
    outcomes = max((len(node.moves) for node in nodes if node.kind == CHANCE), default=0)
    leaves = [node.utility for node in nodes if node.kind == TERMINAL]
    return {
        "num_actions": most,
        "max_legal": most,
        "num_outcomes": outcomes,
        "has_chance": outcomes > 0,
        "max_length": nodes[-1].depth,
        "zero_sum": players > 1 and all(abs(fsum(values)) < 1e-9 for values in leaves),
        "min_utility": min(map(min, leaves)),
        "max_utility": max(map(max, leaves)),
    }


def _lift(description: dict[str, Any], given: dict[str, Any]) -> Any:
    """Moves what a table says about the whole tree to the parameters; returns the nodes or the nested lists."""
    if isinstance(description.get("levels"), list):
        description["levels"] = "-".join(map(str, description["levels"]))
    for name, kind, wanted in (("levels", str, "text"), ("players", int, "a whole number from 1")):
        if name in description:
            value = description.pop(name)
            if not isinstance(value, kind) or not value:
                raise InputError(f"tree: {name} = {value!r} must be {wanted}")
            if given[name] and given[name] != value:
                raise InputError(f"game_tree: {name}={given[name]!r}, but the tree says {value!r}")
            given[name] = value
    if "tree" not in description:
        return description
    unknown = set(description) - {"name", "tree"}
    if unknown:
        raise InputError(f"tree: unknown key {min(unknown)!r} beside tree; keys: levels, name, players, tree")
    if not isinstance(description["tree"], list):
        raise InputError(f"tree: tree = {description['tree']!r} must be nested lists")
    return description["tree"]
