"""Monte Carlo tree search: its arithmetic beside a naive second account, its proofs beside minimax, its limits."""

import math
import os
import random
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from test_search_exact import paranoid_value, random_position
from trees import many_players, move_values, two_players, with_chance

from benchmarks.mcts import bench_mcts
from envs.connect_four import ConnectFour
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, advance, legal_actions, state_bytes
from envs.mnk import MNK
from envs.pig import HOLD, ROLL, Pig
from envs.registry import make
from selfplay.agents import make_agent, parse_agent
from selfplay.search.mcts import MCTS, Options, mcts
from selfplay.search.tree import best_edge
from selfplay.search.tree_reuse import move_root

TIC_TAC_TOE = MNK()
CONNECT_FOUR = ConnectFour()
PIG = Pig(goal=20)


def searcher(game, simulations=1000, seed=0, **options):
    return MCTS(game, options=Options(simulations, **{"megabytes": 16.0, **options}), seed=seed)


def tree_of(found, index=0):
    """The tree below a node as nested dictionaries: action -> (visits, value, proof, subtree)."""
    node = found.nodes[index]
    edges = found.edges[node.first : node.first + node.tried]
    return {
        int(e.action): (
            int(e.visits),
            float(e.value),
            int(e.proof),
            tree_of(found, int(e.child)) if e.child >= 0 else {},
        )
        for e in edges
    }


# --- UCB1 and the back-up ----------------------------------------------------------------------------


def test_ucb1_on_a_node_with_known_visits():
    """Utilities -1 .. 1, so a mean m is the reward (m + 1) / 2. Scores by hand, with N = 100 and C = 1 and 0.1:
    visits 10, 30, 60; rewards 0.3, 0.5, 0.6; ln 100 = 4.60517."""
    found = searcher(TIC_TAC_TOE, 10)
    nodes, edges, work = found.nodes, found.edges, found.work
    nodes[0].first, nodes[0].count, nodes[0].tried, nodes[0].visits, nodes[0].player = 0, 3, 3, 100, 0
    nodes[0].known, nodes[0].spread = -1, math.sqrt(math.log(100))
    for i, (visits, reward) in enumerate(((10, 0.3), (30, 0.5), (60, 0.6))):
        edges[i].visits, edges[i].value, edges[i].bonus = visits, 2 * reward - 1, 1 / math.sqrt(visits)
    scores = {}
    for c in (1.0, 0.1, 0.45):
        scores[c] = [m + c * math.sqrt(math.log(100) / n) for n, m in ((10, 0.3), (30, 0.5), (60, 0.6))]
        work.c = c
        assert best_edge(work, nodes[0], edges, 0) == int(np.argmax(scores[c]))
    assert scores[1.0] == pytest.approx([0.97861, 0.89180, 0.87705], abs=1e-5)
    assert scores[0.1] == pytest.approx([0.36786, 0.53918, 0.62770], abs=1e-5)


class Account:
    """A naive second account of the tree: it is told each simulation's path and checks that UCB1 would take it."""

    def __init__(self, game, c):
        self.game, self.c, self.nodes = game, c, {}

    def follow(self, root, path, values):
        state, line = root.copy(), ()
        for action in path:
            player = int(self.game.player(state))
            edges = self.nodes.setdefault(line, {})
            if player != CHANCE:
                legal = legal_actions(self.game, state)
                assert action in legal
                if len(edges) < len(legal):
                    assert action not in edges, "an untried move goes first"
                else:
                    scores = {a: self.score(edges, a) for a in edges}
                    assert scores[action] >= max(scores.values()) - 1e-9
            total, visits = edges.get(action, (0.0, 0))
            edges[action] = (total + values[max(player, 0)], visits + 1)
            advance(self.game, state, action)
            line = (*line, action)

    def score(self, edges, action):
        total, visits = edges[action]
        low, high = self.game.min_utility, self.game.max_utility
        every = sum(n for _, n in edges.values())
        return (total / visits - low) / (high - low) + self.c * math.sqrt(math.log(every) / visits)

    def compare(self, tree, line=()):
        for action, (visits, value, _, below) in tree.items():
            total, count = self.nodes[line][action]
            assert (visits, value) == (count, pytest.approx(total / count, abs=1e-9))
            if below:
                self.compare(below, (*line, action))


