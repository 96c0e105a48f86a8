"""What a run is judged by, and what is wrong with a run's folder: evaluations, ratings, full disks, foreign files."""

import json
import resource
import signal
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

from envs.errors import InputError
from envs.registry import make
from models.checkpoint import save_checkpoint
from models.network import ModelConfig, build
from selfplay.cli import app
from selfplay.matches import GameRecord
from selfplay.train import judge, report
from selfplay.train.config import TrainConfig, as_table
from selfplay.train.elo import rate
from selfplay.train.evaluations import Evaluations, has_truth, sentence
from selfplay.train.loop import Limits, Training, config_of
from selfplay.train.runs import Run, append_line
from selfplay.train.watch import Watch


def record(number, seats, utilities):
    count = len(seats)
    return GameRecord(number, list(seats), 0, [number], 0, list(utilities), [0.0] * count, [1] * count)


# --- what an evaluation says -------------------------------------------------------------------------


def test_three_players_share_the_wins_and_equality_is_a_third():
    game = make("tic_tac_toe_three")
    seats = [(0, 1, 1), (1, 1, 0), (1, 0, 1)]
    results = [(1.0, -0.5, -0.5), (-0.5, 1.0, -0.5), (0.0, 0.0, 0.0)]
    records = [record(i, s, u) for i, (s, u) in enumerate(zip(seats, results, strict=True))]
    found = judge.summary(game, ["ours", "theirs"], records)
    assert (found["wins"], found["draws"], found["losses"]) == (1, 1, 1)
    assert found["score"] == pytest.approx((1 + 0 + 1 / 3) / 3)
    low, high = found["interval"]
    assert 0 <= low < found["score"] < high <= 1
    equal = judge.share_interval([1 / 3] * 300, 3)
    assert equal[0] <= 1 / 3 <= equal[1] and equal[1] - equal[0] < 0.02


def test_alone_the_points_count_and_two_agents_meet_the_same_seeds():
    game = make("twenty_forty_eight")
    points = [(3000.0, 1000.0), (2000.0, 1200.0), (900.0, 1500.0)]
    records = [record(2 * i + k, (k,), (both[k],)) for i, both in enumerate(points) for k in (0, 1)]
    found = judge.summary(game, ["ours", "theirs"], records)
    assert found["score"] == pytest.approx(2 / 3) and found["points"] == pytest.approx([5900 / 3, 3700 / 3])
    assert found["points_intervals"][0] == pytest.approx(judge.mean_interval([3000, 2000, 900]))
    assert found["outcomes"] == []
    assert "1,967 (" in sentence("random", {**found, "players": 1})


@pytest.mark.parametrize("name", ["tic_tac_toe_three", "twenty_forty_eight"])
def test_games_of_any_number_of_players_are_judged(name):
    found = judge.play(name, ["random", "random"], 4, seed=3)
    assert found["games"] >= 4 and found["forfeits"] == []
    assert 0 <= found["interval"][0] <= found["score"] <= found["interval"][1] <= 1


def test_ratings_are_of_all_games_and_the_ladder_is_the_anchor():
    def line(step, opponent, wins, losses):
        outcomes = [[[0, 1], [1.0, -1.0], wins], [[1, 0], [1.0, -1.0], losses]]
        return {"step": step, "agents": [f"step {step}", opponent], "outcomes": outcomes}

    lines = [line(10, "random", 10, 10), line(20, "random", 16, 4), line(20, "step 10", 16, 4), {"step": 20}]
    table = {rated.agent: rated for rated in rate(lines)}
    assert list(table) == ["random", "step 10", "step 20"]
    assert table["random"].elo == table["random"].low == 0
    assert 100 < table["step 20"].elo < 400 and abs(table["step 10"].elo) < 100
    assert table["step 20"].low < table["step 20"].elo < table["step 20"].high
    alone = {rated.agent: rated for rated in rate(lines[:2])}["step 20"]
    assert table["step 20"].high - table["step 20"].low < alone.high - alone.low  # more games, less doubt
    assert rate([]) == []


