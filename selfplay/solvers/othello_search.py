"""The search of Othello endgames: exact disc differences (Edax's and Zebra's public descriptions; Buro 1997).

The bound contract of all functions, fail-soft: the value returned is exact if alpha < value < beta, an upper bound of
the true difference if it is <= alpha, a lower bound if it is >= beta. Values are from the mover's view.

`credit` (work.credit) gives the cells left empty to the winner, as tournaments and endgame suites do.
"""

import numpy as np

from envs.bits import ONE, ZERO, lowest, mix, popcount, without_lowest
from envs.compiled import njit

SHALLOW = 6  # with so few empty cells or less: no table, no sorting, only parity
ENHANCED = 10  # from so many empty cells on, the table is asked about all children first
LOOK_AHEAD = 13  # from so many empty cells on, moves are sorted by the mobility after the best reply, too
STABILITY = 0.3  # of the board: stable discs are counted where alpha exceeds this


@njit
def final_difference(work, own, other, empty):
    """The result of a finished game for the owner of the first discs."""
    lead = own - other
    if work.credit != 0 and lead != 0:
        lead += empty if lead > 0 else -empty
    return np.int64(lead)


@njit
def last_one(game, work, mine, theirs, cell):
    """One empty cell."""
    work.nodes += 1
    own, other = popcount(mine), popcount(theirs)
    turned = popcount(game.flips(mine, theirs, cell))
    if turned > 0:
        return np.int64(own + 1 + turned - (other - turned))
    turned = popcount(game.flips(theirs, mine, cell))
    if turned > 0:
        return np.int64(own - turned - (other + 1 + turned))
    return final_difference(work, own, other, np.int64(1))


@njit
def last_two(game, work, mine, theirs, first, second, alpha, beta):
    """Two empty cells, the more promising first."""
    work.nodes += 1
    for turn in range(2):  # the mover; if it has to pass, the other
        best = np.int64(-127)
        for i in range(2):
            cell, rest = (first, second) if i == 0 else (second, first)
            turned = game.flips(mine, theirs, cell)
            if turned != ZERO:
                value = -last_one(game, work, theirs & ~turned, mine | turned | (ONE << np.uint64(cell)), rest)
                best = max(best, value)
                if best >= beta:
                    break
        if best > -127:
            return best if turn == 0 else -best
        mine, theirs = theirs, mine
        alpha, beta = -beta, -alpha
    return final_difference(work, popcount(mine), popcount(theirs), np.int64(2))


@njit
def odd_regions(work, empty):
    """The quarters of the board with an odd number of empty cells: who moves there first moves there last."""
    odd = ZERO
    for i in range(4):
        if popcount(empty & work.quarter[i]) & 1:
            odd |= work.quarter[i]
    return odd


@njit
def shallow(game, work, mine, theirs, alpha, beta, passed):
    """A few empty cells: alpha-beta with parity as its only order."""
    empty = game.board & ~(mine | theirs)
    count = popcount(empty)
    odd = odd_regions(work, empty)
    if count == 2:
        first, second = lowest(empty), lowest(without_lowest(empty))
        if (odd >> np.uint64(first)) & ONE == ZERO and (odd >> np.uint64(second)) & ONE != ZERO:
            first, second = second, first
        return last_two(game, work, mine, theirs, first, second, alpha, beta)
    if count == 1:
        return last_one(game, work, mine, theirs, lowest(empty))
    if count == 0:
        return final_difference(work, popcount(mine), popcount(theirs), np.int64(0))
    work.nodes += 1
    best = np.int64(-127)
    near = empty & game.around(theirs)
    for part in range(2):
        rest = near & odd if part == 0 else near & ~odd
        while rest != ZERO:
            cell = lowest(rest)
            rest = without_lowest(rest)
            turned = game.flips(mine, theirs, cell)
            if turned == ZERO:
                continue
            placed = mine | turned | (ONE << np.uint64(cell))
            value = -shallow(game, work, theirs & ~turned, placed, -beta, -max(alpha, best), np.int64(0))
            if value > best:
                best = value
                if best >= beta:
                    return best
    if best > -127:
        return best
    if passed != 0:
        return final_difference(work, popcount(mine), popcount(theirs), np.int64(count))
    return -shallow(game, work, theirs, mine, -beta, -alpha, np.int64(1))


@njit
def place_of(table, mine, theirs):
    """The first of the two places of a position."""
    return np.int64(mix(mix(mine) ^ theirs) & np.uint64(len(table) - 2))


@njit
def find(table, mine, theirs):
    """The index of the position's entry, or -1."""
    first = place_of(table, mine, theirs)
    for i in range(2):
        entry = table[first + i]
        if entry.mine == mine and entry.theirs == theirs:
            return first + i
    return np.int64(-1)


