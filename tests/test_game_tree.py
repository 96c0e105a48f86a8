"""Game trees: the textbook's figures, naive walks of random trees, shared compiled code, and broken trees.

tests/data/game_tree/textbook_trees.json: Russell and Norvig, "Artificial Intelligence: A Modern Approach", ch. 5, and
lecture examples after it; Knuth and Moore 1975.
"""

import json
import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from referees import look, result, step

from envs import specs
from envs.check import check_game
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, legal_actions
from envs.game_tree import MOST_PLANES, GameTree
from envs.playouts import play_random_games
from envs.registry import make

TEXTBOOK = {
    entry["name"]: entry
    for entry in json.loads((Path(__file__).parent / "data/game_tree/textbook_trees.json").read_text())
}

COIN = """
root = "A"
[nodes.A]
player = "max"
eval = 2.5
moves = { left = "B", right = 2 }
[nodes.B]
player = "chance"
moves = { heads = "C", tails = 8 }
probabilities = { heads = "1/4", tails = 0.75 }
[nodes.C]
player = "min"
moves = [{ utility = 3, name = "deep" }, 4]
"""


def values(game, state):
    """Each player's utility under best play, the first of equal moves: max^n, which is minimax for two."""
    player = game.player(state)
    if player == TERMINAL:
        return [float(game.utility(state, p)) for p in range(game.num_players)]
    out, probabilities = np.empty(max(game.max_legal, game.num_outcomes), np.int64), np.empty(game.num_outcomes)
    children = [values(game, after(game, state, action)) for action in legal_actions(game, state)]
    if player == CHANCE:
        count = game.outcomes(state, out, probabilities)
        return [float(np.dot(probabilities[:count], column)) for column in zip(*children, strict=True)]
    return max(children, key=lambda child: child[player])


def after(game, state, action):
    states = np.array([state], game.state).view(np.recarray)
    game.play(states[0], action)
    return states[0]


# --- the textbook --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, entry in TEXTBOOK.items() if "tree" in entry])
def test_textbook_trees(name):
    entry = TEXTBOOK[name]
    levels = "1-2-3" if entry["type"] == "maxn" else entry["type"]
    game = GameTree(entry["tree"], levels=levels)
    start = game.new()[0]
    found = values(game, start)
    children = [values(game, after(game, start, action)) for action in legal_actions(game, start)]
    if entry["type"] == "maxn":
        assert found == entry["root"] and game.num_players == 3 and not game.zero_sum
        assert children == entry["B_nodes"]
        grandchildren = [
            values(game, game.parse_position(f"{first} {second}")) for first in (1, 2) for second in (1, 2)
        ]
        assert grandchildren == entry["C_nodes"]
        return
    assert found == pytest.approx([entry["root"], -entry["root"]]) and game.zero_sum and game.num_players == 2
    assert [child[0] for child in children] == pytest.approx(entry["child_values"])
    assert int(np.argmax([child[0] for child in children])) == entry["best"]
    assert game.has_chance == ("chance" in entry["type"])


def test_the_default_is_the_textbooks_tree():
    entry = TEXTBOOK["AIMA fig 5.2 minimax"]
    game = make("game_tree")
    assert game == GameTree(entry["tree"]) and [node.name for node in game.nodes[:4]] == ["root", "1", "2", "3"]
    assert (game.num_actions, game.max_legal, game.max_length, game.num_outcomes) == (3, 3, 2, 0)
    assert (game.min_utility, game.max_utility, game.num_players) == (-14.0, 14.0, 2)
    leaves = [int(node.utility[0]) for node in game.nodes if node.kind == TERMINAL]
    assert leaves == [leaf for part in entry["tree"] for leaf in part]


def test_an_expectimax_node():
    entry = TEXTBOOK["CS188 expectimax node"]
    game = GameTree([list(pair) for pair in zip(entry["p"], entry["v"], strict=True)], levels="chance")
    assert game.num_players == 1 and not game.zero_sum and game.num_actions == 0
    assert values(game, game.new()[0])[0] == pytest.approx(entry["value"])
    fractions = GameTree("[[1/2, 8], [1/3, 24], [1/6, -12]]", levels="chance")
    assert values(fractions, fractions.new()[0])[0] == pytest.approx(10, abs=1e-12)
    exact = GameTree([[Fraction(1, 2), 8], [Fraction(1, 3), 24], [Fraction(1, 6), -12]], levels="chance")
    assert exact == fractions


