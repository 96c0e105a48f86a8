"""TD(lambda) with a small network for backgammon, by self-play at one ply, compiled (Tesauro 1992, 1995).

Each turn all plays of the roll are found, layer by layer with each position once, and the one is made after which the
network likes the other side least. The dice explore enough by themselves. When the game is over, every position before
a roll moves towards its lambda-return, all five chances at once; changing sides swaps the chances.
"""

from typing import Any

import numpy as np

from envs.compiled import njit
from envs.game import CHANCE, TERMINAL, Game
from models.td_network import INPUTS, MOST_ACTIVE, OUTPUTS, equity, forward, write_inputs

MOST_PLAYS = 2048  # positions of one layer; the most known for a roll are a few hundred more than 700
_SLOTS = 8192
MOST_TURNS = 400  # a longer game is not learned from


@njit
def swapped(chances, out):
    """The same chances for the other side."""
    out[0] = 1.0 - chances[0]
    out[1], out[2], out[3], out[4] = chances[3], chances[4], chances[1], chances[2]


@njit
def all_plays(game, work):
    """Fills work.layer[0] with the different positions after every play of work.state[0]; returns their number.

    The other side is on roll in them, or the game is over.
    """
    me = game.player(work.state[0])
    work.layer[0, 0] = work.state[0]
    count, done, now = 1, 0, 0
    while count > 0:
        work.stamp += 1
        later = 0
        for i in range(count):
            moves = game.actions(work.layer[now, i], work.moves)
            for k in range(moves):
                work.state[1] = work.layer[now, i]
                game.play(work.state[1], work.moves[k])
                key = np.uint64(game.key(work.state[1]))
                slot = np.int64(key & np.uint64(_SLOTS - 1))
                while work.slot_stamp[slot] == work.stamp and work.slot_key[slot] != key:
                    slot = (slot + 1) & (_SLOTS - 1)
                if work.slot_stamp[slot] == work.stamp:
                    continue
                work.slot_stamp[slot], work.slot_key[slot] = work.stamp, key
                if game.player(work.state[1]) == me:
                    if later < MOST_PLAYS:
                        work.layer[1 - now, later] = work.state[1]
                        later += 1
                elif done < MOST_PLAYS:
                    work.finished[done] = work.state[1]
                    done += 1
        now, count = 1 - now, later
    return done


@njit
def result_chances(game, state, player, out):
    """The five chances of a finished game, for that player."""
    points = game.utility(state, player)
    out[0] = 1.0 if points > 0 else 0.5 if points == 0 else 0.0
    out[1] = 1.0 if points > 1 else 0.0
    out[2] = 1.0 if points > 2 else 0.0
    out[3] = 1.0 if points < -1 else 0.0
    out[4] = 1.0 if points < -2 else 0.0


@njit
def network_games(game, hidden, output, work, rng, games, decay, rate, tallies):
    """Plays and learns from so many games. `decay` is lambda; adds [games, turns, squared errors, positions]."""
    units = hidden.shape[1]
    for _ in range(games):
        game.start(work.state[0])
        length = 0
        while game.player(work.state[0]) != TERMINAL:
            state = work.state[0]
            if state.turn >= 0 and length < MOST_TURNS:
                me = np.int64(state.turn)
                work.player[length] = me
                work.active[length] = write_inputs(
                    state, me, work.indices[length], work.values[length], work.features, game.checkers
                )
                length += 1
            game.play(state, game.random_outcome(state, work.moves, work.probabilities, rng))
            me = game.player(state)
            if me == TERMINAL or me == CHANCE:
                continue
            count = all_plays(game, work)
            best, chosen = -np.inf, 0
            if count > 1:
                for i in range(count):
                    after = work.finished[i]
                    if game.player(after) == TERMINAL:
                        value = game.utility(after, me)
                    else:
                        active = write_inputs(
                            after, np.int64(after.turn), work.try_index, work.try_value, work.features, game.checkers
                        )
                        forward(hidden, output, work.try_index, work.try_value, active, work.activity, work.chances)
                        value = -equity(work.chances, game.points)
                    if value > best:
                        best, chosen = value, i
            work.state[0] = work.finished[chosen]
        tallies[0] += 1
        tallies[1] += length
        if length >= MOST_TURNS:
            continue

        # The lambda-returns, from the end; `want` is the return of the position after, for its own player.
        for t in range(length - 1, -1, -1):
            if t == length - 1:
                result_chances(game, work.state[0], work.player[t], work.aim)
            elif work.player[t + 1] == work.player[t]:
                for k in range(OUTPUTS):
                    work.aim[k] = work.want[k]
            else:
                swapped(work.want, work.aim)
            forward(hidden, output, work.indices[t], work.values[t], work.active[t], work.activity, work.chances)
            for k in range(OUTPUTS):
                error = work.aim[k] - work.chances[k]
                work.delta[k] = np.float32(rate) * error  # of the cross entropy, so no slope of the sigmoid
                tallies[2] += error * error
                work.want[k] = (1.0 - decay) * work.chances[k] + decay * work.aim[k]
            tallies[3] += 1
            for j in range(units):
                back = np.float32(0.0)
                for k in range(OUTPUTS):
                    back += work.delta[k] * output[k, j]
                work.push[j] = back * work.activity[j] * (np.float32(1.0) - work.activity[j])
            for k in range(OUTPUTS):
                step = work.delta[k]
                for j in range(units):
                    output[k, j] += step * work.activity[j]
                output[k, units] += step
            for i in range(work.active[t]):
                row = hidden[work.indices[t, i]]
                value = work.values[t, i]
                for j in range(units):
                    row[j] += value * work.push[j]
            for j in range(units):
                hidden[INPUTS, j] += work.push[j]


def network_work(game: Game, units: int) -> Any:
    """The memory of one worker."""
    dtype = np.dtype(
        [
            ("for_network", "i8"),
            ("stamp", "i8"),
            ("state", game.state, (2,)),
            ("layer", game.state, (2, MOST_PLAYS)),
            ("finished", game.state, (MOST_PLAYS,)),
            ("slot_stamp", "i8", (_SLOTS,)),
            ("slot_key", "u8", (_SLOTS,)),
            ("moves", "i4", (max(game.max_legal, game.num_outcomes),)),
            ("probabilities", "f8", (game.num_outcomes,)),
            ("indices", "i8", (MOST_TURNS, MOST_ACTIVE)),
            ("values", "f4", (MOST_TURNS, MOST_ACTIVE)),
            ("active", "i8", (MOST_TURNS,)),
            ("player", "i8", (MOST_TURNS,)),
            ("features", "f8", (game.num_features,)),
            ("try_index", "i8", (MOST_ACTIVE,)),
            ("try_value", "f4", (MOST_ACTIVE,)),
            ("activity", "f4", (units,)),
            ("push", "f4", (units,)),
            ("chances", "f4", (OUTPUTS,)),
            ("delta", "f4", (OUTPUTS,)),
            ("aim", "f4", (OUTPUTS,)),
            ("want", "f4", (OUTPUTS,)),
        ],
        align=True,
    )
    work: Any = np.zeros(1, dtype).view(np.recarray)[0]
    return work


def new_network(units: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Small random weights; the chances of gammons start low."""
    rng = np.random.default_rng(seed)
    hidden = rng.uniform(-0.1, 0.1, (INPUTS + 1, units)).astype(np.float32)
    output = rng.uniform(-0.1, 0.1, (OUTPUTS, units + 1)).astype(np.float32)
    output[1:, units] = (-1.5, -4.0, -1.5, -4.0)
    return hidden, output
