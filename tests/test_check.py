"""The conformance checker: it passes every game of the registry, and names the promise that a broken game breaks."""

import inspect

import broken_games
import numpy as np
import pytest

from envs.check import PROMISES, check_game
from envs.game import Game, state_bytes
from envs.registry import GAMES, make

BROKEN = [
    cls
    for cls in vars(broken_games).values()
    if inspect.isclass(cls) and issubclass(cls, Game) and cls not in (Game, broken_games.Race, broken_games.Coin)
]


@pytest.mark.parametrize("cls", BROKEN, ids=lambda cls: cls.__name__)
def test_broken_games_are_caught_by_name(cls):
    """The docstring of each names the promise; the moves reported lead to the state that shows it."""
    promise = cls.__doc__.partition(":")[0]
    assert promise in PROMISES
    report = check_game(cls(), states=600)
    assert promise in report.broken, report.broken
    broken = report.broken[promise]
    assert str(broken).startswith(f"{promise}: ")
    assert len(broken.sentence) < 200 and "\n" not in broken.sentence


@pytest.mark.parametrize(
    ("cls", "promise", "total"),
    [
        (broken_games.TooMany, "actions", 18),
        (broken_games.Stuck, "actions", 10),
        (broken_games.WrongPlayer, "player", 6),
        (broken_games.SecretChance, "player", 6),
        (broken_games.Meddler, "purity", 7),
        (broken_games.Infinite, "observe", 19),
        (broken_games.Cheater, "random", 9),
        (broken_games.Miscounting, "hints", 9),
        (broken_games.Rounding, "interpreted", 8),
    ],
)
def test_the_moves_lead_there(cls, promise, total):
    moves = check_game(cls(), states=600).broken[promise].moves
    assert sum(map(int, moves)) == total


def test_a_game_that_goes_on_is_shown_at_its_limit():
    broken = check_game(broken_games.NeverEnds(), states=600).broken["length"]
    assert len(broken.moves) == broken_games.Race().max_length


@pytest.mark.parametrize("game", [broken_games.Race(), broken_games.Race(goal=60), broken_games.Coin()], ids=repr)
def test_sound_games_pass(game):
    report = check_game(game, states=2000)
    assert report.ok, report.broken
    assert all(count for promise, count in report.tested.items() if promise not in ("outcomes", "position"))


def test_a_game_without_rules_is_reported():
    report = check_game(Game())
    assert "start" in report.broken


def test_an_interpreted_difference_names_only_the_place():
    broken = check_game(broken_games.Rounding(), states=600).broken["interpreted"]
    assert broken.sentence.startswith("features[0]: compiled ")


def test_bytes_of_a_state_leave_out_the_gaps_of_the_record():
    dtype = np.dtype([("a", "u1"), ("b", "i8"), ("c", "i2", (3,)), ("d", [("e", "u1"), ("f", "i4")])], align=True)
    first, second = np.zeros(2, dtype), np.zeros(2, dtype)
    second.view(np.uint8)[1:8] = 7  # between a and b
    assert first.tobytes() != second.tobytes()
    assert state_bytes(first) == state_bytes(second)
    assert state_bytes(first[0]) == state_bytes(second[0])
    second["d"]["f"][1] = 1
    assert state_bytes(first) != state_bytes(second)
    assert state_bytes(first[0]) == state_bytes(second[0])
    assert len(state_bytes(first[0])) == 1 + 8 + 6 + 5


@pytest.mark.parametrize("name", sorted(GAMES))
def test_registry(name):
    game = make(name)
    report = check_game(game, states=10_000 if game.observation_shape[-1] < 9 else 2000, texts=60, interpreted=40)
    assert report.ok, "; ".join(map(str, report.broken.values()))
    assert report.tested["interpreted"] > 0 and report.tested["names"] > 0


@pytest.mark.parametrize(
    "spec",
    [
        "connect_four:rows=4,columns=5",
        "connect_four:rows=7,columns=8",
        "connect_four:rows=4,columns=4,connect=3",
        "connect_four:rows=1,columns=1",
        "mnk:rows=4,columns=5,connect=4",
        "mnk:rows=7,columns=9,connect=5,exactly=true",
        "nim:heaps=2+3+4,misere=true",
        "nim:heaps=9,take=3",
        "pig:players=3,goal=20,sides=4,horizon=60",
    ],
)
@pytest.mark.slow
def test_other_sizes_and_options(spec):
    report = check_game(make(spec), states=3000)
    assert report.ok, "; ".join(map(str, report.broken.values()))
