"""Go's notations: GTP coordinates, diagrams and SGF (FF[4]), read and written.

- GTP: a letter for the column without I, a number for the row from the bottom (`D4`), and `pass`.
- Diagram: the rows from the top, separated by slashes, x Black, o White, . empty; then b or w for the player to
  move, then any moves: `.x./o../... w C3 pass`. Nothing is known of what was before a diagram: neither a ko
  nor former positions.
- SGF: the main line of the first game (the first variation everywhere). Stones may be set up (AB, AW, AE) before
  the first move only; two moves in a row by one player are refused. Without PL the player of the first move
  begins, or White after a handicap (HA).
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from envs.errors import InputError

LETTERS = "ABCDEFGHJKLMNOPQRST"  # GTP leaves out I
SGF_LETTERS = "abcdefghijklmnopqrs"
PASS = -1


class SGF(NamedTuple):
    """What the main line of an SGF game says; cells are counted from the top left, row by row."""

    columns: int
    rows: int
    komi: float | None
    setup: dict[int, int]  # cell -> 0 black, 1 white
    first: int  # who moves first
    moves: list[int]  # cells, or PASS


def cell_name(columns: int, rows: int, cell: int) -> str:
    """
    >>> cell_name(9, 9, 0), cell_name(9, 9, 80)
    ('A9', 'J1')
    """
    return f"{LETTERS[cell % columns]}{rows - cell // columns}"


def parse_cell(columns: int, rows: int, text: str) -> int:
    """The cell, or PASS, that GTP coordinates name."""
    word = text.strip().upper()
    if word == "PASS":
        return PASS
    match = re.fullmatch(r"([A-HJ-T])([1-9][0-9]?)", word, re.ASCII)
    if match:
        column, row = LETTERS.index(match[1]), int(match[2])
        if column < columns and row <= rows:
            return (rows - row) * columns + column
    last = f"{LETTERS[columns - 1]}{rows}"
    raise InputError(f"move {text!r} is not a point of the board; points are A1 to {last} (no I), or pass")


def shown(text: str) -> str:
    """The text for an error message, cut where it is long."""
    return repr(text if len(text) <= 60 else text[:57] + "…")


# --- diagrams ----------------------------------------------------------------------------------------


def is_diagram(word: str) -> bool:
    return bool(word) and set(word.lower()) <= set("xo./")


def parse_diagram(columns: int, rows: int, text: str) -> tuple[dict[int, int], int, list[str]]:
    """The stones, who moves first, and the words after that."""
    diagram, *words = text.split()
    lines = diagram.lower().split("/")
    if len(lines) != rows or any(len(line) != columns for line in lines):
        raise InputError(f"position {shown(text)}: expected {rows} rows of {columns} points (x, o or .)")
    if not words or words[0].lower() not in ("b", "w"):
        raise InputError(f"position {shown(text)}: after the diagram comes b or w, the player to move")
    stones = {cell: "xo".index(mark) for cell, mark in enumerate("".join(lines)) if mark != "."}
    return stones, "bw".index(words[0].lower()), words[1:]


# --- SGF ---------------------------------------------------------------------------------------------


def parse_sgf(text: str) -> SGF:
    """The main line of the first game in the text.

    >>> parse_sgf("(;GM[1]SZ[9]KM[6.5];B[ee];W[])")
    SGF(columns=9, rows=9, komi=6.5, setup={}, first=0, moves=[40, -1])
    """
    columns, rows, komi, first, handicap = 19, 19, None, None, 0  # a missing SZ means 19
    setup: dict[int, int] = {}
    moves: list[tuple[int, int]] = []
    seen_points = False
    for node in _main_line(text):
        if sum(name in ("B", "W") for name, _ in node) > 1:
            raise InputError(f"SGF: the node of move {len(moves) + 1} has several moves")
        placed: dict[int, str] = {}
        for name, values in sorted(node, key=lambda item: item[0] != "SZ"):  # the order in a node is free
            if name == "GM" and values[0].strip() != "1":
                raise InputError(f"SGF: GM {shown(values[0])} is another game; Go is GM[1]")
            elif name == "SZ":
                if seen_points:
                    raise InputError("SGF: SZ must come before stones and moves")
                columns, rows = _size(values[0])
            elif name == "KM":
                komi = _komi(values[0])
            elif name == "HA" and first is None and values[0].strip() not in ("", "0", "1"):
                handicap = 1
            elif name in ("AB", "AW", "AE", "PL") and moves:
                raise InputError(f"SGF: {name} after the first move is not supported")
            elif name in ("AB", "AW", "AE"):
                seen_points = True
                for cell in _cells(columns, rows, name, values):
                    if placed.setdefault(cell, name) != name:
                        where = cell_name(columns, rows, cell)
                        raise InputError(f"SGF: point {where} is in both {placed[cell]} and {name} of one node")
                    setup.pop(cell, None)
                    if name != "AE":
                        setup[cell] = int(name == "AW")
            elif name == "PL":
                if values[0].strip().lower() not in ("b", "w", "black", "white"):
                    raise InputError(f"SGF: PL {shown(values[0])} must be B or W")
                first = int(values[0].strip().lower().startswith("w"))
            elif name in ("B", "W"):
                seen_points = True
                moves.append((int(name == "W"), _move(columns, rows, name, values)))
    if first is None:
        first = moves[0][0] if moves else handicap
    for number, (player, _) in enumerate(moves):
        if player != (first + number) % 2:
            raise InputError(f"SGF: move {number + 1} is {'BW'[player]}, but the other player is to move")
    return SGF(columns, rows, komi, setup, first, [cell for _, cell in moves])


def write_sgf(record: SGF, result: str | None = None) -> str:
    """The inverse of `parse_sgf`, with the result ("B+3.5", "0" for a draw) where there is one."""
    size = str(record.columns) if record.columns == record.rows else f"{record.columns}:{record.rows}"
    parts = [f"(;FF[4]GM[1]SZ[{size}]"]
    if record.komi is not None:
        parts.append(f"KM[{np.format_float_positional(record.komi, trim='-')}]")
    for name, player in (("AB", 0), ("AW", 1)):
        points = [f"[{_sgf_point(record.columns, c)}]" for c, owner in sorted(record.setup.items()) if owner == player]
        if points:
            parts.append(name + "".join(points))
    if record.setup or record.first:
        parts.append(f"PL[{'BW'[record.first]}]")
    if result is not None:
        parts.append(f"RE[{result}]")
    for number, cell in enumerate(record.moves):
        point = "" if cell == PASS else _sgf_point(record.columns, cell)
        parts.append(f";{'BW'[(record.first + number) % 2]}[{point}]")
    return "".join(parts) + ")"


def _sgf_point(columns: int, cell: int) -> str:
    return SGF_LETTERS[cell % columns] + SGF_LETTERS[cell // columns]


_TOKEN = re.compile(r"\s*(?:([();])|([A-Za-z]+)|\[((?:[^\\\]]|\\.)*)\])", re.DOTALL)


def _main_line(text: str) -> Iterator[list[tuple[str, list[str]]]]:
    """The nodes of the main line, each a list of properties with their values."""
    node: list[tuple[str, list[str]]] | None = None
    depth, place, on_main_line, has_nodes = 0, 0, True, False
    while depth or place == 0:
        match = _TOKEN.match(text, place)
        if match is None:
            rest = text[place:].strip()
            what = f"cannot read {shown(rest)}" if rest else "the game is not closed by )"
            raise InputError(f"SGF: {what}")
        place = match.end()
        mark, name, value = match.groups()
        if depth == 0 and mark != "(":
            raise InputError(f"SGF: must begin with (; not with {shown(text.strip())}")
        if mark:
            if node is not None:
                yield _complete(node)
                node = None
            depth += {"(": 1, ")": -1}.get(mark, 0)
            on_main_line &= mark != ")"
            if mark == ";":
                has_nodes = True
                node = [] if on_main_line else None
        elif not has_nodes:
            raise InputError("SGF: the game must begin with (;")
        elif on_main_line:
            if node is None:
                raise InputError(f"SGF: {shown(match[0].strip())} stands outside of a node")
            _add(node, name, value)
    if not has_nodes:
        raise InputError("SGF: the game has no nodes")


def _add(node: list[tuple[str, list[str]]], name: str | None, value: str | None) -> None:
    if name is not None:
        node.append(("".join(letter for letter in name if letter.isupper()), []))  # FF[3] and before: "SiZe" is SZ
    elif node:
        node[-1][1].append(re.sub(r"\\(.)", r"\1", value or "", flags=re.DOTALL))
    else:
        raise InputError(f"SGF: value {shown(value or '')} has no property")


def _complete(node: list[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
    for name, values in node:
        if not values:
            raise InputError(f"SGF: property {name} has no value")
    return node


def _size(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"\s*([0-9]{1,2})(?::([0-9]{1,2}))?\s*", text, re.ASCII)
    columns, rows = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not (2 <= columns <= 19 and 1 <= rows <= 19):
        raise InputError(f"SGF: SZ {shown(text)} must be a size from 2 to 19, or columns:rows")
    return columns, rows


def _komi(text: str) -> float:
    if not re.fullmatch(r"\s*[-+]?([0-9]{1,4}(\.[0-9]*)?|\.[0-9]+)\s*", text, re.ASCII):
        raise InputError(f"SGF: KM {shown(text)} must be a number like 7.5")
    return float(text)


def _point(columns: int, rows: int, name: str, text: str) -> int:
    point = text.strip()
    if len(point) == 2 and point[0] in SGF_LETTERS[:columns] and point[1] in SGF_LETTERS[:rows]:
        return SGF_LETTERS.index(point[1]) * columns + SGF_LETTERS.index(point[0])
    last = SGF_LETTERS[columns - 1] + SGF_LETTERS[rows - 1]
    raise InputError(f"SGF: {name} {shown(text)} is not a point of the board; points are aa to {last}")


def _move(columns: int, rows: int, name: str, values: list[str]) -> int:
    if len(values) > 1:
        raise InputError(f"SGF: {name} has {len(values)} values; a move is one point")
    if values[0].strip() in ("", "tt"):  # FF[3] wrote a pass as tt
        return PASS
    return _point(columns, rows, name, values[0])


def _cells(columns: int, rows: int, name: str, values: list[str]) -> Iterator[int]:
    for value in values:
        corner, colon, opposite = value.partition(":")
        start = _point(columns, rows, name, corner)
        end = _point(columns, rows, name, opposite) if colon else start
        if end // columns < start // columns or end % columns < start % columns:
            raise InputError(f"SGF: {name} {shown(value)} must go from the upper left to the lower right corner")
        for row in range(start // columns, end // columns + 1):
            for column in range(start % columns, end % columns + 1):
                yield row * columns + column
