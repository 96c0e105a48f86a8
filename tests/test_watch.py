"""What a run shows of itself: curves that survive a resume, pictures, the terminal's view, the page, the list."""

import io
import json
import re
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from envs.errors import InputError
from envs.game import legal_actions
from envs.registry import make
from selfplay.train import report, watch
from selfplay.train.runs import Run
from selfplay.train.view import View


@pytest.fixture
def run(tmp_path):
    with Run.create("connect_four", "alphazero", {"search": {"simulations": 64}}, tmp_path) as run:
        yield run


def metrics(run):
    return [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]


def test_scalars_are_lines_and_resume_drops_what_came_later(run):
    seen = watch.Watch(run)
    for step in (1, 2, 3):
        seen.scalars(step, {"loss/policy": np.float32(1 / step), "loss/value": float("nan")})
        seen.evaluation(step, "mcts:simulations=100", 6, 2, 2, 0.7, (0.5, 0.85))
    seen.scalars(4, {"loss/policy": float("inf")})  # no line that says nothing
    assert [line["step"] for line in metrics(run)] == [1, 1, 2, 2, 3, 3]
    assert metrics(run)[2]["loss/policy"] == 0.5 and "loss/value" not in metrics(run)[2]
    run.close()
    with (run.path / "evaluations.jsonl").open("a") as file:
        file.write('{"step": 3, "oppo')  # a kill while it wrote
    with Run.open(run.path) as again:
        watch.Watch(again, 2)
        assert [line["step"] for line in metrics(again)] == [1, 1, 2, 2]
        assert [entry["step"] for entry in report.read_evaluations(again.path)] == [1, 2]


def test_tensorboard_has_pictures_texts_and_hyperparameters(run):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    seen, game = watch.Watch(run), make("connect_four")
    state, uniform = game.new()[0], np.full(7, 1 / 7)
    seen.scalars(1, {"loss/policy": 0.5})
    seen.position_image(1, game, state, uniform, np.arange(7), 0.1)
    seen.game_text(1, game, [3, 3, 2])
    seen.calibration(1, np.array([-0.9, 0.1, 0.8]), np.array([-1, 0, 1]))
    seen.hyperparameters({"search.simulations": 64, "model.sizes": (1, 2)}, {"elo": 1200.0})
    run.close()
    events = EventAccumulator(str(run.path / "tensorboard"))
    events.Reload()
    tags = events.Tags()
    assert {"loss/policy", "calibration/error", "calibration/result_in_bin_9"} <= set(tags["scalars"])
    assert set(tags["images"]) == {"positions/sample", "calibration"}
    assert any(tag.startswith("games/sample") for tag in tags["tensors"])
    assert [path for path in (run.path / "tensorboard").iterdir() if path.is_dir()] == []  # no run below the run


@pytest.mark.parametrize(
    ("name", "on_cells"),
    [("connect_four", True), ("othello", True), ("tic_tac_toe_three", True), ("twenty_forty_eight", False)],
)
def test_heat_is_on_the_cells_where_actions_have_some(name, on_cells):
    game = make(name)
    state = game.new()[0]
    with np.errstate(over="ignore"):
        while game.player(state) < 0:
            game.play(state, legal_actions(game, state)[0])
    places = watch.cells_of_actions(game, state)
    assert (places is not None) == on_cells
    if places is not None:
        assert sorted(places) == legal_actions(game, state)
    policy = np.zeros(game.num_actions)
    policy[legal_actions(game, state)] = 1
    before = state.copy()
    image = watch.position_picture(game, state, policy, policy, -0.5)
    assert image.dtype == np.uint8 and image.ndim == 3 and state == before


def test_connect_four_is_hot_where_the_disc_lands():
    game = make("connect_four")
    places = watch.cells_of_actions(game, game.parse_position("44"))
    assert places[3] == (3, 3) and places[0] == (5, 0)


def test_game_as_text():
    text = watch.game_lines(make("tic_tac_toe"), [0, 3, 1, 4, 2])
    assert text.startswith("5 plies, result 1, -1") and "\033" not in text


def test_reliability_of_exact_predictions_is_exact():
    values = np.linspace(-1, 1, 201)
    bins = watch.reliability(values, values)
    assert len(bins) == 10 and sum(count for *_, count in bins) == 201
    assert all(mean == result for _, mean, result, _ in bins)


