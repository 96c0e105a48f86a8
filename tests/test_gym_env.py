"""The Gymnasium environment of every game: Gymnasium's own checker, the rules move for move, snapshots and errors."""

import copy
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.utils.env_checker import check_env

import envs
import envs.opponents
from envs.batch import EVERYONE
from envs.errors import InputError
from envs.game import TERMINAL, legal_actions
from envs.gym_env import GameEnv
from envs.gym_plugin import env_id, register_all
from envs.registry import GAMES, make
from envs.spaces import IllegalAction

ROOT = Path(envs.__file__).parents[1]
LONG = 60  # moves after which the long games of a test are left unfinished


def episode(env, seed=None, choose=None, limit=LONG):
    """Plays random legal moves, or those that `choose` gives; returns all that was seen."""
    observation, info = env.reset(seed=seed)
    seen = [(observation, 0.0, False, info, None)]
    rng = np.random.default_rng(seed or 0)
    for _ in range(limit):
        action = choose(info) if choose else rng.choice(np.flatnonzero(info["action_mask"]))
        observation, reward, terminated, truncated, info = env.step(action)
        assert not truncated
        seen.append((observation, reward, terminated, info, int(action)))
        if terminated:
            break
    return seen


def same(one, other):
    """Whether two results of `episode` agree in everything."""
    return len(one) == len(other) and all(
        np.array_equal(a[0], b[0])
        and a[1:3] == b[1:3]
        and a[3].keys() == b[3].keys()
        and all(np.array_equal(a[3][key], b[3][key]) for key in a[3])
        and a[4] == b[4]
        for a, b in zip(one, other, strict=True)
    )


@pytest.fixture
def lowest_agent(monkeypatch):
    """Makes the opponent 'lowest' known: it plays the lowest legal action, or with 'noisy' a random one of its own."""

    class Agent:
        def __init__(self, spec, game, seed):
            self.noisy, self.game, self.rng = spec == "noisy", game, np.array([seed + 1, 0], np.uint64)

        def reset(self):
            self.games = getattr(self, "games", 0) + 1

        def choose(self, state):
            legal = legal_actions(self.game, state)
            if not self.noisy:
                return -1 if self.game.num_actions == 3 else legal[0]
            word = int(self.rng[0]) * 6364136223846793005 + 1442695040888963407 & 0xFFFF_FFFF_FFFF_FFFF
            self.rng[0] = word
            return legal[(word >> 33) % len(legal)]

    class Entry:
        @staticmethod
        def load():
            return Agent

    monkeypatch.setattr(envs.opponents, "entry_points", lambda group: [Entry])


# --- registration ------------------------------------------------------------------------------------


def test_every_game_has_an_id():
    register_all()  # once more changes nothing
    ours = [name for name in gymnasium.registry if name.startswith("selfplay/")]
    assert sorted(ours) == sorted(env_id(game) for game in GAMES)
    assert {"selfplay/ConnectFour-v0", "selfplay/TicTacToe-v0", "selfplay/Chess-v0"} <= set(ours)


def python(code, *options, **variables):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(
        [sys.executable, *options, "-c", code], env=environment, capture_output=True, text=True, check=False
    )


def test_gymnasium_finds_the_ids_without_an_import_of_ours(tmp_path):
    hook = (ROOT / "selfplay_environments.pth").read_text()
    (tmp_path / "selfplay_environments.pth").write_text(hook)
    code = f"""
import site, sys
site.addsitedir({str(tmp_path)!r})  # what Python does with its own folder of packages when it starts
assert not {{"gymnasium", "numba", "numpy"}} & sys.modules.keys()
import gymnasium
env = gymnasium.make("selfplay/ConnectFour-v0", rows=5, columns=6, opponent="random")
print(env.reset(seed=1)[0].shape)
"""
    run = python(code)
    assert run.stdout.strip() == "(6, 5, 6)", run.stderr


