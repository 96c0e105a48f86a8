"""Bit operations on 64-bit boards: single machine instructions when compiled, plain Python otherwise.

Boards are `np.uint64`. Indices and counts are ordinary integers. In compiled code an unsigned board mixed
with a signed integer turns into a float or a signed number, so shift by `np.uint64(n)`.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from envs.compiled import njit

ONE = np.uint64(1)
ZERO = np.uint64(0)
FULL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


def popcount(board: Any) -> int:
    """The number of set bits.

    >>> popcount(np.uint64(0b1011))
    3
    """
    return int(board).bit_count()


def lowest(board: Any) -> int:
    """The index of the lowest set bit; 64 for an empty board.

    >>> lowest(np.uint64(0b1000))
    3
    """
    number = int(board)
    return (number & -number).bit_length() - 1 if number else 64


def highest(board: Any) -> int:
    """The index of the highest set bit; -1 for an empty board.

    >>> highest(np.uint64(0b1010))
    3
    """
    return int(board).bit_length() - 1


def swap_bytes(board: Any) -> np.uint64:
    """The eight bytes in reverse order: an 8x8 board turned upside down.

    >>> hex(swap_bytes(np.uint64(0x01020304_05060708)))
    '0x807060504030201'
    """
    return np.uint64(int.from_bytes(int(board).to_bytes(8, "little"), "big"))


def without_lowest(board: Any) -> np.uint64:
    """The board with its lowest set bit cleared."""
    return np.uint64(int(board) & (int(board) - 1)) if board else ZERO


def _instruction(emit: Any) -> Any:
    @intrinsic
    def instruction(typing_context: Any, board: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return emit(builder, arguments[0])

        return types.uint64(types.uint64), generate

    return instruction


_ctpop = _instruction(lambda builder, x: builder.ctpop(x))
_cttz = _instruction(lambda builder, x: builder.cttz(x, ir.Constant(ir.IntType(1), 0)))
_ctlz = _instruction(lambda builder, x: builder.ctlz(x, ir.Constant(ir.IntType(1), 0)))
_bswap = _instruction(lambda builder, x: builder.bswap(x))

overload(popcount)(lambda board: lambda board: np.int64(_ctpop(np.uint64(board))))
overload(lowest)(lambda board: lambda board: np.int64(_cttz(np.uint64(board))))
overload(highest)(lambda board: lambda board: np.int64(63) - np.int64(_ctlz(np.uint64(board))))
overload(swap_bytes)(lambda board: lambda board: _bswap(np.uint64(board)))
overload(without_lowest)(lambda board: lambda board: np.uint64(board) & (np.uint64(board) - np.uint64(1)))


@njit
def mix(number: Any) -> Any:
    """A bijection of 64 bits that spreads every input bit over all output bits (splitmix64's finaliser).

    Steele, Lea and Flood 2014. The building block of `Game.key`.
    """
    z = np.uint64(number)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
