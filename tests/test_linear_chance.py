"""Learning where chance plays: 2048 against exact values, backgammon's network against numerical gradients."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from typer.testing import CliRunner

from envs.errors import InputError
from envs.game import CHANCE, TERMINAL
from envs.registry import make
from envs.rng import generator
from models.evaluation_file import load_evaluation, save_evaluation
from models.td_network import INPUTS, MOST_ACTIVE, OUTPUTS, equity, to_chances, write_inputs
from selfplay import alone
from selfplay.agents import make_agent
from selfplay.arena import match
from selfplay.cli import app
from selfplay.train.linear.learners import make_learner
from selfplay.train.linear.network_td import all_plays, network_work, result_chances, swapped
from selfplay.train.linear.settings import settings_of

SMALL = "twenty_forty_eight:rows=2,columns=2"
DATA = Path(__file__).parent / "data/other/2048_2x2_exact.csv"
EXACT = {row["quantity"]: float(row["value"]) for row in csv.DictReader(DATA.read_text().splitlines())}
BEST = EXACT["max expected score 2x2 (standard merge score)"]
ALONE = {"method": "td", "patterns": "four_tuples", "games": 2000, "workers": 1, "match_minutes": 0.0}
NETWORK = {"method": "network", "hidden": 20, "games": 100, "workers": 1, "match_minutes": 0.0}


def learner_of(game, **changes):
    return make_learner(make(game), settings_of(make(game), changes))


def invoke(*words):
    result = CliRunner().invoke(app, list(words))
    if isinstance(result.exception, InputError):
        return 2, str(result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout


def saved(learner, folder):
    save_evaluation(folder, learner.game, learner.evaluation(), {"unit": learner.unit(), "meta": {}})
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """An evaluation of the smallest 2048, from 20,000 games."""
    learner = learner_of(SMALL, **ALONE)
    for k in range(10):
        learner.round(k / 10)
    return saved(learner, tmp_path_factory.mktemp("small") / "evaluation")


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """A network from 1,000 games of backgammon."""
    learner = learner_of("backgammon", **NETWORK)
    for k in range(10):
        learner.round(k / 10)
    return saved(learner, tmp_path_factory.mktemp("network") / "evaluation")


# --- 2048 ----------------------------------------------------------------------------------------------


def test_td_finds_the_best_play_of_the_smallest_board(small):
    found = alone.scores(SMALL, f"expectimax:depth=1,eval={small}", 2000, seed=1, workers=1)
    assert found["games"] == 2000 and found["interval"][0] < found["points"] < found["interval"][1]
    assert found["interval"][1] > BEST > found["points"] - 2 * (found["interval"][1] - found["points"])
    assert found["points"] > 0.97 * BEST


def test_one_ply_judges_the_boards_left_to_chance(small):
    game = make(SMALL)
    evaluation, scratch = load_evaluation(small, game), np.zeros(game.num_features)
    state = game.parse_position("2 2/4 0 score 8")
    result = make_agent(f"expectimax:depth=1,full_root=on,eval={small}", game, 0).search(state)
    assert len(result.moves) == 3 and result.nodes == 4  # the root and a board per move, no new tile
    for move in result.moves:
        after = state.copy()
        game.play(after, move.action)
        assert game.player(after) == CHANCE
        assert move.value == pytest.approx(evaluation.evaluate_after(game, after, scratch, 0), abs=1e-3)
    # The score so far counts too, so that moves that merge are worth what they score.
    assert result.value > 8


@pytest.mark.parametrize("depth", [1, 2])
def test_scores_are_the_same_in_compiled_code_and_in_the_arena(small, depth, monkeypatch):
    spec = f"expectimax:depth={depth},eval={small}"
    compiled = alone.scores(SMALL, spec, 12, seed=5, workers=2)
    monkeypatch.setattr(alone, "fixed_depth_search", lambda game, agent: None)
    arena = alone.scores(SMALL, spec, 12, seed=5, workers=1)
    for key in ("points", "interval", "median", "least", "most", "tiles", "moves"):
        assert compiled[key] == arena[key], key


def test_match_with_one_agent_prints_its_score():
    code, text = invoke("match", "twenty_forty_eight", "expectimax:depth=1", "--games", "3", "--seed", "2", "--json")
    found = json.loads(text)
    assert code == 0 and found["games"] == 3 and found["least"] <= found["points"] <= found["most"]
    assert list(found["tiles"]) == ["1024", "2048", "4096", "8192", "16384", "32768"]
    assert "points" in invoke("match", SMALL, "random", "--games", "3", "--workers", "1")[1]
    assert "2 agents" in invoke("match", "connect_four", "random")[1]
    assert "--games 0" in invoke("match", SMALL, "random", "--games", "0")[1]


# --- backgammon's network ------------------------------------------------------------------------------


def in_python(hidden, output, rows):
    """The five chances in double precision, written again."""
    activity = 1 / (1 + np.exp(-(rows @ hidden[:INPUTS] + hidden[INPUTS])))
    return 1 / (1 + np.exp(-(activity @ output[:, :-1].T + output[:, -1])))


def test_the_fast_logistic_function_is_one():
    numbers = np.linspace(-20, 20, 4001).astype(np.float32)
    found = numbers.copy()
    to_chances(found, len(found))
    assert np.abs(found - 1 / (1 + np.exp(-numbers.astype(float)))).max() < 1e-6


def test_the_step_of_a_game_is_its_numerical_gradient():
    """With lambda = 1 and a tiny rate, a game changes the weights by minus the rate times the gradient of the cross
    entropy between what was predicted and what came."""
    learner = learner_of("backgammon", **{**NETWORK, "games": 1, "hidden": 7, "decay": 1.0, "rate": 1e-5})
    hidden, output = learner.hidden.astype(float), learner.output.astype(float)
    learner.round(0.0)
    work = learner.works[0]
    turns = int(np.argmax(work.active == 0))
    assert turns > 10
    rows, aims = np.zeros((turns, INPUTS)), np.zeros((turns, OUTPUTS))
    for t in range(turns):
        count = work.active[t]
        rows[t, work.indices[t, :count]] = work.values[t, :count]
        result_chances(learner.game, work.state[0], work.player[t], work.aim)
        aims[t] = work.aim

    def loss(hidden, output):
        chances = in_python(hidden, output, rows)
        return -(aims * np.log(chances) + (1 - aims) * np.log(1 - chances)).sum()

    used = int(np.argmax(np.abs(rows).sum(axis=0)))
    for which, at in [(0, (used, 3)), (0, (INPUTS, 0)), (0, (INPUTS - 5, 2)), (1, (0, 1)), (1, (1, 7)), (1, (3, 4))]:
        weights = [hidden.copy(), output.copy()]
        changed = (learner.hidden, learner.output)[which][at] - weights[which][at]
        weights[which][at] += 1e-5
        above = loss(*weights)
        weights[which][at] -= 2e-5
        gradient = (above - loss(*weights)) / 2e-5
        assert changed == pytest.approx(-1e-5 * gradient, rel=0.03, abs=4e-7), (which, at)


def test_changing_sides_swaps_the_chances_and_turns_the_value():
    chances = np.array([0.6, 0.2, 0.02, 0.1, 0.01], np.float32)
    other, back = np.zeros_like(chances), np.zeros_like(chances)
    swapped(chances, other)
    swapped(other, back)
    assert np.allclose(back, chances) and np.allclose(other, [0.4, 0.1, 0.01, 0.2, 0.02])
    for points in (True, False):
        assert equity(other, points) == pytest.approx(-equity(chances, points), abs=1e-6)


def test_the_chances_of_finished_games_give_their_points():
    game = make("backgammon")
    rng, out, probabilities = generator(1), np.empty(36, np.int64), np.empty(36)
    chances, met = np.zeros(OUTPUTS), set()
    for _ in range(60):
        state = game.new()[0]
        while game.player(state) != TERMINAL:
            lucky = game.player(state) == CHANCE
            chosen = (
                game.random_outcome(state, out, probabilities, rng) if lucky else game.random_action(state, out, rng)
            )
            game.play(state, chosen)
        for player in range(2):
            result_chances(game, state, player, chances)
            assert equity(chances, True) == game.utility(state, player)
            met.add(game.utility(state, player))
    assert {1.0, 2.0, -1.0, -2.0} <= met


def test_all_plays_are_those_of_the_rules_once_each():
    game = make("backgammon")
    state = game.new()[0]
    game.play(state, 6 * 2 + 0)  # 3-1
    work = network_work(game, 4)
    work.state[0] = state
    count = int(all_plays(game, work))
    wanted = set()

    def walk(position):
        if game.player(position) == CHANCE:
            wanted.add(position.points.tobytes())
            return
        out = np.empty(game.max_legal, np.int64)
        for action in out[: game.actions(position, out)]:
            after = position.copy()
            game.play(after, action)
            walk(after)

    walk(state)
    assert count == len(wanted) and {work.finished[i].points.tobytes() for i in range(count)} == wanted


def test_inputs_fit_into_their_room():
    game = make("backgammon")
    rng, out, probabilities = generator(4), np.empty(36, np.int64), np.empty(36)
    indices, values = np.zeros(MOST_ACTIVE, np.int64), np.zeros(MOST_ACTIVE, np.float32)
    features = np.zeros(game.num_features)
    most = 0
    for _ in range(20):
        state = game.new()[0]
        while game.player(state) != TERMINAL:
            if game.player(state) == CHANCE:
                if state.turn >= 0:
                    count = write_inputs(state, int(state.turn), indices, values, features, game.checkers)
                    assert len(set(indices[:count].tolist())) == count and indices[:count].max() < INPUTS
                    assert np.abs(values[:count]).max() < 6.0
                    most = max(most, count)
                game.play(state, game.random_outcome(state, out, probabilities, rng))
            else:
                game.play(state, game.random_action(state, out, rng))
    assert 40 < most < MOST_ACTIVE


def test_a_thousand_games_beat_random_play(network):
    found = match("backgammon", f"expectiminimax:depth=1,eval={network}", "random", 40, seed=3, workers=1)
    assert found["wins"] >= 36 and found["points"][0] > 1.2 and not found["forfeits"]


def test_one_ply_and_two_plies_end_before_the_dice(network):
    """At one ply a position is worth what the network says of it before the other side rolls; two plies look beyond."""
    game = make("backgammon")
    evaluation, scratch = load_evaluation(network, game), np.zeros(game.num_features)
    state = game.new()[0]
    game.play(state, 6 * 2 + 0)  # 3-1
    one = make_agent(f"expectiminimax:depth=1,eval={network}", game, 0).search(state)
    after = state.copy()
    for action in one.line:
        game.play(after, action)
    assert game.player(after) == CHANCE
    assert one.value == pytest.approx(evaluation.evaluate_after(game, after, scratch, 0), abs=1e-6)
    two = make_agent(f"expectiminimax:depth=2,eval={network}", game, 0).search(state)
    assert two.nodes > 100 * one.nodes and abs(two.value - one.value) < 0.5


# --- runs and files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "table"), [(SMALL, {**ALONE, "games": 50}), ("backgammon", {**NETWORK, "games": 20})], ids=["2048", "net"]
)
def test_one_worker_repeats_and_goes_on_with_the_same_bits(game, table):
    straight, again = learner_of(game, **table), learner_of(game, **table)
    figures = [straight.round(progress) for progress in (0.0, 0.5)]
    assert again.round(0.0) == figures[0]
    resumed = learner_of(game, **{**table, "seed": 9})
    resumed.restore({name: array.copy() for name, array in again.arrays().items()})
    assert resumed.round(0.5) == figures[1]
    for name, array in straight.arrays().items():
        assert array.tobytes() == resumed.arrays()[name].tobytes(), name


def test_a_run_goes_on_where_it_was(tmp_path):
    words = ["--set", "games=50", "--no-evaluate", "--json"]
    ends = []
    for steps in ([4], [2, 4]):
        code, text = invoke(
            "train", SMALL, "--method", "linear", "--steps", str(steps[0]), *words, "--runs", str(tmp_path)
        )
        assert code == 0
        run = Path(json.loads(text)["run"])
        for more in steps[1:]:
            assert invoke("train", "--resume", str(run), "--steps", str(more), "--no-evaluate", "--json")[0] == 0
        ends.append(load_file(max((run / "checkpoints").glob("*/weights.safetensors")))["weights"].tobytes())
    assert ends[0] == ends[1]


def test_evaluations_of_another_game_are_refused(small, network):
    for name, spec, agent in (
        (network, "twenty_forty_eight", "expectimax"),
        (small, "twenty_forty_eight", "expectimax"),
        (small, "backgammon", "expectiminimax"),
    ):
        with pytest.raises(InputError, match="is for the game"):
            make_agent(f"{agent}:depth=1,eval={name}", make(spec), 0)
    with pytest.raises(InputError, match="backgammon"):
        learner_of("pig", **NETWORK)


def test_the_network_that_ships_plays_and_says_how_it_was_made():
    folder = Path(__file__).resolve().parents[1] / "checkpoints/backgammon-linear"
    meta = json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))["meta"]
    assert "selfplay train backgammon" in meta["command"] and meta["seed"] == 0
    assert sum(path.stat().st_size for path in folder.iterdir()) < 200_000
    game = make("backgammon")
    state = game.new()[0]
    game.play(state, 6 * 2 + 0)  # 3-1
    found = make_agent("expectiminimax:depth=1,eval=backgammon-linear", game, 0).search(state)
    after = state.copy()
    for action in found.line:
        game.play(after, action)
    assert after.points[0, 5] == 2 and after.points[0, 6] == 4  # everybody's 8/5 6/5
