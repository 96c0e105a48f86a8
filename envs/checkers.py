"""Checkers, English draughts, by the rules of the American Checker Federation and the World Checkers/Draughts
Federation (WCDF, "Rules of Checkers").

Men step one square diagonally forward, kings in all four directions; jumping is compulsory, the choice among
jumps is free, a piece goes on jumping as long as it can. A man that reaches the king row is crowned and its turn
ends there, also in the middle of a jump. Jumped pieces leave the board at once (a jump never lands on a square
where a piece was jumped, so that this equals removal at the end of the turn). A side that cannot move loses.

One action is one step or one jump: in a multi-jump the same player moves again with the piece in `jumper`.

Draws, as fields of `Checkers`:
- `quiet_plies` = 80: the WCDF's 40-move rule. The game is drawn when the last 80 plies (40 moves of each side)
  neither captured a piece nor moved a man. With `men_reset=False` only captures count as progress.
- `repetitions` = 3: the game is drawn when a position stands on the board for the third time with the same side
  to move. 0 turns this off.
Both are claims in a tournament and automatic here. A side without moves loses even on a drawing ply.
Captures and man moves cannot be undone, so only king moves since the last one matter for repetition. The state
keeps these as actions, one byte each, at most `quiet_plies` of them: walking back, a position has occurred before
where the squares left and entered cancel out for both sides. This is exact, no hash is involved.

Squares are numbered 1 to 32 as in the literature; Black, player 0, starts on 1 to 12 and moves first:

         1   2   3   4          The boards hold the position as the player to move sees it: White's view is
       5   6   7   8            this diagram, Black's is the diagram turned by half. Bit 8 * row + column, row 0
         9  10  11  12          on top, so the mover's forward steps are shifts right by 9 (to the left) and by
      13  14  15  16            7 (to the right), back steps are shifts left by 7 and 9. Playable squares have
        17  18  19  20          odd row + column. A step over the edge ends on a square of the other colour,
      21  22  23  24            hence "playable and empty" is the only mask that move generation needs.
        25  26  27  28
      29  30  31  32            Turning the board is reversing the 64 bits.

Actions are seen from the mover's side too: 4 * (square - 1) + direction, where square is the number in the
diagram as turned for the mover and direction is 0 forward left, 1 forward right, 2 back left, 3 back right.
Black's action a is thus White's action 127 - a. Whether it is a step or a jump follows from the position.

Names are PDN: "11-15", "15x22", squares as in the diagram for both sides. Positions are PDN move lists, in which
"9x18x25" is a whole multi-jump and "9x25" too if only one leads there, or FEN (see `checkers_notation.py`).

`key` covers the pieces, the side to move and the jumping piece, not the counters and the history of the draw
rules (`history_fields`).

OpenSpiel's checkers differs: its draw rule is `quiet_plies=40, men_reset=False, repetitions=0`, and there the
draw beats the loss: a side without moves after the 40th such ply draws. Its player 0 sits at the bottom of its
diagram. Its actions are 8 * (8 * row + column) + 2 * direction + jump, directions from player 0's view clockwise
from forward left.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from envs import checkers_notation as notation_of
from envs.bits import FULL, ONE, ZERO, lowest, mix, popcount, swap_bytes, without_lowest
from envs.compiled import njit, python_only
from envs.errors import InputError
from envs.game import TERMINAL, Game, State
from envs.rng import below

HISTORY = 80  # room for the king moves since the last capture or man move

DARK = np.uint64(0x55AA55AA55AA55AA)  # the playable squares
KING_ROW = np.uint64(0x00000000000000FF)
HOME_ROW = np.uint64(0xFF00000000000000)
START = np.uint64(0x55AA550000000000)  # the mover's men at the start: rows 5, 6, 7
CENTRE = np.uint64(0x00003C3C3C3C0000)
EDGE = np.uint64(0x8181818181818181)
BRIDGE = np.uint64(0x4400000000000000)  # Samuel's bridge: 1 and 3 for Black, 30 and 32 for White
DOUBLE_CORNERS = np.uint64(0x4080000000000102)  # 1, 5, 28, 32: where a lone king cannot be driven out
SYSTEM = np.uint64(0x5555555555555555)  # the columns that begin with a playable square in the mover's home row
SEVEN, NINE, FOURTEEN, EIGHTEEN = np.uint64(7), np.uint64(9), np.uint64(14), np.uint64(18)

FEATURES = (
    "men",
    "kings",
    "material share",  # (mine - theirs) / all pieces: being ahead counts more the fewer are left
    "back row guards",
    "bridge",
    "centre men",
    "centre kings",
    "men on the edge",
    "advancement",  # rows that the men have gone
    "men before the king row",
    "mobility",  # steps, whether or not a jump is compulsory
    "pieces that can jump",
    "trapped kings",  # kings with neither a step nor a jump
    "kings in a double corner",
    "the move",  # the opposition: with equal numbers, an odd count of pieces in the mover's system
    "to move",
)


@njit
def swap_pairs(board: Any) -> Any:
    """Bits 2i and 2i + 1 exchanged: takes the playable squares to the others."""
    pairs = np.uint64(0x5555555555555555)
    return ((board >> ONE) & pairs) | ((board & pairs) << ONE)


@njit
def turned(board: Any) -> Any:
    """The board turned by half: its bits in reverse order."""
    fours, twos = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x3333333333333333)
    board = swap_bytes(board)
    board = ((board >> np.uint64(4)) & fours) | ((board & fours) << np.uint64(4))
    board = ((board >> np.uint64(2)) & twos) | ((board & twos) << np.uint64(2))
    return swap_pairs(board)


@njit
def jump_origins(pieces, kings, theirs, empty):
    """The pieces that can jump, for each of the four directions."""
    return (
        pieces & (theirs << NINE) & (empty << EIGHTEEN),
        pieces & (theirs << SEVEN) & (empty << FOURTEEN),
        kings & (theirs >> SEVEN) & (empty >> FOURTEEN),
        kings & (theirs >> NINE) & (empty >> EIGHTEEN),
    )


@njit
def step_origins(pieces, kings, empty):
    """The pieces that can step, for each of the four directions."""
    return (
        pieces & (empty << NINE),
        pieces & (empty << SEVEN),
        kings & (empty >> SEVEN),
        kings & (empty >> NINE),
    )


@njit
def rows_advanced(men):
    """The rows that the mover's men have gone, in all."""
    total = 0
    for row in range(8):
        total += (7 - row) * popcount(men & (KING_ROW << np.uint64(8 * row)))
    return total


