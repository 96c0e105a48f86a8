"""Building, listing and checking tables: what `selfplay tables` does."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from envs.errors import InputError
from envs.game import Game
from selfplay.tables.families import Family, family_of
from selfplay.tables.probe import Prober
from selfplay.tables.store import default_folder, found, path_of, prepare_folder, read_header, write_table

# Called with the kind, how many of all kinds are done, their number, and the pass that the kind is in.
Progress = Callable[[str, int, int, int], None]

_CLOSE = 1e-12  # of the utilities' range; a ply of distance is 1e-9


def chosen_kinds(family: Family, kinds: list[str] | None, men: int) -> list[str]:
    """The kinds that a user asked for; one sentence for unknown ones."""
    if men and not family.least_men <= men <= family.most_men:
        accepted = f"from {family.least_men} to {family.most_men}" if family.most_men else "left out for this game"
        raise InputError(f"--men {men} must be {accepted}")
    known = family.kinds()
    if not kinds:
        return family.kinds(men)
    by_name = {name.lower(): name for name in known}
    for kind in kinds:
        if kind.lower() not in by_name:
            names = ", ".join(known[:40]) + (", …" if len(known) > 40 else "")
            raise InputError(f"unknown kind {kind!r} of {family.name} tables; kinds: {names}")
    return [by_name[kind.lower()] for kind in kinds]


def build(
    game: Game,
    kinds: list[str] | None = None,
    men: int = 0,
    folder: Path | None = None,
    progress: Progress = lambda *_: None,
) -> list[dict[str, Any]]:
    """Builds the chosen kinds and those that they need; finished files are kept. A row for each."""
    family, folder = family_of(game), folder or default_folder()
    todo = family.with_needed(chosen_kinds(family, kinds, men))
    prepare_folder(folder, family.name)
    rows = []
    for number, kind in enumerate(todo):
        path = path_of(folder, family.name, kind)
        started = time.perf_counter()
        progress(kind, number, len(todo), 0)
        built = not path.exists()
        if built:

            def step(n: int, kind: str = kind, number: int = number) -> None:
                progress(kind, number, len(todo), n)

            arrays, facts = family.build(kind, folder, step)
            write_table(path, family.name, kind, arrays, facts)
        header = read_header(path)  # a damaged file of an earlier run is refused
        seconds = time.perf_counter() - started
        rows.append({**_row(header, path), "built": built, "seconds": round(seconds, 3) if built else 0.0})
    return rows


def info(game: Game, kinds: list[str] | None = None, folder: Path | None = None) -> list[dict[str, Any]]:
    """What the tables of a folder say about themselves, their checksums proven."""
    family, folder = family_of(game), folder or default_folder()
    wanted = chosen_kinds(family, kinds, 0) if kinds else None
    rows = []
    for path in found(folder, family.name):
        header = read_header(path)
        if wanted is None or header["kind"] in wanted:
            rows.append(_row(header, path))
    missing = [kind for kind in wanted or [] if kind not in {row["kind"] for row in rows}]
    if missing:
        raise InputError(f"no table {missing[0]!r} of {family.name} in the folder {str(folder)!r}")
    return rows


def _row(header: dict[str, Any], path: Path) -> dict[str, Any]:
    facts = {key: value for key, value in header.items() if key not in ("arrays", "blocks")}
    return {**facts, "file": str(path), "bytes": path.stat().st_size}


def verify(
    game: Game,
    kinds: list[str] | None = None,
    folder: Path | None = None,
    samples: int = 1000,
    seed: int = 0,
    progress: Progress = lambda *_: None,
) -> list[dict[str, Any]]:
    """Compares random entries of each table with a move, or a roll, looked ahead by the game's own rules.

    An entry is right if it is one more than its best successor's (or the mean over the rolls). The draw rules are left
    out, as the tables leave them out. A row for each kind: how many were compared, and the positions that disagree.
    """
    rules: Any = game.for_perft()
    family, folder = family_of(rules), folder or default_folder()
    current = set(family.kinds())  # pig: of this goal and die
    rows = [row for row in info(game, kinds, folder) if row["kind"] in current]
    if not rows:
        raise InputError(f"no tables for {family.name} in the folder {str(folder)!r}, so nothing to verify")
    shared: Prober | None = None
    results = []
    for number, row in enumerate(rows):
        kind = row["kind"]
        progress(kind, number, len(rows), 0)
        alone = family.alone(kind)
        if alone is None and shared is None:
            shared = Prober(rules, folder)
        prober: Any = Prober(rules, folder, alone) if alone is not None else shared
        states = family.samples(kind, prober.evaluation, samples, seed)
        disagree = [_describe(prober.game, state) for state in states if not _agrees(prober.game, prober, state)]
        results.append({"kind": kind, "compared": len(states), "wrong": disagree})
    return results


def _describe(game: Game, state: Any) -> str:
    return game.position_text(state) or game.show(state)


def _agrees(game: Game, prober: Prober, state: Any) -> bool:
    player = int(game.player(state))
    viewer = int(state.turn) if player < 0 else player
    with np.errstate(over="ignore"):
        entry = float(prober.evaluation.known(game, state, viewer))
    looked = prober.value(state, viewer, ask=False)
    tolerance = _CLOSE * (game.max_utility - game.min_utility)
    return bool(abs(entry - looked) <= (1e3 * tolerance if game.has_chance else tolerance))
