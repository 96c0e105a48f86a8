"""Flat Monte Carlo search: averages beside exact ones, its fair rounds, its limits."""

import random
import re
import threading
import time

import numpy as np
import psutil
import pytest
from trees import many_players, with_chance

from envs.connect_four import ConnectFour
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, legal_actions
from envs.mnk import MNK
from envs.pig import Pig
from selfplay.agents import make_agent, parse_agent
from selfplay.search.montecarlo import MonteCarlo, Options

TIC_TAC_TOE = MNK()
CONNECT_FOUR = ConnectFour()


def searcher(game, playouts=1000, seed=0, **options):
    return MonteCarlo(game, options=Options(playouts, **options), seed=seed)


def random_play(game, state):
    """Each player's expected utility if all moves are random, by the definition."""
    player = int(game.player(state))
    if player == TERMINAL:
        return np.array([game.utility(state, p) for p in range(game.num_players)])
    total = np.zeros(game.num_players)
    if player == CHANCE:
        out, probabilities = np.empty(64, np.int64), np.empty(64)
        count = game.outcomes(state, out, probabilities)
        pairs = list(zip(out[:count].tolist(), probabilities[:count].tolist(), strict=True))
    else:
        legal = legal_actions(game, state)
        pairs = [(action, 1 / len(legal)) for action in legal]
    for action, probability in pairs:
        child = state.copy()
        game.play(child, action)
        total += probability * random_play(game, child)
    return total


def agrees_with_random_play(game, state, playouts, tolerance):
    """Every average is within the tolerance of the exact expectation, and the choice is the best of its own averages."""
    result, player = searcher(game, playouts).search(state), int(game.player(state))
    for move in result.moves:
        child = state.copy()
        game.play(child, move.action)
        exact = random_play(game, child)
        assert move.value == pytest.approx(exact[player], abs=tolerance)
        if move.action == result.action:
            np.testing.assert_allclose(result.values, exact, atol=tolerance)
    assert result.value == max(move.value for move in result.moves) == result.moves[0].value
    assert all(move.visits == playouts and move.bound == "average" for move in result.moves)
    assert result.nodes == playouts * len(result.moves)


def test_averages_are_those_of_random_play():
    """The standard error of 40,000 games of result 1, 0 or -1 is at most 0.005: five of them."""
    for position in ("x.o/.x./..o", "xo./.x./...", "x../.o./..x"):
        agrees_with_random_play(TIC_TAC_TOE, TIC_TAC_TOE.parse_position(position), 40_000, 0.025)


@pytest.mark.parametrize("make_tree", [lambda seed: with_chance(seed, 2), lambda seed: many_players(seed, 3, True)])
def test_random_trees_with_chance_and_many_players(make_tree):
    """Leaves from -3 to 3: a standard error of at most 3 / sqrt(20,000) = 0.021."""
    for seed in range(20):
        game = make_tree(seed)
        agrees_with_random_play(game, game.new()[0], 20_000, 0.11)


def test_it_takes_a_win_and_stops_one():
    found = searcher(CONNECT_FOUR, 300)
    assert found.search(CONNECT_FOUR.parse_position("121212")).action == 0
    stopped = found.search(CONNECT_FOUR.parse_position("12121"))
    assert stopped.action == 0 and stopped.depth == 1 and not stopped.proven


def test_pig_rolls_first():
    result = searcher(Pig(goal=20), 2000).search(Pig(goal=20).new()[0])
    assert result.action == 0 and len(result.values) == 2


def test_same_seed_same_result():
    state = CONNECT_FOUR.parse_position("4453")
    found = searcher(CONNECT_FOUR, 200, seed=5)
    first = found.search(state)
    assert found.search(state).moves != first.moves  # the random numbers go on
    found.reset()
    assert found.search(state).moves == first.moves == searcher(CONNECT_FOUR, 200, seed=5).search(state).moves


@pytest.mark.parametrize("playout", ["own", "greedy"])
def test_policies_and_cut_off(playout):
    agent = make_agent(f"montecarlo:playouts=200,playout={playout},cutoff=4", TIC_TAC_TOE, 1)
    assert agent.choose(TIC_TAC_TOE.parse_position("x.o/.x./..o")) in range(9)
    assert agent.choose(TIC_TAC_TOE.parse_position("xx./oo./...")) == 2


def test_limits_and_stop():
    found, late = searcher(CONNECT_FOUR, 0, seconds=0.15), []
    for _ in range(5):
        started = time.perf_counter()
        visits = [move.visits for move in found.search(CONNECT_FOUR.new()[0]).moves]
        late.append(time.perf_counter() - started - 0.15)
        assert max(visits) - min(visits) <= 1 and min(visits) > 100
    assert -0.001 < min(late) < 0.02
    delays = []
    for _ in range(5):
        endless = searcher(CONNECT_FOUR, 10**9)
        thread = threading.Thread(target=endless.search, args=(CONNECT_FOUR.new()[0],))
        thread.start()
        time.sleep(0.05)
        endless.stop()
        started = time.perf_counter()
        thread.join()
        delays.append(time.perf_counter() - started)
    assert min(delays) < 0.01


def test_a_million_playouts_do_not_grow_the_process():
    found = searcher(TIC_TAC_TOE, 10_000)
    found.search(TIC_TAC_TOE.new()[0])
    before = psutil.Process().memory_info().rss
    assert sum(found.search(TIC_TAC_TOE.new()[0]).nodes for _ in range(12)) > 1_000_000
    assert psutil.Process().memory_info().rss - before < 4 * 2**20


def test_specs():
    assert str(parse_agent("montecarlo:playouts=1000")) == "montecarlo:playouts=1000"
    timed = make_agent("montecarlo:seconds=0.1", CONNECT_FOUR)
    assert timed.search(CONNECT_FOUR.new()[0]).nodes > 7000


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("montecarlo:playouts=0", "playouts=0 must be 1 or more"),
        ("montecarlo:playouts=-1", "playouts=-1 must be 1 or more"),
        ("montecarlo:playouts=1.5", "playouts='1.5' must be a whole number"),
        ("montecarlo:seconds=-1", "seconds=-1.0 must be 0"),
        ("montecarlo:cutoff=-2", "cutoff=-2 must be 0"),
        ("montecarlo:playout=clever", "unknown playout policy 'clever'"),
        ("montecarlo:c=1", "no parameter 'c'; parameters: book, playouts, playout, epsilon, cutoff, eval, seconds"),
    ],
)
def test_bad_input(spec, words):
    with pytest.raises(InputError, match=re.escape(words)):
        make_agent(spec, TIC_TAC_TOE)


def test_no_search_where_nobody_chooses():
    with pytest.raises(InputError, match="the game is over"):
        searcher(TIC_TAC_TOE, 10).search(TIC_TAC_TOE.parse_position("xxx/oo./..."))


def test_random_positions_of_connect_four_give_legal_moves():
    rng, found = random.Random(3), searcher(CONNECT_FOUR, 5)
    for _ in range(50):
        state = CONNECT_FOUR.new()[0]
        for _ in range(rng.randrange(30)):
            if CONNECT_FOUR.player(state) != TERMINAL:
                CONNECT_FOUR.play(state, rng.choice(legal_actions(CONNECT_FOUR, state)))
        if CONNECT_FOUR.player(state) != TERMINAL:
            result = found.search(state)
            assert sorted(move.action for move in result.moves) == legal_actions(CONNECT_FOUR, state)
