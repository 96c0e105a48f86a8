"""`selfplay explain`: the textbook's figures, the traced searches beside the compiled ones, the arithmetic of UCB1."""

import itertools
import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
from trees import many_players, move_values, two_players, with_chance

from envs.errors import InputError
from envs.game import TERMINAL, legal_actions
from envs.game_tree import GameTree
from envs.registry import make
from models.evaluation import Nothing
from selfplay.explain.report import data
from selfplay.explain.search import ALGORITHMS, Options, explain
from selfplay.search.expectiminimax import Expectiminimax
from selfplay.search.maxn import MaxN
from selfplay.search.minimax import Minimax
from selfplay.search.result import Limits

TREES = json.loads((Path(__file__).parent / "data/game_tree/textbook_trees.json").read_text())
DRAWN = [tree for tree in TREES if "tree" in tree]


def textbook(name):
    return next(tree for tree in TREES if name in tree["name"])


def game_of(tree):
    if tree["type"] == "maxn":
        return GameTree(tree["tree"], players=len(tree["players"]))
    return GameTree(tree["tree"], levels=tree["type"])


def traced(game, algorithm="", **options):
    return explain(game, Options(algorithm, **options))


def values(nodes):
    return [node.value for node in nodes]


# --- the textbook's figures ---------------------------------------------------------------------------


@pytest.mark.parametrize("tree", [t for t in DRAWN if t["type"] == "max-min"], ids=lambda t: t["name"])
def test_minimax_figures(tree):
    trace = traced(game_of(tree), "minimax")
    assert values(trace.tree.root.children) == tree["child_values"]
    assert trace.value == tree["root"]
    assert trace.chosen is trace.tree.root.children[tree["best"]]
    assert values(trace.leaves) == [leaf for child in tree["tree"] for leaf in child]


@pytest.mark.parametrize("tree", [t for t in DRAWN if t["type"] == "max-min"], ids=lambda t: t["name"])
def test_alphabeta_figures(tree):
    trace = traced(game_of(tree), "alphabeta")
    assert trace.value == tree["root"] and trace.chosen is trace.tree.root.children[tree["best"]]
    if "alphabeta_left_to_right_leaves_visited" in tree:
        assert values(trace.leaves) == tree["alphabeta_left_to_right_leaves_visited"]


def test_figure_5_2_step_by_step():
    trace = traced(GameTree(), "alphabeta")
    assert [cut.node.name for cut in trace.pruned] == ["2.2", "2.3"]
    assert all("v = 2 <= alpha = 3: MIN here can only make it worse" in cut.reason for cut in trace.pruned)
    assert data(trace)["never_visited"] == ["2.2", "2.3"]
    assert [(m["move"], m["value"], m["bound"]) for m in data(trace)["moves"]] == [
        ("1", 3, "exact"),
        ("2", 2, "upper"),
        ("3", 2, "exact"),
    ]
    # Figure 5.5 of the book: the window at each node as the search goes on.
    windows = {(s.node.name, s.alpha, s.beta) for s in trace.steps if s.kind != "result"}
    assert ("1", -math.inf, 3) in windows and ("2", 3, math.inf) in windows and ("3", 3, 14) in windows
    assert ("3", 3, 5) in windows and ("root", 3, math.inf) in windows
    assert trace.steps[-1].text == "The root is worth 3; MAX plays 1. Its moves: 1 = 3, 2 <= 2, 3 = 2."


def test_expectimax_node():
    node = textbook("expectimax")
    game = GameTree([list(pair) for pair in zip(node["p"], node["v"], strict=True)], levels="chance")
    trace = traced(game, "expectimax")
    assert trace.value == pytest.approx(node["value"]) and trace.chosen is None
    assert "10" in trace.steps[-1].text


@pytest.mark.parametrize("algorithm", ["expectiminimax", "star1"])
@pytest.mark.parametrize("tree", [t for t in DRAWN if t["type"] == "max-chance-min"], ids=lambda t: t["name"])
def test_the_scale_matters_where_there_is_chance(tree, algorithm):
    trace = traced(game_of(tree), algorithm)
    assert trace.value == pytest.approx(tree["root"])
    assert trace.chosen is trace.tree.root.children[tree["best"]]
    if algorithm == "expectiminimax":
        assert values(trace.tree.root.children) == pytest.approx(tree["child_values"])


def test_max_n_figure():
    tree = textbook("maxn")
    trace = traced(game_of(tree))
    assert trace.algorithm == "maxn" and list(trace.value) == tree["root"]
    by_level = {level: [list(n.value) for n in trace.tree.nodes if n.level == level] for level in (1, 2)}
    assert by_level == {1: tree["B_nodes"], 2: tree["C_nodes"]}


