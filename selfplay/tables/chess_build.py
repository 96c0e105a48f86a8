"""Chess tables by retrograde analysis (Ströhlein 1970; Thompson 1986): distance to mate, both sides to move.

Pass n finds the positions whose game ends in n plies. The predecessors of the losses of pass n - 1 are wins; those of
its wins are losses if every move loses. Captures and promotions leave the table: the first pass asks the smaller tables
and notes when such a move wins at the earliest, and loses at the latest, so that pass n looks at them in time.

En passant only concerns KPKP. Entries mean positions without that right; the few from which a pawn can step beside
another one are looked at again in every pass, with the capture among the answers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from envs.bits import ONE, lowest, without_lowest
from envs.chess_board import KING, KNIGHT
from envs.compiled import njit
from selfplay.tables.chess_index import (
    DRAW,
    MEN,
    NO_MAN,
    NO_POSITION,
    OFFSET,
    PAWN,
    WITH_PAWNS,
    byte_of,
    directory,
    extras,
    position_index,
    size_of,
)
from selfplay.tables.chess_men import Men, any_move, attacks, beside_pawn, in_check, pawn_targets

SAFE = 255  # a capture or promotion does not lose
STEPS_BESIDE = 254  # a pawn may be taken en passant after its first move: look at every pass
_NONE = 1000  # above any byte
CONVERSIONS, EVERYTHING, LOSSES = 0, 1, 2  # what to look at


@njit
def successor(men, entries, types, sides, squares, count, without, mover):
    """The byte of the position with `mover` to move, the man `without` taken off."""
    codes_0, codes_1 = np.int64(NO_MAN), np.int64(NO_MAN)
    if count > 2 and without != 2:
        codes_0 = types[2] + 6 * sides[2]
    if count > 3 and without != 3:
        codes_1 = types[3] + 6 * sides[3]
    third, fourth = squares[2], squares[3]
    return byte_of(men, entries, squares[0], squares[1], codes_0, third, codes_1, fourth, mover)


@njit
def note(out, byte):
    """Adds a move's result, the byte of the position after it, to `out`: earliest win, latest loss, safe moves."""
    if byte == DRAW:
        out[2] += 1
    elif byte % 2 == 1:
        out[0] = min(out[0], byte + 1)
    else:
        out[1] = max(out[1], byte + 1)


@njit
def en_passant(men, entries, types, sides, squares, count, pawn, byte):
    """The byte after a pawn's double step, given the byte without the right to take it en passant."""
    side = sides[pawn]
    for taker in range(2, count):
        beside = abs((squares[taker] & 7) - (squares[pawn] & 7)) == 1 and squares[taker] >> 3 == squares[pawn] >> 3
        if types[taker] != PAWN or sides[taker] == side or not beside:
            continue
        home = squares[taker]
        squares[taker] = squares[pawn] + (-8 if side == 0 else 8)
        if not in_check(men, types, sides, squares, count, 1 - side, pawn):
            answer = successor(men, entries, types, sides, squares, count, pawn, side)
            squares[taker] = home
            stuck = not any_move(men, types, sides, squares, count, 1 - side)
            if answer == DRAW:
                return byte if byte > 0 and byte % 2 == 0 else np.int64(DRAW)
            mine = answer + 1  # what the capture is worth to the taker: even bytes win
            if mine % 2 == 0:
                return min(mine, byte) if byte > 0 and byte % 2 == 0 else mine
            if byte % 2 == 1:
                return max(mine, byte)
            return mine if byte == DRAW and stuck else byte
        squares[taker] = home
    return byte


