"""Backgammon against GNU Backgammon's legal plays, OpenSpiel, brute force and its own notation."""

import csv
import gzip
import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pyspiel
import pytest
from backgammon_referee import ends_by_brute_force, ends_by_the_rules, sides, state_of
from referees import look, result, step

from envs.backgammon import Backgammon
from envs.backgammon_text import position_id
from envs.check import check_game
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, legal_actions
from envs.registry import make
from envs.rng import below, generator
from selfplay.perft import perft

DATA = Path(__file__).parent / "data" / "backgammon"
GAME = Backgammon()
HYPER = Backgammon(hyper=True, points=False, max_turns=20)

# From GNU Backgammon 1.07: positions of random games, a roll, and the positions after every legal play.
with gzip.open(DATA / "legal_plays_gnubg_500.jsonl.gz", "rt") as file:
    RECORDS = [json.loads(line) for line in file]


def play(text: str, *words: str, game: Backgammon = GAME):
    """The state after that position and these plays or rolls."""
    states = game.new()
    states[0] = game.parse_position(text)
    for word in words:
        rolled = states[0].left > 0
        for action in game.parse_play(states[0], word) if rolled else [game.parse_action(states[0], word)]:
            step(game, states[0], action)
    return states[0]


def names(state, game: Backgammon = GAME) -> list[str]:
    return [game.action_name(state, action) for action in legal_actions(game, state)]


# --- legal plays ---------------------------------------------------------------------------------------


def test_legal_plays_as_gnu_backgammon_gives_them():
    for record in RECORDS:
        dice, before = tuple(record["dice"]), (tuple(record["me"]), tuple(record["opp"]))
        state = play(record["gnubg_id"], f"{dice[0]}{dice[1]}")
        assert sides(state, 0) == before and position_id(state) == record["gnubg_id"]
        ends = ends_by_the_rules(GAME, state)
        if record["n_plays"] == 0:
            assert names(state) == ["pass"] and set(ends) == {before}
            continue
        assert len(ends) == record["n_plays"], record["gnubg_id"]
        if record["after"] is None:  # left out of the record for its length
            assert set(ends) == ends_by_brute_force(*before, dice), record["gnubg_id"]
        else:
            assert set(ends) == {(tuple(mine), tuple(theirs)) for mine, theirs in record["after"]}, record["gnubg_id"]


def test_gnu_backgammon_s_best_plays_are_legal_as_written():
    for record in RECORDS[::3]:
        if record["best0ply"]:
            state = play(record["gnubg_id"], "".join(map(str, record["dice"])))
            end = play(GAME.position_text(state), record["best0ply"])
            assert end.turn == 1 and sides(end, 0) in ends_by_the_rules(GAME, state)


def test_opening_rolls():
    with (DATA / "opening_rolls.csv").open() as rows:
        for row in csv.DictReader(rows):
            state = play("4HPwATDgc/ABMA", row["die1"] + row["die2"])
            assert len(ends_by_the_rules(GAME, state)) == int(row["distinct_resulting_positions"])
            for column in ("best_2ply_cubeless", "second", "third"):
                assert play(GAME.position_text(state), row[column]).turn == 1


def random_positions(count: int, seed: int):
    """Positions of random games just after a roll."""
    rng, states = generator(seed), GAME.new()
    out, probabilities = np.empty(36, np.int64), np.empty(36)
    while count:
        player, actions = look(GAME, states[0], out, probabilities)
        if player == TERMINAL:
            states[0] = GAME.new()[0]
            continue
        if player >= 0 and (states[0].left == 4 or states[0].second):
            count -= 1
            yield states[0].copy()
        step(GAME, states[0], out[int(below(rng, actions))])


def compare_with_brute_force(count: int, seed: int) -> int:
    """Random positions with their rolls; returns how often not all dice could be played."""
    short = 0
    for state in random_positions(count, seed):
        before = sides(state, state.turn)
        ends = ends_by_the_rules(GAME, state)
        dice = (int(state.die), int(state.second or state.die))
        assert set(ends) == ends_by_brute_force(*before, dice), GAME.position_text(state)
        pips = sum(point * n for point, n in enumerate(before[0], 1))
        moved = max(pips - sum(point * n for point, n in enumerate(end[0], 1)) for end in ends)
        short += moved < sum(dice) * (2 if state.left == 4 else 1)
    return short


def test_random_positions_beside_brute_force():
    assert compare_with_brute_force(600, seed=1) > 20


