"""Endgame tables against published figures, python-chess, recorded engine output, and the games' own rules.

Bear-off values: recorded from GNU Backgammon 1.07 (tests/data/backgammon/bearoff_*.csv), which keeps its one-sided
chances in 16 bits; an exact computation agrees to 2e-4. Pig: Neller and Presser 2004. Checkers' counts: OEIS A055213.
KRK: the histogram of the UCI repository's "Chess (King-Rook vs. King)" data, Bain and Hoff 1994.
"""

import csv
import json
import os
import resource
import subprocess
import sys
from math import comb
from pathlib import Path

import chess as python_chess
import numpy as np
import pytest

from envs.backgammon import Backgammon
from envs.checkers import Checkers
from envs.chess import Chess
from envs.errors import InputError
from envs.pig import HOLD, ROLL, Pig
from selfplay import tables
from selfplay.agents import make_agent
from selfplay.cli import main
from selfplay.tables import backgammon as bearoff_tables
from selfplay.tables import checkers_build, chess_index, manage, pig_build
from selfplay.tables.bearoff import binomials, number_of
from selfplay.tables.store import path_of, read_table, write_table

DATA = Path(__file__).parent / "data" / "backgammon"
ROOT = Path(__file__).resolve().parents[1]
PIG = Pig(goal=20)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for the tables that these tests share; each is built by the first that needs it."""
    return tmp_path_factory.mktemp("tables")


def by_kind(rows):
    return {row["kind"]: row for row in rows}


# --- chess ---------------------------------------------------------------------------------------------


def test_three_men(folder):
    rows = by_kind(manage.build(Chess(), men=3, folder=folder))
    assert list(rows) == ["KQK", "KRK", "KBK", "KNK", "KPK"]
    assert [row["longest_mate"] for row in rows.values()] == [10, 16, 0, 0, 28]
    # 462 placements of the kings, with a third man anywhere else, twins on the diagonal counted once.
    assert {rows[kind]["counts"]["second"]["positions"] for kind in ("KQK", "KRK", "KBK", "KNK")} == {28_056}
    # Legal positions on the whole board, by hand: black may be in check, but only if black is to move.
    assert rows["KRK"]["counts"]["second"]["placements"] == 223_944 == (64 * 63 - 4 * 3 - 24 * 5 - 36 * 8) * 62
    pawn = rows["KPK"]["counts"]
    assert (pawn["first"]["wins"], pawn["second"]["losses"]) == (62_480, 48_802)  # of 81,664 and 84,012


def test_the_published_histogram_of_king_and_rook(folder):
    manage.build(Chess(), ["KRK"], folder=folder)
    values = read_table(path_of(folder, "chess", "KRK")).arrays["values"]
    black = values[chess_index.size_of("KRK") :]
    assert int((black == chess_index.DRAW).sum()) == 2796
    published = [27, 78, 246, 81, 198, 471, 592, 683, 1433, 1712, 1985, 2854, 3597, 4194, 4553, 2166, 390]
    assert [int((black == 2 * moves + 1).sum()) for moves in range(17)] == published


def test_every_kind_comes_after_those_it_needs():
    for module, most in ((chess_index, 35), (checkers_build, 23)):
        kinds = module.kinds(4)
        assert len(kinds) == most == len(set(kinds))
        for number, kind in enumerate(kinds):
            assert all(kinds.index(name) < number for name in module.needed(kind)), kind
    assert set(chess_index.needed("KRKP")) >= {"KRK", "KPK", "KQKR", "KRKN", "KQK", "KNK"}


def test_moves_from_python(folder):
    manage.build(Chess(), ["KQK"], folder=folder)
    game = Chess()
    state = game.parse_position("8/8/8/8/8/1k6/7q/K7 w - - 0 1")  # Kb1 is forced, then Qh1#
    assert tables.covers(game, state, folder)
    assert (tables.value(game, state, folder), tables.distance(game, state, folder)) == (-1.0, 2)
    mate = game.parse_position("7k/8/5K2/8/8/8/8/6Q1 w - - 0 1")
    action = tables.best_move(game, mate, folder)
    assert game.action_name(mate, action) == "g1g7"
    assert tables.distance(game, mate, folder) == 1
    assert not tables.covers(game, game.new()[0], folder)
    assert tables.best_move(game, game.new()[0], folder) is None
    late = game.parse_position("8/8/8/4k3/8/8/8/K6Q w - - 95 90")  # the 50-move rule comes before any mate
    assert not tables.covers(game, late, folder)


@pytest.mark.slow
def test_four_men(folder):
    rows = by_kind(manage.build(Chess(), ["KBNK", "KBBK", "KQKR", "KRKN", "KPKP", "KRKP"], folder=folder))
    # Longest mates: Thompson 1986 and Nalimov's tables.
    longest = {"KBNK": 33, "KBBK": 19, "KQKR": 35, "KRKN": 40, "KPKP": 33, "KRKP": 43}
    assert {kind: rows[kind]["longest_mate"] for kind in longest} == longest
    for row in manage.verify(Chess(), list(longest), folder, samples=1000):
        assert row["compared"] == 1000 and not row["wrong"], row


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["KQK", "KPK", "KBNK", "KPKP"])
def test_beside_python_chess(folder, kind):
    """Each entry is one more than the best of its successors, the moves being python-chess's."""
    manage.build(Chess(), [kind], folder=folder)
    game = Chess(draw_rules=False)
    family = manage.family_of(game)
    probe = tables.probe.Prober(game, folder)
    for state in family.samples(kind, probe.evaluation, 150, seed=5):
        board = python_chess.Board(game.position_text(state))
        assert board.is_valid()
        found = plies(game, folder, board)
        if board.is_checkmate() or board.is_stalemate():
            assert found is (None if board.is_stalemate() else 0) or found == 0
            continue
        after = []
        for move in board.legal_moves:
            board.push(move)
            after.append(plies(game, folder, board))
            board.pop()
        wins = [n for n in after if n is not None and n % 2 == 0]
        expected = min(wins) + 1 if wins else None if None in after else max(after) + 1
        assert found == expected, game.position_text(state)