def test_minimal_leaf_counts():
    """Knuth and Moore's count for perfectly ordered trees, by a plain alpha-beta over uniform trees of equal leaves."""

    def uniform(branching, depth):
        return 0 if depth == 0 else [uniform(branching, depth - 1)] * branching

    def leaves(game, state, alpha, beta):
        if game.player(state) == TERMINAL:
            return game.utility(state, 0), 1
        total, sign = 0, 1 if game.player(state) == 0 else -1
        for action in legal_actions(game, state):
            value, count = leaves(game, after(game, state, action), alpha, beta)
            total += count
            alpha, beta = (max(alpha, value), beta) if sign == 1 else (alpha, min(beta, value))
            if alpha >= beta:
                break
        return (alpha if sign == 1 else beta), total

    table = TEXTBOOK["Knuth-Moore minimal leaf count b^ceil(d/2)+b^floor(d/2)-1"]
    for branching, depths in ((2, range(1, 8)), (3, range(1, 6)), (5, range(1, 4))):
        for depth in depths:
            game = GameTree(uniform(branching, depth))
            assert game.max_length == depth and len(game.nodes) == sum(branching**d for d in range(depth + 1))
            counted = leaves(game, game.new()[0], -np.inf, np.inf)[1]
            assert counted == table["table"][f"b{branching}"][depth - 1]


# --- ways to write a tree ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["[[3,12,8],[2,4,6],[14,5,2]]", "[[3;12;8];[2;4;6];[14;5;2]]", "((3,12,8),(2,4,6),(14,5,2))",
     " [[3 12 8] [2 4 6] [14 5 2]] ", "[[3, 12, 8],\n [2, 4, 6],\n [14, 5, 2]]", "tree = [[3, 12, 8], [2, 4, 6], [14, 5, 2]]",
     '{"tree": [[3, 12, 8], [2, 4, 6], [14, 5, 2]], "levels": "max min", "players": 2}'],
)  # fmt: skip
def test_one_tree_many_texts(text):
    game = GameTree(text)
    assert game == GameTree() and hash(game) == hash(GameTree()) and repr(game) == repr(GameTree())
    assert GameTree(np.array([[3, 12, 8], [2, 4, 6], [14, 5, 2]]), levels="max,min", players=2) == game


def test_named_nodes(tmp_path):
    game = GameTree(COIN)
    assert [node.name for node in game.nodes] == ["A", "B", "right", "C", "B.tails", "deep", "C.2"]
    assert values(game, game.new()[0]) == [0.25 * 3 + 0.75 * 8, -0.25 * 3 - 0.75 * 8]
    state = game.parse_position("left heads")
    assert game.node_name(state) == "C" and game.player(state) == 1
    assert game.position_text(state) == "left heads" and game.parse_position("@C").tobytes() == state.tobytes()
    assert [game.action_name(state, action) for action in (0, 1)] == ["1", "2"]
    assert game.position_text(game.parse_position("LEFT tails")) == "left tails"
    drawing = game.show(state)
    assert "△ max A eval 2.5" in drawing and "left ○ chance B" in drawing and "heads (0.25) ▽ min C  ←" in drawing
    numbers = np.zeros(2)
    assert game.features(game.new()[0], numbers) == 2 and numbers.tolist() == [2.5, 1.0]
    (tmp_path / "coin.toml").write_text(COIN)
    assert GameTree(str(tmp_path / "coin.toml")) == game
    tree = {"root": "A", "nodes": {"A": {"moves": {"x": 1, "y": [1, 2]}}}}
    (tmp_path / "coin.json").write_text(json.dumps(tree))
    with pytest.raises(InputError, match="utility 1 of 'x' must be one number for each of 2 players"):
        GameTree(str(tmp_path / "coin.json"))


def test_eval_is_seen_from_the_movers_side():
    tree = {"root": {"moves": {"a": {"eval": 7, "moves": [1, 2]}, "b": 3}}}
    game, numbers = GameTree(tree), np.zeros(2)
    game.features(game.parse_position("a"), numbers)
    assert numbers.tolist() == [-7.0, 1.0]
    vector = {"root": {"player": 2, "eval": [1, 2, 3], "moves": [[1, 2, 3], [4, 5, 6]]}}
    game = GameTree(vector)
    game.features(game.new()[0], numbers)
    assert numbers.tolist() == [2.0, 1.0] and game.player(game.new()[0]) == 1


