"""Asking the tables from Python: the value of a position, and the best move.

    covers(game, state)      whether the tables know the position, or all that can follow its next move or roll
    value(game, state)       its value for the player to move (before a roll: for the one who rolls), or None
    best_move(game, state)   a move that keeps the value and wins fastest or loses slowest, or None

`folder` is where the tables are: `$SELFPLAY_TABLES`, else `tables` in the working folder.
"""

import functools
from pathlib import Path
from typing import Any

import numpy as np

from envs.compiled import njit
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, Game, State, legal_actions
from models.evaluation import Nothing
from selfplay.search.wins import plain_value, plies_to_end, relative
from selfplay.tables.families import FAMILIES, family_of
from selfplay.tables.known import stamp
from selfplay.tables.store import default_folder

_LEVELS = 10  # a roll, four checkers, the next roll; and some room
_TURNS = np.int64(2)  # how many turns to play out where nothing is known: en passant needs one


@njit
def ahead(game, evaluation, states, moves, chances, level, player, turns, ask):
    """The value of states[level] for a player: what is known of it (unless not to `ask`), or of all that can follow.

    NaN where that is not enough. Distances count moves: the parts of a compound move count as one.
    """
    yes = np.int64(1)  # a literal would be a type of its own, and compile everything once more
    state = states[level]
    mover = np.int64(game.player(state))
    if mover == TERMINAL:
        return game.utility(state, player)
    if ask != 0:
        value = evaluation.known(game, state, player)
        if not np.isnan(value):
            return value
    if level + 1 >= len(states) or turns <= 0:
        return np.nan
    if mover == CHANCE:
        total = 0.0
        count = game.outcomes(state, moves[level], chances[level])
        for i in range(count):
            states[level + 1] = states[level]
            game.play(states[level + 1], moves[level, i])
            value = ahead(game, evaluation, states, moves, chances, level + 1, player, turns, yes)
            if np.isnan(value):
                return value
            total += chances[level, i] * value
        return total
    best = -np.inf
    for i in range(game.actions(state, moves[level])):
        states[level + 1] = states[level]
        game.play(states[level + 1], moves[level, i])
        same = game.compound_moves and game.player(states[level + 1]) == mover
        rest = turns if same else turns - 1
        value = ahead(game, evaluation, states, moves, chances, level + 1, mover, rest, yes)
        if np.isnan(value):
            return value
        if not game.has_chance and not same:
            value = relative(game, value, -1)
        best = max(best, value)
    return best if mover == player else -best


class Prober:
    """The tables of one game in one folder."""

    def __init__(self, game: Game, folder: Path, alone: Any = None):
        """`alone` is a pair of functions for tables that no search asks: the game, and the evaluation by folder."""
        self.game: Any = alone[0](game) if alone else game
        self.evaluation: Any = alone[1](folder) if alone else family_of(game).evaluation(Nothing(), folder)
        self.states = game.new(_LEVELS)
        width = max(game.max_legal, game.num_outcomes)
        self.moves = np.zeros((_LEVELS, width), np.int64)
        self.chances = np.zeros((_LEVELS, max(game.num_outcomes, 1)))

    def value(self, state: State, player: int, ask: bool = True) -> float:
        """The value for a player, wins by their distance; NaN if it is not known."""
        self.states[0] = state
        arguments = (self.states, self.moves, self.chances, np.int64(0), np.int64(player), _TURNS, np.int64(ask))
        return float(ahead(self.game, self.evaluation, *arguments))

    def moves_of(self, state: State) -> list[tuple[int, float]]:
        """Each legal move with its value for the mover; empty where not all are known."""
        mover = int(self.game.player(state))
        found, child = [], self.game.new(2)
        for action in legal_actions(self.game, state):
            child[0] = state
            with np.errstate(over="ignore"):
                self.game.play(child[0], action)
                same = self.game.compound_moves and int(self.game.player(child[0])) == mover
            value = self.value(child[0], mover)
            if np.isnan(value):
                return []
            if not self.game.has_chance and not same:
                value = float(relative(self.game, value, -1))
            found.append((action, value))
        return found


@functools.lru_cache(maxsize=8)
def _prober(game: Game, folder: Path, files: str) -> Prober:
    return Prober(game, folder)


def prober(game: Game, folder: Path | None = None) -> Prober | None:
    """The tables that fit a game; None where there are none."""
    family = FAMILIES.get(type(game))
    if family is None:
        return None
    folder = folder or default_folder()
    files = stamp(folder, family.name)
    try:
        return _prober(game, folder, files) if files else None
    except InputError as error:
        if "no table" in str(error) or "two players" in str(error):
            return None
        raise  # a damaged file


def _mover(game: Game, state: State) -> int:
    player = int(game.player(state))
    return int(state.turn) if player == CHANCE else player


def value(game: Game, state: State, folder: Path | None = None) -> float | None:
    """The utility that the player to move (or to roll) reaches; None where the tables do not tell."""
    tables = prober(game, folder)
    if tables is None or int(game.player(state)) == TERMINAL or _mover(game, state) < 0:
        return None
    found = tables.value(state, _mover(game, state))
    return None if np.isnan(found) else plain_value(game, found) if not game.has_chance else found


def distance(game: Game, state: State, folder: Path | None = None) -> int | None:
    """How many plies away the win or loss is; None for draws, for games of chance and where nothing is known."""
    tables = prober(game, folder)
    if tables is None or game.has_chance or int(game.player(state)) == TERMINAL:
        return None
    found = tables.value(state, _mover(game, state))
    return None if np.isnan(found) else plies_to_end(game, found)


def covers(game: Game, state: State, folder: Path | None = None) -> bool:
    """Whether the tables tell what to play here, or before a roll what the position is worth."""
    return value(game, state, folder) is not None


def best_moves(game: Game, state: State, folder: Path | None = None) -> list[tuple[int, float]]:
    """All legal moves with their values for the mover (wins by their distance), the best first; empty if not covered."""
    tables = prober(game, folder)
    if tables is None or int(game.player(state)) < 0:
        return []
    return sorted(tables.moves_of(state), key=lambda pair: -pair[1])


def best_move(game: Game, state: State, folder: Path | None = None) -> int | None:
    """A move of perfect play; None where the tables do not cover the position."""
    found = best_moves(game, state, folder)
    return found[0][0] if found else None
