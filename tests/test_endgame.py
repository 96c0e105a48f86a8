"""Exact ends of games: the solver's values and moves, games that end once their result is known, and the budget."""

import numpy as np
import pytest

from envs.game import TERMINAL, legal_actions
from envs.registry import make
from envs.rng import generator
from models.network import build
from selfplay.search.endgame import Endgame
from selfplay.solvers import solver_for
from selfplay.train.actor import Actor
from selfplay.train.config import resolve
from tests.test_foresight import random_position


@pytest.mark.parametrize(("spec", "plies", "nodes"), [("tic_tac_toe", 2, 20_000), ("connect_four", 26, 50_000)])
def test_what_is_solved_is_what_the_solver_says(spec, plies, nodes):
    game, solver, rng = make(spec), solver_for(make(spec)), generator(9)
    endgame = Endgame(game, nodes)
    solved = 0
    for _ in range(200):
        state = random_position(game, plies, rng)
        if state is None:
            continue
        found = endgame.solve(state)
        if found is None:
            continue
        solved += 1
        exact = solver.solve(state)
        assert found[1] == pytest.approx(exact.value), str(state)
        assert found[0] in exact.best, "the quickest win, the longest defence"
    assert solved > 30


def test_a_budget_that_is_too_small_settles_nothing_and_chance_is_left_alone():
    game = make("connect_four")
    assert Endgame(game, 100).solve(game.new()[0]) is None
    assert Endgame(make("pig"), 1000).solve(make("pig").new()[0]) is None
    assert Endgame(game, 0).solve(game.new()[0]) is None


def test_where_it_never_succeeds_it_is_hardly_tried():
    game, rng = make("connect_four"), generator(1)
    endgame = Endgame(game, 50)
    state = game.new()[0]
    for _ in range(600):
        assert endgame.try_solve(state, 0, rng) is None
    assert 20 < endgame.tried[0] < 200 and endgame.solved[0] == 0


class Ignorant:
    """A network that knows nothing."""

    def __init__(self, game):
        self.game = game

    def __call__(self, planes):
        count = len(planes)
        return np.zeros((count, self.game.num_actions), np.float32), np.zeros((count, 2), np.float32)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_self_play_ends_where_the_result_is_known(share):
    game = make("connect_four")
    settings = ["search.simulations=4", "actor.games=8", "search.endgame=5000", f"actor.play_solved={share}"]
    config = resolve(game, None, settings)
    actor = Actor(game, config, Ignorant(game), build(game, config.model, 0))
    finished, _ = actor.play(1200)
    assert len(finished) > 10
    for over in finished:
        samples = over.samples.view(np.recarray)
        assert over.utilities[0] == -over.utilities[1] and abs(over.utilities[0]) in (0.0, 1.0)
        for sample in samples:
            assert sample["values"][0] == over.utilities[sample.player]
        proven = np.flatnonzero(samples.proof)
        if share == 0.0:  # at the first proof, or at the end of the game
            assert len(proven) == 0 or proven[0] == len(samples) - 1
        last = samples[-1].state.copy()
        game.play(last, int(samples[-1].action))
        if share == 1.0:
            assert game.player(last) == TERMINAL
        for sample in samples[proven]:
            assert sample.search_value == sample["values"][0], "play from a solved position keeps its value"
            assert sample.action in legal_actions(game, sample.state)


def test_an_actor_that_was_restored_tries_the_same_positions():
    game = make("connect_four")
    config = resolve(game, None, ["search.simulations=4", "actor.games=4", "search.endgame=2000"])
    actors = [Actor(game, config, Ignorant(game), build(game, config.model, 0)) for _ in range(2)]
    actors[0].play(200)
    actors[1].restore(actors[0].state())
    first, second = (actor.play(200)[0] for actor in actors)
    assert [over.actions for over in first] == [over.actions for over in second]
    assert first