def test_plain_lines_where_there_is_no_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with View("connect_four", minutes=15) as view:
        view.update({"step": 10, "games": 1234, "minutes": 5.0, "positions_per_second": 321.4})
        view.update({"step": 11, "loss/policy": 1.25})  # too soon for a line of its own
        view.update({"scores": {"mcts:simulations=100": 0.875}})
    lines = sys.stderr.getvalue().splitlines()
    assert len(lines) == 2  # the first at once, the last at the end
    assert lines[0] == "connect_four: 5:00 of 15 minutes, ETA 10:00, step 10, games 1,234, positions/s 321"
    assert "step 11" in lines[1] and "loss/policy 1.25" in lines[1] and "mcts:simulations=100 87.5%" in lines[1]


def test_live_view_on_a_terminal(monkeypatch):
    from rich.console import Console

    from selfplay import console

    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(console, "err", Console(file=screen, force_terminal=True, width=80, highlight=False))
    with View("connect_four", steps=100) as view:
        view.update({"step": 0})
        view.update({"step": 50, "loss": 0.5, "scores": {"random": 1.0}})
        view.tell("[saved]")
    shown = re.sub(r"\033\[[\d;?]*\w", "", screen.getvalue())
    assert "50%" in shown and "ETA 0:00" in shown and "random 100.0%" in shown and "[saved]" in shown


def fill(run):
    seen = watch.Watch(run)
    for step in range(1, 1001, 2):
        seen.run.log({"loss/policy": 2 / step, "speed/games_per_second": 3.0}, step)
    for step in (500, 1000):
        seen.evaluation(step, "mcts:simulations=<100>", 6, 2, 2, 0.7, (0.5, 0.85))
    (run.path / "summary.json").write_text(
        json.dumps({"finished": True, "minutes": 15, "steps": 1000, "games": 42, "command": "selfplay train a && b"})
    )


def test_page_is_whole_and_alone(run, tmp_path):
    fill(run)
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 10')
    page = report.write_report(run.path, tmp_path / "page.html").read_text()
    for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ElementTree.fromstring(svg)
    assert page.count("<figure>") == 3  # two metrics and the scores
    assert "search.simulations = 64" in page and "selfplay train a &amp;&amp; b" in page
    assert "mcts:simulations=&lt;100&gt;" in page and "50.0% to 85.0%" in page
    assert "http" not in page and "src=" not in page and "prefers-color-scheme: dark" in page


def test_page_of_a_run_that_did_nothing_yet(run):
    page = report.write_report(run.path, None)
    assert page == run.path / "report.html" and "Nothing was evaluated yet" in page.read_text()


def test_no_page_without_a_run(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        report.write_report(tmp_path / "nothing", None)
    with pytest.raises(InputError, match=r"no config\.toml"):
        report.write_report(tmp_path, None)


def test_list_has_a_row_for_every_run_even_a_broken_one(run, tmp_path):
    fill(run)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.toml").write_bytes(b"\xff[")
    (tmp_path / "foreign").mkdir()
    rows = {row["name"]: row for row in report.list_runs(tmp_path)}
    assert len(rows) == 3
    mine = rows[run.path.name]
    assert (mine["game"], mine["steps"], mine["games"], mine["status"]) == ("connect_four", 1000, 42, "running")
    assert mine["scores"] == {"mcts:simulations=<100>": 0.7}
    assert "not TOML" in rows["broken"]["status"] and "no config.toml" in rows["foreign"]["status"]
    run.close()
    assert {row["name"]: row for row in report.list_runs(tmp_path)}[run.path.name]["status"] == "finished"
    assert report.list_runs(tmp_path / "nowhere") == []


def test_an_interrupted_run_can_be_resumed(run, tmp_path):
    assert report.list_runs(tmp_path)[0]["status"] == "running"
    run.save_state({"weights": np.zeros(2)}, {"steps": 7, "games": 3, "minutes": 0.5}, 7)
    run.close()
    row = report.list_runs(tmp_path)[0]
    assert (row["status"], row["steps"], row["games"], row["minutes"]) == ("resumable", 7, 3, 0.5)
