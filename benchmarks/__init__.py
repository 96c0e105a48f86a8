"""Side-by-side figures, ours and a peer's in the same run, as a ratio. Only here are peers ever imported."""

from collections.abc import Callable
from typing import Any

from benchmarks.rules import bench_rules

Row = dict[str, Any]
JOBS: dict[str, Callable[[list[str] | None, float, Callable[[str], None]], list[Row]]] = {"rules": bench_rules}
