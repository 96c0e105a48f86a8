"""Matches: fair pairs, the same result whoever plays them, forfeits, workers that die, games on disk."""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from envs.errors import InputError
from envs.game import TERMINAL, legal_actions
from envs.registry import make
from selfplay.arena import Tally, match, points_of, schedule, summary
from selfplay.matches import GameRecord, Job, Table
from selfplay.openings import default_plies, openings, position_after
from selfplay.paired_score import SPRT
from selfplay.records import SavedGame, load, replayed
from selfplay.workers import Pool

ROOT = Path(__file__).resolve().parents[1]
FAULTY = f"{ROOT / 'tests/faulty_agents.py'}"
TIMES = ("seconds", "seconds_per_move", "workers")


def job(game: str, seats=(0, 1), opening=(), number=1, **others) -> Job:
    players = make(game).num_players
    return Job(number, tuple(seats), tuple(opening), 0, 5, tuple(range(players)), **others)


# --- openings ----------------------------------------------------------------------------------------


def test_openings_are_distinct_undecided_and_seeded():
    game = make("connect_four")
    found = openings(game, 300, seed=3)
    assert len(found) == 300 and all(len(opening) == default_plies(game) == 4 for opening in found)
    states = [position_after(game, opening) for opening in found]
    assert len({int(game.key(state)) for state in states}) == 300
    assert found == openings(game, 300, seed=3) and found[:50] == openings(game, 50, seed=3)
    assert found != openings(game, 300, seed=4)


def test_all_openings_of_a_small_game_are_found():
    """Tic-tac-toe has 9 * 8 positions after two plies, and after four those that are not won by the next move."""
    game = make("tic_tac_toe")
    assert default_plies(game) == 2
    assert len(openings(game, 500)) == 72
    undecided = set()

    def after(state, action):
        copy = state.copy()
        game.play(copy, action)
        return copy

    def walk(state, plies):
        children = [after(state, action) for action in legal_actions(game, state)]
        if plies:
            for child in children:
                walk(child, plies - 1)
        elif not any(game.player(c) == TERMINAL and game.utility(c, game.player(state)) > 0 for c in children):
            undecided.add(int(game.key(state)))

    walk(game.new()[0], 4)
    found = openings(game, 5000, plies=4)
    assert {int(game.key(position_after(game, opening))) for opening in found} == undecided


def test_bad_openings():
    game = make("tic_tac_toe")
    assert openings(game, 10, plies=0) == [[]]
    for plies in (-1, 9, 50):
        with pytest.raises(InputError, match=f"--openings {plies}"):
            openings(game, 10, plies)
    assert default_plies(make("pig")) == default_plies(make("twenty_forty_eight")) == 0


# --- schedule and one game ---------------------------------------------------------------------------


def test_schedule_pairs_and_grows():
    game = make("connect_four")
    starts = openings(game, 4)
    jobs = schedule(game, [(0, 1), (0, 2)], 6, 9, starts)
    assert [j.number for j in jobs] == list(range(1, 13))
    assert jobs == schedule(game, [(0, 1), (0, 2)], 8, 9, starts)[:12]
    first, second = jobs[0], jobs[2]
    assert (first.seats, second.seats) == ((0, 1), (1, 0))
    assert (first.opening, first.dice, first.round) == (second.opening, second.dice, second.round)
    assert jobs[4].opening != first.opening and jobs[4].dice != first.dice
    assert len({j.seeds for j in jobs}) == 12


def test_both_games_of_a_pair_see_the_same_dice():
    """In pig the dice decide everything for players who always roll: seats swapped, the same actions again."""
    table = Table(make("pig"), ["random", "random"])
    one = table.play(Job(1, (0, 1), (), 0, 5, (1, 2)))
    two = table.play(Job(2, (1, 0), (), 0, 5, (1, 2)))
    other = table.play(Job(3, (0, 1), (), 1, 6, (1, 2)))
    assert one.actions == two.actions != other.actions and one.utilities == two.utilities


def test_a_game_depends_on_its_job_alone():
    table = Table(make("tic_tac_toe"), ["random", "mcts:simulations=20"])
    fresh = Table(make("tic_tac_toe"), ["random", "mcts:simulations=20"])
    first = table.play(job("tic_tac_toe"))
    table.play(job("tic_tac_toe", seats=(1, 0), number=2))
    again, elsewhere = table.play(job("tic_tac_toe")), fresh.play(job("tic_tac_toe"))
    assert first.actions == again.actions == elsewhere.actions


