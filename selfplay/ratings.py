"""Ratings by maximum likelihood from the results of games with any number of players.

The model is Davidson and Luce's (Firth, Kosmidis and Turner 2019): the finishers are chosen from the top down, and
among those who remain the set S comes next, tied where it holds several, with odds

    w(S) = delta_|S| * (product of the strengths in S) ^ (1 / |S|),      strength = exp(rating + seat's advantage).

For two players this is Bradley and Terry's model with Davidson's draws (1970) and a first-move advantage: the odds of
win : draw : loss are exp(d / 2) : delta : exp(-d / 2), where d is the difference of the ratings plus the advantage of
the first seat. For more players without ties it is Plackett and Luce's. The log-likelihood is concave: Newton's
method finds its maximum.

Intervals: rating difference to the anchor +- 1.96 standard errors from the Fisher information at the maximum. Games
of one opening count as independent, which makes the intervals rather too wide than too narrow. So that a clean sweep
has a rating at all, every parameter has a normal prior of `PRIOR_ELO` Elo; with a few dozen games it moves nothing.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from envs.errors import InputError
from selfplay.paired_score import Z95

ELO = 400 / math.log(10)  # Elo per unit of the natural logarithm
PRIOR_ELO = 2000.0
_STEPS = 100


class Outcome(NamedTuple):
    """One game: who sat where (numbers of agents), and each seat's points; more is better, equal is tied."""

    seats: tuple[int, ...]
    points: tuple[float, ...]


class Rating(NamedTuple):
    """Elo above the anchor with its 95 % interval."""

    elo: float
    low: float
    high: float


@dataclass(frozen=True)
class Ratings:
    """The table, in the order of the agents; the anchor has 0 and no interval.

    `advantages`: what each seat is worth against the last one, in Elo (two players: the first move).
    `ties`: the odds of a tie of so many, against a win, between equals without a seat's advantage.
    `covariance`: of the agents' ratings, in Elo squared.
    """

    agents: list[Rating]
    advantages: list[Rating]
    ties: dict[int, float]
    covariance: np.ndarray

    def difference(self, a: int, b: int) -> Rating:
        """How much stronger a is than b."""
        return _rating(self.agents[a].elo - self.agents[b].elo, self.covariance, a, b)


def fit(outcomes: Iterable[Outcome], agents: int, anchor: int = 0) -> Ratings:
    """The most likely ratings of agents 0 .. agents - 1."""
    if not 0 <= anchor < agents:
        raise InputError(f"anchor {anchor} must be one of the {agents} agents")
    choices = _choices(outcomes)
    players = max((max(seat for _, seat in remaining) + 1 for remaining in choices), default=2)
    sizes = sorted({len(chosen) for counts in choices.values() for chosen in counts} - {1})
    features, counts = _matrices(choices, agents, players, sizes)
    best, information = _newton(features, counts)
    covariance = np.linalg.inv(information) * ELO**2
    elos = best * ELO
    table = [_rating(elos[i] - elos[anchor], covariance, i, anchor) for i in range(agents)]
    first = range(agents, agents + players - 1)
    advantages = [_rating(elos[i], covariance, i, None) for i in first]
    ties = {size: float(np.exp(best[agents + players - 1 + k])) for k, size in enumerate(sizes)}
    return Ratings(table, advantages, ties, covariance[:agents, :agents])


def expected_probabilities(difference: float, advantage: float, tie: float) -> tuple[float, float, float]:
    """Win, draw and loss of the first mover who is `difference` Elo stronger, by the model of two players.

    >>> expected_probabilities(0.0, 0.0, 0.0)
    (0.5, 0.0, 0.5)
    """
    half = (difference + advantage) / ELO / 2
    win, loss = math.exp(half), math.exp(-half)
    total = win + loss + tie
    return win / total, tie / total, loss / total


def _rating(elo: float, covariance: np.ndarray, a: int, b: int | None) -> Rating:
    variance = covariance[a, a]
    if b is not None:
        variance = variance + covariance[b, b] - 2 * covariance[a, b]
    error = Z95 * math.sqrt(max(float(variance), 0.0))
    return Rating(float(elo), float(elo) - error, float(elo) + error)


