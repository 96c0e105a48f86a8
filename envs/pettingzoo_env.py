"""The games as PettingZoo environments, one agent after the other (AEC). Needs the extra `selfplay[pettingzoo]`.

    env = envs.pettingzoo_env.env("connect_four")

Agents are `player_0`, `player_1`, ... and are selected as the rules say, so the same one may move several times in a
row; chance plays by itself. `infos[agent]["action_mask"]` marks the legal actions of the agent to move. Observations
look from the side of whoever is to move. Rewards come at the end: each player's utility.
"""

from typing import Any, ClassVar

import numpy as np

from envs.errors import InputError
from envs.game import Game
from envs.gym_env import ILLEGAL_ACTIONS, RENDER_MODES, check_option, illegal_sentence, make_batch
from envs.registry import GAMES
from envs.render import picture
from envs.spaces import IllegalAction, observation_space

try:
    from gymnasium import spaces
    from gymnasium.utils import seeding
    from pettingzoo import AECEnv
    from pettingzoo.utils import wrappers
except ImportError as missing:
    raise InputError(
        f"PettingZoo environments need a package that is not installed ({missing.name}): pip install 'selfplay[pettingzoo]'"
    ) from missing


def env(game: str | Game, **options: Any) -> AECEnv:
    """The environment in PettingZoo's wrapper that reports calls in the wrong order."""
    return wrappers.OrderEnforcingWrapper(GameAECEnv(game, **options))


class GameAECEnv(AECEnv):
    """A game of the registry, or any `Game` object, for all its players.

    `mask_in_observation` makes observations a dictionary of `observation` and `action_mask`, as PettingZoo's own
    board games do. An illegal action raises `IllegalAction`, or with `illegal_action='forfeit'` ends the game with
    the game's `min_utility` for its player. Further keywords are the game's parameters.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "render_modes": list(RENDER_MODES),
        "render_fps": 4,
        "is_parallelizable": False,
    }

    def __init__(
        self,
        game: str | Game,
        *,
        mask_in_observation: bool = False,
        illegal_action: str = "raise",
        render_mode: str | None = None,
        **parameters: Any,
    ):
        super().__init__()
        check_option("render_mode", render_mode, (None, *RENDER_MODES))
        check_option("illegal_action", illegal_action, ILLEGAL_ACTIONS)
        self.batch, _ = make_batch(game, 1, None, 0, parameters)
        name = game.partition(":")[0] if isinstance(game, str) and game.partition(":")[0] in GAMES else ""
        self.metadata = {**type(self).metadata, "name": f"{name or type(self.game).__name__}_v0"}  # type: ignore[misc]
        self.mask_in_observation, self.forfeits = mask_in_observation, illegal_action == "forfeit"
        self.render_mode = render_mode
        self.possible_agents = [f"player_{player}" for player in range(self.game.num_players)]
        self.agents: list[str] = []
        self.observation_spaces = {
            agent: observation_space(self.game, mask_in_observation) for agent in self.possible_agents
        }
        self.action_spaces = {agent: spaces.Discrete(self.game.num_actions) for agent in self.possible_agents}
        self._observations = self.batch.new_observations()
        self._seeded = False

    @property
    def game(self) -> Game:
        return self.batch.game

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Starts a new game. Without a seed the dice go on where they were."""
        if seed is None and not self._seeded:
            seed = int(seeding.np_random()[0].integers(1 << 62))
        if seed is not None:
            self.batch.seed(0, seed)
            self._seeded = True
        self.batch.begin(self.batch.everywhere, self._observations)
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self._select()

    def step(self, action: Any) -> None:
        """Plays the selected agent's action and chance after it; after the end, takes None from each agent."""
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        if not isinstance(action, (int, np.integer)) or isinstance(action, bool):
            raise IllegalAction(f"action {action!r} is not a whole number")
        actions = np.array([action], np.int64)
        if self.batch.first_illegal(actions, self.forfeits) >= 0:
            raise IllegalAction(illegal_sentence(self.batch, 0, int(action)))
        _, terminations, utilities = self.batch.step(actions, self._observations)
        self._cumulative_rewards[agent] = 0.0
        for player, name in enumerate(self.possible_agents):
            self.rewards[name] = float(utilities[0, player])
            self.terminations[name] = bool(terminations[0])
        self._select()
        self._accumulate_rewards()

    def observe(self, agent: str) -> Any:
        planes = self._observations[0].copy()
        if not self.mask_in_observation:
            return planes
        return {"action_mask": self.infos[agent]["action_mask"].copy(), "observation": planes}

    def state(self) -> np.ndarray:
        """The board as the player to move sees it."""
        return self._observations[0].copy()

    def render(self) -> Any:
        if self.render_mode is None:
            return None
        state = self.batch.states[0]
        return self.game.show(state) if self.render_mode == "ansi" else picture(self.game, state)

    def close(self) -> None:
        """There is nothing to close."""

    def _select(self) -> None:
        """Selects the player to move, the first one after the end, and tells each agent what it may do."""
        seat, mask = self.batch.seats[0], self.batch.masks[0]
        mover = 0 if seat.finished else int(seat.player)
        self.agent_selection = self.possible_agents[mover]
        self.infos = {
            name: {"action_mask": mask.copy() if seat.finished or player == mover else np.zeros_like(mask)}
            for player, name in enumerate(self.possible_agents)
        }
