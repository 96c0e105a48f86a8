"""Perft: the exact number of move sequences of a given length, the classic test of a game's rules."""

import time
from typing import Any, NamedTuple

import numpy as np

from envs.compiled import njit
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, Game, State


class Perft(NamedTuple):
    """What `selfplay perft` reports."""

    nodes: int
    seconds: float


@njit
def count_sequences(game, states, moves, probabilities, level, depth):
    """The sequences of `depth` more moves from states[level]; deeper levels of the arrays are scratch."""
    state = states[level]
    player = game.player(state)
    if player == TERMINAL:
        return 1 if depth == 0 or game.perft_counts_finished else 0
    if depth == 0:
        return 1
    if depth == 1 and player != CHANCE and not game.perft_by_turn:
        return game.count_actions(state, moves[level])
    if player == CHANCE:
        count = game.outcomes(state, moves[level], probabilities)
    else:
        count = game.actions(state, moves[level])
    if depth == 1 and not game.perft_by_turn:
        return count
    total = 0
    for i in range(count):
        states[level + 1] = states[level]
        game.play(states[level + 1], moves[level, i])
        same_turn = game.perft_by_turn and game.player(states[level + 1]) == player
        total += count_sequences(game, states, moves, probabilities, level + 1, depth if same_turn else depth - 1)
    return total


def perft(game: Game, depth: int, state: State | None = None) -> Perft:
    """Counts the sequences of exactly `depth` moves, by the custom of the game's published tables."""
    if depth < 0:
        raise InputError(f"perft depth must be 0 or more, not {depth}")
    given, game = game, game.for_perft()
    if state is not None and game != given:  # what the given rules call the end may not be the end for perft
        state = game.parse_position(given.position_text(state) or "")
    # Where a turn may hold several plies, no turn is longer than this (twelve jumps in checkers).
    levels = depth * (16 if game.perft_by_turn else 1) + 2
    states: Any = game.new(levels)
    if state is not None:
        states[0] = state
    moves = np.empty((levels, max(game.max_legal, game.num_outcomes, 1)), np.int64)
    started = time.perf_counter()
    nodes = count_sequences(game, states, moves, np.empty(max(game.num_outcomes, 1)), 0, depth)
    return Perft(int(nodes), time.perf_counter() - started)
