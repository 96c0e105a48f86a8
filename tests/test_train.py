"""Training runs: the same bits however often they are killed, and one sentence for what is wrong."""

import json
import os
import random
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
from envs.registry import make
from models.inference import make_evaluator
from models.network import build
from selfplay.cli import app
from selfplay.train import moves
from selfplay.train.actor import Actor
from selfplay.train.config import LearnerConfig, as_table, resolve, setting, validated
from selfplay.train.replay import Replay
from selfplay.train.runs import Run, write_atomic

ROOT = Path(__file__).resolve().parents[1]
SMALL = {
    "model.blocks": 1,
    "model.channels": 8,
    "search.simulations": 4,
    "actor.games": 8,
    "actor.moves": 8,
    "learner.batch": 64,
    "learner.window": 200,
    "evaluation.minutes": 0,
    "save_seconds": 0,
}
SETTINGS = [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]


def command(*words: str) -> list[str]:
    return [sys.executable, "-P", "-m", "selfplay.cli", "train", *words, "--no-evaluate"]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def begun(folder: Path, steps: int) -> list[str]:
    return command(
        "tic_tac_toe", "--steps", str(steps), "--workers", "1", "--seed", "5", "--runs", str(folder), *SETTINGS
    )


def only_run(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


def final_arrays(run: Path) -> dict[str, np.ndarray]:
    (state,) = (run / "state").iterdir()
    return load_file(state / "arrays.safetensors")


def killed_and_resumed(tmp_path: Path, kills: int, steps: int) -> None:
    subprocess.run(begun(tmp_path / "whole", steps), check=True, env=environment(), capture_output=True)
    expected = final_arrays(only_run(tmp_path / "whole"))
    rng = random.Random(3)
    words = begun(tmp_path / "killed", steps)
    for _ in range(kills):
        process = subprocess.Popen(words, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        saved = tmp_path / "killed"
        while process.poll() is None and not list(saved.glob("*/state/[0-9]*")):
            time.sleep(0.02)
        time.sleep(rng.uniform(0.0, 2.0))
        process.kill()
        process.wait()
        words = command("--resume", str(only_run(saved)))
    subprocess.run(words, check=True, env=environment(), capture_output=True)
    found = final_arrays(only_run(tmp_path / "killed"))
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
    info = json.loads((only_run(tmp_path / "killed") / "summary.json").read_text())
    assert info["finished"] and info["steps"] >= steps


def test_a_run_that_is_killed_ends_with_the_same_bits(tmp_path):
    killed_and_resumed(tmp_path, kills=2, steps=60)


@pytest.mark.slow
def test_twenty_kills(tmp_path):
    killed_and_resumed(tmp_path, kills=20, steps=400)


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path):
    words = begun(tmp_path, 100_000)
    process = subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and len(list(tmp_path.glob("*/games/00000[2-9].npy"))) == 0:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0 and "Traceback" not in err and "--resume" in err
    run = only_run(tmp_path)
    assert list((run / "checkpoints").iterdir()) and list((run / "state").glob("[0-9]*"))
    listed = json.loads(CliRunner().invoke(app, ["runs", str(tmp_path), "--json"]).stdout)["runs"]
    assert len(listed) == 1


# --- replay ------------------------------------------------------------------------------------------


def test_the_window_grows_slides_and_is_found_again(tmp_path):
    game = make("tic_tac_toe")
    config = LearnerConfig(window=30, window_growth=0.5, window_most=60, batch=8)
    replay = Replay(tmp_path, game, config)
    for number in range(10):
        samples = np.zeros(20, replay.dtype).view(np.recarray)
        for sample in samples:
            game.start(sample.state)
        samples.search_value = number
        samples.count = 1
        replay.add(samples)
    assert replay.positions == 200 and replay.size == len(replay) == 60 and len(replay.chunks) == 3
    again = Replay(tmp_path, game, config)
    (tmp_path / "000010.npy").write_bytes(b"of a round that was not saved")
    again.restore(replay.state())
    assert len(again) == 60 and not (tmp_path / "000010.npy").exists()
    for window in (replay, again):
        batch = window.batch(np.random.default_rng(1), 8)
        assert batch["planes"].shape == (8, *game.observation_shape) and np.allclose(batch["policies"].sum(1), 1.0 * 0)


def test_samples_keep_their_layout():
    dtype = moves.sample_dtype(make("chess"))
    assert moves.joined([np.zeros(2, dtype), np.zeros(1, dtype)], dtype).dtype == dtype


# --- what is wrong, in one sentence ------------------------------------------------------------------


def test_settings():
    game = make("connect_four")
    config = resolve(game, settings=["search.simulations=64", "model.blocks=8"], seed=7)
    assert (config.search.simulations, config.model.blocks, config.seed) == (64, 8, 7)
    assert validated(as_table(config), "it") == config
    for text, problem in (
        ("search.simulation=64", "unknown key 'search.simulation'; keys: kind, simulations"),
        ("search.simulations=0", "search.simulations"),
        ("learner.batch=many", "learner.batch"),
        ("blocks", "expected name=value"),
    ):
        with pytest.raises(InputError, match=problem):
            resolve(game, settings=[text])
    assert setting("a.b=c") == {"a": {"b": "c"}}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["train"], "needs a game, or --resume"),
        (["train", "--resume", "nowhere"], "does not exist"),
        (["train", "nogame"], "nogame"),
        (["train", "connect_four", "--minutes", "-1"], "must be 0 or more"),
        (["train", "tic_tac_toe", "--device", "tpu", "--steps", "1", "--runs", "RUNS"], "unknown device"),
        (["export", "nowhere"], "nowhere"),
        (["report", "nowhere"], "nowhere"),
        (["match", "tic_tac_toe", "random", "alphazero:checkpoint=nowhere"], "nowhere"),
        (["match", "tic_tac_toe", "random", "alphazero:kind=other"], "kind"),
    ],
)
def test_errors_are_one_sentence(words, problem, tmp_path):
    words = [str(tmp_path) if word == "RUNS" else word for word in words]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "selfplay.cli", *words],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2 and problem in done.stderr and "Traceback" not in done.stderr