def test_a_shared_bound_is_never_called_equal():
    """After a cut the other move's value may only be known not to be better: A1 is 3, A2 is really 1."""
    trace = traced(GameTree([[3, 5], [3, 1]]), "alphabeta")
    first, second = data(trace)["moves"]
    assert (first["value"], first["bound"]) == (3, "exact")
    assert (second["value"], second["bound"]) == (3, "upper")
    assert "1 = 3, 2 <= 3 (a bound, not known to be equal)" in trace.steps[-1].text
    assert "2 = 3" not in trace.steps[-1].text
    assert trace.looks()[trace.tree.root.children[1].index].value == "<= 3"
    assert values(traced(GameTree([[3, 5], [3, 1]]), "minimax").tree.root.children) == [3, 1]


def test_nim_with_four_cubes_is_won():
    trace = traced(make("nim_cubes"), "alphabeta")
    assert trace.value == 1


HORIZON = """
root = "A"
[nodes.A]
moves = { take = "B", wait = "C" }
[nodes.B]
eval = 8
moves = { retake = -9, other = 10 }
[nodes.C]
eval = 1
moves = { a = 2, b = 3 }
"""


@pytest.mark.parametrize("algorithm", ["minimax", "alphabeta", "expectiminimax", "maxn", "paranoid"])
def test_a_tree_tells_its_own_evaluations(algorithm):
    """At the depth's end: a pawn taken looks like 8, and the answer lies beyond the horizon."""
    game = GameTree(HORIZON, players=2)
    short, full = (traced(game, algorithm, depth=depth) for depth in (1, 0))
    assert (short.chosen.move, full.chosen.move) == ("take", "wait")
    assert [leaf.utilities for leaf in short.leaves] == [(8, -8), (1, -1)]
    assert all(leaf.is_estimate for leaf in short.leaves)


# --- beside the compiled searches ---------------------------------------------------------------------


def compiled(game, search):
    return search.search(game.new()[0])


def for_max(game, value):
    """A mover's value as MAX, the first player, sees it."""
    return value if int(game.player(game.new()[0])) == 0 else -value


def test_two_players():
    for seed in range(150):
        game = two_players(seed)
        full, cut = traced(game, "minimax"), traced(game, "alphabeta")
        truth = compiled(game, Minimax(game, Nothing(), Limits()))
        assert full.value == cut.value == for_max(game, truth.value)
        assert full.chosen.move == cut.chosen.move == game.action_name(game.new()[0], truth.action)
        assert values(full.tree.root.children) == [for_max(game, m.value) for m in truth.moves]
        assert len(cut.leaves) <= len(full.leaves)
        assert len(cut.leaves) + sum(len(cut.tree.leaves_below(p.node)) for p in cut.pruned) == len(full.leaves)
        bounds_hold(cut, full)


def bounds_hold(cut, full):
    """What a pruned search says of a node is true: exact values are exact, and bounds are bounds."""
    for node, true in zip(cut.tree.nodes, full.tree.nodes, strict=True):
        if node.index in cut.bounds:
            bound = cut.bounds[node.index]
            if bound == "exact":
                assert node.value == pytest.approx(true.value, abs=1e-9)
            else:
                assert (true.value - node.value) * (1 if bound == "lower" else -1) >= -1e-9


def fail_hard(game, state, low, high, visited):
    """Alpha-beta by another form of the rule, fail-hard negamax for the mover; notes the leaves it visits."""
    player = int(game.player(state))
    for action in legal_actions(game, state):
        child = state.copy()
        game.play(child, action)
        mover = int(game.player(child))
        if mover == TERMINAL:
            visited.append(game.node_name(child))
            value = game.utility(child, player)
        elif mover == player:
            value = fail_hard(game, child, low, high, visited)
        else:
            value = -fail_hard(game, child, -high, -low, visited)
        if value >= high:
            return high
        low = max(low, value)
    return low


def test_leaves_are_those_of_fail_hard_negamax():
    for seed in range(200):
        game, visited = two_players(seed, depth=6), []
        value = fail_hard(game, game.new()[0], -math.inf, math.inf, visited)
        trace = traced(game, "alphabeta")
        assert [leaf.name for leaf in trace.leaves] == visited
        assert trace.value == for_max(game, value)


@pytest.mark.parametrize("players", [1, 2])
def test_chance(players):
    for seed in range(100):
        game = with_chance(seed, players)
        full = traced(game, "expectiminimax" if players == 2 else "expectimax")
        cut = traced(game, "star1")
        plain = Expectiminimax(game, Nothing(), Limits(depth=20), prune=False, table=False, megabytes=0.05)
        star1 = Expectiminimax(game, Nothing(), Limits(depth=20), star2=False, table=False, megabytes=0.05)
        assert full.value == pytest.approx(compiled(game, plain).value, abs=1e-9)
        result = compiled(game, star1)
        assert cut.value == pytest.approx(result.value, abs=1e-9)
        assert len(cut.bounds) == result.nodes
        bounds_hold(cut, full)


