"""What evaluating costs inside alpha-beta: a search that evaluates, and the same search with the values read from a list.

    .venv/bin/python -m benchmarks.evaluating othello othello-linear --depth 8

The first search of a position writes down every value that it asks for; the second one gets them from there, so it visits
the same nodes in the same order and does all but evaluate. What it takes less is what evaluating costs, with all that it
does to the caches. Times are of the processor, not of the clock, so that other programs on the machine count little; the
positions are from random games.
"""

import argparse
import json
import sys
import time
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array, populate_array

from envs.errors import InputError
from envs.game import Game, State
from envs.registry import make
from models.evaluation import make_evaluation
from models.patterns import Patterns
from selfplay.openings import openings, position_after
from selfplay.search.deepening import AlphaBeta
from selfplay.search.result import Limits

MOST_VALUES = 16_000_000  # of one search


@intrinsic
def _array_at(typing_context: Any, address: Any) -> Any:
    array_type = types.Array(types.float64, 1, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = make_array(array_type)(context, builder)
        populate_array(
            array,
            data=builder.inttoptr(arguments[0], ir.DoubleType().as_pointer()),
            shape=[context.get_constant(types.intp, MOST_VALUES)],
            strides=[context.get_constant(types.intp, 8)],
            itemsize=context.get_constant(types.intp, 8),
            meminfo=cgutils.get_null_value(array.meminfo.type),
        )
        return array._getvalue()

    return array_type(types.int64), generate


def values_at(address: Any) -> Any:
    """The list of values as an array that may be written; the first one counts them. Compiled only."""
    raise NotImplementedError


overload(values_at)(lambda address: lambda address: _array_at(address))  # type: ignore[call-arg]


@dataclass(frozen=True, eq=False)
class Written(Patterns):
    """The same values, which are also written down."""

    values: Any = field(default_factory=lambda: np.zeros(MOST_VALUES))

    def tables(self) -> dict[str, np.ndarray]:
        return {**super().tables(), "address": np.array(self.values.ctypes.data, np.int64)}

    def evaluate(self, game: Game, state: State, scratch: Any) -> float:
        value = self.squashed(game, self.sum_of(game, state, scratch))
        values = values_at(self.address)
        values[0] += 1.0
        values[np.int64(values[0])] = value
        return value


@dataclass(frozen=True, eq=False)
class Read(Written):
    """The values that were written down, in turn."""

    def evaluate(self, game: Game, state: State, scratch: Any) -> float:
        values = values_at(self.address)
        values[0] += 1.0
        return values[np.int64(values[0])]


def searched(game: Game, evaluation: Any, position: State, depth: int) -> tuple[float, int]:
    """Processor seconds and nodes of searching a position with an empty table."""
    searcher = AlphaBeta(game, evaluation, Limits(depth=depth), megabytes=16)
    started = time.process_time()
    nodes = searcher.search(position).nodes
    return time.process_time() - started, nodes


def measure(game: Game, name: str, depth: int, count: int, rounds: int) -> dict[str, Any]:
    """Nodes per second, and the share of the time that evaluating takes; of each position the best of so many rounds."""
    evaluation = make_evaluation(name, game)
    if not isinstance(evaluation, Patterns):
        raise InputError(f"eval={name}: only learned evaluations with patterns or named features")
    same = {part.name: getattr(evaluation, part.name) for part in fields(evaluation)}
    written = Written(**same)
    read = Read(**same, values=written.values)
    lines = [line for plies in (8, 20, 32) for line in openings(game, count, plies, seed=0)]
    positions = [position_after(game, line) for line in lines]
    for one in (evaluation, written, read):  # compiles
        written.values[0] = 0
        searched(game, one, positions[0], 2)
    seconds, without, nodes, values = 0.0, 0.0, 0, 0
    for position in positions:
        times: list[tuple[float, float]] = []
        for _ in range(rounds):
            took, found = searched(game, evaluation, position, depth)
            written.values[0] = 0
            _, again = searched(game, written, position, depth)
            asked = int(written.values[0])
            written.values[0] = 0
            took_less, replayed = searched(game, read, position, depth)
            if not found == again == replayed or asked != int(written.values[0]):
                raise InputError(f"the searches differ: {found}, {again} and {replayed} nodes")
            times.append((took, took_less))
        seconds += min(took for took, _ in times)
        without += min(took_less for _, took_less in times)
        nodes, values = nodes + found, values + asked
    return {
        "positions": len(positions),
        "depth": depth,
        "nodes": nodes,
        "evaluations": values,
        "nodes_per_second": nodes / seconds,
        "evaluating": 1 - without / seconds,
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
