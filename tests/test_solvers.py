"""Solvers beside published values, each other and brute force.

tests/data/connect_four: Test_L3_R1.txt and Test_L2_R1.txt are Pascal Pons' test sets (columns played, then the score),
small_boards.csv holds Tromp's values. tests/data/othello/fforum-1-19.obf is the FForum suite (every move's exact
score); positions 40 to 42 of the larger suite are quoted below. Board values of Othello: 4x4 by exhaustion, 6x6
Feinstein 1993.
"""

import csv
import json
import os
import random
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from envs.connect_four import ConnectFour
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL
from envs.mnk import MNK
from envs.nim import Nim
from envs.othello import Othello
from envs.pig import Pig
from envs.registry import make
from envs.twenty_forty_eight import TwentyFortyEight
from selfplay.agents import make_agent
from selfplay.cli import main
from selfplay.search.result import Limits
from selfplay.solvers import Unsolved, solver_for
from selfplay.solvers.connect_four import ConnectFourSolver
from selfplay.solvers.generic import AlphaBetaSolver, InductionSolver
from selfplay.solvers.nim import NimSolver
from selfplay.solvers.othello import OthelloSolver
from selfplay.solvers.pig import PigSolver
from selfplay.solvers.solution import after, canonical, legal, mover
from selfplay.solving import solve

DATA = Path(__file__).parent / "data"
BOARDS = list(csv.DictReader((DATA / "connect_four/small_boards.csv").read_text().splitlines()))
FFORUM = (DATA / "othello/fforum-1-19.obf").read_text().splitlines()
HARDER_FFORUM = [
    ("O--OOOOX-OOOOOOXOOXXOOOXOOXOOOXXOOOOOOXX---OOOOX----O--X-------- X", 38),
    ("-OOOOO----OOOOX--OOOOOO-XXXXXOO--XXOOX--OOXOXX----OXXO---OOO--O- X", 0),
    ("--OOO-------XX-OOOOOOXOO-OOOOXOOX-OOOXXO---OOXOO---OOOXO--OOOO-- X", 6),
]


def test_set(name):
    lines = (DATA / f"connect_four/{name}.txt").read_text().splitlines()
    return [(moves, int(score)) for moves, score in (line.split() for line in lines)]


test_set.__test__ = False


@pytest.fixture(scope="module")
def four():
    return ConnectFourSolver(ConnectFour(), megabytes=64)


def random_positions(game, count, seed, low, high):
    """States of random games after low .. high plies."""
    rng, found = random.Random(seed), []
    while len(found) < count:
        state = game.new()[0]
        for _ in range(rng.randint(low, high)):
            if mover(game, state) == TERMINAL:
                break
            state = after(game, state, rng.choice(legal(game, state)))
        if mover(game, state) != TERMINAL:
            found.append(state)
    return found


def agree(game, one, other, states):
    """Two solvers find the same values, distances and best moves."""
    for state in states:
        a, b = one.solve(state), other.solve(state)
        assert (a.value, a.distance, sorted(a.best)) == (b.value, b.distance, sorted(b.best)), game.position_text(state)
        assert one.values(state) == other.values(state)


# --- Connect Four ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Test_L3_R1", "Test_L2_R1"])
def test_connect_four_test_sets(four, name):
    game = four.game
    for moves, score in test_set(name):
        assert four.score(game.parse_position(moves)) == score, moves


def test_a_thousand_endgames_in_a_second(four):
    expected = [score for _, score in test_set("Test_L3_R1")]
    states = four.game.new(1000)
    for i, (moves, _) in enumerate(test_set("Test_L3_R1")):
        states[i] = four.game.parse_position(moves)
    four.score_many(states[:1])
    four.reset()
    started = time.process_time()  # this process alone: others may keep the machine busy
    assert four.score_many(states).tolist() == expected
    assert time.process_time() - started < 1


def test_connect_four_moves_and_distances(four):
    """Every move's score is the negated score of the position behind it; distances end where the game does."""
    game = four.game
    for moves, score in test_set("Test_L3_R1")[:40]:
        state = game.parse_position(moves)
        scores, solution = four.scores(state), four.solve(state)
        assert max(scores.values()) == score == solution.score
        assert sorted(solution.best) == sorted(a for a, s in scores.items() if s == score)
        assert four.values(state) == {a: float(np.sign(s)) for a, s in scores.items()}
        length = 0
        while mover(game, state) != TERMINAL:
            state, length = after(game, state, four.solve(state).best[0]), length + 1
        assert length == solution.distance


