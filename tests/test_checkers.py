"""Checkers against published counts, OpenSpiel, its own notation and a slow second opinion on repetition."""

import csv
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyspiel
import pytest
from referees import look, result, step

from envs.check import check_game
from envs.checkers import FEATURES, Checkers
from envs.checkers_notation import place
from envs.errors import InputError
from envs.game import TERMINAL, legal_actions
from envs.registry import make
from envs.rng import below, generator
from selfplay.perft import perft

DATA = Path(__file__).parent / "data" / "checkers"
GAME = Checkers()
OPEN_SPIEL_RULES = Checkers(quiet_plies=40, men_reset=False, repetitions=0)

# Sequences of whole turns, two routes of one capture counted twice: OEIS A133046 and dctl, see the reference data.
with (DATA / "perft.csv").open() as file:
    PERFT = [(int(row["depth"]), int(row["nodes_duplicate_capture_routes_counted"])) for row in csv.DictReader(file)]


@pytest.mark.parametrize(("depth", "nodes"), PERFT[:9])
def test_perft(depth, nodes):
    assert perft(GAME, depth).nodes == nodes


@pytest.mark.slow
@pytest.mark.parametrize(("depth", "nodes"), PERFT[9:12])
def test_deep_perft(depth, nodes):
    assert perft(GAME, depth).nodes == nodes


def test_perft_ignores_the_draw_rules():
    game = Checkers(quiet_plies=1)
    assert perft(game, 5, game.parse_position("B:WK32:BK1,K2")).nodes > 0


# --- OpenSpiel -----------------------------------------------------------------------------------------


