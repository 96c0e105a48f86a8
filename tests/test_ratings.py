"""Ratings and match statistics on simulated players whose strengths are known."""

import math

import numpy as np
import pytest

from envs.errors import InputError
from selfplay.paired_score import SPRT, elo_of, estimate, score_of
from selfplay.ratings import ELO, Outcome, expected_probabilities, fit

TRUTH = (0.0, 60.0, -120.0, 200.0)
ADVANTAGE, TIE = 45.0, 0.6


def tolerance(tests: int, chance: float = 0.05) -> float:
    """Four standard deviations of a share that is binomial."""
    return 4 * math.sqrt(chance * (1 - chance) / tests)


def simulated_tournament(rng: np.random.Generator, games: int) -> list[Outcome]:
    points = {0: (1.0, 0.0), 1: (0.5, 0.5), 2: (0.0, 1.0)}
    found = []
    for a in range(len(TRUTH)):
        for b in range(len(TRUTH)):
            if a != b:
                chances = expected_probabilities(TRUTH[a] - TRUTH[b], ADVANTAGE, TIE)
                for kind, count in enumerate(rng.multinomial(games, chances)):
                    found += [Outcome((a, b), points[kind])] * int(count)
    return found


def test_intervals_of_ratings_contain_the_truth():
    rng, tournaments = np.random.default_rng(1), 400
    hits, first_move = np.zeros((len(TRUTH), len(TRUTH))), 0
    for _ in range(tournaments):
        ratings = fit(simulated_tournament(rng, 25), len(TRUTH))
        for a in range(len(TRUTH)):
            for b in range(len(TRUTH)):
                rating = ratings.difference(a, b)
                hits[a, b] += rating.low <= TRUTH[a] - TRUTH[b] <= rating.high
        advantage = ratings.advantages[0]
        first_move += advantage.low <= ADVANTAGE <= advantage.high
    shares = hits[~np.eye(len(TRUTH), dtype=bool)] / tournaments
    assert np.abs(shares - 0.95).max() < tolerance(tournaments)
    assert abs(shares.mean() - 0.95) < 0.02
    assert abs(first_move / tournaments - 0.95) < tolerance(tournaments)


def test_intervals_with_ranks_of_three_players():
    """Plackett and Luce: winners drawn one after the other by strength times the seat's advantage."""
    rng, tournaments = np.random.default_rng(2), 300
    truth, seats = np.array([0.0, 150.0, -100.0]), np.array([80.0, 30.0, 0.0])
    hits = np.zeros(5)
    for _ in range(tournaments):
        outcomes = []
        for k in range(90):
            order = tuple((k + shift) % 3 for shift in range(3))
            # The order of exponential times with these rates is Plackett and Luce's.
            times = rng.exponential(1 / np.exp((truth[list(order)] + seats) / ELO))
            outcomes.append(Outcome(order, tuple(-times.argsort().argsort().astype(float))))
        ratings = fit(outcomes, 3, anchor=0)
        intervals = [*ratings.agents[1:], *ratings.advantages, ratings.difference(1, 2)]
        known = [150.0, -100.0, 80.0, 30.0, 250.0]
        hits += [r.low <= value <= r.high for r, value in zip(intervals, known, strict=True)]
    assert np.abs(hits / tournaments - 0.95).max() < tolerance(tournaments)


def test_the_maximum_is_one():
    """Against a closed form and by the likelihood's own definition."""
    outcomes = [Outcome((0, 1), (1.0, 0.0))] * 30 + [Outcome((1, 0), (0.0, 1.0))] * 30
    outcomes += [Outcome((0, 1), (0.0, 1.0))] * 20 + [Outcome((1, 0), (1.0, 0.0))] * 20
    ratings = fit(outcomes, 2)
    assert ratings.agents[0] == (0.0, 0.0, 0.0)
    assert ratings.agents[1].elo == pytest.approx(-elo_of(0.6), abs=0.2)  # the odds are 60 : 40; the prior is weak
    assert ratings.advantages[0].elo == pytest.approx(0.0, abs=1e-6)
    error = ELO / math.sqrt(100 * 0.6 * 0.4)  # of a logit from 100 games
    assert ratings.agents[1].high - ratings.agents[1].elo == pytest.approx(1.96 * error, rel=0.01)


