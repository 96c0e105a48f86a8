"""Tree search with a network, without one: the "network" here is a function of the observation that we know."""

import numpy as np
import pytest

from envs.game import CHANCE, legal_actions
from envs.registry import make
from selfplay.search import gumbel, network_root, network_tree
from selfplay.train.actor import Trees
from selfplay.train.config import SearchConfig


class Fake:
    """Equal logits, and values of the mover alone; counts its rows."""

    def __init__(self, game, value=0.0):
        self.game, self.value, self.rows = game, value, 0

    def __call__(self, planes):
        self.rows += len(planes)
        values = np.zeros((len(planes), self.game.num_players), np.float32)
        values[:, 0] = self.value
        if self.game.num_players == 2:
            values[:, 1] = -self.value
        return np.zeros((len(planes), self.game.num_actions), np.float32), values


class Weighted(Fake):
    """A value that depends on the observation."""

    def __call__(self, planes):
        logits, values = super().__call__(planes)
        flat = planes.reshape(len(planes), -1)
        values[:, 0] = np.tanh(flat @ np.cos(np.arange(flat.shape[1]))).astype(np.float32) / 3
        values[:, 1:] = -values[:, :1]
        return logits, values


def searched(game, state, simulations=64, kind="puct", noise=False, count=1, leaves=1, fake=Fake, **search):
    trees = Trees(
        game,
        fake(game),
        count,
        simulations,
        gumbel=kind == "gumbel",
        offset=0.5 * (game.min_utility + game.max_utility),
        scale=0.5 * (game.max_utility - game.min_utility),
        leaves_per_tree=leaves,
        search=SearchConfig(**search),
    )
    for slot in range(count):
        trees.trees[slot].rng = (slot + 1, 77)
        network_tree.clear(trees.trees[slot])
        trees.trees[slot].root = state
        trees.plan(slot, simulations, noise)
    while not all(trees.is_done(slot) for slot in range(count)):
        trees.step()
    return trees


def root(trees, slot=0):
    node = trees.nodes[slot, 0]
    return node, trees.edges[slot, node.first : node.first + node.count]


def move_of(game, trees, slot=0):
    node, edges = root(trees, slot)
    arguments = game, trees.options, trees.trees[slot], node, trees.edges[slot], trees.policy
    network_root.target_policy(*arguments)
    chosen = int(network_root.chosen_edge(*arguments, 0.0))
    return int(edges[chosen].action), trees.policy[: node.count].copy()


def test_sequential_halving_tries_all_then_half():
    assert gumbel.halving_schedule(4, 8) == [0, 0, 0, 0, 1, 1, 2, 2]
    assert gumbel.halving_schedule(1, 3) == [0, 1, 2]
    for moves in range(1, 17):
        for simulations in (1, 2, 7, 16, 64, 200):
            schedule = gumbel.halving_schedule(moves, simulations)
            assert len(schedule) == simulations and schedule == sorted(schedule)


@pytest.mark.parametrize("kind", ["puct", "gumbel"])
def test_a_win_is_found_and_proven(kind):
    game = make("tic_tac_toe")
    state = game.parse_position("a1 b1 a2 b2")
    trees = searched(game, state, 64, kind)
    action, policy = move_of(game, trees)
    assert game.action_name(state, action) == "a3" and root(trees)[0].proof == 1 and policy.max() == 1.0


@pytest.mark.parametrize("kind", ["puct", "gumbel"])
def test_a_loss_in_two_is_avoided(kind):
    game = make("tic_tac_toe")
    state = game.parse_position("a1 b2 a2")  # b must take a3
    action, policy = move_of(game, searched(game, state, 200, kind))
    assert game.action_name(state, action) == "a3" and abs(policy.sum() - 1) < 1e-6


@pytest.mark.parametrize("kind", ["puct", "gumbel"])
def test_visits_are_simulations_and_lockstep_changes_nothing(kind):
    game = make("tic_tac_toe")
    state = game.new()[0]
    alone, many = searched(game, state, 50, kind), searched(game, state, 50, kind, count=5)
    for slot in range(5):
        node, edges = root(many, slot)
        assert node.visits == edges.visits.sum() == 50 and not edges.flying.any()
        assert (edges.visits == root(alone)[1].visits).all()
    assert many.evaluator.rows < 5 * alone.evaluator.rows / 2  # what the trees share is asked once


