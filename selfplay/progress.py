"""Progress of matches on standard error: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from typing import Any, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from selfplay import console

EVERY = 5.0  # seconds between the lines where there is no terminal


class Report:
    """Use as a context manager; `update` with what is done, `tell` for a line in between."""

    def __init__(self, what: str):
        self.what = what
        self.bar: Progress | None = None
        self.task: Any = None
        self.last = time.monotonic()
        self.first: tuple[float, int] | None = None  # when the first game was heard of, and how many there were
        if sys.stderr.isatty():
            columns = [
                BarColumn(bar_width=16),
                MofNCompleteColumn(),
                TextColumn("ETA"),
                TimeRemainingColumn(compact=True),
                TextColumn("{task.fields[score]}"),
            ]
            self.bar = Progress(*columns, console=console.err, transient=True)
            self.task = self.bar.add_task(what, total=None, score="workers get ready")
            console.err.print(what, markup=False, style="dim")

    def __enter__(self) -> Self:
        if self.bar:
            self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar:
            self.bar.stop()

    def tell(self, text: str) -> None:
        if self.bar:
            self.bar.console.print(text, style="dim", markup=False)
        else:
            sys.stderr.write(text + "\n")

    def update(self, done: int, total: int, score: str) -> None:
        if self.bar:
            self.bar.update(self.task, completed=done, total=total, score=score)
            return
        now = time.monotonic()
        started, before = self.first = self.first or (now, done)
        if now - self.last >= EVERY or done == total:
            self.last = now
            left = clock((now - started) / (done - before) * (total - done)) if done > before else "unknown"
            sys.stderr.write(f"{self.what}: {done}/{total} games, {score}, ETA {left}\n")
            sys.stderr.flush()


def clock(seconds: float) -> str:
    """
    >>> clock(3725.4), clock(59)
    ('1:02:05', '0:59')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
