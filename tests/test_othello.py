"""Othello against published counts, solved boards, the FForum suite, OpenSpiel and a plain referee.

tests/data/othello: perft.csv (public tables and a recount; a pass is a ply, a finished game stays a leaf),
fforum-1-19.obf (FForum suite of endgames: every legal move with its exact score, empties to the winner),
games.txt (two games recorded from OpenSpiel), playthrough.txt (a game as these rules write it).
"""

import csv
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyspiel
import pytest
from referees import look, play_beside_open_spiel, result, step

from envs.bits import popcount
from envs.check import check_game
from envs.compiled import njit
from envs.errors import InputError
from envs.game import TERMINAL, legal_actions
from envs.othello import Othello
from envs.othello_notation import move_scores
from envs.registry import make
from envs.rng import below, generator
from selfplay.perft import perft

DATA = Path(__file__).parent / "data" / "othello"
START = "---------------------------OX------XO--------------------------- X"
SIZES = [4, 6, 8]
# Black is stuck, white is not: only h1 is empty, at the end of a row of black discs that begins with a white one.
BLACK_PASSES = "OXXXXXX-" + "O" * 56 + " X"

COUNTS: dict[int, dict[int, int]] = {4: {}, 6: {}, 8: {}}
with open(DATA / "perft.csv", newline="") as rows:
    for board, depth, count, *_ in list(csv.reader(rows))[1:]:
        COUNTS[int(board[0])][int(depth)] = int(count)

FFORUM = (DATA / "fforum-1-19.obf").read_text().splitlines()


# --- counts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_perft(size):
    depths = [depth for depth in COUNTS[size] if depth <= 10 or size < 8]
    assert {depth: perft(Othello(size), depth).nodes for depth in depths} == {d: COUNTS[size][d] for d in depths}


@pytest.mark.slow
@pytest.mark.parametrize("depth", [11, 12])
def test_deep_perft(depth):
    assert perft(Othello(), depth).nodes == COUNTS[8][depth]


@dataclass(frozen=True)
class WithoutFinished(Othello):
    """Counts sequences of exactly that many moves."""

    perft_counts_finished = False


def test_perft_without_finished_games():
    """OEIS A124004; 228 games are over after nine plies."""
    expected = [1, 4, 12, 56, 244, 1396, 8200, 55092, 390216, 3005288, 24571056]
    assert [perft(WithoutFinished(), depth).nodes for depth in range(11)] == expected


# --- values ------------------------------------------------------------------------------------------


@njit
def solve(game, states, moves, level, alpha, beta):
    """Fail-soft alpha-beta from the mover's side; the reply that leaves fewest moves is searched first."""
    state = states[level]
    mover = game.player(state)
    if mover == -2:
        return game.utility(state, state.turn)
    count = game.actions(state, moves[level])
    best = -100.0
    done = np.uint64(0)
    for _ in range(count):
        chosen, fewest = -1, 100
        for i in range(count):
            if (done >> np.uint64(i)) & np.uint64(1) == 0:
                states[level + 1] = states[level]
                game.play(states[level + 1], moves[level, i])
                if popcount(states[level + 1].moves) < fewest:
                    chosen, fewest = i, popcount(states[level + 1].moves)
        done |= np.uint64(1) << np.uint64(chosen)
        states[level + 1] = states[level]
        game.play(states[level + 1], moves[level, chosen])
        best = max(best, -solve(game, states, moves, level + 1, -beta, -max(alpha, best)))
        if best >= beta:
            break
    return best


def value(game, state):
    states, moves = game.new(130), np.empty((130, game.max_legal), np.int64)
    states[0] = state
    return solve(game, states, moves, 0, -100.0, 100.0)


@pytest.mark.parametrize(
    ("game", "expected"),
    [
        (Othello(4, discs=True), -8),
        (Othello(4, True, True), -10),
        pytest.param(Othello(4), -1, marks=pytest.mark.slow),
    ],
)
def test_value_of_the_4x4_board(game, expected):
    assert value(game, game.new()[0]) == expected


@pytest.mark.parametrize("line", FFORUM)
def test_legal_moves_of_fforum(line):
    game = Othello()
    state = game.parse_position(line)
    assert {game.action_name(state, action) for action in legal_actions(game, state)} == set(move_scores(line))


@pytest.mark.parametrize("line", FFORUM)
def test_values_of_fforum(line):
    game = Othello(discs=True, credit_empties=True)
    assert value(game, game.parse_position(line)) == max(move_scores(line).values())


@pytest.mark.slow
@pytest.mark.parametrize("line", FFORUM)
def test_value_of_every_move_of_fforum(line):
    game = Othello(discs=True, credit_empties=True)
    for move, score in move_scores(line).items():
        state = game.parse_position(line)
        game.play(state, game.parse_action(state, move))
        assert -value(game, state) == score, move


# --- referees ----------------------------------------------------------------------------------------


def test_random_games_beside_open_spiel():
    """No difference in movers, legal moves, passes, action numbers and results."""
    assert play_beside_open_spiel(Othello(), pyspiel.load_game("othello"), games=500) > 25_000