@pytest.mark.parametrize("size", [(4, 4), pytest.param((4, 5), marks=pytest.mark.slow)])
def test_connect_four_beside_alpha_beta(size):
    game = ConnectFour(*size)
    solvers = ConnectFourSolver(game, megabytes=1), AlphaBetaSolver(game, megabytes=16)
    agree(game, *solvers, [game.new()[0], *random_positions(game, 60, 1, 2, 14)])


QUICK_BOARDS = ("4x4",)


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(
            row, marks=[] if (name := f"{row['width']}x{row['height']}") in QUICK_BOARDS else pytest.mark.slow, id=name
        )
        for row in BOARDS
    ],
)
def test_connect_four_values_of_small_boards(row):
    game = ConnectFour(rows=int(row["height"]), columns=int(row["width"]))
    solution = ConnectFourSolver(game, megabytes=8).solve(game.new()[0])
    assert solution.value == int(row["value_first_player"])


@pytest.mark.slow
def test_the_empty_board():
    """The first player wins, in the centre, with the 41st disc; in less time than the 413 s of Pons' solver."""
    game = ConnectFour()
    solver = ConnectFourSolver(game, megabytes=512)
    started = time.process_time()
    assert solver.score(game.new()[0]) == 1
    assert time.process_time() - started < 413
    solution = solver.solve(game.new()[0])
    assert (solution.value, solution.distance, solution.best) == (1.0, 41, (3,))


@pytest.mark.slow
def test_connect_four_beside_bitbully(four):
    bitbully = pytest.importorskip("bitbully")
    peer, game = bitbully.BitBully(), four.game
    for state in random_positions(game, 100, 3, 14, 30):
        text = "".join(str(c + 1) for c in history(game, state))
        board = bitbully.Board([int(c) - 1 for c in text])
        assert four.score(state) == peer.mtdf(board), text


def history(game, state):
    """Some order of columns that leads to the position."""
    rows, cells = game.rows, game.cells(state)[::-1]
    heights, moves = [0] * game.columns, []

    def extend(player):
        if len(moves) == int(np.count_nonzero(cells)):
            return True
        for c in range(game.columns):
            if heights[c] < rows and cells[heights[c], c] == player:
                heights[c] += 1
                moves.append(c)
                if extend(3 - player):
                    return True
                moves.pop()
                heights[c] -= 1
        return False

    assert extend(1)
    return moves


def test_a_small_table_changes_no_score():
    """All positions fight for two places; on 7x6 such a table has entries of eight bytes."""
    game = ConnectFour()
    small = ConnectFourSolver(game, megabytes=1e-5)
    assert len(small.table) == 2 and small.table.dtype == np.uint64
    for moves, score in test_set("Test_L3_R1")[:20]:
        assert small.score(game.parse_position(moves)) == score


@pytest.mark.slow
def test_the_largest_board():
    """64 bits of key: a small and a large table agree, and with the moves' values."""
    game = ConnectFour(rows=7, columns=8)
    small, large = ConnectFourSolver(game, megabytes=1e-5), ConnectFourSolver(game, megabytes=64)
    for state in random_positions(game, 20, 7, 36, 48):
        assert small.score(state) == large.score(state) == max(large.scores(state).values())


def test_limits_and_memory():
    game = ConnectFour()
    solver = ConnectFourSolver(game, Limits(nodes=10_000), megabytes=2)
    assert solver.table.nbytes <= 2 * 2**20
    with pytest.raises(Unsolved, match=r"too large to solve: the Connect Four solver gave up after 10,0"):
        solver.solve(game.new()[0])
    solver.limits = Limits(seconds=0.2)
    with pytest.raises(Unsolved):
        solver.solve(game.new()[0])


# --- Othello -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def eight():
    return OthelloSolver(Othello(), megabytes=64)


def move_scores(line):
    return {m.strip().lower(): int(s) for m, s in (part.split(":") for part in line.split(";")[1:] if ":" in part)}