def test_two_players_with_their_own_utilities():
    dilemma = GameTree([[[3, 3], [0, 5]], [[5, 0], [1, 1]]], vector=True)
    assert values(dilemma, dilemma.new()[0]) == [1.0, 1.0] and not dilemma.zero_sum
    assert specs.text_of("game_tree", dilemma).endswith("vector=True")
    assert GameTree([[[3, -3], [0, 0]], [[5, -5], [1, -1]]], vector=True).zero_sum


def test_text_of_names_and_specs():
    names = {"root": {"name": "a, b; \"c\" 'd'", "moves": {"x,y": 1, "x;y": "1/3", "[": 2, "é": 0.1}}}
    for game in (GameTree(names), GameTree(COIN), GameTree(), GameTree([[1, 2, 3]], players=3)):
        assert make(specs.text_of("game_tree", game)) == game == eval(repr(game))
        assert "," not in game.tree
    game = GameTree(names)
    assert game.nodes[0].name == "a, b; \"c\" 'd'" and game.nodes[0].moves == ["x,y", "x;y", "[", "é"]
    assert make("game_tree:tree=[[3,12],[2,4]],players=2") == make("game_tree", tree=[[3, 12], [2, 4]])


def test_big_trees_are_observed_and_drawn():
    tree = [[list(range(30)) for _ in range(30)] for _ in range(6)]
    game = GameTree(tree)
    assert len(game.nodes) > MOST_PLANES and game.observation_shape == (13,)
    state = game.parse_position("3 17 30")
    planes = np.zeros(13, np.float32)
    game.observe(state, planes)
    assert sum(int(bit) << i for i, bit in enumerate(planes)) == state.node
    middle = game.show(game.parse_position("3 17"))
    assert "←" in middle and len(middle.splitlines()) <= 61 and "30 29" in middle
    assert check_game(game, states=300, texts=20, interpreted=20).ok


# --- random trees --------------------------------------------------------------------------------------


def random_tree(rng, players, levels, depth=0, vector=False):
    """Nested lists of a random tree whose leaves are numbers or vectors."""
    if depth > 0 and (depth == 5 or rng.random() < 0.25):
        return [rng.randint(-9, 9) for _ in range(players)] if vector else rng.randint(-50, 50) / 4
    count = rng.randint(1, 4)
    children = [random_tree(rng, players, levels, depth + 1, vector) for _ in range(count)]
    if levels[depth % len(levels)] != "chance":
        return children
    cuts = [rng.randint(1, 9) for _ in range(count)]
    return [[f"{cut}/{sum(cuts)}", child] for cut, child in zip(cuts, children, strict=True)]


SHAPES = [
    (2, ["max", "min"], False),
    (1, ["max", "chance"], False),
    (2, ["max", "chance", "min", "chance"], False),
    (3, ["1", "2", "3"], True),
    (4, ["1", "chance", "4", "2", "2", "3"], True),
    (2, ["max", "min"], True),
    (1, ["chance"], False),
]


def random_games(count, seed):
    """Trees, as nested lists and as games."""
    rng = random.Random(seed)
    for number in range(count):
        players, levels, vector = SHAPES[number % len(SHAPES)]
        tree = random_tree(rng, players, levels, vector=vector)
        yield rng, tree, levels, GameTree(tree, levels="-".join(levels), players=players, vector=vector)


def walk(rng, tree, levels, game, out, probabilities):
    """Plays to the end beside the nested lists; returns the plies."""
    state, here, depth = game.new()[0], tree, 0
    while True:
        player, count = look(game, state, out, probabilities)
        if not isinstance(here, list) or all(isinstance(item, int) for item in here):  # a number or a vector
            assert player == TERMINAL and depth <= game.max_length
            expected = here if isinstance(here, list) else [here, -here][: game.num_players]
            assert [result(game, state, p) for p in range(game.num_players)] == expected
            assert game.min_utility <= min(expected) and max(expected) <= game.max_utility
            return depth
        kind = levels[depth % len(levels)]
        expected_player = CHANCE if kind == "chance" else {"max": 0, "min": 1}.get(kind)
        assert player == (int(kind) - 1 if expected_player is None else expected_player)
        assert out[:count].tolist() == list(range(len(here)))
        assert count <= (game.num_outcomes if player == CHANCE else game.max_legal)
        if player == CHANCE:
            assert probabilities[:count] == pytest.approx([float(Fraction(pair[0])) for pair in here])
        action = rng.randrange(count)
        step(game, state, action)
        here = here[action][1] if player == CHANCE else here[action]
        depth += 1


