"""The Go board: chains, liberties, captures, position hashes and the history that superko needs.

Points lie on a padded board, so that every point has four neighbours; one border column serves two rows:

    0  1  2  3        . border row
    4 [5][6][7]       4 and 8 are border: left of 5, right of 7
    8 [9]...          (a 3-column board: stride 4)

Equal stones that touch form a chain: a ring through `next`, named by one of its stones, its `head`. A chain's
*pseudo-liberties* are its (stone, empty neighbour) pairs; `liberties[head]` holds their number, the sum of the
points and the sum of their squares, packed into one integer, so that placing or lifting a stone is one
subtraction or addition per neighbour and merging two chains is one addition. A chain is captured when the word
is zero. It is in atari at a point p just when the word is n times p's own code: then the mean of the points is
p and their variance is zero. (The method is that of fast Monte Carlo programs such as Lew's libEGO.)
An empty point is kept like a chain of its own whose word counts its empty neighbours.

Superko needs all former positions: `history` has their 64-bit Zobrist hashes (Zobrist 1970), one per ply, and
`seen` is a bitmap of them that answers nearly all look-ups at once. Two positions with one hash would be taken
for a repetition: a 9x9 game asks about 13,000 times whether one of at most 162 hashes is hit, so that it happens
in one game of 10^13.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.bits import ONE
from envs.errors import InputError
from envs.game import Game, State, board_symmetries

EMPTY, BLACK, WHITE, BORDER = 0, 1, 2, 4  # black | white: an empty point that both reach
COUNT = (1 << 11) - 1  # the part of a liberties word that counts
SUM, SQUARES = 11, 31  # where the other two parts begin: at most 4 * 361 pairs of points up to 419


@dataclass(frozen=True)
class GoBoard(Game):
    """Parameters of the board, the record and what moves stones; the rules of the game are in `Go`."""

    size: int = 9  # columns
    komi: float = 7.5  # what White gets for moving second
    suicide: bool = False  # whether a move may take off one's own stones (Tromp-Taylor: yes; most others: no)
    margin: bool = False  # utility: the margin in points instead of 1, 0, -1
    rows: int = 0  # 0: a square board
    length: int = 0  # the longest game in plies; 0: twice the points (AlphaGo Zero's bound), but at least 150
    superko: bool = True  # False: only the simple ko is forbidden, the taking back of a single stone at once

    def __post_init__(self) -> None:
        if not (2 <= self.size <= 19 and (self.rows == 0 or 1 <= self.rows <= 19)):
            raise InputError(f"{self}: size must be from 2 to 19, rows from 1 to 19, or 0 for a square board")
        if not abs(self.komi) <= 1000:
            raise InputError(f"{self}: komi must be from -1000 to 1000")
        if not 0 <= self.length <= 5000:
            raise InputError(f"{self}: length must be from 1 to 5000, or 0 for the usual bound")

    @property
    def height(self) -> int:
        return self.rows or self.size

    @property
    def points(self) -> int:
        return self.height * self.size

    @property
    def stride(self) -> int:
        return self.size + 1

    @property
    def padded(self) -> int:
        return (self.height + 2) * self.stride + 1

    @property
    def max_length(self) -> int:
        return self.length or max(2 * self.points, 150)

    @property
    def seen_words(self) -> int:
        """64-bit words of the bitmap: at least eight bits per ply, a power of two."""
        return 1 << max(0, (8 * self.max_length - 1) // 64).bit_length()

    @property
    def state(self) -> np.dtype:
        index = "u1" if self.padded <= 256 else "u2"
        fields: list[tuple] = [  # by falling size, so that no gap lies between them
            ("liberties", "i8", (self.padded,)),
            ("history", "u8", (self.max_length + 1,)),  # hash after each ply; entry 0: before the first
            ("seen", "u8", (self.seen_words,)),
            ("hash", "u8"),
            ("count", "i2", (2,)),  # stones of each player
            ("open", "i2"),
            ("ply", "i2"),
            ("area", "i2"),  # Black's area minus White's, once the game is over
            ("ko", index),  # where the mover may not retake a single stone at once; 0: nowhere
            ("head", index, (self.padded,)),
            ("next", index, (self.padded,)),  # a stone: the next of its chain; an empty point: its place in `empty`
            ("stones", index, (self.padded,)),  # of a chain, at its head
            ("empty", index, (self.points,)),  # the empty points, in no particular order; the first `open` count
            ("moves", index, (self.max_length,)),
            ("colour", "u1", (self.padded,)),
            ("setup", "u1", (self.points,)),  # stones before the first move, in the order of actions
            ("turn", "u1"),
            ("passes", "u1"),  # in a row
        ]
        # Zeros up to a multiple of 8 bytes, in a field of their own: equal states then have equal bytes.
        fields.append(("unused", "u1", (8 - np.dtype(fields).itemsize % 8,)))
        return np.dtype(fields, align=True)

    def tables(self) -> dict[str, np.ndarray]:
        index = np.uint8 if self.padded <= 256 else np.uint16
        rows, columns = np.divmod(np.arange(self.points), self.size)
        point = (rows + 1) * self.stride + columns + 1
        colour = np.full(self.padded, BORDER, np.uint8)
        colour[point] = EMPTY
        action = np.zeros(self.padded, np.int64)
        action[point] = np.arange(self.points)
        code = np.zeros(self.padded, np.int64)
        code[point] = 1 + (point << SUM) + (point * point << SQUARES)
        neighbours = np.zeros((self.padded, 4), index)
        neighbours[point] = point[:, None] + [-self.stride, -1, 1, self.stride]
        diagonals = np.zeros((self.padded, 4), index)
        diagonals[point] = point[:, None] + [-self.stride - 1, -self.stride + 1, self.stride - 1, self.stride + 1]
        edge = np.minimum(np.minimum(rows, self.height - 1 - rows), np.minimum(columns, self.size - 1 - columns))
        line = np.zeros(self.padded, np.uint8)
        line[point] = edge
        words = np.random.SeedSequence(20_190_613).generate_state(2 * self.padded, np.uint64)
        return {
            "action_of": action,
            "point_of": point.astype(index),
            "neighbours": neighbours,
            "diagonals": diagonals,
            "line": line,
            "code": code,
            "zobrist": words.reshape(2, self.padded),
            "start_colour": colour,
            "start_liberties": code[neighbours].sum(1) * (colour == EMPTY),
            "images": np.array(board_symmetries(self.height, self.size), np.int64),
        }

    # --- from nothing --------------------------------------------------------------------------------

    def clear(self, state: State) -> None:
        """The empty board with Black to move; keeps `setup` and `moves`, which `transform` reads."""
        for p in range(self.padded):
            state.colour[p] = self.start_colour[p]
            state.liberties[p] = self.start_liberties[p]
            state.head[p] = p
            state.next[p] = 0
            state.stones[p] = 0
        for a in range(self.points):
            state.empty[a] = self.point_of[a]
            state.next[self.point_of[a]] = a
        for i in range(self.max_length + 1):
            state.history[i] = 0
        for i in range(self.seen_words):
            state.seen[i] = 0
        state.hash = 0
        state.count[0] = 0
        state.count[1] = 0
        state.open = self.points
        state.ply = 0
        state.area = 0
        state.ko = 0
        state.turn = 0
        state.passes = 0
        for i in range(state.unused.size):
            state.unused[i] = 0

    def set_up(self, state: State, first: Any) -> None:
        """Clears the board, puts the stones of `setup` on it and lets player `first` begin."""
        self.clear(state)
        for a in range(self.points):
            if state.setup[a] != EMPTY:
                self.put(state, self.point_of[a], np.int64(state.setup[a]) - 1)
        state.ko = 0
        state.turn = first
        self.remember(state)

    # --- stones --------------------------------------------------------------------------------------

    def put(self, state: State, point: Any, player: Any) -> None:
        """Sets a stone on that empty point and takes off what it captures, or itself. Sets `ko`."""
        last, place = state.empty[state.open - 1], state.next[point]
        state.empty[place] = last
        state.next[last] = place
        state.open -= 1
        state.colour[point] = player + 1
        state.hash ^= self.zobrist[player, point]
        state.next[point] = point
        state.stones[point] = 1
        state.count[player] += 1
        code = self.code[point]
        for k in range(4):
            state.liberties[state.head[self.neighbours[point, k]]] -= code
        captured = 0
        for k in range(4):
            n = self.neighbours[point, k]
            if state.colour[n] == player + 1:
                self.merge(state, point, n)
            elif state.colour[n] == 2 - player and state.liberties[state.head[n]] == 0:
                captured += self.remove(state, n, 1 - player)
        state.ko = 0
        alone = state.head[point] == point and state.stones[point] == 1
        if captured == 1 and alone and state.liberties[point] & COUNT == 1:
            state.ko = state.empty[state.open - 1]
        if self.suicide and state.liberties[state.head[point]] == 0:
            self.remove(state, point, player)

    def merge(self, state: State, one: Any, other: Any) -> None:
        """Makes the chains of two stones one; the smaller one's stones get a new head."""
        large, small = state.head[one], state.head[other]
        if large == small:
            return
        if state.stones[large] < state.stones[small]:
            large, small = small, large
        state.stones[large] += state.stones[small]
        state.liberties[large] += state.liberties[small]
        stone = small
        while True:
            state.head[stone] = large
            stone = state.next[stone]
            if stone == small:
                break
        state.next[large], state.next[small] = state.next[small], state.next[large]

    def remove(self, state: State, stone: Any, player: Any) -> Any:
        """Takes the chain of that stone off the board; returns its size."""
        before = state.open
        point = stone
        while True:
            following = state.next[point]
            state.colour[point] = EMPTY
            state.hash ^= self.zobrist[player, point]
            state.head[point] = point
            state.stones[point] = 0
            state.liberties[point] = 0
            state.next[point] = state.open
            state.empty[state.open] = point
            state.open += 1
            point = following
            if point == stone:
                break
        # A chain without liberties touches no empty point, so the points just emptied are all that is new.
        for i in range(before, state.open):
            point = state.empty[i]
            for k in range(4):
                state.liberties[state.head[self.neighbours[point, k]]] += self.code[point]
        state.count[player] -= state.open - before
        return np.int64(state.open - before)

    def in_atari(self, state: State, head: Any, point: Any) -> bool:
        """Whether that chain, which touches that empty point, has no other liberty."""
        word = state.liberties[head]
        return word == (word & COUNT) * self.code[point]

    # --- legality ------------------------------------------------------------------------------------

    def landing(self, state: State, point: Any) -> Any:
        """The hash of the board after the mover's stone on that empty point.

        A forbidden suicide gives the present hash, as if the stone bounced off: that is a repetition too.
        """
        mover = np.int64(state.turn)
        word = state.hash ^ self.zobrist[mover, point]
        lives = state.liberties[point] != 0
        for k in range(4):
            n = self.neighbours[point, k]
            colour = state.colour[n]
            if colour == 2 - mover:
                if self.in_atari(state, state.head[n], point):
                    lives = True
                    if self.first_touch(state, point, k):
                        word ^= self.chain_hash(state, n, 1 - mover)
            elif colour == mover + 1 and not lives:
                lives = not self.in_atari(state, state.head[n], point)
        if lives:
            return word
        if self.suicide:
            word ^= self.zobrist[mover, point]
            for k in range(4):
                n = self.neighbours[point, k]
                if state.colour[n] == mover + 1 and self.first_touch(state, point, k):
                    word ^= self.chain_hash(state, n, mover)
            return word
        return state.hash

    def first_touch(self, state: State, point: Any, side: Any) -> bool:
        """Whether the chain on that side of the point lies on none of the sides before it."""
        head = state.head[self.neighbours[point, side]]
        for k in range(side):
            if state.head[self.neighbours[point, k]] == head:
                return False
        return True

    def chain_hash(self, state: State, stone: Any, player: Any) -> Any:
        word = self.zobrist[player, stone]
        point = state.next[stone]
        while point != stone:
            word ^= self.zobrist[player, point]
            point = state.next[point]
        return word

    def is_legal(self, state: State, point: Any) -> bool:
        """Whether the mover may play on that empty point: no forbidden suicide, no former position again."""
        if not self.superko and state.liberties[point] != 0:
            return point != state.ko
        word = self.landing(state, point)
        if word == state.hash:
            return False
        if not self.superko:
            return point != state.ko
        bit = (state.seen[np.int64(word & np.uint64(self.seen_words - 1))] >> (word >> np.uint64(58))) & ONE
        return bit == 0 or not self.is_repetition(state, word)

    def is_suicide(self, state: State, point: Any) -> bool:
        """Whether the mover's stone on that empty point would have no liberty and capture nothing."""
        if state.liberties[point] != 0:
            return False
        mine = np.int64(state.turn) + 1
        for k in range(4):
            n = self.neighbours[point, k]
            colour = np.int64(state.colour[n])
            if colour != BORDER and self.in_atari(state, state.head[n], point) == (colour != mine):
                return False
        return True

    def is_eye(self, state: State, point: Any, colour: Any) -> bool:
        """Whether that empty point is an eye of that colour, by the usual rule of thumb of playouts: all neighbours
        are of the colour, and of the diagonal points the opponent has none (at the edge) or at most one."""
        if state.liberties[point] != 0:
            return False
        for k in range(4):
            if state.colour[self.neighbours[point, k]] == 3 - colour:
                return False
        foes, edge = 0, 0
        for k in range(4):
            diagonal = np.int64(state.colour[self.diagonals[point, k]])
            if diagonal == 3 - colour:
                foes += 1
            elif diagonal == BORDER:
                edge = 1
        return foes + edge < 2

    def is_repetition(self, state: State, word: Any) -> bool:
        found = False
        for i in range(state.ply + 1):  # to the end: without a way out in the middle, it compiles to vector code
            found |= state.history[i] == word
        return found

    def remember(self, state: State) -> None:
        """Adds the present position to the history."""
        word = state.hash
        state.history[state.ply] = word
        state.seen[np.int64(word & np.uint64(self.seen_words - 1))] |= ONE << (word >> np.uint64(58))

    # --- the score -----------------------------------------------------------------------------------

    def score(self, state: State) -> Any:
        """Black's area minus White's: stones, and empty points that reach (through empty ones) one colour only.

        Empty points take on the colours that they reach while this runs, and are empty again afterwards.
        """
        changed = True
        while changed:
            changed = False
            for i in range(state.open):
                p = state.empty[i]
                reached = state.colour[p]
                for k in range(4):
                    reached |= state.colour[self.neighbours[p, k]] & (BLACK | WHITE)
                if reached != state.colour[p]:
                    state.colour[p] = reached
                    changed = True
        total = np.int64(state.count[0]) - np.int64(state.count[1])
        for i in range(state.open):
            p = state.empty[i]
            if state.colour[p] == BLACK:
                total += 1
            elif state.colour[p] == WHITE:
                total -= 1
            state.colour[p] = EMPTY
        return total
