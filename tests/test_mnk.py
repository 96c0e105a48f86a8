"""m,n,k-games against published counts (OEIS A008907, A048245, A061221, A061526), OpenSpiel and a naive referee."""

import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pyspiel
import pytest
from referees import play_beside_open_spiel

from envs.bits import ZERO
from envs.check import check_game
from envs.compiled import njit
from envs.errors import InputError
from envs.game import TERMINAL, legal_actions
from envs.mnk import MNK
from envs.registry import make

FACTS = json.loads((Path(__file__).parent / "data/mnk/facts.json").read_text())
TIC_TAC_TOE = FACTS["tictactoe"]
POSITIONS_UP_TO_SYMMETRY = [1, 3, 12, 38, 108, 174, 204, 153, 57, 15]  # OEIS A008907
FINISHED_UP_TO_SYMMETRY = [0, 0, 0, 0, 0, 21, 21, 58, 23, 15]  # OEIS A048245


@njit
def smallest_key(game, state, room):
    """The same for all images of a position."""
    best = game.key(state)
    for symmetry in range(1, game.num_symmetries):
        room[0] = state
        game.transform(room[0], symmetry)
        best = min(best, game.key(room[0]))
    return best


@njit
def count_games(game, states, moves, level, totals):
    """Adds every game to totals[length, winner], a draw as winner -1."""
    if game.player(states[level]) == TERMINAL:
        totals[level, states[level].winner] += 1
        return
    for i in range(game.actions(states[level], moves[level])):
        states[level + 1] = states[level]
        game.play(states[level + 1], moves[level, i])
        count_games(game, states, moves, level + 1, totals)


def reachable(game):
    """All positions, by their bytes."""
    found, layer = {}, [game.new()]
    while layer:
        new = {states.tobytes(): states for states in layer}
        found.update(new)
        layer = []
        for states in new.values():
            if game.player(states[0]) != TERMINAL:
                for action in legal_actions(game, states[0]):
                    layer.append(states.copy())
                    game.play(layer[-1][0], action)
    return [states[0] for states in found.values()]


def test_positions_of_tic_tac_toe():
    game, facts = MNK(), TIC_TAC_TOE
    states = reachable(game)
    assert len(states) == facts["reachable_positions"] == len({int(game.key(state)) for state in states})
    per_ply = Counter(int(state.count) for state in states)
    assert [per_ply[ply] for ply in range(10)] == facts["per_ply"]
    finished = [state for state in states if game.player(state) == TERMINAL]
    assert len(finished) == facts["terminal_positions"]
    results = Counter("xo"[state.winner] if state.winner >= 0 else "draw" for state in finished)
    assert results == facts["terminal_by_result"]

    room = game.new()
    classes = {int(smallest_key(game, state, room)): state for state in states}
    assert len(classes) == facts["up_to_symmetry"]
    plies = Counter(int(state.count) for state in classes.values())
    assert [plies[ply] for ply in range(10)] == POSITIONS_UP_TO_SYMMETRY
    ends = [state for state in classes.values() if game.player(state) == TERMINAL]
    assert [Counter(int(s.count) for s in ends)[ply] for ply in range(10)] == FINISHED_UP_TO_SYMMETRY
    results = Counter("xo"[state.winner] if state.winner >= 0 else "draw" for state in ends)
    assert results == facts["terminal_up_to_symmetry_by_result"]


def test_games_of_tic_tac_toe():
    game, facts = MNK(), TIC_TAC_TOE
    totals = np.zeros((10, 3), np.int64)
    count_games(game, game.new(10), np.empty((10, 9), np.int64), 0, totals)
    assert totals.sum() == facts["games"]
    assert dict(zip(["x", "o", "draw"], totals.sum(0).tolist(), strict=True)) == facts["games_by_result"]
    by_length = {str(n): int(totals[n].sum()) for n in range(5, 9)}
    assert by_length | {"9_win": totals[9, :2].sum(), "9_draw": totals[9, 2]} == facts["games_by_length"]


@njit
def value(game, states, moves, level, keys, values):
    """The mover's result under best play, by plain negamax with a memory of all positions up to symmetry."""
    player = game.player(states[level])
    if player == TERMINAL:
        return np.int64(game.utility(states[level], level % 2))
    key = smallest_key(game, states[level], states[level + 1 :])
    slot = np.int64(key & np.uint64(len(keys) - 1))
    while keys[slot] != 0:
        if keys[slot] == key:
            return np.int64(values[slot])
        slot = (slot + 1) & (len(keys) - 1)
    best = -1
    for i in range(game.actions(states[level], moves[level])):
        states[level + 1] = states[level]
        game.play(states[level + 1], moves[level, i])
        best = max(best, -value(game, states, moves, level + 1, keys, values))
        if best == 1:
            break
    while keys[slot] != 0:  # the positions below took slots as well
        slot = (slot + 1) & (len(keys) - 1)
    keys[slot], values[slot] = key, best
    return best