@pytest.mark.parametrize("game", [TIC_TAC_TOE, CONNECT_FOUR, PIG], ids=str)
def test_every_simulation_beside_a_naive_account(game):
    account, root = Account(game, 0.7), game.new()[0]
    found = searcher(game, 400, c=0.7, solver=False)
    found.search(root)  # compiled; then again, one at a time
    found.reset()
    for limit in range(1, 401):
        found.work.simulation_limit = limit
        found.work.simulations, found.work.deepest, found.work.stop = limit - 1, 0, 0
        mcts(game, found.evaluation, found.policy, found.work, found.nodes, found.edges)
        work = found.work
        path = [int(found.edges[e].action) for e in work.path_edge[: work.deepest]]
        assert work.simulations == limit
        final = work.states[1]
        assert game.player(final) == TERMINAL
        values = [float(v) for v in work.values[: game.num_players]]
        assert values == [game.utility(final, p) for p in range(game.num_players)]
        account.follow(root, path, values)
    account.compare(tree_of(found))
    assert sum(visits for visits, *_ in tree_of(found).values()) == 400
    assert found.work.num_nodes > 50


def test_signature():
    """One number per search that changes only when the search does."""
    found = searcher(CONNECT_FOUR, 5000, seed=3).search(CONNECT_FOUR.new()[0])
    visits = {0: 258, 1: 474, 2: 742, 3: 2182, 4: 679, 5: 296, 6: 369}
    assert {move.action: move.visits for move in found.moves} == visits
    assert (found.action, found.nodes, found.depth) == (3, 5000, 6)


def test_same_seed_same_result():
    state = CONNECT_FOUR.parse_position("4453")
    same = [searcher(CONNECT_FOUR, 2000, seed=5) for _ in range(2)]
    results = [found.search(state) for found in same]
    assert results[0].moves == results[1].moves and tree_of(same[0]) == tree_of(same[1])
    same[0].reset()
    assert same[0].search(state).moves == results[0].moves
    assert searcher(CONNECT_FOUR, 2000, seed=6).search(state).moves != results[0].moves


_INTERPRETED = """
import numpy
from envs.registry import make
from selfplay.agents import make_agent
numpy.seterr(over="ignore")
for name in ("tic_tac_toe", "pig:goal=20"):
    game = make(name)
    agent, state = make_agent("mcts:simulations=150", game, 4), game.new()[0]
    agent.search(state)
    result = agent.search(state)
    print([(move.action, move.visits, round(move.value, 9), move.bound) for move in result.moves], result.line)
"""


def test_interpreted_and_compiled_agree():
    output = {}
    for off in ("0", "1"):
        environment = {**os.environ, "NUMBA_DISABLE_JIT": off}
        command = [sys.executable, "-c", _INTERPRETED]
        root = Path(__file__).resolve().parent.parent
        run = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=True)
        output[off] = run.stdout
    assert output["0"] == output["1"] and output["0"].count("\n") == 2


# --- proofs ------------------------------------------------------------------------------------------


def negamax(game, state, memory):
    """The mover's value in a game where players alternate, by the definition."""
    key = state_bytes(state)
    if key not in memory:
        player, values = game.player(state), []
        for action in legal_actions(game, state):
            child = state.copy()
            game.play(child, action)
            over = game.player(child) == TERMINAL
            values.append(game.utility(child, player) if over else -negamax(game, child, memory))
        memory[key] = max(values)
    return memory[key]


