"""What the commands share at the terminal: one sentence for bad input, and a word while code compiles."""

import functools
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

_SHORT = 20
_FILE_WIDTH = 160  # where the output is a file or a pipe
out = Console(highlight=False, width=None if sys.stdout.isatty() else _FILE_WIDTH)
err = Console(stderr=True, highlight=False)


def print_json(data: dict[str, Any]) -> None:
    """One JSON object on standard output."""
    sys.stdout.write(json.dumps(data) + "\n")
    sys.stdout.flush()  # here a full disk is still heard of


def say(as_json: bool, data: dict[str, Any], text: str) -> None:
    """The same for programs or for people."""
    if as_json:
        print_json(data)
    else:
        out.print(text, markup=False, soft_wrap=True)


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error with the time left; yields the function to call with what is done, of how many."""
    with Progress(
        TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=err, transient=True
    ) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


def table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """A table for people; numbers to the right. On a narrow terminal long texts are folded, short ones never."""
    drawn = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for index, column in enumerate(columns):
        numeric = all(_is_number(row[index]) for row in rows) and bool(rows)
        short = all(len(row[index]) <= _SHORT for row in rows)
        drawn.add_column(column, justify="right" if numeric else "left", overflow="fold", no_wrap=short)
    for row in rows:
        drawn.add_row(*row)
    out.print(drawn)


def _is_number(text: str) -> bool:
    return (
        not text or text.strip(" +-%x").replace(",", "").replace(".", "").replace("e", "").replace("–", "0").isdigit()
    )


@functools.lru_cache(maxsize=1)
def announce_compilation(after: float = 0.4) -> None:
    """Says once per function and game on standard error that it is being compiled, if that takes a while."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        return
    from numba.core import event

    from envs.compiled import CompiledType
    from envs.registry import name_of

    class Listener(event.Listener):
        depth = 0
        timer: threading.Timer | None = None

        def on_start(self, event: Any) -> None:
            self.depth += 1
            if self.depth > 1:
                return
            games = [a.identity for a in event.data["args"] if isinstance(a, CompiledType)]
            name = event.data["dispatcher"].py_func.__name__
            if games:
                game = name_of(games[0].module, games[0].name, dict(games[0].constants))
                text = f"compiling {name.replace('_', ' ')} for {game}, once"
                self.timer = threading.Timer(after, lambda: err.print(text, style="dim"))
                self.timer.daemon = True
                self.timer.start()

        def on_end(self, event: Any) -> None:
            self.depth -= 1
            if self.depth == 0 and self.timer is not None:
                self.timer.cancel()
                self.timer = None

    event.register("numba:compile", Listener())
