"""Agents: one spec string names an agent everywhere, and it round-trips.

`random`, `human`, `mcts:simulations=1000`. An agent kind is a dataclass whose fields are the keys of the
spec; unknown names and keys fail with the list of valid ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
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

    def reseed(self, seed: int) -> None:
        """Before a `reset`: random choices from now on follow this seed, whatever was played before."""
        self.rng = generator(seed)

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


_SIMPLE: dict[str, type[Agent]] = {kind.name: kind for kind in (RandomAgent, HumanAgent)}


def agent_kinds() -> dict[str, type[Agent]]:
    """All kinds of agents by name."""
    from selfplay.alphazero import AlphaZeroAgent
    from selfplay.search_agents import SEARCH_AGENTS
    from selfplay.solvers.agent import PerfectAgent

    kinds: tuple[type[Agent], ...] = (*SEARCH_AGENTS, PerfectAgent, AlphaZeroAgent)
    return {**_SIMPLE, **{kind.name: kind for kind in kinds}}


def parse_agent(spec: str) -> Agent:
    """The agent that a spec names, not yet ready for a game.

    >>> str(parse_agent("random"))
    'random'
    """
    name, _, rest = spec.strip().partition(":")
    if name.endswith(".py"):
        return _agent_from_file(spec.strip(), name, rest)
    kinds = _SIMPLE if name in _SIMPLE else agent_kinds()  # the searches are imported only where needed
    if name not in kinds:
        known = ", ".join(sorted(kinds))
        raise InputError(f"unknown agent {name!r}; agents: {known}, or a file: my_agent.py:MyAgent")
    what = f"agent {spec!r}"
    return specs.build(what, kinds[name], specs.pairs(what, rest))


def _agent_from_file(spec: str, path: str, rest: str) -> Agent:
    """An agent of the user's own, `my_agent.py:MyAgent:key=value`: a class derived from `Agent`."""
    from envs.registry import class_from_file

    class_name, _, options = rest.partition(":")
    what = f"agent {spec!r}"
    kind = class_from_file(Path(path), class_name, Agent, "agent")
    agent: Agent = specs.build(what, kind, specs.pairs(what, options))
    agent.name = f"{path}:{kind.__name__}"  # type: ignore[misc]  # so that its spec finds the file again
    return agent


def make_agent(spec: str, game: Game, seed: int = 0) -> Any:
    """The agent that a spec names, ready to play the game."""
    agent = parse_agent(spec)
    agent.start(game, seed)
    agent.reset()
    return agent
