"""What every search returns, and what it may spend.

One sign convention: values are from the view of the player to move at that node.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from envs.errors import InputError
from envs.game import TERMINAL, Game, State

# What a reported value says about the true one.
EXACT, UPPER, LOWER, UNKNOWN, AVERAGE = "exact", "upper", "lower", "unknown", "average"


@dataclass(frozen=True)
class MoveReport:
    """What a search knows about one move at the root.

    `bound` says how the value relates to the true one: exact, an upper or lower bound (pruning stopped looking), an
    average of random games (Monte Carlo), or unknown. Two moves that share a bound are not known to be equal.
    """

    action: int
    value: float
    bound: str = EXACT
    visits: int = 0
    line: tuple[int, ...] = ()


@dataclass(frozen=True)
class Result:
    """The choice and its grounds. `values` holds each player's value where a search knows them (max^n)."""

    action: int
    value: float
    moves: tuple[MoveReport, ...]
    line: tuple[int, ...]
    nodes: int
    depth: int
    seconds: float
    values: tuple[float, ...] = ()
    proven: bool = False

    @property
    def best(self) -> list[int]:
        """All moves known to be as good as the chosen one."""
        return [m.action for m in self.moves if m.bound == EXACT and m.value == self.value] or [self.action]


@dataclass(frozen=True)
class Limits:
    """When to stop: whatever comes first. Zero means no such limit."""

    depth: int = 0
    nodes: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        for name in ("depth", "nodes", "seconds"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name}={getattr(self, name)} must be 0 (no limit) or more")


@contextmanager
def clock(work: Any, seconds: float) -> Iterator[float]:
    """Sets `work.stop` when the time is over; yields the start. Compiled code looks at the flag at every node.

    Compiled functions run without the interpreter's lock, so the timer's thread gets through at once.
    """
    started = time.perf_counter()
    work.stop = 0
    timer = None
    if seconds > 0:
        timer = threading.Timer(seconds, _set_stop, (work,))
        timer.daemon = True
        timer.start()
    try:
        yield started
    finally:
        if timer is not None:
            timer.cancel()


def _set_stop(work: Any) -> None:
    work.stop = 1


def require_player(game: Game, state: State) -> int:
    """The player to move; an `InputError` where nobody has to choose."""
    player = int(game.player(state))
    if player == TERMINAL:
        raise InputError("the game is over in this position: there is no move to choose")
    if player < 0:
        raise InputError("chance is to move in this position: give one after its outcome, where a player chooses")
    return player
