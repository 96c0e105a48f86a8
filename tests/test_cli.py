"""The command line: what it prints, the JSON keys that never change, and bad input: one sentence, exit code 2."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from envs.registry import GAMES
from selfplay.cli import main

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def selfplay(monkeypatch, capsys):
    """Runs a command in this process; returns exit code, standard output, standard error."""

    def run(*words: str, typed: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["selfplay", *words])
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        with pytest.raises(SystemExit) as caught:
            main()
            raise SystemExit(0)
        capture = capsys.readouterr()
        return int(caught.value.code or 0), capture.out, capture.err

    return run


def test_games(selfplay):
    code, out, _ = selfplay("games", "--json")
    rows = json.loads(out)["games"]
    assert code == 0 and [row["name"] for row in rows] == sorted(GAMES)
    assert {"name", "players", "chance", "actions", "state_bytes"} <= set(rows[0])
    four = next(row for row in rows if row["name"] == "connect_four")
    assert (four["players"], four["chance"], four["actions"], four["state_bytes"]) == (2, False, 7, 16)
    code, out, _ = selfplay("games")
    assert code == 0 and all(name in out for name in GAMES)


def test_perft(selfplay):
    code, out, _ = selfplay("perft", "connect_four", "6", "--json")
    found = json.loads(out)
    assert code == 0 and found["nodes"] == 117649 and found["seconds"] >= 0
    code, out, _ = selfplay("perft", "connect_four", "2", "--position", "444444")
    assert code == 0 and out.startswith("36 nodes in ")  # six columns are left
    assert json.loads(selfplay("perft", "tic_tac_toe", "0", "--json")[1])["nodes"] == 1


def test_check(selfplay):
    code, out, _ = selfplay("check", "connect_four", "--states", "300", "--json")
    found = json.loads(out)
    assert code == 0 and found["ok"] and found["broken"] == [] and found["tested"]["key"] > 0
    broken = f"{ROOT / 'tests/broken_games.py'}:Stuck"
    code, out, _ = selfplay("check", broken, "--states", "300", "--json")
    found = json.loads(out)
    assert code == 1 and not found["ok"]
    assert found["broken"][0]["promise"] == "actions" and found["broken"][0]["moves"]
    code, out, _ = selfplay("check", broken, "--states", "300")
    assert code == 1 and "BROKEN" in out and "broken: actions: 0 actions" in out


def test_bench(selfplay):
    code, out, _ = selfplay("bench", "rules", "--game", "tic_tac_toe", "--seconds", "0.01", "--json")
    rows = json.loads(out)["rows"]
    assert code == 0 and [row["unit"] for row in rows] == ["games/s", "plies/s"]
    for row in rows:
        assert set(row) >= {"job", "game", "unit", "ours", "peer", "theirs", "ratio"}
        assert row["ours"] > 0 and row["ratio"] == pytest.approx(row["ours"] / row["theirs"])


def test_bench_without_a_peer(selfplay, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspiel", None)  # as if it were not installed
    code, out, _ = selfplay("bench", "rules", "--game", "tic_tac_toe", "--seconds", "0.01", "--json")
    assert code == 0 and all(row["peer"] is row["theirs"] is row["ratio"] is None for row in json.loads(out)["rows"])
    assert selfplay("bench", "rules", "--game", "tic_tac_toe", "--seconds", "0.01")[0] == 0


def test_play_repeats_with_its_seed(selfplay):
    first, again = (selfplay("play", "tic_tac_toe", "random", "random", "--json")[1] for _ in range(2))
    other = selfplay("play", "tic_tac_toe", "random", "random", "--seed", "8", "--json")[1]
    assert first == again != other
    found = json.loads(first)
    assert found["finished"] and len(found["moves"]) == len(found["actions"]) and sum(found["utilities"]) == 0


def test_play_with_a_person(selfplay):
    typed = "help\nmoves\n\nb2\nb2\nzz\na1\nundo\nposition\nc3\na1\nc2\nc1\n"
    code, out, err = selfplay("play", "tic_tac_toe", "human", "human", typed=typed)
    assert code == 0
    assert "take back your last move" in out  # help
    assert "a3 b3 c3 a2 b2 c2 a1 b1 c1" in out  # moves
    assert "move 'b2' is not legal here" in out and "move 'zz' is not legal here" in out
    assert ".../.x./..." in out  # the position after undo
    assert "player 1 (human): a1" in out
    assert err.count("your move") == 14  # thirteen lines, and the end of input
    assert "\033[" not in out  # no colours where nobody watches


def test_play_to_the_end(selfplay):
    code, out, _ = selfplay("play", "tic_tac_toe", "human", "human", typed="a1\nb1\na2\nb2\na3\n")
    assert code == 0 and out.rstrip().endswith("player 1 (human) won")


def test_undo_takes_the_replies_back_as_well(selfplay):
    code, out, _ = selfplay("play", "tic_tac_toe", "human", "random", "--json", typed="undo\nb2\nundo\na1\nquit\n")
    found = json.loads(out)
    assert code == 0 and not found["finished"]
    assert found["moves"][0] == "a1" and len(found["moves"]) == 2


def test_play_with_dice_from_a_position(selfplay):
    words = ["play", "pig:goal=10", "human", "random", "--position", "scores 8 0 player 1 total 2"]
    code, out, _ = selfplay(*words, typed="roll\nhold\n")
    assert code == 0 and "move 'roll' is not legal" in out and "player 1 (human) won" in out


@pytest.mark.parametrize("typed", ["quit\n", "exit\n", "", "b2\n", "QUIT\n"])
def test_leaving_is_no_error(selfplay, typed):
    code, _, err = selfplay("play", "tic_tac_toe", "human", "human", typed=typed)
    assert code == 0 and "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["perft", "nope", "3"], ["unknown game 'nope'", "connect_four"]),
        (["perft", "connect_four:columns=0", "3"], ["columns=0", "at least 1"]),
        (["perft", "connect_four:columns=9,rows=9", "3"], ["does not fit"]),
        (["perft", "connect_four:size=3", "3"], ["'size'", "rows, columns, connect"]),
        (["perft", "connect_four", "3", "--position", "88"], ["position '88'", "move '8' is not legal"]),
        (["perft", "connect_four", "--", "-1"], ["depth", "0 or more", "-1"]),
        (["perft", "no_file.py:Mine", "3"], ["no_file.py", "does not exist"]),
        (["play", "tic_tac_toe", "random"], ["needs 2 agents"]),
        (["play", "tic_tac_toe", "random", "nobody"], ["unknown agent 'nobody'", "random"]),
        (["play", "tic_tac_toe", "random", "random:x=1"], ["'x'"]),
        (["play", "tic_tac_toe", "random", "random", "--position", "b2 b2"], ["position 'b2 b2', move 2", "b2"]),
        (["check", "nope"], ["unknown game 'nope'"]),
        (["bench", "nope"], ["unknown benchmark 'nope'", "rules"]),
        (["bench", "rules", "--game", "nope"], ["unknown game 'nope'"]),
        (["bench", "rules", "--seconds", "0"], ["--seconds", "more than 0"]),
        (["perft", "game_tree:tree=no_such_tree.toml", "2"], ["no_such_tree.toml"]),
    ],
    ids=" ".join,
)
def test_bad_input_is_one_sentence(selfplay, words, said):
    code, out, err = selfplay(*words)
    last = err.strip().splitlines()[-1]
    assert code == 2 and out == "" and last.startswith("selfplay: ")
    assert all(word in last for word in said), err
    assert "Traceback" not in err


@pytest.mark.parametrize("words", [["perft"], ["nope"], ["perft", "connect_four", "x"], ["games", "--nope"]])
def test_wrong_usage(selfplay, words):
    code, out, err = selfplay(*words)
    assert code == 2 and out == "" and "Error: " in err and "Traceback" not in err


def test_broken_files(selfplay, tmp_path):
    for name, text in {"tree.toml": "[[[", "bad.py": "1 / 0", "map.txt": "%%%\n%Q%\n%%%\n"}.items():
        (tmp_path / name).write_text(text)
    for spec in (f"game_tree:tree={tmp_path}/tree.toml", f"{tmp_path}/bad.py:Mine", f"pacman:map={tmp_path}/map.txt"):
        code, out, err = selfplay("perft", spec, "2")
        assert code == 2 and out == "" and err.startswith("selfplay: ") and len(err.splitlines()) == 1, err


def test_a_game_that_does_not_compile(selfplay):
    code, _, err = selfplay("perft", f"{ROOT / 'tests/broken_games.py'}:NoPerft", "2")
    assert code == 2 and err.strip().splitlines()[-1].startswith("selfplay: the game does not compile: ")
    assert "Traceback" not in err


def test_real_processes(tmp_path):
    """Exit codes, streams and any working folder, with a program that reads from a pipe."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def run(*words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "selfplay.cli", *words]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, input=typed, capture_output=True, text=True, check=False
        )

    done = run("play", "tic_tac_toe", "human", "random", "--seed", "3", "--json", typed="b2\n")
    assert done.returncode == 0 and json.loads(done.stdout)["moves"][0] == "b2" and "your move" in done.stderr
    done = run("perft", "nope", "3")
    assert done.returncode == 2 and done.stdout == "" and len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_behind_standard_output_is_one_sentence():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "selfplay.cli", "games", "--json"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2 and done.stderr == "selfplay: standard output: No space left on device\n"
