"""One Gymnasium environment for all games.

    env = gymnasium.make("selfplay/ConnectFour-v0", opponent="random", agent_player=0)

The caller chooses for one player; chance and the opponents play inside `step`. The reward is zero until the game is
over and then the player's utility. With `opponent=None` the caller chooses for whoever is to move, and the reward
is the utility of the player who moved last. `info` holds `action_mask` (1: legal), `player` (to move now, -2 after
the end), `agent_player` (-1 for everyone) and, at the end, `utilities` of all players.
"""

import copy
import operator
from typing import Any, ClassVar, NamedTuple

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded

from envs.batch import ALTERNATE, EVERYONE, Batch, set_bytes
from envs.errors import InputError
from envs.game import Game
from envs.opponents import Opponents
from envs.registry import make
from envs.render import picture
from envs.spaces import IllegalAction, LegalDiscrete, observation_space

RENDER_MODES = ("ansi", "rgb_array")
ILLEGAL_ACTIONS = ("raise", "forfeit")


class Snapshot(NamedTuple):
    """All that decides how an environment goes on, as bytes: it can be compared, pickled and sent elsewhere."""

    state: bytes
    seat: bytes
    rng: bytes
    opponents: tuple[bytes, ...]
    np_random: Any


def make_batch(
    game: str | Game, count: int, opponent: str | None, agent_player: int | str, parameters: dict[str, Any]
) -> tuple[Batch, Opponents | None]:
    """The games of an environment and, unless they play at random or not at all, the opponents in them."""
    if isinstance(game, str):
        game = make(game, **parameters)
    elif parameters:
        raise InputError(f"parameters {', '.join(parameters)}: give them to the game {game} itself")
    if agent_player != "alternate" and (
        isinstance(agent_player, (bool, str)) or agent_player not in range(game.num_players)
    ):
        players = ", ".join(map(str, range(game.num_players)))
        raise InputError(f"agent_player={agent_player!r} must be one of {players} or 'alternate'")
    if opponent is not None and not isinstance(opponent, str):
        raise InputError(f"opponent={opponent!r} must be an agent's spec such as 'random', or None")
    side = EVERYONE if opponent is None else ALTERNATE if agent_player == "alternate" else int(agent_player)
    at_random = opponent is not None and opponent.strip() == "random"
    batch = Batch(game, count, side, at_random)
    with_agents = opponent is not None and not at_random and game.num_players > 1
    return batch, Opponents(str(opponent), batch) if with_agents else None


def check_option(name: str, value: Any, accepted: tuple[Any, ...]) -> None:
    if value not in accepted:
        raise InputError(f"{name}={value!r} must be one of {', '.join(map(repr, accepted))}")


def check_begun(batch: Batch, which: np.ndarray) -> None:
    """Raises if some game has no move for the caller."""
    stuck = np.flatnonzero(which & (batch.seats.finished != 0))
    if len(stuck):
        player = int(batch.seats[stuck[0]].agent)
        raise InputError(f"agent_player={player}: game {batch.game} ends before this player's first move, every time")