def test_tic_tac_toe_is_proven_to_minimax_values():
    rng, memory, found = random.Random(11), {}, searcher(TIC_TAC_TOE, 100_000)
    values = set()
    for _ in range(150):
        state = random_position(TIC_TAC_TOE, rng, 9)
        result, truth = found.search(state), negamax(TIC_TAC_TOE, state, memory)
        assert result.proven and result.value == truth
        values.add(truth)
        for move in result.moves:
            child = state.copy()
            TIC_TAC_TOE.play(child, move.action)
            if move.bound == "exact":
                over = TIC_TAC_TOE.player(child) == TERMINAL
                exact = (
                    TIC_TAC_TOE.utility(child, TIC_TAC_TOE.player(state))
                    if over
                    else -negamax(TIC_TAC_TOE, child, memory)
                )
                assert move.value == exact
        assert next(m for m in result.moves if m.action == result.action).value == truth
    assert values == {-1.0, 0.0, 1.0}


def test_random_trees_are_proven_to_their_values():
    """Ties, players who move twice in a row, scores between win and loss; and nothing else is ever called proven."""
    proven = 0
    for seed in range(300):
        game = two_players(seed, 4)
        values, state = move_values(game), game.new()[0]
        player = int(game.player(state))
        result = searcher(game, 3000, megabytes=1.0).search(state)
        for move in result.moves:
            if move.bound == "exact":
                assert move.value == values[move.action][player]
        if result.proven:
            proven += 1
            assert result.value == values[result.action][player] == max(v[player] for v in values.values())
    assert proven >= 290


@pytest.mark.parametrize("players", [1, 2])
def test_chance_trees(players):
    """Proofs through chance only where they hold; else the choice is an optimal one, or nearly."""
    good, exact = 0, 0
    for seed in range(100):
        game = with_chance(seed, players)
        values, state = move_values(game), game.new()[0]
        player = int(game.player(state))
        result = searcher(game, 5000, megabytes=1.0).search(state)
        best = max(v[player] for v in values.values())
        for move in result.moves:
            if move.bound == "exact":
                exact += 1
                assert move.value == pytest.approx(values[move.action][player], abs=1e-12)
        good += values[result.action][player] >= best - 0.05 * (game.max_utility - game.min_utility)
        if result.proven:
            assert result.value == pytest.approx(best, abs=1e-12)
    assert good >= 97
    assert exact > 20


def test_three_players_prove_only_what_can_be_forced():
    proven = forced = 0
    for seed in range(200):
        game = many_players(seed, 3)
        state = game.new()[0]
        result = searcher(game, 3000, megabytes=1.0).search(state)
        worst = paranoid_value(game, state, int(game.player(state)))
        if result.proven:
            proven += 1
            assert result.value == game.max_utility == worst
        forced += worst == game.max_utility
        assert len(result.values) == 3
    assert forced >= proven >= 0.9 * forced > 5


def test_three_in_a_row_for_three_players():
    """x completes a line, takes the cell where o would, and sees each player's value."""
    game = make("tic_tac_toe_three")
    found = searcher(game, 3000)
    win = found.search(game.parse_position("xx../oo../zz../...."))
    assert (win.action, win.value, win.proven) == (2, 1.0, True)
    block = found.search(game.parse_position("x.../oo../zz../x..."))
    assert block.action == 6  # o moves next and would complete its line first
    assert sum(block.values) == pytest.approx(0.0, abs=1e-12) and len(block.values) == 3


# --- strength ----------------------------------------------------------------------------------------