def plies(game, folder, board):
    """Plies to mate by the tables; None for a draw."""
    if board.is_checkmate():
        return 0
    if board.is_stalemate() or board.is_insufficient_material():
        return None
    state = game.parse_position(board.fen(en_passant="legal"))
    assert tables.covers(game, state, folder)
    return tables.distance(game, state, folder)


@pytest.mark.slow
def test_alphabeta_mates_by_the_table(folder, monkeypatch):
    manage.build(Chess(), ["KRK"], folder=folder)
    monkeypatch.setenv("SELFPLAY_TABLES", str(folder))
    game = Chess()
    agent = make_agent("alphabeta:depth=2,tables=on", game)
    states = game.new(1)
    states[0] = game.parse_position("8/8/8/4k3/8/8/8/K6R w - - 0 1")
    length = tables.distance(game, states[0], folder)
    for _ in range(length):
        result = agent.search(states[0])
        assert abs(result.value) == 1.0 and result.proven
        game.play(states[0], result.action)
    assert game.player(states[0]) < 0 and game.utility(states[0], 0) == 1.0
    # One move before the exchange the search looks into the table.
    result = agent.search(game.parse_position("8/8/8/4k3/8/3p4/8/K6R w - - 0 1"))
    assert result.value == 1.0


# --- checkers ------------------------------------------------------------------------------------------


def one_colour(pieces: int) -> int:
    """Placements of that many pieces of one colour: men on 28 squares, kings on the rest of the 32."""
    return sum(comb(28, men) * comb(32 - men, pieces - men) for men in range(pieces + 1))


def placements(rows, pieces: int) -> int:
    """All placements with both colours on the board."""
    return sum(part["positions"] for row in rows if row["men"] == pieces for part in row["counts"].values())


def test_checkers_counts(folder):
    rows = manage.build(Checkers(), men=3, folder=folder)
    for pieces, published in ((2, 6972), (3, 261_224)):
        assert placements(rows, pieces) + 2 * one_colour(pieces) == published
    kinds = by_kind(rows)
    # Two kings beat one unless it takes them or holds a double corner: "first" loses nothing.
    assert kinds["KKvK"]["counts"]["first"]["losses"] == 0


