"""Checkers' notation: PDN moves and FEN; what is refused, and why."""

import random

import pytest
from referees import step

from envs.checkers import Checkers
from envs.checkers_notation import turn_actions
from envs.errors import InputError
from envs.game import TERMINAL, legal_actions

GAME = Checkers()


def test_move_lists():
    by_steps = GAME.parse_position("11-15 22-18 15x22 25x18")
    assert GAME.position_text(by_steps) == GAME.position_text(GAME.parse_position("1. 11-15 22-18 2.15x22 25X18"))
    with pytest.raises(InputError, match="legal moves"):
        GAME.parse_position("11-15 22-18 12-16")


def test_whole_multi_jumps_in_move_lists():
    line = "9-13 23-18 6-9 18-14 9x18"
    whole = GAME.parse_position(f"{line} 22x15x6").tobytes()
    assert GAME.parse_position(f"{line} 22x6").tobytes() == whole
    assert GAME.parse_position(f"{line} 22x15 15x6").tobytes() == whole
    assert GAME.position_text(GAME.parse_position(f"{line} 22x15")).endswith(":J15")


def test_a_short_jump_with_two_routes_is_refused_by_name():
    state = GAME.parse_position("W:WK22:B17,9,10,18")
    with pytest.raises(InputError, match="22x15x6x13x22, 22x13x6x15x22|22x13x6x15x22, 22x15x6x13x22"):
        turn_actions("move 1", GAME, state, "22x22")
    assert len(turn_actions("move 1", GAME, state, "22x13x6x15x22")) == 4


@pytest.mark.parametrize("seed", range(5))
def test_recorded_games_parse_back(seed):
    """Random games written as PDN turns lead to the very same state, history included."""
    rng, states, words = random.Random(seed), GAME.new(), []
    while GAME.player(states[0]) != TERMINAL:
        action = rng.choice(legal_actions(GAME, states[0]))
        name = GAME.action_name(states[0], action)
        if states[0].jumper:
            words[-1] += "x" + name.split("x")[1]
        else:
            words.append(name)
        step(GAME, states[0], action)
    assert GAME.parse_position(" ".join(words)).tobytes() == states[0].tobytes()


@pytest.mark.parametrize(
    "text",
    [
        "B:W18,24,K10:B12,16,K22",
        "W:W15,32:BK4,11,27:J15",
        "B:WK32,21:BK1,K2:H40",
        "B:WK22:B",
        "W:W21,22,23,24,25,26,27,28,29,30,31,32:B1,2,3,4,5,6,7,8,9,10,11,12",
    ],
)
def test_fen_round_trip(text):
    state = GAME.parse_position(text)
    assert GAME.parse_position(GAME.position_text(state)).tobytes() == state.tobytes()
    fields = [sorted(field[1:].split(",")) if field[0] in "BW" else field for field in text.split(":")]
    again = GAME.position_text(state).split(":")
    assert fields == [sorted(field[1:].split(",")) if field[0] in "BW" else field for field in again]


def test_fen_forms():
    expected = GAME.position_text(GAME.parse_position("B:W18,24,K10:B12,16,K22"))
    for text in ("b:w18,24,k10:b12,16,k22", " B:B12,16,K22:W18,24,K10. ", "B : W 18, 24,K10 : B12,16,K22:H0"):
        assert GAME.position_text(GAME.parse_position(text)) == expected
    assert GAME.parse_position("B:W21-32:B1-12").tobytes() == GAME.new()[0].tobytes()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("X:W18:B12", "side to move"),
        (":W18:B12", "side to move"),
        ("B:W18", "missing"),
        ("B:W18:W12", "given twice"),
        ("B:W18:B12:Q1", "must begin with"),
        ("B:W18:B12:", "must begin with"),
        ("B:W18:B33", "from 1 to 32"),
        ("B:W0:B12", "from 1 to 32"),
        ("B:W12-5:B13", "from 1 to 32"),
        ("B:W18:B1,,2", "not a square"),
        ("B:W18:Bx", "not a square"),
        ("B:W18:B١", "not a square"),
        ("B:W18,18:B12", "named twice"),
        ("B:W18:B18", "both sides"),
        ("B:W20-32:B1", "13 pieces"),
        ("B:WK13-25:B1", "13 pieces"),
        ("B:W3:B12", "king row"),
        ("B:W18:B30", "king row"),
        ("B:W:B", "no pieces"),
        ("B:W:B12", "no pieces"),
        ("B:W18:B12:H81", "'H81' must be"),
        ("B:W18:B12:H-1", "'H-1' must be"),
        ("B:W18:B12:J12", "cannot jump"),
        ("B:W18:B14:J18", "piece of Black"),
        ("B:W18:B14:J14:H3", "H must be 0"),
        ("B:W18:B14:J99", "square from 1 to 32"),
        ("B:W18:B14:J1\n4", r"J1\\n4' must name"),
        ("B:W18,21-26,28-32:B14:J14", "cannot have 12"),
        ("11-15 11-15", "move 2"),
        ("11-15 22-18 15x22x31", "after the turn has ended|not legal"),
        ("xxx", "not legal"),
        ("1-0", "not legal"),
    ],
)
def test_bad_positions(text, why):
    with pytest.raises(InputError, match=why):
        GAME.parse_position(text)


def fuzz(count: int, seed: int) -> int:
    """Random and mutated texts; returns how many were accepted."""
    rng, accepted = random.Random(seed), 0
    seeds = [
        "B:W18,24,K10:B12,16,K22:H12",
        "W:W15,32:BK4,11,27:J15",
        "W:W21-32:B1-12.",
        "1. 11-15 23-19 2. 8-11 22-17",
        "11-15 22-18 15x22 25x18",
        "23x14x5",
    ]
    alphabet = "0123456789-xX:,.BWKHJ bwk\n\t\0²١é×–'\"\\%"
    for _ in range(count):
        if rng.random() < 0.2:
            text = "".join(rng.choices(alphabet, k=rng.randrange(30)))
        else:
            letters = list(rng.choice(seeds))
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(len(letters) + 1)
                letters[at : at + rng.randrange(3)] = rng.choices(alphabet, k=rng.randrange(3))
            text = "".join(letters)
        try:
            state = GAME.parse_position(text)
        except InputError as error:
            assert "\n" not in str(error) and str(error).startswith("position ")
        else:
            accepted += 1
            assert GAME.parse_position(GAME.position_text(state)).tobytes() == state.tobytes() or state.length
    return accepted


def test_fuzzed_positions():
    assert fuzz(3000, seed=1) > 100


@pytest.mark.slow
def test_a_hundred_thousand_fuzzed_positions():
    assert fuzz(100_000, seed=2) > 2000
