"""Backgammon's notation: GNU Backgammon's position and match ids, plays, move lists."""

import base64
import random

import numpy as np
import pytest
from backgammon_referee import state_of

from envs.backgammon import Backgammon
from envs.backgammon_text import match_id, parse_play, position_id
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, legal_actions
from envs.rng import below, generator

GAME = Backgammon()
START = "4HPwATDgc/ABMA"


def after(text: str, play: str):
    """The state after that position and a play."""
    state = GAME.parse_position(text)
    for action in GAME.parse_play(state, play):
        GAME.play(state, action)
    return state


# --- ids -----------------------------------------------------------------------------------------------


def test_ids_as_gnu_backgammon_writes_them():
    """Shown by GNU Backgammon 1.07 for a money game without the Jacoby rule, its bit 67."""
    assert position_id(GAME.new()[0]) == START
    for text, player, dice in (("cAkKAAAAAAAE", 1, (4, 2)), ("cIkKAAAAAAAA", 1, (5, 2)), ("MIEKAAAAAAAA", 0, (5, 2))):
        state = GAME.parse_position(f"{START}:{text}")
        assert GAME.player(state) == player and (state.die, state.second) == dice
        assert match_id(GAME, state)[:11] == text[:11]
    assert match_id(GAME, GAME.parse_position(f"{START}:cAkKAAAAAAAE")) == "cAkKAAAAAAAE"
    moved = after(f"{START}:cIkKAAAAAAAA", "13/8 6/4")
    assert GAME.position_text(moved) == "yPPgATDgc/ABMA:MAEAAAAAAAAE"


@pytest.mark.parametrize(
    "text",
    [
        "4HPwATDgc/ABMA:MAAAAAAAAAAE",  # before the opening roll
        "4HPwATDgc/ABMA:MAEAAAAAAAAE",
        "4HPwATDgc/ABMA:cAkAAAAAAAAE",
        "4HPwATDgc/ABMA:cIkKAAAAAAAE",
        "4HPwATDgc/ABMA:cAkAAAAAAAAE:+33",
        "yPPgATDgc/ABMA:MAEAAAAAAAAE:+6",
    ],
)
def test_round_trip(text):
    state = GAME.parse_position(text)
    assert GAME.position_text(state) == text
    assert GAME.parse_position(GAME.position_text(state)).tobytes() == state.tobytes()


def test_forms_of_a_position():
    on_roll = GAME.parse_position(START)
    assert GAME.player(on_roll) == CHANCE and on_roll.turn == 0
    assert GAME.parse_position("").tobytes() == GAME.new()[0].tobytes()
    rolled = GAME.parse_position(f"{START}:31")
    for text in (f"{START}:13", f"GNUbgID {START}:MIEKAAAAAAAE", f" {START} 3-1 ", f"GNUBGID: {START}:31"):
        state = GAME.parse_position(text)
        assert GAME.player(state) == 0 and state.left == 2
        assert (state.points == rolled.points).all()
    assert GAME.parse_position(f"{START}:33").left == 4
    assert GAME.parse_position(f"{START}:+33").left == 2


def test_random_states_round_trip():
    rng, states, seen = generator(4), GAME.new(), 0
    with np.errstate(over="ignore"):
        while seen < 400:
            state = states[0]
            if GAME.player(state) == TERMINAL:
                GAME.start(state)
            actions = legal_actions(GAME, state)
            GAME.play(state, actions[int(below(rng, len(actions)))])
            text = GAME.position_text(state)
            back = GAME.parse_position(text)
            assert GAME.position_text(back) == text
            back.turns = state.turns
            assert back.tobytes() == state.tobytes(), text
            seen += 1