@pytest.mark.slow
def test_many_random_games_beside_open_spiel():
    play_beside_open_spiel(Othello(), pyspiel.load_game("othello"), games=20_000, seed=1)


def turned(board, size, mover, cell):
    """What a move turns, by the letter of the rules: walk over their discs until one of mine."""
    found = []
    if board[cell] == ".":
        for down in (-1, 0, 1):
            for right in (-1, 0, 1):
                row, column, run = cell // size + down, cell % size + right, []
                while 0 <= row < size and 0 <= column < size and board[size * row + column] not in (".", mover):
                    run.append(size * row + column)
                    row, column = row + down, column + right
                if 0 <= row < size and 0 <= column < size and board[size * row + column] == mover:
                    found += run
    return found


REFEREED = {4: Othello(4, discs=True), 6: Othello(6, discs=True), 8: Othello(8, True, True)}


@pytest.mark.parametrize("size", SIZES)
def test_random_games_beside_a_plain_referee(size):
    """Boards, legal moves, passes, ends and disc counts on every size, where OpenSpiel knows 8x8 only."""
    rng = random.Random(size)
    game, out, nothing = REFEREED[size], np.empty(64, np.int64), np.empty(1)
    passes = early_ends = 0
    for _ in range(60):
        state, mover, other = game.new()[0], "X", "O"
        board = list("".join(game.position_text(state).split()[0]).replace("-", "."))
        while True:
            player, count = look(game, state, out, nothing)
            assert "".join(board).replace(".", "-") + " " + mover == game.position_text(state)
            moves = [cell for cell in range(size * size) if turned(board, size, mover, cell)]
            if not moves and not any(turned(board, size, other, cell) for cell in range(size * size)):
                assert player == TERMINAL
                black, white = board.count("X"), board.count("O")
                lead = black - white
                if game.credit_empties and lead:
                    lead += (size * size - black - white) * (1 if lead > 0 else -1)
                assert [result(game, state, p) for p in (0, 1)] == [lead, -lead]
                early_ends += "." in board
                break
            assert player == "XO".index(mover)
            assert list(out[:count]) == (moves or [size * size])
            action = rng.choice(moves or [size * size])
            passes += not moves
            if moves:
                for cell in [action, *turned(board, size, mover, action)]:
                    board[cell] = mover
            step(game, state, action)
            mover, other = other, mover
    assert passes > 10
    assert early_ends > 0 or size == 8


def playthrough(seed: int) -> str:
    """A random game: before each move the position, the key, the legal moves and the move; then the result."""
    game, rng, lines = Othello(discs=True), generator(seed), []
    state = game.new()[0]
    with np.errstate(over="ignore"):
        while game.player(state) != TERMINAL:
            actions = legal_actions(game, state)
            moves = [f"{game.action_name(state, action)}={action}" for action in actions]
            pick = int(below(rng, len(actions)))
            text, key = game.position_text(state), int(game.key(state))
            lines.append(f"{text} | {key:016x} | {' '.join(moves)} | {moves[pick]}")
            game.play(state, actions[pick])
    values = [game.utility(state, player) for player in range(2)]
    return "\n".join([*lines, f"{game.position_text(state)} | {values}", ""])


def test_golden_playthrough():
    """The rules, actions, keys and texts of a whole game, as recorded: a change must be on purpose."""
    assert playthrough(seed=24) == (DATA / "playthrough.txt").read_text()


