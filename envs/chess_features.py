"""Chess for a linear evaluation: some forty numbers, each one side's count minus the other's, from the mover's side.

The terms are the textbook's (Shannon 1950, "Programming a Computer for Playing Chess": material, mobility, doubled
and isolated pawns, exposed kings; Slate and Atkin 1977 for passed pawns, open files and the king's shelter). They are
scaled to the order of a pawn's worth, so that one learning rate suits all. Each side is looked at with its own first
rank at the bottom, so that the same lines serve both. `stage` is 1 with all pieces on the board and 0 with none: a
term "middlegame" is multiplied by it, a term "endgame" by 1 - stage.

A weight for each name makes an evaluation; `configs/chess.toml` has one made by hand.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.bits import ONE, lowest, popcount, swap_bytes, without_lowest
from envs.chess_board import EIGHTH_RANK, LIGHT_SQUARES, NOT_FILE_A, NOT_FILE_H, SEVENTH_RANK
from envs.chess_moves import ChessMoves
from envs.game import State

# Name: what is counted. The order is the order in the vector.
MEANINGS = {
    "pawns": "men of that kind",
    "knights": "",
    "bishops": "",
    "rooks": "",
    "queens": "",
    "bishop pair": "1 with bishops on squares of both colours",
    "doubled pawns": "pawns with one of their own in front on the file",
    "isolated pawns": "pawns without one of their own on the files beside",
    "protected pawns": "half the number of pawns that a pawn protects",
    "pawns side by side": "half the number of pawns with one of their own beside them",
    "pawn squares, middlegame": "the worth of the squares, see `square_tables`",
    "pawn squares, endgame": "",
    "passed pawns": "pawns that no pawn can stop or take on their way",
    "passed pawn advance": "a fifth of the ranks that they have come",
    "passed pawn advance, squared": "the same, squared for each",
    "protected passed pawns": "those that a pawn protects",
    "blocked passed pawns": "those with an enemy in front",
    "kings and passed pawns, endgame": "a fifth of: the other king's distance to the square in front less the own king's",
    "men attacked by pawns": "enemy men other than pawns",
    "knight mobility": "an eighth of the squares that they reach, own men and squares that pawns attack left out",
    "bishop mobility": "",
    "rook mobility": "",
    "queen mobility": "",
    "knight squares": "the worth of the squares, see `square_tables`",
    "bishop squares": "",
    "knights on outposts": "knights on rank 4 to 6, protected by a pawn, that no pawn can drive away",
    "pawns on the bishops' colour": "a quarter of the own pawns on squares of each bishop's colour",
    "rooks on open files": "files without any pawn",
    "rooks on half-open files": "files without a pawn of their own",
    "rooks on the seventh rank": "",
    "king squares, middlegame": "the worth of the square, see `square_tables`",
    "king squares, endgame": "",
    "king's shelter, middlegame": "half the number of own pawns within two ranks before the king",
    "open files at the king, middlegame": "files at the king or beside without a pawn of his",
    "knights' grip on the king": "half the number of squares round the other king that they attack, each its own",
    "bishops' grip on the king": "",
    "rooks' grip on the king": "",
    "queens' grip on the king": "",
    "joint attack on the king": "half the number of pairs of pieces that attack squares round the other king",
    "castling rights": "half the number",
    "space": "a quarter of the squares on files c to f, ranks 2 to 5, on or behind the own pawns",
    "in check": "-1 if the mover is in check",
    "to move": "always 1",
}
FEATURES = tuple(MEANINGS)
(
    PAWNS, KNIGHTS, BISHOPS, ROOKS, QUEENS, BISHOP_PAIR,
    DOUBLED, ISOLATED, PROTECTED, SIDE_BY_SIDE, PAWN_MIDDLEGAME, PAWN_ENDGAME,
    PASSED, PASSED_ADVANCE, PASSED_SQUARED, PASSED_PROTECTED, PASSED_BLOCKED, PASSED_KINGS, PAWN_ATTACKS,
    KNIGHT_MOBILITY, BISHOP_MOBILITY, ROOK_MOBILITY, QUEEN_MOBILITY, KNIGHT_SQUARES, BISHOP_SQUARES,
    OUTPOSTS, BOUND_BISHOPS, OPEN_FILES, HALF_OPEN_FILES, SEVENTH,
    KING_MIDDLEGAME, KING_ENDGAME, SHELTER, OPEN_KING,
    KNIGHT_GRIP, BISHOP_GRIP, ROOK_GRIP, QUEEN_GRIP, JOINT_ATTACK, CASTLING, SPACE, CHECKED, TO_MOVE,
) = range(len(FEATURES))  # fmt: skip

OUTPOST_RANKS = np.uint64(0x0000_FFFF_FF00_0000)
SPACE_SQUARES = np.uint64(0x0000_003C_3C3C_3C00)
FIRST_TWO_RANKS = np.uint64(0xFFFF)

# Rows of the table of squares.
PAWN_EARLY, PAWN_LATE, KNIGHT_PLACE, BISHOP_PLACE, KING_EARLY, KING_LATE = 0, 1, 2, 3, 4, 5


def square_tables() -> np.ndarray:
    """What squares are worth, in pawns: (6, 64), a1 first, seen by the owner.

    Pawns take the centre and, late, run; knights and bishops leave the first rank for the middle; the king hides in
    a corner of the first rank and comes to the middle when the pieces are gone.
    """
    files, ranks = np.arange(64) % 8, np.arange(64) // 8
    file_middle, rank_middle = np.minimum(files, 7 - files), np.minimum(ranks, 7 - ranks)
    middle = file_middle + rank_middle - 3  # -3 in the corners to 3 in the centre
    come = ranks - 1
    table = np.zeros((6, 64))
    table[PAWN_EARLY] = 0.06 * (file_middle - 1.5) * np.minimum(come, 3) + 0.04 * come
    table[PAWN_LATE] = np.array([0.0, 0.0, 0.04, 0.10, 0.22, 0.42, 0.80, 0.0])[ranks]
    table[KNIGHT_PLACE] = (
        0.09 * middle + np.where(ranks == 0, -0.1, 0.0) + np.where((ranks > 2) & (ranks < 6), 0.05, 0.0)
    )
    table[BISHOP_PLACE] = 0.04 * middle + np.where(ranks == 0, -0.12, 0.0)
    table[KING_EARLY] = np.array([0.2, 0.3, 0.1, -0.05, 0.0, -0.1, 0.35, 0.25])[files] - 0.3 * np.minimum(ranks, 4)
    table[KING_LATE] = 0.12 * middle
    table[:2, (ranks == 0) | (ranks == 7)] = 0.0
    return table


def distances() -> np.ndarray:
    """The king's moves from one square to another on an empty board."""
    files, ranks = np.arange(64) % 8, np.arange(64) // 8
    return np.maximum(abs(files[:, None] - files), abs(ranks[:, None] - ranks)).astype(np.int8)