def test_connect_four_tactics():
    found = searcher(CONNECT_FOUR, 20_000)
    double = found.search(CONNECT_FOUR.parse_position("3344"))  # an open three in the bottom row
    assert double.action in (1, 4) and double.value == 1.0 and double.proven
    assert double.line[0] == double.action and len(double.line) >= 3
    block = found.search(CONNECT_FOUR.parse_position("334"))  # the same, seen by the other side: stop it now
    assert block.action in (1, 4) and block.value < 0.5
    at_once = found.search(CONNECT_FOUR.parse_position("121212"))
    assert at_once.action == 0 and at_once.proven and at_once.nodes < 1000
    lost = found.search(CONNECT_FOUR.parse_position("33445"))  # three with both ends open
    assert lost.proven and lost.value == -1.0


def pig_values(goal, sides=6):
    """P(win) of the player to move by own score, other's score and turn total (Neller and Presser 2004)."""
    win = np.full((goal, goal, goal + sides), 0.5)
    while True:
        old = win.copy()
        for i in range(goal):
            for j in range(goal):
                win[i, j, goal - i :] = 1.0
                for k in range(goal - i):
                    roll = (1 - win[j, i, 0] + sum(win[i, j, k + d] for d in range(2, sides + 1))) / sides
                    win[i, j, k] = max(roll, 1 - win[j, i + k, 0] if k > 0 else 0.0)
        if abs(win - old).max() < 1e-9:
            return win


def test_pig_near_its_exact_values():
    exact, found = pig_values(20), searcher(PIG, 30_000)
    for mine, other, total in ((15, 15, 2), (12, 17, 5), (17, 5, 2), (5, 17, 12), (18, 18, 0)):
        state = PIG.parse_position(f"scores {mine} {other} player 1 total {total}")
        result = found.search(state)
        assert result.value == pytest.approx(2 * exact[mine, other, total] - 1, abs=0.08)
        hold = 1 - exact[other, mine + total, 0]
        roll = (1 - exact[other, mine, 0] + sum(exact[mine, other, total + d] for d in range(2, 7))) / 6
        if abs(hold - roll) > 0.03:
            assert result.action == (HOLD if hold > roll else ROLL)


def test_one_player_scales_by_what_was_seen():
    """2048's bound is in the millions; a search that scaled by it would choose at random."""
    game = make("twenty_forty_eight")
    found = searcher(game, 500)
    state = game.new()[0]
    while game.player(state) == CHANCE:
        advance(game, state, legal_actions(game, state)[0])
    result = found.search(state)
    assert 0 <= found.work.low < found.work.high < 20_000 < game.max_utility
    assert found.work.low <= result.value <= found.work.high and result.values == (pytest.approx(result.values[0]),)
    agent, rng, out, chances = (
        make_agent("mcts:simulations=100", game, 1),
        random.Random(1),
        np.empty(64, int),
        np.empty(64),
    )
    while game.player(state) != TERMINAL:
        if game.player(state) == CHANCE:
            count = game.outcomes(state, out, chances)
            advance(game, state, rng.choices(out[:count].tolist(), chances[:count].tolist())[0])
        else:
            advance(game, state, agent.choose(state))
    assert game.utility(state, 0) > 5000  # random play gets about 1100


@pytest.mark.slow  # each of these games takes seconds to compile; random trees above have such players, too
@pytest.mark.parametrize("name", ["checkers", "backgammon"])
def test_players_who_move_again(name):
    """A few moves of a whole game: the tree is kept where a player has several actions in a row, and all are legal."""
    game, kept = make(name), 0
    agent, state = make_agent("mcts:simulations=300", game, 1), game.new()[0]
    rng = random.Random(5)
    for _ in range(30):
        legal = legal_actions(game, state)
        if game.player(state) == CHANCE:
            advance(game, state, rng.choice(legal))
            continue
        result = agent.search(state)
        assert result.action in legal
        kept += sum(move.visits for move in result.moves) > 300
        advance(game, state, result.action)
    assert kept > 5


