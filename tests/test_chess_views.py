"""Chess as its players and searches see it: draws, keys, observations, features, hints, the evaluation, drawings."""

import random
import re
import tomllib
from collections import Counter
from pathlib import Path

import chess
import numpy as np
import psutil
import pytest

from envs.chess import Chess
from envs.chess_board import CHECKMATE, FIFTY_MOVES, MATERIAL, REPETITION
from envs.chess_features import FEATURES, MEANINGS, square_tables
from envs.chess_fen import POSITIONS
from envs.compiled import njit
from envs.errors import InputError
from envs.game import TERMINAL, legal_actions
from envs.playouts import play_random_games

DATA = Path(__file__).parent / "data" / "chess"
GAME = Chess()
SUITE = [line.split(";")[0].strip() for line in (DATA / "perftsuite_63.epd").read_text().splitlines()]
TEXTS = [*POSITIONS.values(), *SUITE[2::5], "startpos moves e2e4 a7a6 e4e5 d7d5"]


def after(text: str, *moves: str, game: Chess = GAME):
    state = game.parse_position(text)
    for move in moves:
        game.play(state, game.parse_action(state, move))
    return state


def key(state) -> int:
    with np.errstate(over="ignore"):
        return int(GAME.key(state))


def other_colours(text: str) -> str:
    """The same position with colours exchanged and the board upside down."""
    board, turn, castling, passant, *rest = GAME.position_text(GAME.parse_position(text)).split()
    board = "/".join(reversed(board.split("/"))).swapcase()
    castling = "".join(sorted(castling.swapcase()))
    passant = passant.translate(str.maketrans("36", "63"))
    return " ".join([board, "wb"[turn == "w"], castling, passant, *rest])


# --- when a game ends --------------------------------------------------------------------------------------


def test_fifty_moves():
    state = after("7k/8/8/8/8/8/8/R3K3 w Q - 98 80", "a1a2", "h8g8")
    assert state.clock == 100 and state.ending == FIFTY_MOVES and GAME.player(state) == TERMINAL
    assert GAME.utility(state, 0) == GAME.utility(state, 1) == 0.0
    assert after("7k/8/8/8/8/8/8/R3K3 w Q - 98 80", "a1a2", "h8g8", game=Chess(draw_rules=False)).ending == 0
    assert after("7k/6p1/8/8/8/8/8/R3K3 b Q - 99 80", "g7g5").clock == 0


def test_checkmate_on_the_hundredth_ply_is_checkmate():
    state = after("7k/8/6K1/8/8/8/8/R7 w - - 99 80", "a1a8")
    assert state.ending == CHECKMATE and GAME.utility(state, 0) == 1.0


def test_threefold_repetition():
    dance = ["g1f3", "g8f6", "f3g1", "f6g8"]
    state = after("startpos", *dance, *dance[:3])
    assert state.ending == 0 and state.repetitions == 1
    GAME.play(state, GAME.parse_action(state, "f6g8"))
    assert state.ending == REPETITION and state.repetitions == 2 and GAME.utility(state, 0) == 0.0
    assert after("startpos", *dance, *dance, game=Chess(draw_rules=False)).ending == 0


def test_lost_castling_rights_make_another_position():
    """The first pictures still have rights; so what looks like the third time is the second."""
    dance = ["h1g1", "a8b8", "g1h1", "b8a8"]
    fen = "r3k3/8/8/8/8/8/8/4K2R w Kq - 0 1"
    assert after(fen, *dance, *dance).ending == 0
    assert after(fen, *dance, *dance, *dance[:1]).ending == 0
    assert after(fen, *dance, *dance, *dance[:2]).ending == REPETITION


def test_an_en_passant_chance_makes_another_position():
    """The capture is legal only at once; a square behind a pawn that nobody can take changes nothing."""
    dance = ["e1e2", "e8e7", "e2e1", "e7e8"]
    taken = after("4k3/3p4/8/4P3/8/8/8/4K3 b - - 0 1", "d7d5", *dance)
    assert taken.repetitions == 0
    assert after("4k3/3p4/8/6P1/8/8/8/4K3 b - - 0 1", "d7d5", *dance).repetitions == 1


