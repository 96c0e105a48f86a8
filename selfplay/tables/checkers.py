"""Checkers tables inside a search: `known` for positions of at most four pieces, between moves.

In the middle of a multi-jump nothing is known; the search plays it out. Wins that the 40-move rule might end first
(moves without progress so far, plus the distance, beyond the limit) are left to the search as well.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from envs.bits import popcount
from envs.game import Game, State
from models.evaluation import Evaluation, Linear
from selfplay.tables.checkers_build import NO_POSITION, byte_of, directory, part_size, parts, place_pieces
from selfplay.tables.known import (
    joined,
    random_states,
    require_all,
    stamp,
    value_of_byte,
    weights_of,
)


@dataclass(frozen=True)
class CheckersTables(Linear):
    """A linear evaluation that knows the positions of the tables in a folder."""

    folder: str = ""
    files: str = ""  # their names and times: other files, another object
    most_pieces: int = 4

    def tables(self) -> dict[str, np.ndarray]:
        offsets, entries = joined(Path(self.folder), "checkers")
        return {
            **super().tables(),
            "directory": directory(offsets),
            "entries": entries,
        }

    def known(self, game: Game, state: Any, player: Any) -> float:
        if popcount(state.mine | state.theirs) > self.most_pieces or state.jumper != 0:
            return np.nan
        byte = byte_of(self, self.entries, state.mine, state.theirs, state.kings)
        if byte == NO_POSITION or (byte > 0 and state.quiet + byte - 1 > game.quiet_plies):
            return np.nan
        value = value_of_byte(game, byte)
        return value if player == state.turn else -value


def with_tables(game: Game, inner: Evaluation, folder: Path) -> Evaluation:
    """The evaluation joined to the tables of a folder."""
    require_all(folder, "checkers")
    return CheckersTables(weights_of(game, inner), folder=str(folder.resolve()), files=stamp(folder, "checkers"))


def samples(game: Any, kind: str, count: int, seed: int) -> Any:
    """Random positions of a kind, either side to move, by either player."""
    choices = parts(kind)

    def fill(state: State, rng: Any) -> bool:
        counts = choices[int(rng.integers(len(choices)))]
        if not place_pieces(np.array(counts), int(rng.integers(part_size(counts))), state):
            return False
        state.turn = int(rng.integers(2))
        return True

    return random_states(game, count, fill, seed)
