"""The searches on textbook examples, under limits, and with bad input."""

import gc
import json
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest

from envs.errors import InputError
from envs.game_tree import GameTree
from envs.nim import Nim
from envs.registry import make
from models.evaluation import Linear, Nothing, from_table, make_evaluation
from selfplay.agents import make_agent, parse_agent
from selfplay.analysis import analyze
from selfplay.search.deepening import PLAIN, AlphaBeta, Switches
from selfplay.search.expectiminimax import Expectiminimax
from selfplay.search.maxn import MaxN
from selfplay.search.minimax import Minimax
from selfplay.search.result import Limits

# Russell and Norvig ch. 5, CS188, Knuth and Moore 1975: the reference data's trees/textbook_trees.json.
TREES = {
    tree["name"]: tree
    for tree in json.loads((Path(__file__).parent / "data/game_tree/textbook_trees.json").read_text())
}
FIGURE = GameTree([[3, 12, 8], [2, 4, 6], [14, 5, 2]])


def test_the_textbooks_two_player_trees():
    for tree in TREES.values():
        if tree["type"] != "max-min":
            continue
        game = GameTree(tree["tree"])
        minimax = Minimax(game, Nothing(), Limits()).search(game.new()[0])
        assert [move.value for move in minimax.moves] == tree["child_values"]
        for switches in (PLAIN, Switches()):
            result = AlphaBeta(game, Nothing(), Limits(), switches, megabytes=0.05).search(game.new()[0])
            assert (result.value, result.action) == (tree["root"], tree["best"])


def test_alpha_beta_looks_at_the_leaves_that_the_book_says():
    # 1 root, 3 children, and 7 of the 9 leaves: 4 and 6 are cut off.
    result = AlphaBeta(FIGURE, Nothing(), Limits(), PLAIN).search(FIGURE.new()[0])
    visited = TREES["AIMA fig 5.2 minimax"]["alphabeta_left_to_right_leaves_visited"]
    assert result.nodes == 1 + 3 + len(visited)


def test_a_bound_is_never_taken_for_a_value():
    # The lectures' A1 and A2: after the first move is worth 3, the second is cut at 3 although it is worth 2.
    game = GameTree([[3, 12, 8], [3, 2, 6], [3, 14, 5]])
    result = AlphaBeta(game, Nothing(), Limits(), PLAIN).search(game.new()[0])
    assert result.action == 0 and result.best == [0]
    assert [(move.action, move.value, move.bound) for move in result.moves] == [
        (0, 3.0, "exact"),
        (1, 3.0, "upper"),
        (2, 3.0, "upper"),
    ]
    full = AlphaBeta(game, Nothing(), Limits(), Switches(full_root=True)).search(game.new()[0])
    assert {move.action: move.value for move in full.moves} == {0: 3.0, 1: 2.0, 2: 3.0}
    assert sorted(full.best) == [0, 2]


def test_chance_and_the_scale_of_utilities():
    small = TREES["AIMA order-preserving transform (chance), small scale"]
    big = TREES["AIMA order-preserving transform (chance), big scale"]
    chosen = []
    for tree in (small, big):
        game = GameTree(tree["tree"], levels="max-chance-min")
        result = Expectiminimax(game, Nothing(), Limits(), full_root=True).search(game.new()[0])
        values = {move.action: move.value for move in result.moves}
        np.testing.assert_allclose([values[0], values[1]], tree["child_values"])
        chosen.append(result.action)
    assert chosen == [0, 1]  # the same order of all leaves, another choice


def test_expectimax_of_one_chance_node():
    tree = TREES["CS188 expectimax node"]
    pairs = [[p, v] for p, v in zip(tree["p"], tree["v"], strict=True)]
    game = GameTree([pairs], levels="max-chance", players=1)
    result = Expectiminimax(game, Nothing(), Limits(), name="expectimax").search(game.new()[0])
    assert result.value == pytest.approx(tree["value"])


def test_three_players():
    tree = TREES["AIMA 3-player maxn (fig 5.4)"]
    game = GameTree(tree["tree"], players=3)
    result = MaxN(game, Nothing(), Limits()).search(game.new()[0])
    assert list(result.values) == tree["root"] and result.action == 0