def solve(game, state=None):
    states, moves = game.new(game.area + 2), np.empty((game.area + 2, game.area), np.int64)
    level = 0 if state is None else int(state.count)
    if state is not None:
        states[level] = state
    size = 1 << 23 if game.area > 12 else 1 << 14
    return int(value(game, states, moves, level, np.zeros(size, np.uint64), np.zeros(size, np.int8)))


SOLVED = FACTS["mnk_values_first_player"]["recomputed_here"]
QUICK = {"3,3,3"}


@pytest.mark.parametrize("size", [s if s in QUICK else pytest.param(s, marks=pytest.mark.slow) for s in SOLVED])
def test_solved_boards(size):
    columns, rows, connect = map(int, size.split(","))
    assert solve(MNK(rows=rows, columns=columns, connect=connect)) == SOLVED[size]


def test_values_of_all_positions():
    game = MNK()
    going_on = [state for state in reachable(game) if game.player(state) != TERMINAL]
    counts = Counter(solve(game, state) * (-1) ** int(state.count) for state in going_on)
    assert {f"{v:+d}" if v else "0": n for v, n in counts.items()} == TIC_TAC_TOE[
        "nonterminal_positions_by_minimax_value"
    ]


# OpenSpiel numbers the cells from the top left too, row by row: the actions are the same numbers.
@pytest.mark.parametrize(
    ("game", "theirs", "games"),
    [
        (MNK(), "tic_tac_toe", 5000),
        (MNK(6, 7, 4), "mnk(m=7,n=6,k=4)", 2000),
        (make("gomoku"), "mnk(m=15,n=15,k=5)", 100),
        (make("gomoku"), "gomoku", 100),
        pytest.param(MNK(19, 19, 5), "gomoku(size=19)", 40, marks=pytest.mark.slow),
    ],
)
def test_random_games_beside_open_spiel(game, theirs, games):
    assert play_beside_open_spiel(game, pyspiel.load_game(theirs), games) > 5 * games


class Naive:
    """The rules as one would say them, slowly: maximal runs of equal stones."""

    def __init__(self, game):
        self.game, self.board = game, {}

    def wins(self, player):
        game, own = self.game, {cell for cell, owner in self.board.items() if owner == player}
        for y, x in own:
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                if (y - down, x - right) not in own:
                    length = 1
                    while (y + length * down, x + length * right) in own:
                        length += 1
                    if length == game.connect or (length > game.connect and not game.exactly):
                        return True
        return False