def test_checkers_entries(folder):
    manage.build(Checkers(), men=3, folder=folder)
    for row in manage.verify(Checkers(), ["KKvK", "KMvM", "MMvK"], folder, samples=400):
        assert row["compared"] == 400 and not row["wrong"], row
    game = Checkers()
    state = game.parse_position("B:W18,24:BK22")  # a jump, then the last piece is hunted
    assert tables.covers(game, state, folder)
    in_jump = game.parse_position("B:W18,11:BK22")
    assert tables.value(game, in_jump, folder) == 1.0  # takes both
    assert tables.distance(game, in_jump, folder) == 1
    assert game.action_name(in_jump, tables.best_move(game, in_jump, folder)) == "22x15"


@pytest.mark.slow
def test_checkers_with_four_pieces(folder):
    rows = manage.build(Checkers(), folder=folder)
    assert placements(rows, 4) + 2 * one_colour(4) == 7_092_774
    for row in manage.verify(Checkers(), None, folder, samples=500):
        assert row["compared"] == 500 and not row["wrong"], row


@pytest.mark.slow
def test_checkers_beside_alphabeta(folder):
    """Short wins and losses are those that a plain search finds."""
    manage.build(Checkers(), men=3, folder=folder)
    game = Checkers(quiet_plies=30_000, repetitions=0)
    agent = make_agent("alphabeta:depth=9,quiescence=off,eval=none", game)
    family, probe = manage.family_of(game), tables.probe.Prober(game, folder)
    for kind in ("KvK", "KMvK", "MMvM"):
        for state in family.samples(kind, probe.evaluation, 60, seed=3):
            if game.player(state) < 0:
                continue
            distance = tables.distance(game, state, folder)
            agent.reset()
            value = agent.search(state).value
            if distance is not None and distance <= 7:
                assert value == tables.value(game, state, folder)
            elif distance is None:
                assert value == 0.0


# --- backgammon ----------------------------------------------------------------------------------------


def test_one_sided_bear_off(folder):
    rows = by_kind(manage.build(Backgammon(), folder=folder))
    assert rows["one-sided"]["counts"]["positions"] == 54_264 == comb(21, 6)
    assert rows["two-sided"]["counts"]["positions"] == 924**2
    with (DATA / "bearoff_one_sided_50.csv").open() as file:
        for row in csv.DictReader(file):
            mean, chances = bearoff_tables.rolls_to_bear_off(folder, [int(row[f"n{i}"]) for i in range(1, 7)])
            assert mean == pytest.approx(float(row["mean_rolls"]), abs=2e-4)
            assert chances[:19] == pytest.approx([float(row[f"p{k}"]) for k in range(19)], abs=5e-5)
    mean, chances = bearoff_tables.rolls_to_bear_off(folder, [0, 0, 0, 0, 0, 1])
    assert (mean, chances[1]) == (pytest.approx(1.25), pytest.approx(27 / 36))
    assert bearoff_tables.rolls_to_bear_off(folder, [0, 0, 0, 0, 1, 1])[1][1] == pytest.approx(6 / 36)
    assert bearoff_tables.rolls_to_bear_off(folder, [0, 0, 0, 0, 0, 2])[1][1] == pytest.approx(4 / 36)
    assert bearoff_tables.rolls_to_bear_off(folder, [15, 0, 0, 0, 0, 0])[0] == pytest.approx(6.9796, abs=1e-4)
    with pytest.raises(InputError, match="sum of at most 15"):
        bearoff_tables.rolls_to_bear_off(folder, [16, 0, 0, 0, 0, 0])


def test_two_sided_bear_off(folder):
    manage.build(Backgammon(), folder=folder)
    arrays = read_table(path_of(folder, "backgammon", "two-sided")).arrays
    with (DATA / "bearoff_two_sided_60.csv").open() as file:
        rows = list(csv.reader(file))[1:]
    for row in rows:
        a, b = (int(number_of(binomials(), np.array([int(n) for n in text.split()]))) for text in row[:2])
        wins = arrays["wins"][a, b]
        ours = [wins, 2 * wins - 1, *arrays["equities"][:, a, b]]
        assert [f"{value:.5f}" for value in ours] == row[2:]


@pytest.mark.slow
def test_bear_off_by_the_rules(folder):
    manage.build(Backgammon(), folder=folder)
    for row in manage.verify(Backgammon(), None, folder, samples=500):
        assert row["compared"] == 500 and not row["wrong"], row


