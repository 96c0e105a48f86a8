"""A search as text for the terminal and as plain data for programs."""

import math
from typing import Any

from selfplay.explain.search import ALGORITHMS, root_moves
from selfplay.explain.steps import Look, Trace, text_of
from selfplay.explain.tree import CHANCE_NODE, LEAF, MAX, MIN, Node

MARKS = {MAX: "△", MIN: "▽", CHANCE_NODE: "○", LEAF: "□"}
_MOST_LINES = 100  # of a tree
_MOST_NUMBERS = 60
_MOST_CUTS = 12


def data(trace: Trace) -> dict[str, Any]:
    """One object for programs; minus and plus infinity are null."""
    tree = trace.tree
    seen = {leaf.index for leaf in trace.leaves}
    never = [] if trace.algorithm == "mcts" else [n for n in tree.nodes if n.kind == LEAF and n.index not in seen]
    return {
        "algorithm": trace.algorithm,
        "value": plain(trace.value),
        "move": trace.chosen.move if trace.chosen else None,
        "moves": [_move(trace, child) for child in tree.root.children],
        "leaves": [plain(leaf.value) for leaf in trace.leaves],
        "leaf_names": [leaf.name for leaf in trace.leaves],
        "never_visited": [leaf.name for leaf in reading_order(trace) if leaf in never],
        "pruned": [
            {
                "node": cut.node.name,
                "parent": cut.node.parent.name if cut.node.parent else None,
                "move": cut.node.move,
                "reason": cut.reason,
                "leaves": len(tree.leaves_below(cut.node)),
            }
            for cut in trace.pruned
        ],
        "nodes": [_node(trace, node) for node in tree.nodes],
        "simulations": trace.simulations,
        "steps": [
            {
                "number": step.number,
                "kind": step.kind,
                "node": step.node.name,
                "text": step.text,
                "value": plain(step.value),
                "alpha": plain(step.alpha),
                "beta": plain(step.beta),
                "changes": {tree.nodes[index].name: change for index, change in step.changes.items()},
            }
            for step in trace.steps
        ],
    }


def plain(value: Any) -> Any:
    """A number or a list of numbers that JSON can hold."""
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return None if value is None or math.isinf(value) else value


def _move(trace: Trace, child: Node) -> dict[str, Any]:
    known = child.index in trace.bounds
    return {
        "move": child.move,
        "node": child.name,
        "value": plain(child.value) if known else None,
        "bound": ("average" if trace.visits else trace.bounds[child.index]) if known else "unknown",
        "visits": trace.visits.get(child.index, 0),
    }


def _node(trace: Trace, node: Node) -> dict[str, Any]:
    known = node.index in trace.bounds
    return {
        "name": node.name,
        "kind": "eval" if node.is_estimate else node.kind,
        "player": node.player + 1 if node.player >= 0 and not node.is_estimate else None,
        "parent": node.parent.name if node.parent else None,
        "move": node.move if node.parent else None,
        "probability": node.probability if node.parent and node.parent.kind == CHANCE_NODE else None,
        "visited": known,
        "value": plain(node.value) if known else None,
        "bound": ("average" if trace.visits else trace.bounds[node.index]) if known else "unknown",
        "visits": trace.visits.get(node.index, 0),
    }


def reading_order(trace: Trace) -> list[Node]:
    """All nodes from the root down and from left to right."""
    found, waiting = [], [trace.tree.root]
    while waiting:
        node = waiting.pop()
        found.append(node)
        waiting += reversed(node.children)
    return found


def steps_text(trace: Trace) -> list[str]:
    """The numbered steps."""
    width = len(str(len(trace.steps)))
    return [f"{step.number:>{width}}. {step.text}" for step in trace.steps]


def tree_text(trace: Trace) -> list[str]:
    """The finished tree, drawn with characters."""
    looks = trace.looks()
    lines: list[str] = []
    prefix: dict[int, str] = {}
    for node in reading_order(trace):
        if len(lines) == _MOST_LINES:
            lines.append(f"… {len(trace.tree.nodes) - _MOST_LINES} more nodes")
            break
        branch = ""
        if node.parent is not None:
            above = prefix[node.parent.index]
            is_last = node is node.parent.children[-1]
            branch = above + ("└─ " if is_last else "├─ ")
            prefix[node.index] = above + ("   " if is_last else "│  ")
        else:
            prefix[node.index] = ""
        lines.append(branch + _line(node, looks[node.index]))
    return lines


def _line(node: Node, look: Look) -> str:
    chance = node.parent is not None and node.parent.kind == CHANCE_NODE
    parts = [node.move, f"({text_of(node.probability)})" if chance else ""]
    parts += [MARKS.get(node.kind, f"player {node.player + 1}:"), look.value]
    parts.append("eval" if node.is_estimate and look.value else "")
    parts.append(f"[alpha {look.alpha}, beta {look.beta}]" if look.alpha else "")
    parts.append(f"UCB1 {look.note}" if look.note else "")
    parts.append("cut" if look.status == "cut" else "")
    return " ".join(part for part in parts if part)


def summary(trace: Trace) -> list[str]:
    """The result in a few sentences."""
    root = trace.tree.root
    whose = " for MAX" if root.kind in (MAX, MIN, CHANCE_NODE) and trace.tree.opposed else ""
    lines = [f"{ALGORITHMS[trace.algorithm]}: value {text_of(trace.value)}{whose}"]
    if trace.chosen:
        lines[0] += f", best move {trace.chosen.move}"
    if trace.visits:
        return [*lines, trace.steps[-1].text]
    if root.best is not None:
        lines.append(f"moves: {', '.join(root_moves(trace))}")
    leaves = [text_of(leaf.value) for leaf in trace.leaves]
    shown = ", ".join(leaves[:_MOST_NUMBERS]) + (", …" if len(leaves) > _MOST_NUMBERS else "")
    every = len(trace.tree.leaves_below(root))
    lines.append(f"leaves looked at, in order ({len(leaves)} of {every}): {shown}")
    reasons = list(dict.fromkeys((cut.node.parent, cut.reason) for cut in trace.pruned))
    for parent, reason in reasons[:_MOST_CUTS]:
        lines.append(f"cut at {parent.name if parent else 'root'}: {reason}")
    if len(reasons) > _MOST_CUTS:
        lines.append(f"… and {len(reasons) - _MOST_CUTS} more cuts: see --steps")
    return lines
