"""What backgammon shows: the observation, the features, the evaluation made of them, and the drawing."""

import re

import numpy as np
import pytest
from backgammon_referee import ends_by_the_rules, state_of
from referees import look, result, step

from envs.backgammon import Backgammon
from envs.backgammon_features import FEATURES, SCALES
from envs.backgammon_views import DICE, NAMED
from envs.game import CHANCE, TERMINAL, legal_actions
from envs.rng import below, generator
from models.evaluation import make_evaluation

GAME = Backgammon()
START = "4HPwATDgc/ABMA"


# --- what the mover sees -------------------------------------------------------------------------------


def views(state) -> tuple[list, dict[str, float]]:
    planes, numbers = np.zeros(GAME.observation_shape, np.float32), np.zeros(GAME.num_features)
    GAME.observe(state, planes)
    assert GAME.features(state, numbers) == len(FEATURES)
    return planes.tolist(), dict(zip(GAME.feature_names(), numbers.tolist(), strict=True))


def test_both_sides_see_the_same():
    state = GAME.parse_position("31 8/5 6/5 62 24/18 13/11 44 24/20(2)")
    turned = GAME.new()[0]
    turned.points[:] = state.points[::-1].copy()
    turned.turn, turned.die, turned.left = 1 - state.turn, state.die, state.left
    GAME.refresh(turned)
    assert views(state) == views(turned)
    assert legal_actions(GAME, state) == legal_actions(GAME, turned)
    with np.errstate(over="ignore"):
        assert GAME.key(state) != GAME.key(turned)


def test_observation():
    planes, named = views(GAME.parse_position(f"{START}:62"))
    ones = {24: 2, 13: 5, 8: 3, 6: 5}
    for side in range(2):
        for point in range(1, 25):
            count = ones.get(point, 0)
            units = [count >= 1, count >= 2, count >= 3, max(count - 3, 0) / 2]
            at = 96 * side + 4 * (point - 1)
            assert planes[at : at + 4] == [float(unit) for unit in units]
    assert planes[192:196] == [0, 0, 0, 0]
    assert planes[DICE : DICE + 6] == [0, 1, 0, 0, 0, 1] and planes[DICE + 6] == 0.5
    assert planes[DICE + 7 : NAMED] == [1.0, 1.0]  # 167 pips each
    assert np.allclose(planes[NAMED:], np.array(list(named.values())) * SCALES)
    planes, _ = views(state_of(GAME, (1,) * 3 + (0,) * 21 + (3,), (0,) * 24 + (1,), (3, 3)))
    assert planes[192:196] == [1.5, np.float32(9 / 15), 0.5, np.float32(14 / 15)]
    assert planes[DICE : DICE + 7] == [0, 0, 1, 0, 0, 0, 1]


def test_features_of_the_start():
    _, numbers = views(GAME.parse_position(START))
    assert numbers["contact"] == 1 and numbers["pip lead"] == 0.08 and numbers["race chance"] == 0
    assert numbers["contact pip chance"] == pytest.approx(2 * 0.562 - 1, abs=1e-3)  # Kleinman, D = 0 and S = 334
    for side in ("own", "their"):
        assert numbers[f"{side} home points"] == 1 and numbers[f"{side} outfield points"] == 2
        assert numbers[f"{side} deep anchor"] == 1 and numbers[f"{side} checkers far back"] == 2
        assert numbers[f"{side} stacked checkers"] == 4 and numbers[f"{side} longest prime"] == 1
    assert numbers["hit chance"] == 0 == numbers["their hit chance"]


def hit_chance_by_brute_force(mine, theirs) -> float:
    """The share of the 36 rolls that have a play with a hit."""
    hits = 0
    for a in range(1, 7):
        for b in range(1, 7):
            state = state_of(GAME, mine, theirs, (a, b))
            hits += any_hit(state)
    return hits / 36


def any_hit(state) -> bool:
    for action in legal_actions(GAME, state):
        after = GAME.new()
        after[0] = state
        GAME.play(after[0], action)
        if after[0].points[1, 25] > state.points[1, 25]:
            return True
        if after[0].left and any_hit(after[0]):
            return True
    return False