def test_random_trees_beside_a_naive_walk():
    out, probabilities, plies = np.empty(8, np.int64), np.empty(8), 0
    for rng, tree, levels, game in random_games(2000, seed=1):
        for _ in range(3):
            plies += walk(rng, tree, levels, game, out, probabilities)
    assert plies > 10_000


def test_random_trees_share_compiled_code():
    compiled = {game._numba_type_ for _, _, _, game in random_games(200, seed=2)}
    assert len(compiled) <= 2
    before = len(getattr(look, "signatures", []))
    out, probabilities = np.empty(8, np.int64), np.empty(8)
    for rng, tree, levels, game in random_games(200, seed=3):
        walk(rng, tree, levels, game, out, probabilities)
        play_random_games(game, 2)
    assert len(getattr(look, "signatures", [])) <= before + 2


@pytest.mark.parametrize("number", range(12))
def test_conformance(number):
    games = [GameTree(), GameTree(COIN), *(game for *_, game in random_games(10, seed=4))]
    report = check_game(games[number], states=300, texts=40, interpreted=40)
    assert report.ok, [str(broken) for broken in report.broken.values()]


# --- broken trees --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"tree": "5"}, "must be nested lists"),
        ({"tree": ""}, "must be nested lists"),
        ({"tree": 5}, "the root is a leaf"),
        ({"tree": []}, "'root' is empty"),
        ({"tree": [[3], []]}, "'2' is empty"),
        ({"tree": [[3, "x"]]}, "'x', neither a number nor a list"),
        ({"tree": [[3, None]]}, "None is neither"),
        ({"tree": [[3, True]]}, "True is neither"),
        ({"tree": [[3, 1e101]]}, "within"),
        ({"tree": [[3, float("nan")]]}, "within"),
        ({"tree": [[3, 10**5000]]}, "within"),
        ({"tree": "[[3, 4"}, "neither JSON nor nested lists"),
        ({"tree": "[" * 100_000}, "neither JSON nor nested lists"),
        ({"tree": "missing.toml"}, "does not exist"),
        ({"tree": "\0.toml"}, "can't be read"),
        ({"tree": "a = "}, "not TOML"),
        ({"tree": "a = 1"}, "unknown key 'a'"),
        ({"tree": "tree = 1"}, "must be nested lists"),
        ({"tree": "tree = [1, 2]\nx = 1"}, "unknown key 'x'"),
        ({"tree": [1, 2], "levels": "maximum"}, "must be max, min, chance or a player's number"),
        ({"tree": [1, 2], "levels": "max-min", "players": 1}, "names more than 1 player"),
        ({"tree": [1, 2], "players": -1}, "from 1 to 100"),
        ({"tree": [1, 2], "players": 101}, "from 1 to 100"),
        ({"tree": [1, 2], "players": "2"}, "type int"),
        ({"tree": [1, 2], "levels": None}, "type str"),
        ({"tree": [1, [1, 2]], "players": 3}, "one number for each of 3 players"),
        ({"tree": [1, 2], "levels": "chance"}, "not a \\[probability, subtree\\] pair"),
        ({"tree": [[0.5, 2], [0.6, 3]], "levels": "chance"}, "sum to 1.1, not to 1"),
        ({"tree": [[0, 2], [1, 3]], "levels": "chance"}, "above 0"),
        ({"tree": {"root": "A"}}, "'A' is not defined"),
        ({"tree": {"nodes": {}}}, "neither a root nor a node"),
        ({"tree": {"nodes": {"A": {}}}}, "needs either moves or a utility"),
        ({"tree": {"nodes": {"A": {"moves": {}}}}}, "is empty"),
        ({"tree": {"nodes": {"A": {"moves": ["A"]}}}}, "circle"),
        ({"tree": {"nodes": {"A": {"moves": ["B", "B"]}, "B": 3}}}, "two parents"),
        ({"tree": {"nodes": {"A": {"moves": [1]}, "B": 3}}}, "no move leads to node 'B'"),
        ({"tree": {"nodes": {"A": {"moves": [1], "playr": 1}}}}, "unknown key 'playr'"),
        ({"tree": {"nodes": {"A": {"moves": [1], "player": "me"}}}}, "must be max, min"),
        ({"tree": {"nodes": {"A": {"moves": {"a b": 1}}}}}, "must be one word"),
        ({"tree": {"nodes": {"A": {"moves": {"a": 1, "A": 2}}}}}, "differ only in capitals"),
        ({"tree": {"nodes": {"A": {"player": "chance", "moves": [1, 2]}}}}, "needs a probability for each"),
        ({"tree": {"nodes": {"A": {"moves": [1], "probabilities": [1]}}}}, "is no chance node"),
        ({"tree": {"root": {"moves": [{"utility": 1, "eval": 2}]}}}, "is a leaf"),
        ({"tree": {"root": {"moves": [1]}, "players": 3}, "players": 2}, "but the tree says 3"),
    ],
)  # fmt: skip
def test_broken_trees(parameters, why):
    with pytest.raises(InputError, match=why) as caught:
        GameTree(**parameters)
    assert "\n" not in str(caught.value)


