"""Pig against OpenSpiel, the published optimal play, and exact sums."""

import numpy as np
import pyspiel
import pytest
from referees import play_beside_open_spiel

from envs.check import check_game
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, legal_actions
from envs.pig import HOLD, ROLL, Pig
from envs.playouts import play_random_games
from selfplay.perft import perft

SLOW = pytest.mark.slow  # each set of parameters compiles anew
PARAMETERS = [
    {"players": 3, "goal": 20, "horizon": 60},  # with draws by the horizon
    pytest.param({}, marks=SLOW),
    pytest.param({"players": 6, "goal": 30, "sides": 4}, marks=SLOW),
    pytest.param({"players": 2, "goal": 50, "horizon": 60}, marks=SLOW),
    pytest.param({"players": 4, "goal": 10, "sides": 2, "horizon": 25}, marks=SLOW),
    pytest.param({"players": 2, "goal": 1, "sides": 3, "horizon": 1}, marks=SLOW),
]


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
def test_random_games_beside_open_spiel(parameters):
    game = Pig(**parameters)
    spiel = pyspiel.load_game(
        "pig",
        {"players": game.players, "winscore": game.goal, "diceoutcomes": game.sides, "horizon": game.horizon},
    )
    games = 1000 if game.players == 3 else 2000
    assert play_beside_open_spiel(game, spiel, games) >= games
    # OpenSpiel's max_game_length leaves chance out; ours counts it.
    assert game.max_length == 2 * spiel.max_game_length() - 1
    assert (game.min_utility, game.max_utility) == (pytest.approx(-1 / (game.players - 1)), 1.0)


def test_names_differ_from_open_spiel_in_hold_only():
    game, state = Pig(), Pig().new()[0]
    theirs = pyspiel.load_game("pig").new_initial_state()
    assert [game.action_name(state, a) for a in (ROLL, HOLD)] == ["roll", "hold"]
    assert [theirs.action_to_string(0, a) for a in (ROLL, HOLD)] == ["roll", "stop"]
    game.play(state, ROLL)
    theirs.apply_action(ROLL)
    assert [game.action_name(state, a) for a in range(6)] == list("123456")
    assert [theirs.action_to_string(-1, a) for a in range(6)] == [f"Roll {n}" for n in range(1, 7)]


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
def test_contract(parameters):
    report = check_game(Pig(**parameters), states=1500, interpreted=60)
    assert report.ok, "\n".join(map(str, report.broken.values()))


def test_a_turn():
    game = Pig()
    state = game.parse_position("roll 5 roll 6")
    assert (state.total, state.turn, game.player(state)) == (11, 0, 0)
    kept = game.parse_position("roll 5 roll 6 hold")
    assert (list(kept.scores), kept.total, game.player(kept)) == ([11, 0], 0, 1)
    lost = game.parse_position("roll 5 roll 6 roll 1")
    assert (list(lost.scores), lost.total, game.player(lost)) == ([0, 0], 0, 1)


def test_reaching_the_goal_wins_only_by_holding():
    game = Pig(players=3)
    state = game.parse_position("scores 10 95 20 player 2 total 5")
    assert game.player(state) == 1  # a total that reaches the goal is not a win yet
    assert legal_actions(game, state) == [HOLD]
    game.play(state, HOLD)
    assert game.player(state) == TERMINAL
    assert [game.utility(state, p) for p in range(3)] == [-0.5, 1.0, -0.5]
    assert legal_actions(game, game.parse_position("scores 10 95 20 player 2 total 4")) == [ROLL, HOLD]


def test_the_horizon_is_a_draw():
    game = Pig(horizon=3)
    state = game.parse_position("hold hold")
    game.play(state, ROLL)  # the die stays in the air
    assert game.player(state) == TERMINAL
    assert [game.utility(state, p) for p in range(2)] == [0.0, 0.0]
    won = Pig(goal=5, horizon=2).parse_position("roll 5")
    Pig(goal=5, horizon=2).play(won, HOLD)  # a win at the very last decision counts
    assert Pig(goal=5, horizon=2).utility(won, 0) == 1.0


def test_perft():
    # By hand: a decision (2), then 6 outcomes after a roll or 2 decisions after a hold, and so on.
    def count(depth: int, rolling: bool = False) -> int:
        if depth == 0:
            return 1
        if rolling:
            return 6 * count(depth - 1)
        return count(depth - 1, rolling=True) + count(depth - 1)

    assert [perft(Pig(players=3, goal=20, horizon=60), depth).nodes for depth in range(9)] == [
        count(depth) for depth in range(9)
    ]


def test_keys_tell_positions_apart():
    game = Pig(players=2, goal=6, sides=3, horizon=6)
    keys, waiting = {}, [game.new()[0]]
    while waiting:
        state = waiting.pop()
        with np.errstate(over="ignore"):
            key = int(game.key(state))
        if key in keys:
            assert keys[key] == state.tobytes()
            continue
        keys[key] = state.tobytes()
        if game.player(state) != TERMINAL:
            for action in legal_actions(game, state):
                child = game.new(2)
                child[0] = state
                game.play(child[0], action)
                waiting.append(child[0])
    assert len(set(keys.values())) == len(keys) > 200


