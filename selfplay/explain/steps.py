"""What happens in a search, one step after the other: a sentence, and how the drawing changes with it.

Sentences and numbers are plain ASCII here, for the terminal and for programs; drawings write them as lectures do.
"""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from selfplay.explain.tree import LEAF, Node, Tree
from selfplay.search.result import EXACT, LOWER, UPPER

SIGNS = {EXACT: "", UPPER: "<= ", LOWER: ">= "}


@dataclass
class Look:
    """How a node looks at some step; `edge` is the way from its parent."""

    status: str = "unseen"  # unseen, open, done, cut, absent (not in the tree yet)
    value: str = ""
    alpha: str = ""
    beta: str = ""
    edge: str = ""  # "", best, path (of a simulation) or cut
    note: str = ""  # on the edge: UCB1


@dataclass
class Step:
    """One step. `changes` maps a node's index to the fields of its look that are different from here on."""

    number: int
    kind: str  # enter, update, cut, return, result; in Monte Carlo tree search select, expand, playout, backup
    node: Node
    text: str
    changes: dict[int, dict[str, str]]
    value: Any = None
    alpha: float | None = None
    beta: float | None = None


@dataclass
class Pruned:
    """A child that was never looked at, and why."""

    node: Node
    reason: str


@dataclass
class Trace:
    """A whole search: its steps, the leaves in the order they were looked at, and what was cut."""

    algorithm: str
    tree: Tree
    steps: list[Step] = field(default_factory=list)
    leaves: list[Node] = field(default_factory=list)
    pruned: list[Pruned] = field(default_factory=list)
    first_look: Look = field(default_factory=Look)
    bounds: dict[int, str] = field(default_factory=dict)  # of the finished nodes: exact, upper or lower
    simulations: list[dict[str, Any]] = field(default_factory=list)  # of Monte Carlo tree search
    visits: dict[int, int] = field(default_factory=dict)  # of the nodes, likewise
    value: Any = None
    chosen: Node | None = None

    def looks(self, steps: int | None = None) -> list[Look]:
        """How every node looks after so many steps (all, if nobody says)."""
        looks = [asdict(self.first_look) for _ in self.tree.nodes]
        for step in self.steps[:steps]:
            for index, change in step.changes.items():
                looks[index].update(change)
        return [Look(**look) for look in looks]

    def bounded(self, node: Node) -> str:
        """A finished node's value as text, with <= or >= where only a bound is known."""
        return SIGNS[self.bounds[node.index]] + text_of(node.value) if node.index in self.bounds else ""


def text_of(value: Any) -> str:
    """A number, or a vector of them, as it is printed; four digits are enough to follow a search."""
    if value is None:
        return ""
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(text_of(item) for item in value) + ")"
    if math.isinf(value):
        return "+inf" if value > 0 else "-inf"
    if abs(value) < 1e-12:
        return "0"
    return f"{value:.1f}".removesuffix(".0") if 1000 <= abs(value) < 1e7 else f"{value:.4g}"


class Recorder:
    """Collects changes and turns them into steps; the searches derive from it."""

    def __init__(self, algorithm: str, tree: Tree):
        self.trace = Trace(algorithm, tree)
        self.tree = tree
        self.changes: dict[int, dict[str, str]] = {}

    def change(self, node: Node, **fields: str) -> None:
        """The drawing of a node changes with the next step."""
        self.changes.setdefault(node.index, {}).update(fields)

    def step(
        self, kind: str, node: Node, text: str, value: Any = None, alpha: float | None = None, beta: float | None = None
    ) -> None:
        """Ends a step at a node."""
        self.trace.steps.append(Step(len(self.trace.steps) + 1, kind, node, text, self.changes, value, alpha, beta))
        self.changes = {}

    def look_at(self, leaf: Node, value: Any) -> Any:
        """A leaf is looked at; the step that uses its value shows it."""
        self.trace.leaves.append(leaf)
        leaf.value = value
        self.trace.bounds[leaf.index] = EXACT
        self.change(leaf, status="done", value=text_of(value))
        return value

    def best_edge(self, node: Node) -> None:
        """The edge to the best child so far is drawn thick."""
        for child in node.children:
            self.change(child, edge="best" if child is node.best else "")

    def finish(self, node: Node, value: Any, bound: str = EXACT) -> Any:
        """A node is done."""
        node.value = value
        self.trace.bounds[node.index] = bound
        self.change(node, status="done", value=SIGNS[bound] + text_of(value))
        return value


def called(node: Node) -> str:
    """How a sentence calls a node."""
    if node.kind == LEAF:
        return f"EVAL after {node.name}" if node.is_estimate else f"leaf {node.name}"
    return "the root" if node.parent is None else f"node {node.name}"


def listed(nodes: list[Node]) -> str:
    """Some nodes by their names; a long list is cut short."""
    names = [node.move if node.name.endswith(f" {node.move}") else node.name for node in nodes]
    return ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:7])} and {len(names) - 7} more"
