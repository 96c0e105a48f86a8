"""The registry: every name makes a game with the static facts that everything else relies on."""

import numpy as np
import pytest

from envs.errors import InputError
from envs.game import Game
from envs.registry import GAMES, make, name_of


@pytest.mark.parametrize("name", sorted(GAMES))
def test_static_facts(name):
    game = make(name)
    assert isinstance(game, Game) and game.title and game.notation
    assert game.num_players >= 1 and game.num_actions >= game.max_legal >= 1 and game.max_length >= 1
    assert bool(game.has_chance) == (game.num_outcomes > 0)
    assert game.min_utility <= game.max_utility
    assert np.prod(game.observation_shape) > 0
    assert len(game.symmetries()) == game.num_symmetries
    assert len(game.feature_names()) == game.num_features
    assert game.new(3).dtype.itemsize == game.state.itemsize
    assert set(game.history_fields) <= set(game.state.names)


@pytest.mark.parametrize("name", sorted(GAMES))
def test_equal_games_are_equal_and_hash_alike(name):
    assert make(name) == make(name)
    assert hash(make(name)) == hash(make(name))


def test_parameters():
    game = make("connect_four:rows=5,columns=6")
    assert (game.rows, game.columns, game.connect) == (5, 6, 4)
    assert make("connect_four:rows=5", columns=6) == game
    assert make("tic_tac_toe") == make("mnk:rows=3,columns=3,connect=3")
    assert make("nim_cubes") == make("nim:heaps=4,take=2")


def test_names_of_games():
    for name, entry in GAMES.items():
        parameters = make(name)
        constants = {key: getattr(parameters, key) for key in entry.parameters}
        assert make(name_of(entry.module, entry.name, constants)) == parameters
    assert name_of("envs.mnk", "MNK", {"rows": 5, "columns": 5, "connect": 4}) == "mnk"
    assert name_of("game_file_x", "MyGame", {}) == "MyGame"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("conect_four", ["'conect_four'", "connect_four", "nim", "my_game.py:MyGame"]),
        ("", ["unknown game ''"]),
        ("connect_four:colums=7", ["'colums'", "rows, columns, connect"]),
        ("connect_four:columns=0", ["columns", "at least 1"]),
        ("connect_four:columns=9,rows=8", ["does not fit"]),
        ("connect_four:columns=x", ["columns='x'", "whole number"]),
        ("connect_four:columns", ["'columns'", "key=value"]),
        ("mnk:rows=20", ["rows", "1 to 19"]),
        ("nim:heaps=0", ["heaps", "1 to"]),
        ("nim:heaps=a+b", ["heaps='a+b'", "whole numbers joined by +"]),
        ("pig:players=1", ["players", "from 2 to 6"]),
        ("no_such_file.py:Game", ["no_such_file.py", "does not exist"]),
    ],
)
def test_bad_specs(spec, words):
    with pytest.raises(InputError) as caught:
        make(spec)
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("1 / 0", ["fails to import", "ZeroDivisionError: division by zero"]),
        ("def (", ["fails to import", "SyntaxError"]),
        ("import no_such_module", ["fails to import", "no_such_module"]),
        ("import sys; sys.exit(3)", ["fails to import", "SystemExit"]),
        ("x = 1", ["has no game 'Mine'", "none"]),
        ("from envs.game import Game\nclass A(Game): pass\nclass B(Game): pass", ["has no game 'Mine'", "A, B"]),
        ("from envs.game import Game\nclass Mine(Game): pass", ["Mine must be a dataclass"]),
        ("raise ValueError('one\\ntwo')", ["ValueError: one"]),
    ],
)
def test_users_files_that_do_not_work(tmp_path, source, words):
    (tmp_path / "mine.py").write_text(source)
    with pytest.raises(InputError) as caught:
        make(f"{tmp_path / 'mine.py'}:Mine")
    message = str(caught.value)
    assert "\n" not in message and "mine.py" in message
    assert all(word in message for word in words), message
