"""Teachers: games that repeat, labels that say what the search knows, runs that are taught and resume to the bit."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from typer.testing import CliRunner

from envs.errors import InputError
from envs.registry import make
from selfplay.cli import app
from selfplay.search.result import AVERAGE, EXACT, UPPER, MoveReport, Result
from selfplay.train import lessons
from selfplay.train.config import TeacherConfig, TrainConfig, resolve
from selfplay.train.linear import method as linear
from selfplay.train.linear.settings import LinearSettings
from selfplay.train.loop import Limits, train
from selfplay.train.runs import Run
from selfplay.train.teacher import Teacher, Units
from selfplay.train.teacher_games import TeacherGames

PERFECT = {"agent": "perfect", "games": 200, "openings": 7, "random_moves": 0.5, "held_out": 0.2, "round": 50}
SMALL: dict[str, Any] = {
    "model": {"blocks": 1, "channels": 16},
    "search": {"simulations": 4},
    "actor": {"games": 8, "moves": 8},
    "learner": {"batch": 64, "warm_up": 10},
    "evaluation": {"minutes": 0},
    "workers": 1,
    "backend": "torch",
}


class Killed(Exception):
    """Stands for a death of the process: nothing is saved on the way out."""


def config(save_seconds: float = 0.0, **teacher: Any) -> TrainConfig:
    return TrainConfig.model_validate({**SMALL, "save_seconds": save_seconds, "teacher": {**PERFECT, **teacher}})


def final_arrays(run: Path) -> dict[str, np.ndarray]:
    (state,) = (run / "state").glob("[0-9]*")
    return load_file(state / "arrays.safetensors")


def curve(run: Path, name: str) -> list[float]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line[name] for line in lines if name in line]


def same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


# --- games and labels --------------------------------------------------------------------------------


@pytest.mark.parametrize(("game_name", "agent"), [("tic_tac_toe", "perfect"), ("connect_four", "mcts:simulations=20")])
def test_a_game_depends_on_its_number_alone(game_name, agent):
    game, settings = make(game_name), TeacherConfig(agent=agent, openings=3)
    teacher, other = (Teacher(game, settings, 1, Units()) for _ in range(2))
    games = [teacher.play(number) for number in range(4)]
    again = [other.play(number) for number in (3, 1)]
    assert [a.samples.tobytes() for a in again] == [games[n].samples.tobytes() for n in (3, 1)]
    for played in games:
        for sample in played.samples:
            policy = sample["policy"][: sample["count"]]
            assert policy.sum() == pytest.approx(1.0) and policy.min() >= 0 and abs(sample["values"][0]) <= 1
            assert sample["values"][0] == -sample["values"][1] == sample["search_value"]


def test_perfect_values_are_the_truth_whatever_the_result():
    game = make("tic_tac_toe")
    teacher = Teacher(game, TeacherConfig(agent="perfect", openings=4, random_moves=0.5), 2, Units())
    for number in range(5):
        for sample in teacher.play(number).samples.view(np.recarray):
            found = teacher.agent.search(sample.state)
            best = {
                action for action, value in teacher.agent.solver.values(sample.state).items() if value == found.value
            }
            policy = sample.policy[: sample.count]
            top = {int(a) for a in sample.actions[: sample.count][policy >= policy.max() - 1e-6]}
            assert sample.values[0] == found.value and top == best


def test_what_a_teacher_leaves_to_chance_is_learned_from_too():
    game = make("pig:goal=60")
    teacher = Teacher(game, TeacherConfig(agent="perfect", openings=0, random_moves=0.5), 2, Units())
    samples = np.concatenate([teacher.play(number).samples for number in range(20)]).view(np.recarray)
    told = samples[samples.after == 1]
    assert len(told) and (told.action == 0).all() and np.allclose(told.after_value, told["values"][:, 0])
    rolled = samples[samples.action == 0]
    assert 0.3 < rolled.after.mean() < 1.0  # where the roll was not the teacher's, the result says nothing about it


def test_an_unlabelled_share_and_what_a_solver_cannot_solve_is_left_out():
    game = make("connect_four")
    settings = TeacherConfig(agent="perfect:nodes=2000,megabytes=1", openings=0, labels=0.5)
    samples = Teacher(game, settings, 3, Units()).play(0).samples
    assert 0 < len(samples) < 30 and set(np.abs(samples["values"][:, 0])) <= {0.0, 1.0}


def test_a_policy_is_what_the_search_knows():
    teacher = Teacher(make("tic_tac_toe"), TeacherConfig(agent="random", temperature=0.0), 0, Units())

    def policy(*moves: MoveReport, proven: bool = False) -> dict[int, float]:
        return teacher.policy(Result(moves[0].action, moves[0].value, moves, (), 0, 0, 0.0, proven=proven))

    exact = [MoveReport(0, 0.5), MoveReport(1, 0.5), MoveReport(2, -1.0)]
    assert policy(*exact) == {0: 1.0, 1: 1.0}
    assert policy(MoveReport(0, 0.5), MoveReport(1, 0.5, UPPER)) == {0: 1.0}  # not known to be equal
    visited = [MoveReport(0, 0.5, AVERAGE, 60), MoveReport(1, 0.4, AVERAGE, 30), MoveReport(2, 0.0, AVERAGE, 0)]
    assert policy(*visited) == {0: 1.0, 1: 0.5, 2: 0.0}
    even = [MoveReport(0, 0.5, AVERAGE, 40), MoveReport(1, 0.4, AVERAGE, 40)]
    assert policy(*even) == {0: 1.0}
    assert policy(MoveReport(0, 1.0, EXACT, 3), *visited[1:], proven=True) == {0: 1.0}


def test_processes_play_the_same_games():
    game, settings = make("tic_tac_toe"), TeacherConfig(agent="alphabeta:depth=2")
    played = []
    for workers in (1, 2):
        games = TeacherGames("tic_tac_toe", game, settings, 4, workers, Units())
        counts: list[int] = []
        try:
            played.append([(g.number, g.key, g.samples.tobytes()) for g in games.play(range(9), counts.append)])
        finally:
            games.close()
        assert sum(counts) == 9
    assert played[0] == played[1]


# --- runs --------------------------------------------------------------------------------------------


def test_a_taught_network_agrees_where_it_was_not_trained(tmp_path):
    taught = config(games=500, passes=25)
    run = train("tic_tac_toe", taught, Limits(games=1), tmp_path, final_evaluation=False)
    accuracy, error = curve(run, "imitation/accuracy"), curve(run, "imitation/value_error")
    assert accuracy[-1] > 0.85 and error[-1] < 0.4 and error[-1] < error[0]
    assert len(list((run / "held_out").iterdir())) >= 10 and len(list((run / "games").iterdir())) > 10
    info = json.loads((run / "summary.json").read_text())
    assert info["games"] >= 1 and info["lessons"]["over"]  # self-play took over


@pytest.mark.parametrize(
    ("where", "number", "save_seconds"), [("_take", 2, 0.0), ("_take", 3, 1e9), ("judge_network", 3, 0.0)]
)
def test_a_kill_while_the_teacher_plays_or_is_learned_from_changes_nothing(
    tmp_path, monkeypatch, where, number, save_seconds
):
    settings, limits = config(save_seconds, passes=2), Limits(steps=60)
    whole = train("tic_tac_toe", settings, limits, tmp_path / "whole", final_evaluation=False)
    owner: Any = lessons.Lessons if where == "_take" else lessons
    before, calls = getattr(owner, where), []

    def killing(*arguments: Any) -> Any:
        calls.append(where)
        done = before(*arguments)
        if len(calls) == number:
            raise Killed
        return done

    monkeypatch.setattr(owner, where, killing)
    with pytest.raises(Killed):
        train("tic_tac_toe", settings, limits, tmp_path / "killed", final_evaluation=False)
    monkeypatch.undo()
    (killed,) = (tmp_path / "killed").iterdir()
    train("tic_tac_toe", settings, limits, final_evaluation=False, resume=Run.open(killed))
    assert same(final_arrays(whole), final_arrays(killed))
    for folder in ("games", "held_out"):
        names = sorted(path.name for path in (whole / folder).iterdir())
        assert names == sorted(path.name for path in (killed / folder).iterdir())
        assert all((whole / folder / n).read_bytes() == (killed / folder / n).read_bytes() for n in names)


def taught_linear(folder: Path | None, resume: Run | None = None) -> Path:
    teacher = {**PERFECT, "games": 120, "round": 20}
    table = {"search_games": 40, "search_depth": 1, "match_minutes": 0.0, "save_seconds": 0.0, "teacher": teacher}
    settings, limits = LinearSettings.model_validate(table), Limits(steps=3)
    return linear.train("tic_tac_toe", settings, limits, folder, final_evaluation=False, resume=resume)


def test_a_linear_evaluation_is_taught_and_resumes(tmp_path, monkeypatch):
    whole = taught_linear(tmp_path / "whole")
    assert curve(whole, "imitation/accuracy")[-1] > 0.4
    before, calls = lessons.Lessons._take, []

    def killing(*arguments: Any) -> None:
        calls.append(before(*arguments))
        if len(calls) == 3:
            raise Killed

    monkeypatch.setattr(lessons.Lessons, "_take", killing)
    with pytest.raises(Killed):
        taught_linear(tmp_path / "killed")
    monkeypatch.undo()
    (killed,) = (tmp_path / "killed").iterdir()
    taught_linear(None, Run.open(killed))
    taught_linear(None, Run.open(killed))  # once more where the lessons are over
    assert same(final_arrays(whole), final_arrays(killed))


# --- what is wrong, in one sentence ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["connect_four", "--teacher", "alphabata:depth=8"], "unknown agent 'alphabata'"),
        (["connect_four", "--teacher", "alphabeta:dept=8"], "dept"),
        (["pig", "--teacher", "alphabeta:depth=2"], "alphabeta"),
        (["go", "--teacher", "perfect"], "no solver covers this game"),
        (["tic_tac_toe", "--teacher", "human"], "human"),
        (["tic_tac_toe", "--teacher", "alphazero:checkpoint=connect_four"], "connect_four"),
        (["tic_tac_toe", "--teacher", "perfect", "--teacher-games", "0"], "--teacher-games 0 must be 1 or more"),
        (["tic_tac_toe", "--teacher-games", "10"], "--teacher-games needs --teacher"),
        (["tic_tac_toe", "--teacher", "perfect", "--set", "teacher.game=1"], "unknown key 'teacher.game'"),
        (["tic_tac_toe", "--method", "linear", "--teacher", "alphabata"], "unknown agent 'alphabata'"),
        (["tic_tac_toe", "--method", "linear", "--teacher-games", "10"], "--teacher-games needs --teacher"),
        (["twenty_forty_eight", "--method", "linear", "--teacher", "random"], "can be taught"),
        (["tic_tac_toe", "--method", "linear", "--set", "teacher.game=1"], "unknown key 'teacher.game'"),
        (["--resume", "nowhere", "--teacher", "perfect"], "keeps its teacher"),
    ],
)
def test_errors(tmp_path, words, problem):
    result = CliRunner().invoke(app, ["train", *words, "--steps", "1", "--runs", str(tmp_path / "runs")])
    error = str(result.exception) if isinstance(result.exception, InputError) else result.output
    assert problem in error and len(error.splitlines()) <= 3
    assert result.exit_code != 0 and not (tmp_path / "runs").exists()


def test_a_teacher_without_a_word_ends_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(Teacher, "label", lambda *_: None)
    with pytest.raises(InputError, match="labelled no position in 8 games"):
        train("tic_tac_toe", config(games=2), Limits(steps=1), tmp_path, final_evaluation=False)


def test_the_settings_reach_the_config():
    settings = ['teacher.agent="alphabeta:depth=8,full_root=on"', "teacher.games=12"]
    teacher = resolve(make("connect_four"), settings=settings).teacher
    assert (teacher.agent, teacher.games) == ("alphabeta:depth=8,full_root=on", 12)
