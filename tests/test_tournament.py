"""Tournaments: who meets whom, the table, and the file from which a stopped one goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envs.errors import InputError
from envs.registry import make
from selfplay.records import load, replayed
from selfplay.tournament import groups_of, tournament

ROOT = Path(__file__).resolve().parents[1]
FAULTY = f"{ROOT / 'tests/faulty_agents.py'}"
AGENTS = ["random", f"{FAULTY}:First", f"{FAULTY}:Crashes:after=2"]


def table(found):
    return {row["agent"]: (row["wins"], row["draws"], row["losses"], row.get("elo")) for row in found["rows"]}


def test_who_meets_whom():
    two, three, one = make("tic_tac_toe"), make("tic_tac_toe_three"), make("twenty_forty_eight")
    assert groups_of(two, 3, False) == [(0, 1), (0, 2), (1, 2)]
    assert groups_of(two, 3, True) == [(0, 1), (0, 2)]
    assert groups_of(three, 4, False) == [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]
    assert groups_of(three, 2, False) == [(0, 0, 1), (0, 1, 1)]
    assert groups_of(one, 2, False) == [(0,), (1,)]


def test_table_and_forfeits(tmp_path):
    found = tournament("tic_tac_toe", AGENTS, 6, anchor=AGENTS[1], workers=1, file=tmp_path / "new" / "t.jsonl")
    assert found["games"] == found["planned"] == 18 and found["anchor"] == AGENTS[1]
    assert [row["games"] for row in found["rows"]] == [12] * 3
    assert all(sum(table(found)[agent][:3]) == 12 for agent in AGENTS)
    elos = [row["elo"] for row in found["rows"]]
    assert elos == sorted(elos, reverse=True) and table(found)[AGENTS[1]][3] == 0
    assert found["rows"][-1]["agent"] == AGENTS[2]  # it crashes in every game that is not over by then
    assert {f["agent"] for f in found["forfeits"]} == {AGENTS[2]}
    saved = load(tmp_path / "new" / "t.jsonl")
    assert len(saved) == 18 and all(list(replayed(game, "it")) for game in saved)


def test_gauntlet():
    found = tournament("tic_tac_toe", AGENTS, 2, gauntlet=True, workers=1)
    games = {row["agent"]: row["games"] for row in found["rows"]}
    assert games == {AGENTS[0]: 4, AGENTS[1]: 2, AGENTS[2]: 2}


def test_three_players_by_rank():
    agents = ["random", f"{FAULTY}:First"]
    found = tournament("tic_tac_toe_three", agents, 6, workers=1)
    assert found["games"] == 12 and len(found["advantages"]) == 2
    assert {row["agent"]: sum(row[k] for k in ("wins", "draws", "losses")) for row in found["rows"]} == {
        "random": 18,
        agents[1]: 18,
    }


def test_one_player_by_points():
    agents = ["random", f"{FAULTY}:First"]
    found = tournament("twenty_forty_eight", agents, 3, workers=1)
    assert found["rows"][0]["points"] >= found["rows"][1]["points"] > 0
    assert all(row["interval"][0] < row["points"] < row["interval"][1] and "elo" not in row for row in found["rows"])


def test_resumes_from_its_file(tmp_path):
    """Stopped, torn and grown: nothing is played twice, and the result is that of a tournament in one go."""
    path = tmp_path / "t.jsonl"

    def interrupt(records, total):
        if len(records) == 5:
            raise KeyboardInterrupt

    agents = AGENTS[:2]
    stopped = tournament("tic_tac_toe", agents, 10, workers=1, file=path, progress=interrupt)
    assert stopped["stopped"] and stopped["games"] < 10
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines)[:-30])  # killed in the middle of the last line
    resumed = tournament("tic_tac_toe", agents, 10, workers=1, file=path)
    assert resumed["resumed"] == len(lines) - 2 and resumed["games"] == 10
    whole = tournament("tic_tac_toe", agents, 10, workers=1)
    assert table(resumed) == table(whole)
    assert path.read_text().splitlines()[: len(lines) - 1] == lines[:-1]
    again = tournament("tic_tac_toe", agents, 10, workers=1, file=path)
    assert again["resumed"] == 10 and table(again) == table(whole)
    more = tournament("tic_tac_toe", agents, 12, workers=1, file=path)
    assert more["resumed"] == 10 and table(more) == table(tournament("tic_tac_toe", agents, 12, workers=1))


def test_other_files_are_refused_and_left_alone(tmp_path):
    path = tmp_path / "t.jsonl"
    agents = AGENTS[:2]
    tournament("tic_tac_toe", agents, 2, workers=1, file=path)
    text = path.read_text()
    for options, words in (
        ({"seed": 1}, "another tournament: its seed is 0, not 1"),
        ({"gauntlet": True}, "another tournament: its gauntlet"),
        ({"plies": 4}, "another tournament: its openings is 2, not 4"),
    ):
        with pytest.raises(InputError, match=words):
            tournament("tic_tac_toe", agents, 2, file=path, **options)
    with pytest.raises(InputError, match="another tournament: its agents"):
        tournament("tic_tac_toe", AGENTS, 2, file=path)
    with pytest.raises(InputError, match="another tournament: its game"):
        tournament("connect_four", agents, 2, file=path)
    assert path.read_text() == text
    lines = text.splitlines()
    for content, words in (
        ("my diary\n", "is not a tournament's"),
        ("my diary", "is not a tournament's"),
        ('{"a": 1}\n', "is not a tournament's"),
        ("\n".join([lines[0], "torn", *lines[1:]]) + "\n", "line 2 is damaged"),
    ):
        path.write_text(content)
        with pytest.raises(InputError, match=words):
            tournament("tic_tac_toe", agents, 2, file=path)
        assert path.read_text() == content


@pytest.mark.parametrize(
    ("agents", "options", "text"),
    [
        (["random"], {}, "at least 2 agents"),
        (["random", "random"], {}, "once only"),
        (["random", "nobody"], {}, "unknown agent 'nobody'"),
        (["random", "alphabeta:depth=x"], {}, "depth='x' must be a whole number"),
        (["random", "alphabeta:depth=1"], {"anchor": "mcts"}, "--anchor 'mcts' does not play"),
        (["random", "alphabeta:depth=1"], {"games": 0}, "--games-per-pair 0"),
        (["random", f"{FAULTY}:CrashesAtReset"], {}, "cannot start: RuntimeError: not ready"),
    ],
)
def test_bad_input_writes_nothing(agents, options, text, tmp_path):
    with pytest.raises(InputError, match=text):
        tournament("tic_tac_toe", agents, **{"workers": 1, **options}, file=tmp_path / "new" / "t.jsonl")
    assert os.listdir(tmp_path) == []


def test_unwritable():
    with pytest.raises(InputError, match="cannot be written"):
        tournament("tic_tac_toe", AGENTS[:2], 2, file="/proc/new/t.jsonl")


def test_a_killed_tournament_goes_on(tmp_path):
    """SIGKILL on the whole command; its workers leave by themselves; the same command ends what it began."""
    path = tmp_path / "t.jsonl"
    words = ["tournament", "tic_tac_toe", "random", f"{FAULTY}:Slow", "--games-per-pair", "6", "--file", str(path)]
    command = [sys.executable, "-m", "selfplay.cli", *words, "--workers", "1", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    deadline = time.monotonic() + 120
    while (not path.exists() or path.read_bytes().count(b"\n") < 3) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    finished = path.read_bytes().count(b"\n") - 1
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found = json.loads(done.stdout)
    assert finished >= 2 and found["resumed"] == finished and found["games"] == 6
