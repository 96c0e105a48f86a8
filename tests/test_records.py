"""Games on disk: PGN that python-chess reads, SGF, JSONL, and replays that refuse what is not so."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from envs.errors import InputError
from envs.game import TERMINAL, legal_actions
from envs.registry import make
from selfplay.arena import match
from selfplay.matches import GameRecord, forfeited
from selfplay.records import Saver, load, replayed

FAULTY = str(Path(__file__).resolve().parent / "faulty_agents.py")


def random_record(game, number, plies, forfeit):
    """A game by the interpreted rules: to compile chess takes longer than this test may."""
    rng, state, actions = np.random.default_rng(number), game.new()[0], []
    with np.errstate(over="ignore"):
        while len(actions) < plies and game.player(state) != TERMINAL:
            actions.append(int(rng.choice(legal_actions(game, state))))
            game.play(state, actions[-1])
    record = GameRecord(number, [number % 2, 1 - number % 2], 0, actions, 4, [1.0, -1.0], [0.0, 0.0], [0, 0])
    return forfeited(game, record, number % 2, "crash", "out of ideas") if forfeit else record


def test_pgn_is_what_python_chess_reads(tmp_path):
    import io

    import chess.pgn

    game, agents = make("chess"), ["alphabeta:depth=2", "my_own.py:Agent:depth=3"]
    saver = Saver(tmp_path / "m", "chess", game, agents)
    for number in range(1, 5):
        saver.add(random_record(game, number, 30, forfeit=number > 1))
    saver.finish({"games": 4})
    saver.close()
    assert sorted(os.listdir(tmp_path / "m")) == ["games.jsonl", "games.pgn", "result.json"]
    assert json.loads((tmp_path / "m" / "result.json").read_text()) == {"games": 4}
    saved = load(tmp_path / "m")
    again = load(tmp_path / "m" / "games.pgn")
    assert [(s.agents, s.actions) for s in saved] == [(s.agents, s.actions) for s in again] and len(saved) == 4
    text = io.StringIO((tmp_path / "m" / "games.pgn").read_text())
    for game_ in saved:
        theirs = chess.pgn.read_game(text)
        assert not theirs.errors and sum(1 for _ in theirs.mainline()) == len(game_.actions)
        assert [theirs.headers["White"], theirs.headers["Black"]] == game_.agents
        if game_.forfeit:
            assert theirs.headers["Result"] == ("0-1" if game_.forfeit["seat"] == 0 else "1-0")
            assert theirs.headers["Termination"] == "crash: out of ideas"


def test_sgf(tmp_path):
    game, agents = make("go:size=5"), ["random", "a[b]"]
    saver = Saver(tmp_path / "games.sgf", "go:size=5", game, agents)
    records = [random_record(game, number, 20, forfeit=number > 1) for number in range(1, 4)]
    for record in records:
        saver.add(record)
    saver.finish({})
    saver.close()
    found = load(tmp_path / "games.sgf")
    assert [s.actions for s in found] == [r.actions for r in records]
    assert [s.agents for s in found] == [["a[b]", "random"], ["random", "a[b]"], ["a[b]", "random"]]
    assert (tmp_path / "games.sgf").read_text().count("+Forfeit") == 2


@pytest.mark.slow
@pytest.mark.parametrize("game", ["chess", "go:size=5", "checkers", "backgammon", "othello"])
def test_matches_of_all_kinds_of_games_are_saved_and_replayed(game, tmp_path):
    report = match(game, "random", f"{FAULTY}:Crashes:after=30", 4, workers=2, save=tmp_path / "m")
    assert report["games"] == 4
    for path in (tmp_path / "m").glob("games.*"):
        saved = load(path)
        assert len(saved) == 4
        for number, found in enumerate(saved):
            assert len(list(replayed(found, str(number)))) == len(found.actions) + 1


def test_replay_refuses_what_is_not_so(tmp_path):
    path = tmp_path / "games.jsonl"
    match("tic_tac_toe", "random", "random", 3, workers=1, save=path)
    lines = path.read_text().splitlines()

    def damaged(**changes):
        path.write_text("\n".join([lines[0], json.dumps({**json.loads(lines[1]), **changes}), lines[2]]) + "\n")
        for number, saved in enumerate(load(path), 1):
            for _ in replayed(saved, f"game {number}"):
                pass

    damaged()
    actions, utilities = json.loads(lines[1])["actions"], json.loads(lines[1])["utilities"]
    with pytest.raises(InputError, match=r"game 2, move 2: action .* is not legal"):
        damaged(actions=[actions[0], *actions], moves=None)
    with pytest.raises(InputError, match="not over"):
        damaged(actions=actions[:-1])
    with pytest.raises(InputError, match="the result is"):
        damaged(utilities=[u + 1 for u in utilities])
    with pytest.raises(InputError, match="game 2, move 1: action"):
        damaged(moves=["z9", *json.loads(lines[1])["moves"][1:]])
    with pytest.raises(InputError, match="line 2, is not a saved game"):
        damaged(actions="abc")
    path.write_text("\n".join(lines)[:-20])  # torn: two games are whole
    assert len(load(path)) == 2
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path / "nothing.jsonl")
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(InputError, match="has no games"):
        load(tmp_path / "empty.jsonl")