@pytest.mark.parametrize(
    ("agent", "kind", "reason"),
    [
        ("Crashes", "crash", "ValueError: out of ideas"),
        ("CrashesAtReset", "crash", "RuntimeError: not ready"),
        ("Illegal", "illegal move", "action 77"),
        ("Nothing", "crash", "TypeError"),
        ("Slow:seconds=0.8", "time-out", "0.5 s are allowed"),
    ],
)
def test_forfeits(agent, kind, reason):
    specs = ["random", f"{FAULTY}:{agent}"]
    table = Table(make("tic_tac_toe"), specs)
    if agent == "CrashesAtReset":
        with pytest.raises(RuntimeError):  # before a match its workers say so; in one it is a forfeit
            table.warm_up()
    else:
        table.warm_up()  # compiles, which would count as thinking
    for seats in ((0, 1), (1, 0)):
        record = table.play(job("tic_tac_toe", seats=seats, move_seconds=0.5))
        assert record.forfeit is not None and record.forfeit["kind"] == kind and reason in record.forfeit["reason"]
        assert record.seats[record.forfeit["seat"]] == 1 and points_of(record, 0) == 1.0
        assert record.forfeit["ply"] == len(record.actions) + 1


def test_an_agent_that_writes_into_its_state_harms_itself_alone(capsys):
    record = Table(make("connect_four"), ["random", f"{FAULTY}:Scribbles"]).play(job("connect_four"))
    assert record.forfeit is None and len(record.actions) >= 7
    assert sum(1 for _ in replayed(load_one(record, "connect_four"), "it")) == len(record.actions) + 1
    capsys.readouterr()


def load_one(record: GameRecord, game: str):
    return SavedGame(game, ["a", "b"], record.actions, None, record.utilities, record.forfeit)


# --- matches -----------------------------------------------------------------------------------------


def without_times(report):
    return {name: value for name, value in report.items() if name not in TIMES}


def test_match_repeats_whatever_the_workers(tmp_path):
    agents = ("random", "minimax:depth=2")
    one = match("tic_tac_toe", *agents, 30, seed=5, workers=1, save=tmp_path / "one.jsonl")
    two = match("tic_tac_toe", *agents, 30, seed=5, workers=2, save=tmp_path / "two.jsonl")
    assert without_times(one) == without_times(two)
    games = [[saved.actions for saved in load(tmp_path / name)] for name in ("one.jsonl", "two.jsonl")]
    assert games[0] == games[1] and len(games[0]) == 30
    assert all(games[0][k][:2] == games[0][k + 1][:2] for k in range(0, 30, 2))  # the opening, from both sides
    assert one["wins"] + one["draws"] + one["losses"] == 30 and one["losses"] > one["wins"]
    assert one["interval"][0] <= one["score"] <= one["interval"][1] and one["elo"] < 0 and one["superiority"] < 0.05
    assert one["forfeits"] == [] and one["distinct_games"] + one["repeated_games"] == 30
    assert sorted(os.listdir(tmp_path)) == ["one.jsonl", "two.jsonl"]


def test_a_worker_that_is_killed_loses_nothing(tmp_path):
    """The same match, with and without a SIGKILL in the middle of a game, has the same games."""
    mark = tmp_path / "mark"
    spec = f"{FAULTY}:KilledOnce:mark={mark}"
    told: list[str] = []
    report = match("tic_tac_toe", "random", spec, 12, workers=2, save=tmp_path / "a.jsonl", tell=told.append)
    assert mark.exists() and report["lost_workers"] == 1 and "its game is played again" in " ".join(told)
    again = match("tic_tac_toe", "random", spec, 12, workers=2, save=tmp_path / "b.jsonl")
    assert again["lost_workers"] == 0 and report["games"] == again["games"] == 12 and report["forfeits"] == []
    assert [s.actions for s in load(tmp_path / "a.jsonl")] == [s.actions for s in load(tmp_path / "b.jsonl")]


