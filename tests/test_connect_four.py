"""Connect Four against published counts and OpenSpiel."""

import pyspiel
import pytest
from referees import play_beside_open_spiel

from envs.connect_four import ConnectFour
from envs.errors import InputError
from envs.game import TERMINAL
from selfplay.perft import perft

# Move sequences by depth; d <= 7 agrees with Fairy-Stockfish (reference data, connect4/facts.md).
PERFT = [1, 7, 49, 343, 2401, 16807, 117649, 823536, 5673234, 39394572]


def test_perft():
    assert [perft(ConnectFour(), depth).nodes for depth in range(len(PERFT))] == PERFT


def test_random_games_beside_open_spiel():
    assert play_beside_open_spiel(ConnectFour(), pyspiel.load_game("connect_four"), games=2000) > 20_000


@pytest.mark.parametrize("text", ["x" * 7, "8", "1111111", "4a", "......./......./......./......./x....../......."])
def test_bad_positions(text):
    with pytest.raises(InputError):
        ConnectFour().parse_position(text)


def test_positions():
    game = ConnectFour()
    state = game.parse_position("4453")
    assert game.position_text(game.parse_position(game.position_text(state))) == game.position_text(state)
    assert game.player(game.parse_position("1212121")) == TERMINAL
    assert game.utility(game.parse_position("1212121"), 0) == 1.0