def solved_three_points() -> float:
    """The first player's chance of winning when three points win and the die has three sides, by hand.

    A turn from 0 needs a 3 or two 2s (a 2, then a 2 or a 3); holding at 2 leaves one point to go.
    """
    # Values for the mover at (own, other, turn total); solved by plain iteration of the definition.
    value = {(i, j, k): 0.5 for i in range(3) for j in range(3) for k in range(3 - i)}

    def after_hold(i: int, j: int, k: int) -> float:
        return 1.0 if i + k >= 3 else 1.0 - value[j, i + k, 0]

    for _ in range(200):
        for i, j, k in value:
            keep = {n: (1.0 if i + k + n >= 3 else value[i, j, k + n]) for n in (2, 3)}
            roll = ((1.0 - value[j, i, 0]) + keep[2] + keep[3]) / 3
            value[i, j, k] = max(roll, after_hold(i, j, k))
    return value[0, 0, 0]


def test_small_game_solved_through_the_rules():
    game = Pig(goal=3, sides=3, horizon=40)
    values: dict[bytes, float] = {}
    out, probabilities = np.empty(3, np.int64), np.empty(3)

    def value(state) -> float:  # the first player's expected utility
        name = state.tobytes()
        if name not in values:
            player = game.player(state)
            if player == TERMINAL:
                values[name] = game.utility(state, 0)
                return values[name]
            count = game.outcomes(state, out, probabilities) if player == CHANCE else game.actions(state, out)
            children = []
            for action in out[:count].tolist():
                child = game.new()
                child[0] = state
                game.play(child[0], action)
                children.append(value(child[0]))
            if player == CHANCE:
                values[name] = sum(children) / 3
            else:
                values[name] = max(children) if player == 0 else min(children)
        return values[name]

    assert value(game.new()[0]) == pytest.approx(2 * solved_three_points() - 1, abs=1e-6)


def undecided(hold_at, decisions: int) -> float:
    """The chance that a player alone, who holds with probability hold_at[total], lacks 100 points by then."""
    share = np.zeros((106, 100))  # by turn total and score
    share[0, 0] = 1.0
    wins = np.add.outer(np.arange(106), np.arange(100)) >= 100
    for _ in range(decisions):
        share[wins] = 0.0  # the next decision is a winning hold
        hold = share * hold_at[:, None]
        roll = (share - hold) / 6
        after = np.zeros_like(share)
        after[0] = roll.sum(axis=0)
        for total in range(100):
            after[0, total:] += hold[total, : 100 - total]
        for face in range(2, 7):
            after[face:] += roll[:-face]
        share = after
    return float(share.sum())


def test_draws_by_the_horizon_are_as_rare_as_the_docstring_says():
    # After 1000 decisions without a winner one of the two players has made at least 500 without reaching 100.
    assert 0 < 2 * undecided(np.full(106, 0.5), 500) < 1e-45
    assert 0 < 2 * undecided((np.arange(106) >= 20).astype(float), 500) < 1e-27


def test_random_games_end():
    assert play_random_games(Pig(players=3, goal=20, horizon=60), 200, seed=1) > 200 * 10


@pytest.mark.slow
def test_optimal_play_wins_as_published():
    """Value iteration of the paper's equations through our rules: the first player wins with 0.5306."""
    game, state = Pig(), Pig().new()[0]

    def score_after(own: int, total: int, rolling: int, action: int) -> int:
        """The mover's score after a hold or a rolled 1, which both end the turn or the game."""
        game.start(state)
        state.scores[0], state.total, state.rolling = own, total, rolling
        game.play(state, action)
        assert (state.turn == 1) == (state.scores[0] < 100) and state.total == 0
        return int(state.scores[0])

    totals = [(own, total) for own in range(99, -1, -1) for total in range(99 - own, -1, -1)]
    held = {(own, total): score_after(own, total, 0, HOLD) for own, total in totals}
    bust = {(own, total): score_after(own, total, 1, 0) for own, total in totals}
    value = np.full((100, 100, 106), 0.5)  # the mover's chance by own score, other's score, turn total
    for own in range(100):
        value[own, :, 100 - own :] = 1.0
    faces, other = np.arange(2, 7), np.arange(100)
    change = 1.0
    for _ in range(400):
        change = 0.0
        for own, total in totals:
            hold = 1.0 - value[other, held[own, total], 0]
            roll = (1.0 - value[other, bust[own, total], 0] + value[own][:, total + faces].sum(axis=1)) / 6
            best = np.maximum(hold, roll)
            change = max(change, float(np.abs(best - value[own, :, total]).max()))
            value[own, :, total] = best
        if change < 1e-9:
            break
    assert change < 1e-9
    assert value[0, 0, 0] == pytest.approx(0.5306, abs=5e-5)


@pytest.mark.parametrize(
    "text",
    [
        "scores 1 2",
        "scores 5",
        "scores 5 6 player 3",
        "scores 5 6 total 1",
        "scores 5 6 total 200",
        "scores 5 100 player 1",
        "scores 5 6 decisions 1001",
        "scores 5 -6",
        "scores 5 6 total",
        "scores 5 6 scores 5 6",
        "roll 7",
        "hold 3",
    ],
)
def test_bad_positions(text):
    with pytest.raises(InputError):
        Pig().parse_position(text)


@pytest.mark.parametrize("parameters", [{"players": 1}, {"players": 7}, {"goal": 0}, {"sides": 1}, {"horizon": 0}])
def test_bad_parameters(parameters):
    with pytest.raises(InputError):
        Pig(**parameters)
