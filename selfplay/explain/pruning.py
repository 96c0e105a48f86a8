"""Alpha-beta as the textbook writes it, from left to right, without a table and without sorting; with Star1 at chance
nodes (Ballard 1983); and the paranoid search of games for many, which is alpha-beta of one against the rest.

    alpha: what MAX is sure of already on the way down from the root      beta: the same for MIN

A value that is returned after a cut is only a bound. What is really known of a node is kept beside it: the true value
lies in [low, high], where children that were never looked at may be worth anything.
"""

import math

from selfplay.explain.exhaustive import NAMES, is_worth, sum_sentence
from selfplay.explain.steps import Pruned, Recorder, called, listed, text_of
from selfplay.explain.tree import CHANCE_NODE, LEAF, MAX, Node, Tree
from selfplay.search.result import EXACT, LOWER, UPPER


class AlphaBeta(Recorder):
    """ALPHA-BETA-SEARCH (Russell and Norvig, ch. 5). Fail-soft: v may lie outside of the window."""

    def __init__(self, algorithm: str, tree: Tree):
        super().__init__(algorithm, tree)
        self.windows: dict[int, tuple[float, float]] = {}
        self.star1 = algorithm == "star1"
        game = tree.game  # every utility lies in [lowest, highest]: what Star1 builds on
        self.lowest, self.highest = float(game.min_utility), float(game.max_utility)

    def value(self, node: Node, alpha: float = -math.inf, beta: float = math.inf) -> float:
        if node.kind == LEAF:
            node.low = node.high = self.look_at(node, node.utilities[self.tree.max_player])
            return node.low
        if node.kind == CHANCE_NODE:
            return self.expected_value(node, alpha, beta)
        return self.max_value(node, alpha, beta) if node.kind == MAX else self.min_value(node, alpha, beta)

    def max_value(self, node: Node, alpha: float, beta: float) -> float:
        v, window = -math.inf, (alpha, beta)
        self.enter(node, v, alpha, beta)
        for child in node.children:
            value = self.value(child, alpha, beta)
            before, v = v, max(v, value)
            if v >= beta:
                self.update(node, child, before, v, alpha, beta)
                why = f"v = {text_of(v)} >= beta = {text_of(beta)}: MAX here can only make it better for MAX, and "
                self.cut(node, child, why + self.limit("MIN", beta), v, alpha, beta)
                break
            alpha = max(alpha, v)
            self.update(node, child, before, v, alpha, beta)
        return self.end(node, v, *window)

    def min_value(self, node: Node, alpha: float, beta: float) -> float:
        v, window = math.inf, (alpha, beta)
        self.enter(node, v, alpha, beta)
        for child in node.children:
            value = self.value(child, alpha, beta)
            before, v = v, min(v, value)
            if v <= alpha:
                self.update(node, child, before, v, alpha, beta)
                why = f"v = {text_of(v)} <= alpha = {text_of(alpha)}: MIN here can only make it worse for MAX, and "
                self.cut(node, child, why + self.limit("MAX", alpha), v, alpha, beta)
                break
            beta = min(beta, v)
            self.update(node, child, before, v, alpha, beta)
        return self.end(node, v, *window)

    def expected_value(self, node: Node, alpha: float, beta: float) -> float:
        """Star1: an outcome gets the window that is left if all later ones turn out at the bounds of utility."""
        total = 0.0
        self.enter(node, total, alpha, beta)
        for i, child in enumerate(node.children):
            p, later = child.probability, sum(other.probability for other in node.children[i + 1 :])
            most, least = later * self.highest, later * self.lowest
            low, high = -math.inf, math.inf  # without Star1 an average needs exact values
            if self.star1 and p > 0:
                low, high = (alpha - total - most) / p, (beta - total - least) / p
            value = self.value(child, low, high)
            before, total = total, total + p * value
            self.change(node, value=text_of(total))
            self.step("update", node, sum_sentence(self.trace, node, child, before, total), total, alpha, beta)
            if value <= low:
                why = f"even if all other outcomes were worth {text_of(self.highest)}, v would be at most "
                total += most
                why += f"{text_of(total)} <= alpha = {text_of(alpha)}"
            elif value >= high:
                why = f"even if all other outcomes were worth {text_of(self.lowest)}, v would be at least "
                total += least
                why += f"{text_of(total)} >= beta = {text_of(beta)}"
            else:
                continue
            self.cut(node, child, why[0].upper() + why[1:], total, alpha, beta)
            break
        return self.end(node, total, alpha, beta)

    # --- what is told of it --------------------------------------------------------------------------

    def limit(self, side: str, bound: float) -> str:
        """Why a value beyond alpha or beta is of no use."""
        if self.star1:  # the window of an outcome is what the average above leaves of it
            return f"beyond {text_of(bound)} nothing changes above"
        return f"{side} has {text_of(bound)} elsewhere already"

    def window(self, node: Node, alpha: float, beta: float) -> None:
        self.windows[node.index] = alpha, beta
        self.change(node, alpha=text_of(alpha), beta=text_of(beta))

    def enter(self, node: Node, v: float, alpha: float, beta: float) -> None:
        self.change(node, status="open", value=text_of(v))
        self.window(node, alpha, beta)
        window = f"alpha = {text_of(alpha)}, beta = {text_of(beta)}"
        text = f"{NAMES[node.kind]} at {called(node)} begins with v = {text_of(v)}, {window}."
        self.step("enter", node, text, v, alpha, beta)

    def update(self, node: Node, child: Node, before: float, v: float, alpha: float, beta: float) -> None:
        """One more child of MAX or MIN is known; alpha or beta has moved with it."""
        if v != before or node.best is None:
            node.best = child
        self.best_edge(node)
        self.change(node, value=text_of(v))
        known = self.windows[node.index]
        self.window(node, alpha, beta)
        text = f"{is_worth(child, self.trace)}: at {called(node)} v = {node.kind}({text_of(before)}, {text_of(child.value)}) = {text_of(v)}"
        if alpha > known[0]:
            text += f", so alpha rises to {text_of(alpha)}"
        elif beta < known[1]:
            text += f", so beta falls to {text_of(beta)}"
        self.step("update", node, f"{text}.", v, alpha, beta)

    def cut(self, node: Node, child: Node, why: str, v: float, alpha: float, beta: float) -> None:
        """The children after this one are never looked at, if there are any."""
        rest = node.children[node.children.index(child) + 1 :]
        if not rest:
            return
        which = f"the remaining {'child' if len(rest) == 1 else 'children'} ({listed(rest)})"
        reason = f"{why}, so {which} {'is' if len(rest) == 1 else 'are'} cut."
        for other in rest:
            self.trace.pruned.append(Pruned(other, reason))
            self.change(other, edge="cut")
            self.grey(other)
        self.step("cut", node, reason, v, alpha, beta)

    def grey(self, node: Node) -> None:
        """A cut subtree keeps the numbers of its leaves, in grey: nobody looked at them."""
        value = text_of(node.utilities[self.tree.max_player]) if node.kind == LEAF else ""
        self.change(node, status="cut", value=value)
        for child in node.children:
            self.grey(child)

    def end(self, node: Node, v: float, alpha: float, beta: float) -> float:
        """What is known of a node when it is left."""
        known = [child for child in node.children if child.index in self.trace.bounds]
        unseen = len(known) < len(node.children)
        if node.kind == CHANCE_NODE:
            node.low = self.average(node, known, "low", self.lowest)
            node.high = self.average(node, known, "high", self.highest)
        else:
            pick = max if node.kind == MAX else min
            node.low, node.high = pick(c.low for c in known), pick(c.high for c in known)
            if unseen and node.kind == MAX:
                node.high = math.inf
            elif unseen:
                node.low = -math.inf
        exact = math.isclose(node.low, node.high, rel_tol=1e-12, abs_tol=1e-12)
        return self.finish(node, v, EXACT if exact else UPPER if v <= alpha else LOWER)

    def average(self, node: Node, known: list[Node], end: str, unseen: float) -> float:
        """One end of what an average may be."""
        total = 0.0
        for child in node.children:
            value = getattr(child, end) if child in known else unseen
            total += child.probability * min(max(value, self.lowest), self.highest)
        return total