@njit
def forward(men, entries, types, sides, squares, count, side, mode, out):
    """Looks at that side's moves: out = earliest win, latest loss, safe moves, legal moves, steps beside a pawn.

    The modes: CONVERSIONS looks up captures and promotions only, EVERYTHING all moves, LOSSES ends at the first move
    that does not lose.
    """
    out[0], out[1], out[2], out[3], out[4] = _NONE, 0, 0, 0, 0
    occupied, theirs = np.uint64(0), np.uint64(0)
    for i in range(count):
        occupied |= ONE << np.uint64(squares[i])
        if sides[i] != side:
            theirs |= ONE << np.uint64(squares[i])
    for i in range(count):
        if sides[i] != side:
            continue
        kind, home = types[i], squares[i]
        if kind == PAWN:
            targets = pawn_targets(men, side, home, occupied, theirs)
        else:
            targets = attacks(men, kind, side, home, occupied) & (~occupied | theirs)
        while targets != 0:
            target = np.int64(lowest(targets))
            targets = without_lowest(targets)
            taken = np.int64(-1)
            for k in range(2, count):
                if k != i and squares[k] == target:
                    taken = k
            squares[i] = target
            if not in_check(men, types, sides, squares, count, side, taken):
                out[3] += 1
                if kind == PAWN and (target < 8 or target >= 56):
                    for piece in range(KNIGHT, KING):
                        types[i] = piece
                        note(out, successor(men, entries, types, sides, squares, count, taken, 1 - side))
                    types[i] = PAWN
                else:
                    double = kind == PAWN and abs(target - home) == 16
                    if double:
                        out[4] += beside_pawn(types, sides, squares, count, i)
                    if mode != CONVERSIONS or taken >= 0:
                        byte = successor(men, entries, types, sides, squares, count, taken, 1 - side)
                        if double:
                            byte = en_passant(men, entries, types, sides, squares, count, i, byte)
                        note(out, byte)
            squares[i] = home
            if mode == LOSSES and (out[2] > 0 or out[0] != _NONE):
                return