@pytest.mark.slow
def test_expectiminimax_bears_off_by_the_table(folder, monkeypatch):
    manage.build(Backgammon(), folder=folder)
    monkeypatch.setenv("SELFPLAY_TABLES", str(folder))
    game = Backgammon()
    agent = make_agent("expectiminimax:depth=1,tables=on", game)
    states = manage.family_of(game).samples("two-sided", None, 20, seed=1)
    with np.errstate(over="ignore"):
        for number, state in enumerate(states):
            game.play(state, 6 * (number % 6) + number % (number % 6 + 1))  # some roll
            if game.player(state) >= 0:
                result = agent.search(state)
                assert result.proven and result.value == pytest.approx(tables.value(game, state))


# --- pig -----------------------------------------------------------------------------------------------


def test_pig_as_published():
    start = pig_build.build(100, 6, lambda _: None)
    assert round(start[0, 0], 4) == 0.5306


def test_pig_by_value_iteration():
    """The same by the plainest means: sweep over all states until nothing changes."""
    goal, sides = 12, 4
    win = np.zeros((goal, goal, goal + sides))
    for i in range(goal):
        win[i, :, goal - i :] = 1.0
    for _ in range(200):
        for i in range(goal):
            for j in range(goal):
                for k in range(goal - i):
                    hold = 1.0 - win[j, i + k, 0]
                    roll = (1.0 - win[j, i, 0] + win[i, j, k + 2 : k + sides + 1].sum()) / sides
                    win[i, j, k] = max(hold, roll)
    assert pig_build.build(goal, sides, lambda _: None) == pytest.approx(win[:, :, 0], abs=1e-12)


def test_pig_by_the_rules_and_in_a_search(folder, monkeypatch):
    (row,) = manage.build(PIG, folder=folder)
    assert not row["counts"].get("wrong") and 0.5 < row["first_player_wins"] < 0.7
    (checked,) = manage.verify(PIG, folder=folder, samples=500)
    assert checked["compared"] == 500 and not checked["wrong"]
    monkeypatch.setenv("SELFPLAY_TABLES", str(folder))
    agent = make_agent("expectiminimax:depth=1,tables=on", PIG)
    result = agent.search(PIG.new()[0])
    assert result.proven and result.value == pytest.approx(2 * row["first_player_wins"] - 1)
    assert result.action == ROLL == tables.best_move(PIG, PIG.new()[0])
    won = PIG.parse_position("scores 15 10 player 1 total 5")
    assert agent.choose(won) == HOLD and tables.value(PIG, won) == 1.0


# --- files and commands --------------------------------------------------------------------------------


def small_table(place: Path) -> Path:
    (place / "pig").mkdir(parents=True, exist_ok=True)
    path = path_of(place, "pig", "goal20-sides6")
    write_table(
        path, "pig", "goal20-sides6", {"start": np.arange(400.0).reshape(20, 20)}, {"counts": {"positions": 400}}
    )
    return path


def test_a_file_round_trips(tmp_path):
    table = read_table(small_table(tmp_path))
    assert table.header["kind"] == "goal20-sides6" and table.arrays["start"][19, 19] == 399.0


def test_a_flipped_bit_is_refused(tmp_path):
    path = small_table(tmp_path)
    whole = path.read_bytes()
    for place in [*range(0, 200, 3), *range(200, len(whole), 97), len(whole) - 1]:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(bytes(damaged))
        with pytest.raises(InputError, match=r"goal20-sides6.table.*build it again"):
            read_table(path)
    for length in (0, 10, 100, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match="build it again"):
            read_table(path)


def test_a_renamed_table_is_refused(tmp_path):
    path = small_table(tmp_path)
    other = path.rename(path_of(tmp_path, "pig", "goal50-sides6"))
    with pytest.raises(InputError, match="is the one of pig, goal20-sides6"):
        read_table(other)