@njit
def side_features(out, sign, pieces, kings, theirs):
    """Adds, times the sign, the features of the side that moves up the board."""
    men, own_kings = pieces & ~kings, pieces & kings
    empty = DARK & ~(pieces | theirs)
    a, b, c, d = step_origins(pieces, own_kings, empty)
    e, f, g, h = jump_origins(pieces, own_kings, theirs, empty)
    out[0] += sign * popcount(men)
    out[1] += sign * popcount(own_kings)
    out[3] += sign * popcount(men & HOME_ROW)
    out[4] += sign if men & BRIDGE == BRIDGE else 0.0
    out[5] += sign * popcount(men & CENTRE)
    out[6] += sign * popcount(own_kings & CENTRE)
    out[7] += sign * popcount(men & EDGE)
    out[8] += sign * rows_advanced(men)
    out[9] += sign * popcount(men & (KING_ROW << np.uint64(8)))
    out[10] += sign * (popcount(a) + popcount(b) + popcount(c) + popcount(d))
    out[11] += sign * popcount(e | f | g | h)
    out[12] += sign * popcount(own_kings & ~(a | b | c | d | e | f | g | h))
    out[13] += sign * popcount(own_kings & DOUBLE_CORNERS)


@dataclass(frozen=True)
class Checkers(Game):
    """Parameters: the draw rules."""

    quiet_plies: int = 80
    men_reset: bool = True
    repetitions: int = 3

    title = "Checkers"
    notation = 'moves "11-15 23-19 8-11" or a FEN "B:W18,24,K10:B12,16,K22"'
    num_actions = 128
    max_legal = 48  # twelve kings, four steps each
    observation_shape = (7, 8, 8)
    num_features = len(FEATURES)
    compound_moves = True
    perft_by_turn = True
    num_words = 4
    cell_values = 5  # empty, my man, their man, my king, their king
    most_filled = 24
    history_fields: ClassVar[tuple[str, ...]] = ("quiet", "length", "seen", "history")  # not part of `key`
    state = np.dtype(
        [
            ("mine", "u8"),  # the pieces of the player to move, men and kings
            ("theirs", "u8"),
            ("kings", "u8"),  # of both sides
            ("jumper", "u8"),  # the piece in the middle of a multi-jump, or 0
            ("turn", "i2"),
            ("quiet", "i2"),  # plies since the last capture (or man move)
            ("length", "i2"),  # king moves in `history`
            ("seen", "i2"),  # how often this position occurred before, as far as `history` tells
            ("history", "u1", (HISTORY,)),  # actions, each from its own mover's view; zeros behind `length`
        ],
        align=True,
    )

    def __post_init__(self) -> None:
        if not 1 <= self.quiet_plies <= 30_000:
            raise InputError(f"checkers: quiet_plies={self.quiet_plies} must be from 1 to 30000")
        if self.repetitions != 0 and not 2 <= self.repetitions <= 9:
            raise InputError(f"checkers: repetitions={self.repetitions} must be 0 (off) or from 2 to 9")
        if self.repetitions and self.quiet_plies > HISTORY:
            raise InputError(
                f"checkers: quiet_plies={self.quiet_plies} must be at most {HISTORY}, the room for the history, "
                "unless repetitions=0"
            )

    @property
    def max_length(self) -> int:
        # At most 23 plies capture and 2 * 4 * (7 + 6 + 5) move a man; quiet_plies are reached between no two.
        progress = 23 + (2 * 4 * (7 + 6 + 5) if self.men_reset else 0)
        return (progress + 1) * self.quiet_plies

    def tables(self) -> dict[str, np.ndarray]:
        """By action: the square left, the next one in that direction and the one after it (0: off the board)."""
        bits = np.zeros((3, 128), np.uint64)
        for action in range(128):
            row, right = action // 16, -1 if action % 2 == 0 else 1
            column, down = 2 * (action // 4 % 4) + 1 - row % 2, -1 if action % 4 < 2 else 1
            for i in range(3):
                if 0 <= row + i * down < 8 and 0 <= column + i * right < 8:
                    bits[i, action] = 1 << 8 * (row + i * down) + column + i * right
        return {"origin": bits[0], "neighbour": bits[1], "landing": bits[2]}

    # --- rules ---------------------------------------------------------------------------------------

    def start(self, state: State) -> None:
        state.mine = START
        state.theirs = turned(START)
        state.kings = ZERO
        state.jumper = ZERO
        state.turn = 0
        state.quiet = 0
        state.seen = 0
        state.length = 0
        state.history[:] = 0

    def origins(self, state: State) -> Any:
        """The pieces that may move, for each of the four directions; jumps alone where there are any."""
        empty = DARK & ~(state.mine | state.theirs)
        pieces = state.mine if state.jumper == ZERO else state.jumper
        kings = pieces & state.kings
        a, b, c, d = jump_origins(pieces, kings, state.theirs, empty)
        if a | b | c | d != ZERO:
            return a, b, c, d
        return step_origins(pieces, kings, empty)

    def can_move(self, state: State) -> bool:
        a, b, c, d = self.origins(state)
        return a | b | c | d != ZERO

    def player(self, state: State) -> int:
        if state.quiet >= self.quiet_plies or (self.repetitions > 0 and state.seen + 1 >= self.repetitions):
            return TERMINAL
        return state.turn if self.can_move(state) else TERMINAL

    def actions(self, state: State, out: Any) -> int:
        a, b, c, d = self.origins(state)
        rest = a | b | c | d
        count = 0
        while rest != ZERO:
            cell = lowest(rest)
            piece = ONE << np.uint64(cell)
            rest = without_lowest(rest)
            first = 4 * (cell // 2)
            if a & piece != ZERO:
                out[count] = first
                count += 1
            if b & piece != ZERO:
                out[count] = first + 1
                count += 1
            if c & piece != ZERO:
                out[count] = first + 2
                count += 1
            if d & piece != ZERO:
                out[count] = first + 3
                count += 1
        return count

    def random_action(self, state: State, out: Any, rng: Any) -> Any:
        pieces, b, c, d = self.origins(state)
        direction = 0
        number = below(rng, popcount(pieces) + popcount(b) + popcount(c) + popcount(d))
        while number >= popcount(pieces):
            number -= popcount(pieces)
            pieces, b, c = b, c, d
            direction += 1
        for _ in range(number):
            pieces = without_lowest(pieces)
        return 4 * (lowest(pieces) // 2) + direction

    def play(self, state: State, action: Any) -> None:
        origin, target = self.origin[action], self.neighbour[action]
        captured = state.theirs & target
        if captured != ZERO:
            target = self.landing[action]
            state.theirs ^= captured
            state.kings &= ~captured
        state.mine ^= origin | target
        was_man = state.kings & origin == ZERO
        if not was_man:
            state.kings ^= origin | target
        crowned = was_man and target & KING_ROW != ZERO
        if crowned:
            state.kings |= target
        self.count_for_draws(state, action, captured != ZERO, was_man)
        if captured != ZERO and not crowned:
            empty = DARK & ~(state.mine | state.theirs)
            a, b, c, d = jump_origins(target, target & state.kings, state.theirs, empty)
            if a | b | c | d != ZERO:
                state.jumper = target
                return
        state.jumper = ZERO
        state.turn = 1 - state.turn
        mine = state.mine
        state.mine = turned(state.theirs)
        state.theirs = turned(mine)
        if state.kings != ZERO:
            state.kings = turned(state.kings)

    def count_for_draws(self, state: State, action: Any, captures: Any, by_man: Any) -> None:
        """Keeps what the draw rules need."""
        state.quiet += 1
        if captures or (by_man and self.men_reset):
            state.quiet = 0
        if self.repetitions == 0:
            return
        if captures or by_man:
            for i in range(state.length):
                state.history[i] = 0
            state.length = 0
            state.seen = 0
        else:
            state.history[state.length] = action
            state.length += 1
            state.seen = self.occurrences(state)

    def occurrences(self, state: State) -> int:
        """How often the position after the last move of the history occurred before."""
        mine = theirs = ZERO  # squares that differ from those now, each side's in its own view
        count = 0
        i = state.length - 2
        while i >= 0:
            mine ^= self.origin[state.history[i + 1]] ^ self.neighbour[state.history[i + 1]]
            theirs ^= self.origin[state.history[i]] ^ self.neighbour[state.history[i]]
            if mine | theirs == ZERO:
                count += 1
            i -= 2
        return count

    def utility(self, state: State, player: Any) -> float:
        if self.can_move(state):
            return 0.0
        return -1.0 if player == state.turn else 1.0

    def key(self, state: State) -> Any:
        # One word holds both sides' pieces, theirs on the squares that are not played on; another the kings
        # with the jumper; White to move inverts it.
        pieces = state.mine | swap_pairs(state.theirs)
        rest = state.kings | swap_pairs(state.jumper)
        return mix(pieces ^ mix(rest if state.turn == 0 else rest ^ FULL))

    def is_jump(self, state: State, action: Any) -> bool:
        return state.theirs & self.neighbour[action] != ZERO

    def crowns(self, state: State, action: Any) -> bool:
        target = self.landing[action] if self.is_jump(state, action) else self.neighbour[action]
        return target & KING_ROW != ZERO and state.kings & self.origin[action] == ZERO

    def is_loud(self, state: State, action: Any) -> bool:
        """A jump, or a man that is crowned: both change the material."""
        return self.is_jump(state, action) or self.crowns(state, action)

    def move_value(self, state: State, action: Any) -> int:
        """Kings are taken before men, a crowning jump before another, a jump before a crowning step."""
        value = 1 if self.crowns(state, action) else 0
        if self.is_jump(state, action):
            value += 4 if state.kings & self.neighbour[action] != ZERO else 2
        return value

    def in_check(self, state: State) -> bool:
        """Whether the mover has to jump: with jumps compulsory, to stand still is no option then."""
        empty = DARK & ~(state.mine | state.theirs)
        pieces = state.mine if state.jumper == ZERO else state.jumper
        a, b, c, d = jump_origins(pieces, pieces & state.kings, state.theirs, empty)
        return a | b | c | d != ZERO

    def observe(self, state: State, planes: Any) -> None:
        """Own men, own kings, their men, their kings, the jumping piece; how near the two kinds of draw are."""
        quiet = np.float32(state.quiet / self.quiet_plies)
        seen = np.float32(state.seen / (self.repetitions - 1)) if self.repetitions > 1 else np.float32(0.0)
        for row in range(8):
            for column in range(8):
                cell = np.uint64(8 * row + column)
                king = (state.kings >> cell) & ONE
                mine, theirs = (state.mine >> cell) & ONE, (state.theirs >> cell) & ONE
                planes[0, row, column] = mine & ~king
                planes[1, row, column] = mine & king
                planes[2, row, column] = theirs & ~king
                planes[3, row, column] = theirs & king
                planes[4, row, column] = (state.jumper >> cell) & ONE
                planes[5, row, column] = quiet
                planes[6, row, column] = seen

    def board_word(self, state: State, index: Any) -> Any:
        pieces = state.mine if index & 1 == 0 else state.theirs
        return pieces & ~state.kings if index < 2 else pieces & state.kings

    def filled(self, state: State) -> int:
        return popcount(state.mine | state.theirs)

    def word_cells(self) -> tuple[np.ndarray, np.ndarray]:
        cells = np.array([bit if int(DARK) >> bit & 1 else -1 for bit in range(64)])
        return np.stack([cells] * 4), np.arange(1, 5)[:, None] * np.ones(64, np.int64)

    def features(self, state: State, out: Any) -> int:
        """Mine minus theirs; the names are in `FEATURES`."""
        for i in range(self.num_features):
            out[i] = 0.0
        side_features(out, 1.0, state.mine, state.kings, state.theirs)
        side_features(out, -1.0, turned(state.theirs), turned(state.kings), turned(state.mine))
        mine, theirs = popcount(state.mine), popcount(state.theirs)
        out[2] = (mine - theirs) / (mine + theirs)
        if mine == theirs:
            out[14] = 1.0 if popcount((state.mine | state.theirs) & SYSTEM) & 1 else -1.0
        out[15] = 1.0
        return self.num_features

    # --- for people ----------------------------------------------------------------------------------

    def feature_names(self) -> tuple[str, ...]:
        return FEATURES

    @python_only
    def pieces(self, state: State) -> dict[int, tuple[int, bool]]:
        """Square number -> (player, whether it is a king), the squares ascending."""
        found = {}
        for square in range(1, 33):
            cell = self.origin[4 * (square - 1 if state.turn == 1 else 32 - square)]
            if (state.mine | state.theirs) & cell:
                player = int(state.turn) if state.mine & cell else 1 - int(state.turn)
                found[square] = player, bool(state.kings & cell)
        return found

    def cells(self, state: State) -> np.ndarray:
        """The board with White at the bottom."""
        board = np.zeros((8, 8), np.int8)
        for square, (player, _) in self.pieces(state).items():
            board[notation_of.place(square)] = player + 1
        return board

    def glyphs(self, state: State) -> list[list[str]]:
        """K on the kings."""
        letters = [[""] * 8 for _ in range(8)]
        for square, (_, king) in self.pieces(state).items():
            row, column = notation_of.place(square)
            letters[row][column] = "K" if king else ""
        return letters

    def show(self, state: State, numbers: bool = False) -> str:
        return notation_of.drawing(self.pieces(state), numbers)

    def action_name(self, state: State, action: int) -> str:
        return notation_of.move_name(state, int(action), self.is_jump(state, action))

    def parse_position(self, text: str) -> State:
        if ":" in text:
            return notation_of.parse_fen(self, text)
        return notation_of.parse_moves(self, text)

    def position_text(self, state: State) -> str:
        return notation_of.fen(self, state)

    def for_perft(self) -> "Checkers":
        """Without repetition, and with a 40-move rule that no count reaches."""
        return replace(self, quiet_plies=30_000, repetitions=0)