@pytest.mark.parametrize("playout", ["greedy", pytest.param("own", marks=pytest.mark.slow)])
def test_playout_policies_and_cut_off(playout):
    agent = make_agent(f"mcts:simulations=2000,playout={playout},cutoff=6,eval=linear", CONNECT_FOUR, 1)
    assert agent.search(CONNECT_FOUR.parse_position("3344")).action in (1, 4)
    start = agent.search(CONNECT_FOUR.new()[0])
    assert start.action == 3 and -1.0 < start.value < 1.0


def test_a_cut_off_playout_takes_the_evaluation():
    """With an evaluation that knows nothing, cut at once, every mean in the first plies is the middle: nothing."""
    agent = make_agent("mcts:simulations=500,cutoff=1,eval=none,solver=off", CONNECT_FOUR, 1)
    assert all(move.value == 0.0 for move in agent.search(CONNECT_FOUR.new()[0]).moves)


# --- reuse, limits, stop -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "line"),
    [(CONNECT_FOUR, (3,)), (CONNECT_FOUR, (3, 2)), (PIG, (ROLL, 4)), (PIG, (ROLL, 1, ROLL, 1))],
    ids=str,
)
def test_reuse_keeps_the_statistics_of_the_subtree(game, line):
    found, state = searcher(game, 4000, solver=False), game.new()[0]
    found.search(state)
    subtree = tree_of(found)
    for action in line:
        subtree = subtree[action][3]
        advance(game, state, action)
    assert len(subtree) > 1
    assert move_root(game, found.work, found.nodes, found.edges, state)
    assert tree_of(found) == subtree
    assert state_bytes(found.work.states[0]) == state_bytes(state)
    before = sum(visits for visits, *_ in subtree.values())
    assert sum(move.visits for move in found.search(state).moves) == before + 4000


def test_reuse_off_and_strange_positions_start_anew():
    state = CONNECT_FOUR.new()[0]
    for reuse, position in ((False, "44"), (True, "1122337766")):
        found = searcher(CONNECT_FOUR, 500, reuse=reuse, solver=False)
        found.search(state)
        result = found.search(CONNECT_FOUR.parse_position(position))
        assert sum(move.visits for move in result.moves) == 500


def test_a_whole_game_with_reuse_stays_right():
    """Two players, each with its own tree, to the end: every tree's counts add up at every move."""
    agents = [make_agent("mcts:simulations=400", CONNECT_FOUR, seed) for seed in (1, 2)]
    state = CONNECT_FOUR.new()[0]
    while CONNECT_FOUR.player(state) != TERMINAL:
        agent = agents[CONNECT_FOUR.player(state)]
        result = agent.search(state)
        assert result.action in legal_actions(CONNECT_FOUR, state)
        tree, found = tree_of(agent.searcher), agent.searcher
        check_counts(tree)
        assert found.work.num_nodes <= len(found.nodes) and found.work.num_edges <= len(found.edges)
        advance(CONNECT_FOUR, state, result.action)


def check_counts(tree):
    for visits, _, _, below in tree.values():
        if below:
            assert sum(n for n, *_ in below.values()) == visits - 1  # the first visit was a playout from there
            check_counts(below)


def test_memory_limit():
    found = searcher(CONNECT_FOUR, 20_000, megabytes=0.25)
    assert found.nodes.nbytes + found.edges.nbytes <= 0.25 * 2**20
    result = found.search(CONNECT_FOUR.new()[0])
    assert result.nodes == 20_000 and result.action == 3 and found.work.full > 0
    assert found.work.num_nodes <= len(found.nodes) and found.work.num_edges <= len(found.edges)


def test_a_million_simulations_do_not_grow_the_process():
    found, state = searcher(TIC_TAC_TOE, 100_000, solver=False, reuse=False, megabytes=32.0), TIC_TAC_TOE.new()[0]
    found.search(state)
    before = psutil.Process().memory_info().rss
    assert sum(found.search(state).nodes for _ in range(10)) == 1_000_000
    assert psutil.Process().memory_info().rss - before < 4 * 2**20