def bits(*counts: int) -> str:
    """A position id of these checkers on the points of the player not on roll, then of the one on roll."""
    number, place = 0, 0
    for count in (*counts, *[0] * (50 - len(counts))):
        number |= ((1 << count) - 1) << place
        place += count + 1
    return base64.b64encode(number.to_bytes(-(-place // 8), "little")[:10].ljust(10, b"\0")).decode().rstrip("=")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (bits(16, *[0] * 25, 1), "the other player has 16 checkers, more than 15"),
        (bits(1, *[0] * 24, 16), "the player on roll has 16 checkers, more than 15"),
        (bits(), "both players have borne off"),
        (bits(1, *[0] * 24, *[0] * 23, 1), "both players have checkers on player 0's point 24"),
        (bits(*[2] * 6, *[0] * 18, 1, *[2] * 6, *[0] * 18, 1), "closed board"),
        ("////////////////////", "neither a roll nor a position id"),
        ("/////////////w", "checkers, more than"),
        ("4HPwATDgc/ABMB", "neither a roll nor a position id"),  # bits beyond the eightieth
        ("4HPwATDgc/ABM", "neither a roll nor a position id"),
        ("4HPwATDgc/AB-A", "neither a roll nor a position id"),
        (f"{START}:37", "neither a match id nor a roll"),
        (f"{START}:+34", "neither a match id nor a roll"),
        (f"{START}:+3333", "neither a match id nor a roll"),
        (f"{START}:31:31", "is too much"),
        (f"{START}:cIkKAAAAAAAE:31", "comes after a match id"),
        (f"{START}:MAAAAAAAAAAE:31", "comes after a match id"),
        ("yPPgATDgc/ABMA:MAAAAAAAAAAE", "has not started"),
        (f"{START}:QYkqASAAAAAA", "turned cube"),
        (f"{START}:cIkqASAAAAAA", "score"),
        (f"{START}:MAMAAAAAAAAE", "resigned or dropped"),
        (f"{START}:MAkAAAAAAAAE", "another to decide"),
        (f"{START}:MIEAAAAAAAAE", "the dice 1 and 0"),
        (f"{START}:MAEAAAAAAAAI", "bits after its last field"),
        (f"{START}:MAIAAAAAAAAE", "over"),
        (f"{START}:", "neither a match id nor a roll"),
        ("31 8/5 6/4", "no legal play"),
        ("31 8/5 6/5 6/5", "no legal play"),
        ("31 8/5 62", "no legal play"),
        ("31 pass", "not legal"),
        ("31 8/5(5)", "is not a move"),
        ("31 5/8", "must go downwards"),
        ("33", "no doubles"),
        ("xxx", "neither a roll nor a position id"),
    ],
)
def test_bad_positions(text, why):
    with pytest.raises(InputError, match=why) as caught:
        GAME.parse_position(text)
    assert str(caught.value).startswith("position ")


def test_hyper_backgammon_has_three_checkers():
    hyper = Backgammon(hyper=True)
    text = hyper.position_text(hyper.new()[0])
    assert hyper.parse_position(text).tobytes() == hyper.new()[0].tobytes()
    with pytest.raises(InputError, match="15 checkers, more than 3"):
        hyper.parse_position(START)


def test_dice_left_must_be_playable():
    shut = state_of(GAME, (0,) * 24 + (1,), (2,) * 6 + (0,) * 19, (1, 1))
    with pytest.raises(InputError, match="no 3 can be played"):
        GAME.parse_position(f"{position_id(shut)}:+3")


# --- plays ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dice", "play", "actions"),
    [
        ("31", "8/5 6/5", 2),
        ("31", "6/5 8/5", 2),
        ("65", "24/13", 2),
        ("65", "24/18/13", 2),
        ("11", "8/7(2) 6/5(2)", 4),
        ("66", "24/18(2) 13/7(2)", 4),
        ("55", "13/3(2)", 4),
        ("31", "24/20", 2),
    ],
)
def test_plays(dice, play, actions):
    state = GAME.parse_position(f"{START}:{dice}")
    assert len(GAME.parse_play(state, play)) == actions
    assert after(f"{START}:{dice}", play).turn == 1


def test_hits_between_have_to_be_named_where_they_matter():
    mine = [0] * 25
    theirs = [0] * 25
    mine[12], theirs[24 - 10], theirs[5] = 1, 1, 1  # 13; a blot on the mover's point 10
    state = state_of(GAME, tuple(mine), tuple(theirs), (3, 2))
    plain, hit = (GAME.parse_play(state, play) for play in ("13/8", "13/10*/8"))
    assert plain != hit and len(plain) == len(hit) == 2
    assert GAME.parse_play(state, "13/10/8") == hit  # stars may be left out
    with pytest.raises(InputError, match="no legal play"):
        GAME.parse_play(state, "13/11*/8")
    theirs[24 - 11] = 1
    state = state_of(GAME, tuple(mine), tuple(theirs), (3, 2))
    with pytest.raises(InputError, match="ways that differ"):
        GAME.parse_play(state, "13/8")


