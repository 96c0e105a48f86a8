"""The scoreboard: generated positions, labels, phases, files of positions, and games against perfect play."""

from pathlib import Path

import numpy as np
import pytest

from envs.connect_four import ConnectFour
from envs.errors import InputError
from envs.game import TERMINAL, state_bytes
from envs.registry import make
from selfplay.positions import generate, phase, plies_of, read_positions
from selfplay.scoreboard import score
from selfplay.solvers.connect_four import ConnectFourSolver
from selfplay.solvers.solution import canonical, mover

DATA = Path(__file__).parent / "data/connect_four"


def test_generated_positions():
    """Seeded, distinct up to reflection, within the plies asked for, from random and from mixed play."""
    game = ConnectFour()
    positions = generate(game, 120, 3, 14, 35)
    assert len(positions) == 120
    assert len({canonical(game, p.state) for p in positions}) == 120
    assert all(14 <= p.plies == plies_of(game, p.state) <= 35 for p in positions)
    assert all(mover(game, p.state) != TERMINAL for p in positions)
    assert sum(p.source == "mixed" for p in positions) in range(40, 81)
    assert {phase(game, p.plies) for p in positions} == {"middle", "late"}
    same, other = generate(game, 120, 3, 14, 35), generate(game, 120, 4, 14, 35)
    assert [state_bytes(p.state) for p in same] == [state_bytes(p.state) for p in positions]
    assert [state_bytes(p.state) for p in other] != [state_bytes(p.state) for p in positions]


def test_a_mirror_image_is_the_same_position():
    game = ConnectFour()
    one, image = game.parse_position("1122"), game.parse_position("7766")
    assert canonical(game, one) == canonical(game, image) != canonical(game, game.parse_position("1126"))


def test_perfect_keeps_every_value_and_random_does_not():
    game = make("tic_tac_toe")
    perfect = score(game, "perfect:megabytes=1", count=60, games=6, megabytes=1)
    assert perfect["kept"] == 1 and perfect["value_error"] == 0
    for seat, games in (("first", 3), ("second", 3)):
        assert perfect["against_perfect"][seat]["draws"] == games
    assert sum(part["positions"] for part in perfect["by_phase"].values()) == perfect["positions"] > 50
    assert set(perfect["by_phase"]) == {"early", "middle", "late"}
    chance = score(game, "random", count=60, games=20, megabytes=1)
    assert chance["positions"] == perfect["positions"] and chance["critical"] == perfect["critical"] > 30
    assert 0.2 < chance["kept_critical"] < 0.9 and chance["kept_critical"] < chance["kept"] < 1
    assert chance["value_error"] is None
    assert sum(chance["against_perfect"][seat]["losses"] for seat in ("first", "second")) >= 10
    again = score(game, "random", count=60, games=20, megabytes=1)
    assert {**again, "seconds": 0} == {**chance, "seconds": 0}


def test_a_file_of_positions(tmp_path):
    """Lines of a test set: the share of kept values counted by hand from exact scores."""
    game = ConnectFour()
    lines = (DATA / "Test_L3_R1.txt").read_text().splitlines()[:30]
    file = tmp_path / "positions.txt"
    file.write_text("# a test set\n\n" + "\n".join(lines) + "\n")
    report = score(game, "random", file, seed=5, games=0, megabytes=4)
    assert report["positions"] == 30 and "against_perfect" not in report
    assert report["plies"] == [min(len(line.split()[0]) for line in lines), max(len(line.split()[0]) for line in lines)]
    solver, critical = ConnectFourSolver(game, megabytes=4), 0
    for line in lines:
        signs = {np.sign(s) for s in solver.scores(game.parse_position(line.split()[0])).values()}
        critical += len(signs) > 1
    assert report["critical"] == critical


def test_bad_input(tmp_path):
    game, file = ConnectFour(), tmp_path / "positions.txt"
    with pytest.raises(InputError, match=r"positions file '.*positions.txt' can't be read: No such file"):
        read_positions(game, file)
    file.write_text("# nothing\n")
    with pytest.raises(InputError, match="holds no positions"):
        read_positions(game, file)
    file.write_text("44\n4x\n")
    with pytest.raises(InputError, match=r"line 2: position '4x', move 2: move 'x' is not legal"):
        read_positions(game, file)
    file.write_text("1212121\n")
    with pytest.raises(InputError, match="line 1: nobody has to choose"):
        read_positions(game, file)
    with pytest.raises(InputError, match="count=0 must be at least 1"):
        score(game, "random", count=0)
    with pytest.raises(InputError, match="plies 20 to 10"):
        score(game, "random", first=20, last=10)
    with pytest.raises(InputError, match="unknown agent 'nobody'"):
        score(game, "nobody")