@pytest.mark.parametrize(
    ("mine", "theirs", "chance"),
    [
        ({24: 1}, {7: 1, 1: 2}, 17 / 36),  # six away: any 6, 5-1, 4-2, 3-3, 2-2
        ({24: 1}, {2: 1}, 11 / 36),  # one away
        ({24: 1}, {13: 1}, 3 / 36),  # twelve away: 6-6, 4-4, 3-3
        ({24: 1}, {13: 1, 7: 2}, 1 / 36),  # the same with the six shut: only 4-4
        ({25: 1, 8: 2}, {20: 1, 6: 2}, None),
        ({25: 2, 8: 2}, {4: 1, 6: 2, 20: 1}, None),
        ({25: 1, 20: 1}, {3: 1, 9: 1, 5: 2}, None),
        ({20: 2, 14: 1}, {9: 1, 16: 1, 8: 2, 6: 3}, None),
    ],
)
def test_hit_chance(mine, theirs, chance):
    """As brute force finds it, and on the first four as A055100 and every textbook have it."""
    both = [tuple(side.get(point, 0) for point in range(1, 26)) for side in (mine, theirs)]
    state = state_of(GAME, *both, (1, 1))
    state.left = state.die = 0
    _, numbers = views(state)
    exact = hit_chance_by_brute_force(*both)
    assert numbers["hit chance"] == pytest.approx(exact)
    assert chance is None or exact == pytest.approx(chance)


def test_features_by_hand():
    mine = {25: 1, 24: 2, 20: 1, 8: 3, 7: 2, 6: 2, 5: 2, 1: 2}
    theirs = {24: 1, 6: 3, 4: 2, 3: 2, 13: 5, 15: 1, 16: 1}
    both = [tuple(side.get(point, 0) for point in range(1, 26)) for side in (mine, theirs)]
    state = state_of(GAME, *both, (1, 1))
    state.left = state.die = 0
    _, numbers = views(state)
    expected = {
        "own home points": 3,
        "own five point": 1,
        "own four point": 0,
        "own bar point": 1,
        "own outfield points": 1,
        "own deep anchor": 1,
        "own advanced anchor": 0,
        "own blots far back": 1,
        "own checkers on the bar": 1,
        "own dance chance": 9 / 36,
        "own bar x closed points": 3,
        "own checkers far back": 3,
        "own longest prime": 4,
        "own trapped by primes": 1,
        "own wall ahead": 9,
        "own deep checkers": 2,
        "own builders": 5,
        "their blots far back": 1,
        "their blots outside": 2,
        "their four point": 1,
        "their home points": 3,
        "their stacked checkers": 2,
        "their checkers far back": 1,
        "their trapped by primes": 0,
    }
    assert {name: numbers[name] for name in expected} == expected


def test_races():
    def race(mine, theirs):
        both = [tuple(side.get(point, 0) for point in range(1, 26)) for side in (mine, theirs)]
        state = state_of(GAME, *both, (1, 1))
        state.left = state.die = 0
        return views(state)[1]

    even = race({6: 10, 5: 5}, {6: 10, 5: 5})
    assert even["contact"] == 0 == even["pip lead"] and 0 < even["race chance"] < 0.4
    assert race({6: 10}, {6: 10, 5: 5})["race chance"] > 0.9
    assert race({6: 10, 5: 5}, {6: 10})["race chance"] < -0.7
    assert race({6: 1}, {18: 15})["their gammon danger"] == 1.0 and race({6: 15}, {6: 14})["their gammon danger"] == 0


@pytest.mark.parametrize(
    "text",
    ["31 8/5 6/5 62 24/18 13/11", "4HPkQSCwZ/ABAw", "31 8/5 6/5 41 24/23 13/9 55 8/3 6/1*(2) 8/3", "62 24/18 13/11"],
)
def test_before_a_roll_the_features_are_the_mean_over_the_rolls(text):
    before = GAME.parse_position(text)
    _, expected = views(before)
    mean = dict.fromkeys(expected, 0.0)
    out, chances = np.empty(36, np.int64), np.empty(36)
    count = GAME.outcomes(before, out, chances)
    for outcome, chance in zip(out[:count].tolist(), chances.tolist(), strict=False):
        rolled = GAME.new()
        rolled[0] = before
        GAME.play(rolled[0], outcome)
        for name, value in views(rolled[0])[1].items():
            mean[name] += chance * value
    near = {"contact pip chance": 0.02, "race chance": 0.02, "pip lead": 0.01}  # 8 pips a roll for 8.17, and a curve
    for name, value in expected.items():
        assert mean[name] == pytest.approx(value, abs=near.get(name, 1e-9)), name


