"""Wins and how far away they are.

A won or lost game (the utility is the game's maximum or minimum) counts a little less per ply until then, so the
quicker win and the longer defence are chosen. Reported values are the plain utilities again.
"""

from typing import Any

from envs.compiled import njit

STEP = 1e-9  # of the utility's range: what a ply of delay costs a win
_MOST_PLIES = 100_000


@njit
def win_value(game):
    """From here on a value is a win that was seen, not an estimate."""
    return game.max_utility - (game.max_utility - game.min_utility) * STEP * _MOST_PLIES


@njit
def leaf_utility(game, state, player, level):
    """The utility at the end of a game, a quick win above a slow one."""
    value = game.utility(state, player)
    if value == game.max_utility:
        return value - (game.max_utility - game.min_utility) * STEP * level
    if value == game.min_utility:
        return value + (game.max_utility - game.min_utility) * STEP * level
    return value


@njit
def relative(game, value, plies):
    """A win's value as seen from `plies` further down the line (negative: further up)."""
    if value >= win_value(game):
        return value + (game.max_utility - game.min_utility) * STEP * plies
    if value <= -win_value(game):
        return value - (game.max_utility - game.min_utility) * STEP * plies
    return value


@njit
def plies_of_win(game, value):
    """How many plies away the win or loss of this value is."""
    return round((game.max_utility - abs(value)) / ((game.max_utility - game.min_utility) * STEP))


def plain_value(game: Any, value: float) -> float:
    """The value without the little that a win loses per ply."""
    if value >= win_value(game):
        return float(game.max_utility)
    if value <= -win_value(game):
        return float(game.min_utility)
    return float(value)


def plies_to_end(game: Any, value: float) -> int | None:
    """How many plies away the win or loss of this value is; None for other values."""
    return int(plies_of_win(game, value)) if abs(value) >= win_value(game) else None
