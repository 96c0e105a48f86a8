"""TD(lambda) on afterstates by self-play at one ply, compiled (Sutton 1988; Szubert and Jaskowski 2014).

Two players: a move leads to a position that is the other one's to judge, so its value is that judgement with the sign
turned. Each position moves towards its lambda-return, computed backwards when the game is over. What a position learns
from is always the best move's value; the return looks past a move only if that move was the best, so that exploring
moves cost nothing but the rest of the return ("exploration that keeps targets unbiased").

One player against chance (2048): the value belongs to the board that the player leaves to chance, and is what will
still be scored. The board left before learns from score plus value of the board chosen now, at once.
"""

from typing import Any

import numpy as np

from envs.compiled import njit
from envs.game import CHANCE, TERMINAL
from envs.rng import below, uniform
from models.evaluation import INSIDE
from models.patterns import room
from selfplay.train.linear.steps import move_weight


@njit
def read_places(game, evaluation, canonical, state, out):
    """Writes which weights of the table the position touches."""
    raw = room()
    evaluation.indices(game, state, raw)
    for k in range(evaluation.count):
        at = evaluation.offsets[k] + np.uint64(raw[k])
        out[k] = canonical[at] if evaluation.tied else at


@njit
def sum_places(evaluation, weights, phase, places):
    total = 0.0
    for k in range(evaluation.count):
        total += np.float64(weights[phase, places[k]])
    return total


@njit
def learn(evaluation, weights, first, second, phase, places, push, rate, kind):
    """Moves all weights that a position touches."""
    each = rate / evaluation.count
    own, own_first, own_second = weights[phase], first[phase], second[phase]  # slicing costs as much as a step
    for k in range(evaluation.count):
        move_weight(own, own_first, own_second, np.uint64(places[k]), push, each, kind)


@njit
def two_player_games(
    game, evaluation, canonical, weights, first, second, work, rng, games, epsilon, decay, rate, kind, openings, tallies
):
    """Plays and learns from so many games; adds [games, plies, squared errors, plies learned from] to `tallies`.

    `decay` is lambda; `openings` is the most random plies at the start. `work` has a row per ply (see `td_work`).
    """
    for _ in range(games):
        state = work.state[0]
        game.start(state)
        for _ in range(below(rng, openings + 1)):
            if game.player(state) == TERMINAL:
                break
            game.play(state, game.random_action(state, work.moves, rng))
        length = 0
        while game.player(state) != TERMINAL:
            # 1. What the position is thought to be worth, and what its moves lead to.
            player = game.player(state)
            phase = np.int64(evaluation.phase_of[game.filled(state)])
            read_places(game, evaluation, canonical, state, work.places[length])
            work.phase[length] = phase
            work.player[length] = player
            work.value[length] = INSIDE * np.tanh(sum_places(evaluation, weights, phase, work.places[length]))
            count = game.actions(state, work.moves)
            best, chosen = -np.inf, work.moves[0]
            for i in range(count):
                work.state[1] = work.state[0]
                child = work.state[1]
                game.play(child, work.moves[i])
                mover = game.player(child)
                if mover == TERMINAL:
                    value = game.utility(child, player) / game.max_utility
                else:
                    read_places(game, evaluation, canonical, child, work.after)
                    at = np.int64(evaluation.phase_of[game.filled(child)])
                    value = INSIDE * np.tanh(sum_places(evaluation, weights, at, work.after))
                    if mover != player:
                        value = -value
                if value > best:
                    best, chosen = value, work.moves[i]
            work.best[length] = best
            work.explored[length] = 0
            if uniform(rng) < epsilon:
                other = work.moves[below(rng, count)]
                work.explored[length] = other != chosen
                chosen = other
            game.play(state, chosen)
            length += 1

        # 2. The lambda-returns, from the end.
        result = 0.0
        for ply in range(length - 1, -1, -1):
            player = work.player[ply]
            if ply == length - 1:
                later = game.utility(state, player) / game.max_utility
            else:
                later = result if work.player[ply + 1] == player else -result
            if work.explored[ply]:
                result = work.best[ply]
            else:
                result = (1.0 - decay) * work.best[ply] + decay * later
            value = work.value[ply]
            error = result - value
            push = error * (1.0 - value * value)
            learn(evaluation, weights, first, second, work.phase[ply], work.places[ply], push, rate, kind)
            tallies[2] += error * error
            tallies[3] += 1
        tallies[0] += 1
        tallies[1] += length


@njit
def one_player_games(
    game, evaluation, canonical, weights, first, second, work, rng, games, rate, kind, scores, tallies
):
    """The same for one player against chance; each game's utility goes to `scores`. rate=0 only plays."""
    zero = np.int64(0)
    for number in range(games):
        state = work.state[0]
        game.start(state)
        have, old = False, 0.0
        while True:
            player = game.player(state)
            if player == CHANCE:
                game.play(state, game.random_outcome(state, work.moves, work.probabilities, rng))
                continue
            best, best_value, before = -np.inf, 0.0, game.utility(state, zero)
            if player == TERMINAL:
                best = 0.0
            else:
                phase = np.int64(evaluation.phase_of[game.filled(state)])
                for i in range(game.actions(state, work.moves)):
                    work.state[1] = work.state[0]
                    child = work.state[1]
                    game.play(child, work.moves[i])
                    read_places(game, evaluation, canonical, child, work.after)
                    value = sum_places(evaluation, weights, phase, work.after)
                    gain = game.utility(child, zero) - before
                    if gain + value > best:
                        best, best_value = gain + value, value
                        work.state[2] = work.state[1]
                        for k in range(evaluation.count):
                            work.places[1, k] = work.after[k]
            if have and rate > 0.0:
                error = best - old
                learn(evaluation, weights, first, second, work.phase[0], work.places[0], error, rate, kind)
                tallies[2] += error * error
                tallies[3] += 1
            if player == TERMINAL:
                break
            work.state[0] = work.state[2]
            for k in range(evaluation.count):
                work.places[0, k] = work.places[1, k]
            work.phase[0] = phase
            have, old = True, best_value
            tallies[1] += 1
        scores[number] = game.utility(state, zero)
        tallies[0] += 1


def td_work(game: Any, evaluation: Any) -> Any:
    """The memory of one worker."""
    plies = game.max_length + 1 if game.num_players > 1 else 2
    count = max(evaluation.count, 1)
    moves = max(game.max_legal, game.num_outcomes)
    dtype = np.dtype(
        [
            ("for_td", "i8"),
            ("state", game.state, (3,)),
            ("moves", "i4", (moves,)),
            ("probabilities", "f8", (max(game.num_outcomes, 1),)),
            ("after", "u4", (count,)),
            ("places", "u4", (plies, count)),
            ("phase", "i4", (plies,)),
            ("player", "i4", (plies,)),
            ("explored", "i4", (plies,)),
            ("value", "f8", (plies,)),
            ("best", "f8", (plies,)),
        ],
        align=True,
    )
    work: Any = np.zeros(1, dtype).view(np.recarray)[0]
    return work
