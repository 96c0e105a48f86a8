"""A small value network as an evaluation, in the manner of TD-Gammon (Tesauro 1992, 1995): one hidden layer.

The network judges a position before the roll, from the side of the player on roll, by five chances: that this player
wins at all, wins a gammon or backgammon, wins a backgammon, loses a gammon or worse, loses a backgammon. What the
result is worth follows from these, so that the estimate is linear in the expected points, as expectiminimax needs it.

Inputs: Tesauro's units for each point of each player (one, two, three checkers or more, half of those beyond three),
bars, checkers off, pips, and how far the rearmost checkers still have to pass each other; then the game's named
features (`envs/backgammon_features.py`: blots under fire, primes, anchors, the race, the danger of a gammon), as
TD-Gammon's later versions had features besides the raw board. Most are zero, so the hidden layer is a sum over those
that are not.
"""

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from envs.backgammon_features import FEATURES, SCALES, write_features
from envs.compiled import njit
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, Game, State
from models.evaluation import INSIDE, Evaluation

_BOARD = 2 * 24 * 4 + 2 * 2 + 2 + 2 + 1  # points; bar and off; pips; rearmost checkers; contact
INPUTS = _BOARD + len(FEATURES)
OUTPUTS = 5
MOST_ACTIVE = 96 + len(FEATURES)  # not zero: fifteen checkers a side give at most four each, and the rest
_BAR = 25

# tanh(x) for |x| < 7.9 as x * P(x * x) / Q(x * x), right to 4e-7 (the coefficients of Eigen's tanh). Unlike exp, which
# would be called once per unit, this compiles to vector instructions.
_TOP = (
    *(4.89352455891786e-03, 6.37261928875436e-04, 1.48572235717979e-05, 5.12229709037114e-08),
    *(-8.60467152213735e-11, 2.00018790482477e-13, -2.76076847742355e-16),
)
_BOTTOM = (4.89352518554385e-03, 2.26843463243900e-03, 1.18534705686654e-04, 1.19825839466702e-06)
_P = tuple(np.float32(number) for number in _TOP)
_Q = tuple(np.float32(number) for number in _BOTTOM)
_HALF, _MOST = np.float32(0.5), np.float32(7.9)


def _vectorised(function: Any) -> Any:
    """Compiled as a part of its callers; sums may be added up in any order, so that they are vectors."""
    return numba.njit(error_model="numpy", nogil=True, fastmath=True)(function)


@_vectorised
def to_chances(numbers, count):
    """The logistic function of the first `count` numbers, in place."""
    for j in range(count):
        x = min(max(_HALF * numbers[j], -_MOST), _MOST)
        y = x * x
        top = _P[0] + y * (_P[1] + y * (_P[2] + y * (_P[3] + y * (_P[4] + y * (_P[5] + y * _P[6])))))
        bottom = _Q[0] + y * (_Q[1] + y * (_Q[2] + y * _Q[3]))
        numbers[j] = _HALF + _HALF * x * top / bottom


@_vectorised
def weighted_sum(weights, numbers, count):
    total = np.float32(0.0)
    for j in range(count):
        total += weights[j] * numbers[j]
    return total


@njit
def write_inputs(state, me, indices, values, features, checkers):
    """Lists the inputs that are not zero, for the player `me` on roll; returns their number.

    `features` is room for the named features.
    """
    count = 0
    rear_own, rear_other = 0, 0
    for side in range(2):
        points = state.points[me if side == 0 else 1 - me]
        pips, rear = 0, 0
        for point in range(1, 25):
            men = np.int64(points[point])
            if men == 0:
                continue
            at = 96 * side + 4 * (point - 1)
            for k in range(min(men, 3)):
                indices[count], values[count] = at + k, 1.0
                count += 1
            if men > 3:
                indices[count], values[count] = at + 3, 0.5 * (men - 3)
                count += 1
            pips += point * men
            rear = point
        men = np.int64(points[_BAR])
        if men > 0:
            pips += _BAR * men
            rear = _BAR
            indices[count], values[count] = 192 + 2 * side, 0.5 * men
            count += 1
        if points[0] > 0:
            indices[count], values[count] = 193 + 2 * side, np.float64(points[0]) / checkers
            count += 1
        indices[count], values[count] = 196 + side, pips / 167.0
        indices[count + 1], values[count + 1] = 198 + side, rear / 25.0
        count += 2
        if side == 0:
            rear_own = rear
        else:
            rear_other = rear
    if rear_own + rear_other > 25:  # some checkers still have to pass each other
        indices[count], values[count] = 200, 1.0
        count += 1
    write_features(state, features, checkers)
    for i in range(len(SCALES)):
        if features[i] != 0.0:
            indices[count], values[count] = _BOARD + i, features[i] * SCALES[i]
            count += 1
    return count


