"""Small pictures of positions for the nodes of a drawing: the board where a game gives its cells, else its text."""

import re
from html import escape
from typing import Any

import numpy as np

from envs.game import Game
from envs.game_tree import GameTree
from envs.render import STYLES, Colour, Style
from selfplay.explain.tree import Tree

_SMALLEST, _LARGEST = 5, 14  # pixels per cell
_LONGEST = 24  # characters of a position that is shown as text
_MOST_LINES = 5
_CROSS, _RING = "#b3372f", "#2b62b8"


def colour(rgb: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*rgb)


class Boards:
    """Draws the positions of one tree, all in the same size."""

    def __init__(self, tree: Tree):
        self.game = tree.game
        self.width = self.height = self.cell = 0.0
        self.is_text = False
        if isinstance(self.game, GameTree):
            return  # the drawing is the tree itself
        with np.errstate(over="ignore"):
            cells = self.game.cells(tree.root.state)
            if cells is not None and cells.ndim == 2:
                rows, columns = cells.shape
                self.cell = float(min(_LARGEST, max(_SMALLEST, 80 // max(rows, columns))))
                self.width, self.height = columns * self.cell, rows * self.cell
                return
            texts = [lines_of(self.game, node.state) for node in tree.nodes]
        longest, most = max(len(line) for lines in texts for line in lines), max(map(len, texts))
        if longest <= _LONGEST and most <= _MOST_LINES:
            self.is_text, self.width, self.height = True, 5.2 * longest + 8, 10.0 * most + 6

    def definitions(self) -> str:
        """The empty board, drawn once and used by all."""
        if not self.cell:
            return ""
        style = STYLES.get(type(self.game).__name__, Style())
        parts = [f'<rect width="{self.width:g}" height="{self.height:g}" fill="{colour(style.ground[0])}"/>']
        rows, columns = round(self.height / self.cell), round(self.width / self.cell)
        if style.ground[0] != style.ground[1]:
            striped = style.lines == "stripes"
            squares = "".join(
                f"M{x * self.cell:g} {y * self.cell:g}h{self.cell:g}v{self.cell:g}h-{self.cell:g}z"
                for y in range(rows)
                for x in range(columns)
                if (x if striped else x + y) % 2
            )
            parts.append(f'<path d="{squares}" fill="{colour(style.ground[1])}"/>')
        elif style.lines == "holes":
            holes = "".join(
                f'<circle cx="{(x + 0.5) * self.cell:g}" cy="{(y + 0.5) * self.cell:g}" r="{0.4 * self.cell:g}"/>'
                for y in range(rows)
                for x in range(columns)
            )
            parts.append(f'<g fill="#dfe7f5">{holes}</g>')
        else:
            shift = 0.5 if style.lines == "points" else 0.0
            lines = "".join(f"M{(x + shift) * self.cell:g} 0V{self.height:g}" for x in range(columns + (not shift)))
            lines += "".join(f"M0 {(y + shift) * self.cell:g}H{self.width:g}" for y in range(rows + (not shift)))
            parts.append(f'<path d="{lines}" stroke="#000" stroke-opacity=".35" stroke-width=".6" fill="none"/>')
        parts.append(
            f'<rect width="{self.width:g}" height="{self.height:g}" fill="none" stroke="#555" stroke-width=".8"/>'
        )
        return f'<symbol id="board" overflow="visible">{"".join(parts)}</symbol>'

    def draw(self, state: Any, left: float, top: float) -> str:
        """A position with its corner at that place."""
        with np.errstate(over="ignore"):
            if self.is_text:
                rows = "".join(
                    f'<tspan x="4" y="{11 + 10 * i}">{escape(line)}</tspan>'
                    for i, line in enumerate(lines_of(self.game, state))
                )
                frame = f'<rect width="{self.width:g}" height="{self.height:g}" rx="3" class="paper"/>'
                inner = f'{frame}<text class="position" xml:space="preserve">{rows}</text>'
            elif self.cell:
                inner = f'<use href="#board"/>{self._pieces(state)}'
            else:
                return ""
        return f'<g class="board" transform="translate({left:g} {top:g})">{inner}</g>'

    def _pieces(self, state: Any) -> str:
        style, found = STYLES.get(type(self.game).__name__), []
        cells, letters = np.asarray(self.game.cells(state)), self.game.glyphs(state)
        side = self.cell
        for row, column in zip(*np.nonzero(cells), strict=True):
            piece, x, y = int(cells[row, column]), (column + 0.5) * side, (row + 0.5) * side
            text = letters[row][column] if letters else ""
            if style is None and piece <= 2 and not text:
                found.append(_mark(piece, x, y, 0.3 * side))
                continue
            drawn = style or Style()
            fill = drawn.pieces[(piece - 1) % len(drawn.pieces)]
            if drawn.tiles:
                text, fill = str(1 << piece), (242, 177, 121)
            if drawn.tiles or piece == drawn.walls != 0:
                corner = f'x="{x - side / 2 + 0.5:g}" y="{y - side / 2 + 0.5:g}"'
                found.append(f'<rect {corner} width="{side - 1:g}" height="{side - 1:g}" fill="{colour(fill)}"/>')
            else:
                edge = f'stroke="#333" stroke-width="{0.05 * side:g}"'
                found.append(f'<circle cx="{x:g}" cy="{y:g}" r="{0.4 * side:g}" fill="{colour(fill)}" {edge}/>')
            if text and piece != drawn.walls:
                ink = "#222" if sum(fill) > 380 else "#fff"
                size = 0.68 * side if len(text) == 1 else 1.3 * side / len(text)
                place = f'x="{x:g}" y="{y + 0.34 * size:g}" font-size="{size:g}"'
                found.append(f'<text {place} text-anchor="middle" style="fill:{ink}">{escape(text)}</text>')
        return "".join(found)


def _mark(piece: int, x: float, y: float, radius: float) -> str:
    """Crosses and noughts, for boards without a style of their own."""
    if piece == 2:
        return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="none" stroke="{_RING}" stroke-width="1.8"/>'
    a, b, c, d = x - radius, x + radius, y - radius, y + radius
    return f'<path d="M{a:g} {c:g}L{b:g} {d:g}M{a:g} {d:g}L{b:g} {c:g}" stroke="{_CROSS}" stroke-width="1.8"/>'


def lines_of(game: Game, state: Any) -> list[str]:
    """The position as text without colours."""
    return re.sub(r"\033\[[0-9;]*m", "", game.show(state)).splitlines() or [""]
