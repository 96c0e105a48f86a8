"""Chess for searches: which moves are loud, which come first, which lose material, and the null move."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.bits import ONE, ZERO, lowest
from envs.chess_board import EIGHTH_RANK, PLAIN_MOVES, pawn_sources
from envs.chess_features import ChessFeatures
from envs.game import State


@dataclass(frozen=True)
class ChessHints(ChessFeatures):
    """Adds the hints to the features."""

    def worth(self, state: State, square: Any) -> int:
        """1 pawn, 2 knight, 3 bishop, 4 rook, 5 queen, 6 king, 0 nothing."""
        bit = ONE << np.uint64(square)
        if state.pawns & bit != 0:
            return 1
        if state.knights & bit != 0:
            return 2
        if state.kings & bit != 0:
            return 6
        return (3 if state.diagonals & bit != 0 else 0) + (
            (4 if state.diagonals & bit == 0 else 2) if state.straights & bit != 0 else 0
        )

    def move_value(self, state: State, action: Any) -> int:
        """0 for quiet moves; otherwise the more, the dearer the man taken, then the cheaper the taker."""
        source, target = self.source_of(action), self.target_of(action)
        victim = self.worth(state, target)
        pawn = (state.pawns >> np.uint64(source)) & ONE != 0
        if pawn and state.passant != 0 and target == state.passant:
            victim = 1
        if pawn and target >= 56 and action < PLAIN_MOVES:
            victim += 5  # a queen is won
        return 8 * victim - self.worth(state, source) if victim > 0 else 0

    def is_loud(self, state: State, action: Any) -> bool:
        """Captures and promotions to a queen."""
        source, target = self.source_of(action), self.target_of(action)
        goal = ONE << np.uint64(target)
        if state.theirs & goal != 0:
            return True
        if (state.pawns >> np.uint64(source)) & ONE == 0:
            return False
        return (goal & EIGHTH_RANK != 0 and action < PLAIN_MOVES) or (state.passant != 0 and target == state.passant)

    def in_check(self, state: State) -> bool:
        return state.checkers != 0

    def can_pass(self, state: State) -> bool:
        """Whether a null move is allowed and sensible: no check, and the mover has more than king and pawns."""
        return state.checkers == 0 and state.mine & ~(state.pawns | state.kings) != 0

    def pass_turn(self, state: State) -> None:
        """The null move of search: the other player is to move. Only where `in_check` is false."""
        self.forget(state)
        state.passant = 0
        self.turn_round(state)
        self.settle(state)

    def price(self, kind: Any) -> int:
        """What an exchange counts for a man, by `worth`: 1, 3, 3, 5, 9 as usual; the king is beyond price."""
        return (0, 1, 3, 3, 5, 9, 100)[kind]

    def loses_material(self, state: State, action: Any) -> bool:
        """Whether the captures on the square where the action ends lose more than they win, if both sides take with
        their cheapest man first and stop when they like. Pins are not looked at; promotions never count as losing.
        """
        source, target = self.source_of(action), self.target_of(action)
        start, goal = ONE << np.uint64(source), ONE << np.uint64(target)
        kind = self.worth(state, source)
        if kind == 6 or (kind == 1 and target >= 56):
            return False
        occupied = (state.mine | state.theirs) & ~start | goal
        balance = self.price(self.worth(state, target))  # what the mover has won so far
        if kind == 1 and state.passant != 0 and target == state.passant:
            balance = 1
            occupied ^= goal >> np.uint64(8)
        prize = self.price(kind)  # the man that stands on the square now
        while True:
            if balance >= prize:
                return False  # the mover has won enough, even if this man is lost as well
            taker = self.cheapest_taker(state, target, occupied, state.theirs, state.mine)
            if taker == 0:
                return False
            balance -= prize
            prize = self.price(self.worth(state, lowest(taker)))
            occupied ^= taker
            if balance + prize < 0:
                return True  # nothing on the square can make up for it
            taker = self.cheapest_taker(state, target, occupied, state.mine, state.theirs)
            if taker == 0:
                return True
            balance += prize
            prize = self.price(self.worth(state, lowest(taker)))
            occupied ^= taker

    def cheapest_taker(self, state: State, target: Any, occupied: Any, side: Any, rivals: Any) -> Any:
        """The cheapest man of one side that attacks the square on a board so occupied, as a bit; 0 if there is none.

        The king takes only what none of the rivals protects.
        """
        pawns = (pawn_sources(target) & state.mine) | (self.pawn_steps[target] & state.theirs)
        near = (pawns & state.pawns) | (self.knight_steps[target] & state.knights)
        diagonal = self.diagonal_attacks(target, occupied) & state.diagonals
        straight = self.straight_attacks(target, occupied) & state.straights
        far = diagonal | straight
        near &= occupied
        far &= occupied
        found = near & side & state.pawns
        if found == 0:
            found = near & side
        if found == 0:
            found = far & side & ~state.straights
        if found == 0:
            found = far & side & ~state.diagonals
        if found == 0:
            found = far & side
        if found == 0 and (near | far | (self.king_steps[target] & state.kings)) & rivals == 0:
            found = self.king_steps[target] & state.kings & side
        return found & (~found + ONE) if found != 0 else ZERO
