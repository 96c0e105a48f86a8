"""Learned linear evaluations: patterns read what is on the board, training repeats and improves, files say what they are."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from typer.testing import CliRunner

from envs.errors import InputError
from envs.game import TERMINAL
from envs.registry import make
from envs.rng import generator
from models.evaluation import make_evaluation
from models.evaluation_file import load_evaluation, save_evaluation, shipped
from models.patterns import Layout, Patterns, room
from selfplay.agents import make_agent
from selfplay.cli import app
from selfplay.play import advance, turn
from selfplay.train.linear.layouts import LAYOUTS, make_layout
from selfplay.train.linear.learners import make_learner
from selfplay.train.linear.regression import newton
from selfplay.train.linear.settings import LinearSettings, settings_of

ROOT = Path(__file__).resolve().parents[1]
QUICK = {"patterns": "lines", "features": False, "games": 200, "match_minutes": 0.0, "save_seconds": 0.0}
WORDS = [word for name, value in QUICK.items() for word in ("--set", f"{name}={str(value).lower()}")]


def settings(**changes):
    return LinearSettings.model_validate({**QUICK, **changes})


def some_states(game, count, seed=3):
    """Positions met in random play."""
    rng, out, found = generator(seed), np.empty(max(game.max_legal, 1), np.int64), []
    with np.errstate(over="ignore"):
        while len(found) < count:
            state = game.new()[0]
            while game.player(state) != TERMINAL and len(found) < count:
                found.append(state.copy())
                game.play(state, game.random_action(state, out, rng))
    return found


def invoke(*words):
    result = CliRunner().invoke(app, list(words))
    if isinstance(result.exception, InputError):
        return 2, str(result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A run at tic-tac-toe, some thousand games long."""
    folder = tmp_path_factory.mktemp("runs")
    words = ["train", "tic_tac_toe", "--method", "linear", "--steps", "10", "--workers", "1", "--seed", "1"]
    code, text = invoke(*words, "--runs", str(folder), "--no-evaluate", *WORDS, "--set", "method=td", "--json")
    assert code == 0, text
    return Path(json.loads(text.splitlines()[-1])["run"])


# --- patterns ------------------------------------------------------------------------------------------


def contents(game, state):
    """What each cell holds, as a digit, from the words bit by bit."""
    cells, digits = game.word_cells()
    found = np.zeros(int(np.prod(game.observation_shape[-2:])), np.int64)
    for word in range(game.num_words):
        bits = int(game.board_word(state, word))
        for bit in range(64):
            if bits >> bit & 1 and cells[word, bit] >= 0:
                found[cells[word, bit]] += digits[word, bit]
    return found


@pytest.mark.parametrize(
    ("name", "patterns"), [("othello", "logistello"), ("checkers", "windows"), ("connect_four", "lines")]
)
def test_indices_are_what_the_cells_hold(name, patterns):
    game = make(name)
    layout = make_layout(patterns, game)
    evaluation = Patterns(layout, np.zeros((1, layout.entries), np.float32), np.zeros((1, 0)))
    for state in some_states(game, 40):
        found = room()
        evaluation.indices(game, state, found)
        held = contents(game, state)
        for place, (_, cells) in enumerate(layout.places):
            expected = sum(int(held[cell]) * game.cell_values**i for i, cell in enumerate(cells))
            assert found[place] == expected


def test_mirror_images_have_the_same_value():
    game = make("othello")
    layout = make_layout("logistello", game)
    weights = np.random.default_rng(0).normal(size=layout.entries).astype(np.float32)[None, layout.canonical]
    evaluation = Patterns(layout, 0.01 * weights, np.zeros((1, 0)))
    scratch = np.zeros(1)
    for state in some_states(game, 10):
        for number in range(1, game.num_symmetries):
            image = state.copy()
            game.transform(image, number)
            assert evaluation.sum_of(game, image, scratch) == pytest.approx(evaluation.sum_of(game, state, scratch))


