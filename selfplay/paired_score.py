"""What a match says: score, Elo difference, likelihood of superiority, and the sequential test, all from pairs.

The unit is the pair: one opening played from both sides, its score the mean of the two games (0, 1/4, 1/2, 3/4, 1:
the pentanomial). Games of one pair depend on each other, since the opening favours one side; pairs do not. So every
variance here is that of the pairs, which is smaller than that of as many single games.

The interval is that of Agresti and Coull (1998) carried over to pairs: one pair won and one pair lost are added,
then mean +- 1.96 standard errors, cut to [0, 1]. It stays honest for clean sweeps and for a handful of pairs, where
the plain variance would be zero.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from envs.errors import InputError

Z95 = 1.959963984540054  # the normal distribution's 97.5 % point
_LOG10_400 = math.log(10) / 400


class Estimate(NamedTuple):
    """A match so far, from A's view. Elo's bounds are infinite where the score's reach 0 or 1."""

    score: float
    low: float
    high: float
    elo: float
    elo_low: float
    elo_high: float
    superiority: float  # how likely A is the stronger one, given the pairs seen


def elo_of(score: float) -> float:
    """The Elo difference at which this score is expected.

    >>> round(elo_of(0.76)), elo_of(0.5), elo_of(1.0)
    (200, 0.0, inf)
    """
    if score <= 0:
        return -math.inf
    if score >= 1:
        return math.inf
    return math.log(score / (1 - score)) / _LOG10_400


def score_of(elo: float) -> float:
    """The score that this Elo difference predicts.

    >>> round(score_of(200), 4)
    0.7597
    """
    return 1 / (1 + math.exp(-elo * _LOG10_400))


def estimate(games: Sequence[float], pairs: Sequence[float]) -> Estimate:
    """From the single games' scores (1, 1/2, 0) and the pairs' (a game whose twin is missing counts as a pair)."""
    if not len(games):
        return Estimate(0.5, 0.0, 1.0, 0.0, -math.inf, math.inf, 0.5)
    score = float(np.mean(games))
    padded = np.concatenate([np.asarray(pairs, float), [0.0, 1.0]])
    centre, error = float(padded.mean()), float(padded.std(ddof=1)) / math.sqrt(len(padded))
    low, high = max(0.0, min(score, centre - Z95 * error)), min(1.0, max(score, centre + Z95 * error))
    # A clean sweep is taken for half a point less, so that its Elo is a number.
    inside = min(max(score, 0.5 / len(games)), 1 - 0.5 / len(games))
    superiority = 0.5 * math.erfc(-(centre - 0.5) / error / math.sqrt(2))
    return Estimate(score, low, high, elo_of(inside), elo_of(low), elo_of(high), superiority)


@dataclass(frozen=True)
class SPRT:
    """Wald's sequential probability ratio test of `elo1` against `elo0`, generalised: the variance of a pair is
    estimated from the pairs so far (Van den Bergh 2020, "A practical introduction to the GSPRT").

    With the chances of error `alpha` (accepts elo1 though elo0 is true) and `beta` (the other way round).
    """

    elo0: float
    elo1: float
    alpha: float = 0.05
    beta: float = 0.05

    def __post_init__(self) -> None:
        if not -math.inf < self.elo0 < self.elo1 < math.inf:
            raise InputError(f"--sprt {self.elo0:g},{self.elo1:g}: elo0 must be less than elo1, for example 0,10")
        if not (0 < self.alpha < 0.5 and 0 < self.beta < 0.5):
            raise InputError(f"the chances of error {self.alpha:g} and {self.beta:g} must lie between 0 and 0.5")

    @classmethod
    def parse(cls, text: str, alpha: float = 0.05, beta: float = 0.05) -> "SPRT":
        """From `elo0,elo1`.

        >>> SPRT.parse("0,10")
        SPRT(elo0=0.0, elo1=10.0, alpha=0.05, beta=0.05)
        """
        try:
            elo0, elo1 = (float(word) for word in text.split(","))
        except ValueError:
            raise InputError(f"--sprt {text!r} must be two numbers elo0,elo1, for example 0,10") from None
        return cls(elo0, elo1, alpha, beta)

    @property
    def bounds(self) -> tuple[float, float]:
        """Below the first elo0 is accepted, above the second elo1."""
        return math.log(self.beta / (1 - self.alpha)), math.log((1 - self.beta) / self.alpha)

    def ratios(self, pairs: Any) -> np.ndarray:
        """The log-likelihood ratio after each pair (last axis).

        Until the pairs tell their variance, that of two independent games without draws stands in, with the weight of
        `PRIOR` pairs: else the first few pairs, if equal, would decide.
        """
        pairs = np.asarray(pairs, float)
        count = np.arange(1, pairs.shape[-1] + 1)
        mean = np.cumsum(pairs, -1) / count
        spread = np.maximum(np.cumsum(pairs**2, -1) - count * mean**2, 0.0)
        variance = (spread + PRIOR * 0.125) / (count - 1 + PRIOR)
        score0, score1 = score_of(self.elo0), score_of(self.elo1)
        return count * (score1 - score0) * (2 * mean - score0 - score1) / (2 * variance)

    def first_decision(self, ratios: np.ndarray) -> tuple[int, int]:
        """The index of the pair that decides and the accepted hypothesis, 0 or 1; (-1, -1) while undecided."""
        low, high = self.bounds
        over = np.flatnonzero((ratios <= low) | (ratios >= high))
        if not len(over):
            return -1, -1
        return int(over[0]), int(ratios[over[0]] >= high)


PRIOR = 4.0
