"""The numbers that a linear evaluation of backgammon adds up, from the side of the player on roll.

"Own" is the player on roll, or the one who still has dice to play; "their" is the other one. The same numbers are
given for both, since a blot is worth less to the side that has to wait. Points are counted from their owner's side.
What the dice can still do is part of it: before a roll the mean over the 36 rolls, later the numbers that are left.
So the values before and in the middle of a turn are on one scale.
"""

import math
from typing import Any

import numpy as np

from envs.backgammon_moves import BAR, ON_BOARD
from envs.bits import highest, lowest, popcount
from envs.compiled import njit

SHARED = (
    "to move",  # always 1
    "contact",  # 1 while some checkers still have to pass each other
    "race chance",  # without contact: winning chance by Kleinman's formula, from -1 to 1
    "race checkers lead",  # without contact: their checkers on the board less ours
    "contact pip chance",  # with contact: the same formula of the pip counts
    "pip lead",  # their pips less ours, by 100; with contact
    "hit chance",  # that the dice hit one of their blots (rules of using both dice aside)
    "hit pips",  # expected pips that they lose by it, by 10
    "hit chance x own home points",
    "their hit chance",  # as if it were their roll now
    "their hit pips",
    "their hit chance x their home points",
)
SIDE = (
    "home points",  # points made in the home board
    "home points squared",
    "five point",
    "four point",
    "bar point",
    "outfield points",  # points made from 8 to 18
    "advanced anchor",  # 20 or 21 made: the other's five or four point
    "deep anchor",  # 22, 23 or 24 made
    "blots at home",
    "blots outside",
    "blots far back",  # on 19 to 24
    "checkers on the bar",
    "dance chance",  # that no checker comes in from the bar with the dice, or with the next roll
    "bar x closed points",  # checkers on the bar times the points made in the other's home
    "checkers far back",  # on 19 to 24
    "longest prime",
    "trapped by primes",  # the other's checkers behind a prime of four or more, times its length less three
    "wall ahead",  # points of the other within six pips before the last checker, squared
    "wall x checkers far back",
    "stacked checkers",  # beyond three on a point
    "deep checkers",  # on the one and two point, while there is contact
    "builders",  # checkers on 7 to 12
    "checkers off",  # share of all
    "gammon danger",  # 0 safe, 1 far from bringing a checker off before the other is done
)
FEATURES = (*SHARED, *(f"own {name}" for name in SIDE), *(f"their {name}" for name in SIDE))

# What a feature is divided by, so that all inputs are of about the same size and one rate suits them all.
_SIZES = {
    "hit pips": 2.0,
    "their hit pips": 2.0,
    "hit chance x own home points": 6.0,
    "their hit chance x their home points": 6.0,
    "race checkers lead": 15.0,
    "home points": 6.0,
    "home points squared": 36.0,
    "outfield points": 5.0,
    "blots at home": 3.0,
    "blots outside": 3.0,
    "blots far back": 3.0,
    "checkers on the bar": 3.0,
    "bar x closed points": 12.0,
    "checkers far back": 6.0,
    "longest prime": 6.0,
    "trapped by primes": 12.0,
    "wall ahead": 36.0,
    "wall x checkers far back": 18.0,
    "stacked checkers": 6.0,
    "deep checkers": 6.0,
    "builders": 6.0,
}
SCALES = np.array([1.0 / _SIZES.get(name, 1.0) for name in (*SHARED, *SIDE, *SIDE)], np.float32)
HOME = 0x7E  # bits 1 to 6
OUTFIELD = 0x7FF00  # bits 8 to 18
MIDDLE = 0x7FF80  # bits 7 to 18
FAR = 0x1F80000  # bits 19 to 24
ROLL_PIPS = 8.0  # a roll moves 8.17 pips on average; Kleinman's formula counts 4 for being on roll


@njit
def turned(mask: Any) -> Any:
    """Bit p goes to bit 25 - p: the points as the other player counts them."""
    mask = ((mask >> 1) & 0x55555555) | ((mask & 0x55555555) << 1)
    mask = ((mask >> 2) & 0x33333333) | ((mask & 0x33333333) << 2)
    mask = ((mask >> 4) & 0x0F0F0F0F) | ((mask & 0x0F0F0F0F) << 4)
    mask = ((mask >> 8) & 0x00FF00FF) | ((mask & 0x00FF00FF) << 8)
    return ((mask >> 16) | ((mask & 0xFFFF) << 16)) >> 6


