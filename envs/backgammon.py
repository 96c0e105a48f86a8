"""Backgammon without the doubling cube (rules: Backgammon Galore, bkgm.com/rules.html; USBGF).

Every player counts the points from the own side: 1 to 6 are the home board, 24 is the farthest point, 25 is the
bar and 0 is off the board; a player's point p is the other's point 25 - p. Checkers move from high to low.

    points[player, p]    checkers of that player on the own point p; [.., 25] the bar, [.., 0] borne off
    occupied[player]     bit p: the player has a checker on the own point p, bit 25 the bar
    blocked[player]      bit p: the other one holds the player's point p with two checkers or more

The masks follow from the points and make a die's legal sources a handful of machine instructions (`sources`).

Dice. A roll is a chance node with 21 outcomes, doubles 1/36, others 2/36. An outcome is 6 * (a - 1) + (b - 1)
for the dice a >= b. At the start each player throws one die and the higher one moves first with both numbers;
equal dice are thrown again. So the opening has 30 outcomes of 1/30: a is player 0's die, b player 1's, a != b.

Actions. One checker moves by one die: action 25 * (die - 1) + (source - 1), sources 1 to 25; the same player goes
on until the dice are used. Offered are only moves of plays that use the most dice, and the larger die if only one
of the two can be used; where both numbers bear off the same checker, the larger one is used first. A roll that
cannot be played at all leaves the one action `pass` (150); where only some of the dice can be played, the turn
passes by itself after the last one. The die that was used is forgotten: a 1 is left of 3-1 and of 6-1 alike.
Different orders of the same play are different action sequences with one result: they meet in a transposition
table, but uniformly random actions are not uniformly random plays.

Why doubles need no look-ahead: with one die value any two legal moves commute and neither takes away the other's
right to be played (points held by the opponent do not change in a turn, and all-home stays all-home). So all
orders play equally many dice, and every move that is legal now belongs to a longest play.

The result counts 1, or 2 for a gammon (the loser has borne off nothing), or 3 for a backgammon (and still has a
checker on the bar or in the winner's home). `points=False` counts every win 1.

Backgammon has no longest game by itself, so after `max_turns` rolls it is a draw. Random games last 93 turns on
average and the longest of a million had 465; sensible play lasts about 50. So the default of 1000 hardly ever matters.

Beside OpenSpiel's `backgammon(scoring_type=full_scoring)`, tested turn for turn: the same positions after a turn and
the same results. What differs: an action there moves two checkers, and doubles are two actions; its 36 rolls of 1/36
are our 21; its opening rolls have other numbers; its `max_player_turns=n` is our `max_turns=n + 1`, but
cuts a last turn of doubles in half; its hyper-backgammon ends without a winner.

Notation: rolls "31"; moves "13/7", "bar/22", "6/off", a star for a hit; whole plays "8/5 6/5", "24/13", "8/7(2)"
(`parse_play`); positions as GNU Backgammon's ids (`envs/backgammon_text.py`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from envs import backgammon_text as text_form
from envs.backgammon_features import FEATURES, write_features
from envs.backgammon_moves import BAR, PASS, followed, sources
from envs.backgammon_views import OBSERVATION_SIZE, board_cells, drawing, write_observation
from envs.bits import lowest, mix, popcount, without_lowest
from envs.compiled import python_only
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, Game, State
from envs.rng import below


@dataclass(frozen=True)
class Backgammon(Game):
    """Parameters: whether gammons count double and backgammons triple, when a long game is a draw, and whether it
    is hyper-backgammon, with three checkers each on the points 24, 23 and 22."""

    points: bool = True
    max_turns: int = 1000
    hyper: bool = False

    title = "Backgammon"
    notation = "GNU Backgammon ids: 4HPwATDgc/ABMA:cIkKAAAAAAAE; rolls 31, moves 8/5 6/5"
    num_actions = 151
    max_legal = 30  # fifteen checkers, two dice
    compound_moves = True
    has_chance = True
    num_outcomes = 36
    observation_shape = (OBSERVATION_SIZE,)
    num_features = len(FEATURES)
    state = np.dtype(
        [
            ("points", "i1", (2, 26)),
            ("occupied", "i4", (2,)),
            ("blocked", "i4", (2,)),
            ("turns", "i4"),  # rolls so far
            ("turn", "i1"),  # who is on roll; -1 before the opening roll
            ("die", "i1"),  # the only, or the larger, number left; 0 before the roll
            ("second", "i1"),  # the smaller number left, or 0
            ("left", "i1"),  # checkers left to move
        ],
        align=True,
    )

    # The draw by length is no part of a position: neither of its key nor of its text.
    history_fields = ("turns",)

    def __post_init__(self) -> None:
        if not 1 <= self.max_turns <= 65535:
            raise InputError(f"{self}: max_turns must be from 1 to 65535")

    @property
    def max_length(self) -> int:
        return 5 * self.max_turns  # a roll and at most four checkers

    @property
    def checkers(self) -> int:
        return 3 if self.hyper else 15

    @property
    def min_utility(self) -> float:
        return -3.0 if self.points else -1.0

    @property
    def max_utility(self) -> float:
        return 3.0 if self.points else 1.0

    # --- compiled: the rules -------------------------------------------------------------------------

    def start(self, state: State) -> None:
        for player in range(2):
            for point in range(26):
                state.points[player, point] = 0
            if self.hyper:
                for point in range(22, 25):
                    state.points[player, point] = 1
            else:
                state.points[player, 24] = 2
                state.points[player, 13] = 5
                state.points[player, 8] = 3
                state.points[player, 6] = 5
        self.refresh(state)
        state.turns = 0
        state.turn = -1
        state.die = 0
        state.second = 0
        state.left = 0

    def refresh(self, state: State) -> None:
        """Computes the masks from the points."""
        for player in range(2):
            occupied, blocked = 0, 0
            for point in range(1, 26):
                if state.points[player, point] > 0:
                    occupied |= 1 << point
                if point < BAR and state.points[1 - player, 25 - point] > 1:
                    blocked |= 1 << point
            state.occupied[player] = occupied
            state.blocked[player] = blocked

    def player(self, state: State) -> int:
        if state.left > 0:
            return state.turn
        if state.occupied[0] == 0 or state.occupied[1] == 0 or state.turns >= self.max_turns:
            return TERMINAL
        return CHANCE

    def outcomes(self, state: State, out: Any, probabilities: Any) -> int:
        count = 0
        for outcome in range(36):
            first, second = outcome // 6, outcome % 6
            if state.turn < 0:
                if first != second:
                    out[count] = outcome
                    probabilities[count] = 1 / 30
                    count += 1
            elif first >= second:
                out[count] = outcome
                probabilities[count] = 1 / 36 if first == second else 2 / 36
                count += 1
        return count

    def random_outcome(self, state: State, out: Any, probabilities: Any, rng: Any) -> Any:
        if state.turn < 0:
            pair = below(rng, 30)
            first, second = pair // 5, pair % 5
            return 6 * first + second + (1 if second >= first else 0)
        pair = below(rng, 36)
        first, second = pair // 6, pair % 6
        return 6 * max(first, second) + min(first, second)

    def legal_sources(self, state: State) -> Any:
        """The legal sources for the larger number (or the only one), and those for the smaller."""
        me = state.turn
        occupied, blocked = np.int64(state.occupied[me]), np.int64(state.blocked[me])
        die, second = np.int64(state.die), np.int64(state.second)
        if second == 0:
            return sources(occupied, blocked, die), 0
        own = state.points[me]
        large = followed(occupied, blocked, own, die, second)
        small = followed(occupied, blocked, own, second, die)
        if large | small == 0:  # only one of the two can be used: the larger if possible
            large = sources(occupied, blocked, die)
            if large == 0:
                small = sources(occupied, blocked, second)
        elif occupied >> (second + 1) == 0:
            small = 0  # both numbers bear off the same checker: one order is enough
        return large, small

    def actions(self, state: State, out: Any) -> int:
        large, small = self.legal_sources(state)
        die, second = np.int64(state.die), np.int64(state.second)
        count = 0
        while small != 0:
            out[count] = 25 * (second - 1) + lowest(small) - 1
            small &= small - 1
            count += 1
        while large != 0:
            out[count] = 25 * (die - 1) + lowest(large) - 1
            large &= large - 1
            count += 1
        if count == 0:
            out[0] = PASS
            count = 1
        return count

    def random_action(self, state: State, out: Any, rng: Any) -> Any:
        large, small = self.legal_sources(state)
        both = np.uint64(large) << np.uint64(26) | np.uint64(small)
        if both == 0:
            return PASS
        for _ in range(below(rng, popcount(both))):
            both = without_lowest(both)
        place = lowest(both)
        if place < 26:
            return 25 * (np.int64(state.second) - 1) + place - 1
        return 25 * (np.int64(state.die) - 1) + place - 27

    def play(self, state: State, action: Any) -> None:
        if state.left == 0:
            self.roll(state, action)
            return
        if action == PASS:
            self.end_turn(state)
            return
        die, source = action // 25 + 1, action % 25 + 1
        self.move(state, source, die)
        state.left -= 1
        if state.second == die:
            state.second = 0
        elif state.second > 0:
            state.die = state.second
            state.second = 0
        me = state.turn
        occupied, blocked = np.int64(state.occupied[me]), np.int64(state.blocked[me])
        if state.left == 0 or sources(occupied, blocked, np.int64(state.die)) == 0:
            self.end_turn(state)

    def roll(self, state: State, outcome: Any) -> None:
        first, second = outcome // 6 + 1, outcome % 6 + 1
        if state.turn < 0:
            state.turn = 0 if first > second else 1
        state.turns += 1
        state.die = max(first, second)
        state.second = min(first, second) if first != second else 0
        state.left = 2 if first != second else 4

    def end_turn(self, state: State) -> None:
        state.die = 0
        state.second = 0
        state.left = 0
        state.turn = 1 - state.turn

    def move(self, state: State, source: Any, die: Any) -> None:
        """Moves one checker of the player on roll, hits included."""
        me = np.int64(state.turn)
        them = 1 - me
        rest = state.points[me, source] - 1
        state.points[me, source] = rest
        if rest == 0:
            state.occupied[me] &= ~(1 << source)
        elif rest == 1 and source < BAR:
            state.blocked[them] &= ~(1 << (25 - source))
        target = source - die
        if target <= 0:
            state.points[me, 0] += 1
            return
        across = 25 - target
        if state.points[them, across] > 0:
            state.points[them, across] = 0
            state.points[them, BAR] += 1
            state.occupied[them] = (state.occupied[them] & ~(1 << across)) | (1 << BAR)
        if state.points[me, target] > 0:
            state.blocked[them] |= 1 << across
        state.points[me, target] += 1
        state.occupied[me] |= 1 << target

    def utility(self, state: State, player: Any) -> float:
        if state.occupied[0] != 0 and state.occupied[1] != 0:
            return 0.0  # too many turns
        winner = 0 if state.occupied[0] == 0 else 1
        value = 1.0
        if self.points and state.points[1 - winner, 0] == 0:
            value = 3.0 if state.occupied[1 - winner] >> 19 else 2.0
        return value if player == winner else -value

    def key(self, state: State) -> Any:
        turn, die, second, left = (
            np.int64(state.turn),
            np.int64(state.die),
            np.int64(state.second),
            np.int64(state.left),
        )
        number = mix(np.uint64(((turn + 1) * 8 + die) * 64 + second * 8 + left))
        for player in range(2):
            for half in range(2):
                word = np.uint64(0)  # thirteen points at four bits each
                for i in range(13):
                    word = word << np.uint64(4) | np.uint64(state.points[player, 13 * half + i])
                number = mix(number * np.uint64(0x9E3779B97F4A7C15) + word)
        return number

    def observe(self, state: State, planes: Any) -> None:
        write_observation(state, planes, self.checkers)

    def chance_view(self, state: State) -> int:
        return state.turn  # who is going to roll; -1 before the first roll of all

    def features(self, state: State, out: Any) -> int:
        write_features(state, out, self.checkers)
        return self.num_features

    def is_loud(self, state: State, action: Any) -> bool:
        """Hits."""
        target = action % 25 - action // 25
        return action != PASS and target > 0 and state.points[1 - state.turn, 25 - target] == 1

    # --- Python: for people --------------------------------------------------------------------------

    def feature_names(self) -> tuple[str, ...]:
        return FEATURES

    def cells(self, state: State) -> np.ndarray:
        return board_cells(state)

    def show(self, state: State) -> str:
        return drawing(state, self.player(state))

    def action_name(self, state: State, action: int) -> str:
        return text_form.action_name(self, state, int(action))

    def parse_action(self, state: State, text: str) -> int:
        return text_form.parse_action(self, state, text)

    @python_only
    def parse_play(self, state: State, text: str) -> list[int]:
        """The actions of a whole turn, from text such as "8/5 6/5", "24/13", "bar/22*/18", "8/7(2) 6/5(2)"."""
        return text_form.parse_play(self, state, text)

    def parse_position(self, text: str) -> State:
        return text_form.parse_position(self, text)

    def position_text(self, state: State) -> str:
        return text_form.position_text(self, state)