def test_truth_is_asked_where_there_is_a_solver():
    assert all(has_truth(make(name)) for name in ("tic_tac_toe", "connect_four", "nim", "pig"))
    assert not any(has_truth(make(name)) for name in ("chess", "backgammon", "twenty_forty_eight", "tic_tac_toe_three"))


class Lines:
    def __init__(self):
        self.lines = []

    def tell(self, text):
        self.lines.append(text)


@pytest.mark.slow
def test_an_evaluation_goes_from_the_process_to_curve_and_page(tmp_path):
    config = TrainConfig().evaluation.model_copy(update={"ladder": ("random", "mcts:simulations=2"), "games": 4})
    config = config.model_copy(update={"positions": 20, "simulations": 0})
    game, view = make("tic_tac_toe"), Lines()
    with Run.create("tic_tac_toe", "alphazero", {}, tmp_path) as run:
        small = ModelConfig(blocks=1, channels=8)
        save_checkpoint(run.path / "checkpoints" / "000000007", build(game, small), "tic_tac_toe", small, {})
        watch = Watch(run)
        evaluations = Evaluations(run, watch, "tic_tac_toe", game, config, view.tell)
        evaluations.finish(7, view)
        evaluations.close()
        assert set(evaluations.scores) == {"random", "mcts:simulations=2", "truth"}
        assert evaluations.results()["elo"] == evaluations.elo.elo and "Elo" in evaluations.figures()
        again = Evaluations(run, watch, "tic_tac_toe", game, config, view.tell)  # as a resumed run has it
        assert again.former == 7 and again.in_use == {"000000007"}
        assert [job.opponent for job in again.jobs(9)] == ["random", "mcts:simulations=2", "former", "truth"]
        assert any("Elo" in line for line in view.lines)
        page = report.write_report(run.path).read_text()
        assert "rating by all games of the run" in page and "exact truth" in page and "anchor" in page
        metrics = (run.path / "metrics.jsonl").read_text()
        assert all(tag in metrics for tag in ("elo/anchored_low", "elo/anchored_high", "truth/kept"))


def test_a_failed_evaluation_is_one_sentence(tmp_path):
    config = TrainConfig().evaluation.model_copy(update={"ladder": ("random",), "games": 2, "positions": 0})
    view = Lines()
    with Run.create("tic_tac_toe", "alphazero", {}, tmp_path) as run:
        evaluations = Evaluations(run, Watch(run), "tic_tac_toe", make("tic_tac_toe"), config, view.tell)
        evaluations.finish(3, view)  # there is no such checkpoint
    failed = [line for line in view.lines if "failed" in line]
    assert len(failed) == 1 and "does not exist" in failed[0] and "Traceback" not in failed[0]


# --- what is wrong with a folder ---------------------------------------------------------------------