def test_every_layout_fits_its_games():
    for name in LAYOUTS:
        for spec in ("othello", "othello:size=6", "connect_four", "twenty_forty_eight"):
            assert isinstance(make_layout(name, make(spec)), Layout)
    with pytest.raises(InputError, match="unknown; patterns: none, lines"):
        make_layout("stars", make("othello"))
    with pytest.raises(InputError, match="no cells"):
        make_layout("lines", make("chess"))


# --- learning ------------------------------------------------------------------------------------------


def test_the_configs_settings_are_valid():
    for path in sorted((ROOT / "configs").glob("*.toml")):
        if path.stem != "game_tree" and "[linear]" in path.read_text(encoding="utf-8"):
            make_layout(settings_of(make(path.stem)).patterns, make(path.stem))
    with pytest.raises(InputError, match="unknown key 'stepsize'"):
        settings_of(make("othello"), {"stepsize": 1})


def score_against_random(game, spec, games=60):
    """Points per game, half of them as first player."""
    agent, other, points = make_agent(spec, game, 0), make_agent("random", game, 7), 0.0
    for number in range(games):
        state = game.new()[0]
        while (player := int(turn(game, state))) != TERMINAL:
            advance(game, state, (agent if player == number % 2 else other).choose(state))
        points += 0.5 + 0.5 * float(game.utility(state, number % 2))
    return points / games


def test_td_learns_to_play(learned):
    game = make("tic_tac_toe")
    spec = "alphabeta:depth=1,quiescence=off,eval="
    learned_score, ignorant_score = (score_against_random(game, spec + name, 400) for name in (str(learned), "none"))
    assert learned_score > max(0.9, ignorant_score)


def test_a_regression_finds_the_weights_that_made_the_data():
    rng = np.random.default_rng(0)
    truth = np.array([0.5, -0.3, 0.0])
    inputs = rng.normal(size=(20_000, 3))
    target = np.where(rng.random(20_000) < 0.5 + 0.5 * np.tanh(inputs @ truth), 1.0, -1.0)
    fit = newton(inputs, target, np.arange(20_000) // 5, ridge=0.0)
    assert np.all(np.abs(fit.weights - truth) < 4 * fit.errors) and np.all(fit.errors < 0.02)
    assert fit.held_out < 0.69  # of a coin


@pytest.mark.parametrize(
    "changes",
    [
        {"patterns": "none", "features": True, "method": "regression", "search_games": 40},
        {"patterns": "none", "features": True, "method": "td_leaf", "search_games": 40, "search_decay": 0.7},
        {"method": "regression", "td_share": 0.5, "search_games": 40, "passes": 1},
        {"method": "regression", "td_share": 0.5, "search_games": 40, "passes": 1, "fit_step": "adam"},
        {"method": "td", "step": "adam", "rate": 0.05},
    ],
)
def test_every_method_learns_something_and_repeats(changes):
    found = []
    for _ in range(2):
        learner = make_learner(make("tic_tac_toe"), settings(**changes))
        for step in range(3):
            figures = learner.round(step / 3)
        evaluation = learner.evaluation()
        assert np.any(evaluation.weight_values) or np.any(evaluation.feature_values)
        assert all(np.isfinite(value) for value in figures.values())
        found.append(learner.arrays())
    assert all(np.array_equal(found[0][name], found[1][name]) for name in found[0])


def test_after_passes_with_steps_of_their_own_a_longer_limit_does_not_lead_back_to_td():
    changes = {"method": "regression", "td_share": 0.5, "search_games": 40, "passes": 1}
    for step, expected in (("same", "td/error"), ("adam", "fit/loss")):
        learner = make_learner(make("tic_tac_toe"), settings(**changes, fit_step=step))
        assert "td/error" in learner.round(0.0)
        before = learner.learned().copy()
        assert "fit/loss" in learner.round(0.9)
        moved = np.abs(learner.learned() - before)
        assert 0.0 < moved.max() < 0.5  # a step goes at most fit_rate or so
        assert expected in learner.round(0.1)


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match="two players without chance"):
        make_learner(make("backgammon"), settings(method="td"))
    with pytest.raises(InputError, match="needs patterns"):
        make_learner(make("tic_tac_toe"), settings(method="td", patterns="none")).round(0.0)
    with pytest.raises(InputError, match="variant of the same game"):
        make_learner(make("othello"), settings(learn_as="othello:size=6", patterns="none", features=True)).round(0.0)


