"""Many games of one kind at once, compiled: what all environments are made of.

A batch is an array of states with a `SEAT` record each (who plays, what was last) and one random generator each,
so that a game goes on the same way whether it is alone or one of thousands.
"""

import copy
from typing import Any

import numpy as np

from envs.compiled import njit
from envs.game import CHANCE, TERMINAL, Game
from envs.playouts import buffers
from envs.rng import below, generator

EVERYONE = -1  # the caller chooses for whoever is to move
ALTERNATE = -2  # the caller takes the next player's side with each new game
ATTEMPTS = 1000  # games that may end before the caller's first move until it counts as impossible

SEAT = np.dtype(
    [
        ("agent", "i8"),  # the player the caller chooses for, or EVERYONE
        ("episode", "i8"),  # games begun since the last seed
        ("mover", "i8"),  # for whom the caller chose last
        ("player", "i8"),  # who is to choose now, or TERMINAL
        ("finished", "i8"),  # 1 after the end, also by an illegal action
        ("forfeit", "i8"),  # 1 if `mover` lost by an illegal action
    ],
    align=True,
)


@njit
def settle(game, state, agent, replies, out, probabilities, rng):
    """Plays chance and, where `replies`, random opponents until someone has to choose; returns who."""
    while True:
        player = game.player(state)
        if player == TERMINAL:
            return player
        if game.has_chance and player == CHANCE:
            game.play(state, game.random_outcome(state, out, probabilities, rng))
        elif replies and agent != EVERYONE and player != agent:
            game.play(state, game.random_action(state, out, rng))
        else:
            return player


@njit
def begin(game, states, seats, i, side, replies, out, probabilities, rngs):
    """Starts game i. One that ends before the caller's first move is thrown away for another."""
    seat = seats[i]
    seat.agent = seat.episode % game.num_players if side == ALTERNATE else side
    seat.episode += 1
    seat.finished = 0
    seat.forfeit = 0
    restart(game, states, seats, i, replies, out, probabilities, rngs)


@njit
def restart(game, states, seats, i, replies, out, probabilities, rngs):
    """Sets game i up for the caller's first move; one that never comes to it is finished from the start."""
    seat = seats[i]
    for _ in range(ATTEMPTS):
        game.start(states[i])
        seat.player = settle(game, states[i], seat.agent, replies, out, probabilities, rngs[i])
        if seat.player != TERMINAL:
            return
    seat.finished = 1


@njit
def first_illegal(seats, masks, actions, forfeits):
    """The first game whose action its mask forbids, or -1. A finished game takes any action, and where `forfeits`
    an illegal one loses the game, so that only numbers that are no actions at all count."""
    for i in range(len(actions)):
        action = actions[i]
        if action < 0 or action >= masks.shape[1]:
            return i
        if masks[i, action] == 0 and seats[i].finished == 0 and not forfeits:
            return i
    return -1


@njit
def play_reply(game, states, seats, i, action, out, probabilities, rngs):
    """Plays an opponent's action in game i, and chance after it; returns False, and plays nothing, if it is illegal."""
    for k in range(game.actions(states[i], out)):
        if out[k] == action:
            game.play(states[i], out[k])
            seats[i].player = settle(game, states[i], seats[i].agent, False, out, probabilities, rngs[i])
            return True
    return False


@njit
def play_games(game, states, seats, which, masks, actions, side, replies, out, probabilities, rngs):
    """Plays an action in each game, and on until the caller has to choose again; a finished game starts anew."""
    for i in range(len(states)):
        if not which[i]:
            continue
        seat = seats[i]
        if seat.finished != 0:
            begin(game, states, seats, i, side, replies, out, probabilities, rngs)
            continue
        seat.mover = seat.player
        if masks[i, actions[i]] == 0:
            seat.forfeit = 1
            seat.finished = 1
        else:
            game.play(states[i], actions[i])
            seat.player = settle(game, states[i], seat.agent, replies, out, probabilities, rngs[i])


@njit
def score_games(game, states, seats, rewards, terminations, utilities):
    """Writes the rewards and ends: nothing before the end, then the utility of the player that the caller was."""
    for i in range(len(states)):
        seat = seats[i]
        if seat.player == TERMINAL:
            seat.finished = 1
        rewards[i] = 0.0
        terminations[i] = seat.finished != 0
        if seat.finished == 0:
            utilities[i, :] = 0.0
            continue
        for player in range(game.num_players):
            if seat.forfeit == 0:
                utilities[i, player] = game.utility(states[i], player)
            elif player == seat.mover:
                utilities[i, player] = game.min_utility
            else:
                utilities[i, player] = -game.min_utility / (game.num_players - 1) if game.zero_sum else 0.0
        rewards[i] = utilities[i, seat.mover if seat.agent == EVERYONE else seat.agent]