@pytest.mark.parametrize(
    ("men", "drawn"),
    [
        ("4K3", True),
        ("4KN2", True),
        ("4KB2", True),
        ("4KNN1", False),
        ("4KBN1", False),
        ("4KB1B", True),  # f1 and h1, both light
        ("4KBB1", False),
        ("4KBb1", False),
        ("4KB1b", True),
        ("4KNn1", False),
        ("4KBn1", False),
        ("4KR2", False),
        ("4KQ2", False),
    ],
)
def test_insufficient_material(men, drawn):
    for fen in (f"8/8/8/4k3/8/8/8/{men} w - - 0 1", other_colours(f"8/8/8/4k3/8/8/8/{men} w - - 0 1")):
        assert (GAME.parse_position(fen).ending == MATERIAL) == drawn
    assert GAME.parse_position("8/8/8/4k3/8/8/7P/4K3 w - - 0 1").ending == 0


def test_max_length_is_a_bound_by_counting():
    assert GAME.max_length == (16 * 6 + 30 + 1) * 100
    assert GAME.state.itemsize == sum(GAME.state[name].itemsize for name in GAME.state.names) <= 1024


# --- what the mover sees -------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", TEXTS)
def test_both_sides_see_the_same(text):
    views = []
    for fen in (text, other_colours(text)):
        state = GAME.parse_position(fen)
        planes, numbers = np.zeros(GAME.observation_shape, np.float32), np.zeros(GAME.num_features)
        GAME.observe(state, planes)
        GAME.features(state, numbers)
        views.append((planes.tolist(), numbers.tolist(), legal_actions(GAME, state)))
    assert views[0] == views[1]


def test_key_knows_turn_rights_and_en_passant_but_no_counters():
    fens = [
        "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1",
        "r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1",
        "r3k2r/8/8/8/8/8/8/R3K2R w KQk - 0 1",
        "r3k2r/8/8/8/8/8/8/R3K2R w - - 0 1",
        "4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1",
        "4k3/8/8/3pP3/8/8/8/4K3 w - - 0 1",
    ]
    assert len({key(GAME.parse_position(fen)) for fen in fens}) == len(fens)
    assert key(GAME.parse_position(fens[0])) == key(GAME.parse_position(fens[0].replace("0 1", "7 30")))
    # A double step that nobody can answer en passant leads to the same position as two single steps.
    slow = after("startpos", "e2e3", "b8c6", "e3e4", "c6b8", "g1f3")
    fast = after("startpos", "g1f3", "b8c6", "e2e4", "c6b8", "f3g1", "b8c6", "g1f3", "c6b8")
    assert slow.turn != fast.turn and key(slow) != key(fast)
    assert key(after("startpos", "e2e4", "e7e6", "d2d3")) == key(after("startpos", "d2d3", "e7e6", "e2e4"))


def test_transpositions_meet():
    """Different orders of the same moves, and castling by hand or by the rule, where rights are gone."""
    lines = [["e2e4", "g1f3", "f1c4"], ["g1f3", "e2e4", "f1c4"]]
    replies = ["b8c6", "g8f6", "d7d6"]
    keys = {key(after("startpos", *[m for pair in zip(line, replies, strict=True) for m in pair])) for line in lines}
    assert len(keys) == 1


def test_observation():
    planes = np.zeros(GAME.observation_shape, np.float32)
    GAME.observe(GAME.parse_position("4k2r/8/8/3pP3/8/8/8/4K1N1 w k d6 25 30"), planes)
    where = {(int(p), int(r), int(c)) for p, r, c in np.argwhere(planes[:12])}
    assert where == {(0, 3, 4), (1, 7, 6), (5, 7, 4), (6, 3, 3), (9, 0, 7), (11, 0, 4)}
    assert [bool(planes[i].all()) for i in range(12, 16)] == [False, False, True, False] and not planes[12:14].any()
    assert np.argwhere(planes[16]).tolist() == [[2, 3]] and not planes[17:19].any()
    assert (planes[19] == 0.25).all()
    planes[:] = 0
    GAME.observe(after("startpos", "g1f3", "g8f6", "f3g1", "f6g8"), planes)
    assert planes[17].all() and not planes[18].any() and (planes[19] == np.float32(0.04)).all()


def features(text: str) -> dict[str, float]:
    numbers = np.zeros(GAME.num_features)
    assert GAME.features(GAME.parse_position(text), numbers) == len(FEATURES)
    return dict(zip(GAME.feature_names(), numbers.tolist(), strict=True))