@pytest.mark.parametrize("chance", [False, True])
def test_many_players(chance):
    for seed in range(60):
        game = many_players(seed, 3, chance)
        trace = traced(game, "maxn")
        result = compiled(game, MaxN(game, Nothing(), Limits()))
        assert trace.value == pytest.approx(result.values, abs=1e-12)
        for child, true in zip(trace.tree.root.children, move_values(game).values(), strict=True):
            assert child.value == pytest.approx(true, abs=1e-12)
        paranoid = compiled(game, MaxN(game, Nothing(), Limits(), paranoid=True))
        trace = traced(game, "paranoid")
        assert trace.value == pytest.approx(paranoid.value, abs=1e-12)
        assert len(trace.bounds) == paranoid.nodes


@pytest.mark.parametrize(("name", "position", "depth"), [("tic_tac_toe", "a1 b2", 3), ("tic_tac_toe", "a1", 2)])
def test_games_to_a_depth(name, position, depth):
    """Also where the second player is to move, who then is MAX."""
    from models.evaluation import make_evaluation

    game = make(name)
    state = game.parse_position(position)
    truth = Minimax(game, make_evaluation("linear", game), Limits(depth=depth)).search(state)
    for algorithm in ("minimax", "alphabeta", "expectiminimax"):
        trace = explain(game, Options(algorithm, depth), position)
        assert trace.value == pytest.approx(truth.value, abs=1e-12)
        assert game.parse_action(state, trace.chosen.move) == truth.action
        assert trace.tree.root.kind == "max"


def perfectly_ordered(branching, depth, rng):
    """A uniform tree with random leaves, each node's best child first; its value for MAX with it."""

    def grow(level):
        if level == depth:
            value = rng.random()
            return value, value
        children = sorted((grow(level + 1) for _ in range(branching)), key=lambda c: c[0], reverse=level % 2 == 0)
        return children[0][0], [child for _, child in children]

    return grow(0)