@pytest.mark.parametrize("line", FFORUM)
def test_every_move_of_fforum(eight, line):
    state = eight.game.parse_position(line)
    expected = move_scores(line)
    assert {eight.game.action_name(state, a): s for a, s in eight.scores(state).items()} == expected
    solution = eight.solve(state)
    assert solution.score == max(expected.values())
    assert solution.value == np.sign(solution.score)
    assert {eight.game.action_name(state, a) for a in solution.best} == {
        move for move, score in expected.items() if score == solution.score
    }


@pytest.mark.slow
@pytest.mark.parametrize(("text", "score"), HARDER_FFORUM)
def test_harder_fforum(eight, text, score):
    assert eight.score(eight.game.parse_position(text)) == score


@pytest.mark.parametrize(("credit", "score"), [(False, -8), (True, -10)])
def test_othello_4x4_from_the_start(credit, score):
    game = Othello(4, discs=True, credit_empties=credit)
    solution = OthelloSolver(game, megabytes=1).solve(game.new()[0])
    assert (solution.value, solution.score) == (score, score)
    assert len(solution.best) == 4  # all first moves are images of each other


@pytest.mark.slow
def test_othello_beside_alpha_beta():
    """Plain disc differences of the 4x4 board, from the start and everywhere else."""
    game = Othello(4, discs=True)
    one, other = OthelloSolver(game, megabytes=1), AlphaBetaSolver(game, megabytes=16)
    for state in [game.new()[0], *random_positions(game, 40, 2, 1, 9)]:
        a, b = one.solve(state), other.solve(state)
        assert (a.value, sorted(a.best)) == (b.value, sorted(b.best))
        assert one.values(state) == other.values(state)


# --- pig ----------------------------------------------------------------------------------------------


def test_pig_as_published():
    """Neller and Presser 2004: the first player wins 53.06 % under best play; at 0 : 0 it rolls until it has 21."""
    solver = PigSolver(Pig())
    first = solver.solve(Pig().new()[0])
    assert (first.value + 1) / 2 == pytest.approx(0.5306, abs=5e-5)
    for total, best in ((20, "roll"), (21, "hold")):
        state = Pig().parse_position(f"scores 0 0 player 1 total {total}")
        assert Pig().action_name(state, solver.solve(state).best[0]) == best


def test_pig_beside_induction():
    """A small game with a horizon far away, where the generic solver still ends."""
    game = Pig(goal=4, sides=3, horizon=60)
    state = game.new()[0]
    exact = solver_for(game, method="search").solve(state)
    assert solver_for(game).solve(state).value == pytest.approx(exact.value, abs=1e-4)


# --- nim ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("misere", [False, True])
@pytest.mark.parametrize("take", [0, 1, 2, 3])
def test_nim_theory_beside_induction(take, misere):
    """Every position of three heaps: values by the textbook's recursion, written down here."""
    game = Nim((4, 5, 6), take, misere)
    solver, known = NimSolver(game), {}

    def wins(left):
        if left not in known:
            moves = [(i, n) for i, heap in enumerate(left) for n in range(1, min(heap, game.most) + 1)]
            children = [tuple(h - n * (j == i) for j, h in enumerate(left)) for i, n in moves]
            known[left] = any(not wins(child) for child in children) if children else misere
        return known[left]

    for left in np.ndindex(5, 6, 7):
        assert solver.wins(left) == wins(left), left


@pytest.mark.slow
def test_nim_beside_alpha_beta():
    game = Nim()
    theory, search = NimSolver(game), AlphaBetaSolver(game, megabytes=1)
    for state in [game.new()[0], *random_positions(game, 40, 5, 0, 5)]:
        a, b = theory.solve(state), search.solve(state)
        assert (a.value, a.distance) == (b.value, b.distance)
        assert theory.values(state) == search.values(state)
        assert sorted(b.best) == sorted(m for m in a.best if a.moves[m].distance == a.distance)


def test_nim_too_large_for_search():
    game = Nim((100, 200, 300))
    solution = NimSolver(game).solve(game.new()[0])
    assert (solution.value, solution.distance) == (1.0, None)
    assert [game.action_name(game.new()[0], a) for a in solution.best] == ["3:128"]  # 100 ^ 200 = 172