def test_several_leaves_per_tree_leave_no_virtual_loss():
    game = make("tic_tac_toe")
    trees = searched(game, game.new()[0], 100, leaves=8)
    node, edges = root(trees)
    assert node.visits == 100 and not trees.edges.flying.any() and edges.visits.min() > 0


def test_a_tree_searched_out_has_the_exact_value():
    """Tic-tac-toe from two plies on, all proven: the value is the solver's."""
    from selfplay.agents import make_agent

    game = make("tic_tac_toe")
    for text in ("a1 b2 c3 a3", "a1 a2 b2 c3", "b2 a2 a1 c3"):
        state = game.parse_position(text)
        trees = searched(game, state, 4000)
        node, _ = root(trees)
        exact = make_agent("minimax", game).search(state).value
        assert node.proof == 1 and abs(node.value - np.sign(exact)) < 1e-6, text


@pytest.mark.parametrize("spec", ["pig", "tic_tac_toe_three"])
def test_chance_and_three_players(spec):
    game = make(spec)
    state = game.new()[0]
    assert game.player(state) != CHANCE
    trees = searched(game, state, 60, "gumbel", noise=True)
    action, policy = move_of(game, trees)
    assert action in legal_actions(game, state) and abs(policy.sum() - 1) < 1e-5
    assert np.isfinite(trees.edges.value).all() and root(trees)[0].visits == 60


def rolled(game, *outcomes):
    """The start, after these rolls and the first legal move of each part of a turn between them."""
    state = game.new()[0].copy()
    for outcome in outcomes:
        while game.player(state) != CHANCE:
            game.play(state, legal_actions(game, state)[0])
        game.play(state, outcome)
    return state


def value_before_chance(game, state, action):
    """What `Weighted` says of the position that the action leaves to chance, for the one who acted."""
    after = state.copy()
    game.play(after, action)
    assert game.player(after) == CHANCE
    planes = np.zeros((1, *game.observation_shape), np.float32)
    game.observe(after, planes[0])
    value = float(Weighted(game)(planes)[1][0, 0])
    return value if game.chance_view(after) == game.player(state) else -value


@pytest.mark.parametrize("kind", ["puct", "gumbel"])
def test_a_search_that_stops_at_chance_takes_the_value_before_the_roll(kind):
    game = make("backgammon")
    state = rolled(game, 8, 9)
    game.play(state, legal_actions(game, state)[0])  # one die is left
    _, edges = root(searched(game, state, 40, kind, fake=Weighted, beyond_chance=False))
    assert all(edges.visits)
    for edge in edges:
        assert edge.value == pytest.approx(value_before_chance(game, state, edge.action), abs=1e-6)


def test_a_move_of_several_parts_is_worth_its_best_end():
    game = make("backgammon")
    state = rolled(game, 8, 9)
    trees = searched(game, state, 400, fake=Weighted, beyond_chance=False)
    _, edges = root(trees)
    for edge in edges:
        middle = state.copy()
        game.play(middle, edge.action)
        ends = [value_before_chance(game, middle, action) for action in legal_actions(game, middle)]
        below = trees.nodes[0, edge.child]
        tried = trees.edges[0, below.first : below.first + below.count].visits > 0
        assert edge.value == pytest.approx(max(np.array(ends)[tried]), abs=1e-6)


def test_siblings_are_compared_on_the_same_rolls_and_rolls_are_spread():
    game = make("backgammon")
    state = rolled(game, 8, 9)
    game.play(state, legal_actions(game, state)[0])
    trees = searched(game, state, 2 * len(legal_actions(game, state)), fake=Weighted, c_init=1e4)
    _, edges = root(trees)
    first = []
    for edge in edges:
        below = trees.nodes[0, edge.child]
        rolls = trees.edges[0, below.first : below.first + below.count]
        if edge.visits >= 2:  # the value before the roll, and a roll
            first.append(frozenset(rolls.action[rolls.visits > 0].tolist()))
    assert len(first) > 1 and len(set(first)) == 1
    game = make("pig")
    state = rolled(game)
    trees = searched(game, state, 200, fake=Weighted)
    _, edges = root(trees)
    below = trees.nodes[0, edges.child[edges.action == 0][0]]  # a roll
    faces = trees.edges[0, below.first : below.first + below.count]
    assert below.player == CHANCE and below.visits > 30
    assert np.abs(faces.visits - below.visits / 6).max() <= 2