def to_open_spiel(player: int, action: int, jumps: bool) -> int:
    """Its squares are seen from player 0, its directions go round clockwise, a jump is another action."""
    if player == 1:
        action = 127 - action
    row, column = place(action // 4 + 1)
    return 8 * (8 * row + column) + 2 * (0, 1, 3, 2)[action % 4] + jumps


def play_beside_open_spiel(games: int, seed: int) -> Counter:
    """Random games on both sides; returns how they ended. The one difference in rules is asserted, not skipped."""
    game, spiel, rng = OPEN_SPIEL_RULES, pyspiel.load_game("checkers"), random.Random(seed)
    out, ends = np.empty(game.max_legal, np.int64), Counter()
    for _ in range(games):
        state, theirs = game.new()[0], spiel.new_initial_state()
        while True:
            player, count = look(game, state, out, np.empty(1))
            assert (player == TERMINAL) == theirs.is_terminal(), str(theirs)
            if player == TERMINAL:
                break
            assert player == theirs.current_player(), str(theirs)
            ours = [int(action) for action in out[:count]]
            jumps = state.theirs & game.neighbour[ours[0]] != 0  # jumps are compulsory: all are or none is
            mapped = [to_open_spiel(player, action, bool(jumps)) for action in ours]
            assert sorted(mapped) == theirs.legal_actions(), str(theirs)
            pick = rng.randrange(count)
            theirs.apply_action(mapped[pick])
            step(game, state, ours[pick])
        returns = [result(game, state, p) for p in range(2)]
        if state.quiet >= 40 and returns[0] != 0:
            ends["blocked on the drawing ply"] += 1  # our loss by having no move, OpenSpiel's draw
            assert theirs.returns() == [0, 0], str(theirs)
        else:
            ends["draw" if returns[0] == 0 else "decided"] += 1
            assert returns == theirs.returns(), str(theirs)
    return ends


def test_random_games_beside_open_spiel():
    ends = play_beside_open_spiel(500, seed=1)
    assert ends["draw"] > 10 and ends["decided"] > 250


@pytest.mark.slow
def test_many_random_games_beside_open_spiel():
    ends = play_beside_open_spiel(20_000, seed=2)
    assert ends["draw"] > 500 and ends["decided"] > 5000


# --- rules ---------------------------------------------------------------------------------------------


def names(text: str, game: Checkers = GAME) -> list[str]:
    state = game.parse_position(text)
    return [game.action_name(state, action) for action in legal_actions(game, state)]


def after(text: str, *moves: str, game: Checkers = GAME):
    state = game.parse_position(text)
    for move in moves:
        game.play(state, game.parse_action(state, move))
    return state


def test_opening_moves():
    assert sorted(names("")) == ["10-14", "10-15", "11-15", "11-16", "12-16", "9-13", "9-14"]


def test_jumps_are_compulsory_and_the_choice_is_free():
    assert sorted(names("W:W22,23,32:B18,11,9,K1")) == ["22x15", "23x14"]


def test_a_multi_jump_goes_on_with_the_same_piece_only():
    state = after("W:W22,32:B18,11,27,K4", "22x15")
    assert GAME.player(state) == 1 and GAME.position_text(state) == "W:W15,32:BK4,11,27:J15"
    assert [GAME.action_name(state, a) for a in legal_actions(GAME, state)] == ["15x8"]  # 32x23 has to wait
    assert GAME.player(after("W:W22,32:B18,11,27,K4", "22x15", "15x8")) == 0


def test_a_man_that_jumps_into_the_king_row_stops():
    state = after("W:W10:B6,7,8,20", "10x1")
    assert GAME.player(state) == 0 and GAME.position_text(state) == "B:WK1:B7,8,20"
    state = after("W:W10:B7,8,20", "10x3")  # a king on 3 could jump 8, but it has just been crowned
    assert GAME.player(state) == 0
    state = after("W:WK10:B7,8,20", "10x3")  # a king may go on
    assert GAME.player(state) == 1 and names(GAME.position_text(state)) == ["3x12"]


def test_a_king_may_jump_in_a_circle_back_to_its_square():
    state = after("W:WK22:B17,9,10,18", "22x13", "13x6", "6x15", "15x22")
    assert GAME.position_text(state) == "B:WK22:B" and GAME.player(state) == TERMINAL
    assert GAME.utility(state, 1) == 1.0 and GAME.utility(state, 0) == -1.0


def test_a_blocked_side_loses():
    state = after("W:W17,26:B13", "26-22")  # 13 is stopped by 17, and 22 keeps it from being jumped
    assert GAME.player(state) == TERMINAL
    assert [GAME.utility(state, player) for player in range(2)] == [-1.0, 1.0]


def test_forty_move_rule():
    state = GAME.parse_position("B:WK32,21:BK1,K2:H78")
    for move, quiet in (("1-5", 79), ("32-28", 80)):
        assert GAME.player(state) != TERMINAL
        GAME.play(state, GAME.parse_action(state, move))
        assert state.quiet == quiet
    assert GAME.player(state) == TERMINAL and GAME.utility(state, 0) == 0.0
    assert after("W:WK32,21:BK1,K2:H79", "21-17").quiet == 0
    assert after("W:WK32,21:BK1,K2:H79", "21-17", game=replace(GAME, men_reset=False)).quiet == 80


def test_a_side_without_moves_loses_even_on_the_drawing_ply():
    state = after("W:W17,K26:B13:H79", "26-22")
    assert state.quiet == 80 and GAME.player(state) == TERMINAL and GAME.utility(state, 1) == 1.0


def test_threefold_repetition():
    dance = ["1-5", "32-28", "5-1", "28-32"]
    state = after("B:WK32:BK1", *dance, *dance[:3])
    assert GAME.player(state) == 1 and state.seen == 1
    GAME.play(state, GAME.parse_action(state, "28-32"))
    assert GAME.player(state) == TERMINAL and GAME.utility(state, 0) == 0.0
    for game, player in ((Checkers(repetitions=2), TERMINAL), (GAME, 0), (Checkers(repetitions=0), 0)):
        assert game.player(after("B:WK32:BK1", *dance, game=game)) == player
    assert GAME.player(after("B:WK32:BK1", *dance, *dance, game=Checkers(repetitions=0))) == 0


def test_repetition_beside_counted_positions():
    """Random king endings: drawn exactly when a position, read as text, comes for the third time."""
    rng, out, repeated = random.Random(5), np.empty(48, np.int64), 0
    for number in range(100):
        a, b, c, d = rng.sample([square for square in range(1, 33) if square != 21], 4)
        man = ",21" if number % 2 else ""
        states = GAME.new()
        states[0] = GAME.parse_position(f"B:WK{a},K{b}{man}:BK{c},K{d}")
        seen: Counter[str] = Counter()
        while True:
            player, count = look(GAME, states[0], out, np.empty(1))
            text = GAME.position_text(states[0]).split(":H")[0]
            seen[text] += 1
            if player == TERMINAL:
                drawn = result(GAME, states[0], 0) == 0.0
                assert not drawn or seen[text] == 3 or states[0].quiet == 80
                repeated += drawn and seen[text] == 3
                break
            assert seen[text] < 3 and states[0].quiet < 80
            assert states[0].seen == seen[text] - 1
            # Mostly back and forth between few squares, so that positions do come again.
            step(GAME, states[0], out[rng.randrange(min(count, 2))])
    assert repeated > 20


def test_max_length_is_a_bound_by_counting():
    assert GAME.max_length == (23 + 144 + 1) * 80
    assert OPEN_SPIEL_RULES.max_length == 24 * 40


@pytest.mark.parametrize(
    "parameters",
    [{"quiet_plies": 0}, {"quiet_plies": 30_001}, {"repetitions": 1}, {"repetitions": -1}, {"quiet_plies": 81}],
)
def test_bad_parameters(parameters):
    with pytest.raises(InputError, match=next(iter(parameters))):
        make("checkers", **parameters)


@pytest.mark.parametrize("game", [GAME, OPEN_SPIEL_RULES, Checkers(quiet_plies=10, repetitions=2)])
def test_conformance(game):
    report = check_game(game, states=2000, texts=80, interpreted=30)
    assert report.ok, [str(broken) for broken in report.broken.values()]


# --- what the mover sees -------------------------------------------------------------------------------


def other_colours(text: str) -> str:
    """The same position with colours exchanged and the board turned by half."""
    fields = text.split(":")
    fields[0] = "BW"[fields[0] == "B"]
    for i in range(1, len(fields)):
        if fields[i][0] in "BW":
            words = [w for w in fields[i][1:].split(",") if w]
            turned = [f"{'K' * (w[0] == 'K')}{33 - int(w.lstrip('K'))}" for w in words]
            fields[i] = "BW"[fields[i][0] == "B"] + ",".join(turned)
        elif fields[i][0] == "J":
            fields[i] = f"J{33 - int(fields[i][1:])}"
    return ":".join(fields)


@pytest.mark.parametrize("text", ["W:W15,32:BK4,11,27:J15", "B:WK32,21,K3:BK1,K2,14:H7", "W:W18,25:B14,K5,9"])
def test_both_sides_see_the_same(text):
    views = []
    for fen in (text, other_colours(text)):
        state = GAME.parse_position(fen)
        planes, numbers = np.zeros(GAME.observation_shape, np.float32), np.zeros(GAME.num_features)
        GAME.observe(state, planes)
        GAME.features(state, numbers)
        views.append((planes.tolist(), numbers.tolist(), legal_actions(GAME, state)))
    assert views[0] == views[1]


def test_key_knows_the_side_to_move_and_the_jumper_but_no_counters():
    texts = ["W:W15,32:BK4,11,27", "W:W15,32:BK4,11,27:J15", "B:W1,6,22:BK29,K18"]
    texts += ["W:W15,32:B11,27,K4:H5", other_colours("W:W15,32:BK4,11,27")]
    with np.errstate(over="ignore"):
        keys = [int(GAME.key(GAME.parse_position(text.replace("W1,", "WK1,")))) for text in texts]
    assert keys[0] == keys[3] and len(set(keys)) == 4


def test_observation():
    planes = np.zeros(GAME.observation_shape, np.float32)
    GAME.observe(GAME.parse_position("W:W15,K32:BK4,11,27:J15"), planes)
    where = {(int(p), int(r), int(c)) for p, r, c in np.argwhere(planes)}
    pieces = {0: [15], 1: [32], 2: [11, 27], 3: [4], 4: [15]}
    assert where == {(plane, *place(square)) for plane, squares in pieces.items() for square in squares}
    planes[:] = 0
    GAME.observe(GAME.parse_position("B:WK32,21:BK1,K2:H40"), planes)
    assert (planes[5] == 0.5).all() and planes[1, 7, 6] == 1.0  # Black's square 1 is its lower right corner


def test_features():
    def features(text: str) -> dict[str, float]:
        numbers = np.zeros(GAME.num_features)
        assert GAME.features(GAME.parse_position(text), numbers) == len(FEATURES)
        return dict(zip(GAME.feature_names(), numbers.tolist(), strict=True))

    assert {name: value for name, value in features("").items() if value} == {"the move": -1.0, "to move": 1.0}
    white = features("W:W30,32,18,6,K5:BK21,22,K29")
    assert white["men"] == 3 and white["kings"] == -1 and white["material share"] == 2 / 8
    assert white["back row guards"] == 2 and white["bridge"] == 1
    assert white["centre men"] == 0 and white["men before the king row"] == 1  # 18 against 22; 6
    assert white["advancement"] == 0 + 0 + 3 + 6 - 5
    assert white["kings in a double corner"] == 1 and white["the move"] == 0
    assert features("W:W25,22:BK29,1")["trapped kings"] == -1
    assert features("W:W18:B14,15,2")["pieces that can jump"] == 1 - 2  # 18; 14 and 15


def test_is_loud():
    state = GAME.parse_position("W:W22,32:B18,11,27,K4")
    assert all(GAME.is_loud(state, action) for action in legal_actions(GAME, state))
    assert GAME.in_check(state)
    state = GAME.parse_position("")
    assert not any(GAME.is_loud(state, action) for action in legal_actions(GAME, state))
    assert not GAME.in_check(state)
    state = GAME.parse_position("W:W6,18:B21,12")
    loud = [GAME.action_name(state, action) for action in legal_actions(GAME, state) if GAME.is_loud(state, action)]
    assert sorted(loud) == ["6-1", "6-2"] and not GAME.in_check(state)  # crowned
    assert GAME.in_check(GAME.parse_position("W:W15,32:BK4,11,27:J15"))


def test_in_check_is_having_to_jump():
    """Along random games: then all actions are jumps, and otherwise none is."""
    rng, out, seen = random.Random(3), np.empty(48, np.int64), Counter()
    for _ in range(20):
        state = GAME.new()[0]
        while (view := look(GAME, state, out, np.empty(1)))[0] != TERMINAL:
            jumps = {bool(GAME.is_jump(state, action)) for action in out[: view[1]]}
            assert jumps == {bool(GAME.in_check(state))}
            seen[jumps.pop()] += 1
            step(GAME, state, out[rng.randrange(view[1])])
    assert seen[True] > 100 and seen[False] > 100


def test_move_value():
    """The captured king before the man, the jump before the step that crowns, that before others."""
    state = GAME.parse_position("W:W22,23:B18,K19,1")
    values = {GAME.action_name(state, a): GAME.move_value(state, a) for a in legal_actions(GAME, state)}
    assert values["23x16"] > values["22x15"] == values["23x14"] > 1
    state = GAME.parse_position("W:W6,18:B21,12")
    values = {GAME.action_name(state, a): GAME.move_value(state, a) for a in legal_actions(GAME, state)}
    assert values == {"6-1": 1, "6-2": 1, "18-14": 0, "18-15": 0}


def test_drawing():
    state = GAME.parse_position("W:W21,K10:BK4,11")
    cells = GAME.cells(state)
    assert {(int(r), int(c)): int(cells[r, c]) for r, c in np.argwhere(cells)} == {
        place(21): 2,
        place(10): 2,
        place(4): 1,
        place(11): 1,
    }
    letters = GAME.glyphs(state)
    kings = {(row, column) for row in range(8) for column in range(8) if letters[row][column] == "K"}
    assert kings == {place(10), place(4)}
    assert GAME.show(state).count("\n") == 7 and "\033[1;97mW" in GAME.show(state)
    assert "32" in GAME.show(state, numbers=True) and "21" not in GAME.show(state, numbers=True)


# --- golden playthrough --------------------------------------------------------------------------------


def playthrough(seed: int) -> str:
    """A random game: before each move the position, the key, the legal moves and the move; then the result."""
    rng, states, lines = generator(seed), GAME.new(), []
    with np.errstate(over="ignore"):
        while GAME.player(states[0]) != TERMINAL:
            actions = legal_actions(GAME, states[0])
            moves = [f"{GAME.action_name(states[0], action)}={action}" for action in actions]
            pick = int(below(rng, len(actions)))
            fen, key = GAME.position_text(states[0]), int(GAME.key(states[0]))
            lines.append(f"{fen} | {key:016x} | {' '.join(moves)} | {moves[pick]}")
            GAME.play(states[0], actions[pick])
    values = [GAME.utility(states[0], player) for player in range(2)]
    return "\n".join([*lines, f"{GAME.position_text(states[0])} | {values}", ""])


def test_golden_playthrough():
    """The rules, actions, keys and texts of a whole game, as recorded: a change must be on purpose."""
    assert playthrough(seed=44) == (DATA / "playthrough.txt").read_text()