@njit
def view_games(game, states, seats, which, observations, masks, out):
    """Writes the observations and the masks of legal actions of the games that `which` marks.

    After the end no action means anything. The mask then allows all of them: with none a softmax is undefined.
    """
    for i in range(len(states)):
        if not which[i]:
            continue
        planes = observations[i]
        planes[:] = np.float32(0.0)
        game.observe(states[i], planes)
        if seats[i].finished != 0:
            masks[i, :] = 1
            continue
        masks[i, :] = 0
        for k in range(game.actions(states[i], out)):
            masks[i, out[k]] = 1


@njit
def step_games(
    game, states, seats, which, plays, actions, side, replies, out, probabilities, rngs,
    observations, masks, rewards, terminations, utilities,
):  # fmt: skip
    """A step of the games that `which` marks, or where `plays` is false only another look at them.

    One function for all of it, reset included: environments compile it once per game, and nothing else.
    """
    if plays:
        play_games(game, states, seats, which, masks, actions, side, replies, out, probabilities, rngs)
    score_games(game, states, seats, rewards, terminations, utilities)
    view_games(game, states, seats, which, observations, masks, out)


@njit
def sample_rows(masks, rng, actions):
    """Writes for each row of the masks the index of a random non-zero entry, or 0 if there is none."""
    for i in range(len(masks)):
        count = 0
        for action in range(masks.shape[1]):
            count += masks[i, action] != 0
        actions[i] = 0
        if count == 0:
            continue
        rest = below(rng, count)
        for action in range(masks.shape[1]):
            if masks[i, action] != 0:
                if rest == 0:
                    actions[i] = action
                    break
                rest -= 1


def set_bytes(array: np.ndarray, content: bytes) -> None:
    """Overwrites an array, the gaps between the fields of its records included; assignment would leave those."""
    array.view(np.ndarray).reshape(-1).view(np.uint8)[:] = np.frombuffer(content, np.uint8)


class Batch:
    """The arrays of a batch of games, and Python's way into the functions above."""

    def __init__(self, game: Game, count: int, side: int, replies: bool):
        self.game, self.side, self.replies = game, side, replies
        self.states: Any = game.new(count)
        self.seats: Any = np.zeros(count, SEAT).view(np.recarray)
        self.rngs = np.ones((count, 2), np.uint64)
        self.masks = np.ones((count, game.num_actions), np.int8)
        self.everywhere = np.ones(count, np.bool_)
        self.nothing = np.zeros(count, np.int64)
        self.out, self.probabilities = buffers(game)

    def copy(self) -> "Batch":
        """The same games once more, to go on with apart from these."""
        other = copy.copy(self)
        for name in ("states", "seats", "rngs", "masks", "out", "probabilities"):
            setattr(other, name, np.empty_like(getattr(self, name)))
            set_bytes(getattr(other, name), getattr(self, name).tobytes())
        return other

    def new_observations(self) -> np.ndarray:
        return np.empty((len(self.states), *self.game.observation_shape), np.float32)

    def seed(self, i: int, seed: int) -> None:
        """Makes game i repeat: same seed, same dice and same random opponents from now on."""
        self.rngs[i] = generator(seed)
        self.seats[i].episode = 0

    def begin(self, which: np.ndarray, observations: np.ndarray) -> None:
        """Starts the marked games anew."""
        self.seats.finished[which] = 1
        self.step(self.nothing, observations, which)

    def restart(self, i: int) -> None:
        with np.errstate(over="ignore"):
            restart(
                self.game, self.states, self.seats, i, self.replies, self.out, self.probabilities, self.rngs
            )  # fmt: skip

    def first_illegal(self, actions: np.ndarray, forfeits: bool) -> int:
        return int(first_illegal(self.seats, self.masks, actions, forfeits))

    def step(
        self, actions: np.ndarray, observations: np.ndarray, which: np.ndarray | None = None, plays: bool = True
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rewards, terminations and all players' utilities; the observations and masks are written."""
        count = len(self.states)
        scores = np.empty(count), np.empty(count, np.bool_), np.empty((count, self.game.num_players))
        with np.errstate(over="ignore"):
            step_games(
                self.game, self.states, self.seats, self.everywhere if which is None else which, plays, actions,
                self.side, self.replies, self.out, self.probabilities, self.rngs, observations, self.masks, *scores,
            )  # fmt: skip
        return scores

    def look(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What `step` returns, of the position as it is."""
        return self.step(self.nothing, observations, plays=False)

    def play_reply(self, i: int, action: int) -> bool:
        with np.errstate(over="ignore"):
            return bool(
                play_reply(self.game, self.states, self.seats, i, action, self.out, self.probabilities, self.rngs)
            )

    def legal(self, i: int) -> list[int]:
        return [int(action) for action in np.flatnonzero(self.masks[i])]