def test_recorded_games():
    game = Othello()
    for line in (DATA / "games.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        move, position, then = line.split(" | ")
        if move == "start":
            state = game.new()[0]
        else:
            game.play(state, game.parse_action(state, move))
        if then.startswith("over"):
            assert game.player(state) == TERMINAL
            assert game.position_text(state)[:-2] == position
            assert game.utility(state, 0) == int(then.split()[-1])
        else:
            assert game.position_text(state) == position
            assert [game.action_name(state, action) for action in legal_actions(game, state)] == then.split()


@pytest.mark.parametrize("game", [Othello(4, discs=True), Othello(6), Othello(8, True, True)])
def test_contract(game):
    report = check_game(game, states=2000, texts=60, interpreted=60)
    assert report.ok, [str(broken) for broken in report.broken.values()]


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("parameters", [{}, {"discs": True}, {"discs": True, "credit_empties": True}])
def test_contract_of_all_options(size, parameters):
    report = check_game(make("othello", size=size, **parameters), states=10_000)
    assert report.ok, [str(broken) for broken in report.broken.values()]


# --- ends and passes ---------------------------------------------------------------------------------


def test_pass_is_the_only_move():
    game = Othello()
    state = game.parse_position(BLACK_PASSES)
    assert game.player(state) == 0
    assert legal_actions(game, state) == [64]
    for text in ("pass", "PS", "pa", " -- "):
        assert game.parse_action(state, text) == 64
    game.play(state, 64)
    assert game.player(state) == 1
    assert [game.action_name(state, action) for action in legal_actions(game, state)] == ["h1"]
    game.play(state, 7)
    assert game.player(state) == TERMINAL
    assert [game.utility(state, player) for player in (0, 1)] == [-1, 1]


def test_pass_is_refused_where_there_is_a_move():
    with pytest.raises(InputError, match="legal moves: d3, c4, f5, e6"):
        Othello().parse_action(Othello().new()[0], "pass")


@pytest.mark.parametrize(
    ("game", "expected"), [(Othello(), 1), (Othello(discs=True), 13), (Othello(8, True, True), 64)]
)
def test_shortest_wipe_out(game, expected):
    state = game.parse_position("f5d6c5f4e7f6g5e6e3")
    assert game.player(state) == TERMINAL
    assert [game.utility(state, player) for player in (0, 1)] == [expected, -expected]
    assert game.max_utility >= expected


def test_a_tie_has_no_winner_to_credit():
    """A game that ends with two cells empty and 31 discs each."""
    game = Othello(8, True, True)
    state = game.parse_position(
        "c4c5e6f5g6f7g8c3d3f4f3e7b4b3e8e2c2g4f1a4a2g5b5b1h4a6b6g3f6d1d6c6h3d7b2g7d8a3e3c7d2c1h7h5f2g2f8h2g1e1b7h6a1h8a5b8a7c8"
    )
    assert [game.position_text(state)[:64].count(mark) for mark in "XO-"] == [31, 31, 2]
    assert game.player(state) == TERMINAL
    assert [game.utility(state, player) for player in (0, 1)] == [0, 0]


@pytest.mark.parametrize("parameters", [{"size": 5}, {"size": 10}, {"size": 0}, {"credit_empties": True}])
def test_bad_parameters(parameters):
    with pytest.raises(InputError):
        Othello(**parameters)


# --- what searches and learners see ------------------------------------------------------------------


def test_symmetric_starts():
    """Four of the eight symmetries keep the start; the other four swap the colours' places."""
    game = Othello()
    kept = 0
    for symmetry in range(8):
        state = game.new()[0]
        game.transform(state, symmetry)
        kept += state == game.new()[0]
        assert popcount(state.moves) == 4
    assert kept == 4


def test_keys_tell_the_side_to_move():
    game = Othello()
    keys = set()
    for turn in (0, 1):
        state = game.new()[0]
        state.turn = turn
        with np.errstate(over="ignore"):
            keys.add(int(game.key(state)))
    assert len(keys) == 2


def features(text):
    game = Othello()
    out = np.empty(game.num_features)
    assert game.features(game.parse_position(text), out) == game.num_features == len(game.feature_names())
    half = game.num_features // 2
    return {name[:-7]: round(out[i] + out[half + i], 9) for i, name in enumerate(game.feature_names()[:half])}


def test_features():
    assert set(features(START).values()) == {0.0, -1.0, 1.0}  # an even number of cells is left; black is to move
    rows = ["XXXO----", "XO------", "X-------", "---OX---", "---XO---", "-----O--", "------O-", "--------"]
    text = "".join(rows) + " X"
    with pytest.raises(InputError):
        features(text.replace("XO------X", "X-------X"))  # the corner's discs would hang in the air
    board = ["XXXO----", "XOO-----", "X-XO----", "---OX---", "---XO---", "-----O--", "------O-", "--------"]
    found = features("".join(board) + " X")
    black, white = "".join(board).count("X"), "".join(board).count("O")
    assert found["discs"] == black - white
    assert found["corners"] == 1
    assert found["stable discs"] == 5  # the corner and four discs along its edges; b2 is white
    assert found["X-squares of empty corners"] == -1  # g7; b2's corner is taken
    assert found["edges"] == 4 - 1
    assert found["to move"] == 1


def test_features_of_the_other_side_are_negated():
    for line in FFORUM:
        text = line.partition(";")[0]
        ours, theirs = features(text[:-1] + "X"), features(text[:-1] + "O")
        for name in ours.keys() - {"last move by parity", "to move"}:
            assert ours[name] == -theirs[name], name


def test_loud_moves():
    game = Othello()
    assert [a for a in range(65) if game.is_loud(game.new()[0], a)] == [0, 7, 56, 63]


def test_show():
    plain = Othello().show(Othello().new()[0])
    for colour in ("\033[96m", "\033[93m", "\033[90m", "\033[0m"):
        assert colour in plain
        plain = plain.replace(colour, "")
    lines = plain.splitlines()
    assert lines[0] == "  a b c d e f g h"
    assert lines[3:6] == ["3 . . . * . . . .", "4 . . * O X . . .", "5 . . . X O * . ."]
    assert lines[9] == "X 2, O 2; X to move"
    assert Othello().show(Othello().parse_position(BLACK_PASSES)).endswith("X must pass")


def test_play_needs_no_wrap_around():
    """Interpreted rules run without an overflow warning (warnings are errors here) and agree with compiled ones."""
    game, rng = Othello(), random.Random(5)
    for _ in range(10):
        state, compiled = game.new()[0], game.new()[0]
        while game.player(state) != TERMINAL:
            action = rng.choice(legal_actions(game, state))
            game.play(state, action)
            step(game, compiled, action)
            assert state.tobytes() == compiled.tobytes()
