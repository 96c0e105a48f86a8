"""Which algorithms can be explained, whether they fit the game, and the whole search as a trace."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.errors import InputError
from envs.game import Game
from models.evaluation import make_evaluation
from selfplay.explain.exhaustive import MaxN, Minimax, result_sentence
from selfplay.explain.montecarlo import MCTS
from selfplay.explain.pruning import AlphaBeta
from selfplay.explain.steps import Recorder, Trace
from selfplay.explain.tree import grow
from selfplay.search.fit import require_expectation, require_two_players
from selfplay.search.result import EXACT

ALGORITHMS = {
    "minimax": "minimax",
    "alphabeta": "alpha-beta",
    "expectimax": "expectimax",
    "expectiminimax": "expectiminimax",
    "star1": "expectiminimax with Star1 pruning",
    "maxn": "max^n",
    "paranoid": "paranoid search",
    "mcts": "Monte Carlo tree search",
}
MOST_NODES = 10_000  # of a tree that is only told, not drawn


@dataclass(frozen=True)
class Options:
    """How to search: the depth (0: to the end of the game) or the simulations, and what they need."""

    algorithm: str = ""  # empty: the one that fits the game
    depth: int = 0
    simulations: int = 20
    c: float = math.sqrt(2)
    evaluation: str = "linear"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.algorithm and self.algorithm not in ALGORITHMS:
            raise InputError(f"unknown algorithm {self.algorithm!r}; algorithms: {', '.join(ALGORITHMS)}")
        if self.depth < 0:
            raise InputError(f"depth={self.depth} must be 0 (to the end of the game) or more")
        if self.simulations < 1:
            raise InputError(f"simulations={self.simulations} must be 1 or more")
        if not 0 <= self.c < math.inf:
            raise InputError(f"c={self.c} must be 0 or more")


def default_algorithm(game: Game) -> str:
    """The search that the textbook teaches for such a game."""
    if game.num_players == 1:
        return "expectimax"
    if game.num_players > 2 or not game.zero_sum:
        return "maxn"
    return "expectiminimax" if game.has_chance else "alphabeta"


def require_fit(game: Game, algorithm: str) -> None:
    """An `InputError` with a search that does fit, where this one does not."""
    if algorithm in ("minimax", "alphabeta"):
        require_two_players(game, algorithm)
    elif algorithm in ("expectimax", "expectiminimax", "star1"):
        require_expectation(game, algorithm)


def explain(game: Game, options: Options | None = None, position: str | None = None, most: int = MOST_NODES) -> Trace:
    """The search from a position of the game, step by step."""
    options = options or Options()
    algorithm = options.algorithm or default_algorithm(game)
    require_fit(game, algorithm)
    evaluation: Any = make_evaluation(options.evaluation, game)
    opposed = game.num_players == 1 or (game.num_players == 2 and bool(game.zero_sum))
    with np.errstate(over="ignore"):
        state = game.parse_position(position) if position else game.new()[0]
        if algorithm == "mcts":
            if options.simulations >= most:
                raise InputError(f"simulations={options.simulations} must be less than {most:,} to be followed by eye")
            search = MCTS(game, state, opposed, most, options.c, options.seed)
            search.run(options.simulations)
            search.trace.chosen = search.tree.root.best
            return search.trace
        drawn_as_opposed = algorithm == "paranoid" or (opposed and algorithm != "maxn")
        tree = grow(game, state, options.depth, evaluation, drawn_as_opposed, most)
    kinds: dict[str, type[Recorder]] = {"alphabeta": AlphaBeta, "star1": AlphaBeta, "paranoid": AlphaBeta, "maxn": MaxN}
    searcher: Any = kinds.get(algorithm, Minimax)(algorithm, tree)
    trace: Trace = searcher.trace
    trace.value = searcher.value(tree.root)
    trace.chosen = tree.root.best
    line = best_line(trace)
    pruned = {cut.node.index for cut in trace.pruned}
    for node in tree.nodes[1:]:
        if node.index not in pruned:
            searcher.change(node, edge="best" if node in line else "")
    searcher.step("result", tree.root, result_sentence(tree.root, trace.value, root_moves(trace)), trace.value)
    return trace


def best_line(trace: Trace) -> list:
    """The nodes that both sides' best play leads through; it ends where chance moves."""
    line, node = [], trace.tree.root.best
    while node is not None:
        line.append(node)
        node = node.best
    return line


def root_moves(trace: Trace) -> list[str]:
    """Each move of the root with its value or bound; one that only shares a bound is never called equal."""
    found = []
    for child in trace.tree.root.children:
        text = trace.bounded(child)
        if not text:
            found.append(f"{child.move} not looked at")
            continue
        exact = trace.bounds[child.index] == EXACT
        shared = not exact and child.value == trace.value
        found.append(
            f"{child.move} {'= ' if exact else ''}{text}{' (a bound, not known to be equal)' if shared else ''}"
        )
    return found
