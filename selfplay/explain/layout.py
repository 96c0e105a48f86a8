"""Where the nodes of a drawing stand: levels from top to bottom, parents in the middle above their children.

A tree with many leaves would be far wider than a page, so there children without children stand in columns below
their parent, each beside its position.
"""

from dataclasses import dataclass, field

from selfplay.explain.boards import Boards
from selfplay.explain.steps import Trace
from selfplay.explain.tree import CHANCE_NODE, LEAF, MAX, MIN, PLAYER, Node, Tree

WIDE = 24  # more nodes than this without children: columns
ROWS = 12  # of a column
_LETTER, _SMALL_LETTER = 9.0, 6.4  # widths of 14 and 11 pixels' letters in the widest usual font
_BETWEEN = 12  # neighbours
_TRUNK = 12  # from a column's line to its nodes


@dataclass
class Place:
    """Where a node's shape has its middle, how large it is, and what belongs to it."""

    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0
    side: float = 0.0  # room for alpha, and for beta
    board: tuple[float, float] | None = None  # its upper left corner
    edge: str = ""  # the path from the parent
    label: tuple[float, float] = (0.0, 0.0)  # of the move
    label_anchor: str = "middle"
    slash: tuple[float, float] = (0.0, 0.0)  # where a cut is marked
    trunk: float = 0.0  # in a column: its line, from x
    trunks: dict[float, str] = field(default_factory=dict)  # the lines of the columns below, by their x


@dataclass
class Layout:
    places: list[Place]
    width: float
    height: float
    rows: list[tuple[float, str]] = field(default_factory=list)  # who moves on a level, and how high it is


def text_width(text: str) -> float:
    return _LETTER * len(text)