# --- any small game ----------------------------------------------------------------------------------


def test_tic_tac_toe_every_position():
    """tests/data/mnk/facts.json: how many positions are won, drawn and lost for x."""
    game = make("tic_tac_toe")
    facts = json.loads((DATA / "mnk/facts.json").read_text())["tictactoe"]
    solver = solver_for(game, megabytes=4)
    seen, layer, counts = set(), [game.new()[0]], {1.0: 0, 0.0: 0, -1.0: 0}
    positions = {}
    while layer:
        nxt = []
        for state in layer:
            text = game.position_text(state)
            if text in seen:
                continue
            seen.add(text)
            if mover(game, state) != TERMINAL:
                key = canonical(game, state)
                if key not in positions:
                    positions[key] = solver.solve(state).value
                counts[positions[key] * (1 if mover(game, state) == 0 else -1)] += 1
                nxt += [after(game, state, action) for action in legal(game, state)]
        layer = nxt
    assert len(seen) == facts["reachable_positions"]
    assert len({canonical(game, game.parse_position(text)) for text in seen}) == facts["up_to_symmetry"]
    expected = facts["nonterminal_positions_by_minimax_value"]
    assert {f"{v:+g}".replace("+0", "0"): n for v, n in counts.items()} == expected


@pytest.mark.slow
@pytest.mark.parametrize(("size", "value"), [((4, 3, 3), 1), ((4, 4, 3), 1), ((4, 4, 4), 0), ((5, 4, 4), 0)])
def test_mnk_values(size, value):
    game = MNK(*size)
    assert solver_for(game).solve(game.new()[0]).value == value


@pytest.mark.slow
def test_chess_mates_are_exact_before_the_game_is_searched():
    game = make("chess")
    state = game.parse_position("6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1")
    solution = solver_for(game, Limits(seconds=20), megabytes=1).solve(state)
    assert (solution.value, solution.distance) == (1.0, 1)
    assert [game.action_name(state, a) for a in solution.best] == ["d1d8"]


def expectation(game, solver, state):
    """The first player's expected utility under best play, from a position where chance may be to move."""
    if mover(game, state) != CHANCE:
        return solver.solve(state).value
    out, probabilities = np.empty(game.num_outcomes, np.int64), np.empty(game.num_outcomes)
    count = game.outcomes(state, out, probabilities)
    return sum(
        p * expectation(game, solver, after(game, state, o)) for o, p in zip(out[:count], probabilities, strict=False)
    )


def test_2048_on_the_smallest_board():
    """tests/data/other/2048_2x2_exact.csv: the highest expected score."""
    exact = dict(csv.reader((DATA / "other/2048_2x2_exact.csv").read_text().splitlines()[1:]))
    game = TwentyFortyEight(2, 2)
    value = expectation(game, InductionSolver(game, megabytes=8), game.new()[0])
    assert value == pytest.approx(float(exact["max expected score 2x2 (standard merge score)"]), abs=1e-9)


def test_pig_with_few_decisions():
    """Goal 2, a two-sided die, four decisions, by hand: hold at a total of 2 wins, a 1 passes the turn.

    Whoever first rolls a 2 holds and wins, if there is a decision left for it: the first player with the first roll
    (1/2), the second with the next one (1/4), the first with the third (1/8); then time is up.
    """
    game = Pig(goal=2, sides=2, horizon=4)
    solution = solver_for(game, megabytes=1).solve(game.new()[0])
    assert solution.value == pytest.approx(1 / 2 - 1 / 4 + 1 / 8)
    assert [game.action_name(game.new()[0], a) for a in solution.best] == ["roll"]
    assert solution.distance is None


def test_limits_of_search_are_one_sentence():
    game = make("tic_tac_toe")
    with pytest.raises(Unsolved) as caught:
        solver_for(game, Limits(nodes=200), megabytes=1).solve(game.new()[0])
    assert str(caught.value).startswith("the position is too large to solve: alpha-beta to the end gave up after 200 ")


def test_three_players():
    game = MNK(3, 3, 3, players=3)
    solution = solver_for(game, megabytes=4).solve(game.new()[0])
    assert solution.values == (0.0, 0.0, 0.0) and solution.distance == 9 and len(solution.best) == 9