Remaining = tuple[tuple[int, int], ...]  # (agent, seat) of those who have no place yet
Choices = dict[Remaining, dict[tuple[int, ...], int]]  # how often which of them (indices) took the next place


def _choices(outcomes: Iterable[Outcome]) -> Choices:
    found: Choices = {}
    for (seats, points), times in _counted(outcomes).items():
        remaining = [(seats[seat], seat, points[seat]) for seat in range(len(seats))]
        while len(remaining) > 1:
            best = max(point for *_, point in remaining)
            chosen = tuple(i for i, (*_, point) in enumerate(remaining) if point == best)
            key = tuple((agent, seat) for agent, seat, _ in remaining)
            counts = found.setdefault(key, {})
            counts[chosen] = counts.get(chosen, 0) + times
            remaining = [item for item in remaining if item[2] != best]
    return found


def _counted(outcomes: Iterable[Outcome]) -> dict[Outcome, int]:
    counted: dict[Outcome, int] = {}
    for outcome in outcomes:
        counted[outcome] = counted.get(outcome, 0) + 1
    return counted


def _matrices(choices: Choices, agents: int, players: int, sizes: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Features [choice, alternative, parameter] and counts [choice, alternative]; absent alternatives have NaN.

    The parameters: ratings of the agents, advantages of all seats but the last, log odds of the ties seen. A tie of a
    size that never occurred is no alternative: its most likely odds are zero.
    """
    alternatives: list[list[tuple[int, ...]]] = [
        [s for size in (1, *sizes) for s in itertools.combinations(range(len(remaining)), size)]
        for remaining in choices
    ]
    width = max((len(sets) for sets in alternatives), default=1)
    features = np.full((len(choices), width, agents + players - 1 + len(sizes)), np.nan)
    counts = np.zeros((len(choices), width))
    for row, (remaining, taken) in enumerate(choices.items()):
        for column, chosen in enumerate(alternatives[row]):
            features[row, column] = _features([remaining[i] for i in chosen], agents, players, sizes)
            counts[row, column] = taken.get(chosen, 0)
    return features, counts


def _features(members: Sequence[tuple[int, int]], agents: int, players: int, sizes: list[int]) -> np.ndarray:
    row = np.zeros(agents + players - 1 + len(sizes))
    for agent, seat in members:
        row[agent] += 1 / len(members)
        if seat < players - 1:
            row[agents + seat] += 1 / len(members)
    if len(members) > 1:
        row[agents + players - 1 + sizes.index(len(members))] = 1
    return row


def _newton(features: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The maximum of the log-likelihood with its prior, and the information (minus the second derivative) there."""
    absent = np.isnan(features[:, :, 0])
    features = np.where(absent[:, :, None], 0.0, features)
    prior = np.full(features.shape[2], (ELO / PRIOR_ELO) ** 2)
    totals = counts.sum(1)
    observed = np.einsum("ca,cap->p", counts, features)

    def look(point: np.ndarray) -> tuple[float, np.ndarray]:
        odds = np.where(absent, -np.inf, features @ point)
        top = odds.max(1, keepdims=True)
        weights = np.exp(odds - top)
        norm = weights.sum(1, keepdims=True)
        value = observed @ point - totals @ (top + np.log(norm))[:, 0] - 0.5 * prior @ point**2
        return float(value), weights / norm

    point = np.zeros(features.shape[2])
    value, chances = look(point)
    for _ in range(_STEPS):
        expected = np.einsum("ca,cap->cp", chances, features)
        gradient = observed - totals @ expected - prior * point
        weighted = features * (chances * totals[:, None])[:, :, None]
        information = np.tensordot(weighted, features, ((0, 1), (0, 1))) - (expected * totals[:, None]).T @ expected
        information += np.diag(prior)
        step = np.linalg.solve(information, gradient)
        length = 1.0
        while True:  # a full step may overshoot far from the maximum
            new_value, new_chances = look(point + length * step)
            if new_value >= value - 1e-12 or length < 1e-6:
                break
            length /= 2
        point, value, chances = point + length * step, new_value, new_chances
        if np.abs(step).max() < 1e-9:
            break
    return point, information
