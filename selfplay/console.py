"""What the commands share at the terminal: one sentence for bad input, and a word while code compiles."""

import json
import os
import sys
import threading
from typing import Any

from rich.console import Console
from rich.table import Table

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def print_json(data: dict[str, Any]) -> None:
    """One JSON object on standard output."""
    sys.stdout.write(json.dumps(data) + "\n")


def table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """A table for people; numbers to the right."""
    drawn = Table(title=title or None)
    for index, column in enumerate(columns):
        numeric = all(_is_number(row[index]) for row in rows) and bool(rows)
        drawn.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*row)
    out.print(drawn)


def _is_number(text: str) -> bool:
    return text.strip(" +-%x").replace(",", "").replace(".", "").replace("e", "").replace("–", "0").isdigit()


def announce_compilation(after: float = 0.4) -> None:
    """Says once per function and game on standard error that it is being compiled, if that takes a while."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        return
    from numba.core import event

    from envs.compiled import CompiledType

    class Listener(event.Listener):
        depth = 0
        timer: threading.Timer | None = None

        def on_start(self, event: Any) -> None:
            self.depth += 1
            if self.depth > 1:
                return
            games = [a.identity.name for a in event.data["args"] if isinstance(a, CompiledType)]
            name = event.data["dispatcher"].py_func.__name__
            if games:
                text = f"compiling {name.replace('_', ' ')} for {games[0]}, once …"
                self.timer = threading.Timer(after, lambda: err.print(text, style="dim"))
                self.timer.daemon = True
                self.timer.start()

        def on_end(self, event: Any) -> None:
            self.depth -= 1
            if self.depth == 0 and self.timer is not None:
                self.timer.cancel()
                self.timer = None

    event.register("numba:compile", Listener())
