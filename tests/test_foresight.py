"""Verdicts before the network is asked: never against the solver, the nearest win found, the budget kept."""

import numpy as np
import pytest

from envs.game import TERMINAL, legal_actions
from envs.registry import make
from envs.rng import below, generator
from selfplay.search.foresight import foresee
from selfplay.search.network_tree import leaf_dtype, options_dtype
from selfplay.solvers import solver_for
from tests.test_puct import move_of, root, searched


def memory(game, budget):
    options = np.zeros(1, options_dtype(game, 1)).view(np.recarray)[0]
    leaf = np.zeros(1, leaf_dtype(game)).view(np.recarray)[0]
    options.foresight, options.half = budget, 1.0
    return options, leaf


def random_position(game, plies, rng):
    """None where the game ended before."""
    state = game.new()[0]
    for _ in range(plies):
        if game.player(state) == TERMINAL:
            return None
        actions = legal_actions(game, state)
        game.play(state, actions[int(below(rng, len(actions)))])
    return None if game.player(state) == TERMINAL else state


@pytest.mark.parametrize(("spec", "plies", "budget"), [("tic_tac_toe", 3, 400), ("connect_four", 24, 400)])
def test_verdicts_are_the_solvers_values(spec, plies, budget):
    game = make(spec)
    options, leaf = memory(game, budget)
    rng, solver, settled, judged = generator(5), solver_for(game), 0, 0
    for _ in range(60):
        state = random_position(game, plies, rng)
        if state is None:
            continue
        leaf.state = state
        exact = {action: value.value for action, value in solver.all_moves(state).items()}
        if foresee(game, options, leaf):
            settled += 1
            assert leaf.outcome == pytest.approx(np.sign(max(exact.values())))
        for action, verdict in zip(legal_actions(game, state), leaf.verdict, strict=False):
            if not np.isnan(verdict):
                judged += 1
                assert verdict == pytest.approx(np.sign(exact[action])), (str(state), action)
    assert settled > 5 and judged > 20


def test_a_double_threat_is_seen_in_three_plies_and_the_nearest_win_is_played():
    game = make("connect_four")
    state = game.parse_position("4152")  # an open two in the lowest row, with room on both sides
    options, leaf = memory(game, 10_000)
    leaf.state = state
    assert foresee(game, options, leaf) == (np.nanmax(leaf.verdict) == 1.0)
    open_three = game.parse_position("4151")
    leaf.state = open_three
    assert foresee(game, options, leaf) and leaf.outcome == 1.0
    winning = [column + 1 for column in range(7) if leaf.verdict[column] == 1.0]
    assert winning and set(winning) <= {3, 6}
    at_once = game.parse_position("41514161")
    leaf.state = at_once
    assert foresee(game, options, leaf)
    assert [column + 1 for column in range(7) if leaf.verdict[column] == 1.0] == [4] or np.nansum(leaf.verdict) >= 1


def test_the_budget_is_kept():
    game = make("connect_four")
    state = game.parse_position("44")
    for budget in (0, 1, 49, 400, 3000):
        options, leaf = memory(game, budget)
        leaf.state = state
        assert not foresee(game, options, leaf)
        assert options.looked <= (1.5 * budget + 7 if budget else 0)
        assert options.looked >= budget / 8  # what it may it does


def test_chance_and_more_players_are_left_alone():
    for spec in ("pig", "tic_tac_toe_three", "backgammon"):
        game = make(spec)
        options, leaf = memory(game, 1000)
        leaf.state = game.new()[0]
        assert not foresee(game, options, leaf) and options.looked == 0 and np.isnan(leaf.verdict).all()


@pytest.mark.parametrize("kind", ["puct", "gumbel"])
def test_moves_that_lose_are_not_chosen(kind):
    game = make("connect_four")
    state = game.parse_position("4151")  # the other side threatens to open three: only stopping it is left
    state = game.parse_position("41516")  # three in the lowest row: column 3 or 7 must be taken, both win
    trees = searched(game, state, 16, kind)
    node, edges = root(trees)
    move_of(game, trees)
    assert node.proof == 1 and node.value == -1.0 and (edges.proof == 1).all()
