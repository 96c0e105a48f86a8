"""Go as playouts, learners, evaluations and people see it."""

import re

import numpy as np
import pytest
from naive_go import NaiveGo, board_of, diagram

from envs.compiled import njit
from envs.game import TERMINAL
from envs.go import Go
from envs.go_features import FEATURES
from envs.playouts import buffers
from envs.rng import generator
from models.evaluation import game_config, make_evaluation

GAME = Go()


# --- playouts ------------------------------------------------------------------------------------------


def test_playouts_end_by_two_passes():
    """Every playout move is legal; most playouts end long before the bound, with eyes left on both sides."""
    out, rng, lengths, finished = buffers(GAME)[0], generator(5), [], 0
    for _ in range(3):
        state, plies = GAME.new()[0], 0
        naive = NaiveGo(9, 9)
        with np.errstate(over="ignore"):
            while GAME.player(state) != TERMINAL:
                action = int(GAME.playout_action(state, out, rng))
                assert action == GAME.points or GAME.is_legal(state, GAME.point_of[action])
                if action != GAME.points:
                    assert not naive.is_eye(action, naive.turn)
                GAME.play(state, action)
                naive.play(None if action == GAME.points else action)
                plies += 1
        lengths.append(plies)
        finished += state.passes == 2
        assert board_of(GAME, state) == naive.board
    assert finished == 3 and sum(lengths) / 3 < 140


def test_true_eyes_are_kept_and_false_ones_filled():
    game = Go(size=5)
    state = game.parse_position(".x.x./xxxxx/...../...../..... b")
    assert [game.is_eye(state, game.point_of[a], 1) for a in (0, 2, 4, 10)] == [True, True, True, False]
    state = game.parse_position("...../.oxo./.x.x./.oxo./..... b")
    assert not game.is_eye(state, game.point_of[12], 1)
    state = game.parse_position("...../..xo./.x.x./..x../..... b")
    assert game.is_eye(state, game.point_of[12], 1)
    assert not game.is_eye(state, game.point_of[12], 2)


# --- what the mover sees -------------------------------------------------------------------------------


def exchanged(game: Go, state) -> str:
    """The same position with colours exchanged."""
    board = tuple((0, 2, 1)[cell] for cell in board_of(game, state))
    return diagram(game, board, "wb"[int(state.turn)])


def seen(game: Go, state) -> tuple[np.ndarray, dict[str, float]]:
    planes, numbers = np.zeros(game.observation_shape, np.float32), np.zeros(game.num_features)
    game.observe(state, planes)
    assert game.features(state, numbers) == len(FEATURES) == len(set(FEATURES))
    return planes, dict(zip(game.feature_names(), numbers.tolist(), strict=True))


def random_board(game: Go, plies: int, seed: int):
    out, rng, states = buffers(game)[0], generator(seed), game.new()
    with np.errstate(over="ignore"):
        for _ in range(plies):
            game.play(states[0], game.playout_action(states[0], out, rng))
    return game.parse_position(diagram(game, board_of(game, states[0])))


