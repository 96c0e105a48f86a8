"""Chess tables inside a search: `known` for positions of at most four men.

Castling rights and en passant are not in the tables: such positions are left to the search. So are wins that the
50-move rule would end first: a table counts plies to mate, and the clock and that number must stay within the limit.
Repetitions are not looked at; a winning line never repeats a position, but may meet one from before.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from envs.bits import ONE, lowest, popcount, without_lowest
from envs.chess_board import BISHOP, KNIGHT, QUEEN, ROOK
from envs.game import Game, State
from models.evaluation import Evaluation, Linear
from selfplay.tables.chess_build import place_men
from selfplay.tables.chess_index import (
    LETTERS,
    NO_MAN,
    NO_POSITION,
    PAWN,
    byte_of,
    directory,
    extras,
    king_tables,
    size_of,
)
from selfplay.tables.known import (
    joined,
    random_states,
    require_all,
    stamp,
    value_of_byte,
    weights_of,
)


@dataclass(frozen=True)
class ChessTables(Linear):
    """A linear evaluation that knows the positions of the tables in a folder."""

    folder: str = ""
    files: str = ""  # their names and times: other files, another object
    most_men: int = 4

    def tables(self) -> dict[str, np.ndarray]:
        offsets, entries = joined(Path(self.folder), "chess")
        return {
            **super().tables(),
            **king_tables(),
            "directory": directory(offsets),
            "entries": entries,
        }

    def known(self, game: Game, state: Any, player: Any) -> float:
        if popcount(state.mine | state.theirs) > self.most_men or state.castles != 0 or state.passant != 0:
            return np.nan
        codes_0, codes_1, third, fourth = np.int64(NO_MAN), np.int64(NO_MAN), np.int64(0), np.int64(0)
        rest = (state.mine | state.theirs) & ~state.kings
        while rest != 0:
            square = np.int64(lowest(rest))
            bit = ONE << np.uint64(square)
            rest = without_lowest(rest)
            kind = np.int64(PAWN)
            if state.knights & bit != 0:
                kind = np.int64(KNIGHT)
            elif state.diagonals & bit != 0:
                kind = np.int64(QUEEN) if state.straights & bit != 0 else np.int64(BISHOP)
            elif state.straights & bit != 0:
                kind = np.int64(ROOK)
            code = kind if state.mine & bit != 0 else kind + 6
            if codes_0 == NO_MAN:
                codes_0, third = code, square
            else:
                codes_1, fourth = code, square
        mine, theirs = np.int64(lowest(state.kings & state.mine)), np.int64(lowest(state.kings & state.theirs))
        byte = byte_of(self, self.entries, mine, theirs, codes_0, third, codes_1, fourth, np.int64(0))
        if byte == NO_POSITION or (byte > 0 and state.clock + byte - 1 > game.clock_limit):
            return np.nan
        value = value_of_byte(game, byte)
        return value if player == state.turn else -value


def with_tables(game: Game, inner: Evaluation, folder: Path) -> Evaluation:
    """The evaluation joined to the tables of a folder."""
    require_all(folder, "chess")
    return ChessTables(weights_of(game, inner), folder=str(folder.resolve()), files=stamp(folder, "chess"))


def fen_of(kind: str, tables: Any, index: int, side: int, turned: bool) -> str:
    """The position at an index; `turned` gives the stronger side to black."""
    letters = ["K", "k", *(LETTERS[man] if side == 0 else LETTERS[man].lower() for man, side in extras(kind))]
    squares = np.zeros(4, np.int64)
    codes = [man + 6 * s for man, s in extras(kind)] + [NO_MAN]
    place_men(tables, tables.directory[codes[0], codes[1]], index, squares)
    board = [["1"] * 8 for _ in range(8)]
    for letter, square in zip(letters, squares, strict=False):
        rank = int(square) // 8
        board[rank if turned else 7 - rank][int(square) % 8] = letter.swapcase() if turned else letter
    rows = []
    for row in board:
        text = "".join(row)
        for run in range(8, 1, -1):
            text = text.replace("1" * run, str(run))
        rows.append(text)
    return f"{'/'.join(rows)} {'wb'[side ^ turned]} - - 0 1"


def samples(game: Any, kind: str, tables: Any, count: int, seed: int) -> Any:
    """Random positions of a kind, either side to move, the stronger side either colour."""
    codes = [man + 6 * s for man, s in extras(kind)] + [NO_MAN]
    start, size = int(tables.directory[codes[0], codes[1]][0]), size_of(kind)

    def fill(state: State, rng: Any) -> bool:
        place = int(rng.integers(2 * size))
        if tables.entries[start + place] == NO_POSITION:
            return False
        text = fen_of(kind, tables, place % size, place // size, bool(rng.integers(2)))
        parsed = game.parse_position(text)
        for name in game.state.names:
            state[name] = parsed[name]
        return True

    return random_states(game, count, fill, seed)