def test_nim_with_four_cubes_is_won_by_max():
    game = Nim(heaps=(4,), take=2)
    result = Minimax(game, Nothing(), Limits()).search(game.new()[0])
    assert result.value == 1.0 and game.action_name(game.new()[0], result.action).endswith("1")


def test_wins_are_taken_the_short_way_and_losses_the_long_way():
    game = make("connect_four")
    win = AlphaBeta(game, Nothing(), Limits(depth=9)).search(game.parse_position("112233"))
    assert win.value == 1.0 and win.line == (3,) and win.depth == 1
    lost = AlphaBeta(game, Nothing(), Limits(depth=6)).search(game.parse_position("44335"))  # three open on both sides
    assert lost.value == -1.0 and len(lost.line) == 2


def test_quiescence_sees_beyond_the_horizon():
    """At depth 1 the queen takes a defended pawn; playing out the captures shows that it is lost."""
    game = make("chess")
    position = game.parse_position("3rk3/8/8/3p4/8/8/3Q4/3K4 w - - 0 1")
    evaluation = make_evaluation("linear", game)
    blind = AlphaBeta(game, evaluation, Limits(depth=1), Switches(quiescence=False)).search(position)
    seeing = AlphaBeta(game, evaluation, Limits(depth=1)).search(position)
    assert game.action_name(position, blind.action) == "d2d5"
    assert game.action_name(position, seeing.action) != "d2d5"


@pytest.mark.parametrize(
    ("name", "position", "pruning"),
    [
        ("chess", "startpos", "null=on"),
        ("chess", "startpos", "reductions=on"),
        ("chess", "startpos", "beam=8"),
        ("othello", "d3 c5 f6 f5 e6 e3", "probcut=1.5"),
    ],
)
def test_forward_pruning_saves_work_and_keeps_close(name, position, pruning):
    """Pruning by guess looks at fewer positions, and at these places at no great cost."""
    game = make(name)
    state = game.parse_position(position)
    depth = 6 if name == "chess" else 9
    exact = make_agent(f"alphabeta:depth={depth}", game).search(state)
    pruned = make_agent(f"alphabeta:depth={depth},{pruning}", game).search(state)
    assert pruned.nodes < 0.8 * exact.nodes
    assert abs(pruned.value - exact.value) < 0.015  # about two pawns, or three discs
    assert not pruned.proven


def test_a_beam_of_one_follows_the_first_guess():
    game = make("connect_four")
    result = make_agent("alphabeta:depth=6,beam=1,deepening=off,table=off,pvs=off", game).search(game.new()[0])
    assert result.nodes == 1 + 7 * 6  # the root's moves are all looked at, below each a single line


def test_null_moves_need_a_game_that_allows_them():
    game = make("connect_four")
    state = game.parse_position("4453")
    plain = make_agent("alphabeta:depth=7", game).search(state)
    asked = make_agent("alphabeta:depth=7,null=on", game).search(state)
    assert asked.nodes == plain.nodes and asked.value == plain.value


SIGNATURES = {
    # Nodes to a fixed depth from the start. A change of search, rules or weights changes them; nothing else may.
    ("connect_four", "alphabeta:depth=8"): 10_510,
    ("chess", "alphabeta:depth=5"): 10_335,
    ("connect_four", "minimax:depth=5"): 19_608,
    ("pig", "expectiminimax:depth=4"): 773,
    ("tic_tac_toe_three", "maxn:depth=4"): 47_297,
}


@pytest.mark.parametrize(("name", "spec"), SIGNATURES)
def test_node_counts(name, spec):
    game = make(name)
    agent = make_agent(spec, game)
    state = game.new()[0]
    first = agent.search(state)
    agent.reset()
    second = agent.search(state)
    assert first.nodes == second.nodes == SIGNATURES[name, spec]
    assert (first.action, first.value, first.moves) == (second.action, second.value, second.moves)


def test_limits_are_kept():
    game = make("connect_four")
    agent = make_agent("alphabeta:seconds=0.3", game)
    agent.search(game.new()[0])  # compiled now
    started = time.perf_counter()
    result = agent.search(game.new()[0])
    assert time.perf_counter() - started < 1.5  # generous: other programs run here too; `bench search` prints how exact
    assert result.depth > 3
    counted = make_agent("alphabeta:nodes=5000", game).search(game.new()[0])
    assert counted.nodes <= 5000 and counted.depth >= 3
    assert make_agent("alphabeta:nodes=1", game).search(game.new()[0]).action in range(7)


