"""What evaluating costs inside alpha-beta: the same tree searched with each evaluation made once and made twice.

    .venv/bin/python -m benchmarks.evaluating othello othello-linear --depth 8

The difference of the two times is the cost of evaluating. Times are of the processor, not of the clock, so that other
programs on the machine count little; the positions are from random games.
"""

import argparse
import json
import sys
import time
from dataclasses import dataclass, fields
from typing import Any

from envs.errors import InputError
from envs.game import Game, State
from envs.registry import make
from models.evaluation import make_evaluation
from models.patterns import Patterns
from selfplay.openings import openings, position_after
from selfplay.search.deepening import AlphaBeta
from selfplay.search.result import Limits


@dataclass(frozen=True, eq=False)
class Twice(Patterns):
    """The same value, for double the work."""

    def evaluate(self, game: Game, state: State, scratch: Any) -> float:
        total = self.sum_of(game, state, scratch)
        return self.squashed(game, 0.5 * (total + self.sum_of(game, state, scratch)))


def searched(game: Game, evaluation: Any, positions: list[State], depth: int) -> tuple[float, int]:
    """Processor seconds and nodes of searching all positions, each with an empty table."""
    searcher = AlphaBeta(game, evaluation, Limits(depth=depth), megabytes=16)
    searcher.search(positions[0])
    seconds, nodes = 0.0, 0
    for position in positions:
        searcher.reset()
        started = time.process_time()
        nodes += searcher.search(position).nodes
        seconds += time.process_time() - started
    return seconds, nodes


def measure(game: Game, name: str, depth: int, count: int, rounds: int) -> dict[str, Any]:
    """Nodes per second, and the share of the time that evaluating takes; the best of so many rounds."""
    evaluation = make_evaluation(name, game)
    if not isinstance(evaluation, Patterns):
        raise InputError(f"eval={name}: only learned evaluations with patterns or named features")
    twice = Twice(**{field.name: getattr(evaluation, field.name) for field in fields(evaluation)})
    lines = [line for plies in (8, 20, 32) for line in openings(game, count, plies, seed=0)]
    positions = [position_after(game, line) for line in lines]
    once = min(searched(game, evaluation, positions, depth) for _ in range(rounds))
    double = min(searched(game, twice, positions, depth) for _ in range(rounds))
    none = min(searched(game, make_evaluation("none", game), positions, depth) for _ in range(rounds))
    return {
        "positions": len(positions),
        "depth": depth,
        "nodes": once[1],
        "nodes_per_second": once[1] / once[0],
        "evaluating": (double[0] - once[0]) / once[0],
        "same_tree": once[1] == double[1],
        "nodes_per_second_without": none[1] / none[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="What evaluating costs inside alpha-beta.")
    parser.add_argument("game")
    parser.add_argument("evaluation")
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--positions", type=int, default=4, help="after each of 8, 20 and 32 plies")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    try:
        report = measure(make(given.game), given.evaluation, given.depth, given.positions, given.rounds)
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
