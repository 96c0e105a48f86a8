"""Random games played move for move beside OpenSpiel, an independent referee."""

import random
from collections.abc import Callable

import numpy as np
import pyspiel

from envs.compiled import njit
from envs.game import CHANCE, TERMINAL, Game


@njit
def look(game, state, out, probabilities):
    """Player, number of legal actions or outcomes (written to out)."""
    player = game.player(state)
    if player == TERMINAL:
        return player, 0
    if player == CHANCE:
        return player, game.outcomes(state, out, probabilities)
    return player, game.actions(state, out)


@njit
def step(game, state, action):
    game.play(state, action)


@njit
def result(game, state, player):
    return game.utility(state, player)


def play_beside_open_spiel(
    game: Game,
    spiel: pyspiel.Game,
    games: int,
    to_spiel: Callable[[int], int] = lambda action: action,
    outcome_to_spiel: Callable[[int], int] = lambda outcome: outcome,
    seed: int = 0,
) -> int:
    """Plays random games on both sides; asserts the same mover, legal moves and result; returns the plies.

    `to_spiel` maps our action to OpenSpiel's (a bijection on legal moves). Chance: outcomes and probabilities too.
    """
    rng = random.Random(seed)
    out = np.empty(max(game.max_legal, game.num_outcomes, 1), np.int64)
    probabilities = np.empty(max(game.num_outcomes, 1))
    plies = 0
    for _ in range(games):
        state, theirs = game.new()[0], spiel.new_initial_state()
        line: list[int] = []
        while True:
            player, count = look(game, state, out, probabilities)
            assert (player == TERMINAL) == theirs.is_terminal(), line
            if player == TERMINAL:
                returns = [result(game, state, p) for p in range(game.num_players)]
                assert returns == list(theirs.returns()), (line, returns, theirs.returns())
                break
            ours = [int(a) for a in out[:count]]
            assert ours == sorted(set(ours)), line
            if player == CHANCE:
                assert theirs.is_chance_node(), line
                expected = sorted(theirs.chance_outcomes())
                mine = sorted((outcome_to_spiel(a), p) for a, p in zip(ours, probabilities, strict=False))
                assert [a for a, _ in mine] == [a for a, _ in expected], line
                np.testing.assert_allclose([p for _, p in mine], [p for _, p in expected], rtol=1e-9)
                action = rng.choices(ours, list(probabilities[:count]))[0]
                theirs.apply_action(outcome_to_spiel(action))
            else:
                assert player == theirs.current_player(), line
                assert sorted(map(to_spiel, ours)) == sorted(theirs.legal_actions()), line
                action = rng.choice(ours)
                theirs.apply_action(to_spiel(action))
            line.append(action)
            step(game, state, action)
            plies += 1
    return plies