# --- the agent and the command -----------------------------------------------------------------------


def test_perfect_never_loses_tic_tac_toe():
    game = make("tic_tac_toe")
    agents = [make_agent("perfect:megabytes=1", game, 1), make_agent("random", game, 2)]
    for number in range(40):
        state = game.new()[0]
        while (player := int(mover(game, state))) != TERMINAL:
            state = after(game, state, agents[(player + number) % 2].choose(state))
        assert game.utility(state, number % 2) >= 0


def test_perfect_chooses_among_the_best_by_seed():
    game = make("tic_tac_toe")
    chosen = [make_agent("perfect:megabytes=1", game, seed).choose(game.new()[0]) for seed in range(12)]
    assert len(set(chosen)) > 3
    again = [make_agent("perfect:megabytes=1", game, seed).choose(game.new()[0]) for seed in range(12)]
    assert chosen == again


def test_perfect_says_what_is_covered():
    with pytest.raises(InputError, match=r"no solver covers this game.*covered: connect_four"):
        make_agent("perfect", make("chess"))
    with pytest.raises(InputError, match=r"agent perfect:nodes=100: the position is too large.*covered: connect_four"):
        make_agent("perfect:nodes=100", make("connect_four")).choose(make("connect_four").new()[0])


def test_the_command():
    found = solve(make("connect_four"), "2252576253462244111563365343671351441", all_moves=True, megabytes=4)
    assert (found["value"], found["score"], found["distance"]) == (-1.0, -1, 4)
    assert found["best"] == [move["move"] for move in found["moves"] if move["score"] == -1]
    with pytest.raises(InputError, match="unknown method 'magic'; methods: auto, search"):
        solve(make("nim"), method="magic")
    with pytest.raises(InputError, match="the game is over"):
        solve(make("connect_four"), "1212121")
    for megabytes in (0, -1, float("nan"), float("inf")):
        with pytest.raises(InputError, match="megabytes=.* must be more than 0"):
            solve(make("connect_four"), megabytes=megabytes)
    with pytest.raises(InputError, match="more memory than there is"):
        solve(make("connect_four"), megabytes=1e12)
    with pytest.raises(InputError, match="nodes=-1 must be 0"):
        solve(make("connect_four"), nodes=-1)


def test_interpreted_and_compiled_agree():
    """Scores and node counts of the same positions without compilation."""
    code = (
        "import numpy as np\n"
        "from envs.registry import make\n"
        "from selfplay.solvers import solver_for\n"
        "np.seterr(over='ignore')\n"
        "for spec, text in (('connect_four', '7422341735647741166133573473242566'), ('othello:size=4,discs=true', 'b1a1a2')):\n"
        "    game = make(spec)\n"
        "    found = solver_for(game, megabytes=0.01).solve(game.parse_position(text))\n"
        "    print(found.value, found.distance, found.best, found.score, found.nodes)\n"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, **extra},
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parent.parent,
        ).stdout
        for extra in ({}, {"NUMBA_DISABLE_JIT": "1"})
    ]
    assert runs[0] == runs[1] and len(runs[0].splitlines()) == 2


def test_the_page(monkeypatch, capsys):
    """docs/solvers.md: the commands that it shows, with their output."""
    page = (Path(__file__).parent.parent / "docs/solvers.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\$ (selfplay .*)\n((?:[^`$\n].*\n)+)", page, re.MULTILINE)
    assert len(shown) == 2
    for command, output in shown:
        monkeypatch.setattr(sys, "argv", shlex.split(command))
        with pytest.raises(SystemExit):
            main()
            raise SystemExit(0)
        assert re.sub(r"[\d.]+ s$", "TIME", capsys.readouterr().out.strip()) == output.strip()


@pytest.mark.slow
def test_othello_6x6_from_the_start():
    """Feinstein 1993: the second player wins 20 to 16. With 31 empty cells, as the four first moves are images; a value
    strictly inside the window (3, 5) is exact."""
    game = Othello(6, discs=True)
    state = after(game, game.new()[0], legal(game, game.new()[0])[0])
    solver = OthelloSolver(game, megabytes=1024)
    with solver._clock():
        assert solver._difference(state, 3, 5) == 4