def test_workers_killed_from_outside(tmp_path):
    """Slow moves: at each death a dozen games are still to be played, so that it is heard before they all are."""
    game = make("tic_tac_toe")
    jobs = schedule(game, [(0, 1)], 24, 0, openings(game, 12))
    agents = ["random", f"{FAULTY}:Slow:seconds=0.05"]
    with Pool("tic_tac_toe", game, agents, workers=2) as pool:
        records, killed = [], set()
        for record in pool.run(jobs):
            records.append(record)
            if len(records) in (5, 12):
                victim = next(w for w in pool._workers if w.ready and w.process.pid not in killed)
                killed.add(victim.process.pid)
                victim.process.kill()
                victim.process.wait()
    assert sorted(r.number for r in records) == list(range(1, 25)) and pool.lost_workers == 2
    table = Table(game, agents)
    assert all(table.play(jobs[r.number - 1]).actions == r.actions for r in records)


def test_an_agent_that_hangs_or_dies_forfeits_and_the_match_goes_on():
    for agent, kind, limit in (("Hangs", "time-out", 0.05), ("Dies", "crash", 0.0)):
        report = match("tic_tac_toe", "random", f"{FAULTY}:{agent}", 1, workers=1, move_seconds=limit)
        assert (report["wins"], report["losses"]) == (1, 0)
        assert [(f["agent"], f["game"], f["kind"]) for f in report["forfeits"]] == [(f"{FAULTY}:{agent}", 1, kind)]


def test_sprt_stops_early():
    report = match("tic_tac_toe", "random", "minimax:depth=2", 400, workers=2, sprt=SPRT(0, 100))
    assert report["games"] < 100 and report["sprt"]["accepted"] == "elo0"
    assert report["sprt"]["llr"] <= report["sprt"]["bounds"][0]
    alone = match("tic_tac_toe", "random", "minimax:depth=2", 400, workers=1, sprt=SPRT(0, 100))
    assert without_times(report) == without_times(alone)  # it stops at the same game
    few = match("tic_tac_toe", "random", "minimax:depth=2", 2, workers=1, sprt=SPRT(0, 10))
    assert few["games"] == 2 and few["sprt"]["accepted"] is None


def test_repeats_are_counted():
    """Deterministic agents from the start position have but two games, one per side."""
    report = match("tic_tac_toe", f"{FAULTY}:First", "minimax:depth=2", 10, plies=0, workers=1)
    assert report["games"] == 10 and report["distinct_games"] <= 2 and report["repeated_games"] >= 8
    assert report["openings"] == 1


def test_one_player_games_compare_on_the_same_dice():
    agents = ["random", f"{FAULTY}:First"]
    report = match("twenty_forty_eight", *agents, 6, workers=1)
    table, points = Table(make("twenty_forty_eight"), agents), []
    for j in schedule(table.game, [(0,), (1,)], 6, 0, [[]]):
        points.append(table.play(j).utilities[0])
    differences = np.subtract(points[::2], points[1::2])
    counts = [(differences > 0).sum(), (differences == 0).sum(), (differences < 0).sum()]
    assert [report["wins"], report["draws"], report["losses"]] == counts and report["games"] == 6
    assert report["points"] == pytest.approx([np.mean(points[::2]), np.mean(points[1::2])])


