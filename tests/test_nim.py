"""Nim against Bouton's theory, the Grundy values of the subtraction game, and OpenSpiel."""

import json
from functools import reduce
from itertools import product
from operator import xor
from pathlib import Path

import numpy as np
import pyspiel
import pytest
from referees import play_beside_open_spiel

from envs.check import check_game
from envs.errors import InputError
from envs.game import TERMINAL, legal_actions
from envs.nim import Nim
from envs.registry import make

FACTS = json.loads((Path(__file__).parent / "data/mnk/facts.json").read_text())["nim"]


def value(game, state, memory):
    """The mover's result under best play, by exhaustive search."""
    key = state.tobytes()
    if key not in memory:
        if game.player(state) == TERMINAL:
            memory[key] = game.utility(state, int(state.mover))
        else:
            results = []
            for action in legal_actions(game, state):
                after = np.array([state]).view(np.recarray)
                game.play(after[0], action)
                results.append(-value(game, after[0], memory))
            memory[key] = max(results)
    return memory[key]


@pytest.mark.parametrize("misere", [False, True])
def test_theory_against_exhaustive_search(misere):
    game, memory = Nim((3, 4, 5), misere=misere), {}
    for heaps in product(range(4), range(5), range(6)):
        state = game.parse_position("+".join(map(str, heaps)))
        if misere and max(heaps) <= 1:
            lost = sum(heaps) % 2 == 1
        else:
            lost = reduce(xor, heaps) == 0
        assert value(game, state, memory) == (-1.0 if lost else 1.0), heaps


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_subtraction_games(most):
    """Taking at most three of one heap: the mover loses exactly on multiples of four, and likewise for others."""
    game, memory = Nim((20,), take=most), {}
    for heap in range(21):
        state = game.parse_position(str(heap))
        assert value(game, state, memory) == (-1.0 if heap % (most + 1) == 0 else 1.0)
        assert game.nim_sum(state) == heap % (most + 1)
    assert FACTS["grundy_take_1_to_3"] == "n mod 4"


def test_published_examples():
    assert value(Nim((1, 2, 3)), Nim((1, 2, 3)).new()[0], {}) == -1.0
    assert value(Nim((1, 3, 5, 7)), Nim((1, 3, 5, 7)).new()[0], {}) == -1.0
    game, memory = Nim((3, 4, 5)), {}
    best = []
    for action in legal_actions(game, game.new()[0]):
        states = game.new()
        game.play(states[0], action)
        if value(game, states[0], memory) == -1.0:
            best.append(game.action_name(game.new()[0], action))
    assert best == ["1:2"]  # three becomes one


def test_the_first_player_wins_with_four_cubes():
    game = make("nim_cubes")
    assert game == Nim((4,), take=2)
    assert value(game, game.new()[0], {}) == 1.0
    end = game.parse_position("1:1 1:2 1:1")
    assert game.player(end) == TERMINAL and [game.utility(end, p) for p in (0, 1)] == [1.0, -1.0]


# OpenSpiel's action is (objects - 1) * heaps + heap; ours counts the other way round, heap * most + objects - 1.
@pytest.mark.parametrize(
    ("game", "theirs"),
    [
        (Nim(misere=True), "nim"),
        (Nim(), "nim(is_misere=False)"),
        (Nim((4, 2, 6)), "nim(is_misere=False,pile_sizes=4;2;6)"),
        pytest.param(Nim((9, 1), misere=True), "nim(pile_sizes=9;1)", marks=pytest.mark.slow),
    ],
)
def test_random_games_beside_open_spiel(game, theirs):
    def to_spiel(action):
        return action % game.most * game.num_heaps + action // game.most

    assert play_beside_open_spiel(game, pyspiel.load_game(theirs), 1000, to_spiel) > 1000


def test_positions():
    game = make("nim:heaps=1+3+5+7,misere=true")
    assert game == Nim(misere=True)
    state = game.parse_position("2:3 4:1")
    assert game.position_text(state) == "1+0+5+6"
    assert game.position_text(game.parse_position("2:3")) == "1+0+5+7 2"
    assert game.parse_position("1+0+5+7 2").tobytes() == game.parse_position("2:3").tobytes()
    assert "(5)" in game.show(state)
    assert game.player(game.parse_position("0+0+0+0 2")) == TERMINAL


@pytest.mark.parametrize("text", ["1:2", "5:1", "1:1 1:1", "1+3+5", "1+3+5+8", "1+3+5+7 3", "1,3,5,7", "x", "1+-3+5+7"])
def test_bad_positions(text):
    with pytest.raises(InputError):
        Nim().parse_position(text)


@pytest.mark.parametrize("parameters", [((),), ((0,),), ((1001,),), ((1,) * 33,), ((3,), -1)])
def test_bad_parameters(parameters):
    with pytest.raises(InputError):
        Nim(*parameters)


def test_bad_specs():
    with pytest.raises(InputError):
        make("nim:heaps=a+b")
    with pytest.raises(InputError):
        make("nim:heaps=")


@pytest.mark.parametrize(
    "game", [Nim(), make("nim_cubes"), pytest.param(Nim((30, 1, 2), 7, True), marks=pytest.mark.slow)], ids=repr
)
def test_conformance(game):
    report = check_game(game, states=1500, texts=100, interpreted=60)
    assert report.ok, [str(broken) for broken in report.broken.values()]
