"""Chess, complete (FIDE Laws of Chess 2023): castling, en passant, promotion, and the draws.

When a game ends, in this order:
- checkmate (the mover loses) or stalemate (a draw);
- 50 moves: 100 plies without a capture or a pawn move, automatically (FIDE 9.3 lets a player claim it; 9.6.2
  would end the game by itself only at 75). Checkmate on the hundredth ply counts as checkmate;
- threefold repetition, automatically (FIDE 9.2 lets a player claim it): the same men on the same squares, the same
  player to move, the same castling rights, the same *legal* en passant capture;
- insufficient material: king against king, with one bishop or one knight on the whole board, or with bishops
  only, any number on either side, all on squares of one colour. Nothing else counts: two knights, knight
  against bishop or blocked pawn walls play on, although some of them are dead positions by FIDE 5.2.2.
`draw_rules=False` leaves out the last three, as perft tables do (only 1000 plies without progress end a game).

State: 296 bytes. The history of repetitions is not a list of positions but of moves: those since the last
capture, pawn move, loss of a castling right or en passant chance, after which no former position can come back;
two bytes each (kind, from, to), at most 100, as the 50-move rule ends the game. They are taken back in thought to
see whether everything returned to its place, by a 64-bit Zobrist sum per position: a false repetition needs a
chance of 2^-64 per comparison, with at most 50 comparisons a ply less than once in 10^17 plies. `key` leaves the
history and the counters out, as transposition tables want.

Actions, from the mover's side (for black the board is turned upside down, files stay): 64 * from + to with a1 = 0,
h8 = 63; castling is the king's move of two squares; a pawn that gets to the last rank becomes a queen. The other
promotions are 4096 + 9 * file + 3 * (0, 1, 2 to the left, straight on, to the right) + (0 knight, 1 bishop, 2 rook).

Beside other programs: python-chess ends a game by itself only after 75 moves and at the fifth repetition, and leaves
50 moves and the third to `claim_draw`; a claim may there also announce a move that would bring the draw about, which
does not exist here. Its material rule is the same. OpenSpiel's chess has the same draws; it numbers black 0 and white
1, and its actions otherwise. The en passant square is part of a position only where the capture is legal (FIDE
9.2.3), as in python-chess; to OpenSpiel it is wherever a pawn stands beside, even a pinned one, so that it counts
repetitions of such a position from the next occurrence on.

Symmetries: none. Left and right differ by castling (the king starts on the e-file), up and down by the pawns; that
both colours look alike is already in the mover's view.

For searches, see `chess_hints.py`: most valuable victim and least valuable attacker, exchanges that lose material,
checks, the null move. For linear evaluations, see `chess_features.py`.

Notation: positions in FEN or EPD (Edwards 1994), by name (`startpos`, `kiwipete`, `pos3` .. `pos6`), or as in
UCI, `startpos moves e2e4 e7e5`; moves in UCI or SAN.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from envs import chess_fen, chess_text
from envs.bits import ONE, lowest, mix, without_lowest
from envs.chess_board import CHECKMATE, MOST_MOVES, PLAIN_MOVES
from envs.chess_hints import ChessHints
from envs.compiled import python_only
from envs.game import TERMINAL, State


@dataclass(frozen=True)
class Chess(ChessHints):
    """Parameter: draw_rules, whether 50 moves, repetition and insufficient material end the game."""

    title = "Chess"
    notation = "moves in UCI or SAN: e2e4, Nf3; positions in FEN"
    num_actions = PLAIN_MOVES + 72
    # No position of a real game has more than 218 moves; positions that people set up may (see chess_fen.py).
    max_legal = MOST_MOVES
    observation_shape = (20, 8, 8)

    @property
    def max_length(self) -> int:
        # Sixteen pawns make at most six moves each and thirty men can be taken: so often the clock can restart.
        return (16 * 6 + 30 + 1) * self.clock_limit

    def player(self, state: State) -> int:
        return TERMINAL if state.ending != 0 else int(state.turn)

    def utility(self, state: State, player: Any) -> float:
        if state.ending != CHECKMATE:
            return 0.0
        return -1.0 if player == state.turn else 1.0

    def key(self, state: State) -> Any:
        rights = state.castles ^ (np.uint64(state.passant) << np.uint64(8)) ^ (np.uint64(state.turn) << np.uint64(16))
        # Each board gets an odd multiple of the golden ratio added before it is mixed, so that none can stand for another.
        total = np.uint64(mix(state.pawns + np.uint64(0x9E3779B97F4A7C15)))
        total += np.uint64(mix(state.knights + np.uint64(0xDAA66D2C7DDF743F)))
        total += np.uint64(mix(state.diagonals + np.uint64(0x1715609F7C746C69)))
        total += np.uint64(mix(state.straights + np.uint64(0x538454127B096493)))
        total += np.uint64(mix(state.kings + np.uint64(0x8FF34785799E5CBD)))
        total += np.uint64(mix(state.mine + np.uint64(0xCC623AF8783354E7)))
        return mix(total + np.uint64(mix(rights + np.uint64(0x08D12E6B76C84D11))))

    def observe(self, state: State, planes: Any) -> None:
        """Planes 0-5 my pawns, knights, bishops, rooks, queens, king; 6-11 theirs; 12-13 my castling to the short
        and long side, 14-15 theirs; 16 the en passant square; 17 and 18 the position occurred once, twice before;
        19 the 50-move clock, 1 when the game is drawn. The mover's first rank is the last row."""
        bishops, rooks = state.diagonals & ~state.straights, state.straights & ~state.diagonals
        queens = state.diagonals & state.straights
        kinds = (state.pawns, state.knights, bishops, rooks, queens, state.kings)
        for kind in range(6):
            rest = kinds[kind]
            while rest != 0:
                square = lowest(rest)
                side = 0 if (state.mine >> np.uint64(square)) & ONE != 0 else 6
                planes[side + kind, 7 - (square >> 3), square & 7] = 1.0
                rest = without_lowest(rest)
        for i in range(4):
            if (state.castles >> np.uint64((7, 0, 63, 56)[i])) & ONE != 0:
                planes[12 + i, :, :] = 1.0
        if state.passant != 0:
            planes[16, 7 - (state.passant >> 3), state.passant & 7] = 1.0
        for i in range(2):
            if state.repetitions > i:
                planes[17 + i, :, :] = 1.0
        planes[19, :, :] = min(state.clock / 100.0, 1.0)

    # --- for people ----------------------------------------------------------------------------------

    def for_perft(self) -> "Chess":
        return dataclasses.replace(self, draw_rules=False)

    def cells(self, state: State) -> np.ndarray:
        board = chess_fen.board_rows(state)
        return np.array([[0 if c == "." else 1 if c.isupper() else 2 for c in row] for row in board], np.int8)

    def glyphs(self, state: State) -> list[list[str]]:
        return [[letter.upper().strip(".") for letter in row] for row in chess_fen.board_rows(state)]

    def show(self, state: State) -> str:
        return chess_fen.show(state)

    def action_name(self, state: State, action: int) -> str:
        return chess_text.uci(state, int(action))

    @python_only
    def san(self, state: State, action: int) -> str:
        """The move in standard algebraic notation: Nf3, exd6, O-O, e8=Q#."""
        return chess_text.san(self, state, int(action))

    def parse_action(self, state: State, text: str) -> int:
        return chess_text.parse_move(self, state, text)

    def parse_position(self, text: str) -> State:
        return chess_text.parse_position(self, text)

    def position_text(self, state: State) -> str:
        return chess_fen.fen(state)

    @python_only
    def pgn(self, actions: Any, position: str = "startpos", tags: dict[str, str] | None = None) -> str:
        """A game as PGN: the actions from a position on, with tags such as {"White": "Anderssen"}."""
        return chess_text.pgn(self, [int(action) for action in actions], position, tags or {})