def test_gymnasium_imports_us_by_the_prefix_of_an_id():
    run = python("import gymnasium; print(gymnasium.make('envs:selfplay/TicTacToe-v0').unwrapped.game)", "-W", "error")
    assert run.stdout.startswith("MNK(rows=3"), run.stderr


def test_importing_envs_is_quick_and_loads_nothing_heavy():
    code = """
import sys, time
started = time.process_time()
import envs
took = time.process_time() - started
assert not {"numba", "gymnasium", "numpy", "torch"} & sys.modules.keys()
import gymnasium
assert "selfplay/Go-v0" in gymnasium.registry and "numba" not in sys.modules
assert not any("envs" in type(finder).__module__ for finder in sys.meta_path)
assert type(gymnasium.__spec__.loader).__name__ == "SourceFileLoader"
print(took)
"""
    run = python(code)
    assert float(run.stdout) < 1.0, run.stderr


def test_registering_after_gymnasium_was_imported():
    run = python("import gymnasium, envs; print('selfplay/Nim-v0' in gymnasium.registry)")
    assert run.stdout.strip() == "True", run.stderr


# --- the rules through the environment ---------------------------------------------------------------


@pytest.mark.parametrize("game", GAMES)
def test_gymnasium_checker(game):
    check_env(gymnasium.make(env_id(game)).unwrapped)


@pytest.mark.parametrize(
    "options",
    [
        {"mask_in_observation": True},
        {"opponent": None},
        {"agent_player": "alternate", "render_mode": "ansi"},
        {"agent_player": 1, "render_mode": "rgb_array", "illegal_action": "forfeit"},
    ],
    ids=str,
)
def test_gymnasium_checker_with_options(options):
    check_env(gymnasium.make("selfplay/TicTacToe-v0", **options).unwrapped)


@pytest.mark.parametrize("game", GAMES)
def test_random_episodes_keep_every_promise(game):
    env = gymnasium.make(env_id(game), agent_player="alternate").unwrapped
    players, ended = set(), 0
    for seed in range(4):
        seen = episode(env, seed if seed == 0 else None)
        players.add(seen[0][3]["agent_player"])
        for observation, reward, terminated, info, _ in seen:
            assert observation in env.observation_space
            assert info["action_mask"].any() and info["action_mask"].dtype == np.int8
            if not terminated:
                assert reward == 0.0 and info["player"] == info["agent_player"] and "utilities" not in info
        if seen[-1][2]:
            ended += 1
            info = seen[-1][3]
            utilities = [env.game.utility(env.state, player) for player in range(env.game.num_players)]
            assert info["utilities"].tolist() == utilities and seen[-1][1] == utilities[info["agent_player"]]
            assert info["player"] == TERMINAL == env.game.player(env.state)
        elif not env.batch.seats[0].finished:
            assert env.batch.legal(0) == legal_actions(env.game, env.state)
    assert players == {seed % env.game.num_players for seed in range(4)}
    assert ended or env.game.max_length > LONG


@pytest.mark.parametrize("game", ["connect_four", "tic_tac_toe_three", "othello", "checkers"])
def test_choosing_for_everyone_follows_the_rules(game):
    env, rules = gymnasium.make(env_id(game), opponent=None).unwrapped, make(game)
    _, info = env.reset(seed=5)
    state, rng = rules.new()[0], np.random.default_rng(5)
    for _ in range(LONG):
        legal = legal_actions(rules, state)
        mover = rules.player(state)
        assert np.flatnonzero(info["action_mask"]).tolist() == legal
        assert info["player"] == mover and info["agent_player"] == EVERYONE
        action = int(rng.choice(legal))
        rules.play(state, action)
        planes = np.zeros(rules.observation_shape, np.float32)
        rules.observe(state, planes)
        observation, reward, terminated, _, info = env.step(action)
        assert np.array_equal(observation, planes)
        assert terminated == (rules.player(state) == TERMINAL)
        if terminated:
            assert reward == rules.utility(state, mover)  # of the player who moved last
            break


