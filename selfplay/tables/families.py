"""The games that have tables: which kinds there are, how each is built, and how a search asks for them.

A family makes the tables of one game. `evaluation` gives the search's own evaluation with `known` added, which answers
from the tables inside compiled code; everything else (moves, checks, agents) goes through that one door.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from envs.backgammon import Backgammon
from envs.checkers import Checkers
from envs.chess import Chess
from envs.errors import InputError
from envs.game import Game
from envs.pig import Pig
from models.evaluation import Evaluation
from selfplay.tables import (
    backgammon,
    bearoff,
    checkers,
    checkers_build,
    chess,
    chess_build,
    chess_index,
    pig,
    pig_build,
)
from selfplay.tables.store import path_of, read_table

Progress = Callable[[int], None]
Built = tuple[dict[str, np.ndarray], dict[str, Any]]  # the arrays, and facts for the header


class Family:
    """What the commands need to know of a game's tables."""

    name = ""
    least_men, most_men = 0, 0  # 0: the number of men does not divide the tables

    def __init__(self, game: Game):
        self.game: Any = game

    def kinds(self, men: int = 0) -> list[str]:
        """All kinds with at most so many men (0: all that can be built), in the order in which they are built."""
        raise NotImplementedError

    def needed(self, kind: str) -> list[str]:
        """The kinds that a kind looks into."""
        return []

    def build(self, kind: str, folder: Path, progress: Progress) -> Built:
        raise NotImplementedError

    def evaluation(self, inner: Evaluation, folder: Path) -> Evaluation:
        """The evaluation with `known` added; one sentence if no table is there or the evaluation can't be joined."""
        raise NotImplementedError

    def samples(self, kind: str, evaluation: Any, count: int, seed: int) -> Any:
        """Random positions that the kind covers."""
        raise NotImplementedError

    def alone(self, kind: str) -> Any:
        """For a kind that no search asks: the game and the evaluation by which it is verified."""
        return None

    def with_needed(self, chosen: list[str]) -> list[str]:
        """The chosen kinds and all that they need, in the order of building."""
        wanted, waiting = set(), list(chosen)
        while waiting:
            kind = waiting.pop()
            if kind not in wanted:
                wanted.add(kind)
                waiting += self.needed(kind)
        return [kind for kind in self.kinds() if kind in wanted]

    def _smaller(self, kind: str, folder: Path) -> dict[str, np.ndarray]:
        return {name: read_table(path_of(folder, self.name, name)).arrays["values"] for name in self.needed(kind)}


class ChessFamily(Family):
    name = "chess"
    least_men, most_men = 3, 4

    def kinds(self, men: int = 0) -> list[str]:
        return chess_index.kinds(men or self.most_men)

    def needed(self, kind: str) -> list[str]:
        return chess_index.needed(kind)

    def build(self, kind: str, folder: Path, progress: Progress) -> Built:
        values = chess_build.build(kind, self._smaller(kind, folder), progress)
        counts = chess_index.counts_of(kind, values, chess_build.men_for_counts(kind))
        longest = max(part["longest_win_plies"] for part in counts.values())
        return {"values": values}, {"men": len(kind), "counts": counts, "longest_mate": (longest + 1) // 2}

    def evaluation(self, inner: Evaluation, folder: Path) -> Evaluation:
        return chess.with_tables(self.game, inner, folder)

    def samples(self, kind: str, evaluation: Any, count: int, seed: int) -> Any:
        return chess.samples(self.game, kind, evaluation, count, seed)


class CheckersFamily(Family):
    name = "checkers"
    least_men, most_men = 2, 4

    def kinds(self, men: int = 0) -> list[str]:
        return checkers_build.kinds(men or self.most_men)

    def needed(self, kind: str) -> list[str]:
        return checkers_build.needed(kind)

    def build(self, kind: str, folder: Path, progress: Progress) -> Built:
        values = checkers_build.build(kind, self._smaller(kind, folder), progress)
        counts = checkers_build.counts_of(kind, values)
        longest = max(part["longest_win_plies"] for part in counts.values())
        return {"values": values}, {"men": len(kind) - 1, "counts": counts, "longest_win_plies": longest}

    def evaluation(self, inner: Evaluation, folder: Path) -> Evaluation:
        return checkers.with_tables(self.game, inner, folder)

    def samples(self, kind: str, evaluation: Any, count: int, seed: int) -> Any:
        return checkers.samples(self.game, kind, count, seed)


class BackgammonFamily(Family):
    name = "backgammon"

    def kinds(self, men: int = 0) -> list[str]:
        return [backgammon.ONE_SIDED, backgammon.TWO_SIDED]

    def build(self, kind: str, folder: Path, progress: Progress) -> Built:
        if kind == backgammon.ONE_SIDED:
            arrays = bearoff.build_one_sided(progress)
            facts = {"checkers": bearoff.CHECKERS, "counts": {"positions": len(arrays["means"])}}
        else:
            arrays = bearoff.build_two_sided(progress)
            facts = {"checkers": bearoff.PAIR_CHECKERS, "counts": {"positions": int(arrays["wins"].size)}}
        return arrays, facts

    def evaluation(self, inner: Evaluation, folder: Path) -> Evaluation:
        return backgammon.with_tables(self.game, inner, folder)

    def alone(self, kind: str) -> Any:
        return (backgammon.alone, backgammon.one_sided) if kind == backgammon.ONE_SIDED else None

    def samples(self, kind: str, evaluation: Any, count: int, seed: int) -> Any:
        most = bearoff.CHECKERS if kind == backgammon.ONE_SIDED else bearoff.PAIR_CHECKERS
        return backgammon.samples(self.game, most, count, seed)


class PigFamily(Family):
    name = "pig"

    def kinds(self, men: int = 0) -> list[str]:
        if self.game.players != 2:
            raise InputError(f"pig's table is for two players, not {self.game.players}")
        return [pig.kind_of(self.game)]

    def build(self, kind: str, folder: Path, progress: Progress) -> Built:
        start = pig_build.build(self.game.goal, self.game.sides, progress)
        facts = {"goal": self.game.goal, "sides": self.game.sides, "counts": {"positions": int(start.size)}}
        return {"start": start}, {**facts, "first_player_wins": float(start[0, 0])}

    def evaluation(self, inner: Evaluation, folder: Path) -> Evaluation:
        return pig.with_tables(self.game, inner, folder)

    def samples(self, kind: str, evaluation: Any, count: int, seed: int) -> Any:
        return pig.samples(self.game, count, seed)


FAMILIES: dict[type[Game], type[Family]] = {
    Chess: ChessFamily,
    Checkers: CheckersFamily,
    Backgammon: BackgammonFamily,
    Pig: PigFamily,
}


def family_of(game: Game) -> Family:
    """The tables of a game; one sentence if it has none."""
    for kind, family in FAMILIES.items():
        if type(game) is kind:
            return family(game)
    names = ", ".join(family.name for family in FAMILIES.values())
    raise InputError(f"game {type(game).__name__!r} has no tables; games that have: {names}")
