"""Self-play with alpha-beta in the loop, compiled: positions with what they turned out to be worth.

Every position comes with its lambda-return: (1 - lambda) times what the search thought of it plus lambda times the
return of the position after the move, down to the result of the game. lambda = 1 is the plain result. A return stops at
an exploring move, since what comes after it says nothing about the position before.

`leaf`: what is kept is the end of the search's best line instead of the position itself, seen by its own mover. That is
the position whose estimate the search passed up, and a quiet one (TD-Leaf: Baxter, Tridgell and Weaver 2000).
"""

from typing import Any

import numpy as np

from envs.compiled import njit
from envs.game import TERMINAL, Game
from envs.rng import below, uniform
from selfplay.search.deepening import AlphaBeta, alphabeta
from selfplay.search.result import Limits

MOST_NODES = 50_000  # of one search: with untrained weights nothing ends an exchange, and quiescence search explodes
_CHUNK = 20  # games between two looks whether the user wants to stop
MOST_GAME = 1024  # plies of one game that can be kept; longer games are dropped


@njit
def write_returns(game, room, length, decay, target, final):
    """The returns and the result of a game that is over in room.state[0], from its end, for the positions' movers."""
    state = room.state[0]
    result = 0.0
    for ply in range(length - 1, -1, -1):
        player = room.player[ply]
        if ply == length - 1:
            later = game.utility(state, player) / game.max_utility
        else:
            later = result if room.player[ply + 1] == player else -result
        if room.explored[ply]:
            result = room.value[ply]
        else:
            result = (1.0 - decay) * room.value[ply] + decay * later
        target[ply] = room.sign[ply] * result
        final[ply] = room.sign[ply] * np.sign(game.utility(state, player))


@njit
def searched_games(
    game,
    evaluation,
    work,
    table,
    room,
    kept,
    target,
    final,
    owner,
    rng,
    games,
    depth,
    epsilon,
    openings,
    decay,
    leaf,
    tallies,
):
    """Plays so many games; fills `kept` (states), `target` (for their movers, in parts of the largest utility), `final`
    (1 won, 0 drawn, -1 lost) and `owner` (number of the game), and returns how many positions those are.

    Stops early when the next game may not fit. Adds [games, plies, draws, player 0's wins] to tallies.
    """
    count = 0
    one = np.int64(1)
    for number in range(games):
        if count + MOST_GAME > len(kept):
            break
        state = room.state[0]
        game.start(state)
        for _ in range(below(rng, openings + 1)):
            if game.player(state) == TERMINAL:
                break
            game.play(state, game.random_action(state, room.moves, rng))
        length = 0
        while game.player(state) != TERMINAL and length < MOST_GAME:
            # 1. Search.
            player = game.player(state)
            work.states[0] = room.state[0]
            work.nodes, work.stopped = 1, 0
            work.search = (work.search + 1) % 256
            for i in range(len(work.killer)):
                work.killer[i, 0] = -1
                work.killer[i, 1] = -1
            finished = alphabeta(game, evaluation, work, table, one, depth)
            chosen = work.root_move[0]
            value = work.root_value[0] / game.max_utility if finished > 0 else 0.0
            room.player[length] = player
            room.value[length] = min(max(value, -1.0), 1.0)

            # 2. Keep the position, or the end of the line that it is judged by.
            kept[count + length] = room.state[0]
            room.sign[length] = 1.0
            if leaf:
                room.state[1] = room.state[0]
                for k in range(work.root_line_length[0]):
                    room.state[2] = room.state[1]
                    game.play(room.state[2], work.root_line[0, k])
                    if game.player(room.state[2]) == TERMINAL:
                        break
                    room.state[1] = room.state[2]
                kept[count + length] = room.state[1]
                if game.player(room.state[1]) != player:
                    room.sign[length] = -1.0

            # 3. Play.
            room.explored[length] = 0
            if uniform(rng) < epsilon:
                other = game.random_action(state, room.moves, rng)
                room.explored[length] = other != chosen
                chosen = other
            game.play(state, chosen)
            length += 1
        if game.player(state) != TERMINAL:
            continue

        # 4. What the positions turned out to be worth.
        write_returns(game, room, length, decay, target[count:], final[count:])
        owner[count : count + length] = number
        count += length
        score = game.utility(state, np.int64(0))
        tallies[0] += 1
        tallies[1] += length
        tallies[2] += score == 0.0
        tallies[3] += score > 0.0
    return count


class Player:
    """One worker's searcher and memory; the evaluation's live weights may change between calls."""

    def __init__(self, game: Game, evaluation: Any, depth: int, positions: int, megabytes: float = 4.0):
        self.game, self.evaluation = game, evaluation
        self.searcher = AlphaBeta(game, evaluation, Limits(depth=depth), megabytes=megabytes)
        self.depth = depth
        self.kept = np.zeros(positions + MOST_GAME, game.state).view(np.recarray)
        self.target = np.zeros(len(self.kept), np.float32)
        self.final = np.zeros(len(self.kept), np.float32)
        self.owner = np.zeros(len(self.kept), np.int32)
        dtype = np.dtype(
            [
                ("for_games", "i8"),
                ("state", game.state, (3,)),
                ("moves", "i4", (max(game.max_legal, 1),)),
                ("player", "i4", (MOST_GAME,)),
                ("explored", "i4", (MOST_GAME,)),
                ("sign", "f8", (MOST_GAME,)),
                ("value", "f8", (MOST_GAME,)),
            ],
            align=True,
        )
        self.room: Any = np.zeros(1, dtype).view(np.recarray)[0]
        self.tallies = np.zeros(4)
        self.stopped = False  # set by another thread: ends `play` with KeyboardInterrupt

    def play(
        self, rng: np.ndarray, games: int, epsilon: float, openings: int, decay: float, leaf: bool
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
        """States, targets, results and game numbers of so many games. Depends on nothing but the arguments and the weights."""
        self.searcher.reset()
        self.searcher.work.node_limit = MOST_NODES
        self.tallies[:] = 0
        count = begun = 0
        while begun < games and count + MOST_GAME <= len(self.kept):
            if self.stopped:
                raise KeyboardInterrupt
            some = min(games - begun, _CHUNK)
            found = searched_games(
                self.game,
                self.evaluation,
                self.searcher.work,
                self.searcher.table,
                self.room,
                self.kept[count:],
                self.target[count:],
                self.final[count:],
                self.owner[count:],
                rng,
                some,
                self.depth,
                epsilon,
                openings,
                decay,
                leaf,
                self.tallies,
            )
            self.owner[count : count + found] += begun
            count, begun = count + found, begun + some
        return self.kept[:count], self.target[:count], self.final[:count], self.owner[:count]