def test_parameters_of_the_game_are_keywords():
    env = gymnasium.make("selfplay/ConnectFour-v0", rows=5, columns=6)
    assert env.action_space == gymnasium.spaces.Discrete(6)
    assert env.observation_space.shape == (6, 5, 6)
    assert GameEnv(make("connect_four:rows=4")).game.rows == 4


def test_the_random_opponent_takes_every_move():
    env = GameEnv("tic_tac_toe", agent_player=1)
    firsts = {int(np.flatnonzero(env.reset(seed=seed)[1]["action_mask"] == 0)[0]) for seed in range(200)}
    assert firsts == set(range(9))


def test_dictionary_observations_hold_the_mask():
    env = gymnasium.make("selfplay/TicTacToe-v0", mask_in_observation=True)
    seen = episode(env, seed=3)
    for observation, _, _, info, _ in seen:
        assert list(observation) == ["action_mask", "observation"]
        assert np.array_equal(observation["action_mask"], info["action_mask"])
    assert seen[-1][3]["action_mask"].all()  # after the end every action is as good as any other


def test_same_seed_same_episode():
    env, other = GameEnv("pig", agent_player=1), GameEnv("pig", agent_player=1)
    first = [episode(env, 7), episode(env), episode(env)]
    again = [episode(other, 7), episode(other), episode(other)]
    assert all(same(a, b) for a, b in zip(first, again, strict=True))
    assert not same(first[0], episode(env, 8))


def test_samples_are_legal():
    env = gymnasium.make("selfplay/Othello-v0")
    for seed in range(3):
        env.action_space.seed(seed)
        before = env.action_space.sample()  # announced: legal after reset(seed=seed)
        env.reset(seed=seed)
        terminated = env.step(before)[2]
        while not terminated:
            terminated = env.step(env.action_space.sample())[2]
    assert copy.deepcopy(env.action_space) == env.action_space == gymnasium.spaces.Discrete(65)


def test_interpreted_and_compiled_agree():
    code = """
import json
from envs.gym_env import GameEnv
lines = []
for game, player in (("connect_four", 1), ("pig", 0), ("tic_tac_toe_three", 2)):
    env = GameEnv(game, agent_player=player)
    observation, info = env.reset(seed=11)
    for _ in range(12):
        action = info["action_mask"].tolist().index(1)
        observation, reward, terminated, _, info = env.step(action)
        lines.append([action, float(observation.sum()), reward, terminated, info["action_mask"].tolist()])
        if terminated:
            observation, info = env.reset()
print(json.dumps(lines))
"""
    compiled, interpreted = python(code), python(code, NUMBA_DISABLE_JIT="1")
    assert compiled.stdout and json.loads(compiled.stdout) == json.loads(interpreted.stdout), interpreted.stderr


# --- opponents ---------------------------------------------------------------------------------------


def test_opponents_are_agents_by_their_spec(lowest_agent):
    env = GameEnv("connect_four", opponent="lowest", agent_player=1)
    observation, info = env.reset(seed=0)
    assert observation[1, 5, 0] == 1 and info["player"] == 1  # its disc lies in the first column already
    for _ in range(2):
        env.step(6)
    _, reward, terminated, _, info = env.step(6)
    assert (reward, terminated) == (-1.0, True)  # four in the first column
    assert info["utilities"].tolist() == [1.0, -1.0]


def test_the_same_opponent_plays_all_other_seats(lowest_agent):
    env = GameEnv("tic_tac_toe_three", opponent="lowest", agent_player=2)
    env.reset()
    assert env.game.cells(env.state).reshape(-1)[:3].tolist() == [1, 2, 0]


def test_an_opponent_that_breaks_the_rules_is_named(lowest_agent):
    env = GameEnv("nim_cubes", opponent="lowest", heaps=(3,), take=3, agent_player=1)
    with pytest.raises(RuntimeError, match="opponent 'lowest' chose -1"):
        env.reset()


def test_real_agents_are_found():
    with pytest.raises(InputError, match="unknown agent 'nobody'; agents: .*random"):
        gymnasium.make("selfplay/Nim-v0", opponent="nobody")


