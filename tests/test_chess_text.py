"""Chess in writing: FEN, UCI, SAN and PGN beside python-chess, bad input, and fuzzed parsers."""

import io
import random
from pathlib import Path

import chess
import chess.pgn
import numpy as np
import pytest

from envs.chess import Chess
from envs.chess_fen import POSITIONS
from envs.errors import InputError
from envs.game import TERMINAL, legal_actions
from envs.rng import below, generator

DATA = Path(__file__).parent / "data" / "chess"
GAME = Chess()
SUITE = [line.split(";")[0].strip() for line in (DATA / "perftsuite_63.epd").read_text().splitlines()]


# --- positions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fen", [*POSITIONS.values(), *SUITE])
def test_fen_round_trip(fen):
    assert GAME.position_text(GAME.parse_position(fen)) == chess.Board(fen).fen()


def test_forms_of_a_position():
    expected = GAME.parse_position("startpos").tobytes()
    assert GAME.new()[0].tobytes() == expected
    for text in (POSITIONS["startpos"], f"fen {POSITIONS['startpos']}", " StartPos ", POSITIONS["startpos"][:-4]):
        assert GAME.parse_position(text).tobytes() == expected
    board = chess.Board()
    for move in ("e2e4", "e7e5", "g1f3"):
        board.push_uci(move)
    for text in ("startpos moves e2e4 e7e5 g1f3", f"fen {POSITIONS['startpos']} moves e4 e5 Nf3"):
        assert GAME.position_text(GAME.parse_position(text)) == board.fen()


def test_epd_of_the_bratko_kopec_positions():
    for line in (DATA / "bratko_kopec_24.epd").read_text().splitlines():
        board, operations = chess.Board.from_epd(line)
        state = GAME.parse_position(line)
        assert GAME.position_text(state) == board.fen()
        for best in operations["bm"]:
            assert GAME.action_name(state, GAME.parse_action(state, board.san(best))) == best.uci()


def test_the_en_passant_square_counts_only_where_the_capture_is_legal():
    assert GAME.position_text(GAME.parse_position("startpos moves e2e4")).split()[3] == "-"
    assert GAME.position_text(GAME.parse_position("startpos moves e2e4 a7a6 e4e5 d7d5")).split()[3] == "d6"
    # Both pawns would leave the fifth rank, and the rook would look at the king.
    assert GAME.position_text(GAME.parse_position("8/8/8/K2pP2r/8/8/8/4k3 w - d6 0 1")).split()[3] == "-"


