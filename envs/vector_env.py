"""Many games at once as one Gymnasium vector environment, compiled.

    envs = gymnasium.make_vec("selfplay/ConnectFour-v0", num_envs=1024, vectorization_mode="vector_entry_point")

Game i plays exactly as `GameEnv` does with seed + i, move for move. Where an episode is over, the next `step` starts
another one and ignores that game's action (Gymnasium's `AutoresetMode.NEXT_STEP`, the default; the other modes are
options). `action_space.sample()` draws legal actions.
"""

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from envs.errors import InputError
from envs.game import Game
from envs.gym_env import (
    ILLEGAL_ACTIONS,
    RENDER_MODES,
    check_begun,
    check_option,
    illegal_sentence,
    make_batch,
)
from envs.render import picture
from envs.spaces import IllegalAction, LegalMultiDiscrete, observation_space


class GameVectorEnv(VectorEnv):
    """A batch of games. The options are those of `GameEnv`, and two more.

    `autoreset_mode` is one of Gymnasium's three, by name or as its enumeration. `copy=False` hands out the same
    observation and mask arrays with every step, overwritten in place: quicker, for callers that keep none of them.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": list(RENDER_MODES),
        "render_fps": 4,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        game: str | Game,
        num_envs: int = 1,
        *,
        opponent: str | None = "random",
        agent_player: int | str = 0,
        mask_in_observation: bool = False,
        illegal_action: str = "raise",
        render_mode: str | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        **parameters: Any,
    ):
        check_option("render_mode", render_mode, (None, *RENDER_MODES))
        check_option("illegal_action", illegal_action, ILLEGAL_ACTIONS)
        if isinstance(num_envs, bool) or not isinstance(num_envs, (int, np.integer)) or num_envs < 1:
            raise InputError(f"num_envs={num_envs!r} must be a whole number of at least 1")
        if not isinstance(autoreset_mode, AutoresetMode):
            check_option("autoreset_mode", autoreset_mode, tuple(mode.value for mode in AutoresetMode))
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.batch, self.opponents = make_batch(game, num_envs, opponent, agent_player, parameters)
        self.num_envs, self.render_mode, self.copy = int(num_envs), render_mode, copy
        self.mask_in_observation, self.forfeits = mask_in_observation, illegal_action == "forfeit"
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}  # type: ignore[misc]
        self.single_observation_space = observation_space(self.game, mask_in_observation)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.single_action_space = gymnasium.spaces.Discrete(self.game.num_actions)
        self.action_space = LegalMultiDiscrete(self.num_envs, self.game.num_actions, lambda: self.batch.masks)
        self._observations = self.batch.new_observations()
        self._truncations = np.zeros(self.num_envs, np.bool_)
        seats = self.batch.seats.view(np.ndarray)  # fields of a plain array are quicker to reach than of a recarray
        self._players, self._agents, self._finished = seats["player"], seats["agent"], seats["finished"]
        self._begun = False

    @property
    def game(self) -> Game:
        return self.batch.game

    @property
    def states(self) -> Any:
        """The games' own states, an array of records; change them by `step` only."""
        return self.batch.states

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts new games: all of them, or those that `options["reset_mask"]` marks.

        A seed counts up from game to game; a list gives one to each. Without one, dice and opponents go on.
        """
        super().reset(seed=seed if isinstance(seed, (int, np.integer)) else None)
        which = self._marked(options)
        if seed is None and not self._begun:
            seed = int(self.np_random.integers(1 << 62))
        seeds = seed if isinstance(seed, list) else [None if seed is None else seed + i for i in range(self.num_envs)]
        if len(seeds) != self.num_envs:
            raise InputError(f"seed: {len(seeds)} seeds for {self.num_envs} games; give one to each, or one number")
        for i in np.flatnonzero(which).tolist():
            single = seeds[i]
            if single is None and not self._begun:
                single = int(self.np_random.integers(1 << 62))
            if single is not None:
                self.batch.seed(i, single)
                if self.opponents:
                    self.opponents.seed(i, single)
        observations = self._room()
        self._begin(which, observations)
        check_begun(self.batch, which)
        if not which.all():
            self.batch.look(observations)  # a new array holds nothing yet of the games that go on
        self._begun = True
        return self._returned(observations), self._infos(which)

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Plays an action in each game; an illegal one raises before any game has moved."""
        actions = self._checked(actions)
        observations = self._room()
        anew = self._finished != 0 if self.opponents else None
        rewards, terminations, utilities = self.batch.step(actions, observations)
        if self.opponents and anew is not None:
            self.opponents.begin(anew)
            self.opponents.reply()
            rewards, terminations, utilities = self.batch.look(observations)
        infos: dict[str, Any] = {}
        if terminations.any():
            if self.autoreset_mode is AutoresetMode.SAME_STEP:
                infos = self._final_infos(terminations, observations, utilities)
                self._begin(terminations, observations)
            else:
                infos = self._end_infos(terminations, utilities)
        truncations = self._truncations.copy() if self.copy else self._truncations
        infos.update(self._infos(self.batch.everywhere))
        return self._returned(observations), rewards, terminations, truncations, infos

    def render(self) -> tuple[Any, ...] | None:
        """One picture or text per game."""
        if self.render_mode is None:
            gymnasium.logger.warn(f"render() shows nothing without a render_mode: {', '.join(RENDER_MODES)}")
            return None
        if not self._begun:
            raise ResetNeeded("render(): call reset() first")
        if self.render_mode == "ansi":
            return tuple(self.game.show(state) for state in self.states)
        return tuple(picture(self.game, state) for state in self.states)

    # --- helpers -------------------------------------------------------------------------------------

    def _marked(self, options: dict[str, Any] | None) -> np.ndarray:
        if not options or "reset_mask" not in options:
            return self.batch.everywhere
        mask = options["reset_mask"]
        if not isinstance(mask, np.ndarray) or mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
            raise InputError(f"options['reset_mask'] must be an array of {self.num_envs} booleans, not {mask!r}")
        if not self._begun and not mask.all():
            raise ResetNeeded("options['reset_mask']: the first reset() must start all games")
        return mask

    def _checked(self, actions: Any) -> np.ndarray:
        if not self._begun:
            raise ResetNeeded("step(): call reset() first")
        array = np.asarray(actions)
        if array.shape != (self.num_envs,) or array.dtype.kind not in "iu":
            raise IllegalAction(
                f"actions must be an array of {self.num_envs} whole numbers, not of shape {array.shape}, {array.dtype}"
            )
        array = np.ascontiguousarray(array, np.int64)
        if self.autoreset_mode is AutoresetMode.DISABLED and self._finished.any():
            i = int(np.flatnonzero(self._finished)[0])
            raise ResetNeeded(f"step(): game {i} is over; call reset(options={{'reset_mask': ...}}) first")
        i = self.batch.first_illegal(array, self.forfeits)
        if i >= 0:
            raise IllegalAction(f"game {i}: {illegal_sentence(self.batch, i, int(array[i]))}")
        return array

    def _begin(self, which: np.ndarray, observations: np.ndarray) -> None:
        self.batch.begin(which, observations)
        if self.opponents:
            self.opponents.begin(which)
            self.batch.look(observations)

    def _room(self) -> np.ndarray:
        return self.batch.new_observations() if self.copy else self._observations

    def _masks(self) -> np.ndarray:
        if self.copy:
            return self.batch.masks.copy()
        view = self.batch.masks.view()
        view.flags.writeable = False
        return view

    def _returned(self, observations: np.ndarray) -> Any:
        if not self.mask_in_observation:
            return observations
        return {"action_mask": self._masks(), "observation": observations}

    def _infos(self, which: np.ndarray) -> dict[str, Any]:
        """Arrays over all games and, by Gymnasium's custom, beside each key one that marks the games it is about."""
        values = {"action_mask": self._masks(), "player": self._players.copy(), "agent_player": self._agents.copy()}
        infos: dict[str, Any] = {}
        for name, value in values.items():
            if which is not self.batch.everywhere:
                value = np.where(which.reshape(-1, *[1] * (value.ndim - 1)), value, 0).astype(value.dtype)
            infos[name] = value
            infos[f"_{name}"] = which.copy()
        return infos

    def _end_infos(self, ended: np.ndarray, utilities: np.ndarray) -> dict[str, Any]:
        infos: dict[str, Any] = {"utilities": utilities, "_utilities": ended.copy()}
        if self.forfeits:
            forfeit = ended & (self.batch.seats.forfeit != 0)
            if forfeit.any():
                infos["forfeit"], infos["_forfeit"] = forfeit, forfeit.copy()
        return infos

    def _final_infos(self, ended: np.ndarray, observations: np.ndarray, utilities: np.ndarray) -> dict[str, Any]:
        """The last observation and info of the games that ended, before new ones take their place."""
        infos: dict[str, Any] = {}
        for i in np.flatnonzero(ended).tolist():
            seat, mask = self.batch.seats[i], self.batch.masks[i].copy()
            last: Any = observations[i].copy()
            if self.mask_in_observation:
                last = {"action_mask": mask.copy(), "observation": last}
            info = {"action_mask": mask, "player": int(seat.player), "agent_player": int(seat.agent)}
            info["utilities"] = utilities[i].copy()
            if seat.forfeit:
                info["forfeit"] = True
            infos = self._add_info(infos, {"final_obs": last, "final_info": info}, i)
        return infos