def test_without_agents_only_random_plays(monkeypatch):
    monkeypatch.setattr(envs.opponents, "entry_points", lambda group: [])
    with pytest.raises(InputError, match="opponent 'mcts': no installed package offers agents"):
        GameEnv("nim", opponent="mcts")
    episode(GameEnv("nim", opponent="random"), 1)


# --- snapshots ---------------------------------------------------------------------------------------


def go_on(env, actions):
    return [
        (observation.tobytes(), reward, terminated, info["action_mask"].tobytes())
        for observation, reward, terminated, _, info in map(env.step, actions)
    ]


def play_on(env, count):
    """Random legal moves until the end or `count` of them: the actions and what came of each."""
    actions, results = [], []
    for _ in range(count):
        if env.batch.seats[0].finished:
            break
        actions.append(int(env.action_space.sample()))
        results += go_on(env, actions[-1:])
    return actions, results


@pytest.mark.parametrize("game", GAMES)
def test_snapshots_are_exact(game):
    env = gymnasium.make(env_id(game), agent_player="alternate").unwrapped
    for seed in range(3):
        env.reset(seed=seed if seed == 0 else None)
        play_on(env, seed)
        snapshot, twin = env.get_state(), env.clone()
        actions, results = play_on(env, 20)
        following = env.reset()[0].tobytes()
        env.set_state(snapshot)
        assert env.get_state() == snapshot == twin.get_state()
        assert go_on(env, actions) == results
        assert env.reset()[0].tobytes() == following
        assert twin.get_state() == snapshot  # nothing that the first one did reached its clone
        assert go_on(twin, actions) == results
        assert twin.reset()[0].tobytes() == following


def test_snapshots_with_an_opponent_that_throws_its_own_dice(lowest_agent):
    env = GameEnv("othello", opponent="noisy", agent_player=1)
    env.reset(seed=2)
    play_on(env, 3)
    snapshot, twin, deep = env.get_state(), env.clone(), copy.deepcopy(env)
    actions, results = play_on(env, 20)
    env.set_state(snapshot)
    assert go_on(env, actions) == go_on(twin, actions) == go_on(deep, actions) == results
    fresh = GameEnv("othello", opponent="noisy", agent_player=1)
    observation, info = fresh.set_state(snapshot)
    assert np.array_equal(observation, fresh.observe()[0]) and info["player"] == 1
    assert go_on(fresh, actions) == results


def test_snapshots_of_other_games_are_refused():
    nim, four = GameEnv("nim"), GameEnv("connect_four")
    nim.reset(), four.reset()
    with pytest.raises(InputError, match="set_state: this is no snapshot of ConnectFour"):
        four.set_state(nim.get_state())
    with pytest.raises(InputError, match="set_state"):
        four.set_state("nonsense")


# --- errors ------------------------------------------------------------------------------------------


def finished_env(**options):
    env = gymnasium.make("selfplay/TicTacToe-v0", **options)
    episode(env, seed=0)
    return env


def test_a_finished_or_fresh_environment_must_be_reset():
    env = finished_env()
    for _ in range(2):
        with pytest.raises(ResetNeeded, match="after the end of the episode: call reset"):
            env.step(0)
    env.reset()
    env.step(env.action_space.sample())
    fresh = GameEnv("tic_tac_toe", render_mode="ansi")
    for call in (lambda: fresh.step(0), fresh.render, fresh.get_state, fresh.observe):
        with pytest.raises(ResetNeeded):
            call()


@pytest.mark.parametrize("action", [4, 9, -1, 1.5, None, "a1", np.array([1, 2]), np.array(-2)], ids=repr)
def test_illegal_actions_raise_and_change_nothing(action):
    env = gymnasium.make("selfplay/TicTacToe-v0", opponent=None).unwrapped
    env.reset(seed=0)
    env.step(4)
    before = env.get_state()
    with pytest.raises(IllegalAction, match="action .* is ") as caught:
        env.step(action)
    assert isinstance(caught.value, InvalidAction) and isinstance(caught.value, InputError)
    assert env.get_state() == before
    env.step(np.int32(0)), env.step(np.array(1))


