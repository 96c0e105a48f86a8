"""Checkers tables by retrograde analysis (Lake, Schaeffer, Lu 1994): the result and its distance in moves.

A kind names both sides' pieces, kings before men: KKvKM. The position is always seen by the player to move, so a kind
has two parts, one for each side to move (one, if both sides have the same pieces). An index writes the squares, 0 to 31
from the top left in the mover's view, as digits to the base 32: the mover's men, his kings, the other's men, the
other's kings, each group ascending.

A byte per position, as in the chess tables: 0 a draw, n + 1 the end in n moves, a multi-jump being one move; even n:
the mover loses, odd n: he wins. 255 is no position. The draw rules are left out: distances assume that both sides go
straight for the end.

Captures and crownings leave the table; the first pass asks the other tables for them, by the game's own rules. Jumps
are compulsory, so a position with a jump has no other moves.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.bits import ONE, lowest, without_lowest
from envs.checkers import DARK, Checkers, turned
from envs.compiled import Compiled, njit

DRAW, NO_POSITION, SAFE = 0, 255, 255
_NONE = 1000
_LEVELS = 8  # a jump of three pieces, and some room
CONVERSIONS, EVERYTHING = 0, 1
RULES = Checkers(quiet_plies=30_000, repetitions=0)  # the rules without the draws
Counts = tuple[int, int, int, int]  # the mover's men and kings, the other's men and kings


def kinds(pieces: int) -> list[str]:
    """All kinds with two up to `pieces` pieces, each after those that captures and crownings lead to."""
    found = set()
    for total in range(2, pieces + 1):
        for mine in range(1, total):
            for men in range(mine + 1):
                for other in range(total - mine + 1):
                    found.add(name_of((men, mine - men, other, total - mine - other)))
    return sorted(found, key=lambda name: (len(name), name.count("M"), name))


def name_of(counts: Counts) -> str:
    """The kind of the two sides' men and kings, the larger side first."""
    sides = ["K" * kings + "M" * men for men, kings in (counts[:2], counts[2:])]
    return "v".join(sorted(sides, key=lambda side: (-len(side), side)))


def parts(kind: str) -> list[Counts]:
    """The counts of the kind's parts: the first side to move, then the second unless it has the same pieces."""
    first, second = ((side.count("M"), side.count("K")) for side in kind.split("v"))
    return [(*first, *second)] if first == second else [(*first, *second), (*second, *first)]


def needed(kind: str) -> list[str]:
    """The kinds that captures and crownings lead to, in the order of `kinds`."""
    pieces = len(kind) - 1
    return [name for name in kinds(pieces) if _follows(parts(name)[0], parts(kind)[0])]


def _follows(after: Counts, before: Counts) -> bool:
    """Whether pieces may become fewer or be crowned so that `after` results, for either side's order."""

    def side(new: tuple[int, int], old: tuple[int, int]) -> bool:
        return sum(new) <= sum(old) and new[0] <= old[0]

    straight = side(after[:2], before[:2]) and side(after[2:], before[2:])
    crossed = side(after[2:], before[:2]) and side(after[:2], before[2:])
    return (straight or crossed) and name_of(after) != name_of(before)


def part_size(counts: Counts) -> int:
    return 32 ** sum(counts)


@dataclass(frozen=True)
class Pieces(Compiled):
    """Where the tables are that a build or a search looks into."""

    places: tuple[tuple[str, int], ...]  # kind, offset among the entries

    def tables(self) -> dict[str, np.ndarray]:
        return {"directory": directory(dict(self.places))}


def directory(offsets: dict[str, int]) -> np.ndarray:
    """By the four counts: where the part starts among the entries, or -1."""
    rows = np.full((5, 5, 5, 5), -1, np.int64)
    for kind, offset in offsets.items():
        start = offset
        for counts in parts(kind):
            rows[counts] = start
            start += part_size(counts)
    return rows


@njit
def offset_of(directory, mine, theirs, kings):
    """Where the table of these pieces starts; -1 if it is not there."""
    counts = np.zeros(4, np.int64)
    for i in range(2):
        pieces = mine if i == 0 else theirs
        while pieces != 0:
            bit = pieces & (~pieces + ONE)
            counts[2 * i + (1 if kings & bit != 0 else 0)] += 1
            pieces ^= bit
    if counts.max() > 4:
        return np.int64(-1)
    return directory[counts[0], counts[1], counts[2], counts[3]]


