"""The compiled vector environment beside Gymnasium's own vector of single environments, move for move."""

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode

import envs.opponents
from envs.errors import InputError
from envs.game import legal_actions
from envs.gym_plugin import env_id
from envs.registry import GAMES, make
from envs.spaces import IllegalAction
from envs.vector_env import GameVectorEnv


def compiled(game, count, **options):
    return gymnasium.make_vec(env_id(game), count, vectorization_mode="vector_entry_point", **options)


def one_by_one(game, count, mode=AutoresetMode.NEXT_STEP, **options):
    return gymnasium.make_vec(
        env_id(game), count, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}, **options
    )


def assert_same(one, other, where=""):
    """Equal in structure, types and values."""
    assert type(one) is type(other), where
    if isinstance(one, dict):
        assert one.keys() == other.keys(), (where, one.keys() ^ other.keys())
        for key in one:
            assert_same(one[key], other[key], f"{where}/{key}")
    elif isinstance(one, (tuple, list)):
        assert len(one) == len(other), where
        for index, pair in enumerate(zip(one, other, strict=True)):
            assert_same(*pair, f"{where}/{index}")
    elif isinstance(one, np.ndarray) and one.dtype == object:
        assert_same(one.tolist(), other.tolist(), where)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype and np.array_equal(one, other), (where, one, other)
    else:
        assert one == other, where


def play_beside(ours, theirs, steps, seed):
    """Plays both with the same random legal actions; returns how many episodes ended."""
    first, second = ours.reset(seed=seed), theirs.reset(seed=seed)
    assert_same(first, second)
    masks, rng, ended = first[1]["action_mask"], np.random.default_rng(seed), 0
    for _ in range(steps):
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])
        first, second = ours.step(actions), theirs.step(actions)
        assert_same(first, second)
        masks, finished = first[4]["action_mask"], first[2]
        ended += int(finished.sum())
        if ours.metadata["autoreset_mode"] is AutoresetMode.DISABLED and finished.any():
            first = ours.reset(options={"reset_mask": finished.copy()})
            second = theirs.reset(options={"reset_mask": finished.copy()})
            assert_same(first, second)
            masks = np.where(finished[:, None], first[1]["action_mask"], masks)
    return ended


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("game", ["tic_tac_toe", "pig:goal=20"])
def test_all_autoreset_modes_equal_gymnasiums(game, mode):
    name, _, rest = game.partition(":")
    options = {"agent_player": "alternate", **({"goal": 20} if rest else {})}
    ours = compiled(name, 5, autoreset_mode=mode.value, **options)
    assert ours.metadata["autoreset_mode"] is mode
    assert play_beside(ours, one_by_one(name, 5, mode, **options), 60, seed=3) > 10


@pytest.mark.parametrize(
    ("game", "options"),
    [
        ("connect_four", {"agent_player": 1, "mask_in_observation": True}),
        ("tic_tac_toe_three", {"agent_player": 2}),
        ("tic_tac_toe", {"opponent": None}),
        ("twenty_forty_eight", {}),
        ("nim", {"agent_player": 1, "mask_in_observation": True, "opponent": None}),
    ],
    ids=str,
)
def test_other_games_and_options(game, options):
    play_beside(compiled(game, 4, **options), one_by_one(game, 4, **options), 40, seed=8)


def test_final_observations_may_hold_masks():
    options = {"mask_in_observation": True}
    ours = compiled("tic_tac_toe", 4, autoreset_mode=AutoresetMode.SAME_STEP, **options)
    assert play_beside(ours, one_by_one("tic_tac_toe", 4, AutoresetMode.SAME_STEP, **options), 30, seed=1) > 5


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_forfeits(mode):
    options = {"illegal_action": "forfeit"}
    ours, theirs = (
        compiled("tic_tac_toe", 6, autoreset_mode=mode, **options),
        one_by_one("tic_tac_toe", 6, mode, **options),
    )
    assert_same(ours.reset(seed=2), theirs.reset(seed=2))
    rng, forfeits = np.random.default_rng(2), 0
    for _ in range(40):
        actions = rng.integers(0, 9, 6)
        mine = ours.step(actions)
        assert_same(mine, theirs.step(actions))
        infos = mine[4] if mode is AutoresetMode.NEXT_STEP else mine[4].get("final_info", {})
        forfeits += int(infos.get("forfeit", np.zeros(6)).sum())
    assert forfeits > 10


class Lowest:
    """An agent that plays its lowest legal action, and every third time its highest."""

    def __init__(self, spec, game, seed):
        self.game, self.rng = game, np.array([seed, 0], np.uint64)

    def reset(self):
        pass

    def choose(self, state):
        self.rng[0] += np.uint64(1)
        return legal_actions(self.game, state)[-1 if self.rng[0] % np.uint64(3) == 0 else 0]

    @classmethod
    def load(cls):
        return cls