@pytest.mark.parametrize("plies", [5, 20, 40])
def test_planes_and_features_by_flood_fill(plies):
    game = Go(size=5, rows=6)
    state = random_board(game, plies, seed=plies)
    naive = NaiveGo(5, 6)
    naive.board = board = board_of(game, state)
    planes, features = seen(game, state)
    liberties = [naive.liberties(board, cell) if colour else 0 for cell, colour in enumerate(board)]
    for cell, colour in enumerate(board):
        expected = [colour == 1, colour == 2, liberties[cell] == 1, liberties[cell] == 2, liberties[cell] > 2]
        assert planes[:5].reshape(5, -1)[:, cell].tolist() == expected
    sign = (0, 1, -1)
    chains = {min(naive.region(board, cell)[0]) for cell, colour in enumerate(board) if colour}
    assert features["stones"] == board.count(1) - board.count(2)
    assert features["chains"] == sum(sign[board[chain]] for chain in chains)
    pairs = [(c, n) for c in range(game.points) if board[c] for n in naive.neighbours(c) if board[n] == 0]
    assert features["pseudo-liberties"] == sum(sign[board[c]] for c, _ in pairs)
    for who, colour in (("my", 1), ("their", 2)):
        atari = [chain for chain in chains if board[chain] == colour and liberties[chain] == 1]
        assert features[f"{who} chains in atari"] == len(atari)
        assert features[f"{who} stones in atari"] == sum(len(naive.region(board, chain)[0]) for chain in atari)
    around = [{board[n] for n in naive.neighbours(c)} for c in range(game.points)]
    empty = [c for c in range(game.points) if board[c] == 0]
    assert features["eyes"] == sum((around[c] == {1}) - (around[c] == {2}) for c in empty)
    assert features["frontier"] == sum((around[c] - {0} == {1}) - (around[c] - {0} == {2}) for c in empty)
    edge = [c for c in range(game.points) if c // 5 in (0, 5) or c % 5 in (0, 4)]
    assert features["stones on the first line"] == sum(sign[board[c]] for c in edge)


def test_both_sides_see_the_same():
    game = Go(size=5, komi=0.0)
    state = random_board(game, 25, seed=1)
    (planes, features), (turned, others) = seen(game, state), seen(game, game.parse_position(exchanged(game, state)))
    planes[9] = 1 - planes[9]  # whether I am Black
    assert (planes == turned).all()
    assert {name: value + 0.0 for name, value in features.items()} == {
        name: value + 0.0 for name, value in others.items()
    }


def test_the_last_moves_and_the_rest_of_the_planes():
    state = GAME.parse_position("C3 pass")
    planes, features = seen(GAME, state)
    assert planes[6].sum() == 0 and planes[7, 6, 2] == 1 and planes[7].sum() == 1
    assert (planes[8] == 1).all() and (planes[9] == 1).all() and (planes[10] == np.float32(-0.75)).all()
    assert np.allclose(planes[11], 2 / 162)
    assert features["they passed"] == 1 and features["komi"] == -7.5 and features["to move"] == 1
    state = Go(size=4).parse_position(".xo./x.xo/.xo./.... w B3")
    planes, features = seen(Go(size=4), state)
    assert features["ko"] == 1 and [tuple(p) for p in np.argwhere(planes[5])] == [(0, 3), (1, 2)]


def test_key_knows_the_mover_passes_and_ko():
    with np.errstate(over="ignore"):
        same = ["A1 B1 C1", "C1 B1 A1"]
        assert len({int(GAME.key(GAME.parse_position(text))) for text in same}) == 1
        texts = ["A1 B1", "A1 B1 pass", "A1 B1 pass pass", "A1 pass C1 pass", "B1 A1", ""]
        assert len({int(GAME.key(GAME.parse_position(text))) for text in texts}) == len(texts)
        game = Go(size=4)
        ko, no_ko = game.parse_position(".xo./x.xo/.xo./.... w B3"), game.parse_position(".xo./xo.o/.xo./.... b")
        assert board_of(game, ko) == board_of(game, no_ko) and game.key(ko) != game.key(no_ko)


def test_drawing():
    state = GAME.parse_position("C3 J9")
    plain = re.sub(r"\033\[[0-9;]*m", "", GAME.show(state))
    lines = plain.splitlines()
    assert lines[0].split() == list("ABCDEFGHJ") and lines[1] == " 9 . . . . . . . .(o) 9"
    assert lines[7] == " 3 . . x . . . . . . 3" and lines[-1] == "Black (x) to move" and len(lines) == 12
    assert "\033[1;36mx" in GAME.show(state)
    cells = GAME.cells(state)
    assert cells.shape == (9, 9) and cells[6, 2] == 1 and cells[0, 8] == 2 and cells.sum() == 3


# --- the evaluation of configs/go.toml -----------------------------------------------------------------


def test_evaluation():
    table = game_config(GAME)[0]["evaluation"]
    assert set(table["weights"]) <= set(FEATURES) and table["weights"]["komi"] == 1.0
    evaluation, scratch = make_evaluation("linear", GAME), np.zeros(GAME.num_features)

    def value(text: str) -> float:
        return evaluation.evaluate(GAME, GAME.parse_position(text), scratch)

    to_move = table["scale"] * (table["weights"]["to move"] - 7.5)
    assert value("") == pytest.approx(to_move)
    assert -value("E5") > -value("A9")  # the centre, not the corner
    rest = "/........." * 6
    for capture, elsewhere in (("A7", "E1"), ("A7", "A1"), ("A7", "pass")):  # two stones in the corner
        chased = f"ox......./ox......./.........{rest} b"
        assert -value(f"{chased} {capture}") > -value(f"{chased} {elsewhere}")
    assert -0.99 < value(f"xxxxxxxxx/xxxxxxxxx/.........{rest} w") < -0.3


@njit
def greedy_wins(game, evaluation, states, games, out, scratch, rng):
    """Games that a look one ply ahead wins against the playout policy, colours in turn."""
    wins = 0
    for number in range(games):
        game.start(states[0])
        while game.player(states[0]) >= 0:
            if (game.player(states[0]) + number) % 2 == 1:
                game.play(states[0], game.playout_action(states[0], out, rng))
                continue
            best, pick = np.inf, out[0]
            for i in range(game.actions(states[0], out)):
                states[1] = states[0]
                game.play(states[1], out[i])
                if game.player(states[1]) == TERMINAL:
                    value = game.utility(states[1], np.int64(states[1].turn))
                else:
                    value = evaluation.evaluate(game, states[1], scratch)
                if value < best:
                    best, pick = value, out[i]
            game.play(states[0], pick)
        wins += game.utility(states[0], number % 2) > 0
    return wins


@pytest.mark.slow
def test_one_ply_with_the_evaluation_beats_playouts():
    evaluation, scratch = make_evaluation("linear", GAME), np.zeros(GAME.num_features)
    wins = greedy_wins(GAME, evaluation, GAME.new(2), 100, buffers(GAME)[0], scratch, generator(1))
    assert wins >= 95
