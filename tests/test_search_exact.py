"""All searches give minimax's values and choose an optimal move, whatever the switches that promise exactness."""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import many_players, move_values, two_players, with_chance

from envs.connect_four import ConnectFour
from envs.game import TERMINAL, legal_actions
from envs.game_tree import GameTree
from envs.mnk import MNK
from envs.nim import Nim
from envs.othello import Othello
from models.evaluation import Nothing
from selfplay.search.deepening import AlphaBeta, Switches
from selfplay.search.expectiminimax import Expectiminimax
from selfplay.search.maxn import MaxN
from selfplay.search.minimax import Minimax
from selfplay.search.result import Limits

TO_THE_END = Limits()
EXACT_SWITCHES = (
    "deepening",
    "table",
    "symmetry",
    "order",
    "killers",
    "history",
    "sort",
    "pvs",
    "full_root",
    "quiescence",
)


def all_switches():
    for choice in itertools.product([False, True], repeat=len(EXACT_SWITCHES)):
        for aspiration in (0.0, 0.01):
            yield Switches(**dict(zip(EXACT_SWITCHES, choice, strict=True)), aspiration=aspiration)


def agrees(result, values, player=0, highest=np.inf):
    """The value is the best one, the choice an optimal move, exact moves exact, bounds true, and `best` optimal.

    At a win (the `highest` utility) alpha-beta looks no deeper: the other moves were then judged to a lesser depth.
    """
    best = max(v[player] for v in values.values())
    assert result.value == pytest.approx(best, abs=1e-9)
    assert values[result.action][player] == pytest.approx(best, abs=1e-9)
    for move in result.moves if abs(best) < highest else ():
        true = values[move.action][player]
        if move.bound == "exact":
            assert move.value == pytest.approx(true, abs=1e-9)
        elif move.bound == "upper":
            assert move.value >= true - 1e-9
    assert all(values[action][player] == pytest.approx(best, abs=1e-9) for action in result.best)


def mover(game):
    return int(game.player(game.new()[0]))


@pytest.mark.parametrize("block", range(4))
def test_two_players_with_every_combination_of_exact_switches(block):
    combinations = list(all_switches())
    for seed in range(block * 500, block * 500 + 500):
        game = two_players(seed)
        values, player, state = move_values(game), mover(game), game.new()[0]
        agrees(Minimax(game, Nothing(), TO_THE_END).search(state), values, player)
        for switches in random.Random(seed).sample(combinations, 3) + combinations[seed % len(combinations) :][:1]:
            result = AlphaBeta(game, Nothing(), TO_THE_END, switches, megabytes=0.05).search(state)
            agrees(result, values, player, game.max_utility)
            assert result.proven
            if switches.full_root:
                best = max(v[player] for v in values.values())
                assert sorted(result.best) == [a for a, v in sorted(values.items()) if v[player] == best]


@pytest.mark.parametrize("players", [1, 2])
def test_chance_with_and_without_pruning(players):
    for seed in range(500):
        game = with_chance(seed, players)
        values, state = move_values(game), game.new()[0]
        player, nodes = mover(game), {}
        for star1, star2, table in itertools.product([False, True], repeat=3):
            searcher = Expectiminimax(
                game, Nothing(), Limits(depth=20), star1=star1, star2=star2, table=table, megabytes=0.05
            )
            result = searcher.search(state)
            agrees(result, values, player)
            nodes[star1, star2, table] = result.nodes
        assert nodes[True, False, False] <= nodes[False, False, False]
        plain = Expectiminimax(game, Nothing(), Limits(depth=20), prune=False, table=False, megabytes=0.05)
        agrees(plain.search(state), values, player)


@pytest.mark.parametrize(("players", "chance"), [(2, False), (3, False), (4, False), (3, True)])
def test_many_players(players, chance):
    for seed in range(400):
        game = many_players(seed, players, chance)
        result = MaxN(game, Nothing(), TO_THE_END).search(game.new()[0])
        values = move_values(game)
        agrees(result, values)
        best = max(values.values(), key=lambda v: v[0])
        np.testing.assert_allclose(result.values, best, atol=1e-12)  # the first of equals, by convention


def paranoid_value(game, state, viewer):
    player = int(game.player(state))
    if player == TERMINAL:
        return game.utility(state, viewer)
    values = []
    for action in legal_actions(game, state):
        child = state.copy()
        game.play(child, action)
        values.append(paranoid_value(game, child, viewer))
    return max(values) if player == viewer else min(values)


def test_paranoid():
    for seed in range(400):
        game = many_players(seed, 3)
        state = game.new()[0]
        result = MaxN(game, Nothing(), TO_THE_END, paranoid=True).search(state)
        assert result.value == paranoid_value(game, state, 0)


SMALL = [
    MNK(rows=3, columns=3, connect=3),
    pytest.param(MNK(rows=3, columns=4, connect=3), marks=pytest.mark.slow),
    pytest.param(ConnectFour(rows=4, columns=4), marks=pytest.mark.slow),
    pytest.param(Nim(heaps=(3, 4, 5)), marks=pytest.mark.slow),
    pytest.param(Nim(heaps=(1, 2, 3), misere=True), marks=pytest.mark.slow),
    pytest.param(Othello(size=4), marks=pytest.mark.slow),
]


def random_position(game, rng, most_left):
    """A position of a random game with at most so many plies to go."""
    while True:
        line, state = [game.new()[0].copy()], game.new()[0]
        while int(game.player(state)) != TERMINAL:
            game.play(state, rng.choice(legal_actions(game, state)))
            line.append(state.copy())
        first = max(0, len(line) - 1 - most_left)
        if first < len(line) - 1:
            return line[rng.randrange(first, len(line) - 1)]


@pytest.mark.parametrize("game", SMALL, ids=str)
def test_small_games_from_random_positions(game):
    rng, combinations = random.Random(7), list(all_switches())
    minimax = Minimax(game, Nothing(), TO_THE_END)
    for _ in range(40):
        state = random_position(game, rng, 9)
        truth = minimax.search(state)
        values = {move.action: {0: move.value} for move in truth.moves}
        for switches in rng.sample(combinations, 4):
            agrees(AlphaBeta(game, Nothing(), TO_THE_END, switches, megabytes=0.05).search(state), values, highest=1)
        agrees(MaxN(game, Nothing(), TO_THE_END).search(state), values)
        agrees(Expectiminimax(game, Nothing(), TO_THE_END, megabytes=0.05).search(state), values)


LEAF = st.sampled_from([-2, -1, 0, 0.5, 1, 2])
TREES = st.lists(
    st.recursive(LEAF, lambda child: st.lists(child, min_size=1, max_size=3), max_leaves=16), min_size=1, max_size=3
)
TWO_PLAYERS = st.sampled_from(["", "max-max-min", "max-min-min", "max-min-max-max"])


@settings(max_examples=150, deadline=None)
@given(TREES, TWO_PLAYERS, st.sampled_from(list(all_switches())))
def test_any_tree(tree, levels, switches):
    game = GameTree(tree, levels=levels, players=2)
    values, state = move_values(game), game.new()[0]
    agrees(Minimax(game, Nothing(), TO_THE_END).search(state), values)
    agrees(AlphaBeta(game, Nothing(), TO_THE_END, switches, megabytes=0.05).search(state), values, 0, game.max_utility)
    agrees(Expectiminimax(game, Nothing(), TO_THE_END, megabytes=0.05).search(state), values)
    agrees(MaxN(game, Nothing(), TO_THE_END).search(state), values)