# --- the evaluation ------------------------------------------------------------------------------------


def greedy_against_random(games: int, seed: int) -> list[float]:
    """Results of choosing the turn whose end the evaluation likes least for the other side, against random moves."""
    weights = np.array(make_evaluation("linear", GAME).weight_values)
    rng, numbers, results = generator(seed), np.zeros(GAME.num_features), []
    states, out, chances = GAME.new(2), np.empty(36, np.int64), np.empty(36)
    for number in range(games):
        GAME.start(states[0])
        while (player := look(GAME, states[0], out, chances)[0]) != TERMINAL:
            if player == CHANCE:
                step(GAME, states[0], GAME.random_outcome(states[0], out, chances, rng))
                continue
            count = look(GAME, states[0], out, chances)[1]
            if player != number % 2:
                step(GAME, states[0], out[int(below(rng, count))])
                continue
            best, chosen = -np.inf, []
            for path in ends_by_the_rules(GAME, states[0]).values():
                states[1] = states[0]
                for action in path:
                    step(GAME, states[1], action)
                if look(GAME, states[1], out, chances)[0] == TERMINAL:
                    value = result(GAME, states[1], player)
                else:
                    GAME.features(states[1], numbers)
                    value = -float(weights @ numbers)
                if value > best:
                    best, chosen = value, path
            for action in chosen:
                step(GAME, states[0], action)
        results.append(result(GAME, states[0], number % 2))
    return results


def test_the_evaluation_beats_random_play():
    results = greedy_against_random(10, seed=1)
    assert sum(value > 0 for value in results) >= 9 and np.mean(results) > 1.5


def test_the_evaluation_knows_what_is_good():
    evaluation = make_evaluation("linear", GAME)
    scratch = np.zeros(GAME.num_features + 8)

    def value(text: str) -> float:
        return evaluation.evaluate(GAME, GAME.parse_position(text), scratch)

    # GNU Backgammon gives the player on roll 0.07 points at the start.
    assert -0.1 < value(START) < 0.2
    # Its best plays of 3-1 and 6-1 against bad ones: the other side is on roll.
    assert value("31 8/5 6/5") < value("31 6/5 6/3") and value("61 13/7 8/7") < value("61 8/7 8/2")


# --- drawing -------------------------------------------------------------------------------------------


def test_drawing():
    state = GAME.parse_position("31 8/5 6/5 62 24/18 13/11 44 24/20(2)")
    text = re.sub(r"\033\[[0-9;]*m", "", GAME.show(state))
    lines = text.split("\n")
    assert len(lines) == 13 and "X (player 0) has to play 4 4" in text
    assert "X 155 pips, 0 off" in text and "O 159 pips, 0 off" in text
    assert lines[1].startswith("|  X  O        O    |     |  O  X             |")
    assert lines[-2].startswith("|  O           X  O |     |  X  X           O |")
    assert "is on roll" in GAME.show(GAME.parse_position(START)) and "throws" in GAME.show(GAME.new()[0])
    tall = state_of(GAME, (12, 0, 3) + (0,) * 22, (15,) + (0,) * 24, (1, 1))
    assert "12" in GAME.show(tall).split("\n")[-6] and "15" in GAME.show(tall).split("\n")[5]


def test_cells():
    state = state_of(GAME, (2,) + (0,) * 23 + (1,), (0, 0, 3) + (0,) * 22, (2, 1))
    cells = GAME.cells(state)
    assert cells.shape == (13, 14)
    assert (cells[:, 12] == [0] * 11 + [1, 1]).all()  # player 0's point 1 in the lower right corner
    assert (cells[:, 10] == [2, 2, 2] + [0] * 10).all()  # player 1's point 3 in the upper right
    assert cells[0, 6] == 1 and (cells[-6:, 13] == 1).all() and (cells[:6, 13] == 2).all()
