"""Which patterns a game gets: named sets, chosen in the game's config (`[linear] patterns = "..."`).

Only one of each pattern's mirror images is named; the symmetries of the rules supply the others.
"""

from collections.abc import Callable

import numpy as np

from envs.errors import InputError
from envs.game import Game
from models.patterns import MOST_PLACES, Layout

Cells = tuple[int, ...]

# Othello: Buro's patterns for Logistello (1997): edges with their X-squares, corners, all lines and diagonals.
_OTHELLO = (
    "b2 a1 b1 c1 d1 e1 f1 g1 h1 g2",
    "a1 b1 c1 d1 e1 a2 b2 c2 d2 e2",
    "a1 b1 c1 a2 b2 c2 a3 b3 c3",
    "a2 b2 c2 d2 e2 f2 g2 h2",
    "a3 b3 c3 d3 e3 f3 g3 h3",
    "a4 b4 c4 d4 e4 f4 g4 h4",
    "a1 b2 c3 d4 e5 f6 g7 h8",
    "b1 c2 d3 e4 f5 g6 h7",
    "c1 d2 e3 f4 g5 h6",
    "d1 e2 f3 g4 h5",
    "e1 f2 g3 h4",
)


def _logistello(game: Game) -> list[Cells]:
    if game.observation_shape[-2:] != (8, 8):
        return _lines(game)
    return [tuple(8 * (int(c[1]) - 1) + "abcdefgh".index(c[0]) for c in text.split()) for text in _OTHELLO]


def _walks(game: Game) -> list[Cells]:
    """Random walks of eight cells, neighbours in all directions: seventy on Connect Four's board (Thill, Koch and Konen
    2012), fewer where more symmetries multiply them."""
    rows, columns = game.observation_shape[-2:]
    length, number = (8, 70) if game.cell_values <= 4 else (6, 40)
    number = min(number, MOST_PLACES // game.num_symmetries)
    rng = np.random.default_rng(2012)
    walks: list[Cells] = []
    seen: set[frozenset[int]] = set()
    for _ in range(100 * number):
        row, column = int(rng.integers(rows)), int(rng.integers(columns))
        cells = [row * columns + column]
        for _ in range(100):
            down, right = (int(step) for step in rng.integers(-1, 2, 2))
            if 0 <= row + down < rows and 0 <= column + right < columns:
                row, column = row + down, column + right
                if row * columns + column not in cells:
                    cells.append(row * columns + column)
            if len(cells) == length:
                break
        if len(cells) == min(length, rows * columns) and frozenset(cells) not in seen:
            seen.add(frozenset(cells))
            walks.append(tuple(cells))
        if len(walks) == number:
            break
    return walks


def _four_tuples(game: Game) -> list[Cells]:
    """2048: all straight lines and squares of four cells (Szubert and Jaskowski 2014)."""
    rows, columns = game.observation_shape[-2:]
    squares: list[Cells] = [
        (columns * r + c, columns * r + c + 1, columns * (r + 1) + c, columns * (r + 1) + c + 1)
        for r in range(rows - 1)
        for c in range(columns - 1)
    ]
    return _distinct(game, _lines(game, diagonals=False) + squares)


def _six_tuples(game: Game) -> list[Cells]:
    """2048: two axes and two rectangles of six cells (Wu et al. 2014; Yeh et al. 2017)."""
    if game.observation_shape[-2:] != (4, 4):
        return _four_tuples(game)
    return [(0, 1, 2, 3, 4, 5), (4, 5, 6, 7, 8, 9), (0, 1, 2, 4, 5, 6), (4, 5, 6, 8, 9, 10)]


def _lines(game: Game, diagonals: bool = True) -> list[Cells]:
    """All rows, columns and diagonals of three cells or more, at most eight long."""
    rows, columns = game.observation_shape[-2:]
    found: list[Cells] = []
    steps = ((0, 1), (1, 0), (1, 1), (1, -1)) if diagonals else ((0, 1), (1, 0))
    for down, right in steps:
        for row in range(rows):
            for column in range(columns):
                before_row, before_column = row - down, column - right
                if 0 <= before_row < rows and 0 <= before_column < columns:
                    continue
                cells = []
                r, c = row, column
                while 0 <= r < rows and 0 <= c < columns:
                    cells.append(columns * r + c)
                    r, c = r + down, c + right
                if len(cells) >= 3:
                    found.extend(tuple(cells[i : i + 8]) for i in range(max(1, len(cells) - 7)))
    return _distinct(game, found)


def _windows(game: Game) -> list[Cells]:
    """Checkers: the playable squares of all windows of four by four and three by three cells, and each square alone.
    The small ones learn from the first games, what a man is worth and whether it hangs; the large ones refine it."""
    playable = sorted({int(c) for c in game.word_cells()[0].reshape(-1) if c >= 0})
    rows, columns = game.observation_shape[-2:]
    found = []
    for size in (4, 3, 1):
        for row in range(rows - size + 1):
            for column in range(columns - size + 1):
                inside = [c for c in playable if 0 <= c // columns - row < size and 0 <= c % columns - column < size]
                if inside and len(inside) <= 8:
                    found.append(tuple(inside))
    return _distinct(game, found)


def _distinct(game: Game, patterns: list[Cells]) -> list[Cells]:
    """One of each class of mirror images."""
    images = [symmetry.cells for symmetry in game.symmetries()]
    kept: dict[frozenset[frozenset[int]], Cells] = {}
    for pattern in patterns:
        kept.setdefault(frozenset(frozenset(int(image[cell]) for cell in pattern) for image in images), pattern)
    return list(kept.values())


LAYOUTS: dict[str, Callable[[Game], list[Cells]]] = {
    "none": lambda game: [],
    "lines": _lines,
    "walks": _walks,
    "windows": _windows,
    "logistello": _logistello,
    "four_tuples": _four_tuples,
    "six_tuples": _six_tuples,
}


def make_layout(name: str, game: Game) -> Layout:
    """The layout of that name for the game."""
    if name not in LAYOUTS:
        raise InputError(f"patterns {name!r} are unknown; patterns: {', '.join(LAYOUTS)}")
    if name != "none" and not game.num_words:
        raise InputError(f"patterns {name!r}: this game has no cells for patterns; use patterns=none")
    return Layout(game, tuple(LAYOUTS[name](game)))