def test_finished_tables_are_kept(tmp_path):
    first = manage.build(PIG, folder=tmp_path)[0]
    stamp = Path(first["file"]).stat().st_mtime_ns
    (tmp_path / "pig" / "other.table.part").write_bytes(b"half")
    second = manage.build(PIG, folder=tmp_path)[0]
    assert (first["built"], second["built"]) == (True, False)
    assert Path(second["file"]).stat().st_mtime_ns == stamp
    assert [path.name for path in (tmp_path / "pig").iterdir()] == ["goal20-sides6.table"]
    assert manage.info(PIG, folder=tmp_path)[0]["first_player_wins"] == first["first_player_wins"]


def test_verify_finds_what_is_wrong(folder, tmp_path):
    for game, kind, name in ((PIG, "goal20-sides6", "start"), (Checkers(), "KvK", "values")):
        manage.build(game, [kind], folder=folder)
        family = manage.family_of(game).name
        table = read_table(path_of(folder, family, kind))
        arrays = {key: array.copy() for key, array in table.arrays.items()}
        arrays[name][:] = np.where(arrays[name] == 255, 255, 0)  # everything lost, or drawn
        (tmp_path / family).mkdir()
        write_table(path_of(tmp_path, family, kind), family, kind, arrays, {"counts": {"positions": 0}})
        (row,) = manage.verify(game, [kind], tmp_path, samples=200)
        assert row["compared"] == 200 and len(row["wrong"]) > 5


def run(monkeypatch, capsys, *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["selfplay", *words])
    with pytest.raises(SystemExit) as caught:
        main()
        raise SystemExit(0)
    captured = capsys.readouterr()
    return int(caught.value.code or 0), captured.out, captured.err


def test_commands(tmp_path, monkeypatch, capsys):
    place = ("--folder", str(tmp_path))
    code, out, _ = run(monkeypatch, capsys, "tables", "build", "pig:goal=20", *place, "--json")
    assert code == 0 and json.loads(out)["tables"][0]["kind"] == "goal20-sides6"
    code, out, _ = run(monkeypatch, capsys, "tables", "info", "pig:goal=20", *place)
    assert code == 0 and "goal20-sides6" in out
    code, out, _ = run(monkeypatch, capsys, "tables", "verify", "pig:goal=20", *place, "--samples", "50", "--json")
    assert code == 0 and json.loads(out)["ok"] is True
    path = path_of(tmp_path, "pig", "goal20-sides6")
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(bytes(damaged))
    for command in ("build", "info", "verify"):
        code, _, err = run(monkeypatch, capsys, "tables", command, "pig:goal=20", *place)
        assert code == 2 and "checksum" in err and "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["build", "go"], "has no tables"),
        (["build", "chess", "--kind", "KXK"], "unknown kind 'KXK'"),
        (["build", "chess", "--men", "5"], "--men 5 must be from 3 to 4"),
        (["build", "pig:players=3"], "two players"),
        (["info", "chess", "--kind", "KQK"], "no table 'KQK'"),
        (["verify", "checkers"], "nothing to verify"),
        (["build", "chess", "--men", "2"], "--men 2 must be from 3 to 4"),
    ],
)
def test_bad_input(words, sentence, tmp_path, monkeypatch, capsys):
    code, out, err = run(monkeypatch, capsys, "tables", *words, "--folder", str(tmp_path))
    assert code == 2 and sentence in err and out == "" and len(err.strip().splitlines()) == 1


def test_agents_say_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("SELFPLAY_TABLES", str(tmp_path))
    for spec, game, sentence in (
        ("alphabeta:tables=on", Chess(), "no tables for chess"),
        ("expectiminimax:tables=on", PIG, "tables build pig:goal=20"),
        ("expectiminimax:tables=on", Backgammon(), "tables build backgammon"),
    ):
        with pytest.raises(InputError, match=sentence):
            make_agent(spec, game)


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="can't be written to the folder"):
        manage.build(PIG, folder=tmp_path / "file")


def test_a_full_disk(tmp_path):
    """A limit on the size of files stands for it: the write fails after some kilobytes."""
    script = (
        "import sys; sys.argv = ['selfplay', 'tables', 'build', 'pig:goal=60', '--folder', sys.argv[1]]\n"
        "from selfplay.cli import main\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "SELFPLAY_CACHE": str(tmp_path / "none"), "NUMBA_DISABLE_JIT": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)),
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "can't be written: File too large" in done.stderr and "Traceback" not in done.stderr
    assert list((tmp_path / "pig").iterdir()) == []