@njit
def store(table, mine, theirs, empties, lower, upper, cell):
    """One place for the most empty cells, one for the latest."""
    index = find(table, mine, theirs)
    if index < 0:
        index = place_of(table, mine, theirs)
        if table[index].empties > empties:
            index += 1
        elif table[index].empties > 0:
            table[index + 1] = table[index]
        entry = table[index]
        entry.mine, entry.theirs, entry.empties = mine, theirs, empties
        entry.lower, entry.upper = lower, upper
    else:
        entry = table[index]
        entry.lower = max(entry.lower, lower)
        entry.upper = min(entry.upper, upper)
    entry.cell = cell


@njit
def promise(game, work, mine, theirs, count):
    """How much a position promises to the player who is not to move: few replies, few of them corners, and later."""
    replies = game.reach(mine, theirs)
    score = 8 * popcount(replies) + 8 * popcount(replies & game.corners)
    if count >= LOOK_AHEAD:
        empty = game.board & ~(mine | theirs)
        score += 2 * popcount(game.around(theirs) & empty) - 3 * popcount(game.stable(theirs) & game.border)
    return -score


@njit
def sort_moves(game, work, mine, theirs, moves, count, hash_cell):
    """Writes the moves to the work's lists for `count` empty cells, the most promising first; returns their number.

    Fastest first: a reply that has few replies makes a small tree (and mobility is good Othello).
    """
    empty = game.board & ~(mine | theirs)
    odd = odd_regions(work, empty)
    number = 0
    rest = moves
    while rest != ZERO:
        cell = lowest(rest)
        rest = without_lowest(rest)
        bit = ONE << np.uint64(cell)
        turned = game.flips(mine, theirs, cell)
        score = promise(game, work, theirs & ~turned, mine | turned | bit, count - 1)
        if odd & bit != ZERO:
            score += 4
        if game.corners & bit != ZERO:
            score += 12
        if cell == hash_cell:
            score += 10_000
        i = number
        while i > 0 and work.scores[count, i - 1] < score:
            work.scores[count, i] = work.scores[count, i - 1]
            work.cells[count, i] = work.cells[count, i - 1]
            work.turned[count, i] = work.turned[count, i - 1]
            i -= 1
        work.scores[count, i], work.cells[count, i], work.turned[count, i] = score, cell, turned
        number += 1
    return number


@njit
def deep(game, work, table, mine, theirs, alpha, beta, passed):
    """Many empty cells: principal variation search with a table, stability and sorted moves."""
    empties = popcount(game.board & ~(mine | theirs))
    if empties <= SHALLOW:
        return shallow(game, work, mine, theirs, alpha, beta, passed)
    work.nodes += 1
    if work.stop != 0 or work.nodes > work.node_limit:
        work.stopped = 1
        return np.int64(0)

    # 1. Stability: what the opponent holds for good limits what the mover can get.
    if alpha >= work.stability:
        limit = np.int64(game.num_cells - 2 * popcount(game.stable(theirs)))
        if limit <= alpha:
            return limit

    # 2. Who can't move passes; if neither can, the game is over.
    moves = game.reach(mine, theirs)
    if moves == ZERO:
        if passed != 0:
            return final_difference(work, popcount(mine), popcount(theirs), np.int64(empties))
        return -deep(game, work, table, theirs, mine, -beta, -alpha, np.int64(1))

    # 3. The table.
    hash_cell = np.int64(-1)
    found = find(table, mine, theirs)
    if found >= 0:
        entry = table[found]
        lower, upper = np.int64(entry.lower), np.int64(entry.upper)
        if lower >= beta or lower == upper:
            return lower
        if upper <= alpha:
            return upper
        alpha, beta = max(alpha, lower), min(beta, upper)
        hash_cell = np.int64(entry.cell)
    count = sort_moves(game, work, mine, theirs, moves, empties, hash_cell)

    # 4. Enhanced transposition cut-offs (Plaat et al. 1996).
    if empties >= ENHANCED:
        for i in range(count):
            turned, bit = work.turned[empties, i], ONE << np.uint64(work.cells[empties, i])
            found = find(table, theirs & ~turned, mine | turned | bit)
            if found >= 0 and -np.int64(table[found].upper) >= beta:
                return -np.int64(table[found].upper)

    # 5. The moves.
    first_alpha, best, best_cell = alpha, np.int64(-127), np.int64(-1)
    for i in range(count):
        cell, turned = work.cells[empties, i], work.turned[empties, i]
        placed, left = mine | turned | (ONE << np.uint64(cell)), theirs & ~turned
        if i == 0:
            value = -deep(game, work, table, left, placed, -beta, -alpha, np.int64(0))
        else:
            value = -deep(game, work, table, left, placed, -alpha - 1, -alpha, np.int64(0))
            if alpha < value < beta:
                value = -deep(game, work, table, left, placed, -beta, -value, np.int64(0))
        if work.stopped != 0:
            return np.int64(0)
        if value > best:
            best, best_cell = value, np.int64(cell)
            alpha = max(alpha, value)
            if alpha >= beta:
                break
    lower = best if best > first_alpha else np.int64(-game.num_cells)
    upper = best if best < beta else np.int64(game.num_cells)
    store(table, mine, theirs, empties, lower, upper, best_cell)
    return best