def test_single_moves():
    state = GAME.parse_position(f"{START}:31")
    for text in ("8/5", " 8/5 ", "24/23"):
        assert GAME.action_name(state, GAME.parse_action(state, text)) == text.strip()
    with pytest.raises(InputError, match="legal moves of one checker: 6/5, 8/7"):
        GAME.parse_action(state, "8/4")
    with pytest.raises(InputError, match="rolled first"):
        parse_play(GAME, GAME.new()[0], "8/5")
    with pytest.raises(InputError, match="empty"):
        parse_play(GAME, state, " ")


def test_move_lists():
    state = GAME.parse_position("31 8/5 6/5 62 24/18 13/11 44 24/20(2)")
    assert state.turn == 0 and state.left == 2
    by_actions = GAME.parse_position("31 8/5 6/5 62 24/18 13/11 44 24/20 24/20")
    assert by_actions.tobytes() == state.tobytes()


@pytest.mark.parametrize("seed", range(3))
def test_recorded_games_parse_back(seed):
    """The names of a random game's actions, one after the other, lead to the very same state."""
    rng, states, words = generator(seed), GAME.new(), []
    for _ in range(150):
        actions = legal_actions(GAME, states[0])
        action = actions[int(below(rng, len(actions)))]
        words.append(GAME.action_name(states[0], action))
        GAME.play(states[0], action)
        if GAME.player(states[0]) == TERMINAL:
            break
    assert GAME.parse_position(" ".join(words)).tobytes() == states[0].tobytes()


# --- fuzz ----------------------------------------------------------------------------------------------


def fuzz(count: int, seed: int) -> int:
    """Random and mutated texts for positions and plays; returns how many positions were accepted."""
    rng, accepted = random.Random(seed), 0
    seeds = [
        START,
        f"{START}:31",
        f"{START}:cIkKAAAAAAAE",
        f"{START}:cAkAAAAAAAAE:+33",
        "yPPgATDgc/ABMA:MAEAAAAAAAAE",
        "GNUbgID 4HPwATDgc/ABMA:MAEAAAAAAAAE",
        "31 8/5 6/5 62 24/18 13/11",
        "65 24/13 44 24/20(2) 13/9*(2)",
    ]
    plays = ["8/5 6/5", "24/20", "bar/22*/18", "8/7(2) 6/5(2)", "pass", "6/off"]
    alphabet = "0123456789+/:*() abcABCMwAEIKk=-\n\t\0²١é×–'\"\\%"
    rolled = [GAME.parse_position(f"{START}:{dice}") for dice in ("31", "11", "66")]

    def mutated(text: str) -> str:
        letters = list(text)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(letters) + 1)
            letters[at : at + rng.randrange(3)] = rng.choices(alphabet, k=rng.randrange(3))
        return "".join(letters)

    for number in range(count):
        kind = rng.random()
        if kind < 0.15:
            text = "".join(rng.choices(alphabet, k=rng.randrange(30)))
        elif kind < 0.3:
            text = "".join(rng.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", k=14))
        else:
            text = mutated(rng.choice(seeds))
        try:
            state = GAME.parse_position(text)
        except InputError as error:
            assert "\n" not in str(error) and str(error).startswith("position ")
        else:
            accepted += 1
            back = GAME.parse_position(GAME.position_text(state))
            back.turns = state.turns
            assert back.tobytes() == state.tobytes(), text
        if number % 3 == 0:
            try:
                GAME.parse_play(rng.choice(rolled), mutated(rng.choice(plays)))
            except InputError as error:
                assert "\n" not in str(error)
            try:
                GAME.parse_action(rng.choice(rolled), mutated(rng.choice(plays)))
            except InputError as error:
                assert "\n" not in str(error)
    return accepted


def test_fuzzed_texts():
    assert fuzz(3000, seed=1) > 30


@pytest.mark.slow
def test_a_hundred_thousand_fuzzed_texts():
    assert fuzz(100_000, seed=2) > 1000
