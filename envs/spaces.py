"""The spaces of all environments, and the error for an illegal action."""

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction

from envs.batch import sample_rows
from envs.errors import InputError
from envs.game import Game
from envs.rng import generator

# Games write their observations as inputs for networks, small numbers mostly between 0 and 1; none promises bounds.
OBSERVATION_LIMIT = 100.0


class IllegalAction(InvalidAction, InputError):
    """The action is no action of the game, or the rules forbid it in the present position."""


def observation_space(game: Game, mask_in_observation: bool) -> spaces.Space[Any]:
    """What one game shows: the planes, or a dictionary of the planes and the mask of legal actions."""
    planes = spaces.Box(-OBSERVATION_LIMIT, OBSERVATION_LIMIT, game.observation_shape, np.float32)
    if not mask_in_observation:
        return planes
    return spaces.Dict({"action_mask": spaces.MultiBinary(game.num_actions), "observation": planes})


class LegalDiscrete(spaces.Discrete):
    """All actions of a game, of which `sample()` without a mask draws one that is legal now.

    So `env.step(env.action_space.sample())` plays any game. Between `seed(s)` and the next step or reset it draws
    from what is legal at the start of the episode that `reset(seed=s)` begins: tools that seed the space, sample and
    only then reset (Gymnasium's `check_env` does) get an action that they can play.
    """

    def __init__(self, n: int, legal: Callable[[int | None], np.ndarray]):
        super().__init__(n)
        self.legal = legal
        self.announced: int | None = None

    def seed(self, seed: int | None = None) -> Any:
        self.announced = seed
        return super().seed(seed)

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        if mask is None and probability is None:
            mask = self.legal(self.announced)
        return super().sample(mask, probability)

    def __reduce__(self) -> Any:  # in another process, or copied, it is a plain space: the environment stays here
        return spaces.Discrete, (int(self.n),)


class LegalMultiDiscrete(spaces.MultiDiscrete):
    """The actions of a batch of games, of which `sample()` without a mask draws legal ones, compiled."""

    def __init__(self, num_envs: int, n: int, masks: Callable[[], np.ndarray]):
        super().__init__(np.full(num_envs, n, np.int64))
        self.masks = masks
        self.words = generator(int(self.np_random.integers(1 << 62)))

    def seed(self, seed: Any = None) -> Any:
        result = super().seed(seed)
        self.words = generator(int(self.np_random.integers(1 << 62)))
        return result

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        if mask is not None or probability is not None:
            return super().sample(mask, probability)
        actions = np.empty(self.shape, np.int64)
        with np.errstate(over="ignore"):
            sample_rows(self.masks(), self.words, actions)
        return actions

    def __reduce__(self) -> Any:
        return spaces.MultiDiscrete, (self.nvec,)
