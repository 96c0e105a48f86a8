"""Side-by-side figures, ours and a peer's in the same run, as a ratio. Only here are peers ever imported."""

from collections.abc import Callable
from typing import Any

from benchmarks.mcts import bench_mcts
from benchmarks.rules import bench_rules
from benchmarks.search import bench_search
from benchmarks.selfplay import bench_selfplay
from benchmarks.solver import bench_solver

Row = dict[str, Any]
JOBS: dict[str, Callable[[list[str] | None, float, Callable[[str], None]], list[Row]]] = {
    "mcts": bench_mcts,
    "rules": bench_rules,
    "search": bench_search,
    "selfplay": bench_selfplay,
    "solver": bench_solver,
}
