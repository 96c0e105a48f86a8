"""Chess positions in writing: FEN and EPD (Edwards 1994, "Portable Game Notation Specification"), and the board drawn.

A FEN is read strictly: each defect has its sentence. Positions that no game can reach are refused by name where it
matters to the rules: kings, pawns on the end ranks, more than 16 men or 8 pawns, the wrong side in check, more than
two men that give check, castling rights without king and rook, an en passant square without the pawn. More promoted
pieces than missing pawns are taken, as published problems have them, as long as no more than 320 moves are
conceivable. As in the Laws, and as in the state, the en passant square is written only where the capture is legal;
this is what python-chess writes by default.
"""

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from envs.bits import swap_bytes
from envs.chess_board import MOST_MOVES
from envs.errors import InputError
from envs.game import State

if TYPE_CHECKING:
    from envs.chess import Chess

# The positions of the Chess Programming Wiki's page "Perft Results".
POSITIONS = {
    "startpos": "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "kiwipete": "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "pos3": "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "pos4": "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
    "pos5": "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
    "pos6": "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
}
FIGURES = dict(zip("KQRBNPkqrbnp", "♔♕♖♗♘♙♚♛♜♝♞♟", strict=True))
LIGHT, DARK = "48;5;223", "48;5;137"  # the grounds of the squares: buff and brown of the 256 colours
CASTLING = {"K": 7, "Q": 0, "k": 63, "q": 56}  # the rooks' squares


def square_name(square: int) -> str:
    return "abcdefgh"[square & 7] + str((square >> 3) + 1)


def square_number(name: str) -> int:
    return "abcdefgh".index(name[0]) + 8 * (int(name[1]) - 1)


def letters(state: State) -> list[str]:
    """The men on the 64 squares as white counts them, a1 first, in FEN's letters; a dot for an empty square."""
    turned = bool(state.turn)
    names = ("pawns", "knights", "diagonals", "straights", "kings", "mine")
    pawns, knights, diagonals, straights, kings, mine = (
        int(swap_bytes(state[name])) if turned else int(state[name]) for name in names
    )
    kinds = {
        "p": pawns,
        "n": knights,
        "b": diagonals & ~straights,
        "r": straights & ~diagonals,
        "q": straights & diagonals,
        "k": kings,
    }
    board = ["."] * 64
    for letter, bits in kinds.items():
        while bits:
            square = (bits & -bits).bit_length() - 1
            board[square] = letter.upper() if bool(mine >> square & 1) != turned else letter
            bits &= bits - 1
    return board


def board_rows(state: State) -> list[str]:
    """Eight rows, black's first rank on top, in FEN's letters with a dot for an empty square."""
    board = letters(state)
    return ["".join(board[8 * rank : 8 * rank + 8]) for rank in range(7, -1, -1)]


def show(state: State) -> str:
    """The board with figures on coloured squares, coordinates and what the board does not tell.

    As in print, white men are outlines and black men filled, so that they differ without colours too.
    """
    lines = []
    for y, row in enumerate(board_rows(state)):
        cells = ""
        for x, letter in enumerate(row):
            ground = LIGHT if (x + y) % 2 == 0 else DARK
            cells += f"\033[{ground};30m {FIGURES.get(letter, ' ')} \033[0m"
        lines.append(f"{8 - y} {cells}")
    lines.append("   " + "  ".join("abcdefgh"))
    return "\n".join([*lines, fen(state)])


# --- FEN ---------------------------------------------------------------------------------------------


def fen(state: State) -> str:
    """The position in FEN; repetitions are not part of it."""
    board = "/".join(board_rows(state))
    for run in range(8, 0, -1):
        board = board.replace("." * run, str(run))
    castles = int(swap_bytes(state.castles)) if state.turn else int(state.castles)
    rights = "".join(letter for letter, square in CASTLING.items() if castles >> square & 1) or "-"
    passant = square_name(int(state.passant) ^ (56 if state.turn else 0)) if state.passant else "-"
    return f"{board} {'wb'[state.turn]} {rights} {passant} {state.clock} {state.fullmove}"


def parse_fen(game: "Chess", text: str, words: list[str]) -> State:
    """The state that the fields of a FEN or EPD describe; `text` is what the user gave, for the sentences."""

    def refuse(why: str) -> InputError:
        return InputError(f"position {text!r}: {why}")

    if len(words) < 4:
        raise refuse(
            f"a FEN has 4 or 6 fields (board, side, castling, en passant, two counters), this has {len(words)}"
        )
    board = _parse_board(words[0], refuse)
    if words[1] not in ("w", "b"):
        raise refuse(f"the side to move is {words[1]!r} and must be w or b")
    turn = "wb".index(words[1])
    counters = [] if len(words) > 4 and are_operations(words[4:]) else words[4:]
    if len(counters) not in (0, 2):
        raise refuse(f"a FEN has 4 or 6 fields, this has {len(words)}")
    numbers = []
    for name, most, word in zip(("half-move clock", "move number"), (999, 9999), counters, strict=False):
        if not re.fullmatch(r"[0-9]{1,4}", word) or int(word) > most:
            raise refuse(f"the {name} is {word!r} and must be a number from 0 to {most}")
        numbers.append(int(word))
    clock, number = numbers or (0, 1)
    _check_men(board, refuse)
    castles = _parse_castling(words[2], board, refuse)
    passant = _parse_passant(words[3], board, turn, refuse)
    state = _state_of(game, board, turn, castles)
    state.clock = clock
    with np.errstate(over="ignore"):
        game.turn_round(state)
        idle_king = int(state.kings & state.mine).bit_length() - 1
        if game.attacked(state, idle_king, state.mine | state.theirs, state.theirs):
            raise refuse(f"{('black', 'white')[turn]} is in check but it is {('white', 'black')[turn]}'s turn")
        game.turn_round(state)
        state.fullmove = max(number, 1)  # many programs write 0 for the first move
        if passant is not None:
            game.offer_passant(state, passant ^ (56 if turn else 0))
        game.settle(state)
    if int(state.checkers).bit_count() > 2:
        raise refuse(f"{int(state.checkers).bit_count()} men give check at once, and no move can do that")
    return state


