"""Pictures of positions for `render_mode="rgb_array"`, in plain NumPy.

A game that gives its board as `cells` is drawn as a board, in the style of the table below or a neutral one; any
other game as the text that `show` gives.
"""

from typing import NamedTuple

import numpy as np

from envs.game import Game, State
from envs.glyphs import text_picture, write

Colour = tuple[int, int, int]
CELL = 48  # pixels per cell, also of the margin's double
_INK: Colour = (30, 30, 34)
_PIECES: tuple[Colour, ...] = (
    (214, 62, 54),
    (242, 190, 52),
    (66, 114, 206),
    (84, 164, 86),
    (160, 90, 180),
    (90, 90, 90),
)
_STONES: tuple[Colour, ...] = ((28, 28, 30), (246, 246, 242))


class Style(NamedTuple):
    """How a board looks; `ground` has the colours of even and odd cells."""

    frame: Colour = (64, 68, 78)
    ground: tuple[Colour, Colour] = ((232, 230, 224), (232, 230, 224))
    pieces: tuple[Colour, ...] = _PIECES
    walls: int = 0  # the cell that is no piece but fills its square, in its colour
    lines: str = "cells"  # between the cells, or "points": through their middles, "holes", "stripes", "none"
    tiles: bool = False  # pieces fill their cells, whose number is a power of two and chooses the colour


def _powers(cells: np.ndarray) -> list[list[str]]:
    return [[str(1 << cell) if cell else "" for cell in row] for row in cells.tolist()]


_WOOD: Colour = (222, 178, 104)
_MAPLE: Colour = (238, 216, 178)
_NIGHT: Colour = (28, 28, 44)
STYLES = {
    "ConnectFour": Style((24, 66, 138), ((36, 92, 176),) * 2, lines="holes"),
    "Othello": Style((24, 60, 40), ((38, 128, 78),) * 2, _STONES),
    "Go": Style((190, 146, 78), (_WOOD, _WOOD), _STONES, lines="points"),
    "Backgammon": Style(
        (70, 52, 40), ((236, 216, 178), (200, 166, 122)), ((246, 246, 242), (40, 36, 34)), lines="stripes"
    ),
    "Chess": Style((70, 52, 40), (_MAPLE, (178, 134, 98)), ((250, 248, 240), (40, 36, 34)), lines="none"),
    "Checkers": Style((70, 52, 40), (_MAPLE, (120, 84, 62)), ((48, 40, 38), (246, 240, 226)) * 2, lines="none"),
    "Pacman": Style(
        (16, 16, 28), (_NIGHT, _NIGHT), ((250, 214, 40), (222, 66, 66), (120, 130, 230), (36, 60, 170)), 4, "none"
    ),
    "TwentyFortyEight": Style((120, 110, 100), ((204, 193, 180),) * 2, tiles=True),
}


def picture(game: Game, state: State) -> np.ndarray:
    """The position as an array of rows, columns and red, green, blue, each 0 to 255."""
    with np.errstate(over="ignore"):
        cells = game.cells(state)
        if cells is None or cells.ndim != 2:
            return text_picture(game.show(state))
        style = STYLES.get(type(game).__name__, Style())
        labels = _powers(cells) if style.tiles else game.glyphs(state)
    return board_picture(np.asarray(cells), style, labels)


def board_picture(cells: np.ndarray, style: Style, labels: list[list[str]] | None = None) -> np.ndarray:
    """A board of cells, 0 for an empty one and k for a piece in the k-th colour."""
    rows, columns = cells.shape
    margin = CELL // 2
    image = np.full((rows * CELL + 2 * margin, columns * CELL + 2 * margin, 3), style.frame, np.uint8)
    board = image[margin:-margin, margin:-margin]
    for row in range(rows):
        for column in range(columns):
            square = board[row * CELL : (row + 1) * CELL, column * CELL : (column + 1) * CELL]
            square[:] = style.ground[(column if style.lines == "stripes" else row + column) % 2]
            _draw_lines(square, style, row, column, rows, columns)
            text = labels[row][column] if labels else ""
            _draw_piece(square, int(cells[row, column]), style, text)
    return image


def _draw_lines(square: np.ndarray, style: Style, row: int, column: int, rows: int, columns: int) -> None:
    line = tuple(channel * 2 // 3 for channel in style.ground[0])
    middle = CELL // 2
    if style.lines == "points":
        square[middle, (middle if column == 0 else 0) : (middle if column == columns - 1 else CELL)] = line
        square[(middle if row == 0 else 0) : (middle if row == rows - 1 else CELL), middle] = line
    elif style.lines == "holes":
        _disc(square, 0.40, style.frame)
    elif style.lines == "cells":
        square[[0, -1]] = line
        square[:, [0, -1]] = line


def _draw_piece(square: np.ndarray, cell: int, style: Style, text: str) -> None:
    colour = style.ground[0]
    if cell == style.walls != 0:
        square[:] = style.pieces[cell - 1]
        return
    if style.tiles and cell > 0:  # from light to dark red and on through the rainbow, as the numbers grow
        colour = _tile_colour(cell)
        square[3:-3, 3:-3] = colour
    elif cell > 0:
        colour = style.pieces[(cell - 1) % len(style.pieces)]
        _disc(square, 0.40, tuple(channel * 2 // 3 for channel in colour))  # type: ignore[arg-type]
        _disc(square, 0.36, colour)
    if text:
        scale = max(1, min(5, (CELL - 8) // (4 * len(text))))
        ink = _INK if sum(colour) > 380 else (245, 245, 240)
        write(square, text, (CELL - 5 * scale) // 2, (CELL - (4 * len(text) - 1) * scale) // 2, scale, ink)


def _tile_colour(exponent: int) -> Colour:
    stops = (
        (238, 228, 218),
        (242, 177, 121),
        (246, 94, 59),
        (237, 194, 46),
        (98, 160, 90),
        (60, 90, 170),
        (60, 50, 80),
    )
    place = min((exponent - 1) / 2.5, len(stops) - 1.001)
    low, share = int(place), place - int(place)
    return tuple(int(a + (b - a) * share) for a, b in zip(stops[low], stops[low + 1], strict=True))  # type: ignore


def _disc(square: np.ndarray, radius: float, colour: Colour) -> None:
    """A disc in the middle, its edge blended with what is there."""
    centre = (CELL - 1) / 2
    y, x = np.ogrid[:CELL, :CELL]
    cover = np.clip(radius * CELL - np.hypot(y - centre, x - centre) + 0.5, 0, 1)[..., None]
    square[:] = (square * (1 - cover) + np.array(colour) * cover).astype(np.uint8)
