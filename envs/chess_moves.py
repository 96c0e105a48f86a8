"""The legal moves of chess and RESULT (FIDE Laws of Chess 2023, article 3), on the boards of `chess_board.py`.

Moves are generated legal at once: `settle` finds who gives check and which men are pinned, once per position, and
`targets` keeps each man on the squares that answer the check and on the line of its pin. No move is tried out,
apart from en passant, where two pawns leave one rank (the classic trap).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.bits import ONE, ZERO, lowest, popcount, without_lowest
from envs.chess_board import (
    BISHOP,
    CHECKMATE,
    EIGHTH_RANK,
    FIFTY_MOVES,
    FIRST_RANK,
    GOING,
    KING,
    KNIGHT,
    LIGHT_SQUARES,
    LONG_KING,
    LONG_PATH,
    LONG_ROOK,
    LONG_STEP,
    MATERIAL,
    NOT_FILE_A,
    NOT_FILE_H,
    PLAIN_MOVES,
    QUEEN,
    REPETITION,
    ROOK,
    SEVENTH_RANK,
    SHORT_KING,
    SHORT_PATH,
    SHORT_ROOK,
    SHORT_STEP,
    STALEMATE,
    THIRD_RANK,
    ChessBoard,
    moved,
    pawn_sources,
)
from envs.compiled import njit
from envs.game import State
from envs.rng import below


@njit
def underpromotion(source: Any, target: Any) -> Any:
    """The promotion to a knight as an action; the bishop and the rook follow."""
    return PLAIN_MOVES + 9 * (source - 48) + 3 * (target - source - 7)


@njit
def nth_square(board: Any, index: Any) -> Any:
    """The square of the set bit with that index, counted from the lowest."""
    for _ in range(index):
        board = without_lowest(board)
    return lowest(board)


@dataclass(frozen=True)
class ChessMoves(ChessBoard):
    """The compiled half of `Chess`: positions and moves."""

    def settle(self, state: State) -> None:
        """Writes all that follows from the men's places: checks, pins, and whether the game is over."""
        king = lowest(state.kings & state.mine)
        occupied = state.mine | state.theirs
        near = (self.knight_steps[king] & state.knights) | (self.pawn_steps[king] & state.pawns)
        checkers = near & state.theirs
        pinned = ZERO
        rest = self.snipers(state, king)
        while rest != 0:
            shields = self.between[king, lowest(rest)] & occupied
            if shields == 0:
                checkers |= rest & (~rest + ONE)
            elif without_lowest(shields) == 0:
                pinned |= shields & state.mine
            rest = without_lowest(rest)
        state.checkers = checkers
        state.pinned = pinned
        state.ending = self.how_it_ends(state)

    def how_it_ends(self, state: State) -> int:
        if not self.can_move(state):
            return CHECKMATE if state.checkers != 0 else STALEMATE
        if state.clock >= self.clock_limit:
            return FIFTY_MOVES
        if self.draw_rules:
            if state.repetitions >= 2:
                return REPETITION
            if (state.pawns | state.straights) == 0 and self.too_little_material(state):
                return MATERIAL
        return GOING

    def too_little_material(self, state: State) -> bool:
        """Whether neither side can mate by any moves; only asked when there are no pawns, rooks and queens."""
        if state.knights != 0:
            return state.diagonals == 0 and popcount(state.knights) == 1
        light = state.diagonals & LIGHT_SQUARES
        return light == 0 or light == state.diagonals

    def allowed(self, state: State) -> Any:
        """Where men other than the king may go: anywhere, or where they end the check; nowhere in a double check."""
        if state.checkers == 0:
            return ~state.mine
        if without_lowest(state.checkers) != 0:
            return ZERO
        return state.checkers | self.between[lowest(state.kings & state.mine), lowest(state.checkers)]

    def targets(self, state: State, square: Any, allowed: Any) -> Any:
        """The squares to which the mover's man on that square can go."""
        bit = ONE << np.uint64(square)
        if state.kings & bit != 0:
            return self.king_targets(state, square)
        occupied = state.mine | state.theirs
        if state.pawns & bit != 0:
            steps = (bit << np.uint64(8)) & ~occupied
            steps |= ((steps & THIRD_RANK) << np.uint64(8)) & ~occupied
            steps |= self.pawn_steps[square] & state.theirs
        elif state.knights & bit != 0:
            steps = self.knight_steps[square]
        else:
            steps = ZERO
            if state.straights & bit != 0:
                steps |= self.straight_attacks(square, occupied)
            if state.diagonals & bit != 0:
                steps |= self.diagonal_attacks(square, occupied)
        steps &= allowed
        if state.pinned & bit != 0:
            steps &= self.lines[lowest(state.kings & state.mine), square]
        takes = state.passant != 0 and bit & state.pawns & pawn_sources(state.passant) != 0
        if takes and self.passant_is_legal(state, bit):
            steps |= ONE << np.uint64(state.passant)
        return steps

    def passant_is_legal(self, state: State, pawn: Any) -> bool:
        """Whether the king is safe after this pawn took en passant."""
        target = ONE << np.uint64(state.passant)
        taken = target >> np.uint64(8)
        occupied = (state.mine | state.theirs) ^ pawn ^ target ^ taken
        return not self.attacked(state, lowest(state.kings & state.mine), occupied, state.theirs ^ taken)

    def king_targets(self, state: State, king: Any) -> Any:
        occupied = state.mine | state.theirs
        steps = self.king_steps[king] & ~state.mine
        castling = ZERO
        if state.castles & FIRST_RANK != 0 and state.checkers == 0:
            if state.castles & SHORT_ROOK != 0 and occupied & SHORT_PATH == 0:
                castling |= SHORT_KING
            if state.castles & LONG_ROOK != 0 and occupied & LONG_PATH == 0:
                castling |= LONG_KING
        behind = occupied ^ (ONE << np.uint64(king))  # the king does not shield the squares behind him
        safe = ZERO
        rest = steps | castling
        while rest != 0:
            if not self.attacked(state, lowest(rest), behind, state.theirs):
                safe |= rest & (~rest + ONE)
            rest = without_lowest(rest)
        if castling != 0:  # he must not cross an attacked square either
            if castling & SHORT_KING != 0 and safe & SHORT_STEP == 0:
                safe &= ~SHORT_KING
            if castling & LONG_KING != 0 and safe & LONG_STEP == 0:
                safe &= ~LONG_KING
        return safe

    def can_move(self, state: State) -> bool:
        allowed = self.allowed(state)
        rest = state.mine
        while rest != 0:
            if self.targets(state, lowest(rest), allowed) != 0:
                return True
            rest = without_lowest(rest)
        return False

    def actions(self, state: State, out: Any) -> int:
        allowed = self.allowed(state)
        count = 0
        rest = state.mine
        while rest != 0:
            square = lowest(rest)
            steps = self.targets(state, square, allowed)
            while steps != 0:
                out[count] = 64 * square + lowest(steps)
                steps = without_lowest(steps)
                count += 1
            rest = without_lowest(rest)
        rest = state.mine & state.pawns & SEVENTH_RANK
        while rest != 0:
            square = lowest(rest)
            steps = self.targets(state, square, allowed)
            while steps != 0:
                for piece in range(3):
                    out[count + piece] = underpromotion(square, lowest(steps)) + piece
                steps = without_lowest(steps)
                count += 3
            rest = without_lowest(rest)
        return count

    def groups(self, state: State, out: Any) -> int:
        """Writes the legal moves as pairs, a code and the targets, and returns how many numbers it wrote.

        The code is the man's square, or for pawns that move alike minus their step; promotions count once. In no
        particular order, hence quicker than `actions`. A queen may appear twice, with disjoint targets.
        """
        allowed = self.allowed(state)
        king = lowest(state.kings & state.mine)
        occupied = state.mine | state.theirs
        out[0], out[1] = king, np.int64(self.king_targets(state, king))
        count = 2
        if allowed == 0:
            return count
        apart = state.pinned  # pawns with a rule of their own
        if state.passant != 0:
            apart |= pawn_sources(state.passant)
        pawns = state.pawns & state.mine
        rest = pawns & apart
        while rest != 0:
            out[count], out[count + 1] = lowest(rest), np.int64(self.targets(state, lowest(rest), allowed))
            rest = without_lowest(rest)
            count += 2
        pawns &= ~apart
        single = (pawns << np.uint64(8)) & ~occupied
        double = ((single & THIRD_RANK) << np.uint64(8)) & ~occupied
        out[count], out[count + 1] = -8, np.int64(single & allowed)
        out[count + 2], out[count + 3] = -16, np.int64(double & allowed)
        out[count + 4] = -7
        out[count + 5] = np.int64(((pawns & NOT_FILE_A) << np.uint64(7)) & state.theirs & allowed)
        out[count + 6] = -9
        out[count + 7] = np.int64(((pawns & NOT_FILE_H) << np.uint64(9)) & state.theirs & allowed)
        count += 8
        rest = state.knights & state.mine & ~state.pinned
        while rest != 0:
            out[count], out[count + 1] = lowest(rest), np.int64(self.knight_steps[lowest(rest)] & allowed)
            rest = without_lowest(rest)
            count += 2
        rest = state.diagonals & state.mine
        while rest != 0:
            square = lowest(rest)
            steps = self.diagonal_attacks(square, occupied) & allowed
            if state.pinned >> np.uint64(square) & ONE != 0:
                steps &= self.lines[king, square]
            out[count], out[count + 1] = square, np.int64(steps)
            rest = without_lowest(rest)
            count += 2
        rest = state.straights & state.mine
        while rest != 0:
            square = lowest(rest)
            steps = self.straight_attacks(square, occupied) & allowed
            if state.pinned >> np.uint64(square) & ONE != 0:
                steps &= self.lines[king, square]
            out[count], out[count + 1] = square, np.int64(steps)
            rest = without_lowest(rest)
            count += 2
        return count

    def promotions(self, state: State, code: Any, targets: Any) -> Any:
        """Those targets of a group on which a pawn promotes."""
        if code >= 0 and (state.pawns & SEVENTH_RANK) >> np.uint64(code) & ONE == 0:
            return ZERO
        return targets & EIGHTH_RANK

    def count_groups(self, state: State, out: Any, written: Any) -> int:
        """The number of moves in the groups, promotions counted fully."""
        count = 0
        for i in range(1, written, 2):
            count += popcount(np.uint64(out[i]))
        if state.mine & state.pawns & SEVENTH_RANK != 0:
            for i in range(0, written, 2):
                count += 3 * popcount(self.promotions(state, out[i], np.uint64(out[i + 1])))
        return count

    def count_actions(self, state: State, out: Any) -> int:
        """The number of legal actions, without spelling them out; `out` is scratch."""
        return self.count_groups(state, out, self.groups(state, out))

    def random_action(self, state: State, out: Any, rng: Any) -> Any:
        written = self.groups(state, out)
        index = below(rng, self.count_groups(state, out, written))
        for i in range(0, written, 2):
            targets = np.uint64(out[i + 1])
            if index < popcount(targets):
                target = nth_square(targets, index)
                return 64 * (out[i] if out[i] >= 0 else target + out[i]) + target
            index -= popcount(targets)
        for i in range(0, written, 2):
            targets = self.promotions(state, out[i], np.uint64(out[i + 1]))
            if index < 3 * popcount(targets):
                target = nth_square(targets, index // 3)
                source = out[i] if out[i] >= 0 else target + out[i]
                return underpromotion(source, target) + index % 3
            index -= 3 * popcount(targets)
        return out[0]  # never reached: the index is below the count

    # --- RESULT --------------------------------------------------------------------------------------

    def source_of(self, action: Any) -> Any:
        """The square from which the action starts, from the mover's side."""
        return action >> 6 if action < PLAIN_MOVES else 48 + (action - PLAIN_MOVES) // 9

    def target_of(self, action: Any) -> Any:
        """The square where the action ends, from the mover's side."""
        if action < PLAIN_MOVES:
            return action & 63
        rest = action - PLAIN_MOVES
        return 55 + rest // 9 + rest // 3 % 3

    def play(self, state: State, action: Any) -> None:
        source, target = self.source_of(action), self.target_of(action)
        start, goal = ONE << np.uint64(source), ONE << np.uint64(target)
        pawn_moves, king_moves = state.pawns & start != 0, state.kings & start != 0
        taken = state.theirs & goal
        if pawn_moves and state.passant != 0 and target == state.passant:
            taken = goal >> np.uint64(8)
        castles = state.castles & ~(start | goal)
        if king_moves:
            castles &= ~FIRST_RANK
        lasting = pawn_moves or taken != 0
        if self.draw_rules:
            self.remember(state, source, target, lasting or castles != state.castles or state.passant != 0)
        state.clock = 0 if lasting else state.clock + 1
        state.castles = castles
        state.theirs &= ~taken
        state.mine ^= start | goal
        state.pawns = moved(state.pawns & ~taken, source, target)
        state.knights = moved(state.knights & ~taken, source, target)
        state.diagonals = moved(state.diagonals & ~taken, source, target)
        state.straights = moved(state.straights & ~taken, source, target)
        state.kings = moved(state.kings, source, target)
        if pawn_moves and target >= 56:
            self.promote(state, goal, (action - PLAIN_MOVES) % 3 if action >= PLAIN_MOVES else QUEEN)
        elif king_moves and (target - source == 2 or source - target == 2):
            rook = SHORT_ROOK | SHORT_STEP if target > source else LONG_ROOK | LONG_STEP
            state.straights ^= rook
            state.mine ^= rook
        state.passant = 0
        self.turn_round(state)
        if pawn_moves and target - source == 16:
            self.offer_passant(state, 56 ^ (source + 8))
        self.settle(state)

    def offer_passant(self, state: State, square: Any) -> None:
        """Writes the en passant square if the mover has a pawn that can legally take there."""
        takers = state.mine & state.pawns & pawn_sources(square)
        state.passant = square
        while takers != 0:
            if self.passant_is_legal(state, takers & (~takers + ONE)):
                return
            takers = without_lowest(takers)
        state.passant = 0

    def remember(self, state: State, source: Any, target: Any, lasting: Any) -> None:
        """Adds the move to the history, or clears it; counts earlier occurrences of the coming position.

        To count them, the moves are taken back in thought: `changes` holds the difference between then and now
        as a 64-bit Zobrist sum, which is 0 when every man stands where it will stand after this move.
        """
        if lasting or state.reversible >= 100:
            self.forget(state)
            return
        state.repetitions = 0
        length = np.int64(state.reversible)
        start = ONE << np.uint64(source)
        if state.knights & start != 0:
            kind = KNIGHT
        elif state.kings & start != 0:
            kind = KING
        elif state.straights & start == 0:
            kind = BISHOP
        else:
            kind = ROOK if state.diagonals & start == 0 else QUEEN
        state.history[length] = kind << 12 | source << 6 | target
        state.reversible = length + 1
        changes = ZERO
        for back in range(length + 1):
            move = np.int64(state.history[length - back])
            man = move >> 12
            changes ^= self.numbers[back & 1, man, (move >> 6) & 63] ^ self.numbers[back & 1, man, move & 63]
            if changes == 0 and back & 1 == 1:
                state.repetitions += 1

    def forget(self, state: State) -> None:
        """Clears the history: no former position can come back."""
        for i in range(state.reversible):
            state.history[i] = 0
        state.reversible = 0
        state.repetitions = 0