def test_features_by_hand():
    assert {n: v for n, v in features("startpos").items() if abs(v) > 1e-9} == {"to move": 1.0}
    seen = features("4k3/8/8/8/4P3/4P3/P6p/4K3 w - - 0 1")
    assert seen["pawns"] == 2 and seen["doubled pawns"] == 1 and seen["isolated pawns"] == 3 - 1
    assert seen["passed pawns"] == 2 - 1  # a2 and e4 (e3 stands behind) against h2
    assert seen["passed pawn advance"] == pytest.approx(0.2 * 2 - 0.2 * 5)
    assert seen["passed pawn advance, squared"] == pytest.approx(0.16 - 1.0)
    assert seen["protected pawns"] == 0
    distance = (5 - 4) + (3 - 4) - (3 - 7)  # to a3, e5 and h1: the other king's moves less the own king's
    assert seen["kings and passed pawns, endgame"] == pytest.approx(0.2 * distance)
    seen = features("4k3/8/3n4/4P3/3P4/2P5/8/4K3 b - - 0 1")
    assert seen["protected pawns"] == -1.0 and seen["men attacked by pawns"] == -1.0 and seen["knights"] == 1
    seen = features("r3k3/1R6/8/3pN3/3P4/8/8/2B1KB2 w - - 0 1")
    assert seen["bishop pair"] == 1 and seen["rooks on open files"] == 0 and seen["rooks on the seventh rank"] == 1
    assert seen["knights on outposts"] == 1
    assert seen["pawns on the bishops' colour"] == 0.25  # d4 and c1 are dark
    assert features("4k3/8/8/8/8/8/4p3/3RK3 w - - 0 1")["rooks on open files"] == 1
    assert features("4k3/3p4/8/8/8/8/8/3RK3 w - - 0 1")["rooks on half-open files"] == 1
    seen = features("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1")
    assert seen["castling rights"] == 1.0
    assert seen["rook mobility"] == pytest.approx((7 + 3 + 7 + 2) / 8)
    assert features("4k3/8/8/8/8/8/4R3/4K3 b - - 0 1")["in check"] == -1
    seen = features("6k1/8/8/8/6Q1/7R/8/4K3 b - - 0 1")
    assert seen["queens' grip on the king"] == -0.5 * 1 and seen["rooks' grip on the king"] == -0.5 * 2
    assert seen["joint attack on the king"] == -0.5


def test_every_feature_is_explained_and_every_square_valued():
    assert len(MEANINGS) == GAME.num_features and FEATURES[0] == "pawns"
    table = square_tables()
    assert table.shape == (6, 64) and np.isfinite(table).all()
    assert table[0, 28] > table[0, 12] > table[0, 24]  # e4, e2, a4
    assert table[2, 27] > table[2, 18] > table[2, 1] and table[4, 6] > table[4, 4] > table[4, 28]
    assert table[5, 27] == table[5].max() and table[5, 0] == table[5].min()


# --- the evaluation made by hand -----------------------------------------------------------------------------

CONFIG = tomllib.loads((Path(__file__).parent.parent / "configs" / "chess.toml").read_text())["evaluation"]


def evaluate(text: str) -> float:
    return sum(CONFIG["weights"][name] * value for name, value in features(text).items() if name in CONFIG["weights"])


def test_the_evaluation_names_features():
    assert set(CONFIG["weights"]) <= set(FEATURES)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1", "startpos"),  # after e4: worse for black
        ("r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5N2/PPPP1PPP/RNBQ1RK1 b kq - 0 1", "startpos"),
        ("4k3/8/8/8/8/8/8/R3K3 b - - 0 1", "4k3/8/8/8/8/8/8/N3K3 b - - 0 1"),
        ("4k3/P7/8/8/8/8/8/4K3 b - - 0 1", "4k3/8/8/8/8/P7/8/4K3 b - - 0 1"),
        ("r4rk1/ppp2ppp/8/8/8/8/PPP2PPP/R4RK1 b - - 0 1", "r4rk1/ppp2ppp/8/8/8/2P5/P1P2PPP/R4RK1 b - - 0 1"),
        ("7k/8/8/8/8/8/8/QK6 b - - 0 1", "8/8/8/3k4/8/8/8/QK6 b - - 0 1"),
    ],
)
def test_the_evaluation_prefers(better, worse):
    """Black is to move: the first position is better for white than the second."""
    assert evaluate(better) < evaluate(worse.replace(" w ", " b "))


@pytest.mark.parametrize("text", TEXTS)
def test_the_evaluation_is_fair(text):
    """What is good for one side is bad for the other: exchanging the colours and the turn flips all but the tempo."""
    fen = GAME.position_text(GAME.parse_position(text))
    board, turn, castling, *_ = fen.split()
    flipped = " ".join([board, "wb"[turn == "w"], castling, "-", "0", "1"])
    if GAME.parse_position(fen).checkers:
        return
    tempo = CONFIG["weights"]["to move"]
    assert evaluate(fen) - tempo == pytest.approx(-(evaluate(flipped) - tempo))