def test_bad_positions():
    game = GameTree(COIN)
    for text, why in (("up", "legal moves: left, right"), ("right x", "over before move 2"), ("@X", "no such node")):
        with pytest.raises(InputError, match=why):
            game.parse_position(text)
    twins = GameTree({"root": {"moves": [{"name": "X", "utility": 1}, {"name": "X", "utility": 2}]}})
    with pytest.raises(InputError, match="2 nodes have that name"):
        twins.parse_position("@X")


WORDS = ["root", "nodes", "A", "B", "moves", "player", "kind", "utility", "probabilities", "name", "eval", "players",
         "levels", "tree", "max", "min", "chance", "1", "3", "1/2", "1/0", "9" * 5000 + "/7"]  # fmt: skip
NUMBERS = st.one_of(st.integers(), st.floats(), st.sampled_from([0.5, 1, 10**400, True, None]))
LEAVES = st.one_of(NUMBERS, st.sampled_from(WORDS), st.text(max_size=4), st.dates())
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4)
)


def refuses_or_plays(**parameters):
    """A game that works, or an InputError of one line: nothing else comes out."""
    try:
        game = GameTree(**parameters)
    except InputError as error:
        assert "\n" not in str(error)
        return False
    assert GameTree(game.tree, game.levels, game.players, game.vector) == game
    assert play_random_games(game, 2) >= 2
    return True


@settings(max_examples=300, deadline=None)
@given(
    TREES,
    st.sampled_from(["", "max", "chance", "1-2-3", "max-chance-min", "4", "0", "x"]),
    st.integers(-1, 4),
    st.booleans(),
)
def test_fuzzed_objects(tree, levels, players, vector):
    refuses_or_plays(tree=tree, levels=levels, players=players, vector=vector)


def fuzz(count: int, seed: int) -> int:
    """Mutated texts; returns how many were accepted."""
    rng, accepted = random.Random(seed), 0
    seeds = [
        COIN,
        "[[3;12;8];[2;4;6];[14;5;2]]",
        '{"root":{"moves":{"a":1,"b":[1,2]}}}',
        "[[1/2, 8], [1/3, 24], [1/6, -12]]",
    ]
    alphabet = "0123456789-+.,;:/[](){}='\"\\ \n\0é²١eE_#abAxroot"
    for _ in range(count):
        letters = list(rng.choice(seeds))
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(letters) + 1)
            letters[at : at + rng.randrange(4)] = rng.choices(alphabet, k=rng.randrange(3))
        accepted += refuses_or_plays(tree="".join(letters), levels=rng.choice(["", "", "chance", "max-min"]))
    return accepted


def test_fuzzed_texts():
    assert fuzz(5000, seed=1) > 150


@pytest.mark.slow
def test_a_hundred_thousand_fuzzed_texts():
    assert fuzz(100_000, seed=2) > 3000