@njit
def index_of(mine, theirs, kings):
    """The index within the table of these pieces."""
    index = np.int64(0)
    for group in range(4):
        pieces = mine if group < 2 else theirs
        pieces = pieces & kings if group % 2 == 1 else pieces & ~kings
        while pieces != 0:
            index = 32 * index + (np.int64(lowest(pieces)) >> 1)
            pieces = without_lowest(pieces)
    return index


@njit
def byte_of(tables, entries, mine, theirs, kings):
    """What the tables say of a position between moves; NO_POSITION where no table is loaded."""
    start = offset_of(tables.directory, mine, theirs, kings)
    if start < 0:
        return np.int64(NO_POSITION)
    return np.int64(entries[start + index_of(mine, theirs, kings)])


@njit
def forward(game, pieces, entries, states, level, mode, low, high, moves, out):
    """Looks at the mover's moves in states[level]: out = earliest win, latest loss, safe moves, moves, jumps.

    CONVERSIONS looks up only positions whose tables start outside low .. high - 1, the kind in the making.
    """
    count = game.actions(states[level], moves[level])
    for i in range(count):
        action = moves[level, i]
        states[level + 1] = states[level]
        after = states[level + 1]
        if game.is_jump(after, action):
            out[4] += 1
        game.play(after, action)
        if after.jumper != 0:
            forward(game, pieces, entries, states, level + 1, mode, low, high, moves, out)
            continue
        out[3] += 1
        if after.mine == 0:
            out[0] = min(out[0], 2)  # the last piece is taken: the end after one move
            continue
        start = offset_of(pieces.directory, after.mine, after.theirs, after.kings)
        if mode == CONVERSIONS and low <= start < high:
            continue
        byte = np.int64(entries[start + index_of(after.mine, after.theirs, after.kings)])
        if byte == DRAW:
            out[2] += 1
        elif byte % 2 == 1:
            out[0] = min(out[0], byte + 1)
        else:
            out[1] = max(out[1], byte + 1)
    return 0


@njit
def look(game, pieces, entries, states, mode, low, high, moves, out):
    """`forward` from states[0] with a fresh account."""
    out[0], out[1], out[2], out[3], out[4] = _NONE, 0, 0, 0, 0
    forward(game, pieces, entries, states, np.int64(0), mode, low, high, moves, out)


@njit
def place_pieces(counts, index, state):
    """Writes the pieces of an index to the state; False if it is not a position's."""
    state.mine = state.theirs = state.kings = state.jumper = np.uint64(0)
    for group in range(3, -1, -1):
        last = np.int64(32)
        for _ in range(counts[group]):
            square = index % 32
            index //= 32
            row = square >> 2
            bit = ONE << np.uint64(8 * row + 2 * (square & 3) + 1 - (row & 1))
            if square >= last or (state.mine | state.theirs) & bit != 0:
                return False
            if (group == 0 and row == 0) or (group == 2 and row == 7):
                return False  # a man on the row where he is crowned
            last = square
            if group < 2:
                state.mine |= bit
            else:
                state.theirs |= bit
            if group % 2 == 1:
                state.kings |= bit
    return True


@njit
def first_pass(game, pieces, entries, counts, start, size, low, high, states, moves, wins, losses, forced):
    """Finds lost positions without a move, and what captures and crownings lead to."""
    out = np.zeros(5, np.int64)
    for index in range(size):
        place = start + index
        if not place_pieces(counts, index, states[0]):
            entries[place] = NO_POSITION
            continue
        look(game, pieces, entries, states, np.int64(CONVERSIONS), low, high, moves, out)
        here = place - low
        if out[3] == 0:
            entries[place] = 1
            losses[here] = SAFE
            continue
        forced[here] = out[4] > 0
        if out[0] != _NONE:
            wins[here] = out[0]
        losses[here] = SAFE if out[0] != _NONE or out[2] > 0 else out[1]