@njit
def hit_by_roll(occupied: Any, bars: Any, blocked: Any, targets: Any, a: Any, b: Any, times: Any) -> Any:
    """The targets that one of the moves of this roll can hit; equal dice are played `times` times."""
    free = ~blocked
    if a == b:
        hit = 0
        entered = min(bars, times)
        if entered > 0:
            entry = (1 << (BAR - a)) & free
            if entry == 0:
                return 0
            hit = entry & targets
            occupied = (occupied & ON_BOARD) | entry
            if bars > times:
                return hit
        for _ in range(times - entered):
            occupied = (occupied >> a) & free
            hit |= occupied & targets
        return hit
    if bars == 0:
        by_a, by_b = (occupied >> a) & free, (occupied >> b) & free
        return (by_a | by_b | by_a >> b | by_b >> a) & targets
    entry_a, entry_b = (1 << (BAR - a)) & free, (1 << (BAR - b)) & free
    hit = entry_a | entry_b
    if bars == 1:
        rest = occupied & ON_BOARD
        if entry_a:
            hit |= (rest | entry_a) >> b
        if entry_b:
            hit |= (rest | entry_b) >> a
    return hit & targets


@njit
def hit_chances(occupied: Any, bars: Any, blocked: Any, targets: Any) -> Any:
    """The chance to hit something with the next roll, and the expected pips that the other loses by the best hit.

    A blot on the hitter's point p has come p pips from its bar.
    """
    chance, pips = 0, 0
    if targets != 0:
        for a in range(1, 7):
            hit = hit_by_roll(occupied, bars, blocked, targets, a, a, 4)
            if hit != 0:
                chance += 1
                pips += highest(hit)
            for b in range(1, a):
                hit = hit_by_roll(occupied, bars, blocked, targets, a, b, 1)
                if hit != 0:
                    chance += 2
                    pips += 2 * highest(hit)
    return chance / 36, pips / 36


@njit
def write_side(
    points: Any, foe: Any, occupied: Any, made: Any, blocked: Any, pips: Any, contact: Any, out: Any
) -> None:
    """The features of one player (see SIDE); `blocked` are the other's points as this player counts them."""
    home = popcount(made & HOME)
    closed = popcount(blocked & FAR)
    blots = occupied & ~made & ON_BOARD
    bars = np.int64(points[BAR])
    last = highest(occupied)
    far = deep = builders = stacked = outside = np.int64(0)
    for point in range(1, 25):
        count = np.int64(points[point])
        if count > 3:
            stacked += count - 3
        if point > 18:
            far += count
        elif point > 6:
            if point <= 12:
                builders += count
        elif point <= 2:
            deep += count
        if point > 6:
            outside += count * (point - 6)
    outside += 19 * bars
    run, prime = made, 0
    while run != 0:
        prime += 1
        run &= run >> 1
    trapped = np.int64(0)
    fours = made & made >> 1 & made >> 2 & made >> 3
    if fours != 0:
        for point in range(BAR - highest(fours) + 1, 26):
            trapped += np.int64(foe[point])
    wall = popcount(blocked & (0x3F << (last - 6))) if last > 6 else 0
    out[0] = home
    out[1] = home * home
    out[2] = made >> 5 & 1
    out[3] = made >> 4 & 1
    out[4] = made >> 7 & 1
    out[5] = popcount(made & OUTFIELD)
    out[6] = 1.0 if made & (3 << 20) else 0.0
    out[7] = 1.0 if made & (7 << 22) & ON_BOARD else 0.0
    out[8] = popcount(blots & HOME)
    out[9] = popcount(blots & MIDDLE)
    out[10] = popcount(blots & FAR)
    out[11] = bars
    out[12] = closed * closed / 36 if bars > 0 else 0.0
    out[13] = bars * closed
    out[14] = far
    out[15] = prime
    out[16] = trapped * (prime - 3)
    out[17] = wall * wall
    out[18] = wall * (far + bars)
    out[19] = stacked
    out[20] = deep if contact else 0
    out[21] = builders
    # A gammon is saved by bringing all checkers home and one off; the other one needs about its pip count of time.
    danger = (outside + 7.0 - pips) / 50 + 0.5
    out[23] = min(max(danger, 0.0), 1.0) if points[0] == 0 else 0.0