def test_evaluations_stay_below_a_mate():
    """The greatest armies that pawns can become, beside a bare king."""
    rng, tried, greatest = random.Random(0), 0, 0.0
    while tried < 100:
        board = ["1"] * 64
        for square, letter in zip(rng.sample(range(64), 17), "KQQQQQQQQQRRBBNNk", strict=True):
            board[square] = letter
        fen = "/".join("".join(board[i : i + 8]) for i in range(0, 64, 8))
        fen = re.sub("1+", lambda run: str(len(run[0])), fen)
        try:
            greatest = max(greatest, -evaluate(f"{fen} b - - 0 1"))
            tried += 1
        except InputError:  # more than two men give check
            continue
    assert 0.7 < greatest * CONFIG["scale"] < 0.95


# --- hints for searches --------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", TEXTS)
def test_loud_moves_are_captures_and_queens(text):
    state = GAME.parse_position(text)
    for action in legal_actions(GAME, state):
        san = GAME.san(state, action)
        assert GAME.is_loud(state, action) == ("x" in san or "=Q" in san), san
        assert (GAME.move_value(state, action) > 0) == GAME.is_loud(state, action), san


def test_the_dearest_victim_comes_first_then_the_cheapest_taker():
    state = GAME.parse_position("3q2k1/2P5/8/3r4/4P3/1B6/3R4/6K1 w - - 0 1")
    values = {GAME.san(state, a): GAME.move_value(state, a) for a in legal_actions(GAME, state)}
    assert (
        values["cxd8=Q+"] > values["cxd8=R+"] == values["c8=Q"] > values["exd5"] > values["Bxd5+"] > values["Rxd5"] > 0
    )
    state = GAME.parse_position("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1")
    assert GAME.move_value(state, GAME.parse_action(state, "exd6")) == 8 - 1


PRICES = {chess.PAWN: 1, chess.KNIGHT: 3, chess.BISHOP: 3, chess.ROOK: 5, chess.QUEEN: 9, chess.KING: 100}


def gain_on(board: chess.Board, square: int, side: bool) -> int:
    """What a side wins by taking on a square with its cheapest man, or not at all; by trying it out on a board."""
    takers = board.attackers(side, square)
    if not takers:
        return 0
    taker = min(takers, key=lambda s: PRICES[board.piece_type_at(s)])
    after = board.copy(stack=False)
    man, victim = after.remove_piece_at(taker), after.piece_type_at(square)
    after.set_piece_at(square, man)
    if man.piece_type == chess.KING and after.attackers(not side, square):
        return 0
    return max(0, PRICES[victim] - gain_on(after, square, not side))


def loses_by_trying(board: chess.Board, move: chess.Move) -> bool:
    after = board.copy(stack=False)
    won = PRICES.get(after.piece_type_at(move.to_square), 0)
    if board.is_en_passant(move):
        after.remove_piece_at(chess.square(chess.square_file(move.to_square), chess.square_rank(move.from_square)))
        won = 1
    after.set_piece_at(move.to_square, after.remove_piece_at(move.from_square))
    return won - gain_on(after, move.to_square, not board.turn) < 0


def test_exchanges_beside_trying_them_out():
    """Random positions of many pieces: every move but promotions, castling and the king's, quiet ones too."""
    rng, verdicts = random.Random(4), Counter()
    for text in [*TEXTS, *SUITE[:2], *POSITIONS.values()] * 2:
        state = GAME.parse_position(text)
        for _ in range(rng.randrange(1, 14)):
            if GAME.player(state) == TERMINAL:
                break
            board = chess.Board(GAME.position_text(state))
            actions = legal_actions(GAME, state)
            for action in actions:
                move = chess.Move.from_uci(GAME.action_name(state, action))
                loses = GAME.loses_material(state, action)
                if move.promotion or board.piece_type_at(move.from_square) == chess.KING:
                    assert not loses
                else:
                    verdicts[loses, GAME.is_loud(state, action)] += 1
                    assert loses == loses_by_trying(board, move), (board.fen(), move.uci())
            GAME.play(state, rng.choice(actions))
    assert min(verdicts[loses, loud] for loses in (True, False) for loud in (True, False)) > 50, verdicts