@dataclass(frozen=True)
class ChessFeatures(ChessMoves):
    """Adds the features to the moves."""

    num_features = len(FEATURES)

    def feature_names(self) -> tuple[str, ...]:
        return FEATURES

    def tables(self) -> dict[str, np.ndarray]:
        return {**super().tables(), "squares": square_tables(), "distances": distances()}

    def features(self, state: State, out: Any) -> int:
        for i in range(self.num_features):
            out[i] = 0.0
        minors = state.knights | (state.diagonals & ~state.straights)
        rooks, queens = state.straights & ~state.diagonals, state.straights & state.diagonals
        stage = (popcount(minors) + 2.0 * popcount(rooks) + 4.0 * popcount(queens)) / 24.0  # 1 at the start
        self.side_features(
            state.knights,
            state.diagonals,
            state.straights,
            state.kings,
            state.pawns,
            state.mine,
            state.theirs,
            stage,
            1.0,
            out,
        )
        self.side_features(
            swap_bytes(state.knights),
            swap_bytes(state.diagonals),
            swap_bytes(state.straights),
            swap_bytes(state.kings),
            swap_bytes(state.pawns),
            swap_bytes(state.theirs),
            swap_bytes(state.mine),
            stage,
            -1.0,
            out,
        )
        out[CASTLING] = 0.5 * (popcount(state.castles & FIRST_TWO_RANKS) - popcount(state.castles & ~FIRST_TWO_RANKS))
        out[CHECKED] = -1.0 if state.checkers != 0 else 0.0
        out[TO_MOVE] = 1.0
        return self.num_features

    def fill_up(self, board: Any) -> Any:
        """The board with all squares above its own."""
        board |= board << np.uint64(8)
        board |= board << np.uint64(16)
        return board | (board << np.uint64(32))

    def fill_down(self, board: Any) -> Any:
        """The board with all squares below its own."""
        board |= board >> np.uint64(8)
        board |= board >> np.uint64(16)
        return board | (board >> np.uint64(32))

    def beside(self, board: Any) -> Any:
        """The squares at the left and right of the board's own."""
        return ((board & NOT_FILE_A) >> ONE) | ((board & NOT_FILE_H) << ONE)

    def side_features(
        self,
        knights: Any,
        diagonals: Any,
        straights: Any,
        kings: Any,
        all_pawns: Any,
        mine: Any,
        others: Any,
        stage: Any,
        sign: Any,
        out: Any,
    ) -> None:
        """Adds the features of one side, times sign."""
        pawns, other_pawns = all_pawns & mine, all_pawns & others
        king, other_king = lowest(kings & mine), lowest(kings & others)
        self.pawn_features(pawns, other_pawns, others, king, other_king, stage, sign, out)
        self.piece_features(knights, diagonals, straights, pawns, other_pawns, mine, others, other_king, sign, out)
        own_files, other_files = self.fill_up(self.fill_down(pawns)), self.fill_up(self.fill_down(other_pawns))
        rooks = straights & ~diagonals & mine
        out[OPEN_FILES] += sign * popcount(rooks & ~own_files & ~other_files)
        out[HALF_OPEN_FILES] += sign * popcount(rooks & ~own_files & other_files)
        out[SEVENTH] += sign * popcount(rooks & SEVENTH_RANK)
        out[KING_MIDDLEGAME] += sign * stage * self.squares[KING_EARLY, king]
        out[KING_ENDGAME] += sign * (1.0 - stage) * self.squares[KING_LATE, king]
        zone = self.king_steps[king] | (self.king_steps[king] << np.uint64(8))
        out[SHELTER] += sign * stage * 0.5 * popcount(pawns & zone)
        near = kings & mine
        near |= self.beside(near)
        out[OPEN_KING] += sign * stage * popcount(self.fill_up(near) & ~own_files & EIGHTH_RANK)

    def pawn_features(
        self,
        pawns: Any,
        other_pawns: Any,
        others: Any,
        king: Any,
        other_king: Any,
        stage: Any,
        sign: Any,
        out: Any,
    ) -> None:
        """Adds the features of one side's pawns, times sign."""
        attacks = self.beside(pawns) << np.uint64(8)
        behind = self.fill_down(pawns >> np.uint64(8))
        stopped = self.fill_down(other_pawns >> np.uint64(8))
        passed = pawns & ~(stopped | self.beside(stopped)) & ~behind
        out[PAWNS] += sign * popcount(pawns)
        out[DOUBLED] += sign * popcount(pawns & behind)
        out[ISOLATED] += sign * popcount(pawns & ~self.beside(self.fill_up(behind | pawns)))
        out[PROTECTED] += sign * 0.5 * popcount(pawns & attacks)
        out[SIDE_BY_SIDE] += sign * 0.5 * popcount(pawns & self.beside(pawns))
        out[PAWN_ATTACKS] += sign * popcount(attacks & others & ~other_pawns)
        out[SPACE] += sign * 0.25 * popcount(SPACE_SQUARES & (behind | pawns))
        early, late = 0.0, 0.0
        rest = pawns
        while rest != 0:
            early += self.squares[PAWN_EARLY, lowest(rest)]
            late += self.squares[PAWN_LATE, lowest(rest)]
            rest = without_lowest(rest)
        out[PAWN_MIDDLEGAME] += sign * stage * early
        out[PAWN_ENDGAME] += sign * (1.0 - stage) * late
        if passed == 0:
            return
        out[PASSED] += sign * popcount(passed)
        out[PASSED_PROTECTED] += sign * popcount(passed & attacks)
        out[PASSED_BLOCKED] += sign * popcount(passed & (others >> np.uint64(8)))
        while passed != 0:
            square = lowest(passed)
            advance = 0.2 * ((square >> 3) - 1)
            out[PASSED_ADVANCE] += sign * advance
            out[PASSED_SQUARED] += sign * advance * advance
            lead = np.float64(self.distances[other_king, square + 8]) - np.float64(self.distances[king, square + 8])
            out[PASSED_KINGS] += sign * (1.0 - stage) * 0.2 * lead
            passed = without_lowest(passed)

    def piece_features(
        self,
        knights: Any,
        diagonals: Any,
        straights: Any,
        pawns: Any,
        other_pawns: Any,
        mine: Any,
        others: Any,
        other_king: Any,
        sign: Any,
        out: Any,
    ) -> None:
        """Adds the features of one side's knights, bishops, rooks and queens, times sign."""
        occupied = mine | others
        danger = self.beside(other_pawns) >> np.uint64(8)
        free = ~(mine | danger)
        ring = self.king_steps[other_king]
        bishops = diagonals & ~straights & mine
        boards = (knights & mine, bishops, straights & ~diagonals & mine, straights & diagonals & mine)
        attackers = 0
        for kind in range(4):
            rest = boards[kind]
            count, mobility, grip, place = 0, 0, 0, 0.0
            while rest != 0:
                square = lowest(rest)
                if kind == 0:
                    reach = self.knight_steps[square]
                    place += self.squares[KNIGHT_PLACE, square]
                elif kind == 1:
                    reach = self.diagonal_attacks(square, occupied)
                    place += self.squares[BISHOP_PLACE, square]
                elif kind == 2:
                    reach = self.straight_attacks(square, occupied)
                else:
                    reach = self.diagonal_attacks(square, occupied) | self.straight_attacks(square, occupied)
                count += 1
                mobility += popcount(reach & free)
                grip += popcount(reach & ring)
                attackers += 1 if reach & ring != 0 else 0
                rest = without_lowest(rest)
            out[KNIGHTS + kind] += sign * count
            out[KNIGHT_MOBILITY + kind] += sign * 0.125 * mobility
            out[KNIGHT_GRIP + kind] += sign * 0.5 * grip
            if kind < 2:
                out[KNIGHT_SQUARES + kind] += sign * place
        out[JOINT_ATTACK] += sign * 0.25 * attackers * (attackers - 1)
        light = bishops & LIGHT_SQUARES
        if light != 0 and light != bishops:
            out[BISHOP_PAIR] += sign
        safe = ~self.fill_down(danger) & (self.beside(pawns) << np.uint64(8)) & OUTPOST_RANKS
        out[OUTPOSTS] += sign * popcount(knights & mine & safe)
        bound = popcount(light) * popcount(pawns & LIGHT_SQUARES)
        out[BOUND_BISHOPS] += sign * 0.25 * (bound + popcount(bishops ^ light) * popcount(pawns & ~LIGHT_SQUARES))
