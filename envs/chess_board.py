"""The chessboard as bitboards: the state, the tables, and what attacks what.

The board is stored from the mover's side: bit 8 * rank + file, his own first rank at the bottom, so that his pawns
always go up, and one set of code serves both colours. After each move the bytes of all boards are swapped.

    56 57 .. 63     <- the opponent's first rank
     :        :
     8  9 .. 15     <- the mover's pawns at the start
     0  1 ..  7     <- the mover's first rank, file a at the left

Sliding moves: a ray stops at the nearest man on it, found by a bit scan, and the ray behind him is taken away
(Slate and Atkin 1977, "Chess 4.5"); attacks on a square: look up what stands between.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.bits import ONE, ZERO, highest, lowest, swap_bytes, without_lowest
from envs.compiled import njit
from envs.game import Game, State

KNIGHT, BISHOP, ROOK, QUEEN, KING = 0, 1, 2, 3, 4  # the first three also number the underpromotions
PLAIN_MOVES = 4096  # actions below are 64 * from + to, the others underpromotions
MOST_MOVES = 320  # see Chess.max_legal

# How a game stands, in `state.ending`.
GOING, CHECKMATE, STALEMATE, FIFTY_MOVES, REPETITION, MATERIAL = 0, 1, 2, 3, 4, 5

NOT_FILE_A = np.uint64(0xFEFE_FEFE_FEFE_FEFE)
NOT_FILE_H = np.uint64(0x7F7F_7F7F_7F7F_7F7F)
LIGHT_SQUARES = np.uint64(0x55AA_55AA_55AA_55AA)
FIRST_RANK = np.uint64(0xFF)
THIRD_RANK = np.uint64(0xFF << 16)
SEVENTH_RANK = np.uint64(0xFF << 48)
EIGHTH_RANK = np.uint64(0xFF << 56)
LAST_SQUARE = np.uint64(1 << 63)
SHORT_ROOK, LONG_ROOK = np.uint64(1 << 7), np.uint64(1 << 0)  # h1 and a1
SHORT_KING, LONG_KING = np.uint64(1 << 6), np.uint64(1 << 2)  # g1 and c1
SHORT_STEP, LONG_STEP = np.uint64(1 << 5), np.uint64(1 << 3)  # f1 and d1, which the king crosses
SHORT_PATH, LONG_PATH = np.uint64(0x60), np.uint64(0x0E)  # the squares that must be empty

# North, east, north-east, north-west run to higher bits; their opposites to lower ones.
DIRECTIONS = ((1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (1, -1), (-1, -1), (-1, 1))
KNIGHT_STEPS = ((2, 1), (1, 2), (-1, 2), (-2, 1), (-2, -1), (-1, -2), (1, -2), (2, -1))

STATE = np.dtype(
    [
        ("pawns", "u8"),
        ("knights", "u8"),
        ("diagonals", "u8"),  # bishops and queens
        ("straights", "u8"),  # rooks and queens
        ("kings", "u8"),
        ("mine", "u8"),
        ("theirs", "u8"),
        ("castles", "u8"),  # the rooks' squares with which castling is still allowed
        ("checkers", "u8"),  # derived: their men that give check
        ("pinned", "u8"),  # derived: my men that shield my king
        ("history", "u2", (100,)),  # the moves since the last one that can't be taken back, oldest first
        ("fullmove", "u4"),
        ("clock", "u4"),  # plies since the last capture or pawn move
        ("passant", "u2"),  # where a pawn can be taken en passant, legally; 0 if nowhere
        ("turn", "u2"),  # 0 white, 1 black
        ("reversible", "u2"),  # the length of history
        ("repetitions", "u1"),  # how often this position occurred before: 0, 1 or 2
        ("ending", "u1"),  # derived: GOING or why the game is over
    ],
    align=True,  # the widths leave no gaps, so that equal states are equal bytes
)


@njit
def moved(board: Any, source: Any, target: Any) -> Any:
    """The board after its man on source, if it has one, went to target."""
    man = (board >> np.uint64(source)) & ONE
    return board ^ (man << np.uint64(source)) ^ (man << np.uint64(target))


@njit
def pawn_sources(square: Any) -> Any:
    """The squares from which a pawn of the mover attacks this one."""
    bit = ONE << np.uint64(square)
    return ((bit >> np.uint64(9)) & NOT_FILE_H) | ((bit >> np.uint64(7)) & NOT_FILE_A)


def _squares(rank: int, file: int, steps: Any, far: bool) -> int:
    """The bits that are reached from a square by these steps, once or (far) as long as the board goes on."""
    bits = 0
    for up, right in steps:
        r, f = rank + up, file + right
        while 0 <= r < 8 and 0 <= f < 8:
            bits |= 1 << 8 * r + f
            if not far:
                break
            r, f = r + up, f + right
    return bits


def move_tables() -> dict[str, np.ndarray]:
    """What the generator looks up, some 70 KB: steps, rays, and for two squares what lies between or in line."""
    places = [(square // 8, square % 8) for square in range(64)]
    rays = [[_squares(r, f, (step,), True) for r, f in places] for step in DIRECTIONS]
    between = np.zeros((64, 64), np.uint64)
    lines = np.zeros((64, 64), np.uint64)
    for direction in range(8):
        back = (direction + 2) % 4 + direction // 4 * 4
        for square in range(64):
            ray = rays[direction][square]
            for other in (s for s in range(64) if ray >> s & 1):
                between[square, other] = ray & rays[back][other]
                lines[square, other] = ray | rays[back][square] | 1 << square
    return {
        "rays": np.array(rays, np.uint64),
        "between": between,  # open interval; 0 if the squares are not in line
        "lines": lines,  # from edge to edge; 0 if not in line
        "straight_lines": np.array([_squares(r, f, DIRECTIONS[:4], True) for r, f in places], np.uint64),
        "diagonal_lines": np.array([_squares(r, f, DIRECTIONS[4:], True) for r, f in places], np.uint64),
        "knight_steps": np.array([_squares(r, f, KNIGHT_STEPS, False) for r, f in places], np.uint64),
        "king_steps": np.array([_squares(r, f, DIRECTIONS, False) for r, f in places], np.uint64),
        "pawn_steps": np.array([_squares(r, f, ((1, 1), (1, -1)), False) for r, f in places], np.uint64),
        "numbers": np.random.default_rng(1970).integers(0, 2**64, (2, 5, 64), np.uint64),  # Zobrist 1970
    }


@dataclass(frozen=True)
class ChessBoard(Game):
    """Positions: the first layer of `Chess`."""

    draw_rules: bool = True  # 50 moves, threefold repetition and insufficient material end the game

    state = STATE
    history_fields = ("history", "reversible", "repetitions", "clock", "fullmove", "ending")

    @property
    def clock_limit(self) -> int:
        return 100 if self.draw_rules else 1000  # without draw rules, still no game without end

    def tables(self) -> dict[str, np.ndarray]:
        return move_tables()

    def start(self, state: State) -> None:
        state.pawns = np.uint64(0x00FF_0000_0000_FF00)
        state.knights = np.uint64(0x4200_0000_0000_0042)
        state.diagonals = np.uint64(0x2C00_0000_0000_002C)
        state.straights = np.uint64(0x8900_0000_0000_0089)
        state.kings = np.uint64(0x1000_0000_0000_0010)
        state.mine = np.uint64(0x0000_0000_0000_FFFF)
        state.theirs = np.uint64(0xFFFF_0000_0000_0000)
        state.castles = np.uint64(0x8100_0000_0000_0081)
        state.checkers = state.pinned = ZERO
        for i in range(100):
            state.history[i] = 0
        state.fullmove = 1
        state.clock = state.passant = state.turn = state.reversible = state.repetitions = state.ending = 0

    def promote(self, state: State, goal: Any, piece: Any) -> None:
        state.pawns ^= goal
        if piece == KNIGHT:
            state.knights |= goal
        if piece == BISHOP or piece == QUEEN:
            state.diagonals |= goal
        if piece == ROOK or piece == QUEEN:
            state.straights |= goal

    def turn_round(self, state: State) -> None:
        """Turns the board to the other player, who is to move."""
        state.pawns = swap_bytes(state.pawns)
        state.knights = swap_bytes(state.knights)
        state.diagonals = swap_bytes(state.diagonals)
        state.straights = swap_bytes(state.straights)
        state.kings = swap_bytes(state.kings)
        state.castles = swap_bytes(state.castles)
        mine = swap_bytes(state.theirs)
        state.theirs = swap_bytes(state.mine)
        state.mine = mine
        state.turn ^= 1
        if state.turn == 0:
            state.fullmove += 1

    def upward(self, direction: Any, square: Any, occupied: Any) -> Any:
        ray = self.rays[direction, square]
        return ray ^ self.rays[direction, lowest((ray & occupied) | LAST_SQUARE)]

    def downward(self, direction: Any, square: Any, occupied: Any) -> Any:
        ray = self.rays[direction, square]
        return ray ^ self.rays[direction, highest((ray & occupied) | ONE)]

    def straight_attacks(self, square: Any, occupied: Any) -> Any:
        up = self.upward(0, square, occupied) | self.upward(1, square, occupied)
        return up | self.downward(2, square, occupied) | self.downward(3, square, occupied)

    def diagonal_attacks(self, square: Any, occupied: Any) -> Any:
        up = self.upward(4, square, occupied) | self.upward(5, square, occupied)
        return up | self.downward(6, square, occupied) | self.downward(7, square, occupied)

    def snipers(self, state: State, square: Any) -> Any:
        """Their sliding men that would attack the square on an empty board."""
        straight = self.straight_lines[square] & state.straights
        return (straight | (self.diagonal_lines[square] & state.diagonals)) & state.theirs

    def attacked(self, state: State, square: Any, occupied: Any, theirs: Any) -> bool:
        """Whether one of `theirs` attacks the square when the board is so occupied."""
        near = self.knight_steps[square] & state.knights
        near |= (self.pawn_steps[square] & state.pawns) | (self.king_steps[square] & state.kings)
        if near & theirs != 0:
            return True
        rest = self.snipers(state, square) & theirs
        while rest != 0:
            if self.between[square, lowest(rest)] & occupied == 0:
                return True
            rest = without_lowest(rest)
        return False