@njit
def forward(hidden, output, indices, values, count, activity, chances):
    """Writes the hidden activities and the five chances. hidden: (INPUTS + 1, units), the last row the bias;
    output: (OUTPUTS, units + 1), the last column the bias."""
    units = hidden.shape[1]
    for j in range(units):
        activity[j] = hidden[INPUTS, j]
    for i in range(count):
        row = hidden[indices[i]]
        value = np.float32(values[i])
        for j in range(units):
            activity[j] += value * row[j]
    to_chances(activity, units)
    for k in range(OUTPUTS):
        chances[k] = output[k, units] + weighted_sum(output[k], activity, units)
    to_chances(chances, OUTPUTS)


@njit
def equity(chances, counts_gammons):
    """The expected points of the player on roll."""
    wins = 2.0 * chances[0] - 1.0
    if not counts_gammons:
        return wins
    return wins + chances[1] + chances[2] - chances[3] - chances[4]


@dataclass(frozen=True, eq=False)
class TDNetwork(Evaluation):
    """The weights are run-time data: all networks with as many hidden units share their compiled code."""

    hidden_values: np.ndarray
    output_values: np.ndarray
    afterstates: bool = True
    label: str = "network"
    cuts: tuple[dict[str, Any], ...] = ()

    def tables(self) -> dict[str, np.ndarray]:
        return {"hidden": self.hidden_values.astype(np.float32), "output": self.output_values.astype(np.float32)}

    def equity_of(self, game: Game, state: State, scratch: Any, player: Any) -> float:
        """The expected points of that player if it were on roll now."""
        indices, values = np.empty(MOST_ACTIVE, np.int64), np.empty(MOST_ACTIVE, np.float32)
        activity, chances = np.empty(self.hidden.shape[1], np.float32), np.empty(OUTPUTS, np.float32)
        count = write_inputs(state, player, indices, values, scratch, game.checkers)
        forward(self.hidden, self.output, indices, values, count, activity, chances)
        value = equity(chances, game.points)
        return min(max(value, INSIDE * game.min_utility), INSIDE * game.max_utility)

    def evaluate(self, game: Game, state: State, scratch: Any) -> float:
        """With dice still to play it takes the position as if they were to be rolled: a search should end before."""
        return self.equity_of(game, state, scratch, np.int64(state.turn))

    def evaluate_after(self, game: Game, state: State, scratch: Any, player: Any) -> float:
        on_roll = np.int64(max(state.turn, 0))
        value = self.equity_of(game, state, scratch, on_roll)
        return value if on_roll == player else -value


def network_from(game: Game, arrays: dict[str, np.ndarray], table: dict[str, Any]) -> TDNetwork:
    """The network of a file."""
    hidden, output = arrays["hidden"], arrays["output"]
    if hidden.ndim != 2 or hidden.shape[0] != INPUTS + 1 or output.shape != (OUTPUTS, hidden.shape[1] + 1):
        raise InputError(
            f"network of shape {hidden.shape} and {output.shape}: expected {INPUTS + 1} rows and {OUTPUTS} outputs"
        )
    return TDNetwork(hidden, output, label=str(table.get("label", "network")))


__all__ = ["CHANCE", "TERMINAL", "TDNetwork", "equity", "forward", "network_from", "write_inputs"]
