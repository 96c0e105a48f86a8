"""Backgammon's end, exact: bearing off alone, and two sides racing.

One side: the distribution of the number of rolls to bear off up to 15 checkers from the six home points, for the play
that needs the fewest rolls on average: C(21, 6) = 54,264 positions. Two sides, up to 6 checkers each: 924 * 924 pairs,
the chance that the player on roll wins when both play for the win, and the money equities with a doubling cube that the
player on roll owns, that nobody owns, or that the opponent owns (no gammons: both sides have borne off checkers).

A position is written as (n1, .., n6), the checkers on the points 1 to 6, and numbered as a combination of six out of
checkers + 6: put a bar after each point; the bars' places n1, n1 + n2 + 1, .. are the combination.

In the home board every number can be played: it moves the rearmost checker or bears it off. So a roll leaves whatever
its two numbers, in either order, or its four equal ones lead to.
"""

from collections.abc import Callable
from math import comb

import numpy as np

from envs.compiled import njit

POINTS = 6
CHECKERS = 15
PAIR_CHECKERS = 6
MOST_ROLLS = 30  # 15 checkers on the six point are 90 pips; no roll moves fewer than 3
_MOST_RESULTS = 256  # positions after one roll; four equal numbers have at most C(9, 4) = 126 ways


def binomials() -> np.ndarray:
    return np.array([[comb(n, k) for k in range(POINTS + 1)] for n in range(CHECKERS + POINTS + 1)], np.int64)


@njit
def number_of(chooses, points):
    """The number of a position, 0 for no checkers; the numbers do not depend on how many checkers there may be."""
    total, place = np.int64(0), np.int64(0)
    # From the six point down: positions with fewer checkers, and those nearer home, come first.
    for i in range(POINTS):
        place += points[POINTS - 1 - i]
        total += chooses[place + i, i + 1]
    return total


@njit
def all_positions(chooses, checkers, out):
    """Writes every position with up to that many checkers at its number."""
    points = np.zeros(POINTS, np.int64)
    while True:
        number = number_of(chooses, points)
        for i in range(POINTS):
            out[number, i] = points[i]
        i = 0
        while i < POINTS:
            points[i] += 1
            if points.sum() <= checkers:
                break
            points[i] = 0
            i += 1
        if i == POINTS:
            return


@njit
def move(points, source, die):
    """Moves a checker from a point (0 is the ace point) by a number; whether that is allowed."""
    if points[source] == 0:
        return False
    if source - die < -1:
        for behind in range(source + 1, POINTS):
            if points[behind] > 0:
                return False
    points[source] -= 1
    if source - die >= 0:
        points[source - die] += 1
    return True


@njit
def results(chooses, points, first, second, out):
    """Writes the numbers of the positions that a roll can lead to, each once; returns how many."""
    count = 0
    here = np.zeros((5, POINTS), np.int64)
    here[0] = points
    if first != second:
        for order in range(2):
            die, other = (first, second) if order == 0 else (second, first)
            for a in range(POINTS):
                here[1] = points
                if not move(here[1], a, die):
                    continue
                if here[1].sum() == 0:
                    count = add(out, count, np.int64(0))
                for b in range(POINTS):
                    here[2] = here[1]
                    if move(here[2], b, other):
                        count = add(out, count, number_of(chooses, here[2]))
        return count
    # Equal numbers: the order does not matter in the end, but a checker may move again, so every order is tried.
    layer, layers = np.zeros((2, _MOST_RESULTS), np.int64), np.zeros(2, np.int64)
    boards = np.zeros((2, _MOST_RESULTS, POINTS), np.int64)
    boards[0, 0] = points
    layers[0] = 1
    for step in range(4):
        old, new = step % 2, 1 - step % 2
        layers[new] = 0
        for k in range(layers[old]):
            if boards[old, k].sum() == 0:
                count = add(out, count, np.int64(0))
                continue
            for a in range(POINTS):
                here[1] = boards[old, k]
                if move(here[1], a, first):
                    grown = add(layer[new], layers[new], number_of(chooses, here[1]))
                    if grown > layers[new]:
                        boards[new, layers[new]] = here[1]
                        layers[new] = grown
    for k in range(layers[0]):
        count = add(out, count, layer[0, k])
    return count


@njit
def add(out, count, number):
    for i in range(count):
        if out[i] == number:
            return count
    out[count] = number
    return count + 1