def test_time_limit():
    found, late = searcher(CONNECT_FOUR, 0, seconds=0.2, solver=False), []
    for _ in range(5):
        started = time.perf_counter()
        result = found.search(CONNECT_FOUR.new()[0])
        late.append(time.perf_counter() - started - 0.2)
        assert result.nodes > 1000
    assert min(late) < 0.02 and min(late) > -0.001  # other processes may delay some


def test_stop_from_another_thread():
    delays = []
    for _ in range(5):
        found = searcher(CONNECT_FOUR, 10**9, solver=False)
        thread = threading.Thread(target=found.search, args=(CONNECT_FOUR.new()[0],))
        thread.start()
        time.sleep(0.1)
        found.stop()
        started = time.perf_counter()
        thread.join()
        delays.append(time.perf_counter() - started)
    assert min(delays) < 0.01


def test_stopped_before_the_first_simulation():
    found, state = searcher(CONNECT_FOUR, 10), CONNECT_FOUR.new()[0]
    found.search(state)
    found.reset()
    found.work.simulation_limit = 0
    result = found.search(state)
    assert result.action == 0 and result.nodes == 0 and all(move.bound == "unknown" for move in result.moves)


# --- specs and bad input -----------------------------------------------------------------------------


def test_specs():
    assert str(parse_agent("mcts")) == "mcts"
    assert str(parse_agent("mcts:simulations=1000")) == "mcts:simulations=1000"
    agent = make_agent("mcts:seconds=0.05", CONNECT_FOUR)
    assert agent.spec == "mcts:seconds=0.05" and agent.search(CONNECT_FOUR.new()[0]).nodes > 1000
    both = make_agent("mcts:seconds=5,simulations=1000", CONNECT_FOUR)
    assert both.search(CONNECT_FOUR.new()[0]).nodes == 1000


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("mcts:simulations=0", "simulations=0 must be 1 or more"),
        ("mcts:simulations=-5", "simulations=-5 must be 1 or more"),
        ("mcts:simulations=0,seconds=1", "simulations=0 must be 1 or more"),
        ("mcts:simulations=many", "simulations='many' must be a whole number"),
        ("mcts:seconds=-1", "seconds=-1.0 must be 0"),
        ("mcts:seconds=nan", "seconds=nan must be 0"),
        ("mcts:c=-1", "c=-1.0 must be 0 or more"),
        ("mcts:cutoff=-1", "cutoff=-1 must be 0"),
        ("mcts:megabytes=0", "megabytes=0.0 must be more than 0"),
        ("mcts:playout=clever", "unknown playout policy 'clever'; policies: uniform, own, greedy"),
        ("mcts:playout=greedy,epsilon=2", "epsilon=2.0 must be from 0 to 1"),
        ("mcts:eval=clever", "unknown evaluation 'clever'"),
        ("mcts:depth=3", "no parameter 'depth'; parameters: book, simulations, c, playout"),
    ],
)
def test_bad_input(spec, words):
    with pytest.raises(InputError, match=re.escape(words)):
        make_agent(spec, TIC_TAC_TOE)


def test_no_search_where_nobody_chooses():
    over = TIC_TAC_TOE.parse_position("xxx/oo./...")
    with pytest.raises(InputError, match="the game is over"):
        searcher(TIC_TAC_TOE, 10).search(over)
    rolling = PIG.new()[0]
    PIG.play(rolling, ROLL)
    with pytest.raises(InputError, match="chance is to move"):
        searcher(PIG, 10).search(rolling)


def test_benchmark_rows():
    (row,) = bench_mcts(["tic_tac_toe"], 0.01, lambda text: None)
    assert list(row) == ["job", "game", "unit", "ours", "peer", "theirs", "ratio"]
    assert (row["job"], row["game"], row["unit"], row["peer"]) == ("mcts", "tic_tac_toe", "simulations/s", "open_spiel")
    assert row["ratio"] == row["ours"] / row["theirs"] > 1