@njit
def waste(points: Any) -> Any:
    """Pips that bearing off wastes: Keith's count (2004) without its crossover terms for gaps on 4 to 6."""
    lost = np.int64(0)
    if points[1] > 1:
        lost += 2 * (np.int64(points[1]) - 1)
    if points[2] > 1:
        lost += np.int64(points[2]) - 1
    if points[3] > 3:
        lost += np.int64(points[3]) - 3
    return lost


@njit
def winning_chance(lead: Any, total: Any) -> Any:
    """Kleinman's (1980) estimate of a race, from -1 to 1: a normal distribution of the difference in pips."""
    return math.erf(lead / (2.0 * math.sqrt(max(total - 4.0, 1.0))))


@njit
def write_features(state: Any, out: Any, checkers: Any) -> None:
    """Writes FEATURES; before a roll (the opening's too) for the player who is going to roll, there player 0."""
    me = np.int64(max(state.turn, 0))
    own, their = state.points[me], state.points[1 - me]
    occupied, blocked = np.int64(state.occupied[me]), np.int64(state.blocked[me])
    other, other_blocked = np.int64(state.occupied[1 - me]), np.int64(state.blocked[1 - me])
    made, other_made = turned(other_blocked), turned(blocked)
    own_pips, their_pips = np.int64(0), np.int64(0)
    for point in range(1, 26):
        own_pips += point * np.int64(own[point])
        their_pips += point * np.int64(their[point])
    contact = highest(occupied) > lowest(turned(other))
    write_side(own, their, occupied, made, blocked, their_pips, contact, out[len(SHARED) :])
    write_side(their, own, other, other_made, other_blocked, own_pips, contact, out[len(SHARED) + len(SIDE) :])
    out[len(SHARED) + 22] = own[0] / checkers
    out[len(SHARED) + len(SIDE) + 22] = their[0] / checkers
    die, second, left = np.int64(state.die), np.int64(state.second), np.int64(state.left)
    dice = ROLL_PIPS if left == 0 else die + second if second > 0 else die * left
    lead = their_pips - own_pips + dice - 4.0
    out[0] = 1.0
    out[1] = 1.0 if contact else 0.0
    out[2], out[3], out[4], out[5] = 0.0, 0.0, 0.0, 0.0
    if contact:
        out[4] = winning_chance(lead, own_pips + their_pips)
        out[5] = (their_pips - own_pips + dice) / 100
    else:
        own_waste, their_waste = waste(own), waste(their)
        out[2] = winning_chance(lead + their_waste - own_waste, own_pips + their_pips + own_waste + their_waste)
        out[3] = np.int64(own[0]) - np.int64(their[0])
    bars, other_bars = np.int64(own[BAR]), np.int64(their[BAR])
    if left > 0 and bars > 0:
        entries = (1 << (BAR - die)) | (1 << (BAR - second) if second > 0 else 0)
        out[len(SHARED) + 12] = 0.0 if entries & ~blocked else 1.0
    targets = turned(other & ~other_made & ON_BOARD)
    if left == 0:
        chance, gain = hit_chances(occupied, bars, blocked, targets)
    else:
        smaller = second if second > 0 else die
        hit = hit_by_roll(occupied, bars, blocked, targets, die, smaller, left)
        chance, gain = (1.0, np.float64(highest(hit))) if hit != 0 else (0.0, 0.0)
    risk, loss = hit_chances(other, other_bars, other_blocked, turned(occupied & ~made & ON_BOARD))
    out[6] = chance
    out[7] = gain / 10
    out[8] = chance * out[len(SHARED)]
    out[9] = risk
    out[10] = loss / 10
    out[11] = risk * out[len(SHARED) + len(SIDE)]
