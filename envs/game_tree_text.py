"""How a game tree is written: nested lists, or named nodes in TOML or JSON. Reads both into a flat list of nodes.

Nested lists: a number is a leaf, a list is a node. Which player moves, or chance, goes by the level. A chance
node lists [probability, subtree] pairs. Where utilities are vectors, a list of as many numbers as there are
players is a leaf.

Named nodes, here in TOML; a move leads to a node's name, to a leaf's utility, or to a table like those below:

    root = "A"
    [nodes.A]
    player = "max"                       # max, min, chance or a player's number from 1; by the level if missing
    moves = { left = "B", right = 2 }    # or a list: then the moves are called 1, 2, ...
    [nodes.B]
    player = "chance"
    moves = { heads = "C", tails = 8 }
    probabilities = { heads = 0.25, tails = 0.75 }     # or a list in the order of the moves; "1/3" is a number too
    [nodes.C]
    utility = 3                          # a leaf; a list of numbers gives each player's

An inner node may carry `eval`, what an evaluation function thinks of it, in the form of a utility. A table may hold
`levels` and `players` beside the nodes, and nested lists instead of nodes: tree = [[3, 12, 8], [2, 4, 6], [14, 5, 2]].

A probability or a utility may be a fraction, in TOML and JSON files in quotes. Any text can be written on one line
without a comma, so that it fits anywhere: semicolons do as well.
"""

import ast
import json
import math
import re
import tomllib
import warnings
from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from envs.errors import InputError
from envs.game import CHANCE, TERMINAL

LARGEST = 1e100  # of a utility
MOST_PLAYERS = 100
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_STRINGS = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")
_FRACTION = re.compile(r"(?<![\w./])([+-]?\d+\s*/\s*\d+)(?![\w./])", re.ASCII)
_GAP = re.compile(r"(?<=[\w\]).])\s+(?=[\w\[(.+-])")
_NODE_KEYS = {"name", "player", "kind", "moves", "probabilities", "utility", "eval"}
_TREE_KEYS = {"name", "root", "nodes"}


@dataclass
class Node:
    """One node; its children are `first` .. `first + len(moves) - 1` in the list of all nodes, breadth first."""

    name: str
    index: int  # in the list of all nodes
    parent: int
    move: str = ""  # how the parent calls the way here
    probability: float = 1.0  # of that way, if the parent is a chance node
    kind: int = TERMINAL  # a player from 0, CHANCE or TERMINAL
    depth: int = 0
    first: int = 0
    moves: list[str] = field(default_factory=list)
    utility: tuple[float, ...] = ()
    eval: tuple[float, ...] = ()  # what an evaluation function thinks of an inner node, if anything


# --- text to description and back --------------------------------------------------------------------


def read(tree: Any) -> Any:
    """The description, nested lists or a table of named nodes, that a text, a file's path or an object holds."""
    if not isinstance(tree, str):
        return _plain(tree)
    text = tree.strip()
    if text.endswith((".toml", ".json")) and "\n" not in text:
        return _read_file(Path(text))
    if text[:1] in ("[", "(", "{"):
        return _parse_literal(text)
    if "=" in text:
        return _parse_toml(text, "tree")
    raise InputError(
        f"tree {_short(text)} must be nested lists like [[3;12];[2;4]], named nodes in TOML or JSON, "
        "or the path of a .toml or .json file"
    )


def canonical(description: Any) -> str:
    """The description as text without commas: JSON with semicolons instead."""
    try:
        text = json.dumps(description, separators=(";", ":"))
    except RecursionError:
        raise InputError("tree: the lists are nested too deeply") from None
    except ValueError as error:  # a whole number of thousands of digits
        raise InputError(f"tree: a number is too large: {error}") from None
    return _QUOTED.sub(lambda quoted: quoted.group().replace(",", "\\u002c").replace(";", "\\u003b"), text)


def _read_file(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"tree file {str(path)!r} does not exist") from None
    except (OSError, ValueError) as error:  # also a null byte in the path, or bytes that are no UTF-8
        raise InputError(f"tree file {str(path)!r} can't be read: {error}") from None
    if path.suffix == ".toml":
        return _parse_toml(text, f"tree file {str(path)!r}")
    try:
        return _plain(json.loads(text))
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"tree file {str(path)!r} is not JSON: {error}") from None


def _parse_toml(text: str, what: str) -> Any:
    try:
        return _plain(tomllib.loads(text))
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{what} is not TOML: {error}") from None


