"""Draws docs/games.png, the picture of the README, with the renderer of the environments."""

from pathlib import Path

import numpy as np
from PIL import Image

from envs.registry import make
from envs.render import picture

POSITIONS = {
    "connect_four": "44354553632",
    "chess": "r1bqk2r/pppp1ppp/2n2n2/2b1p3/2B1P3/2N2N2/PPPP1PPP/R1BQK2R w KQkq - 6 5",
    "go": "D4 F6 F4 D6 E5 E6 C5 C6 G5 B5 B4 G6 H6 H7",
    "othello": "f5d6c3d3c4f4e3f3",
    "twenty_forty_eight": "512 64 8 2/128 32 4 2/16 8 2 0/4 2 0 0 score 6000",
    "checkers": "11-15 23-19 8-11 22-17 9-14",
}
SIDE, GAP, COLUMNS = 240, 16, 3


def tile(name: str, position: str) -> Image.Image:
    game = make(name)
    drawn = Image.fromarray(np.asarray(picture(game, game.parse_position(position)), np.uint8))
    drawn.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
    return drawn


def main() -> None:
    rows = -(-len(POSITIONS) // COLUMNS)
    size = COLUMNS * (SIDE + GAP) + GAP, rows * (SIDE + GAP) + GAP
    sheet = Image.new("RGB", size, (250, 250, 250))
    for index, (name, position) in enumerate(POSITIONS.items()):
        drawn = tile(name, position)
        x, y = (GAP + (index % COLUMNS) * (SIDE + GAP), GAP + (index // COLUMNS) * (SIDE + GAP))
        sheet.paste(drawn, (x + (SIDE - drawn.width) // 2, y + (SIDE - drawn.height) // 2))
    sheet.quantize(128).save(Path(__file__).parent / "games.png", optimize=True)


if __name__ == "__main__":
    main()
