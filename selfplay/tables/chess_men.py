"""How a few chessmen move, given as arrays of types, sides and squares: what the chess tables are built with.

The first man is side 0's king, the second side 1's; side 0's pawns go up the board. Written for positions of three or
four men: it tries a move and looks whether the king is attacked. `envs/chess_moves.py` is the rules of the game; tables
are verified against them.
"""

from dataclasses import dataclass

import numpy as np

from envs.bits import ONE, highest, lowest, swap_bytes, without_lowest
from envs.chess_board import BISHOP, KING, KNIGHT, QUEEN, ROOK, move_tables
from envs.compiled import Compiled, njit
from selfplay.tables.chess_index import PAWN, directory, king_tables


@dataclass(frozen=True)
class Men(Compiled):
    """Where the tables are that a build looks into, and how men move."""

    places: tuple[tuple[str, int], ...]  # kind, offset among the entries

    def tables(self) -> dict[str, np.ndarray]:
        moves = {name: table for name, table in move_tables().items() if name != "numbers"}
        return {**moves, **king_tables(), "directory": directory(dict(self.places))}


@njit
def slides(men, square, occupied, first, last):
    """The squares that a slider in the directions first .. last - 1 attacks."""
    found = np.uint64(0)
    for direction in range(first, last):
        ray = men.rays[direction, square]
        blockers = ray & occupied
        if blockers != 0:
            # North, east, north-east and north-west run to higher bits.
            up = direction == 0 or direction == 1 or direction == 4 or direction == 5
            nearest = lowest(blockers) if up else highest(blockers)
            ray ^= men.rays[direction, nearest]
        found |= ray
    return found


@njit
def attacks(men, kind, side, square, occupied):
    """The squares that a man attacks."""
    if kind == KING:
        return men.king_steps[square]
    if kind == KNIGHT:
        return men.knight_steps[square]
    if kind == PAWN:
        return men.pawn_steps[square] if side == 0 else swap_bytes(men.pawn_steps[square ^ 56])
    found = np.uint64(0)
    if kind == ROOK or kind == QUEEN:
        found |= slides(men, square, occupied, np.int64(0), np.int64(4))
    if kind == BISHOP or kind == QUEEN:
        found |= slides(men, square, occupied, np.int64(4), np.int64(8))
    return found


@njit
def in_check(men, types, sides, squares, count, side, without):
    """Whether that side's king is attacked; the man `without` (or -1) is off the board."""
    occupied = np.uint64(0)
    for i in range(count):
        if i != without:
            occupied |= ONE << np.uint64(squares[i])
    king = ONE << np.uint64(squares[side])
    for i in range(count):
        if sides[i] != side and i != without and attacks(men, types[i], sides[i], squares[i], occupied) & king != 0:
            return True
    return False


@njit
def pawn_targets(men, side, square, occupied, theirs):
    """Steps, the double step and captures."""
    bit = ONE << np.uint64(square)
    if side == 0:
        steps = (bit << np.uint64(8)) & ~occupied
        if square >> 3 == 1:
            steps |= (steps << np.uint64(8)) & ~occupied
    else:
        steps = (bit >> np.uint64(8)) & ~occupied
        if square >> 3 == 6:
            steps |= (steps >> np.uint64(8)) & ~occupied
    return steps | (attacks(men, np.int64(PAWN), side, square, occupied) & theirs)


@njit
def any_move(men, types, sides, squares, count, side):
    """Whether that side has a legal move, en passant apart."""
    occupied, theirs = np.uint64(0), np.uint64(0)
    for i in range(count):
        occupied |= ONE << np.uint64(squares[i])
        if sides[i] != side:
            theirs |= ONE << np.uint64(squares[i])
    for i in range(count):
        if sides[i] != side:
            continue
        if types[i] == PAWN:
            targets = pawn_targets(men, side, squares[i], occupied, theirs)
        else:
            targets = attacks(men, types[i], side, squares[i], occupied) & (~occupied | theirs)
        home = squares[i]
        while targets != 0:
            target = np.int64(lowest(targets))
            targets = without_lowest(targets)
            taken = np.int64(-1)
            for k in range(count):
                if k != i and squares[k] == target:
                    taken = k
            squares[i] = target
            legal = taken >= 2 or taken == -1
            legal = legal and not in_check(men, types, sides, squares, count, side, taken)
            squares[i] = home
            if legal:
                return True
    return False


@njit
def beside_pawn(types, sides, squares, count, pawn):
    """1 if a pawn of the other side stands beside that pawn."""
    for k in range(2, count):
        near = abs((squares[k] & 7) - (squares[pawn] & 7)) == 1 and squares[k] >> 3 == squares[pawn] >> 3
        if types[k] == PAWN and sides[k] != sides[pawn] and near:
            return 1
    return 0