def _parse_literal(text: str) -> Any:
    """JSON, also with semicolons, or a Python literal, also with spaces instead of commas; never evaluated."""
    parts = _STRINGS.split(text)  # outside and inside of quotes in turn
    parts[::2] = [_FRACTION.sub(r'"\1"', part.replace(";", ",")) for part in parts[::2]]
    with_commas = "".join(parts)
    parts[::2] = [_GAP.sub(",", part) for part in parts[::2]]
    readers = ((json.loads, with_commas), (ast.literal_eval, with_commas), (json.loads, "".join(parts)))
    problem = ""
    for reader, words in readers:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of odd escapes and the like
                return _plain(reader(words))
        except InputError:
            raise
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
            problem = problem or str(error)
    raise InputError(f"tree {_short(text)} is neither JSON nor nested lists of numbers: {problem}")


def _plain(value: Any) -> Any:
    """The same out of lists, tables, numbers and strings alone."""
    try:
        if isinstance(value, (list, tuple)):
            return [_plain(item) for item in value]
        if isinstance(value, dict):
            return {str(name): _plain(item) for name, item in value.items()}
    except RecursionError:
        raise InputError("tree: the lists are nested too deeply") from None
    if isinstance(value, (np.ndarray, np.generic)) and not isinstance(value.tolist(), np.generic):
        return _plain(value.tolist())
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, int) and abs(value) > LARGEST:
        raise InputError(f"tree: a number of {value.bit_length()} bits must be within ±{LARGEST:g}")
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        return value
    raise InputError(f"tree: {value!r} is neither a number nor a list")


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


# --- numbers, players, kinds -------------------------------------------------------------------------


def is_number(value: Any) -> bool:
    if isinstance(value, str):
        return bool(re.fullmatch(r"\s*[+-]?\d+\s*/\s*0*[1-9]\d*\s*", value, re.ASCII))
    return isinstance(value, (int, float))


def number(value: Any) -> float:
    """The number; infinity where it does not fit."""
    try:
        return float(Fraction("".join(value.split()))) if isinstance(value, str) else float(value)
    except (OverflowError, ValueError):
        return math.inf


def parse_kind(word: Any, what: str) -> int:
    """A player from 0, or CHANCE."""
    names = {"max": 0, "min": 1, "chance": CHANCE}
    text = str(word).strip().lower()
    if text in names:
        return names[text]
    if text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= MOST_PLAYERS:
        return int(text) - 1
    raise InputError(f"{what}: {word!r} must be max, min, chance or a player's number from 1 to {MOST_PLAYERS}")


def parse_levels(levels: str) -> list[int]:
    """The kinds of the levels from the root down, repeated below; empty text gives an empty list."""
    words = re.split(r"[\s,;+-]+", levels.strip()) if levels.strip() else []
    return [parse_kind(word, f"levels={levels!r}") for word in words]


def kind_name(kind: int, players: int) -> str:
    """The inverse of `parse_kind`."""
    if kind == CHANCE:
        return "chance"
    return ("max", "min")[kind] if players <= 2 else str(kind + 1)


def infer_players(description: Any, levels: list[int]) -> int:
    """How many players a description speaks of, where nobody says it."""
    mentioned = list(levels)
    if isinstance(description, dict):
        lengths = [len(leaf) for leaf in _leaves(description) if isinstance(leaf, list)]
        if lengths:
            return max(1, *lengths)
        words = [node.get("player", node.get("kind")) for node in _tables(description)]
        mentioned += [parse_kind(word, "tree: player") for word in words if word is not None]
    return max(*mentioned, 0) + 1 if mentioned else 2


def infer_vector(description: Any, players: int) -> bool:
    """Whether leaves hold one number per player, where nobody says it."""
    if players > 2 or not isinstance(description, dict):
        return players > 2
    return any(isinstance(leaf, list) for leaf in _leaves(description))


def _entries(description: dict) -> Any:
    """All that describes a node, wherever it stands: a table, a leaf's utility or another node's name."""
    named = description.get("nodes", {})
    waiting = [*(named.values() if isinstance(named, dict) else []), description.get("root")]
    while waiting:
        entry = waiting.pop()
        yield entry
        if isinstance(entry, dict):
            moves = entry.get("moves", [])
            waiting += moves.values() if isinstance(moves, dict) else moves if isinstance(moves, list) else []


def _tables(description: dict) -> list[dict]:
    return [entry for entry in _entries(description) if isinstance(entry, dict)]


def _leaves(description: dict) -> list[Any]:
    """The utilities, and what else is no table."""
    return [entry.get("utility") if isinstance(entry, dict) else entry for entry in _entries(description)]


# --- description to nodes ----------------------------------------------------------------------------


