"""Solved positions per second: whole sets from an empty table, beside bitbully's C++ solver without its book."""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from envs.connect_four import ConnectFour
from envs.errors import InputError
from envs.othello import Othello
from selfplay.positions import generate
from selfplay.solvers.connect_four import ConnectFourSolver
from selfplay.solvers.othello import OthelloSolver

REPEATS = 5
DATA = Path(__file__).resolve().parent.parent / "tests/data"  # not there in an installed package
SETS = {"Pons L3 (late)": "Test_L3_R1.txt", "Pons L2 (middle)": "Test_L2_R1.txt"}
FORUM = "fforum-1-19.obf"
GENERATED, PLIES = 60, 14


def bench_solver(games: list[str] | None, seconds: float, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """Medians of five runs over each set, ours and the peer's in turn."""
    unknown = set(games or ()) - {"connect_four", "othello"}
    if unknown:
        raise InputError(f"no solver is measured on {min(unknown)!r}; games: connect_four, othello")
    rows = []
    if not games or "connect_four" in games:
        for name, texts in connect_four_sets().items():
            tell(f"connect_four, {name} …")
            rows += _connect_four(name, texts)
    if (not games or "othello" in games) and (DATA / "othello" / FORUM).is_file():
        tell("othello, FForum 1 to 19 …")
        rows.append(_othello())
    return rows


def connect_four_sets() -> dict[str, list[str]]:
    """Columns played, by the set's name: the test sets where they are at hand, and generated positions."""
    game, sets = ConnectFour(), {}
    for name, file in SETS.items():
        path = DATA / "connect_four" / file
        if path.is_file():
            sets[name] = [line.split()[0] for line in path.read_text().splitlines()]
    sets[f"random, {PLIES} plies"] = [
        _columns(game, position.state) for position in generate(game, GENERATED, 0, PLIES, PLIES)
    ]
    return sets


def _columns(game: ConnectFour, state: Any) -> str:
    """Some order of play that leads to the position and wins for nobody on its way; there is always one here."""
    cells = game.cells(state)[::-1]
    total = int((cells != 0).sum())
    found: list[int] = []
    heights = [0] * game.columns

    def extend(player: int) -> bool:
        if len(found) == total:
            return True
        for column in range(game.columns):
            if heights[column] < game.rows and cells[heights[column], column] == player:
                heights[column] += 1
                found.append(column)
                if extend(3 - player):
                    return True
                found.pop()
                heights[column] -= 1
        return False

    extend(1)
    return "".join(str(column + 1) for column in found)


def _connect_four(name: str, texts: list[str]) -> list[dict[str, Any]]:
    """One call from Python per position on both sides; and ours once more with the whole set in one call."""
    game = ConnectFour()
    solver = ConnectFourSolver(game)
    states: Any = game.new(len(texts))
    for i, text in enumerate(texts):
        states[i] = game.parse_position(text)
    solver.score_many(states[:1])  # compiled, or loaded from the cache, before the clock starts
    peer = _bitbully(texts)

    def one_by_one() -> list[int]:
        return [int(solver.score(state)) for state in states]

    def all_at_once() -> list[int]:
        return solver.score_many(states).tolist()

    one_by_one()
    alike = _row("connect_four", name, len(texts), solver.reset, one_by_one, peer)
    batch = _row("connect_four", f"{name}, in one call", len(texts), solver.reset, all_at_once, None)
    return [alike, batch]


def _bitbully(texts: list[str]) -> tuple[Callable[[], None], Callable[[], list[int]]] | None:
    try:
        import bitbully
    except ImportError:
        return None
    agent = bitbully.BitBully(opening_book=None)
    boards = [bitbully.Board([int(column) - 1 for column in text]) for text in texts]
    return agent.reset_transposition_table, lambda: [agent.mtdf(board) for board in boards]


def _othello() -> dict[str, Any]:
    game = Othello()
    solver = OthelloSolver(game, megabytes=64)
    lines = (DATA / "othello" / FORUM).read_text().splitlines()
    states = [game.parse_position(line) for line in lines if line.strip()]
    solver.score(states[0])
    return _row("othello", "FForum 1 to 19", len(states), solver.reset, lambda: [solver.score(s) for s in states], None)


def _row(
    game: str,
    name: str,
    count: int,
    reset: Callable[[], None],
    ours: Callable[[], list[int]],
    peer: tuple[Callable[[], None], Callable[[], list[int]]] | None,
) -> dict[str, Any]:
    times: list[list[float]] = [[], []]
    note = ""
    for _ in range(REPEATS):
        scores = []
        for index, contestant in enumerate([(reset, ours), *([peer] if peer else [])]):
            contestant[0]()
            started = time.perf_counter()
            scores.append(contestant[1]())
            times[index].append(time.perf_counter() - started)
        if len(scores) == 2 and scores[0] != scores[1]:
            note = "the two do not find the same scores"
    mine = count / statistics.median(times[0])
    theirs = count / statistics.median(times[1]) if times[1] else None
    return {
        "job": "solver",
        "game": game,
        "unit": f"{name}: positions/s",
        "ours": mine,
        "peer": "bitbully" if theirs else None,
        "theirs": theirs,
        "ratio": mine / theirs if theirs and not note else None,
        "note": note,
    }