@njit
def place_men(men, row, index, squares):
    """Writes the squares of the men at an index."""
    per_kings = 64 if row[MEN] == 3 else 4096
    squares[0] = men.king_squares[row[WITH_PAWNS], index // per_kings, 0]
    squares[1] = men.king_squares[row[WITH_PAWNS], index // per_kings, 1]
    squares[2] = index % per_kings // 64 if row[MEN] == 4 else index % 64
    squares[3] = index % 64


@njit
def possible(men, row, index, types, sides, squares, count, side):
    """Whether an index is in use and a position that can stand with that side to move."""
    for i in range(2, count):
        if types[i] == PAWN and (squares[i] < 8 or squares[i] >= 56):
            return False
        for k in range(i):
            if squares[i] == squares[k]:
                return False
    if position_index(men, row, squares[0], squares[1], squares[2], squares[3]) != index:
        return False
    return not in_check(men, types, sides, squares, count, 1 - side, np.int64(-1))


@njit
def first_pass(men, entries, row, size, types, sides, wins, losses):
    """Finds mates and what captures and promotions lead to."""
    count = np.int64(row[MEN])
    squares, out = np.zeros(4, np.int64), np.zeros(5, np.int64)
    start = row[OFFSET]
    for side in range(2):
        for index in range(size):
            place = side * size + index
            place_men(men, row, index, squares)
            if not possible(men, row, index, types, sides, squares, count, side):
                entries[start + place] = NO_POSITION
                continue
            forward(men, entries, types, sides, squares, count, side, np.int64(CONVERSIONS), out)
            if out[3] == 0:
                entries[start + place] = 1 if in_check(men, types, sides, squares, count, side, np.int64(-1)) else DRAW
                losses[place] = SAFE
                continue
            if out[0] != _NONE:
                wins[place] = out[0]
            losses[place] = SAFE if out[0] != _NONE or out[2] > 0 else out[1]
            if out[4] > 0:
                losses[place] = STEPS_BESIDE


@njit
def retract(men, entries, row, size, types, sides, squares, side, byte, losses, out):
    """The position, with `side` to move, ends in byte - 2 plies: settles those from which the other side came here."""
    count = np.int64(row[MEN])
    start = row[OFFSET]
    other = 1 - side
    occupied = np.uint64(0)
    for i in range(count):
        occupied |= ONE << np.uint64(squares[i])
    found = 0
    for i in range(count):
        if sides[i] != other:
            continue
        home = squares[i]
        if types[i] == PAWN:
            targets = unsteps(types, sides, squares, count, i, occupied)
        else:
            targets = attacks(men, types[i], other, home, occupied) & ~occupied
        while targets != 0:
            squares[i] = np.int64(lowest(targets))
            targets = without_lowest(targets)
            index = position_index(men, row, squares[0], squares[1], squares[2], squares[3])
            if index < 0:
                continue
            place = other * size + index
            if entries[start + place] != DRAW:
                continue
            if byte % 2 == 0:
                entries[start + place] = byte
                found += 1
            elif losses[place] != SAFE:
                forward(men, entries, types, sides, squares, count, other, np.int64(LOSSES), out)
                if out[0] == _NONE and out[2] == 0 and out[1] == byte:
                    entries[start + place] = byte
                    found += 1
        squares[i] = home
    return found


@njit
def unsteps(types, sides, squares, count, pawn, occupied):
    """The squares from which a pawn stepped here, leaving out a double step beside another pawn."""
    square, ahead = squares[pawn], 8 if sides[pawn] == 0 else -8
    rank = square >> 3 if sides[pawn] == 0 else 7 - (square >> 3)
    one = ONE << np.uint64((square - ahead) & 63)
    if rank < 2 or occupied & one != 0:
        return np.uint64(0)
    two = ONE << np.uint64((square - 2 * ahead) & 63)
    if rank == 3 and occupied & two == 0 and beside_pawn(types, sides, squares, count, pawn) == 0:
        return one | two
    return one


@njit
def one_pass(men, entries, row, size, types, sides, wins, losses, byte):
    """Finds the positions of this byte; returns how many."""
    count = np.int64(row[MEN])
    squares, out = np.zeros(4, np.int64), np.zeros(5, np.int64)
    start = row[OFFSET]
    found = 0
    for side in range(2):
        for index in range(size):
            place = side * size + index
            value = entries[start + place]
            if value == byte - 1:
                place_men(men, row, index, squares)
                found += retract(men, entries, row, size, types, sides, squares, side, byte, losses, out)
            elif value == DRAW and byte % 2 == 0 and wins[place] == byte:
                entries[start + place] = byte
                found += 1
            elif value == DRAW and (losses[place] == STEPS_BESIDE or (byte % 2 == 1 and losses[place] == byte)):
                place_men(men, row, index, squares)
                forward(men, entries, types, sides, squares, count, side, np.int64(EVERYTHING), out)
                lost = out[0] == _NONE and out[2] == 0
                if out[0] == byte or (lost and out[1] == byte):
                    entries[start + place] = byte
                    found += 1
    return found


def build(kind: str, smaller: dict[str, np.ndarray], progress: Callable[[int], None]) -> np.ndarray:
    """The bytes of a kind, both sides to move; `smaller` holds those of the kinds that it leads to."""
    offsets, end = {}, 0
    for name, values in smaller.items():
        offsets[name], end = end, end + len(values)
    offsets[kind] = end
    size = size_of(kind)
    entries = np.concatenate([*smaller.values(), np.zeros(2 * size, np.uint8)])
    men = Men(tuple(offsets.items()))
    types = np.array([KING, KING, *(man for man, _ in extras(kind)), 0][:4], np.int64)
    sides = np.array([0, 1, *(side for _, side in extras(kind)), 0][:4], np.int64)
    codes = [*(int(m + 6 * s) for m, s in extras(kind)), NO_MAN]
    row = directory(offsets)[codes[0], codes[1]].copy()
    wins, losses = np.zeros(2 * size, np.uint8), np.zeros(2 * size, np.uint8)
    first_pass(men, entries, row, size, types, sides, wins, losses)
    latest = max(int(wins.max()), int(losses[losses < STEPS_BESIDE].max(initial=0)))
    byte, idle = 2, 0
    while idle < 2 or byte <= latest:
        settled = int(one_pass(men, entries, row, size, types, sides, wins, losses, byte))
        idle = 0 if settled else idle + 1
        progress(byte - 1)
        byte += 1
        assert byte < STEPS_BESIDE, "a distance does not fit into a byte"
    return entries[end:]


def men_for_counts(kind: str) -> Any:
    """The compiled object that `chess_index.counts_of` wants."""
    return Men(((kind, 0),))
