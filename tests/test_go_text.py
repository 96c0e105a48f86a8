"""Go's notations: GTP coordinates, diagrams, SGF in and out, and what bad input is told."""

import random

import pytest

from envs.errors import InputError
from envs.game import TERMINAL, legal_actions
from envs.go import Go, open_sgf
from envs.go_text import PASS, parse_sgf, write_sgf

GAME = Go()
SMALL = Go(size=5, komi=0.5)


# --- moves ---------------------------------------------------------------------------------------------


def test_coordinates():
    state = GAME.new()[0]
    for name, action in (("A9", 0), ("J9", 8), ("h9", 7), ("A1", 72), (" j1 ", 80), ("PASS", 81), ("E5", 40)):
        assert GAME.parse_action(state, name) == action
    assert [GAME.action_name(state, action) for action in (0, 8, 7, 40, 81)] == ["A9", "J9", "H9", "E5", "pass"]
    assert Go(size=19).action_name(Go(size=19).new()[0], 18) == "T19"


@pytest.mark.parametrize("text", ["I5", "K1", "A10", "A0", "A", "5", "", "A05", "E5 E6", "Ａ1", "A１", "resign"])
def test_bad_coordinates(text):
    with pytest.raises(InputError, match=r"points are A1 to J9 \(no I\), or pass"):
        GAME.parse_action(GAME.new()[0], text)


def test_illegal_moves_say_why():
    for text, move, why in (
        ("C3", "C3", "there is a stone"),
        (".x.../x..../...../...../..... w", "A5", "no liberty"),
        (".xo../x.xo./.xo../...../..... w B4", "C4", "superko"),
    ):
        with pytest.raises(InputError, match=why):
            SMALL.parse_action(SMALL.parse_position(text), move)


# --- positions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["", "C3 D4 pass", ".x.../x..../...../...../..... w C3 pass", "...../" * 4 + "..... w"]
)
def test_positions_round_trip(text):
    state = SMALL.parse_position(text)
    assert SMALL.position_text(state) == text
    assert SMALL.parse_position(SMALL.sgf(state)).tobytes() == state.tobytes()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("C3 C3", "move 2.*stone"),
        ("pass pass C3", "over before move 3"),
        ("Z9", "move 1.*points are"),
        ("x b", "5 rows of 5"),
        (".../.../... b", "5 rows of 5"),
        ("...../...../...../...../.....", "player to move"),
        ("...../...../...../...../..... x", "player to move"),
        (".x.../x..../...../...../..... w A5", "no liberty"),
        ("ox.../x..../...../...../..... w", "A5.*no liberty"),
        ("xo.../o..../...../...../..... b", "no liberty"),
        ("xxxxx/" * 4 + "xxxxx b", "no liberty"),
    ],
)
def test_bad_positions(text, why):
    with pytest.raises(InputError, match=why):
        SMALL.parse_position(text)


# --- SGF -----------------------------------------------------------------------------------------------


def test_sgf_of_a_game():
    state = SMALL.parse_position("C3 D4 pass pass")
    assert SMALL.sgf(state) == "(;FF[4]GM[1]SZ[5]KM[0.5]RE[W+0.5];B[cc];W[db];B[];W[])"
    assert Go(size=3, rows=2, komi=0).sgf(Go(size=3, rows=2).parse_position("A1")) == (
        "(;FF[4]GM[1]SZ[3:2]KM[0];B[ab])"
    )


def test_sgf_with_text_variations_and_escapes():
    text = r"""(;FF[4] GM[1]SZ[5]
        PB[A \] bracket; and (one more)]C[back\\slash]
        ;B[cc]C[a comment \[with\] ; ( marks )] (;W[dd](;B[bb]N[main])(;B[aa]))(;W[ee];B[ea])) (;SZ[9];B[aa])"""
    record = parse_sgf(text)
    assert record.moves == [12, 18, 6] and record.first == 0 and record.komi is None
    assert SMALL.position_text(SMALL.parse_position(text)) == "C3 D2 B4"


def test_sgf_setup():
    text = "(;AB[aa:cb][ee]AW[ed]KM[6.5]SZ[5]AE[];W[cc])"
    with pytest.raises(InputError, match="AE '' is not a point"):
        parse_sgf(text)
    record = parse_sgf(text.replace("AE[]", "") + "trailing")
    assert {cell for cell, owner in record.setup.items() if owner == 0} == {0, 1, 2, 5, 6, 7, 24}
    assert record.setup[19] == 1 and record.first == 1 and record.moves == [12]
    assert parse_sgf("(;SZ[5]AB[aa][bb];AE[aa]AW[cc])").setup == {6: 0, 12: 1}
    assert parse_sgf("(;SZ[5]HA[2]AB[aa][bb])").first == 1
    assert parse_sgf("(;SZ[5]HA[2]AB[aa][bb]PL[B])").first == 0
    assert parse_sgf("(;SZ[5]PL[white])").first == 1


def test_sgf_passes_and_old_forms():
    assert parse_sgf("(;SiZe[5];B[tt];W[];Black[aa])").moves == [PASS, PASS, 0]
    assert parse_sgf("(;)").columns == 19
    assert parse_sgf(" \n(;SZ[7:3];B[gc])").moves == [20]


@pytest.mark.parametrize("komi", ["7", "-0.25", "6.123456789", "0.0000001", "-1000"])
def test_komi_round_trips(komi):
    text = f"(;FF[4]GM[1]SZ[5]KM[{komi}])"
    assert write_sgf(parse_sgf(text)) == text