def grow(description: Any, players: int, levels: list[int], vector: bool) -> list[Node]:
    """All nodes, breadth first, the root first; raises `InputError` for a broken tree."""
    reader: _Nested = (_Named if isinstance(description, dict) else _Nested)(description, players, levels, vector)
    nodes = [Node(reader.root_name, 0, -1)]
    waiting = deque([(0, reader.root)])
    while waiting:
        index, value = waiting.popleft()
        node = nodes[index]
        node.first = len(nodes)
        for move, target, probability in reader.open(node, value, nodes):
            name = reader.name_of(target, node, move)
            nodes.append(Node(name, len(nodes), index, move, probability, depth=node.depth + 1))
            node.moves.append(move)
            waiting.append((len(nodes) - 1, target))
    if len(nodes) == 1:
        raise InputError("tree: the root is a leaf; a game needs at least one move")
    reader.finish()
    return nodes


class _Nested:
    """Nested lists: numbers are leaves, the level says who moves."""

    root_name = "root"

    def __init__(self, description: Any, players: int, levels: list[int], vector: bool):
        self.root, self.players, self.levels, self.vector = description, players, levels, vector

    def name_of(self, target: Any, parent: Node, move: str) -> str:
        return move if parent.parent < 0 else f"{parent.name}.{move}"

    def open(self, node: Node, value: Any, nodes: list[Node]) -> list[tuple[str, Any, float]]:
        """Fills in the node; returns its moves, where they lead and how likely they are."""
        if self.is_leaf(value):
            node.utility = self.utility(node, value)
            return []
        if not isinstance(value, list):
            raise InputError(f"tree: node {node.name!r} is {value!r}, neither a number nor a list")
        if not value:
            raise InputError(f"tree: node {node.name!r} is empty; give it a child or a utility")
        node.kind = self.kind(node, None)
        names = [str(i + 1) for i in range(len(value))]
        if node.kind != CHANCE:
            return [(name, child, 1.0) for name, child in zip(names, value, strict=True)]
        for pair in value:
            if not isinstance(pair, list) or len(pair) != 2 or not is_number(pair[0]):
                raise InputError(
                    f"tree: the chance node {node.name!r} holds {_short(str(pair))}, not a [probability, subtree] pair"
                )
        chances = self.probabilities(node, [pair[0] for pair in value])
        return [(name, pair[1], p) for name, pair, p in zip(names, value, chances, strict=True)]

    def finish(self) -> None:
        """Looks for what was never reached."""

    def is_leaf(self, value: Any) -> bool:
        return is_number(value) or (
            self.vector and isinstance(value, list) and value != [] and all(map(is_number, value))
        )

    def utility(self, node: Node, value: Any) -> tuple[float, ...]:
        given = value if isinstance(value, list) else [value]
        if not all(map(is_number, given)):
            raise InputError(f"tree: the utility {value!r} of {node.name!r} must be a number or a list of numbers")
        wanted = f"one number for each of {self.players} players" if self.vector else "one number"
        if isinstance(value, list) != self.vector or (self.vector and len(given) != self.players):
            raise InputError(f"tree: the utility {value!r} of {node.name!r} must be {wanted}")
        numbers = [number(item) for item in given]
        if not all(math.isfinite(item) and abs(item) <= LARGEST for item in numbers):
            raise InputError(f"tree: the utility {value!r} of {node.name!r} must be within ±{LARGEST:g}")
        if self.vector:
            return tuple(numbers)
        return (numbers[0], -numbers[0])[: self.players]

    def kind(self, node: Node, word: Any) -> int:
        if word is None:
            return self.levels[node.depth % len(self.levels)]
        kind = parse_kind(word, f"tree: player of node {node.name!r}")
        if kind >= self.players:
            raise InputError(f"tree: player {word!r} of node {node.name!r} is not one of {self.players} players")
        return kind

    def probabilities(self, node: Node, given: list[Any]) -> list[float]:
        if not all(is_number(p) and 0 < number(p) <= 1 for p in given):
            raise InputError(f"tree: the probabilities {given} of {node.name!r} must be above 0 and at most 1")
        numbers = [number(p) for p in given]
        total = math.fsum(numbers)
        if abs(total - 1) > 1e-6:
            raise InputError(f"tree: the probabilities {given} of {node.name!r} sum to {total:g}, not to 1")
        return [p / total for p in numbers] if abs(total - 1) > 1e-12 else numbers