@pytest.mark.parametrize("spec", ["alphabeta:seconds=60", "expectiminimax:seconds=60"])
def test_another_thread_stops_a_search(spec):
    game = make("connect_four")
    agent = make_agent(spec, game)
    stopped = []

    def stop():
        stopped.append(time.perf_counter())
        agent.stop()

    timer = threading.Timer(0.5, stop)
    warm = make_agent(spec.replace("60", "0.01"), game)
    warm.search(game.new()[0])
    timer.start()
    result = agent.search(game.new()[0])
    assert time.perf_counter() - stopped[0] < 0.5
    assert result.action in range(7)


def test_a_million_nodes_need_no_memory():
    game = make("connect_four")
    agent = make_agent("alphabeta:nodes=200000", game)
    agent.search(game.new()[0])
    gc.collect()
    before = psutil.Process().memory_info().rss
    for _ in range(6):
        agent.reset()
        agent.search(game.new()[0])
    gc.collect()
    assert psutil.Process().memory_info().rss - before < 8e6


@pytest.mark.parametrize(
    ("game", "spec", "words"),
    [
        ("tic_tac_toe", "alphabeta:depth=-1", ["depth", "-1"]),
        ("tic_tac_toe", "alphabeta:beam=-1", ["beam"]),
        ("tic_tac_toe", "alphabeta:colour=red", ["colour", "depth", "table"]),
        ("tic_tac_toe", "alphabet", ["alphabet", "alphabeta", "minimax"]),
        ("tic_tac_toe", "alphabeta:probcut=1", ["probcut"]),
        ("tic_tac_toe", "alphabeta:eval=nonsense", ["nonsense", "linear"]),
        ("tic_tac_toe_three", "alphabeta", ["3 players", "maxn"]),
        ("pig", "alphabeta", ["chance", "expectiminimax"]),
        ("twenty_forty_eight", "minimax", ["1 player", "expectimax"]),
        ("tic_tac_toe", "expectimax", ["MIN", "alphabeta"]),
        ("tic_tac_toe_three", "expectiminimax", ["3 players", "maxn"]),
    ],
)
def test_bad_input(game, spec, words):
    with pytest.raises(InputError) as error:
        make_agent(spec, make(game))
    assert all(word in str(error.value) for word in words), error.value


def test_specs_round_trip():
    for spec in ("alphabeta:depth=8,eval=none", "expectiminimax:depth=2", "maxn:depth=3", "alphabeta:null=True"):
        assert str(parse_agent(spec)) == spec


def test_no_search_at_the_end_of_a_game():
    game = make("tic_tac_toe")
    over = game.parse_position("a1 b1 a2 b2 a3")
    with pytest.raises(InputError, match="over"):
        make_agent("alphabeta:depth=3", game).search(over)


def test_analysis_names_moves_and_bounds():
    found = analyze(make("connect_four"), "alphabeta:depth=4", "4453")
    assert set(found) >= {"move", "value", "depth", "nodes", "seconds", "line", "moves"}
    assert {move["move"] for move in found["moves"]} == set("1234567")
    assert found["line"][0] == found["move"] and found["moves"][0]["bound"] == "exact"


@dataclass(frozen=True)
class Own(GameTree):
    """A game of a user's own."""


def test_evaluations():
    game = make("connect_four")
    names = game.feature_names()
    evaluation = from_table(game, {"scale": 0.5, "weights": {names[0]: 2.0}}, "test")
    assert evaluation == Linear((1.0, *[0.0] * (len(names) - 1)))
    for table in ({}, {"weights": {"no such": 1}}, {"weights": {names[0]: "x"}}, {"weights": {}, "colour": 1}):
        with pytest.raises(InputError):
            from_table(game, table, "test")
    assert isinstance(make_evaluation("linear", Own()), Nothing)  # a game without a config
    with pytest.raises(InputError, match=r"missing\.toml"):
        make_evaluation("missing.toml", game)
