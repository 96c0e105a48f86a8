"""Monte Carlo tree search, one simulation after the other: select by UCB1, expand, play out, back up.

    UCB1(child) = w / n + C * sqrt(ln N / n)         (Auer et al. 2002; Kocsis and Szepesvari 2006)

n counts the visits of the child and N those of its parent; w sums the rewards, in [0, 1], of the player who chose the
child: 1 for a win, 1/2 for a draw. Utilities are scaled to rewards by the game's bounds; with one player, who rarely
comes near them, by the lowest and highest result so far. Moves not tried yet come first, from left to right.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from envs.game import CHANCE, Game, State
from envs.playouts import buffers, playout
from envs.rng import generator
from selfplay.explain.exhaustive import NAMES
from selfplay.explain.steps import Look, Recorder, called, text_of
from selfplay.explain.tree import LEAF, Grower, Node, copy_of, moves_of


@dataclass
class Statistics:
    """What is known of a node: how often it was visited, and each player's utilities summed up."""

    totals: np.ndarray
    untried: list[tuple[int, float]]
    visits: int = 0
    by_action: dict[int, Node] = field(default_factory=dict)


class MCTS(Recorder):
    """The tree grows by one node with every simulation."""

    def __init__(self, game: Game, state: State, opposed: bool, most: int, c: float, seed: int):
        self.grower = Grower(game, state, opposed, most)
        super().__init__("mcts", self.grower.tree)
        self.game, self.c, self.rng = game, c, generator(seed)
        self.buffers = buffers(game)
        one = game.num_players == 1
        self.low = math.inf if one else float(game.min_utility)
        self.high = -math.inf if one else float(game.max_utility)
        self.statistics: dict[int, Statistics] = {}
        self.trace.first_look = Look("absent")
        self.join(self.tree.root)

    def join(self, node: Node) -> None:
        """A new node's statistics, still empty."""
        untried = [] if node.kind == LEAF else moves_of(self.game, node.state)
        self.statistics[node.index] = Statistics(np.zeros(self.game.num_players), untried)
        self.trace.bounds[node.index] = "exact"

    def run(self, simulations: int) -> None:
        root = self.tree.root
        self.change(root, status="open", value="0/0")
        self.step("enter", root, "The tree begins with the root alone, never visited.")
        for number in range(1, simulations + 1):
            self.simulate(number)
        self.trace.visits = {index: found.visits for index, found in self.statistics.items()}
        if root.player != CHANCE:
            root.best = max(root.children, key=lambda child: (self.visits(child), self.mean(child)))
        view = self.tree.max_player if self.tree.opposed else self.chooser(root)
        best = root.best or root
        self.trace.value = float(self.statistics[best.index].totals[view]) / self.visits(best)
        for node in self.tree.nodes:
            self.change(node, status="done", edge="best" if node is root.best else "")
            node.value = float(self.statistics[node.index].totals[view]) / max(1, self.visits(node))
        counts = ", ".join(f"{child.move} {self.visits(child)}" for child in root.children)
        if root.best is None:
            text = f"After {simulations} simulations chance is to move at the root. Visits: {counts}."
        else:
            who = NAMES.get(root.kind, f"player {root.player + 1}")
            text = f"{who} plays the move with the most visits, {root.best.move}. Visits: {counts}."
        self.step("result", root, text, self.trace.value)

    def simulate(self, number: int) -> None:
        """One simulation."""
        node, path, choices = self.tree.root, [self.tree.root], []
        # 1. Select: down the tree as long as every move has been tried.
        while node.kind != LEAF:
            if node.player == CHANCE:
                following, is_new = self.roll(node)
                text = f"chance at {called(node)} gives {following.move}"
            elif self.statistics[node.index].untried:
                following, is_new = self.expand(node), True
                text = f"{called(node)} has a move not tried yet, {following.move}"
            else:
                scores = [self.ucb1(child) for child in node.children]
                following, is_new = node.children[int(np.argmax(scores))], False  # the first of equals
                choices.append({"node": node.name, "ucb1": self.scores(node), "selected": following.move})
                text = f"at {called(node)} UCB1 is highest for {following.move} ({self.printed(node, scores)})"
            path.append(following)
            if is_new:
                self.change(following, status="open", value="0/0", edge="path")
                self.step("expand", following, f"Simulation {number}, expand: {text}; its node joins the tree.")
                node = following
                break
            self.change(following, edge="path")
            self.step("select", following, f"Simulation {number}, select: {text}.")
            node = following

        # 2. Play out from there to the end of the game, at random.
        utilities, plies = self.play_out(node)
        self.low, self.high = min(self.low, utilities.min()), max(self.high, utilities.max())
        moves = f"after {plies} random {'move' if plies == 1 else 'moves'} " if plies else ""
        vector = tuple(utilities.tolist())
        result = f"{text_of(vector[self.tree.max_player])} for MAX" if self.tree.opposed else text_of(vector)
        kind = "playout" if plies else "the game is over here"
        self.step("playout", node, f"Simulation {number}, {kind}: {moves}the result is {result}.")

        # 3. Back up: one more visit and the reward for every node of the path.
        for visited in path:
            statistics = self.statistics[visited.index]
            statistics.visits += 1
            statistics.totals += utilities
        self.redraw(path)
        numbers = ", ".join(f"{called(visited)} {self.ratio(visited)}" for visited in reversed(path))
        text = f"Simulation {number}, back up: {numbers} (rewards of whoever chose the node / visits)."
        self.step("backup", self.tree.root, text)
        self.trace.simulations.append(
            {
                "number": number,
                "path": [visited.name for visited in path],
                "selections": choices,
                "utilities": utilities.tolist(),
                "plies": plies,
            }
        )
        for visited in path:
            self.change(visited, edge="")

    def expand(self, node: Node) -> Node:
        """The first child not tried yet joins the tree."""
        action, probability = self.statistics[node.index].untried.pop(0)
        return self.add(node, action, probability)

    def add(self, node: Node, action: int, probability: float) -> Node:
        child = self.grower.child(node, action, probability)
        self.statistics[node.index].by_action[action] = child
        self.join(child)
        return child

    def roll(self, node: Node) -> tuple[Node, bool]:
        """The child of a random outcome, and whether it is new."""
        statistics = self.statistics[node.index]
        outcome = int(self.game.random_outcome(node.state, *self.buffers, self.rng))
        if outcome in statistics.by_action:
            return statistics.by_action[outcome], False
        return self.add(node, outcome, dict(statistics.untried)[outcome]), True

    def play_out(self, node: Node) -> tuple[np.ndarray, int]:
        """Every player's utility at the end of a random game from here, and its length."""
        state = copy_of(self.game, node.state)
        plies = 0 if node.kind == LEAF else int(playout(self.game, state, *self.buffers, self.rng))
        return np.array([float(self.game.utility(state, p)) for p in range(self.game.num_players)]), plies

    # --- the arithmetic ------------------------------------------------------------------------------

    def visits(self, node: Node) -> int:
        return self.statistics[node.index].visits

    def chooser(self, node: Node) -> int:
        """Whose rewards a node shows: those of the player who chose it; at the root, of the player to move."""
        above = node.parent
        while above is not None and above.player < 0:
            above = above.parent
        return above.player if above is not None else max(self.tree.root.player, 0)

    def reward(self, node: Node) -> float:
        """w: the chooser's rewards so far."""
        statistics = self.statistics[node.index]
        if self.high <= self.low:
            return 0.5 * statistics.visits
        total = float(statistics.totals[self.chooser(node)])
        return (total - self.low * statistics.visits) / (self.high - self.low)

    def mean(self, node: Node) -> float:
        return self.reward(node) / self.visits(node)

    def ucb1(self, node: Node) -> float:
        """Of a child that was visited."""
        assert node.parent is not None
        n = self.visits(node)
        return self.mean(node) + self.c * math.sqrt(math.log(self.visits(node.parent)) / n)

    def scores(self, node: Node) -> list[dict]:
        """The grounds of a selection, in full."""
        return [
            {"move": c.move, "wins": self.reward(c), "visits": self.visits(c), "value": self.ucb1(c)}
            for c in node.children
        ]

    # --- what is told of it --------------------------------------------------------------------------

    def ratio(self, node: Node) -> str:
        return f"{text_of(self.reward(node))}/{self.visits(node)}"

    def printed(self, node: Node, scores: list[float]) -> str:
        return ", ".join(f"{child.move}: {score:.4f}" for child, score in zip(node.children, scores, strict=True))

    def redraw(self, path: list[Node]) -> None:
        """New numbers: on the path, and UCB1 also beside it, since N grew for all children."""
        nodes = self.tree.nodes if self.game.num_players == 1 else path  # one player: the scale may have changed
        for node in nodes:
            self.change(node, status="open", value=self.ratio(node))
            if node.player >= 0:
                for child in node.children:
                    self.change(child, note=f"{self.ucb1(child):.3f}")
