"""Pig for two, solved exactly (Neller and Presser, "Optimal Play of the Dice Game Pig", The UMAP Journal 25, 2004).

Let x be the chance to win at the start of a turn with i points against j, and y that of the other with j against i.
Within the turn, with a total of k, where c = 1 - y is what is left after the turn is lost:

    win(k) = max(1 - start(j, i + k),  (c + win(k + 2) + .. + win(k + sides)) / sides),    1 if i + k reaches the goal

The scores only grow, so pairs are solved from the goal down, and only x and y depend on each other: x = f(1 - y) and
y = g(1 - x), where f and g are the best of linear functions. Value iteration would repeat both until nothing changes;
here each repetition also takes the slope at the present choice along and solves the two lines, which is policy
iteration (Howard 1960) and ends with the exact fixed point after a handful of steps. Only `start` is stored: the
totals of a turn follow from it.
"""

from collections.abc import Callable

import numpy as np

from envs.compiled import njit

_STEPS = 60
_CLOSE = 1e-15


@njit
def turn_value(start, goal, sides, own, other, lost, out):
    """The chance to win at the start of a turn and its slope in `lost`, what is left after the turn is lost.

    `out[k]` becomes the chance with a total of k; out has room for goal + sides + 1 numbers.
    """
    most = goal - own  # a total that wins
    for k in range(most, most + sides + 1):
        out[k] = 1.0
    slope_sum, value_sum = 0.0, float(sides - 1)
    slopes = np.zeros(most + sides + 1)
    slope = 0.0
    for k in range(most - 1, -1, -1):
        # value_sum = out[k + 2] + .. + out[k + sides]
        value = (lost + value_sum) / sides
        slope = (1.0 + slope_sum) / sides
        hold = lost if k == 0 else 1.0 - start[other, own + k]
        if hold > value:
            value, slope = hold, 1.0 if k == 0 else 0.0
        out[k], slopes[k] = value, slope
        value_sum += out[k + 1] - out[k + sides]
        slope_sum += slopes[k + 1] - slopes[k + sides]
    return out[0], slope


@njit
def solve_pairs(start, goal, sides, total):
    """Solves all pairs of scores with that sum."""
    out = np.zeros(goal + sides + 1)
    for i in range(max(0, total - goal + 1), min(goal - 1, total) + 1):
        j = total - i
        if j < i:
            break
        x, y = 0.5, 0.5
        for _ in range(_STEPS):
            f, f_slope = turn_value(start, goal, sides, i, j, 1.0 - y, out)
            g, g_slope = turn_value(start, goal, sides, j, i, 1.0 - x, out)
            # x' = f - f_slope * (y' - y) and y' = g - g_slope * (x' - x)
            new_x = (f + f_slope * (y - g - g_slope * x)) / (1.0 - f_slope * g_slope)
            new_y = g + g_slope * (x - new_x)
            change = abs(new_x - x) + abs(new_y - y)
            x, y = new_x, new_y
            if change < _CLOSE:
                break
        start[i, j], start[j, i] = x, y


def build(goal: int, sides: int, progress: Callable[[int], None]) -> np.ndarray:
    """The chance to win at the start of a turn, by own score and the other's."""
    start = np.zeros((goal, goal))
    for total in range(2 * (goal - 1), -1, -1):
        solve_pairs(start, goal, sides, total)
        progress(2 * goal - 1 - total)
    return start