@njit
def one_sided(chooses, positions, order, means, chances):
    """Fills the mean number of rolls and the chances of exactly 0, 1, .. rolls, position by position."""
    out = np.zeros(_MOST_RESULTS, np.int64)
    for number in order:
        if number == 0:
            chances[0, 0] = 1.0
            continue
        for first in range(1, 7):
            for second in range(1, first + 1):
                weight = (1.0 if first == second else 2.0) / 36.0
                count = results(chooses, positions[number], first, second, out)
                best = out[0]
                for i in range(1, count):
                    if means[out[i]] < means[best]:
                        best = out[i]
                means[number] += weight * means[best]
                for rolls in range(MOST_ROLLS):
                    chances[number, rolls + 1] += weight * chances[best, rolls]
        means[number] += 1.0


@njit
def two_sided(starts, after, order, pips, wins, equities):
    """Fills, for each pair of positions, the chance to win and the equities of the player on roll.

    Money play: on roll one may double first if the cube is one's own or nobody's; the other passes, losing 1, or
    takes, owning a cube of 2.
    """
    count = len(order)
    rolled = np.zeros(3)
    for total in range(2 * int(pips.max()) + 1):
        for a in order:
            if pips[a] == 0 or pips[a] > total:
                continue
            for k in range(count):
                b = order[k]
                if pips[b] == 0 or pips[a] + pips[b] != total:
                    continue
                chance = 0.0
                rolled[:] = 0.0
                for roll in range(21):
                    first, second = first_of(roll)
                    weight = (1.0 if first == second else 2.0) / 36.0
                    best = -1.0
                    best_owned, best_centred, best_theirs = -9.0, -9.0, -9.0
                    for i in range(starts[a, roll], starts[a, roll + 1]):
                        c = after[i]
                        if c == 0:
                            best, best_owned, best_centred, best_theirs = 1.0, 1.0, 1.0, 1.0
                            break
                        best = max(best, 1.0 - wins[b, c])
                        best_owned = max(best_owned, -equities[2, b, c])
                        best_centred = max(best_centred, -equities[1, b, c])
                        best_theirs = max(best_theirs, -equities[0, b, c])
                    chance += weight * best
                    rolled[0] += weight * best_owned
                    rolled[1] += weight * best_centred
                    rolled[2] += weight * best_theirs
                wins[a, b] = chance
                doubled = min(1.0, 2.0 * rolled[2])
                equities[0, a, b] = max(rolled[0], doubled)
                equities[1, a, b] = max(rolled[1], doubled)
                equities[2, a, b] = rolled[2]


@njit
def first_of(roll):
    """The roll's numbers, the larger first: 11, 21, 22, 31, .."""
    first = np.int64(1)
    while first * (first + 1) // 2 <= roll:
        first += 1
    return first, roll - first * (first - 1) // 2 + 1


@njit
def list_results(chooses, positions, starts, after):
    """For each position and roll the positions that follow, in one list."""
    out = np.zeros(_MOST_RESULTS, np.int64)
    end = 0
    for number in range(len(positions)):
        for roll in range(21):
            starts[number, roll] = end
            first, second = first_of(roll)
            count = results(chooses, positions[number], first, second, out)
            for i in range(count):
                after[end + i] = out[i]
            end += count
        starts[number, 21] = end
    return end


def positions_up_to(checkers: int) -> np.ndarray:
    """All positions by number: the checkers on the points 1 to 6."""
    positions = np.zeros((comb(checkers + POINTS, POINTS), POINTS), np.int64)
    all_positions(binomials(), checkers, positions)
    return positions


def build_one_sided(progress: Callable[[int], None]) -> dict[str, np.ndarray]:
    """Mean and distribution of rolls for every position of up to 15 checkers."""
    positions = positions_up_to(CHECKERS)
    pips = positions @ np.arange(1, POINTS + 1)
    order = np.argsort(pips, kind="stable")
    means, chances = np.zeros(len(positions)), np.zeros((len(positions), MOST_ROLLS + 1))
    parts = np.array_split(order, 20)
    for number, part in enumerate(parts):
        one_sided(binomials(), positions, part, means, chances)
        progress(number + 1)
    return {"means": means, "chances": chances}


def build_two_sided(progress: Callable[[int], None]) -> dict[str, np.ndarray]:
    """Chances to win and equities with a cube, for every pair of positions of up to 6 checkers."""
    positions = positions_up_to(PAIR_CHECKERS)
    pips = positions @ np.arange(1, POINTS + 1)
    order = np.argsort(pips, kind="stable")
    starts = np.zeros((len(positions), 22), np.int64)
    after = np.zeros(len(positions) * 21 * 60, np.int64)
    end = int(list_results(binomials(), positions, starts, after))
    wins = np.zeros((len(positions), len(positions)))
    wins[0, 1:] = 1.0  # a side that has borne off all has won
    equities = np.zeros((3, len(positions), len(positions)))
    two_sided(starts, after[:end], order, pips, wins, equities)
    progress(1)
    return {"wins": wins, "equities": equities}
