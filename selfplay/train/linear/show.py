"""What a learned evaluation says, for people and for programs: its weights in the game's own units.

Named features come one by one with their error bars; of patterns, which have thousands of weights, the contents that
count most, as small boards. One number for all of a game's phases is the mean over them.
"""

from pathlib import Path
from typing import Any

import numpy as np

from envs.errors import InputError
from envs.game import Game
from envs.registry import make
from models.evaluation_file import find_folder, load_evaluation, read_arrays, read_description, shipped
from models.patterns import Layout, Patterns

_SYMBOLS = {3: "-xo", 4: "-xo+", 5: "-xoXO"}
_MEANINGS = {
    3: "x the mover's, o the other's, - empty",
    4: "x the mover's, o the other's, + where the next disc falls, - above it",
    5: "x the mover's men, X kings, o and O the other's, - empty",
}
_OUTSIDE = "·"


def open_evaluation(name: str) -> tuple[Path, Game, Patterns, dict[str, Any]]:
    """Folder, game, evaluation and description of a run, an evaluation's folder or a shipped one."""
    folder = find_folder(name)
    if folder is None:
        known = ", ".join(shipped()) or "none"
        raise InputError(
            f"{name!r} is no learned evaluation: give a run of --method linear, its folder, or one of {known}"
        )
    table = read_description(folder)
    game = make(table["game"])
    evaluation = load_evaluation(folder, game)
    if not isinstance(evaluation, Patterns):
        raise InputError(f"evaluation {str(folder)!r} is a {table['kind']}: its weights have no names")
    return folder, game, evaluation, table


def describe(name: str, top: int = 8) -> dict[str, Any]:
    """Plain data: `features` (name, weight, error, by phase), `patterns` and `strongest` contents, and the unit."""
    if top < 0:
        raise InputError(f"--top {top} must be 0 or more")
    folder, game, evaluation, table = open_evaluation(name)
    unit = table.get("unit") or {"name": "half log-odds", "value": 1.0}
    scale = 1.0 / float(unit["value"])
    return {
        "evaluation": str(folder),
        "game": table["game"],
        "unit": unit["name"],
        "half_log_odds_per_unit": unit["value"],
        "phases": evaluation.phases,
        "phase_starts": phase_starts(evaluation),
        "features": feature_rows(game, evaluation, read_arrays(folder).get("errors"), scale),
        "patterns": pattern_rows(game, evaluation, scale),
        "strongest": strongest(game, evaluation, scale, top),
        "meta": table.get("meta", {}),
    }


def phase_starts(evaluation: Patterns) -> list[int]:
    """The least number of men on the board in each phase."""
    phase_of = evaluation.tables()["phase_of"]
    return [int(np.argmax(phase_of == phase)) for phase in range(evaluation.phases)]


def feature_rows(game: Game, evaluation: Patterns, errors: np.ndarray | None, scale: float) -> list[dict[str, Any]]:
    """One row per named feature that counts, the mean over the phases first."""
    if not evaluation.num_weighted:
        return []
    weights = evaluation.feature_values * scale
    spread = None if errors is None or errors.shape != weights.shape else errors * scale
    rows = []
    for i, name in enumerate(game.feature_names()):
        row = {
            "name": name,
            "weight": float(weights[:, i].mean()),
            "error": None if spread is None else float(np.sqrt((spread[:, i] ** 2).sum()) / len(spread)),
            "by_phase": weights[:, i].tolist(),
            "errors_by_phase": None if spread is None else spread[:, i].tolist(),
        }
        rows.append(row)
    return rows


def cell_name(game: Game, cell: int) -> str:
    """Column and row as most board games write them, counted as in the drawings, a1 at the top left."""
    row, column = divmod(cell, game.observation_shape[-1])
    return f"{'abcdefghijklmnopqrs'[column]}{row + 1}"


def pattern_rows(game: Game, evaluation: Patterns, scale: float) -> list[dict[str, Any]]:
    """Where each pattern lies, and how much its weights matter."""
    layout, rows = evaluation.layout, []
    for number, pattern in enumerate(layout.patterns):
        own = evaluation.weight_values[:, layout.starts[number] : layout.starts[number] + layout.sizes[number]]
        learned = own[own != 0.0] * scale
        rows.append(
            {
                "cells": [cell_name(game, cell) for cell in pattern],
                "places": sum(number == other for other, _ in layout.places),
                "learned": len(learned),
                "typical": float(np.sqrt(np.mean(learned.astype(np.float64) ** 2))) if len(learned) else 0.0,
            }
        )
    return rows


def strongest(game: Game, evaluation: Patterns, scale: float, top: int) -> list[dict[str, Any]]:
    """The contents with the largest weights, each at its place on a board; mirrored ones once."""
    layout = evaluation.layout
    if not layout.entries or not top:
        return []
    weights = evaluation.weight_values * scale
    best = np.abs(weights).max(axis=0)
    best[layout.canonical != np.arange(layout.entries)] = -1.0
    found = []
    order = np.argpartition(-best, min(top, len(best) - 1))[:top]
    for entry in order[np.argsort(-best[order], kind="stable")]:
        phase = int(np.abs(weights[:, entry]).argmax())
        number = int(np.searchsorted(layout.starts, entry, side="right")) - 1
        found.append(
            {
                "weight": float(weights[phase, entry]),
                "phase": phase,
                "board": drawn(layout, number, int(entry) - layout.starts[number]),
            }
        )
    return found


def drawn(layout: Layout, number: int, contents: int) -> list[str]:
    """A board with what the pattern's cells hold, and a dot on all other cells.

    >>> drawn(Layout(make("tic_tac_toe"), ((0, 4, 8),)), 0, 1 + 2 * 3)
    ['x · ·', '· o ·', '· · -']
    """
    rows, columns = layout.game.observation_shape[-2:]
    base = int(layout.game.cell_values)
    cells = [_OUTSIDE] * (rows * columns)
    for place, cell in enumerate(layout.patterns[number]):
        value = contents // base**place % base
        cells[cell] = _SYMBOLS[base][value] if base in _SYMBOLS else "0123456789abcdefghijklmnopqrstuvwxyz"[value]
    return [" ".join(cells[columns * row : columns * (row + 1)]) for row in range(rows)]


def legend(game: Game) -> str:
    """What the signs of `drawn` mean."""
    return (
        _MEANINGS.get(int(game.cell_values), "digits are powers of two, 0 is empty")
        + f", {_OUTSIDE} not in the pattern"
    )


def boards_side_by_side(found: list[dict[str, Any]], width: int) -> list[str]:
    """The boards of `strongest` as lines of text, several in a row."""
    lines: list[str] = []
    if not found:
        return lines
    each = max(len(found[0]["board"][0]), 18) + 4
    number = max(1, width // each)
    for first in range(0, len(found), number):
        group = found[first : first + number]
        heads = [f"{item['weight']:+.2f} (phase {item['phase'] + 1})" for item in group]
        lines.append("".join(head.ljust(each) for head in heads).rstrip())
        for row in range(len(group[0]["board"])):
            lines.append("".join(item["board"][row].ljust(each) for item in group).rstrip())
        lines.append("")
    return lines
