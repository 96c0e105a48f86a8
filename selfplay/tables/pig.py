"""Pig's table inside a search: `known` at every decision and every roll of two players.

The table has no horizon. Where fewer decisions are left than several games take, the position is left to the search.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from envs.errors import InputError
from envs.game import Game, State
from models.evaluation import Evaluation, Linear
from selfplay.tables.known import random_states, stamp, weights_of
from selfplay.tables.pig_build import turn_value
from selfplay.tables.store import path_of, read_table

_MARGIN = 4  # decisions per point of the goal that must be left before the horizon


def kind_of(game: Any) -> str:
    return f"goal{game.goal}-sides{game.sides}"


@dataclass(frozen=True)
class PigTables(Linear):
    """A linear evaluation that knows optimal play."""

    folder: str = ""
    files: str = ""  # their names and times: other files, another object
    kind: str = ""

    def tables(self) -> dict[str, np.ndarray]:
        start = read_table(path_of(Path(self.folder), "pig", self.kind)).arrays["start"]
        return {**super().tables(), "start": start}

    def known(self, game: Game, state: Any, player: Any) -> float:
        left = game.horizon - state.decisions
        own = np.int64(state.scores[state.turn])
        if left < _MARGIN * game.goal or own >= game.goal:
            return np.nan
        other = np.int64(state.scores[1 - state.turn])
        total = np.int64(state.total)
        if own + total >= game.goal:
            wins = 1.0  # only by holding: rolling is not legal then
        else:
            out = np.zeros(game.goal + game.sides + 1)
            lost = 1.0 - self.start[other, own]
            turn_value(self.start, game.goal, game.sides, own, other, lost, out)
            wins = out[total]
            if state.rolling:
                wins = lost
                for die in range(2, game.sides + 1):
                    wins += out[total + die]
                wins /= game.sides
        value = 2.0 * wins - 1.0
        return value if player == state.turn else -value


def with_tables(game: Any, inner: Evaluation, folder: Path) -> Evaluation:
    """The evaluation joined to the game's table."""
    if game.players != 2:
        raise InputError(f"pig's table is for two players, not {game.players}")
    kind = kind_of(game)
    path = path_of(folder, "pig", kind)
    if not path.exists():
        spec = f"pig:goal={game.goal},sides={game.sides}"
        raise InputError(f"no table {str(path)!r}; build it by 'selfplay tables build {spec}', or name another folder")
    read_table(path)  # a damaged file is refused here
    weights = weights_of(game, inner)
    return PigTables(weights, folder=str(folder.resolve()), files=stamp(folder, "pig"), kind=kind)


def samples(game: Any, count: int, seed: int) -> Any:
    """Random positions, decisions and rolls."""

    def fill(state: State, rng: Any) -> bool:
        scores = [int(rng.integers(game.goal)) for _ in range(2)]
        if 1 in scores:
            return False
        state.scores[:] = scores
        state.turn = int(rng.integers(2))
        state.total = int(rng.integers(game.goal - scores[state.turn] + game.sides))
        state.decisions = 0
        state.rolling = int(rng.integers(2)) if scores[state.turn] + state.total < game.goal else 0
        return bool(state.total != 1)

    return random_states(game, count, fill, seed)
