"""Where a chess position with at most four men stands in its table.

A kind is named by its men, the stronger side first: KQK, KBNK, KQKR. The stronger side is *first*, its king, its men and
its pawns' way up the board as white's; positions in which black has those men are turned round. An index is

    side to move * size  +  (number of the kings' squares) * 64^(men - 2)  +  64 * square of the third  +  of the fourth man

Without pawns the board's eight symmetries leave 462 placements of the kings, with pawns the mirror leaves 1806. Where
a symmetry keeps both kings in place (both on a diagonal), and where two men are alike, the smallest index of the images
is the position's; the other indices are not used.

A byte per position: 0 a draw, n + 1 the end of the game in n plies, mate being the only end. The mover is mated where
n is even and mates where it is odd. 255 is no position.
"""

import functools
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from envs.chess_board import BISHOP, KNIGHT, QUEEN, ROOK
from envs.compiled import njit

PAWN = 5  # beside the pieces' numbers in chess_board.py
NO_MAN = 12
LETTERS = {QUEEN: "Q", ROOK: "R", BISHOP: "B", KNIGHT: "N", PAWN: "P"}
_TYPES = {letter: kind for kind, letter in LETTERS.items()}
_STRENGTH = "QRBNP"
DRAW, NO_POSITION = 0, 255

# The columns of the directory.
OFFSET, SIZE, TURNED, SWAPPED, WITH_PAWNS, ALIKE, MEN = range(7)
NOT_LOADED, BARE_KINGS = -1, -2


def kinds(men: int) -> list[str]:
    """All kinds with three up to `men` men, each after those that its captures and promotions lead to."""
    names = [f"K{letter}K" for letter in _STRENGTH] if men >= 3 else []
    if men >= 4:
        for a, b in combinations_with_replacement(_STRENGTH, 2):
            names += [f"K{a}{b}K", f"K{a}K{b}"]
    return sorted(names, key=lambda name: (len(name), name.count("P")))


def extras(kind: str) -> list[tuple[int, int]]:
    """The men beside the kings as (type, side), side 0 being the stronger."""
    strong, weak = kind[1:].split("K")
    return [(_TYPES[letter], 0) for letter in strong] + [(_TYPES[letter], 1) for letter in weak]


def needed(kind: str) -> list[str]:
    """The kinds that captures and promotions lead to, bare kings apart."""
    found: list[str] = []
    men = extras(kind)
    for i, (man, side) in enumerate(men):
        others = men[:i] + men[i + 1 :]
        results = [others]
        if man == PAWN:
            results += [[*others, (piece, side)] for piece in (QUEEN, ROOK, BISHOP, KNIGHT)]
            results += [[(piece, side)] for piece in (QUEEN, ROOK, BISHOP, KNIGHT) if len(men) == 2]
        found += [name for result in results if (name := name_of(result))]
    return list(dict.fromkeys(found))


def name_of(men: list[tuple[int, int]]) -> str:
    """The kind of these men; "" for bare kings."""
    sides = ["".join(sorted((LETTERS[m] for m, s in men if s == side), key=_STRENGTH.index)) for side in (0, 1)]
    if not any(sides):
        return ""
    sides.sort(key=lambda letters: (-len(letters), [_STRENGTH.index(letter) for letter in letters]))
    return f"K{sides[0]}K{sides[1]}"


def size_of(kind: str) -> int:
    """The entries of one side to move."""
    return (1806 if "P" in kind else 462) * 64 ** (len(kind) - 2)


def _image(square: int, symmetry: int) -> int:
    file, rank = square % 8, square // 8
    if symmetry & 1:
        file = 7 - file
    if symmetry & 2:
        rank = 7 - rank
    if symmetry & 4:
        file, rank = rank, file
    return 8 * rank + file