class GameEnv(gymnasium.Env):
    """A game of the registry, or any `Game` object, as a Gymnasium environment.

    `agent_player` is the caller's player, or 'alternate': the next one with each episode. `mask_in_observation`
    makes the observation a dictionary of `observation` and `action_mask`. An illegal action raises `IllegalAction`,
    or with `illegal_action='forfeit'` ends the episode: the player gets the game's `min_utility`, and what the
    others win by that they share equally if the game is zero-sum. Further keywords are the game's parameters.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": list(RENDER_MODES), "render_fps": 4}  # type: ignore[misc]

    def __init__(
        self,
        game: str | Game,
        *,
        opponent: str | None = "random",
        agent_player: int | str = 0,
        mask_in_observation: bool = False,
        illegal_action: str = "raise",
        render_mode: str | None = None,
        **parameters: Any,
    ):
        check_option("render_mode", render_mode, (None, *RENDER_MODES))
        check_option("illegal_action", illegal_action, ILLEGAL_ACTIONS)
        self.batch, self.opponents = make_batch(game, 1, opponent, agent_player, parameters)
        self.opponent, self.mask_in_observation, self.illegal_action = opponent, mask_in_observation, illegal_action
        self.render_mode = render_mode
        self.action_space = LegalDiscrete(self.game.num_actions, self._legal)
        self.observation_space = observation_space(self.game, mask_in_observation)
        self._begun = False

    @property
    def game(self) -> Game:
        return self.batch.game

    @property
    def state(self) -> Any:
        """The game's own state, a record; change it by `step` or `set_state` only."""
        return self.batch.states[0]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts a new game. Without a seed the dice and the opponents go on where they were."""
        super().reset(seed=seed)
        if seed is None and not self._begun:
            seed = int(self.np_random.integers(1 << 62))
        if seed is not None:
            self.batch.seed(0, seed)
            if self.opponents:
                self.opponents.seed(0, seed)
        everywhere, observations = self.batch.everywhere, self.batch.new_observations()
        self.batch.begin(everywhere, observations)
        if self.opponents:
            self.opponents.begin(everywhere)
            self.batch.look(observations)
        check_begun(self.batch, everywhere)
        self._begun = True
        return self._seen(observations[0])

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Plays the action, then chance and the opponents until the caller is to move again or the game is over."""
        if not self._begun or self.batch.seats[0].finished:
            raise ResetNeeded(f"step() {'after the end of the episode' if self._begun else ''}: call reset() first")
        actions = np.array([self._checked(action)])
        observations = self.batch.new_observations()
        rewards, terminations, utilities = self.batch.step(actions, observations)
        if self.opponents:
            self.opponents.reply()
            rewards, terminations, utilities = self.batch.look(observations)
        observation, info = self._seen(observations[0])
        if terminations[0]:
            info["utilities"] = utilities[0]
            if self.batch.seats[0].forfeit:
                info["forfeit"] = True
        return observation, float(rewards[0]), bool(terminations[0]), False, info

    def observe(self) -> tuple[Any, dict[str, Any]]:
        """The present observation and info once more, as after `reset`."""
        self._check_begun("observe")
        return self._look()

    def render(self) -> Any:
        """The board as text with ANSI colours, or as an array of pixels."""
        if self.render_mode is None:
            gymnasium.logger.warn(f"render() shows nothing without a render_mode: {', '.join(RENDER_MODES)}")
            return None
        self._check_begun("render")
        return self.game.show(self.state) if self.render_mode == "ansi" else picture(self.game, self.state)

    # --- for planners --------------------------------------------------------------------------------

    def get_state(self) -> Snapshot:
        """All that decides how this environment goes on: the game, whose turn, and the random generators.

        An opponent's memory of the game so far is not in it, but for its random generator.
        """
        self._check_begun("get_state")
        batch = self.batch
        memory = self.opponents.memory(0) if self.opponents else ()
        numbers = self.np_random.bit_generator.state
        return Snapshot(batch.states.tobytes(), batch.seats.tobytes(), batch.rngs.tobytes(), memory, numbers)

    def set_state(self, snapshot: Snapshot) -> tuple[Any, dict[str, Any]]:
        """Goes back to a snapshot of this environment or of one that was made alike; returns what `reset` would."""
        batch = self.batch
        targets = ((batch.states, "state"), (batch.seats, "seat"), (batch.rngs, "rng"))
        if any(array.nbytes != len(getattr(snapshot, name, b"")) for array, name in targets):
            raise InputError(
                f"set_state: this is no snapshot of {self.game}, whose state has {batch.states.nbytes} bytes"
            )
        if not self._begun:
            self.reset()
        for array, name in targets:
            set_bytes(array, getattr(snapshot, name))
        if self.opponents:
            self.opponents.remember(0, snapshot.opponents)
        self.np_random.bit_generator.state = snapshot.np_random
        return self._look()

    def clone(self) -> "GameEnv":
        """An independent environment that goes on exactly as this one would."""
        other = copy.copy(self)
        other.batch = self.batch.copy()
        other.action_space = LegalDiscrete(self.game.num_actions, other._legal)
        other.action_space.announced = self.action_space.announced  # type: ignore[attr-defined]
        other.action_space._np_random = copy.deepcopy(self.action_space._np_random)
        other._np_random = copy.deepcopy(self._np_random)
        if self.opponents:
            other.opponents = Opponents(self.opponents.spec, other.batch)
            if self._begun:
                other.opponents.seed(0, 0)
                other.opponents.remember(0, self.opponents.memory(0))
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> "GameEnv":
        return self.clone()

    # --- helpers -------------------------------------------------------------------------------------

    def _check_begun(self, name: str) -> None:
        if not self._begun:
            raise ResetNeeded(f"{name}(): call reset() first")

    def _checked(self, action: Any) -> int:
        try:
            number = operator.index(action.item() if isinstance(action, np.ndarray) else action)
        except (TypeError, ValueError):
            raise IllegalAction(f"action {action!r} is not a whole number") from None
        if self.batch.first_illegal(np.array([number]), self.illegal_action == "forfeit") >= 0:
            raise IllegalAction(illegal_sentence(self.batch, 0, number))
        return number

    def _look(self) -> tuple[Any, dict[str, Any]]:
        observations = self.batch.new_observations()
        self.batch.look(observations)
        return self._seen(observations[0])

    def _seen(self, planes: np.ndarray) -> tuple[Any, dict[str, Any]]:
        self.action_space.announced = None  # type: ignore[attr-defined]
        seat, mask = self.batch.seats[0], self.batch.masks[0]
        info = {"action_mask": mask.copy(), "player": int(seat.player), "agent_player": int(seat.agent)}
        return {"action_mask": mask.copy(), "observation": planes} if self.mask_in_observation else planes, info

    def _legal(self, announced: int | None) -> np.ndarray:
        """The mask for `action_space.sample()`: of now, or of the episode that a seed announces."""
        if announced is None:
            return self.batch.masks[0]
        ahead = self.clone()
        ahead.reset(seed=announced)
        return ahead.batch.masks[0]


def illegal_sentence(batch: Batch, i: int, action: int) -> str:
    """Why the action cannot be played in game i."""
    if not 0 <= action < batch.game.num_actions:
        return f"action {action} is no action of {batch.game}: actions are 0 to {batch.game.num_actions - 1}"
    legal = batch.legal(i)
    names = ", ".join(map(str, legal[:40])) + (", …" if len(legal) > 40 else "")
    return f"action {action} is not legal here; legal actions: {names}"