class Arranger:
    """Computes a `Layout`."""

    def __init__(self, trace: Trace, boards: Boards):
        self.tree, self.boards = trace.tree, boards
        self.places = [Place() for _ in self.tree.nodes]
        self.measure(trace)
        ends = sum(not node.children for node in self.tree.nodes)
        self.columns = ends > WIDE
        self.grows = trace.algorithm == "mcts"  # nodes come one at a time, and numbers stand on the edges
        self.gap = 68.0 if self.grows else 50.0
        self.share = 0.6 if self.grows else 0.68  # of an edge above its label

    def measure(self, trace: Trace) -> None:
        """Sizes that hold the longest text of any step."""
        widest, sides = [3] * len(self.places), [0] * len(self.places)
        for step in trace.steps:
            for index, change in step.changes.items():
                widest[index] = max(widest[index], len(change.get("value", "")))
                sides[index] = max(sides[index], *(len(change.get(name, "")) for name in ("alpha", "beta")))
        for node, place, letters, side in zip(self.tree.nodes, self.places, widest, sides, strict=True):
            text = _LETTER * letters
            if node.kind in (MAX, MIN):
                place.width, place.height = max(56.0, 1.25 * text + 30), 46.0
            elif node.kind == CHANCE_NODE:
                place.width, place.height = max(44.0, text + 18), 44.0
            elif node.kind == PLAYER:
                place.width, place.height = max(40.0, text + 16), 32.0
            else:
                place.width, place.height = max(30.0, text + 8), 26.0
            place.side = _SMALL_LETTER * (side + 4) if side else 0.0

    def arrange(self) -> Layout:
        tree = self.tree
        rows: dict[int, float] = {}
        top = 14.0
        for level in range(max(node.level for node in tree.nodes) + 1):
            nodes = [node for node in tree.nodes if node.level == level and not self.in_column(node)]
            board = self.boards.height + 5 if self.boards.height else 0.0
            tallest = max((self.places[node.index].height for node in nodes), default=0.0)
            for node in nodes:
                place = self.places[node.index]
                place.y = top + board + (tallest if node.kind != LEAF else place.height) / 2
            rows[level] = top + board + tallest / 2
            top += (board + tallest if nodes else 0.0) + self.gap
        labels = row_labels(tree)
        margin = 16.0 + max((text_width(text) for text in labels.values()), default=0.0)
        right = self.settle(tree.root, margin)
        for node in tree.nodes[1:]:
            self.connect(node)
        bottom = max(p.y + p.height / 2 for p in self.places) + 14
        shown = [(rows[level], text) for level, text in sorted(labels.items())]
        return Layout(self.places, right + 8, bottom, shown)

    def in_column(self, node: Node) -> bool:
        """Whether a node stands in a column below its parent."""
        parent = node.parent
        return (
            self.columns
            and parent is not None
            and len(parent.children) > 1
            and not any(child.children for child in parent.children)
        )

    def span(self, node: Node) -> float:
        """The width of a node by itself."""
        place = self.places[node.index]
        label = _SMALL_LETTER * max(len(edge_text(node)), 5 if self.grows else 0) / self.share
        return max(place.width + 2 * place.side, self.boards.width, label) + _BETWEEN

    def settle(self, node: Node, left: float) -> float:
        """Places a subtree from `left` on; returns its right end."""
        place, own = self.places[node.index], self.span(node)
        if not node.children:
            place.x = left + own / 2
            self.hang_board(place)
            return left + own
        if self.in_column(node.children[0]):
            right = self.stack(node, left)
        else:
            right = left
            for child in node.children:
                right = self.settle(child, right)
        first, last = (self.places[child.index].x for child in (node.children[0], node.children[-1]))
        place.x = (left + right) / 2 if self.in_column(node.children[0]) else (first + last) / 2
        missing = max(left + own / 2 - place.x, place.x + own / 2 - right)
        if missing > 0:  # the node is wider than all that is below it
            self.shift(node, missing)
            right = max(right, place.x - missing + own / 2) + missing
        self.hang_board(place)
        return right

    def shift(self, node: Node, by: float) -> None:
        for child in node.children:
            self.shift(child, by)
        place = self.places[node.index]
        place.x += by
        if place.board:
            place.board = place.board[0] + by, place.board[1]

    def hang_board(self, place: Place) -> None:
        if self.boards.height:
            place.board = place.x - self.boards.width / 2, place.y - place.height / 2 - 5 - self.boards.height

    def stack(self, node: Node, left: float) -> float:
        """The children in columns below their parent; returns the right end."""
        above = self.places[node.index]
        count = len(node.children)
        columns = -(-count // ROWS)
        rows = -(-count // columns)
        places = [self.places[child.index] for child in node.children]
        label = (
            _SMALL_LETTER * max(5 * self.grows, *(len(edge_text(child)) for child in node.children)) + 8
        )  # UCB1 has five letters
        box = max(place.width for place in places)
        step = max(self.boards.height, places[0].height) + 10
        wide = _TRUNK + label + (self.boards.width + 8 if self.boards.width else 0) + box + 14
        top = above.y + above.height / 2 + 26
        for i, place in enumerate(places):
            trunk = left + (i // rows) * wide
            place.y = top + (i % rows) * step + step / 2
            place.x = trunk + wide - 14 - box / 2
            place.side = 0.0
            if self.boards.width:
                place.board = place.x - box / 2 - 8 - self.boards.width, place.y - self.boards.height / 2
            place.trunk = trunk - place.x
        return left + columns * wide

    def connect(self, node: Node) -> None:
        """A straight edge, its label nearer to the child; in a column a line with corners."""
        assert node.parent is not None
        here, above = self.places[node.index], self.places[node.parent.index]
        x, y = above.x, above.y + above.height / 2
        if here.trunk:
            trunk = here.x + here.trunk
            line = f"M{x:g} {y:g}V{y + 13:g}H{trunk:g}V{here.y:g}"
            here.edge = f"{line}h{_TRUNK}" if self.grows else f"M{trunk:g} {here.y:g}h{_TRUNK}"
            if not self.grows:
                above.trunks[trunk] = line  # the last one reaches lowest
            here.label, here.label_anchor = (trunk + _TRUNK + 4, here.y + 4), "start"
            here.slash = trunk + _TRUNK / 2, here.y
            return
        top = here.board[1] - 1 if here.board else here.y - here.height / 2
        here.edge = f"M{x:g} {y:g}L{here.x:g} {top:g}"
        flat = abs(here.x - x) >= 150 and not self.grows  # flat edges lie close together at their upper end
        share = 0.8 if flat else self.share
        here.label = x + share * (here.x - x), y + share * (top - y) + 4
        here.slash = x + 0.36 * (here.x - x), y + 0.36 * (top - y)


def edge_text(node: Node) -> str:
    """What stands on the way to a node: the move, and how likely it is."""
    if node.parent is None:
        return ""
    if node.parent.kind != CHANCE_NODE:
        return node.move
    chance = f"{node.probability:.3g}"
    return chance if node.move == str(1 + node.parent.children.index(node)) else f"{node.move} ({chance})"


def row_labels(tree: Tree) -> dict[int, str]:
    """Who moves on each level where all nodes agree on it."""
    found: dict[int, set[str]] = {}
    for node in tree.nodes:
        if node.kind != LEAF:
            name = f"player {node.player + 1}" if node.kind == PLAYER else node.kind.upper()
            found.setdefault(node.level, set()).add(name)
    return {level: next(iter(names)) for level, names in found.items() if len(names) == 1}


def arrange(trace: Trace, boards: Boards) -> Layout:
    return Arranger(trace, boards).arrange()