@functools.lru_cache(maxsize=1)
def king_tables() -> dict[str, np.ndarray]:
    """For two kings, with pawns or without: their number, and the two symmetries (mostly one) that bring them to it."""
    images = np.array([[_image(square, s) for square in range(64)] for s in range(8)], np.int64)
    number = np.full((2, 64, 64), -1, np.int64)
    symmetry = np.zeros((2, 2, 64, 64), np.int64)
    squares = np.zeros((2, 1806, 2), np.int64)
    for pawns in range(2):
        seen: dict[int, int] = {}
        for a in range(64):
            for b in range(64):
                if max(abs(a % 8 - b % 8), abs(a // 8 - b // 8)) <= 1:
                    continue
                pairs = [int(64 * images[s, a] + images[s, b]) for s in range(2 if pawns else 8)]
                least = min(pairs)
                ways = [s for s, pair in enumerate(pairs) if pair == least]
                number[pawns, a, b] = seen.setdefault(least, len(seen))
                squares[pawns, seen[least]] = least // 64, least % 64
                symmetry[0, pawns, a, b], symmetry[1, pawns, a, b] = ways[0], ways[-1]
        assert len(seen) == (1806 if pawns else 462)
    return {"king_number": number, "king_symmetry": symmetry, "king_squares": squares, "images": images}


def directory(offsets: dict[str, int]) -> np.ndarray:
    """By two men (type + 6 * side, or NO_MAN): where their table is among the entries, and how to turn them for it."""
    rows = np.zeros((13, 13, 7), np.int64)
    rows[:, :, OFFSET] = NOT_LOADED
    rows[NO_MAN, NO_MAN, OFFSET] = BARE_KINGS
    for kind, offset in offsets.items():
        men = [man + 6 * side for man, side in extras(kind)]
        first, second = (men[0], men[1]) if len(men) == 2 else (men[0], NO_MAN)
        alike = first == second
        for turned in (1, 0):  # a kind that looks the same to both sides is taken as it stands
            a, b = (m if m == NO_MAN else (m + 6) % 12 if turned else m for m in (first, second))
            row = (offset, size_of(kind), turned, 0, "P" in kind, alike, len(kind))
            rows[a, b] = row
            if a != b:
                rows[b, a] = row
                rows[b, a, SWAPPED] = 1
    return rows


@njit
def position_index(tables, row, first_king, second_king, third, fourth):
    """The index, without side and offset, of men who stand as the kind wants them; -1 if the kings touch."""
    pawns = row[WITH_PAWNS]
    kings = tables.king_number[pawns, first_king, second_king]
    if kings < 0:
        return kings
    best = np.int64(1 << 40)
    for way in range(2):
        image = tables.king_symmetry[way, pawns, first_king, second_king]
        a = tables.images[image, third]
        if row[MEN] == 3:
            best = min(best, 64 * kings + a)
        else:
            b = tables.images[image, fourth]
            if row[ALIKE] and b < a:
                a, b = b, a
            best = min(best, 4096 * kings + 64 * a + b)
    return best


@njit
def byte_of(tables, entries, first_king, second_king, man, third, other_man, fourth, side):
    """What the tables say: white's king, black's king, two men (type + 6 * side or NO_MAN) and their squares, who moves.

    NO_POSITION where no table is loaded.
    """
    row = tables.directory[man, other_man]
    if row[OFFSET] < 0:
        return np.int64(DRAW if row[OFFSET] == BARE_KINGS else NO_POSITION)
    if row[TURNED]:
        first_king, second_king = second_king ^ 56, first_king ^ 56
        third, fourth, side = third ^ 56, fourth ^ 56, 1 - side
    if row[SWAPPED]:
        third, fourth = fourth, third
    index = position_index(tables, row, first_king, second_king, third, fourth)
    if index < 0:
        return np.int64(NO_POSITION)
    return np.int64(entries[row[OFFSET] + side * row[SIZE] + index])


def counts_of(kind: str, values: np.ndarray, tables: Any) -> dict[str, Any]:
    """Positions by side to move: distinct up to symmetry, all placements on the board, results, and the longest mate."""
    size, men = size_of(kind), len(kind)
    whole = np.zeros(size, np.uint8)
    orbit_sizes(tables, np.array(directory({kind: 0})[_key(kind)]), whole, np.int64(men))
    counts: dict[str, Any] = {}
    for side, name in enumerate(("first", "second")):
        part = values[side * size : (side + 1) * size]
        real = part != NO_POSITION
        won, lost = real & (part > 0) & (part % 2 == 0), real & (part % 2 == 1)
        counts[name] = {
            "positions": int(real.sum()),
            "placements": int(whole[real].sum(dtype=np.int64)),
            "wins": int(won.sum()),
            "draws": int((part == DRAW).sum()),
            "losses": int(lost.sum()),
            "longest_win_plies": int(part[won].max(initial=1)) - 1,
            "longest_loss_plies": int(part[lost].max(initial=1)) - 1,
        }
    return counts


def _key(kind: str) -> tuple[int, int]:
    men = [man + 6 * side for man, side in extras(kind)]
    return men[0], men[1] if len(men) == 2 else NO_MAN


@njit
def orbit_sizes(tables, row, out, men):
    """How many placements on the board each index stands for."""
    symmetries = 2 if row[WITH_PAWNS] else 8
    per_kings = 64 if men == 3 else 4096
    for index in range(len(out)):
        kings = index // per_kings
        first = tables.king_squares[row[WITH_PAWNS], kings, 0]
        second = tables.king_squares[row[WITH_PAWNS], kings, 1]
        third = index % per_kings // 64 if men == 4 else index % 64
        fourth = index % 64
        same = 0
        for s in range(symmetries):
            a, b = tables.images[s, third], tables.images[s, fourth]
            fixed = a == third and (men == 3 or b == fourth)
            if row[ALIKE] and a == fourth and b == third:
                fixed = True
            if fixed and tables.images[s, first] == first and tables.images[s, second] == second:
                same += 1
        out[index] = symmetries // same
