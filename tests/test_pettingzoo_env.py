"""The PettingZoo environments: PettingZoo's own tests over every game, the rules move for move, and errors."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pettingzoo.test import api_test, seed_test

import envs
from envs.errors import InputError
from envs.game import TERMINAL, legal_actions
from envs.pettingzoo_env import GameAECEnv, env
from envs.registry import GAMES, make
from envs.spaces import IllegalAction

# The planes of an empty board (tic-tac-toe, nim after the last move) are all zeros, and rightly so.
EMPTY_BOARD = "ignore:Observation numpy array is all zeros"


@pytest.mark.filterwarnings(EMPTY_BOARD)
@pytest.mark.filterwarnings("ignore:Action mask is a single number")
@pytest.mark.parametrize("game", [name for name in GAMES if make(name).num_players >= 2])
def test_pettingzoos_tests(game, capsys):
    cycles = 60 if make(game).max_length > 1000 else 200
    api_test(env(game), num_cycles=cycles)
    seed_test(lambda: env(game), num_cycles=cycles)
    assert "Passed API test" in capsys.readouterr().out


@pytest.mark.filterwarnings(EMPTY_BOARD)
@pytest.mark.filterwarnings("ignore:Observation is not a NumPy array")  # PettingZoo's own games have dictionaries too,
@pytest.mark.filterwarnings("ignore:Observation space for each agent")  # but it knows those by name
def test_pettingzoos_tests_with_masks_in_observations():
    api_test(env("connect_four", mask_in_observation=True), num_cycles=100)
    seed_test(lambda: env("connect_four", mask_in_observation=True), num_cycles=100)


@pytest.mark.parametrize("game", ["connect_four", "checkers", "tic_tac_toe_three", "othello"])
def test_agents_move_as_the_rules_say(game):
    aec, rules = env(game), make(game)
    aec.reset(seed=1)
    state, rng = rules.new()[0], np.random.default_rng(1)
    repeated, last = False, None
    for agent in aec.agent_iter(80):
        observation, reward, terminated, truncated, info = aec.last()
        if terminated:
            assert rules.player(state) == TERMINAL
            assert reward == rules.utility(state, int(agent[-1]))
            aec.step(None)
            continue
        assert not truncated and reward == 0.0
        assert agent == f"player_{rules.player(state)}"
        planes = np.zeros(rules.observation_shape, np.float32)
        rules.observe(state, planes)
        legal = legal_actions(rules, state)
        assert np.array_equal(observation, planes) and np.flatnonzero(info["action_mask"]).tolist() == legal
        repeated, last = repeated or agent == last, agent
        action = int(rng.choice(legal))
        aec.step(action)
        rules.play(state, action)
    assert repeated or game != "checkers"  # a man that goes on jumping
    assert aec.agents == [] or rules.max_length > 60


def test_dice_repeat_with_the_seed():
    def texts(seed):
        aec = env("pig", render_mode="ansi")
        aec.reset(seed=seed)
        seen = []
        for _ in range(20):
            aec.step(0)
            seen.append(aec.render())
        return seen

    assert texts(3) == texts(3) != texts(4)


def test_only_the_agent_to_move_may_do_something():
    aec = env("tic_tac_toe", mask_in_observation=True)
    aec.reset(seed=0)
    assert aec.observe("player_0")["action_mask"].all() and not aec.observe("player_1")["action_mask"].any()
    aec.step(4)
    assert aec.agent_selection == "player_1" and aec.infos["player_1"]["action_mask"].sum() == 8


def test_illegal_actions():
    aec = env("tic_tac_toe")
    aec.reset()
    aec.step(4)
    for action, message in [(4, "action 4 is not legal here"), (9, "no action of"), (None, "not a whole number")]:
        with pytest.raises(IllegalAction, match=message):
            aec.step(action)
    assert aec.agent_selection == "player_1"
    loser = env("tic_tac_toe", illegal_action="forfeit")
    loser.reset()
    loser.step(4), loser.step(4)
    assert loser.rewards == {"player_0": 1.0, "player_1": -1.0} and all(loser.terminations.values())


def test_parameters_pictures_and_bad_options():
    aec = env("connect_four", rows=5, columns=6, render_mode="rgb_array")
    aec.reset(seed=0)
    assert aec.render().shape == (288, 336, 3) and aec.state().shape == (6, 5, 6)
    assert (
        str(aec.unwrapped.metadata["name"]) == "connect_four_v0"
        and GameAECEnv(make("nim")).metadata["name"] == "Nim_v0"
    )
    aec.close()
    for options in ({"render_mode": "human"}, {"illegal_action": "ignore"}, {"columns": 0}, {"height": 2}):
        with pytest.raises(InputError):
            env("connect_four", **options)


def test_without_pettingzoo_the_error_says_what_to_install():
    code = """
import sys
sys.modules["pettingzoo"] = None  # as if it were not installed
from envs.errors import InputError
try:
    import envs.pettingzoo_env
except InputError as error:
    print(error)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(envs.__file__).parents[1])}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert run.stdout.strip().endswith("pip install 'selfplay[pettingzoo]'"), run.stderr
