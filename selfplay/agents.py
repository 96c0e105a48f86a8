"""Agents: one spec string names an agent everywhere, and it round-trips.

`random`, `human`, `mcts:simulations=1000`. An agent kind is a dataclass whose fields are the keys of the
spec; unknown names and keys fail with the list of valid ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from envs import specs
from envs.compiled import njit
from envs.errors import InputError
from envs.game import Game, State
from envs.playouts import buffers
from envs.rng import generator


@dataclass
class Agent:
    """Something that chooses a move. Subclasses add fields (their options) and override `choose`."""

    name: ClassVar[str] = ""

    def start(self, game: Game, seed: int) -> None:
        """Makes the agent ready for a game; raises `InputError` where the two do not fit."""
        self.game, self.rng = game, generator(seed)

    def reset(self) -> None:
        """Called before each new game: forget what belongs to the last one."""

    def choose(self, state: State) -> int:
        """A legal action in a state where a player is to move."""
        raise InputError(f"agent {self} cannot choose a move by itself")

    @property
    def spec(self) -> str:
        return specs.text_of(self.name, self)

    def __str__(self) -> str:
        return self.spec


@njit
def random_action(game, state, out, rng):
    return game.random_action(state, out, rng)


@dataclass
class RandomAgent(Agent):
    """Every legal move equally likely."""

    name: ClassVar[str] = "random"

    def start(self, game: Game, seed: int) -> None:
        super().start(game, seed)
        self.out: np.ndarray = buffers(game)[0]

    def choose(self, state: State) -> int:
        return int(random_action(self.game, state, self.out, self.rng))


@dataclass
class HumanAgent(Agent):
    """A person at the terminal; `selfplay play` asks for its moves."""

    name: ClassVar[str] = "human"
    ask: ClassVar[Callable[[Game, State], int] | None] = None

    def choose(self, state: State) -> int:
        if HumanAgent.ask is None:
            raise InputError("agent 'human' needs a terminal: use it with 'selfplay play'")
        return HumanAgent.ask(self.game, state)


AGENTS: dict[str, type[Agent]] = {kind.name: kind for kind in (RandomAgent, HumanAgent)}


def parse_agent(spec: str) -> Agent:
    """The agent that a spec names, not yet ready for a game.

    >>> str(parse_agent("random"))
    'random'
    """
    name, _, rest = spec.strip().partition(":")
    if name not in AGENTS:
        raise InputError(f"unknown agent {name!r}; agents: {', '.join(sorted(AGENTS))}")
    what = f"agent {spec!r}"
    return specs.build(what, AGENTS[name], specs.pairs(what, rest))


def make_agent(spec: str, game: Game, seed: int = 0) -> Any:
    """The agent that a spec names, ready to play the game."""
    agent = parse_agent(spec)
    agent.start(game, seed)
    agent.reset()
    return agent