class _Named(_Nested):
    """A table of named nodes."""

    def __init__(self, description: dict, players: int, levels: list[int], vector: bool):
        super().__init__(description.get("root"), players, levels, vector)
        self.named: dict[str, Any] = description.get("nodes", {})
        if not isinstance(self.named, dict):
            raise InputError("tree: nodes must be a table of nodes by name")
        unknown = set(description) - _TREE_KEYS
        if unknown:
            raise InputError(f"tree: unknown key {min(unknown)!r}; keys: {', '.join(sorted(_TREE_KEYS))}")
        if self.root is None:
            if not self.named:
                raise InputError("tree: there is neither a root nor a node")
            self.root = next(iter(self.named))
        self.reached: dict[str, int] = {}
        self.root_name = self.name_of(self.root, Node("", 0, -1), "root")

    def name_of(self, target: Any, parent: Node, move: str) -> str:
        table = self.named.get(target) if isinstance(target, str) else target
        if isinstance(table, dict) and "name" in table:
            if not isinstance(table["name"], str):
                raise InputError(f"tree: the name {table['name']!r} of a node must be text")
            return table["name"]
        if isinstance(target, str) and not is_number(target):
            return target
        return move if not parent.name or parent.parent < 0 else f"{parent.name}.{move}"

    def open(self, node: Node, value: Any, nodes: list[Node]) -> list[tuple[str, Any, float]]:
        if isinstance(value, str) and (value in self.named or not is_number(value)):
            value = self.follow(node, value, nodes)
        if isinstance(value, list) or is_number(value):
            node.utility = self.utility(node, value)
            return []
        unknown = set(value) - _NODE_KEYS
        if unknown:
            keys = ", ".join(sorted(_NODE_KEYS))
            raise InputError(f"tree: node {node.name!r} has an unknown key {min(unknown)!r}; keys: {keys}")
        if ("utility" in value) == ("moves" in value):
            raise InputError(f"tree: node {node.name!r} needs either moves or a utility")
        if "utility" in value:
            odd = sorted(set(value) - {"name", "utility"})
            if odd:
                raise InputError(f"tree: node {node.name!r} is a leaf and can't have {odd[0]}")
            node.utility = self.utility(node, value["utility"])
            return []
        if "player" in value and "kind" in value:
            raise InputError(f"tree: node {node.name!r} has both player and kind; one of them is enough")
        node.kind = self.kind(node, value.get("player", value.get("kind")))
        if "eval" in value:
            node.eval = self.utility(node, value["eval"])
        moves = self.moves(node, value["moves"])
        if node.kind != CHANCE:
            if "probabilities" in value:
                raise InputError(f"tree: node {node.name!r} has probabilities, but is no chance node")
            return [(name, target, 1.0) for name, target in moves.items()]
        chances = self.probabilities(node, self.listed(node, value.get("probabilities"), list(moves)))
        return [(name, target, p) for (name, target), p in zip(moves.items(), chances, strict=True)]

    def follow(self, node: Node, name: str, nodes: list[Node]) -> Any:
        """The node of that name; each one once."""
        if name not in self.named:
            known = ", ".join(list(self.named)[:20]) or "none"
            raise InputError(f"tree: node {name!r} is not defined; nodes: {known}")
        if name in self.reached:
            above = node.index
            while above > 0 and above != self.reached[name]:
                above = nodes[above].parent
            parents = f"{nodes[node.parent].name!r} and {nodes[nodes[self.reached[name]].parent].name!r}"
            if above == self.reached[name]:
                raise InputError(f"tree: the moves go round in a circle through node {name!r}")
            raise InputError(f"tree: node {name!r} has two parents, {parents}; write it twice")
        self.reached[name] = node.index
        value = self.named[name]
        if not isinstance(value, (dict, list)) and not is_number(value):
            raise InputError(f"tree: node {name!r} is {value!r}, not a table or a utility")
        return value

    def moves(self, node: Node, given: Any) -> dict[str, Any]:
        moves = {str(i + 1): target for i, target in enumerate(given)} if isinstance(given, list) else given
        if not isinstance(moves, dict):
            raise InputError(f"tree: the moves of node {node.name!r} must be a table or a list")
        if not moves:
            raise InputError(f"tree: node {node.name!r} is empty; give it a move or a utility")
        for name in moves:
            if not name or name.split() != [name]:
                raise InputError(f"tree: move {name!r} of node {node.name!r} must be one word")
        if len({name.lower() for name in moves}) < len(moves):
            raise InputError(f"tree: two moves of node {node.name!r} differ only in capitals")
        return moves

    def listed(self, node: Node, given: Any, moves: list[str]) -> list[Any]:
        """The probabilities in the order of the moves."""
        if isinstance(given, dict) and set(given) == set(moves):
            return [given[name] for name in moves]
        if isinstance(given, list) and len(given) == len(moves):
            return given
        raise InputError(f"tree: the chance node {node.name!r} needs a probability for each of {', '.join(moves)}")

    def finish(self) -> None:
        for name in self.named:
            if name not in self.reached:
                raise InputError(f"tree: no move leads to node {name!r}")
