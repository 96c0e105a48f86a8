"""Bear-off tables inside a search: `known` before a roll, when both sides are home with at most six checkers.

Both must have borne off a checker where gammons count, as the table only knows simple wins. With dice on the table the
search plays the moves and meets the next roll. The one-sided table answers `rolls_to_bear_off`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from envs.backgammon import Backgammon
from envs.errors import InputError
from envs.game import Game, State
from models.evaluation import Evaluation, Linear
from selfplay.tables.bearoff import CHECKERS, PAIR_CHECKERS, POINTS, binomials, number_of
from selfplay.tables.known import random_states, stamp, weights_of
from selfplay.tables.store import path_of, read_table

ONE_SIDED, TWO_SIDED = "one-sided", "two-sided"
_ROLLS_LEFT = 50  # before the draw by length: no bear-off of six checkers a side takes longer


@dataclass(frozen=True)
class BackgammonTables(Linear):
    """A linear evaluation that knows the two-sided bear-off."""

    folder: str = ""
    files: str = ""  # their names and times: other files, another object

    def tables(self) -> dict[str, np.ndarray]:
        table = read_table(path_of(Path(self.folder), "backgammon", TWO_SIDED))
        return {**super().tables(), "chooses": binomials(), "wins": table.arrays["wins"]}

    def side(self, state: Any, player: Any) -> Any:
        """The number of a player's position; -1 if it is not one of the table's."""
        if state.occupied[player] >> (POINTS + 1) != 0:
            return np.int64(-1)
        total, place = np.int64(0), np.int64(0)
        for i in range(POINTS):
            place += state.points[player, POINTS - i]
            if place > PAIR_CHECKERS:
                return np.int64(-1)
            total += self.chooses[place + i, i + 1]
        return total

    def known(self, game: Game, state: Any, player: Any) -> float:
        if state.left > 0 or state.turn < 0 or state.turns + _ROLLS_LEFT > game.max_turns:
            return np.nan
        if game.points and (state.points[0, 0] == 0 or state.points[1, 0] == 0):
            return np.nan
        me = np.int64(state.turn)
        mine, theirs = self.side(state, me), self.side(state, 1 - me)
        if mine <= 0 or theirs <= 0:
            return np.nan
        value = 2.0 * self.wins[mine, theirs] - 1.0
        return value if player == me else -value


def with_tables(game: Game, inner: Evaluation, folder: Path) -> Evaluation:
    """The evaluation joined to the two-sided table."""
    path = path_of(folder, "backgammon", TWO_SIDED)
    if not path.exists():
        raise InputError(
            f"no table {str(path)!r}; build it by 'selfplay tables build backgammon', or name another folder"
        )
    read_table(path)  # a damaged file is refused here
    return BackgammonTables(weights_of(game, inner), folder=str(folder.resolve()), files=stamp(folder, "backgammon"))


def rolls_to_bear_off(folder: Path, checkers: list[int]) -> tuple[float, np.ndarray]:
    """The mean number of rolls and the chances of 0, 1, .. rolls for checkers on the points 1 to 6."""
    if len(checkers) != POINTS or min(checkers) < 0 or sum(checkers) > CHECKERS:
        raise InputError(f"checkers {checkers} must be six numbers from 0 up with a sum of at most {CHECKERS}")
    table = read_table(path_of(folder, "backgammon", ONE_SIDED))
    number = int(number_of(binomials(), np.array(checkers, np.int64)))
    return float(table.arrays["means"][number]), table.arrays["chances"][number]


@dataclass(frozen=True)
class BearingOffAlone(Backgammon):
    """Backgammon in which nothing is won at the end: what is left is the number of rolls."""

    def utility(self, state: State, player: Any) -> float:
        return 0.0


@dataclass(frozen=True)
class OneSidedTables(Evaluation):
    """Knows, before a roll, how many rolls a player still needs on average: as a loss, since fewer are better.

    The roll that is about to be thrown counts if it is the player's own.
    """

    folder: str

    def tables(self) -> dict[str, np.ndarray]:
        table = read_table(path_of(Path(self.folder), "backgammon", ONE_SIDED))
        return {"chooses": binomials(), "means": table.arrays["means"]}

    def known(self, game: Game, state: Any, player: Any) -> float:
        if state.left > 0 or state.turn < 0:
            return np.nan
        total, place = np.int64(0), np.int64(0)
        for i in range(POINTS):
            place += state.points[player, POINTS - i]
            total += self.chooses[place + i, i + 1]
        return -self.means[total] + (1.0 if state.turn == player else 0.0)


def alone(game: Backgammon) -> BearingOffAlone:
    """The game by which the one-sided table is verified."""
    return BearingOffAlone(game.points, game.max_turns, game.hyper)


def one_sided(folder: Path) -> OneSidedTables:
    return OneSidedTables(str(folder.resolve()))


def samples(game: Any, checkers: int, count: int, seed: int) -> Any:
    """Random bear-offs of up to so many checkers, before a roll; somebody has borne off where gammons count."""
    most = min(checkers, game.checkers)

    def fill(state: State, rng: Any) -> bool:
        state.points[:] = 0
        for player in range(2):
            left = int(rng.integers(1, most + (0 if game.points and most == game.checkers else 1)))
            for point in rng.integers(1, POINTS + 1, left):
                state.points[player, int(point)] += 1
            state.points[player, 0] = game.checkers - left
        game.refresh(state)
        state.turn = int(rng.integers(2))
        state.turns, state.die, state.second, state.left = 0, 0, 0, 0
        return True

    return random_states(game, count, fill, seed)