def test_open_sgf():
    game, state = open_sgf("(;SZ[13]KM[5.5];B[aa];W[mm])")
    assert game == Go(size=13, komi=5.5) and game.position_text(state) == "A13 N1"
    game, _ = open_sgf("(;SZ[4:3])")
    assert (game.size, game.height, game.komi) == (4, 3, 7.5)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(", "not closed"),
        ("()", "no nodes"),
        ("(;SZ[5];B[cc]", "not closed"),
        ("(;SZ[5];B[cc", "cannot read"),
        ("(;SZ)", "SZ has no value"),
        ("(;[5])", "no property"),
        ("(SZ[5])", "begin with"),
        ("(;SZ[x])", "size from 2 to 19"),
        ("(;SZ[1])", "size from 2 to 19"),
        ("(;SZ[20])", "size from 2 to 19"),
        ("(;SZ[5:0])", "size from 2 to 19"),
        ("(;SZ[5]KM[many])", "number like 7.5"),
        ("(;SZ[5]KM[6.5])", "komi is 6.5, not 0.5.*go:komi=6.5"),
        ("(;SZ[9])", "9x9, not 5x5"),
        ("(;SZ[5]GM[2])", "another game"),
        ("(;SZ[5];B[ff])", "points are aa to ee"),
        ("(;SZ[5];B[c])", "points are aa to ee"),
        ("(;SZ[5];B[cc][dd])", "2 values"),
        ("(;SZ[5];B[cc]W[dd])", "several moves"),
        ("(;SZ[5];B[cc];B[dd])", "move 2 is B"),
        ("(;SZ[5];B[cc];W[cc])", "move 2.*stone"),
        ("(;SZ[5];B[cc];AB[dd])", "AB after the first move"),
        ("(;SZ[5];B[cc];SZ[5])", "SZ must come before"),
        ("(;SZ[5]AB[aa]AW[aa])", "both AB and AW"),
        ("(;SZ[5]AB[bb:aa])", "upper left"),
        ("(;SZ[5]PL[green])", "must be B or W"),
        ("(;SZ[5]AB[ab][ba]AW[aa])", "no liberty"),
        ("(;SZ[5];B[];W[];B[aa])", "over before move 3"),
        ("(;SZ[5]C[one\ntwo]KM[one\ntwo])", "number like"),
    ],
)
def test_bad_sgf(text, why):
    with pytest.raises(InputError, match=why) as caught:
        SMALL.parse_position(text)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


@pytest.mark.parametrize("seed", range(5))
def test_random_games_round_trip(seed):
    """Random games as moves and as SGF lead to the very same state, history included."""
    rng, state = random.Random(seed), SMALL.new()[0]
    if seed % 2:
        state = SMALL.parse_position("..x../.o.../...../...o./..x.. w")
    while SMALL.player(state) != TERMINAL:
        SMALL.play(state, rng.choice(legal_actions(SMALL, state)))
        if rng.random() < 0.1:
            assert SMALL.parse_position(SMALL.position_text(state)).tobytes() == state.tobytes()
    text = SMALL.sgf(state)
    assert SMALL.parse_position(text).tobytes() == state.tobytes() and f"RE[{SMALL.result(state)}]" in text
    assert write_sgf(parse_sgf(text), SMALL.result(state)) == text


# --- fuzzing -------------------------------------------------------------------------------------------

SEEDS = [
    "(;FF[4]GM[1]SZ[5]KM[0.5];B[cc];W[db];B[];W[])",
    "(;SZ[5]AB[aa:cb]AW[ed]PL[W]HA[2];W[ee](;B[de]C[a \\] b])(;B[dd]))",
    "(;SZ[3:2]AE[aa]RE[B+1];B[tt])",
    ".x.../x..../..o../...../..... w C3 pass",
    "C3 D4 pass A1 A2",
    "pass",
    "E5",
]


def fuzz(count: int, seed: int) -> int:
    """Random and mutated texts; nothing but InputError may come out; returns how many were accepted."""
    rng, accepted, start = random.Random(seed), 0, SMALL.new()[0]
    alphabet = "()[];:\\abcdeABCEFGKMPRSTWZ0123456789.+-xow/ pas\n\t\0²١éＡ'\"%"
    for number in range(count):
        if rng.random() < 0.2:
            text = rng.choice(["", "(;", "(;SZ[5]"]) + "".join(rng.choices(alphabet, k=rng.randrange(30)))
        else:
            letters = list(rng.choice(SEEDS))
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(len(letters) + 1)
                letters[at : at + rng.randrange(3)] = rng.choices(alphabet, k=rng.randrange(3))
            text = "".join(letters)
        try:
            if number % 3:
                state = SMALL.parse_position(text)
                assert SMALL.parse_position(SMALL.position_text(state)).tobytes() == state.tobytes()
            elif number % 2:
                assert SMALL.parse_action(start, text) in range(SMALL.num_actions)
            else:
                record = parse_sgf(text)
                assert parse_sgf(write_sgf(record)) == record
        except InputError as error:
            assert "\n" not in str(error) and len(str(error)) < 400
        else:
            accepted += 1
    return accepted


def test_fuzzed_input():
    assert fuzz(3000, seed=1) > 100


@pytest.mark.slow
def test_a_hundred_thousand_fuzzed_inputs():
    assert fuzz(100_000, seed=2) > 3000