def test_anchor_shifts_all_alike():
    outcomes = simulated_tournament(np.random.default_rng(3), 20)
    by_first, by_third = fit(outcomes, 4, anchor=0), fit(outcomes, 4, anchor=2)
    shifts = [a.elo - b.elo for a, b in zip(by_first.agents, by_third.agents, strict=True)]
    assert shifts == pytest.approx([shifts[0]] * 4, abs=1e-6) and by_third.agents[2] == (0.0, 0.0, 0.0)
    with pytest.raises(InputError, match="anchor 4"):
        fit(outcomes, 4, anchor=4)


def test_a_clean_sweep_has_a_rating():
    ratings = fit([Outcome((0, 1), (1.0, 0.0)), Outcome((1, 0), (0.0, 1.0))] * 10, 2)
    assert -3000 < ratings.agents[1].elo < -300 and ratings.agents[1].low < ratings.agents[1].elo
    assert all(math.isfinite(value) for value in ratings.agents[1])
    nothing = fit([], 2)
    assert nothing.agents[1].elo == 0 and nothing.agents[1].high > 1000


def pairs_of(rng: np.random.Generator, shape: tuple[int, ...], elo: float, draws: float, opening: float) -> np.ndarray:
    """Scores of pairs: each game drawn with that chance at most; an opening favours one side by up to `opening` Elo."""
    bias = rng.uniform(-opening, opening, shape)
    total = np.zeros(shape)
    for side in (1, -1):
        score = 1 / (1 + 10 ** (-(elo + side * bias) / 400))
        # Draws take equally from wins and losses, so the expected score stays what Elo says.
        draw = draws * 2 * np.minimum(score, 1 - score)
        uniform = rng.random(shape)
        total += np.where(uniform < draw, 0.5, uniform < draw + score - draw / 2)
    return total / 2


@pytest.mark.parametrize("draws", [0.0, 0.6])
def test_interval_of_a_score_contains_the_truth(draws):
    rng, matches = np.random.default_rng(4), 1500
    for elo, pairs in ((0.0, 30), (100.0, 50), (300.0, 100)):
        hits = 0
        for scores in pairs_of(rng, (matches, pairs), elo, draws, 0.0):
            found = estimate(scores, scores)
            hits += found.low <= score_of(elo) <= found.high
        assert 0.95 - tolerance(matches) < hits / matches < 0.985, (elo, pairs)


def test_estimates():
    even = estimate([1, 0] * 10, [0.5] * 10)
    assert even.score == 0.5 and even.elo == 0 and even.superiority == pytest.approx(0.5)
    assert 0.3 < even.low < 0.5 < even.high < 0.7  # ten equal pairs are no proof of equality
    sweep = estimate([1.0] * 20, [1.0] * 10)
    assert sweep.score == sweep.high == 1.0 and 0.6 < sweep.low < 0.95 and sweep.superiority > 0.99
    assert math.isfinite(sweep.elo) and sweep.elo_high == math.inf
    assert estimate([], []) == (0.5, 0.0, 1.0, 0.0, -math.inf, math.inf, 0.5)
    assert elo_of(score_of(123.0)) == pytest.approx(123.0)


@pytest.mark.parametrize(("draws", "opening"), [(0.0, 0.0), (0.5, 150.0)])
def test_sprt_errs_as_rarely_as_asked(draws, opening):
    """Wald's bounds are met from below: the walk overshoots them a little."""
    rng, runs, length = np.random.default_rng(5), 1000, 3000
    test = SPRT(0.0, 40.0, alpha=0.05, beta=0.1)
    for elo, wrong, asked in ((0.0, 1, 0.05), (40.0, 0, 0.1)):
        ratios = test.ratios(pairs_of(rng, (runs, length), elo, draws, opening))
        decisions = [test.first_decision(row) for row in ratios]
        errors = sum(accepted == wrong for _, accepted in decisions) / runs
        assert sum(accepted == -1 for _, accepted in decisions) == 0
        assert asked / 2 < errors < asked + tolerance(runs, asked) / 2, (elo, errors)


def test_sprt_input():
    assert SPRT.parse("-5,5").bounds == pytest.approx((-math.log(19), math.log(19)))
    assert SPRT(0, 10).first_decision(np.array([0.1, -0.2])) == (-1, -1)
    assert SPRT(0, 10).first_decision(np.array([0.1, 3.0, -9.0])) == (1, 1)
    for text in ("10", "a,b", "1,2,3", "10,0", "nan,1", "0,inf"):
        with pytest.raises(InputError, match="sprt"):
            SPRT.parse(text)
    with pytest.raises(InputError, match="chances of error"):
        SPRT(0, 10, alpha=0.0)