@pytest.mark.parametrize(
    ("fen", "word", "loses"),
    [
        ("1k1r4/1pp4p/p7/4p3/8/P5P1/1PP4P/2K1R3 w - - 0 1", "Rxe5", False),  # nobody takes back
        ("1k1r3q/1ppn3p/p4b2/4p3/8/P2N2P1/1PP1R1BP/2K1Q3 w - - 0 1", "Nxe5", True),  # a knight for a pawn
        ("4k3/8/3p4/4p3/8/8/4R3/4K3 w - - 0 1", "Rxe5", True),
        ("4k3/8/3p4/4r3/8/8/4R3/4R1K1 w - - 0 1", "Rxe5", False),
        ("4k3/8/3p4/4p3/3P4/8/4R3/4K3 w - - 0 1", "dxe5", False),
    ],
)
def test_exchanges_by_hand(fen, word, loses):
    state = GAME.parse_position(fen)
    assert GAME.loses_material(state, GAME.parse_action(state, word)) == loses


@pytest.mark.parametrize("text", TEXTS)
def test_null_moves(text):
    state = GAME.parse_position(text)
    pieces = bool(state.mine & ~(state.pawns | state.kings))
    assert GAME.can_pass(state) == (pieces and not GAME.in_check(state)) and GAME.in_check(state) == bool(
        state.checkers
    )
    if not GAME.can_pass(state):
        return
    board, turn, castling, _, _, number = GAME.position_text(state).split()
    passed = state.copy()
    GAME.pass_turn(passed)
    expected = f"{board} {'wb'[turn == 'w']} {castling} - {state.clock} {int(number) + (turn == 'b')}"
    assert GAME.position_text(passed) == expected
    assert key(passed) == key(GAME.parse_position(expected)) and key(passed) != key(state)
    assert legal_actions(GAME, passed) == legal_actions(GAME, GAME.parse_position(expected))


def test_no_null_move_in_check_or_with_pawns_alone():
    assert not GAME.can_pass(GAME.parse_position("4k3/8/8/8/8/8/4r3/RN2K3 w - - 0 1"))
    assert not GAME.can_pass(GAME.parse_position("4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"))
    assert GAME.can_pass(GAME.parse_position("4k3/8/8/8/8/8/4P3/N3K3 w - - 0 1"))


@njit
def hints(game, state, action, scratch):
    """All hints of the contract, compiled; the state passes."""
    seen = game.move_value(state, action), game.is_loud(state, action), game.loses_material(state, action)
    checked, can, counted = game.in_check(state), game.can_pass(state), game.count_actions(state, scratch)
    if can:
        game.pass_turn(state)
    return seen, checked, can, counted


@pytest.mark.slow
def test_compiled_hints_agree():
    for text in TEXTS:
        state, scratch = GAME.parse_position(text), np.empty(GAME.max_legal, np.int64)
        actions = legal_actions(GAME, state)
        for action in actions:
            compiled = state.copy()
            seen = hints(GAME, compiled, action, scratch)
            plain = GAME.move_value(state, action), GAME.is_loud(state, action), GAME.loses_material(state, action)
            assert seen == (plain, GAME.in_check(state), GAME.can_pass(state), len(actions))
        if GAME.can_pass(state):
            GAME.pass_turn(state)
            assert compiled.tobytes() == state.tobytes()


# --- drawings and memory -------------------------------------------------------------------------------------


def test_drawing():
    state = GAME.parse_position("startpos moves e2e4")
    text = GAME.show(state)
    plain = re.sub(r"\033\[[0-9;]*m", "", text).splitlines()
    assert plain[0] == "8  ♜  ♞  ♝  ♛  ♚  ♝  ♞  ♜ " and plain[7] == "1  ♖  ♘  ♗  ♕  ♔  ♗  ♘  ♖ "
    assert plain[4].split() == ["4", "♙"] and plain[8].split() == list("abcdefgh")
    assert plain[9] == GAME.position_text(state)
    assert text.count("\033[48;5;223") == text.count("\033[48;5;137") == 32
    cells, glyphs = GAME.cells(state), GAME.glyphs(state)
    assert cells.shape == (8, 8) and (cells[:2] == 2).all() and (cells[7] == 1).all() and cells[4, 4] == 1
    assert glyphs[0] == glyphs[7] == list("RNBQKBNR") and glyphs[3] == [""] * 8 and glyphs[4][4] == "P"


@pytest.mark.slow
def test_random_play_does_not_grow_the_process():
    play_random_games(GAME, 300)
    process = psutil.Process()
    before, plies = process.memory_info().rss, 0
    while plies < 1_000_000:
        plies += play_random_games(GAME, 500, seed=plies)
    assert process.memory_info().rss - before < 1_000_000