def test_a_tally_by_hand():
    game = make("tic_tac_toe")
    tally = Tally(game, ["a", "b"])
    for number, (seats, utilities) in enumerate(
        [([0, 1], [1.0, -1.0]), ([1, 0], [1.0, -1.0]), ([0, 1], [0.0, 0.0]), ([1, 0], [-1.0, 1.0])], 1
    ):
        tally.add(GameRecord(number, seats, number // 2, [number], 0, utilities, [1.0, 3.0], [2, 2]))
    report = summary(tally)
    assert (report["wins"], report["draws"], report["losses"], report["score"]) == (2, 1, 1, 0.625)
    assert report["pairs"] == [0, 0, 1, 1, 0] and report["points"] == [0.25, -0.25]
    assert report["first_player_score"] == 0.625 and report["seconds_per_move"] == [1.0, 1.0]


# --- bad input and full disks ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        (("tic_tac_toe", "random", "nobody"), {}, "unknown agent 'nobody'"),
        (("tic_tac_toe", "random", "human"), {}, "human"),
        (("nothing", "random", "random"), {}, "unknown game"),
        (("tic_tac_toe_three", "random", "random"), {}, "3 players"),
        (("pig", "random", "alphabeta"), {}, "alphabeta"),
        (("tic_tac_toe", "random", "random", 0), {}, "--games 0"),
        (("tic_tac_toe", "random", "random"), {"workers": -1}, "--workers -1"),
        (("tic_tac_toe", "random", "random"), {"move_seconds": -1.0}, "--move-seconds -1"),
        (("tic_tac_toe", "random", f"{FAULTY}:Nobody"), {}, "has no agent 'Nobody'"),
        (("tic_tac_toe", "random", "nowhere.py:Agent"), {}, "does not exist"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(arguments, options, text, tmp_path):
    with pytest.raises(InputError, match=text) as caught:
        match(*arguments, save=tmp_path / "games", **{"workers": 1, **options})
    assert "\n" not in str(caught.value) and os.listdir(tmp_path) == []


def test_where_games_cannot_be_saved(tmp_path):
    (tmp_path / "file").write_text("kept")
    for target, text in (
        (tmp_path / "no" / "folder" / "games.jsonl", "cannot be written: No such file"),
        (tmp_path / "no" / "folder", "cannot be written: No such file"),
        (tmp_path / "file", "must be a folder or end in"),
        (tmp_path / "games.pgn", "tic_tac_toe has no PGN"),
        (Path("/proc/games.jsonl"), "cannot be written"),
        (Path("/dev/full"), "must be a folder or end in"),
    ):
        with pytest.raises(InputError, match=text):
            match("tic_tac_toe", "random", "random", 2, workers=1, save=target)
    assert os.listdir(tmp_path) == ["file"] and (tmp_path / "file").read_text() == "kept"


def test_a_full_disk_leaves_nothing_half_written(tmp_path):
    """A limit on the size of files stands for a full disk."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from selfplay.cli import main\n"
        "from selfplay import workers\n"
        "original = workers.Pool.run\n"
        "def run(self, jobs):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))\n"
        "    return original(self, jobs)\n"
        "workers.Pool.run = run\n"
        "main()\n"
    )
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    for words in (
        ["match", "tic_tac_toe", "random", "random", "--games", "50", "--save", str(tmp_path / "games")],
        ["tournament", "tic_tac_toe", "random", f"{FAULTY}:Slow", "--file", str(tmp_path / "t" / "games.jsonl")],
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, *words, "--workers", "1"],
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        lines = [line for line in done.stderr.splitlines() if not line.startswith(("compiling", "random -", "tourn"))]
        assert done.returncode == 2 and len(lines) == 1 and "cannot be written: File too large" in lines[0]
    assert [path.name for path in tmp_path.rglob("*")] == ["t", "games.jsonl"]  # whole games are kept: it can go on
    text = (tmp_path / "t" / "games.jsonl").read_text()
    assert text.endswith("\n") and len(text) <= 3000 and all(json.loads(line) for line in text.splitlines())


def test_a_stopped_match_reports_what_it_has(tmp_path):
    """Ctrl-C: the games played so far count and are saved."""

    def interrupt(tally, total):
        if len(tally.games) == 6:
            raise KeyboardInterrupt

    report = match("tic_tac_toe", "random", "random", 50, workers=1, save=tmp_path / "g.jsonl", progress=interrupt)
    assert report["stopped"] and report["games"] == 6 and len(load(tmp_path / "g.jsonl")) == 6


def test_two_workers_work_at_the_same_time():
    """Agents that only sleep: once both workers are there, two seconds of theirs pass in one."""
    game = make("tic_tac_toe")
    with Pool("tic_tac_toe", game, [f"{FAULTY}:Slow", f"{FAULTY}:Slow"], workers=2) as pool:
        records = pool.run(schedule(game, [(0, 1)], 12, 0, openings(game, 6)))
        while not all(worker.ready for worker in pool._workers):
            next(records)
        next(records)
        started = time.monotonic()
        slept = sum(sum(record.seconds) for record in records)
        assert slept > 1.0 and time.monotonic() - started < 0.8 * slept


# --- the commands ------------------------------------------------------------------------------------


def run(monkeypatch, capsys, *words):
    from selfplay.cli import main

    monkeypatch.setattr(sys, "argv", ["selfplay", *words])
    with pytest.raises(SystemExit) as caught:
        main()
        raise SystemExit(0)
    capture = capsys.readouterr()
    return int(caught.value.code or 0), capture.out, capture.err


def test_commands(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    words = ["match", "tic_tac_toe", "random", f"{FAULTY}:Crashes", "--games", "6", "--workers", "1", "--seed", "2"]
    code, out, err = run(monkeypatch, capsys, *words, "--json", "--save", "games.jsonl", "--sprt=0,500")
    found = json.loads(out)
    assert code == 0 and "6/6 games" in err and "ETA" in err
    assert {"wins", "draws", "losses", "score", "interval", "elo", "forfeits", "distinct_games"} <= set(found)
    code, out, _ = run(monkeypatch, capsys, *words)
    assert code == 0 and f"{found['wins']} won" in out and "out of ideas" in out and "95 %" in out
    code, out, _ = run(monkeypatch, capsys, "replay", "games.jsonl", "--game-number", "2")
    assert code == 0 and "game 2 of 6" in out and "forfeits: crash: ValueError" in out
    code, out, _ = run(monkeypatch, capsys, "replay", "games.jsonl", "--json")
    assert json.loads(out)["games"] == 6 and len(json.loads(out)["moves"]) == len(json.loads(out)["actions"])
    for bad, text in (
        (["replay", "games.jsonl", "--game-number", "7"], "from 1 to 6"),
        (["match", "tic_tac_toe", "random"], "needs 2 agents"),
        (["match", "tic_tac_toe", "random", "random", "random"], "needs 2 agents"),
        (["match", "tic_tac_toe", "random", "random", "--sprt", "5"], "elo0,elo1"),
    ):
        code, out, err = run(monkeypatch, capsys, *bad)
        assert code == 2 and out == "" and text in err and err.count("\n") == 1
    assert sorted(os.listdir()) == ["games.jsonl"]


def test_a_match_at_a_table_of_three(monkeypatch, capsys):
    words = ["match", "tic_tac_toe_three", "maxn:depth=1", "random", "--games", "10", "--workers", "1", "--seed", "3"]
    code, out, err = run(monkeypatch, capsys, *words, "--json")
    found = json.loads(out)
    assert code == 0 and found["games"] == 12 and "12/12 games" in err  # whole rounds: every seat
    assert {"wins", "draws", "losses", "score", "interval", "elo", "forfeits", "distinct_games"} <= set(found)
    assert found["score"] > 0.6 and found["equality"] == pytest.approx(1 / 3) and found["elo"] is None
    code, out, _ = run(monkeypatch, capsys, *words)
    assert code == 0 and "in every seat in turn" in out and "equality: 33.3%" in out
    code, out, err = run(monkeypatch, capsys, *words, "--openings", "2")
    assert code == 2 and out == "" and "3 players" in err and err.count("\n") == 1


@pytest.mark.slow
def test_the_commands_of_the_page(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/arena.md").read_text()
    commands = [line[len("$ selfplay ") :] for line in page.splitlines() if line.startswith("$ selfplay ")]
    assert len(commands) == 2
    for command in commands:
        code, out, _ = run(monkeypatch, capsys, *command.split())
        assert code == 0 and ("95 %" in out), command
    assert len(load(tmp_path / "games.jsonl")) == 60


def test_sigterm_ends_a_match_like_an_interrupt(tmp_path):
    words = ["match", "tic_tac_toe", "random", f"{FAULTY}:Slow", "--games", "90", "--save", str(tmp_path / "g.jsonl")]
    process = subprocess.Popen(
        [sys.executable, "-m", "selfplay.cli", *words, "--workers", "1", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    deadline = time.monotonic() + 120
    while not any(path.stat().st_size for path in tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.terminate()
    found = json.loads(process.communicate()[0])
    assert process.returncode == 130 and found["stopped"] and 1 <= found["games"] < 90
    assert os.listdir(tmp_path) == ["g.jsonl"] and len(load(tmp_path / "g.jsonl")) == found["games"]


def test_seeds_are_words():
    from selfplay.matches import seed_of

    assert seed_of(1, 2, 3) == seed_of(1, 2, 3) != seed_of(1, 3, 2)
    assert len({seed_of(-1, k) for k in range(1000)}) == 1000 and np.uint32(seed_of(0)) == seed_of(0)