def are_operations(words: list[str]) -> bool:
    """Whether these words, after four fields, are the operations of an EPD: `bm Qd1+; id "BK.01";`."""
    return words[0][0].isalpha() and words[-1].endswith(";")


def _parse_board(field: str, refuse: Any) -> dict[int, str]:
    rows = field.split("/")
    if len(rows) != 8:
        raise refuse(f"the board has {len(rows)} ranks and must have 8, separated by slashes")
    board = {}
    for rank, row in zip(range(7, -1, -1), rows, strict=True):
        file, digit_before = 0, False
        for letter in row:
            if letter in "12345678":
                if digit_before:
                    raise refuse(f"rank {rank + 1} is {row!r} with two digits in a row")
                file += int(letter)
            elif letter in "pnbrqkPNBRQK":
                if file < 8:
                    board[8 * rank + file] = letter
                file += 1
            else:
                raise refuse(f"rank {rank + 1} has {letter!r}, which is none of pnbrqkPNBRQK and 1 to 8")
            digit_before = letter in "12345678"
        if file != 8:
            raise refuse(f"rank {rank + 1} is {row!r} with {file} squares and must have 8")
    return board


def _check_men(board: dict[int, str], refuse: Any) -> None:
    for side, letters in (("white", "PNBRQK"), ("black", "pnbrqk")):
        men = [letter for letter in board.values() if letter in letters]
        pawns, knights, bishops, rooks, queens, kings = (men.count(letter) for letter in letters)
        if kings != 1:
            raise refuse(f"{side} has {kings or 'no'} {'kings' if kings else 'king'} and must have one")
        if pawns > 8:
            raise refuse(f"{side} has {pawns} pawns and can have at most 8")
        if len(men) > 16:
            raise refuse(f"{side} has {len(men)} men and can have at most 16")
        # A queen has 25 moves at most, 27 on the four central squares; each pawn may become one.
        conceivable = 25 * (queens + pawns) + 8 + 14 * rooks + 13 * bishops + 8 * knights + 8
        if conceivable > MOST_MOVES:
            raise refuse(f"{side} has more promoted pieces than pawns could become")
    for square, letter in board.items():
        if letter in "pP" and not 8 <= square < 56:
            raise refuse(f"a pawn stands on {square_name(square)}, where no pawn can stand")


def _parse_castling(field: str, board: dict[int, str], refuse: Any) -> int:
    if field == "-":
        return 0
    if not re.fullmatch("[KQkq]{1,4}", field) or len(set(field)) != len(field):
        raise refuse(f"castling is {field!r} and must be - or letters out of KQkq, each at most once")
    castles = 0
    for letter in field:
        king, rook = ("K", "R") if letter.isupper() else ("k", "r")
        home, corner = 4 if letter.isupper() else 60, CASTLING[letter]
        if board.get(home) != king or board.get(corner) != rook:
            places = f"a king on {square_name(home)} and a rook on {square_name(corner)}"
            raise refuse(f"castling {letter!r} needs {places}")
        castles |= 1 << corner
    return castles


def _parse_passant(field: str, board: dict[int, str], turn: int, refuse: Any) -> int | None:
    if field == "-":
        return None
    rank = "63"[turn]
    if not re.fullmatch(f"[a-h]{rank}", field):
        raise refuse(f"en passant is {field!r} and must be - or a square on rank {rank}")
    square, ahead = square_number(field), (-8, 8)[turn]
    if board.get(square + ahead) != "pP"[turn] or square in board or square - ahead in board:
        raise refuse(f"en passant on {field} needs a pawn that has just passed it")
    return square


def _state_of(game: "Chess", board: dict[int, str], turn: int, castles: int) -> State:
    """The men on the board, seen by the mover; the rest of the state is at zero."""
    boards = dict.fromkeys(("pawns", "knights", "diagonals", "straights", "kings", "mine", "theirs"), 0)
    names = {"p": ["pawns"], "n": ["knights"], "b": ["diagonals"], "r": ["straights"], "k": ["kings"]}
    for square, letter in board.items():
        own = letter.isupper() == (turn == 0)
        kinds = names.get(letter.lower(), ["diagonals", "straights"])
        for name in (*kinds, "mine" if own else "theirs"):
            boards[name] |= 1 << square
    state = np.zeros(1, game.state).view(np.recarray)[0]
    for name, bits in {**boards, "castles": castles}.items():
        state[name] = swap_bytes(np.uint64(bits)) if turn else np.uint64(bits)
    state.turn = turn
    return state