def train_command(folder, steps):
    words = ["tic_tac_toe", "--method", "linear", "--steps", str(steps), "--workers", "1", "--seed", "5"]
    words += ["--runs", str(folder), "--no-evaluate", *WORDS]
    words += ["--set", "td_share=0.5", "--set", "search_games=40", "--set", "passes=1"]
    return [sys.executable, "-P", "-m", "selfplay.cli", "train", *words]


def final(folder):
    (run,) = folder.iterdir()
    (state,) = (run / "state").iterdir()
    return run, load_file(state / "arrays.safetensors")


def test_a_killed_run_ends_with_the_same_bits(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    subprocess.run(train_command(straight, 60), check=True, capture_output=True, env=environment)
    process = subprocess.Popen(train_command(killed, 60), stdout=-3, stderr=-3, env=environment)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if any(int(path.name) >= 5 for path in killed.glob("*/state/*") if path.name.isdigit()):
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.01)
    process.wait()
    (run,) = killed.iterdir()
    resume = [sys.executable, "-P", "-m", "selfplay.cli", "train", "--resume", str(run), "--no-evaluate"]
    if process.returncode:
        subprocess.run(resume, check=True, capture_output=True, env=environment)
    first, second = final(straight)[1], final(killed)[1]
    assert first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


# --- files and commands --------------------------------------------------------------------------------


def test_small_files_keep_the_weights_to_sixteen_bits(tmp_path):
    game = make("connect_four:rows=4,columns=4")
    layout = make_layout("lines", game)
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(3, layout.entries)).astype(np.float32)[:, layout.canonical]
    weights[:, (layout.canonical % 5) > 0] = 0.0  # contents that were never met
    features = rng.normal(size=(3, game.num_features))
    made = Patterns(layout, weights, features, cuts=({"depth": 3, "shallow": 1, "slope": 1.0, "offset": 0.0},))
    sizes = []
    for small in (False, True):
        save_evaluation(tmp_path / str(small), game, made, {"unit": {"name": "x", "value": 2.0}}, small=small)
        again = load_evaluation(tmp_path / str(small), game)
        step = np.abs(weights).max(axis=1, keepdims=True) / 32767
        kept = again.weight_values != 0
        assert np.all(
            np.abs(again.weight_values - weights)[kept] <= np.broadcast_to(0.51 * step * small, kept.shape)[kept]
        )
        assert np.all((np.abs(weights) < 7.51 * step * small)[~kept] | (weights == 0)[~kept])
        assert kept.sum() >= 0.99 * (weights != 0).sum()
        assert np.array_equal(again.feature_values, features) and again.cuts == made.cuts
        sizes.append((tmp_path / str(small) / "weights.safetensors").stat().st_size)
    assert sizes[1] < 0.5 * sizes[0]


def test_export_and_weights(learned, tmp_path):
    folder = tmp_path / "small"
    code, text = invoke("export", str(learned), "--eval", str(folder))
    assert code == 0 and "MB" in text
    game = make("tic_tac_toe")
    before, after = make_evaluation(str(learned), game), make_evaluation(str(folder), game)
    assert np.allclose(before.weight_values, after.weight_values, atol=1e-4)
    code, text = invoke("weights", str(folder), "--json", "--top", "3")
    found = json.loads(text)
    assert code == 0 and found["game"] == "tic_tac_toe" and len(found["strongest"]) == 3
    assert (
        found["meta"]["seed"] == 1 and "train tic_tac_toe" in found["meta"]["command"] or found["meta"]["games"] == 2000
    )
    assert {"cells", "places", "learned", "typical"} <= set(found["patterns"][0])
    code, text = invoke("weights", str(folder), "--top", "1")
    assert code == 0 and "what counts most" in text and "·" in text
    assert invoke("weights", "no_such_thing")[0] == 2
    assert invoke("weights", str(folder), "--top", "-1")[0] == 2
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "notes.txt").write_text("mine")
    assert "no evaluation" in invoke("export", str(learned), "--eval", str(tmp_path / "taken"))[1]