def test_agents_as_opponents(monkeypatch):
    monkeypatch.setattr(envs.opponents, "entry_points", lambda group: [Lowest])
    for options in ({"agent_player": "alternate"}, {"agent_player": 1}):
        options["opponent"] = "lowest"
        ours, theirs = compiled("tic_tac_toe", 3, **options), one_by_one("tic_tac_toe", 3, **options)
        assert play_beside(ours, theirs, 40, seed=5) > 5
    same = compiled("tic_tac_toe", 3, autoreset_mode="SameStep", opponent="lowest", agent_player=1)
    theirs = one_by_one("tic_tac_toe", 3, AutoresetMode.SAME_STEP, opponent="lowest", agent_player=1)
    assert play_beside(same, theirs, 40, seed=6) > 5


@pytest.mark.parametrize("game", GAMES)
def test_samples_play_every_game(game):
    vector = compiled(game, 3, opponent=None)
    vector.action_space.seed(1)
    observations, infos = vector.reset(seed=1)
    for _ in range(12):
        assert observations in vector.observation_space
        for i in range(3):
            if infos["player"][i] >= 0:
                assert np.flatnonzero(infos["action_mask"][i]).tolist() == legal_actions(vector.game, vector.states[i])
        observations, _, _, _, infos = vector.step(vector.action_space.sample())
    assert vector.action_space == gymnasium.spaces.MultiDiscrete([make(game).num_actions] * 3)


def test_samples_repeat_and_differ():
    vector = compiled("connect_four", 50)
    vector.reset(seed=0)
    vector.action_space.seed(4)
    first, second = vector.action_space.sample(), vector.action_space.sample()
    vector.action_space.seed(4)
    assert np.array_equal(first, vector.action_space.sample()) and not np.array_equal(first, second)
    assert set(first) == set(range(7))


def test_returned_arrays_are_the_callers_own_unless_told_otherwise():
    for copy in (True, False):
        vector = compiled("connect_four", 2, copy=copy)
        results = [vector.reset(seed=0)[0], vector.step(np.array([3, 3]))[0], vector.step(np.array([3, 3]))[0]]
        assert np.shares_memory(results[1], results[2]) != copy
        assert np.array_equal(results[1], results[2]) != copy
        masks = [vector.step(np.array([3, 3]))[4]["action_mask"] for _ in range(2)]
        assert np.shares_memory(*masks) != copy and masks[0].flags.writeable == copy


def test_seeds_may_be_a_list():
    vector = compiled("pig", 3, agent_player=1)
    observations, _ = vector.reset(seed=[5, 9, 5])
    assert np.array_equal(observations[0], observations[2]) and not np.array_equal(observations[0], observations[1])
    assert np.array_equal(vector.reset(seed=[9, None, 5])[0][0], observations[1])
    with pytest.raises(InputError, match="seed: 2 seeds for 3 games"):
        vector.reset(seed=[1, 2])


def test_render():
    vector = compiled("tic_tac_toe", 2, render_mode="rgb_array")
    with pytest.raises(ResetNeeded):
        vector.render()
    vector.reset(seed=0)
    assert [frame.shape for frame in vector.render()] == [(192, 192, 3)] * 2
    text = GameVectorEnv("tic_tac_toe", 2, render_mode="ansi")
    text.reset(seed=0)
    assert text.render() == tuple(text.game.show(state) for state in text.states)


def test_illegal_actions_change_no_game():
    vector = compiled("tic_tac_toe", 3, opponent=None)
    with pytest.raises(ResetNeeded):
        vector.step(np.zeros(3, int))
    vector.reset(seed=0)
    vector.step(np.array([0, 1, 2]))
    before = vector.states.tobytes()
    for actions, message in [
        (np.array([1, 1, 3]), "game 1: action 1 is not legal here; legal actions: 0, 2"),
        (np.array([1, 2, 9]), "game 2: action 9 is no action of"),
        (np.array([1, 2]), r"array of 3 whole numbers, not of shape \(2,\)"),
        (np.array([1.0, 2.0, 3.0]), "array of 3 whole numbers, not of shape .* float64"),
    ]:
        with pytest.raises(IllegalAction, match=message):
            vector.step(actions)
    assert vector.states.tobytes() == before
    vector.step([1, 2, 3])


def test_without_autoreset_a_finished_game_must_be_reset():
    vector = compiled("nim_cubes", 2, opponent=None, autoreset_mode="Disabled")
    vector.reset(seed=0)
    vector.step(np.array([1, 0]))
    vector.step(np.array([1, 0]))
    with pytest.raises(ResetNeeded, match="game 0 is over"):
        vector.step(np.array([0, 0]))
    vector.reset(options={"reset_mask": np.array([True, False])})
    assert vector.step(np.array([0, 0]))[2].tolist() == [False, False]
    with pytest.raises(InputError, match="must be an array of 2 booleans"):
        vector.reset(options={"reset_mask": [True, False]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_envs": 0}, "num_envs=0 must be a whole number of at least 1"),
        ({"autoreset_mode": "Never"}, "autoreset_mode='Never' must be one of 'NextStep', 'SameStep', 'Disabled'"),
        ({"illegal_action": "ignore"}, "illegal_action='ignore'"),
        ({"columns": 0}, "columns must be at least 1"),
    ],
    ids=str,
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        GameVectorEnv("connect_four", **options)


def test_a_player_who_never_moves():
    with pytest.raises(InputError, match="agent_player=1: .* ends before this player's first move"):
        compiled("nim", 2, heaps=(1,), agent_player=1).reset()