@pytest.mark.parametrize(
    "game",
    [
        MNK(1, 1, 1), MNK(2, 2, 2), MNK(1, 6, 3), MNK(6, 1, 3), MNK(3, 15, 5), MNK(15, 3, 5), MNK(7, 8, 4, players=3),
        MNK(4, 5, 3, exactly=True), MNK(4, 4, 3, players=3), MNK(8, 8, 3, exactly=True), MNK(9, 8, 4, players=3),
        MNK(19, 4, 4), MNK(4, 19, 4), MNK(19, 19, 4, exactly=True), MNK(4, 19, 19), MNK(19, 5, 19), MNK(9, 9, 9),
    ],
    ids=repr,
)  # fmt: skip
def test_random_games_beside_a_naive_referee(game):
    rng = random.Random(7)
    for _ in range(max(2, 400 // game.area)):
        state, naive = game.new()[0], Naive(game)
        # Half of the games fill the board from one side, so that long lines happen on the big ones too.
        skew = rng.choice([0, 1])
        order = sorted(range(game.area), key=lambda a: skew * (a % game.columns) + 4 * rng.random())
        for ply, action in enumerate(order):
            assert game.player(state) == ply % game.players
            assert legal_actions(game, state) == sorted(order[ply:])
            naive.board[divmod(action, game.columns)] = ply % game.players
            game.play(state, action)
            assert (state.winner >= 0) == naive.wins(ply % game.players), game.position_text(state)
            if game.player(state) == TERMINAL:
                break
        winner = int(state.winner)
        lost = -1.0 / (game.players - 1)
        expected = [0.0 if winner < 0 else 1.0 if p == winner else lost for p in range(game.players)]
        assert [game.utility(state, p) for p in range(game.players)] == expected
        assert winner >= 0 or len(naive.board) == game.area


@pytest.mark.parametrize("exactly", [False, True])
@pytest.mark.parametrize("size", [7, 15])
def test_longer_lines(exactly, size):
    """x fills the gap of xx.xxx: six in a row."""
    game = MNK(size, size, 5, exactly=exactly)
    x, o = ["b1", "c1", "e1", "f1", "g1", "d1"], ["a3", "c3", "e3", "g3", "b5"]
    line = [name for pair in zip(x, [*o, ""], strict=True) for name in pair if name]
    state = game.parse_position(" ".join(line))
    assert (game.player(state) == TERMINAL) == (not exactly)
    six = game.position_text(state)
    assert game.player(game.parse_position(six)) == game.player(state)
    shorter = game.parse_position(" ".join(line).replace("b1", "a7"))
    assert game.player(shorter) == TERMINAL and game.utility(shorter, 0) == 1.0


def test_features_count_open_lines():
    for game in (MNK(5, 6, 4), MNK(8, 9, 4), MNK(9, 9, 5, players=3), MNK(5, 5, 3, players=3), MNK(3, 15, 5)):
        rng = random.Random(3)
        state = game.new()[0]
        for ply in range(game.area):
            if game.player(state) == TERMINAL:
                break
            out = np.zeros(game.num_features)
            assert game.features(state, out) == len(game.feature_names()) == game.num_features
            board, expected = game.cells(state), Counter()
            for y in range(game.rows):
                for x in range(game.columns):
                    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                        cells = [(y + i * down, x + i * right) for i in range(game.connect)]
                        if all(0 <= r < game.rows and 0 <= c < game.columns for r, c in cells):
                            owners = {int(board[cell]) for cell in cells} - {0}
                            if len(owners) == 1:
                                stones = sum(board[cell] > 0 for cell in cells)
                                plane = (owners.pop() - 1 - ply) % game.players
                                expected[plane * (game.connect - 1) + stones - 1] += 1
            assert out[:-1].tolist() == [expected[i] for i in range(game.num_features - 1)]
            game.play(state, rng.choice(legal_actions(game, state)))


def test_loud_moves():
    game = MNK()
    state = game.parse_position("xx./oo./...")
    assert [game.action_name(state, a) for a in legal_actions(game, state) if game.is_loud(state, a)] == ["c3", "c2"]
    big = make("gomoku")
    state = big.parse_position("a1 a2 b1 b2 c1 c2 d1 d2")
    assert [big.action_name(state, a) for a in legal_actions(big, state) if big.is_loud(state, a)] == ["e2", "e1"]


def test_positions():
    game = MNK()
    state = game.parse_position("a1 b2")
    assert game.position_text(state) == ".../.o./x.."
    assert game.position_text(game.parse_position("X.O/.X./...")) == "x.o/.x./..."
    assert game.player(game.parse_position("")) == 0
    assert game.utility(game.parse_position("xxx/oo./..."), 1) == -1.0
    assert "\033" in game.show(state)
    three = make("tic_tac_toe_three")
    won = three.parse_position("xxx./oozz/..../....")
    assert [three.utility(won, p) for p in range(3)] == [1.0, -0.5, -0.5]
    assert three.player(three.parse_position("xx../oo../zz../....")) == 0
    wide = MNK(19, 19, 5)
    assert wide.action_name(wide.new()[0], wide.parse_action(wide.new()[0], "S19")) == "s19"


def test_three_players():
    game = make("tic_tac_toe_three")
    state = game.parse_position("a1 a2 a4 b1 b2 c4 d1 c2")
    assert game.player(state) == TERMINAL
    assert [game.utility(state, p) for p in range(3)] == [-0.5, 1.0, -0.5]
    assert game.has_line(state, 1, 0, ZERO) and not game.has_line(state, 0, 0, ZERO)


@pytest.mark.parametrize(
    "text",
    ["a4", "a1 a1", "d1", "xx./.../...", "ooo/xx./xx.", "x.o/.x.", "xxxx/..../....", "z../.../...", "oxx/.x./..o/",
     "xxx/ooo/x..", "a3 a2 b3 b2 c3 c2", "5", "xxx/oo./o.."],
)  # fmt: skip
def test_bad_positions(text):
    with pytest.raises(InputError):
        MNK().parse_position(text)


def test_a_game_is_won_once():
    with pytest.raises(InputError, match="two lines"):
        MNK(4, 4, 3).parse_position("xxx./o..o/oo.o/xxx.")
    crossing = MNK(4, 4, 3).parse_position("xxx./xoo./x..o/...o")
    assert crossing.winner == 0


@pytest.mark.parametrize("parameters", [(0, 3, 3), (3, 20, 3), (3, 3, 4), (3, 3, 0), (3, 3, 3, 1), (3, 3, 3, 4)])
def test_bad_parameters(parameters):
    with pytest.raises(InputError):
        MNK(*parameters)


@pytest.mark.parametrize(
    "game",
    [MNK(), pytest.param(MNK(4, 5, 3, exactly=True), marks=pytest.mark.slow), pytest.param(MNK(9, 9, 5, players=3), marks=pytest.mark.slow),
     pytest.param(make("gomoku"), marks=pytest.mark.slow), pytest.param(MNK(8, 12, 5), marks=pytest.mark.slow),
     pytest.param(make("tic_tac_toe_three"), marks=pytest.mark.slow)],
    ids=repr,
)  # fmt: skip
def test_conformance(game):
    report = check_game(game, states=2000, texts=100, interpreted=60)
    assert report.ok, [str(broken) for broken in report.broken.values()]