@pytest.mark.slow
def test_many_random_positions_beside_brute_force():
    assert compare_with_brute_force(30_000, seed=2) > 1000


# --- OpenSpiel -----------------------------------------------------------------------------------------
#
# What differs, and is translated or asserted below: an action there moves two checkers, and doubles are two such
# actions by one player; rolls are 36 outcomes of 1/36 by the order of the dice; the opening's 30 outcomes have other
# numbers; the board is numbered from one side; its games are drawn after max_player_turns + 1 rolls, 501 by default,
# in the middle of the turn if the last roll is a double; its hyper-backgammon has no winner, whoever is done first.


def open_spiel_sides(state, player: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Checkers on the own points 1 to 24 and the bar; X, its player 0, moves upwards from 0 to 23."""
    found = []
    for side in (player, 1 - player):
        points = [state.board(side, 24 - p if side == 0 else p - 1) for p in range(1, 25)]
        found.append((*points, state.board(side, 100)))
    return found[0], found[1]


def open_spiel_ends(state) -> dict:
    """Position after a whole turn -> the actions that lead there."""
    player, ends, seen = state.current_player(), {}, set()
    for first in state.legal_actions():
        after = state.child(first)
        position = open_spiel_sides(after, player)
        if position in seen:
            continue
        seen.add(position)
        if after.is_terminal() or after.is_chance_node() or after.current_player() != player:
            ends[position] = [first]
            continue
        for second in after.legal_actions():
            ends[open_spiel_sides(after.child(second), player)] = [first, second]
    return ends


def to_open_spiel_roll(theirs, first: int, second: int, opening: bool) -> int:
    """Its outcome for these dice; at the opening the first die is player 0's, and the higher one starts."""
    if opening:
        low, high = sorted((first, second))
        wanted = f"{'X' if first > second else 'O'} starts, (roll: {low}{high}"
        other = f"{'X' if first > second else 'O'} starts, (roll: {high}{low}"
        texts = (wanted, other)
    else:
        texts = (f"(roll: {first}{second}", f"(roll: {second}{first}")
    return next(o for o, _ in theirs.chance_outcomes() if any(t in theirs.action_to_string(-1, o) for t in texts))


def play_beside_open_spiel(games: int, seed: int, parameters: str = "", game: Backgammon = GAME) -> Counter:
    spiel = pyspiel.load_game(
        f"backgammon(scoring_type={'full_scoring' if game.points else 'winloss_scoring'}{parameters})"
    )
    rng, ends = random.Random(seed), Counter()
    for _ in range(games):
        states, theirs = game.new(), spiel.new_initial_state()
        state = states[0]
        while game.player(state) != TERMINAL:
            assert theirs.is_chance_node()
            opening = state.turn < 0
            outcomes = legal_actions(game, state)
            assert len(theirs.chance_outcomes()) == (30 if opening else 36)
            assert len(outcomes) == (30 if opening else 21)
            weights = [1 if opening or o // 6 == o % 6 else 2 for o in outcomes]
            outcome = rng.choices(outcomes, weights)[0]
            theirs.apply_action(to_open_spiel_roll(theirs, outcome // 6 + 1, outcome % 6 + 1, opening))
            step(game, state, outcome)
            player = game.player(state)
            assert player == theirs.current_player()
            assert sides(state, player) == open_spiel_sides(theirs, player)
            if state.turns == game.max_turns and state.left == 4:
                assert all(theirs.child(action).is_terminal() for action in theirs.legal_actions())
                ends["cut off"] += 1
                break
            plays = open_spiel_ends(theirs)
            paths = ends_by_the_rules(game, state)
            assert set(plays) == set(paths), str(theirs)
            end = rng.choice(sorted(plays))
            for action in plays[end]:
                theirs.apply_action(action)
            for action in paths[end]:
                step(game, state, action)
        else:
            assert theirs.is_terminal()
            returns = [result(game, state, p) for p in range(2)]
            assert theirs.returns() == ([0.0, 0.0] if game.hyper else returns), str(theirs)
            ends[abs(returns[0])] += 1
    return ends


def test_random_games_beside_open_spiel():
    ends = play_beside_open_spiel(6, seed=1)
    assert sum(ends.values()) == 6


@pytest.mark.slow
def test_many_random_games_beside_open_spiel():
    ends = play_beside_open_spiel(1200, seed=2)
    assert ends[1.0] > 100 and ends[2.0] > 100 and ends[3.0] > 20
    hyper = Backgammon(hyper=True)
    assert sum(play_beside_open_spiel(300, 3, ",hyper_backgammon=true", hyper).values()) == 300
    assert play_beside_open_spiel(200, 4, "", Backgammon(points=False))[1.0] == 200


@pytest.mark.slow
def test_long_games_beside_open_spiel():
    ends = play_beside_open_spiel(300, 5, ",max_player_turns=70", Backgammon(max_turns=71))
    assert ends[0.0] > 50 and ends["cut off"] > 5 and ends[1.0] + ends[2.0] + ends[3.0] > 20


# --- rules ---------------------------------------------------------------------------------------------


def position(mine: dict[int, int], theirs: dict[int, int], dice: tuple[int, int], player: int = 0, game=GAME):
    """A state from checkers by point (25 is the bar), each side counted from its own; the rest are off."""
    both = [tuple(side.get(point, 0) for point in range(1, 26)) for side in (mine, theirs)]
    return state_of(game, both[0], both[1], dice, player)


def test_the_larger_die_has_to_be_played_if_only_one_can_be():
    state = position({20: 1, 2: 1}, {14: 2, 6: 2}, (6, 5))  # 20/14 and 20/15 are open, 20/9 and the 2 point are not
    assert names(position({20: 1}, {16: 2, 6: 2}, (6, 5))) == ["20/14"]
    assert names(position({20: 1}, {16: 2, 11: 2}, (6, 5))) == ["20/15"]
    assert sorted(names(state)) == ["20/14", "20/15"]


def test_both_dice_have_to_be_played_if_they_can_be():
    # 13/12 first leaves no 6 (12/6 and 8/2 are held); 13/7 first leaves 7/6 shut but 8/7 open: so only 13/7 and 8/7.
    state = position({13: 1, 8: 1}, {19: 2, 23: 2}, (6, 1))
    assert sorted(names(state)) == ["13/7", "8/7"]
    assert set(ends_by_the_rules(GAME, state)) == ends_by_brute_force(*sides(state, 0), (6, 1))


def test_the_bar_comes_first():
    state = position({25: 2, 13: 2}, {1: 2, 3: 2}, (4, 3))
    assert names(state) == ["bar/21"]  # 24 and 22 are held
    state = position({25: 2, 13: 2}, {3: 2, 4: 2}, (3, 4))
    assert names(state) == ["pass"]
    GAME.play(state, legal_actions(GAME, state)[0])
    assert GAME.player(state) == CHANCE and state.turn == 1


def test_bearing_off():
    home = {6: 1, 4: 1, 2: 2}
    assert sorted(names(position(home, {24: 1}, (4, 2)))) == ["2/off", "4/2", "4/off", "6/2", "6/4"]
    assert names(position({4: 1, 2: 2}, {24: 1}, (6, 5))) == ["4/off"]  # either number, written once
    assert names(position({6: 1, 3: 2}, {19: 2, 24: 1}, (5, 5))) == ["6/1*"]  # not 3/off while 6 can move
    assert "6/off" not in names(position({7: 1, **home}, {24: 1}, (6, 4)))


def test_doubles_are_four_moves():
    state = position({24: 2, 13: 5}, {6: 5}, (2, 2))
    assert state.left == 4
    for left in (3, 2, 1):
        GAME.play(state, GAME.parse_action(state, "13/11"))
        assert state.left == left and GAME.player(state) == 0
    GAME.play(state, GAME.parse_action(state, "13/11"))
    assert GAME.player(state) == CHANCE and state.turn == 1


@pytest.mark.parametrize(
    ("loser", "value"),
    [
        ({6: 14}, 1.0),  # one borne off
        ({6: 15}, 2.0),
        ({18: 1, 6: 14}, 2.0),
        ({19: 1, 6: 14}, 3.0),  # in the winner's home
        ({25: 1, 6: 14}, 3.0),
        ({25: 1, 6: 13}, 1.0),  # hit after it had borne off
    ],
)
@pytest.mark.parametrize("player", [0, 1])
def test_gammons_and_backgammons(loser, value, player):
    for game, expected in ((GAME, value), (Backgammon(points=False), 1.0)):
        state = position({1: 1}, loser, (2, 1), player, game)
        game.play(state, game.parse_action(state, "1/off"))
        assert game.player(state) == TERMINAL
        assert [game.utility(state, p) for p in (player, 1 - player)] == [expected, -expected]


def test_long_games_are_drawn():
    state = play("", "31", "8/5 6/5", game=Backgammon(max_turns=1))
    assert Backgammon(max_turns=1).player(state) == TERMINAL
    assert [Backgammon(max_turns=1).utility(state, player) for player in range(2)] == [0.0, 0.0]


def test_opening_roll():
    assert len(names(GAME.new()[0])) == 30
    for roll, mover in (("31", 0), ("13", 1)):
        state = play("", roll)
        assert GAME.player(state) == mover and (state.die, state.second, state.left) == (3, 1, 2)
    with pytest.raises(InputError, match="no doubles"):
        play("", "33")


def test_outcomes_have_the_probabilities_of_two_dice():
    state = play("4HPwATDgc/ABMA")
    out, chances = np.empty(36, np.int64), np.empty(36)
    count = GAME.outcomes(state, out, chances)
    assert count == 21 and chances[:count].sum() == pytest.approx(1)
    for outcome, chance in zip(out[:count], chances, strict=False):
        assert chance == (1 if outcome // 6 == outcome % 6 else 2) / 36
    rng, seen = generator(3), Counter()
    for _ in range(3600):
        seen[int(GAME.random_outcome(state, out, chances, rng))] += 1
    assert sorted(seen) == out[:count].tolist()
    assert all(50 < n < 150 if o // 6 == o % 6 else 130 < n < 270 for o, n in seen.items())


def test_mean_number_of_plays_at_the_start():
    """17.694 distinct plays over the 36 rolls, as GNU Backgammon counts."""
    state = play("4HPwATDgc/ABMA")
    total = 0
    for outcome in legal_actions(GAME, state):
        rolled = play("4HPwATDgc/ABMA", GAME.action_name(state, outcome))
        total += len(ends_by_the_rules(GAME, rolled)) * (1 if outcome // 6 == outcome % 6 else 2)
    assert total / 36 == pytest.approx(17.694, abs=5e-4)


def count_by_names(state, depth: int) -> int:
    """Perft the slow way."""
    if depth == 0 or GAME.player(state) == TERMINAL:
        return int(depth == 0)
    total = 0
    for action in legal_actions(GAME, state):
        after = GAME.new()
        after[0] = state
        GAME.play(after[0], action)
        total += count_by_names(after[0], depth - 1)
    return total


def test_perft_counts_every_outcome_once():
    assert perft(GAME, 1).nodes == 30
    for depth in (1, 2, 3):
        assert perft(GAME, depth).nodes == count_by_names(GAME.new()[0], depth)
    assert perft(GAME, 1, play("4HPwATDgc/ABMA")).nodes == 21


@pytest.mark.parametrize("game", [GAME, HYPER])
def test_conformance(game):
    report = check_game(game, states=2000, texts=80, interpreted=30)
    assert report.ok, [str(broken) for broken in report.broken.values()]


@pytest.mark.parametrize("parameters", [{"max_turns": 0}, {"max_turns": 65536}])
def test_bad_parameters(parameters):
    with pytest.raises(InputError, match="max_turns"):
        make("backgammon", **parameters)


def test_is_loud():
    for text, hits in (("31 8/5 6/5 65", []), ("62 24/18 13/11 61", ["8/7*", "13/7*"])):
        state = GAME.parse_position(text)
        loud = [GAME.action_name(state, a) for a in legal_actions(GAME, state) if GAME.is_loud(state, a)]
        assert loud == hits == [name for name in names(state) if name.endswith("*")]


# --- golden playthrough --------------------------------------------------------------------------------


def playthrough(seed: int) -> str:
    """A random game: before each move the position, the key, the legal moves and the move; then the result."""
    rng, states, lines = generator(seed), GAME.new(), []
    with np.errstate(over="ignore"):
        while GAME.player(states[0]) != TERMINAL:
            actions = legal_actions(GAME, states[0])
            moves = [f"{GAME.action_name(states[0], action)}={action}" for action in actions]
            pick = int(below(rng, len(actions)))
            chance = GAME.player(states[0]) == CHANCE
            text, key = GAME.position_text(states[0]), int(GAME.key(states[0]))
            lines.append(f"{text} | {key:016x} | {len(moves) if chance else ' '.join(moves)} | {moves[pick]}")
            GAME.play(states[0], actions[pick])
    values = [GAME.utility(states[0], player) for player in range(2)]
    return "\n".join([*lines, f"{GAME.position_text(states[0])} | {values}", ""])


def test_golden_playthrough():
    """The rules, actions, keys and texts of a whole game, as recorded: a change must be on purpose."""
    assert playthrough(seed=11) == (DATA / "playthrough.txt").read_text()
