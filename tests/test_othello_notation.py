"""Othello's notation: OBF, move lists, scores of moves; what is refused, and why."""

import contextlib
import random
from pathlib import Path

import pytest

from envs.errors import InputError
from envs.game import TERMINAL
from envs.othello import Othello
from envs.othello_notation import move_scores

DATA = Path(__file__).parent / "data" / "othello"
FFORUM = (DATA / "fforum-1-19.obf").read_text().splitlines()
START = "---------------------------OX------XO--------------------------- X"
BLACK_PASSES = "OXXXXXX-" + "O" * 56 + " X"


def test_positions_round_trip():
    game = Othello()
    assert game.position_text(game.new()[0]) == START
    for line in FFORUM:
        text = line.partition(";")[0]
        state = game.parse_position(line)
        assert game.position_text(state) == text
        assert game.parse_position(text.replace("X", "*").replace("O", "o").replace("-", ".")) == state
        assert game.position_text(game.parse_position(f"{line} % best: {line[66:72]}")) == text
    assert game.parse_position("") == game.new()[0]


def test_positions_by_moves():
    game = Othello()
    texts = ["f5d6c3", "f5 d6 c3", "F5D6C3", "f5, d6, c3", " f5d6 c3\n"]
    assert len({game.position_text(game.parse_position(text)) for text in texts}) == 1
    small = Othello(4)
    line = "b1 a1 c4 c1 a2 d3 d2 d1 pass d4 pass b4 a4 a3"
    state = small.parse_position(line)
    assert small.player(state) == TERMINAL
    assert small.parse_position(line.replace("pass", "--")) == state
    assert small.parse_position(line.replace("pass", "")) == state  # transcripts leave passes out


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("X" * 64, "side to move"),
        ("X" * 63 + " X", "64 cells"),
        ("X" * 65 + " X", "64 cells"),
        (START[:-1] + "-", "side to move"),
        (START + " X", "side to move"),
        (START.replace("X", "Q"), "neither OBF"),
        ("-" * 64 + " X", "centre"),
        (START.replace("OX-", "O--"), "centre"),
        ("X" + START[1:], "a1"),
        ("------X-" + START[8:], "g1"),
        (START[:-1] + "O", "only the start"),
        (START.replace("O", "X"), "only the start"),
        (START.replace("OX-", "XX-").replace("-XO", "-OO"), "only the start"),
        ("-" * 19 + "X" + START[20:], "the last one played"),  # d3 without turning d4
        ("-" * 19 + "X-------X" + START[28:35] + "XO" + START[37:-1] + "X", "O cannot have moved last"),
        ("f5f5", "move 2"),
        ("f5d6i9", "move 3"),
        ("a1", "legal moves: d3, c4, f5, e6"),
        ("pass", "legal moves"),
        ("f5d", "neither OBF"),
        ("f5d6c5f4e7f6g5e6e3d3", "over before move 10"),
        ("éü\0", "neither OBF"),
    ],
)
def test_bad_positions(text, why):
    with pytest.raises(InputError, match=why) as caught:
        Othello().parse_position(text)
    assert "\n" not in str(caught.value)


def test_scores_of_an_obf_line():
    assert move_scores(FFORUM[0])["g8"] == 18
    assert move_scores(START) == {}
    assert move_scores(START + "; d3:+0; % G9:+2") == {"d3": 0}
    assert move_scores("x; PS:-2") == {"pass": -2}
    with pytest.raises(InputError, match="G9"):
        move_scores("x; G9:+2")
    with pytest.raises(InputError, match="from -64 to"):
        move_scores("x; G8:+65")
    with pytest.raises(InputError, match="two scores"):
        move_scores("x; G8:+6; g8:-6")


def mutated(rng, text):
    """The text with a few characters changed, dropped, doubled or moved."""
    letters = list(text)
    for _ in range(rng.randint(1, 4)):
        i = rng.randrange(len(letters) + 1)
        kind = rng.randrange(4)
        if kind == 0 and i < len(letters):
            letters[i] = rng.choice("XO-xo.* abcdefgh123456789;:+/pPsé\0\n①")
        elif kind == 1:
            letters[i : i + rng.randint(1, 3)] = []
        elif kind == 2:
            letters.insert(i, rng.choice("XO-xo.* abcdefgh123456789;:+/pPsé\0\n①"))
        else:
            letters = letters[i:] + letters[:i]
    return "".join(letters)


def feed_parser(inputs, seed):
    """Feeds mutated and random texts; returns how many were accepted. Only InputError may come out."""
    rng, accepted = random.Random(seed), 0
    games = [Othello(), Othello(8, discs=True), Othello(6), Othello(4)]
    seeds = [START, BLACK_PASSES, *FFORUM, "f5d6c3", "f5 d6 c5 f4 e7", "d3 pass c3", "c2d1 ps", "-----XO--OX----- O"]
    for number in range(inputs):
        game = games[number % 4]
        if number % 5 == 0:
            length = rng.choice([3, 16, 18, 36, 38, 64, 66, 200])
            text = "".join(rng.choices(rng.choice(["XO- ", "XO-;:ab19", "abcdefgh12345678", "\x00é😀 XO"]), k=length))
        else:
            text = mutated(rng, rng.choice(seeds))
        try:
            state = game.parse_position(text)
        except InputError as error:
            assert len(str(error)) < 700 and "\n" not in str(error)
        else:
            accepted += 1
            assert game.parse_position(game.position_text(state)) == state
        with contextlib.suppress(InputError):
            move_scores(text)
    return accepted


def test_parsers_withstand_anything():
    assert feed_parser(3000, seed=0) > 50


@pytest.mark.slow
def test_parsers_withstand_100_000_texts():
    assert feed_parser(100_000, seed=1) > 1000