@pytest.mark.parametrize(("branching", "depth"), [(2, 1), (2, 4), (2, 7), (3, 2), (3, 5), (5, 3), (5, 4), (10, 3)])
def test_knuth_and_moore_minimum(branching, depth):
    value, tree = perfectly_ordered(branching, depth, random.Random(branching * depth))
    trace = traced(GameTree(tree), "alphabeta")
    assert trace.value == value
    formula = branching ** math.ceil(depth / 2) + branching ** (depth // 2) - 1
    assert len(trace.leaves) == formula
    assert formula == textbook("Knuth")["table"][f"b{branching}"][depth - 1]


# --- Monte Carlo tree search --------------------------------------------------------------------------


def replay(trace, c):
    """The statistics again from the recorded paths and results alone: visits and rewards of whoever chose the node."""
    game, by_name = trace.tree.game, {node.name: node for node in trace.tree.nodes}
    low, high = game.min_utility, game.max_utility
    wins, visits = {}, {}

    def chooser(node):
        node = node.parent or trace.tree.root
        while node.player < 0 and node.parent:
            node = node.parent
        return max(node.player, 0)

    for simulation in trace.simulations:
        for selection in simulation["selections"]:
            node = by_name[selection["node"]]
            scores = []
            for printed, child in zip(selection["ucb1"], node.children, strict=False):
                n, w = visits[child.name], wins[child.name]
                assert printed["move"] == child.move and printed["visits"] == n
                assert printed["wins"] == pytest.approx(w)
                scores.append(w / n + c * math.sqrt(math.log(visits[node.name]) / n))
                assert printed["value"] == pytest.approx(scores[-1])
            assert selection["selected"] == node.children[int(np.argmax(scores))].move
        for name in simulation["path"]:
            reward = (simulation["utilities"][chooser(by_name[name])] - low) / (high - low)
            wins[name], visits[name] = wins.get(name, 0) + reward, visits.get(name, 0) + 1
    return wins, visits


@pytest.mark.parametrize("c", [math.sqrt(2), 0.3])
def test_ucb1_by_hand(c):
    cases = [
        (make("tic_tac_toe"), "a1 b2 c3 a3"),
        (GameTree(), None),
        (GameTree(textbook("small scale")["tree"], levels="max-chance-min"), None),
        (GameTree(textbook("maxn")["tree"], players=3), None),
    ]
    for game, position in cases:
        trace = explain(game, Options("mcts", simulations=40, c=c), position)
        _, visits = replay(trace, c)
        assert len(trace.simulations) == 40 and visits["root"] == 40
        assert {trace.tree.nodes[i].name: n for i, n in trace.visits.items()} == visits
        root = trace.tree.root
        assert trace.visits[trace.chosen.index] == max(trace.visits[child.index] for child in root.children)
        for node in trace.tree.nodes:  # every simulation through a node but its own went to a child
            below = sum(trace.visits[child.index] for child in node.children)
            if node.children:
                assert below == trace.visits[node.index] - (node is not root)


def test_printed_statistics_are_enough_to_check_a_selection():
    """UCB1 from nothing but the texts of the drawing."""
    trace = explain(make("tic_tac_toe"), Options("mcts", simulations=30), "a1 b2 c3 a3")
    checked = 0
    for step in trace.steps:
        if step.kind == "backup":
            looks = trace.looks(step.number)
            for node in trace.tree.nodes[1:]:
                look, above = looks[node.index], looks[node.parent.index]
                if look.note:
                    (w, n), total = map(float, look.value.split("/")), float(above.value.split("/")[1])
                    assert float(look.note) == pytest.approx(w / n + math.sqrt(2 * math.log(total) / n), abs=6e-4)
                    checked += 1
    assert checked > 100


def test_mcts_finds_the_win_and_repeats():
    game = make("tic_tac_toe")
    first, second = (explain(game, Options("mcts", simulations=150, seed=3), "a1 a3 b1 b3") for _ in range(2))
    assert first.chosen.move == "c1" and data(first) == data(second)
    other = explain(game, Options("mcts", simulations=150, seed=4), "a1 a3 b1 b3")
    assert data(first) != data(other)


def test_one_player_is_scaled_by_what_was_seen():
    trace = explain(make("twenty_forty_eight"), Options("mcts", simulations=6))
    assert trace.tree.root.player == -1 and trace.chosen is None
    for look in trace.looks():
        w, n = map(float, look.value.split("/"))
        assert -1e-3 <= w <= n + 1e-3


# --- the steps and the data ---------------------------------------------------------------------------

KEYS = ["algorithm", "value", "move", "moves", "leaves", "leaf_names", "never_visited", "pruned", "nodes"]
KEYS += ["simulations", "steps"]


@pytest.mark.parametrize("algorithm", sorted(set(ALGORITHMS) - {"expectimax"}))
def test_data_is_json_with_stable_keys(algorithm):
    found = data(traced(GameTree(), algorithm))
    assert list(found) == KEYS
    assert json.loads(json.dumps(found, allow_nan=False)) == json.loads(json.dumps(found))
    assert set(found["steps"][0]) == {"number", "kind", "node", "text", "value", "alpha", "beta", "changes"}
    assert [step["number"] for step in found["steps"]] == list(range(1, len(found["steps"]) + 1))
    assert found["steps"][-1]["kind"] == "result"
    text = " ".join(step["text"] for step in found["steps"])
    assert text.isascii() and "nan" not in text


def test_windows_never_widen_and_nodes_open_before_they_are_done():
    for seed in range(20):
        trace = traced(two_players(seed), "alphabeta")
        windows, status = {}, {}
        for step in trace.steps[:-1]:
            low, high = windows.get(step.node.index, (-math.inf, math.inf))
            assert step.alpha >= low and step.beta <= high
            windows[step.node.index] = step.alpha, step.beta
            for index, change in step.changes.items():
                before = status.get(index, "unseen")
                after = change.get("status", before)
                assert (before, after) in set(
                    itertools.product(["unseen", "open"], ["unseen", "open", "done", "cut"])
                ) | {
                    ("done", "done"),
                    ("cut", "cut"),
                }
                status[index] = after


@pytest.mark.parametrize(
    ("game", "algorithm", "words"),
    [
        ("pig", "alphabeta", "use expectiminimax"),
        ("tic_tac_toe", "expectimax", "use minimax, alphabeta"),
        ("tic_tac_toe_three", "minimax", "use maxn"),
        ("tic_tac_toe_three", "star1", "use maxn"),
        ("tic_tac_toe", "negascout", "minimax, alphabeta, expectimax, expectiminimax, star1, maxn, paranoid, mcts"),
    ],
)
def test_what_does_not_fit(game, algorithm, words):
    with pytest.raises(InputError, match=words):
        explain(make(game), Options(algorithm))


@pytest.mark.parametrize("options", [{"depth": -1}, {"simulations": 0}, {"c": -1.0}, {"c": math.nan}])
def test_bad_options(options):
    with pytest.raises(InputError, match=next(iter(options))):
        Options(**options)


def test_a_finished_game_and_a_tree_without_end():
    with pytest.raises(InputError, match="over"):
        explain(make("tic_tac_toe"), Options(), "a1 a3 b1 b3 c1")
    with pytest.raises(InputError, match="smaller --depth"):
        explain(make("connect_four"), Options(depth=8), most=500)
    with pytest.raises(InputError, match="simulations"):
        explain(make("tic_tac_toe"), Options("mcts", simulations=10**6))