@pytest.fixture
def no_room():
    """No file may grow beyond 4 KB, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))

    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_loses_nothing(tmp_path, no_room):
    with Run.create("tic_tac_toe", "alphazero", {}, tmp_path) as run:
        run.save_state({"a": np.arange(3)}, {"n": 1}, 1)
        append_line(run.path / "metrics.jsonl", '{"step": 1}')
        no_room()
        with pytest.raises(InputError, match="can't be saved"):
            run.save_state({"a": np.zeros(10_000)}, {"n": 2}, 2)
        with pytest.raises(InputError, match="can't be written"):
            append_line(run.path / "metrics.jsonl", "x" * 5000)
        assert (run.path / "metrics.jsonl").read_text() == '{"step": 1}\n'
        found = run.load_state()
        assert found is not None and found[1] == {"n": 1}
        network = build(make("tic_tac_toe"), ModelConfig(blocks=1, channels=16))
        with pytest.raises(InputError, match="can't be written"):
            save_checkpoint(tmp_path / "one", network, "tic_tac_toe", ModelConfig(blocks=1, channels=16), {})
        assert not (tmp_path / "one").exists()
        with pytest.raises(InputError, match="can't be written"):
            Run.create("tic_tac_toe", "alphazero", {"a": "b" * 5000}, tmp_path / "other")
        assert list((tmp_path / "other").iterdir()) == []


def test_the_same_step_is_saved_again_without_a_moment_without_state(tmp_path):
    with Run.create("tic_tac_toe", "alphazero", {}, tmp_path) as run:
        for n in range(3):
            run.save_state({"a": np.arange(n + 1)}, {"n": n}, 5)
            found = run.load_state()
            assert found is not None and found[1] == {"n": n} and len(list((run.path / "state").iterdir())) == 1


def small_training(run, **model):
    config = TrainConfig(model=ModelConfig(blocks=1, channels=8, **model), workers=1, backend="torch")
    return Training(run, "tic_tac_toe", config, Limits(steps=1), lambda text: None)


@pytest.mark.parametrize("harm", ["shape", "missing", "info", "games"])
def test_a_foreign_state_is_one_sentence(harm, tmp_path):
    with Run.create("tic_tac_toe", "alphazero", as_table(TrainConfig()), tmp_path) as run:
        training = small_training(run)
        training.replay.add(np.zeros(3, training.replay.dtype))
        training.save()
        training.close()
        (state,) = (run.path / "state").iterdir()
        arrays = load_file(state / "arrays.safetensors")
        if harm == "shape":
            arrays = {name: value if "/" not in name else np.zeros(2, np.float32) for name, value in arrays.items()}
        elif harm == "missing":
            arrays = {name: value for name, value in arrays.items() if not name.startswith("network/")}
        elif harm == "info":
            (state / "info.json").write_text('{"rounds": 1}')
        else:
            (run.path / "games" / "000000.npy").unlink()
        save_file(arrays, state / "arrays.safetensors")
        with pytest.raises(InputError, match=r"can't go on|can't be read") as caught:
            small_training(run)
        assert "\n" not in str(caught.value)


def test_a_config_that_is_none(tmp_path):
    with Run.create("tic_tac_toe", "alphazero", {"limits": {"hours": 3}}, tmp_path) as run:
        with pytest.raises(InputError, match="takes minutes, games and steps"):
            config_of(run)
        text = (run.path / "config.toml").read_text()
        (run.path / "config.toml").write_text(text.replace('game = "tic_tac_toe"', ""))
        with pytest.raises(InputError, match="without a game"):
            run.head()


@pytest.mark.parametrize("name", ["tic_tac_toe", "pig"])
def test_export_runs_equally_elsewhere(name, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    import torch

    game, config = make(name), ModelConfig(blocks=1, channels=8)
    network = build(game, config, 3).eval()
    with Run.create(name, "alphazero", {}, tmp_path / "runs") as run:
        save_checkpoint(run.path / "checkpoints" / "000000001", network, name, config, {})
    done = CliRunner().invoke(app, ["export", str(run.path), "--onnx", str(tmp_path / "model.onnx")])
    assert done.exit_code == 0 and "model.onnx" in done.stdout
    planes = np.random.default_rng(1).random((5, *game.observation_shape), dtype=np.float32)
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    policy, values = session.run(["policy", "values"], {"planes": planes})
    with torch.no_grad():
        logits, value_out = network(torch.from_numpy(planes))
        expected = network.values(value_out).numpy()
    assert np.allclose(policy, logits.numpy(), atol=1e-4) and np.allclose(values, expected, atol=1e-4)
    facts = session.get_modelmeta().custom_metadata_map
    assert facts["game"] == name and json.loads(facts["scale"]) == network.scale


def test_list_reads_a_folder_of_runs_that_is_no_folder(tmp_path):
    done = CliRunner().invoke(app, ["runs", str(tmp_path / "nothing")])
    assert done.exit_code == 0 and "no runs" in done.stdout
    assert Path(tmp_path / "nothing").exists() is False
