"""Training as it goes, on standard error: a live view on a terminal, a plain line now and then elsewhere."""

import sys
import time
from collections.abc import Mapping
from typing import Any, Self

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from selfplay import console
from selfplay.progress import clock

EVERY = 10.0  # seconds between the lines where there is no terminal
_REDRAWN = 4  # times a second
_LABELS = {
    "step": "step",
    "games": "games",
    "positions": "positions",
    "positions_per_second": "positions/s",
    "evaluations_per_second": "evaluations/s",
}
_SCORES = "scores"  # the figure that holds the last evaluation: opponent -> score from 0 to 1
_ELAPSED = "minutes"  # the figure that says how long the run has trained, former sessions of a resumed one included


class View:
    """Use as a context manager. The goal is the first of `minutes`, `steps` and `games` that is given, or none.

    `update` takes any figures by name and remembers those of former calls: `step`, `games`, `positions_per_second`,
    `evaluations_per_second`, `minutes`, losses, and `scores`, a table of opponents and scores. Others are shown under
    their own name.
    """

    def __init__(
        self, what: str, minutes: float | None = None, steps: int | None = None, games: int | None = None
    ) -> None:
        self.what = what
        goals = {_ELAPSED: minutes, "step": steps, "games": games}
        self.goal, self.total = next(((n, float(v)) for n, v in goals.items() if v is not None), ("", 0.0))
        self.figures: dict[str, Any] = {}
        self.started = time.monotonic()
        self.printed = -EVERY  # so that the first figures are a line at once
        self.first: tuple[float, float] | None = None  # time and progress of the first figures, for the time left
        self.live: Live | None = None
        if sys.stderr.isatty():
            self.bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=30),
                TextColumn("{task.percentage:>3.0f}%"),
                TextColumn("{task.fields[left]}"),
            )
            self.task = self.bar.add_task(what, total=self.total or None, left="")
            self.live = Live(self._drawing(), console=console.err, refresh_per_second=_REDRAWN, transient=False)

    def __enter__(self) -> Self:
        if self.live:
            self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.live:
            self.live.stop()
        elif self.figures and not any(error):
            self._print()  # the last figures, whenever the line before was

    def tell(self, text: str) -> None:
        """A line in between, which stays."""
        if self.live:
            self.live.console.print(text, style="dim", markup=False)
        else:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()

    def update(self, figures: Mapping[str, Any]) -> None:
        """Shows these figures, and those of former calls that they do not replace."""
        self.figures.update(figures)
        now = time.monotonic()
        if self.first is None:
            self.first = now, self.progress()
        if self.live:
            self.bar.update(self.task, completed=self.progress(), left=f"ETA {self.time_left()}" if self.goal else "")
            self.live.update(self._drawing())
        elif now - self.started - self.printed >= EVERY:
            self._print()

    def progress(self) -> float:
        """How much of the goal is reached, in its unit."""
        if self.goal == _ELAPSED:
            return min(self.total, self._minutes())
        return float(self.figures.get(self.goal, 0.0))

    def time_left(self) -> str:
        """Until the goal, at the pace of this session."""
        done = self.progress()
        if self.goal == _ELAPSED:
            return clock(60 * (self.total - done))
        since, before = self.first or (0.0, done)
        if done <= before:
            return "unknown"
        return clock(max(0.0, (time.monotonic() - since) / (done - before) * (self.total - done)))

    def line(self) -> str:
        """All figures in one line."""
        goal = f" of {self.total:g} minutes, ETA {self.time_left()}" if self.goal == _ELAPSED else ""
        goal = f", ETA {self.time_left()}" if self.goal and not goal else goal
        parts = [f"{clock(60 * self._minutes())}{goal}"]
        parts += [f"{label} {text}" for label, text in self._rows()]
        parts += [f"{opponent} {score:.1%}" for opponent, score in self.figures.get(_SCORES, {}).items()]
        return f"{self.what}: " + ", ".join(parts)

    def _minutes(self) -> float:
        return float(self.figures.get(_ELAPSED, (time.monotonic() - self.started) / 60))

    def _rows(self) -> list[tuple[str, str]]:
        known = [(label, self.figures[name]) for name, label in _LABELS.items() if name in self.figures]
        others = [(n, v) for n, v in self.figures.items() if n not in _LABELS and n not in (_SCORES, _ELAPSED)]
        return [(label, _text(value)) for label, value in known + others]

    def _print(self) -> None:
        self.printed = time.monotonic() - self.started
        sys.stderr.write(self.line() + "\n")
        sys.stderr.flush()

    def _drawing(self) -> Group:
        table = Table.grid(padding=(0, 2))
        rows = self._rows()
        for start in range(0, len(rows), 3):  # three figures a row fit 80 columns
            cells = [Text.assemble((f"{label} ", "dim"), text) for label, text in rows[start : start + 3]]
            table.add_row(*cells)
        parts: list[Any] = [self.bar, table]
        scores = self.figures.get(_SCORES, {})
        if scores:
            parts.append(Text("last evaluation: ", "dim") + Text(", ".join(f"{o} {s:.1%}" for o, s in scores.items())))
        return Group(*parts)


def _text(value: Any) -> str:
    """
    >>> _text(123456), _text(1234.5), _text(0.01234), _text("bf16")
    ('123,456', '1,234', '0.0123', 'bf16')
    """
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return str(value)