def test_named_features_come_with_error_bars_in_units(tmp_path):
    learner = make_learner(
        make("checkers"),
        settings(patterns="none", features=True, unit="men", search_games=60, search_depth=1, openings=4),
    )
    learner.round(0.0)
    save_evaluation(tmp_path, learner.game, learner.evaluation(), {"unit": learner.unit()}, learner.error_bars())
    found = json.loads(invoke("weights", str(tmp_path), "--json")[1])
    rows = {row["name"]: row for row in found["features"]}
    assert len(rows) == make("checkers").num_features and rows["men"]["error"] > 0
    if found["unit"] == "men":
        assert rows["men"]["weight"] == pytest.approx(1.0)


@pytest.mark.parametrize("agent", ["alphabeta:depth=3", "mcts:simulations=50", "minimax:depth=2"])
def test_searches_take_a_run(learned, agent):
    game = make("tic_tac_toe")
    result = make_agent(f"{agent},eval={learned}", game, 0).search(game.new()[0])
    assert 0 <= result.action < 9 and -1 <= result.value <= 1


def test_another_game_and_other_features_are_refused(learned, tmp_path):
    with pytest.raises(InputError, match="for the game 'tic_tac_toe', not for 'connect_four'"):
        make_agent(f"alphabeta:depth=2,eval={learned}", make("connect_four"), 0)
    game = make("checkers")
    layout = make_layout("none", game)
    made = Patterns(layout, np.zeros((1, 0), np.float32), np.ones((1, game.num_features)))
    save_evaluation(tmp_path, game, made, {})
    path = tmp_path / "evaluation.json"
    path.write_text(path.read_text().replace('"men"', '"dragons"'))
    with pytest.raises(InputError, match="has the feature 'dragons', which 'checkers' has not"):
        make_evaluation(str(tmp_path), game)


def test_probcut_is_fitted_to_the_learned_evaluation(tmp_path):
    game = make("othello:size=6")
    layout = make_layout("lines", game)
    weights = 0.02 * np.random.default_rng(2).normal(size=layout.entries).astype(np.float32)[None, layout.canonical]
    save_evaluation(tmp_path, game, Patterns(layout, weights, np.zeros((1, 0))), {})
    with pytest.raises(InputError, match="probcut needs fitted parameters"):
        make_agent(f"alphabeta:depth=4,probcut=1.5,eval={tmp_path}", game, 0)
    code, text = invoke("fit-probcut", "othello:size=6", "--eval", str(tmp_path), "--positions", "30", "--depth", "3")
    assert code == 0 and "[probcut]" in text
    (cut,) = json.loads((tmp_path / "evaluation.json").read_text())["cuts"]
    assert cut["depth"] == 3 and cut["sigma"] > 0
    assert make_agent(f"alphabeta:depth=4,probcut=1.5,eval={tmp_path}", game, 0).search(game.new()[0]).action >= 0


@pytest.mark.parametrize("name", [name for name in shipped() if name.endswith("-linear")])
def test_what_ships_loads_by_name_and_says_how_it_was_made(name):
    folder = ROOT / "checkpoints" / name
    table = json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))
    assert sum(path.stat().st_size for path in folder.iterdir()) < 4_000_000
    assert "selfplay train" in table["meta"]["command"] and isinstance(table["meta"]["seed"], int)
    game = make(table["game"])
    state, search = game.new()[0], "alphabeta"
    if game.has_chance:
        state, search = game.parse_position("4HPwATDgc/ABMA:13"), "expectiminimax"
    assert make_agent(f"{search}:depth=2,eval={name}", game, 0).search(state).depth >= 1