def test_an_illegal_action_names_the_legal_ones():
    env = GameEnv("tic_tac_toe", opponent=None)
    env.reset()
    env.step(4)
    with pytest.raises(IllegalAction, match="action 4 is not legal here; legal actions: 0, 1, 2, 3, 5, 6, 7, 8$"):
        env.step(4)


@pytest.mark.parametrize(
    ("game", "utilities"),
    [("tic_tac_toe", [-1.0, 1.0]), ("tic_tac_toe_three", [-0.5, 0.25, 0.25]), ("twenty_forty_eight", [0.0])],
)
def test_illegal_actions_may_forfeit(game, utilities):
    env = gymnasium.make(env_id(game), illegal_action="forfeit").unwrapped
    _, info = env.reset(seed=1)
    while info["action_mask"].all():
        _, _, _, _, info = env.step(env.action_space.sample())
    board = env.state.tobytes()
    _, reward, terminated, _, info = env.step(int(np.flatnonzero(info["action_mask"] == 0)[0]))
    assert (reward, terminated, info["forfeit"]) == (utilities[0], True, True)
    assert info["utilities"].tolist() == utilities and env.state.tobytes() == board
    with pytest.raises(ResetNeeded):
        env.step(0)
    env.reset()
    with pytest.raises(IllegalAction, match="is no action of"):
        env.step(env.game.num_actions)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": 0}, "columns must be at least 1"),
        ({"rows": 8, "columns": 8}, "does not fit"),
        ({"height": 3}, "has no parameter 'height'; parameters: rows, columns, connect"),
        ({"agent_player": 2}, "agent_player=2 must be one of 0, 1 or 'alternate'"),
        ({"agent_player": "first"}, "agent_player='first' must be one of"),
        ({"opponent": 3}, "opponent=3 must be an agent's spec"),
        ({"illegal_action": "ignore"}, "illegal_action='ignore' must be one of 'raise', 'forfeit'"),
        ({"render_mode": "human"}, "render_mode='human' must be one of None, 'ansi', 'rgb_array'"),
    ],
    ids=str,
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        GameEnv("connect_four", **options)


def test_bad_games():
    with pytest.raises(InputError, match="unknown game 'conect_four'"):
        GameEnv("conect_four")
    with pytest.raises(InputError, match="parameters rows: give them to the game"):
        GameEnv(make("connect_four"), rows=5)


def test_a_player_who_never_moves():
    with pytest.raises(InputError, match="agent_player=1: .* ends before this player's first move"):
        GameEnv("nim", heaps=(1,), agent_player=1).reset()


# --- pictures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", GAMES)
def test_pictures(game):
    env = gymnasium.make(env_id(game), render_mode="rgb_array").unwrapped
    text = gymnasium.make(env_id(game), render_mode="ansi").unwrapped
    env.reset(seed=4), text.set_state(env.get_state())
    env.action_space.seed(4)
    first = env.render()
    assert first.dtype == np.uint8 and first.ndim == 3 and first.shape[2] == 3
    assert text.render() == env.game.show(env.state)
    for action in play_on(env, 4)[0]:
        text.step(action)
    assert env.render().shape == first.shape and text.render() == env.game.show(env.state)
    assert not np.array_equal(env.render(), first)


def test_discs_are_where_the_board_has_them():
    env = GameEnv("connect_four", opponent=None, render_mode="rgb_array")
    env.reset()
    for column in (0, 6, 0):
        env.step(column)
    picture, cells = env.render(), env.game.cells(env.state)
    red, yellow = (214, 62, 54), (242, 190, 52)
    for row, column in itertools.product(range(6), range(7)):
        middle = tuple(int(channel) for channel in picture[24 + 48 * row + 24, 24 + 48 * column + 24])
        assert (middle == red) == (cells[row, column] == 1) and (middle == yellow) == (cells[row, column] == 2)
