"""Which checkers a die can move in backgammon, on masks of 26 bits: bit p is the mover's own point p, bit 25 the bar."""

from typing import Any

from envs.bits import highest, lowest
from envs.compiled import njit

BAR = 25
PASS = 150
ON_BOARD = 0x1FFFFFE  # bits 1 to 24
OUTSIDE_HOME = 0x3FFFF80  # bits 7 to 25


@njit
def sources(occupied: Any, blocked: Any, die: Any) -> Any:
    """The points (bit p) from which a checker can be moved by this die alone."""
    if occupied >> BAR:
        occupied = 1 << BAR  # nothing else may move while a checker is on the bar
    found = ((occupied >> die) & ~blocked & ON_BOARD) << die
    if occupied & OUTSIDE_HOME == 0:
        found |= occupied & (1 << die)
        if occupied >> die == 0 and occupied != 0:  # a larger number bears off from the highest point
            found = 1 << highest(occupied)
    return found


@njit
def followed(occupied: Any, blocked: Any, points: Any, first: Any, second: Any) -> Any:
    """The sources for the die `first` after which the die `second` can be used as well.

    A move with the second die that exists already stays legal whatever else moves before it. So look closer only
    where there is none, or where the only one starts at the same point.
    """
    firsts = sources(occupied, blocked, first)
    doubtful = firsts
    seconds = sources(occupied, blocked, second)
    if seconds != 0:
        if seconds & (seconds - 1):
            return firsts
        doubtful &= seconds
    while doubtful != 0:
        point = lowest(doubtful)
        doubtful &= doubtful - 1
        after = occupied
        if points[point] == 1:
            after ^= 1 << point
        if point > first:
            after |= 1 << (point - first)
        if sources(after, blocked, second) == 0:
            firsts ^= 1 << point
    return firsts
