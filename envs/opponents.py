"""Opponents inside environments: agents by their spec string, found without importing the package that has them.

`envs` may not import `selfplay`. Whoever offers agents names a function `make_agent(spec, game, seed)` in the entry
point group `selfplay.agents`; what it returns has `choose(state)`, `reset()` and, if it is random, a generator `rng`.
The opponent `random` needs none of that: it plays in compiled code.
"""

from importlib.metadata import entry_points
from typing import Any

import numpy as np

from envs.batch import ATTEMPTS, EVERYONE, Batch
from envs.errors import InputError
from envs.game import TERMINAL, Game

GROUP = "selfplay.agents"


def make_opponent(spec: str, game: Game, seed: int) -> Any:
    """The agent that the spec names, ready to play the game."""
    found = list(entry_points(group=GROUP))
    if not found:
        raise InputError(f"opponent {spec!r}: no installed package offers agents; without one only 'random' plays")
    return found[0].load()(spec, game, seed)


class Opponents:
    """The agents that play all seats but the caller's in each game of a batch."""

    def __init__(self, spec: str, batch: Batch):
        self.spec, self.batch = spec, batch
        self.agents: list[dict[int, Any]] = [{} for _ in batch.states]
        make_opponent(spec, batch.game, 0)  # an unknown name or key should fail now, not in the middle of a game

    def seed(self, i: int, seed: int) -> None:
        """New agents for game i, one per player but the caller's."""
        game = self.batch.game
        for player in range(game.num_players):
            if player == self.batch.side:
                continue
            number = int(np.random.SeedSequence([seed, player]).generate_state(1)[0])
            self.agents[i][player] = make_opponent(self.spec, game, number)

    def begin(self, which: np.ndarray) -> None:
        """After the batch began these games: plays until the caller's first move, in a new game if there is none."""
        seats = self.batch.seats
        for i in np.flatnonzero(which).tolist():
            for _ in range(ATTEMPTS):
                for agent in self.agents[i].values():
                    agent.reset()
                self._reply(i)
                if seats[i].player != TERMINAL:
                    break
                self.batch.restart(i)
            else:
                seats[i].finished = 1

    def reply(self) -> None:
        """Plays in every game until it is the caller's turn or the game is over."""
        seats = self.batch.seats
        for i in np.flatnonzero((seats.finished == 0) & (seats.player != seats.agent)).tolist():
            self._reply(i)

    def _reply(self, i: int) -> None:
        seat = self.batch.seats[i]
        while seat.player not in (TERMINAL, seat.agent) and seat.agent != EVERYONE:
            state = self.batch.states[i : i + 1].copy()[0]
            action = self.agents[i][int(seat.player)].choose(state)
            if not self.batch.play_reply(i, int(action)):
                raise RuntimeError(f"opponent {self.spec!r} chose {action}, which is not legal in\n{state}")

    def memory(self, i: int) -> tuple[bytes, ...]:
        """The state of the random generators of game i's agents."""
        generators = (getattr(agent, "rng", None) for agent in self.agents[i].values())
        return tuple(b"" if rng is None else np.asarray(rng, np.uint64).tobytes() for rng in generators)

    def remember(self, i: int, memory: tuple[bytes, ...]) -> None:
        """Puts the generators back; what else an agent keeps from the game so far is forgotten."""
        for agent, words in zip(self.agents[i].values(), memory, strict=True):
            agent.reset()
            if words:
                agent.rng = np.frombuffer(words, np.uint64).copy()