START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR"
BAD_POSITIONS = [
    ("", "is empty"),
    ("moves e2e4", "is empty"),
    ("kiwipet", "neither a FEN nor one of startpos, kiwipete"),
    (START, "4 or 6 fields"),
    (f"{START} w KQkq", "4 or 6 fields"),
    (f"{START} w KQkq - 0", "4 or 6 fields"),
    (f"{START} w KQkq - 0 1 2", "4 or 6 fields"),
    ("rnbqkbnr/pppppppp/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "7 ranks and must have 8"),
    ("rnbqkbnr/pppppppp/8/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "9 ranks and must have 8"),
    ("rnbqkbnr/pppppppp/8/8/7/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "rank 4 is '7' with 7 squares"),
    ("rnbqkbnr/pppppppp/8/8/81/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "two digits in a row"),
    ("rnbqkbnr/pppppppp/8/8/8p/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "9 squares"),
    ("rnbqkbnr/pppppppp/8/8/9/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "'9', which is none of"),
    ("rnbqkbnr/pppppppp/8/8/x7/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "'x', which is none of"),
    ("rnbqkbnr/pppppppp/8/8/٨/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "which is none of"),
    (f"{START} x KQkq - 0 1", "side to move is 'x'"),
    (f"{START} W KQkq - 0 1", "side to move is 'W'"),
    (f"{START} w KQxq - 0 1", "castling is 'KQxq'"),
    (f"{START} w KK - 0 1", "castling is 'KK'"),
    (f"{START} w HAha - 0 1", "castling is 'HAha'"),
    ("4k3/8/8/8/8/8/8/4K3 w K - 0 1", "castling 'K' needs a king on e1 and a rook on h1"),
    ("r3k3/8/8/8/8/8/8/4K3 w k - 0 1", "castling 'k' needs a king on e8 and a rook on h8"),
    ("r4k2/8/8/8/8/8/8/4K3 w q - 0 1", "castling 'q' needs a king on e8 and a rook on a8"),
    (f"{START} w KQkq e9 0 1", "en passant is 'e9'"),
    (f"{START} w KQkq e3 0 1", "en passant is 'e3' and must be - or a square on rank 6"),
    (f"{START} w KQkq e6 0 1", "en passant on e6 needs a pawn that has just passed it"),
    ("rnbqkbnr/ppp2ppp/4p3/4p3/8/8/PPPPPPPP/RNBQKBNR w KQkq e6 0 1", "en passant on e6 needs"),
    (f"{START} w KQkq - -1 1", "half-move clock is '-1'"),
    (f"{START} w KQkq - ٣ 1", "half-move clock is '٣'"),
    (f"{START} w KQkq - 0 x", "move number is 'x'"),
    (f"{START} w KQkq - 1000 1", "half-move clock is '1000'"),
    (f"{START} w KQkq - 0 10000", "move number is '10000'"),
    ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQ1BNR w kq - 0 1", "white has no king"),
    ("rnbq1bnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQ - 0 1", "black has no king"),
    ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBKKBNR w kq - 0 1", "white has 2 kings"),
    ("rnbkkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQ - 0 1", "black has 2 kings"),
    ("4k3/pppppppp/p7/8/8/8/8/4K3 w - - 0 1", "black has 9 pawns and can have at most 8"),
    ("4k3/8/8/8/8/N7/PPPPPPPP/RNBQKBNR w - - 0 1", "white has 17 men and can have at most 16"),
    ("4k3/8/8/8/8/8/8/P3K3 w - - 0 1", "a pawn stands on a1"),
    ("4k2P/8/8/8/8/8/8/4K3 w - - 0 1", "a pawn stands on h8"),
    ("4k3/8/8/8/8/8/8/p3K3 w - - 0 1", "a pawn stands on a1"),
    ("k7/8/8/QQQQQQQ1/8/8/PPPPPPPP/4K3 b - - 0 1", "more promoted pieces than pawns could become"),
    ("4k3/8/8/8/8/8/8/4RK2 w - - 0 1", "black is in check but it is white's turn"),
    ("4k3/8/8/8/8/8/8/4rK2 b - - 0 1", "white is in check but it is black's turn"),
    ("8/8/8/3kK3/8/8/8/8 w - - 0 1", "black is in check but it is white's turn"),
    ("4k3/8/5N2/7B/4R3/8/8/4K3 b - - 0 1", "3 men give check at once"),
    ("startpos moves e2e5", "move 1: move 'e2e5' is not legal here"),
    ("startpos moves e2e4 e2e4", "move 2: move 'e2e4' is not legal here"),
    ("startpos moves f3 e5 g4 Qh4# a3", "the game is over before move 5, 'a3'"),
]


@pytest.mark.parametrize(("text", "why"), BAD_POSITIONS)
def test_bad_positions(text, why):
    with pytest.raises(InputError, match=why.replace("(", r"\(")) as caught:
        GAME.parse_position(text)
    assert "\n" not in str(caught.value) and str(caught.value).startswith("position ")


# --- moves -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("position", "move", "why"),
    [
        ("startpos", "", "neither UCI"),
        ("startpos", "hello", "neither UCI"),
        ("startpos", "e2e9", "neither UCI"),
        ("startpos", "e2e5", "not legal here; legal moves: b1a3"),
        ("startpos", "e7e5", "not legal here"),
        ("startpos", "0000", "neither UCI"),
        ("startpos", "Nd2", "not legal here"),
        ("startpos", "O-O", "not legal here"),
        ("startpos", "e2e4q", "not legal here"),
        ("8/P7/8/8/8/8/8/k1K5 w - - 0 1", "a7a8", "must name the piece that the pawn becomes: a7a8q"),
        ("8/P7/8/8/8/8/8/k1K5 w - - 0 1", "a8", "not legal here"),
        ("8/P7/8/8/8/8/8/k1K5 w - - 0 1", "a7a8k", "neither UCI"),
        ("4k3/8/8/8/8/8/4K3/R6R w - - 0 1", "Rd1", "can mean several moves here: a1d1, h1d1"),
        ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "h8g8", "the game is over"),
    ],
)
def test_bad_moves(position, move, why):
    with pytest.raises(InputError, match=why) as caught:
        GAME.parse_action(GAME.parse_position(position), move)
    assert "\n" not in str(caught.value) and str(caught.value).startswith("move ")


@pytest.mark.parametrize(
    ("position", "uci", "words"),
    [
        ("startpos", "g1f3", ["g1f3", "G1F3", "Nf3", "Ngf3", "Ng1f3", "Ng1-f3", "Nf3!?", " Nf3 "]),
        ("kiwipete", "e1g1", ["e1g1", "O-O", "0-0", "O-O!"]),
        ("kiwipete", "e1c1", ["e1c1", "O-O-O", "0-0-0"]),
        ("kiwipete", "d5e6", ["dxe6", "d5xe6", "dxe6!", "d:e6"]),
        ("8/B7/8/BB6/8/8/8/K1k5 w - - 0 1", "a5b6", ["a5b6", "B5b6", "Ba5b6", "A5B6"]),
        ("8/P7/8/8/8/8/8/k1K5 w - - 0 1", "a7a8q", ["a7a8q", "a7a8Q", "a8=Q", "a8Q", "a8=Q+"]),
        ("8/P7/8/8/8/8/8/k1K5 w - - 0 1", "a7a8n", ["a7a8n", "a8=N", "a8N"]),
        ("8/8/8/3pP3/8/8/8/k1K5 w - d6 0 1", "e5d6", ["e5d6", "exd6", "exd6 e.p.", "exd6e.p."]),
    ],
)
def test_forms_of_a_move(position, uci, words):
    state = GAME.parse_position(position)
    for word in words:
        assert GAME.action_name(state, GAME.parse_action(state, word)) == uci, word


def random_line(rng: random.Random, start: str, plies: int) -> tuple[chess.Board, list[int]]:
    """A random game of at most so many plies, played on both sides; returns the other board and our actions."""
    state, board, actions = GAME.parse_position(start), chess.Board(POSITIONS.get(start, start)), []
    while GAME.player(state) != TERMINAL and len(actions) < plies:
        action = rng.choice(legal_actions(GAME, state))
        board.push_uci(GAME.action_name(state, action))
        actions.append(action)
        GAME.play(state, action)
    return board, actions


def check_san(positions: int, seed: int) -> None:
    rng = random.Random(seed)
    for number in range(positions):
        board, _ = random_line(rng, SUITE[number % len(SUITE)], rng.randrange(12))
        state = GAME.parse_position(board.fen())
        if GAME.player(state) == TERMINAL:
            continue
        for action in legal_actions(GAME, state):
            expected = board.san(chess.Move.from_uci(GAME.action_name(state, action)))
            assert GAME.san(state, action) == expected, board.fen()
            assert GAME.parse_action(state, expected) == action, (board.fen(), expected)


def test_san_beside_python_chess():
    check_san(15, seed=1)


@pytest.mark.slow
def test_san_of_many_positions_beside_python_chess():
    check_san(500, seed=2)


def check_pgn(games: int, seed: int, plies: int) -> None:
    rng = random.Random(seed)
    for number in range(games):
        start = "startpos" if number % 2 == 0 else rng.choice(SUITE)
        board, actions = random_line(rng, start, plies)
        text = GAME.pgn(actions, start, {"White": 'A "quoted" \\ name', "Round": str(number), "Annotator": "nobody"})
        assert max(len(line) for line in text.splitlines() if not line.startswith("[")) < 80
        game = chess.pgn.read_game(io.StringIO(text))
        assert game is not None and not game.errors
        assert game.end().board().fen() == board.fen()
        assert list(game.mainline_moves()) == board.move_stack
        # PGN escapes quotes and backslashes; python-chess reads such values as they stand.
        assert game.headers["White"] == r"A \"quoted\" \\ name" and game.headers["Annotator"] == "nobody"
        outcome = board.outcome()
        ended = GAME.player(GAME.parse_position(board.fen())) == TERMINAL
        assert game.headers["Result"] == (outcome.result() if outcome else "1/2-1/2" if ended else "*")
        assert text.split()[-1] == game.headers["Result"]


def test_pgn_beside_python_chess():
    check_pgn(6, seed=1, plies=40)


@pytest.mark.slow
def test_many_games_in_pgn_beside_python_chess():
    check_pgn(40, seed=2, plies=200)


def test_pgn_of_a_drawn_game():
    dance = ["g1f3", "g8f6", "f3g1", "f6g8"] * 2
    state, actions = GAME.new()[0], []
    for word in dance:
        actions.append(GAME.parse_action(state, word))
        GAME.play(state, actions[-1])
    text = GAME.pgn(actions)
    assert text.endswith("1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 4. Ng1 Ng8 1/2-1/2\n") and "[Result " in text
    with pytest.raises(InputError, match="not legal after"):
        GAME.pgn([*actions, actions[0]])
    with pytest.raises(InputError, match="PGN tag 'my tag'"):
        GAME.pgn([], tags={"my tag": "x"})
    with pytest.raises(InputError, match="one printable line"):
        GAME.pgn([], tags={"White": "two\nlines"})


# --- fuzz ------------------------------------------------------------------------------------------------

LETTERS = "pnbrqkPNBRQK12345678/ -wbKQkqabcdefgh0123456789xO=+#!\n\t\0²٣é–'\"\\%{}"


def mutated(rng: random.Random, seeds: list[str]) -> str:
    """Random text, or one of the seeds with a few letters changed, moved or left out."""
    if rng.random() < 0.1:
        return "".join(rng.choices(LETTERS, k=rng.randrange(40)))
    letters = list(rng.choice(seeds))
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(letters) + 1)
        kind = rng.random()
        if kind < 0.3 and len(letters) > 1:  # exchange, which keeps the number of men
            other = rng.randrange(len(letters))
            at = min(at, len(letters) - 1)
            letters[at], letters[other] = letters[other], letters[at]
        elif kind < 0.6 and at < len(letters):
            letters[at] = rng.choice(LETTERS)
        else:
            letters[at : at + rng.randrange(3)] = rng.choices(LETTERS, k=rng.randrange(3))
    return "".join(letters)


# What python-chess calls invalid in positions that are taken here: more pieces than pawns could become are no
# reason for either; checks that no last move can have given, and an en passant square in such positions, are.
TAKEN = chess.STATUS_IMPOSSIBLE_CHECK | chess.STATUS_INVALID_EP_SQUARE


def fuzz_positions(count: int, seed: int) -> int:
    """Nothing but InputError comes out, and what is taken means the same to python-chess; returns how many."""
    rng, taken = random.Random(seed), 0
    seeds = [
        *SUITE,
        *POSITIONS,
        *(f"{fen} moves {move}" for fen, move in zip(SUITE, ("O-O", "e2e4", "Kd2"), strict=False)),
    ]
    for _ in range(count):
        text = mutated(rng, seeds)
        try:
            state = GAME.parse_position(text)
        except InputError as error:
            assert "\n" not in str(error) and str(error).startswith("position ")
            continue
        taken += 1
        fen = GAME.position_text(state)
        assert GAME.position_text(GAME.parse_position(fen)) == fen
        board = chess.Board(fen)
        assert board.status() & ~TAKEN == chess.STATUS_VALID, (text, fen, board.status())
        if taken % 20 == 0:
            names = sorted(GAME.action_name(state, action) for action in legal_actions(GAME, state))
            assert names == sorted(move.uci() for move in board.legal_moves), fen
    return taken


def fuzz_moves(count: int, seed: int) -> int:
    """Nothing but InputError comes out, and what is taken is legal; returns how many."""
    rng, taken = random.Random(seed), 0
    for number in range(count):
        if number % 500 == 0:
            state = GAME.parse_position(SUITE[number // 500 % len(SUITE)])
            legal = legal_actions(GAME, state)
            seeds = [GAME.action_name(state, action) for action in legal] + [
                GAME.san(state, action) for action in legal
            ]
        try:
            action = GAME.parse_action(state, mutated(rng, seeds))
        except InputError as error:
            assert "\n" not in str(error) and str(error).startswith("move ")
        else:
            taken += 1
            assert action in legal
    return taken


def test_fuzzed_positions_and_moves():
    assert fuzz_positions(3000, seed=1) > 100
    assert fuzz_moves(3000, seed=1) > 100


@pytest.mark.slow
def test_a_hundred_thousand_fuzzed_positions():
    assert fuzz_positions(100_000, seed=2) > 3000


@pytest.mark.slow
def test_a_hundred_thousand_fuzzed_moves():
    assert fuzz_moves(100_000, seed=2) > 5000


# --- golden playthrough ----------------------------------------------------------------------------------


def playthrough(seed: int) -> str:
    """A random game: before each move the position, the key, the legal moves and the move; then the result."""
    rng, states, lines = generator(seed), GAME.new(), []
    with np.errstate(over="ignore"):
        while GAME.player(states[0]) != TERMINAL:
            actions = legal_actions(GAME, states[0])
            moves = [f"{GAME.action_name(states[0], action)}={action}" for action in actions]
            pick = int(below(rng, len(actions)))
            fen, key = GAME.position_text(states[0]), int(GAME.key(states[0]))
            lines.append(f"{fen} | {key:016x} | {' '.join(moves)} | {GAME.san(states[0], actions[pick])}")
            GAME.play(states[0], actions[pick])
    values = [GAME.utility(states[0], player) for player in range(2)]
    return "\n".join([*lines, f"{GAME.position_text(states[0])} | {values}", ""])


def test_golden_playthrough():
    """The rules, actions, keys and texts of a whole game, as recorded: a change must be on purpose."""
    assert playthrough(seed=20) == (DATA / "playthrough.txt").read_text()