def test_runs_are_locked_versioned_and_atomic(tmp_path):
    with Run.create("tic_tac_toe", "alphazero", {}, tmp_path) as run:
        with pytest.raises(InputError, match="in use"):
            Run.open(run.path)
        run.save_state({"a": np.arange(3)}, {"n": 1}, 1)
        run.save_state({"a": np.arange(4)}, {"n": 2}, 2)
        found = run.load_state()
        assert found is not None and found[1] == {"n": 2} and len(list((run.path / "state").iterdir())) == 1
        (run.path / "state" / "000000000002" / "arrays.safetensors").write_bytes(b"torn")
        with pytest.raises(InputError, match="corrupt"):
            run.load_state()
    text = (run.path / "config.toml").read_text()
    write_atomic(run.path / "config.toml", text.replace("version = 1", "version = 9").encode())
    with pytest.raises(InputError, match="version 9"):
        Run.open(run.path)
    with pytest.raises(InputError, match="can't be written"):
        write_atomic(Path("/proc/nothing/here"), b"")


def test_every_second_sample_may_show_the_position_before_chance():
    game = make("pig")
    samples = np.zeros(2, moves.sample_dtype(game)).view(np.recarray)
    game.start(samples[0].state)
    samples.state[1] = samples.state[0]
    samples.action, samples.after = 0, 1  # a roll
    samples.count, samples.actions[:, 0], samples.policy[:, 0] = 1, 1, 1.0
    samples.values[:] = [0.5, -0.5]
    planes = np.zeros((2, *game.observation_shape), np.float32)
    policies, values = np.zeros((2, game.num_actions), np.float32), np.zeros((2, 2), np.float32)
    none = np.zeros(2, np.int64)
    moves.observe_samples(
        game,
        samples,
        np.arange(2),
        none,
        np.array([0, 1]),
        planes,
        policies,
        values,
        np.zeros(2),
        moves.permutations_of(game),
    )
    assert planes[0, -1] == 0 and planes[1, -1] == 1  # rolling
    assert policies[0, 1] == 1 and not policies[1].any() and np.allclose(values, [0.5, -0.5])


def test_lambda_returns():
    game = make("backgammon")
    samples = np.zeros(3, moves.sample_dtype(game)).view(np.recarray)
    samples.player = [0, 1, 1]
    samples.search_value = [0.9, 0.1, 0.3]
    samples.values[:] = [[-1 / 3, 1 / 3], [1 / 3, -1 / 3], [1 / 3, -1 / 3]]
    moves.soften_results(game, samples, 0.5)
    last, middle = 1 / 3, 0.5 * 0.3 + 0.5 / 3
    first = -(0.5 * 0.1 + 0.5 * middle)
    assert np.allclose(samples.values[:, 0], [first, middle, last]) and np.allclose(samples.values.sum(1), 0)


def test_self_play_of_three_learns_positions_before_chance():
    game = make("pig:players=3,goal=20")
    config = resolve(game, None, ["actor.games=8"])
    network = build(game, config.model, 0)
    evaluator = make_evaluator(network, game, "cpu", "torch", threads=1, max_batch=9)
    finished, _ = Actor(game, config, evaluator, network).play(600)
    samples = np.concatenate([over.samples for over in finished]).view(np.recarray)
    assert (samples.after == (samples.action == 0)).all() and samples.after.any()  # a roll is left to the die
