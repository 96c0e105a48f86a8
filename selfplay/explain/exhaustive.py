"""Searches that look at every leaf, as the textbook writes them: minimax, expectimax, expectiminimax and max^n."""

import math
from typing import Any

from selfplay.explain.steps import Recorder, Trace, called, text_of
from selfplay.explain.tree import CHANCE_NODE, LEAF, MAX, MIN, Node


class Minimax(Recorder):
    """MINIMAX, and with chance nodes EXPECTIMINIMAX (Russell and Norvig, ch. 5); values are MAX's."""

    def value(self, node: Node) -> float:
        if node.kind == LEAF:
            return self.look_at(node, node.utilities[self.tree.max_player])
        if node.kind == CHANCE_NODE:
            return self.expected_value(node)
        return self.max_value(node) if node.kind == MAX else self.min_value(node)

    def max_value(self, node: Node) -> float:
        v = -math.inf
        self.enter(node, v)
        for child in node.children:
            value = self.value(child)
            before, v = v, max(v, value)
            self.update(node, child, before, v)
        return self.finish(node, v)

    def min_value(self, node: Node) -> float:
        v = math.inf
        self.enter(node, v)
        for child in node.children:
            value = self.value(child)
            before, v = v, min(v, value)
            self.update(node, child, before, v)
        return self.finish(node, v)

    def expected_value(self, node: Node) -> float:
        v = 0.0
        self.enter(node, v)
        for child in node.children:
            value = self.value(child)
            before, v = v, v + child.probability * value
            self.update_sum(node, child, before, v)
        return self.finish(node, v)

    def enter(self, node: Node, v: float) -> None:
        self.change(node, status="open", value=text_of(v))
        self.step("enter", node, f"{NAMES[node.kind]} at {called(node)} begins with v = {text_of(v)}.", v)

    def update(self, node: Node, child: Node, before: float, v: float) -> None:
        """One more child of MAX or MIN is known."""
        if v != before or node.best is None:
            node.best = child
        self.best_edge(node)
        self.change(node, value=text_of(v))
        rule = f"v = {node.kind}({text_of(before)}, {text_of(child.value)}) = {text_of(v)}"
        self.step("update", node, f"{is_worth(child, self.trace)}: at {called(node)} {rule}.", v)

    def update_sum(self, node: Node, child: Node, before: float, v: float) -> None:
        """One more outcome is known."""
        self.change(node, value=text_of(v))
        self.step("update", node, sum_sentence(self.trace, node, child, before, v), v)


def sum_sentence(trace: Trace, node: Node, child: Node, before: float, v: float) -> str:
    """An outcome's part of the average."""
    rule = f"v = {text_of(before)} + {text_of(child.probability)} * {text_of(child.value)} = {text_of(v)}"
    return (
        f"{is_worth(child, trace)} and comes with probability {text_of(child.probability)}: at {called(node)} {rule}."
    )


def is_worth(node: Node, trace: Trace) -> str:
    """A finished node's value, or the bound that is all that is known of it."""
    text = called(node)
    return f"{text[0].upper()}{text[1:]} is worth {trace.bounded(node)}"


NAMES = {MAX: "MAX", MIN: "MIN", CHANCE_NODE: "Chance"}


class MaxN(Recorder):
    """max^n (Luckhardt and Irani 1986): everybody maximises their own part of the vector; the first of equals."""

    def value(self, node: Node) -> tuple[float, ...]:
        if node.kind == LEAF:
            return self.look_at(node, node.utilities)
        if node.kind == CHANCE_NODE:
            return self.expected_value(node)
        return self.best_value(node)

    def best_value(self, node: Node) -> tuple[float, ...]:
        player, v = node.player, None
        self.change(node, status="open", value="?")
        self.step("enter", node, f"Player {player + 1} chooses at {called(node)}, by part {player + 1} of the vectors.")
        for child in node.children:
            value = self.value(child)
            better = v is None or value[player] > v[player]
            if v is None:
                rule = "it is the first, and the best so far"
            elif better:
                rule = f"{text_of(value[player])} > {text_of(v[player])}, so it is the best so far"
            else:
                sign = "=" if value[player] == v[player] else "<"
                rule = f"{text_of(value[player])} {sign} {text_of(v[player])}, so {text_of(v)} stays"
            if better:
                v, node.best = value, child
            self.best_edge(node)
            self.change(node, value=text_of(v))
            self.step("update", node, f"{is_worth(child, self.trace)}: for player {player + 1}, {rule}.", v)
        return self.finish(node, v)

    def expected_value(self, node: Node) -> tuple[float, ...]:
        v: tuple[float, ...] = (0.0,) * self.tree.game.num_players
        self.change(node, status="open", value=text_of(v))
        self.step("enter", node, f"Chance at {called(node)} begins with v = {text_of(v)}.", v)
        for child in node.children:
            value = self.value(child)
            v = tuple(a + child.probability * b for a, b in zip(v, value, strict=True))
            self.change(node, value=text_of(v))
            text = f"{is_worth(child, self.trace)} and comes with probability {text_of(child.probability)}: "
            self.step("update", node, f"{text}the average so far is {text_of(v)}.", v)
        return self.finish(node, v)


def result_sentence(root: Node, value: Any, moves: list[str]) -> str:
    """How a search ends."""
    worth = f"The root is worth {text_of(value)}"
    if root.best is None:
        return f"{worth}; chance is to move there."
    who = NAMES.get(root.kind, f"player {root.player + 1}")
    return f"{worth}; {who} plays {root.best.move}. Its moves: {', '.join(moves)}."