@njit
def retract(game, pieces, entries, low, high, here, states, moves, byte, losses, forced, out):
    """The position `here` ends in byte - 2 moves: settles those from which the other side stepped there."""
    found = 0
    empty = DARK & ~(here.mine | here.theirs)
    for square in range(32):
        row = square >> 2
        bit = ONE << np.uint64(8 * row + 2 * (square & 3) + 1 - (row & 1))
        if here.theirs & bit == 0:
            continue
        king = here.kings & bit != 0
        for direction in range(4):
            if direction >= 2 and not king:
                continue  # the other side's men come down the board
            origin = (bit >> np.uint64(9), bit >> np.uint64(7), bit << np.uint64(7), bit << np.uint64(9))[direction]
            if origin & empty == 0:
                continue
            change = bit | origin
            mine = turned(here.theirs ^ change)
            theirs = turned(here.mine)
            kings = turned(here.kings ^ change if king else here.kings)
            start = offset_of(pieces.directory, mine, theirs, kings)
            place = start + index_of(mine, theirs, kings)
            if entries[place] != DRAW or forced[place - low]:
                continue
            if byte % 2 == 0:
                entries[place] = byte
                found += 1
            elif losses[place - low] != SAFE:
                states[0].mine, states[0].theirs, states[0].kings = mine, theirs, kings
                states[0].jumper = np.uint64(0)
                look(game, pieces, entries, states, np.int64(EVERYTHING), low, high, moves, out)
                if out[0] == _NONE and out[2] == 0 and out[1] == byte:
                    entries[place] = byte
                    found += 1
    return found


@njit
def one_pass(game, pieces, entries, counts, start, size, low, high, here, states, moves, byte, wins, losses, forced):
    """Finds the positions of this byte by one part of the kind; returns how many."""
    out = np.zeros(5, np.int64)
    found = 0
    for index in range(size):
        place = start + index
        value = entries[place]
        if value == byte - 1:
            place_pieces(counts, index, here[0])
            found += retract(game, pieces, entries, low, high, here[0], states, moves, byte, losses, forced, out)
        elif value == DRAW and byte % 2 == 0 and wins[place - low] == byte:
            entries[place] = byte
            found += 1
        elif value == DRAW and byte % 2 == 1 and losses[place - low] == byte:
            place_pieces(counts, index, states[0])
            look(game, pieces, entries, states, np.int64(EVERYTHING), low, high, moves, out)
            if out[0] == _NONE and out[2] == 0 and out[1] == byte:
                entries[place] = byte
                found += 1
    return found


def build(kind: str, smaller: dict[str, np.ndarray], progress: Callable[[int], None]) -> np.ndarray:
    """The bytes of a kind, its parts one after the other; `smaller` holds those of the kinds that it leads to."""
    offsets, low = {}, 0
    for name, values in smaller.items():
        offsets[name], low = low, low + len(values)
    offsets[kind] = low
    sizes = [part_size(counts) for counts in parts(kind)]
    high = low + sum(sizes)
    entries = np.concatenate([*smaller.values(), np.zeros(high - low, np.uint8)])
    pieces = Pieces(tuple(offsets.items()))
    starts = [low, low + sizes[0]]
    states, here = RULES.new(_LEVELS), RULES.new(1)
    moves = np.zeros((_LEVELS, RULES.max_legal), np.int64)
    wins, losses, forced = (np.zeros(high - low, np.uint8) for _ in range(3))
    jobs = [(np.array(counts), start, size) for counts, start, size in zip(parts(kind), starts, sizes, strict=False)]
    for counts, start, size in jobs:
        first_pass(RULES, pieces, entries, counts, start, size, low, high, states, moves, wins, losses, forced)
    latest = max(int(wins.max()), int(losses[losses != SAFE].max(initial=0)))
    byte, idle = 2, 0
    while idle < 2 or byte <= latest:
        settled = 0
        for counts, start, size in jobs:
            settled += int(
                one_pass(
                    RULES,
                    pieces,
                    entries,
                    counts,
                    start,
                    size,
                    low,
                    high,
                    here,
                    states,
                    moves,
                    byte,
                    wins,
                    losses,
                    forced,
                )
            )
        idle = 0 if settled else idle + 1
        progress(byte - 1)
        byte += 1
        assert byte < SAFE, "a distance does not fit into a byte"
    return entries[low:]


def counts_of(kind: str, values: np.ndarray) -> dict[str, Any]:
    """Positions and results by side to move, and the longest win."""
    found: dict[str, Any] = {}
    start = 0
    for name, counts in zip(("first", "second"), parts(kind), strict=False):
        part = values[start : start + part_size(counts)]
        start += len(part)
        real = part != NO_POSITION
        won, lost = real & (part > 0) & (part % 2 == 0), real & (part % 2 == 1)
        found[name] = {
            "positions": int(real.sum()),
            "wins": int(won.sum()),
            "draws": int((part == DRAW).sum()),
            "losses": int(lost.sum()),
            "longest_win_plies": int(part[won].max(initial=1)) - 1,
            "longest_loss_plies": int(part[lost].max(initial=1)) - 1,
        }
    return found
