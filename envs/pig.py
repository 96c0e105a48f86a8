"""Pig: roll a die as often as you dare, hold to keep the turn's total; a 1 loses it (Scarne 1945).

The rules of Neller and Presser, "Optimal Play of the Dice Game Pig" (The UMAP Journal 25, 2004): a player's
turn goes on until a 1 is rolled, which scores nothing, or until the player holds, which adds the turn's total
to the score. The first to hold with `goal` points or more wins. Two to six players.

Like OpenSpiel's `pig(players, winscore, diceoutcomes, horizon)`, and tested move for move beside it:
- holding with a total of nothing is legal: it passes the turn;
- once a hold would win, rolling on is not legal (the paper's rules allow it, and it never helps);
- the winner gets 1, each of the n - 1 others -1 / (n - 1);
- after `horizon` decisions (rolls and holds) the game is a draw, even with a die in the air.
The differences: we write "hold" where OpenSpiel writes "stop"; we have no Piglet variant and at most 6 players,
OpenSpiel 10; and once somebody has won, our state still names the winner as the one whose turn it is.

Without the horizon a game could last for ever. With the 1000 decisions of the default a draw is a curiosity: two
players who roll or hold by the toss of a coin draw with a probability below 1e-45, two who hold at 20 with one
below 1e-27 (both bounds are computed in the tests). Only a player who hardly ever holds gets there. The count of
decisions belongs to the position, so no position comes twice in a game.

Moves are "roll" and "hold", the die's outcomes "1" to "6". Positions are moves from the start ("roll 5 hold"), or
"scores 37 42 player 2 total 15 decisions 60", with the word "rolling" at the end while the die is in the air; all
but the scores may be left out.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.bits import mix
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, Game, State
from envs.rng import below

ROLL, HOLD = 0, 1


@dataclass(frozen=True)
class Pig(Game):
    """Parameters: the players, the points that win, the sides of the die, and the decisions until a draw."""

    players: int = 2
    goal: int = 100
    sides: int = 6
    horizon: int = 1000

    title = "Pig"
    notation = 'moves: roll 5 roll 3 hold; positions: "scores 37 42 player 2 total 15"'
    num_actions = 2
    max_legal = 2
    has_chance = True

    def __post_init__(self) -> None:
        limits = {"players": (2, 6), "goal": (1, 10_000), "sides": (2, 100), "horizon": (1, 1_000_000)}
        for name, (least, most) in limits.items():
            if not least <= getattr(self, name) <= most:
                raise InputError(f"{self}: {name} must be from {least} to {most}")

    @property
    def state(self) -> np.dtype:
        return np.dtype(
            [
                ("decisions", "i4"),  # rolls and holds so far
                ("total", "i4"),  # of the turn
                ("scores", "i4", (self.players,)),
                ("turn", "i2"),  # whose turn it is; the winner's at the end
                ("rolling", "i2"),  # 1: the die is in the air
            ],
            align=True,
        )

    @property
    def num_players(self) -> int:
        return self.players

    @property
    def num_outcomes(self) -> int:
        return self.sides

    @property
    def max_length(self) -> int:
        return 2 * self.horizon - 1  # each decision a roll, each but the last with its outcome

    @property
    def min_utility(self) -> float:
        return -1.0 / (self.players - 1)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (self.players + 5,)

    @property
    def num_features(self) -> int:
        return 7

    def start(self, state: State) -> None:
        state.decisions = 0
        state.total = 0
        for i in range(self.players):
            state.scores[i] = 0
        state.turn = 0
        state.rolling = 0

    def player(self, state: State) -> int:
        if state.decisions >= self.horizon or state.scores[state.turn] >= self.goal:
            return TERMINAL
        return CHANCE if state.rolling else int(state.turn)

    def hold_wins(self, state: State) -> bool:
        """Whether the player whose turn it is would win by holding."""
        return state.scores[state.turn] + state.total >= self.goal

    def actions(self, state: State, out: Any) -> int:
        if self.hold_wins(state):
            out[0] = HOLD
            return 1
        out[0] = ROLL
        out[1] = HOLD
        return 2

    def outcomes(self, state: State, out: Any, probabilities: Any) -> int:
        for i in range(self.sides):
            out[i] = i
            probabilities[i] = 1.0 / self.sides
        return self.sides

    def random_action(self, state: State, out: Any, rng: Any) -> Any:
        return HOLD if self.hold_wins(state) else below(rng, 2)

    def random_outcome(self, state: State, out: Any, probabilities: Any, rng: Any) -> Any:
        return below(rng, self.sides)

    def play(self, state: State, action: Any) -> None:
        if state.rolling:
            state.rolling = 0
            if action == 0:
                self.end_turn(state)
            else:
                state.total += action + 1
            return
        state.decisions += 1
        if action == ROLL:
            state.rolling = 1
            return
        state.scores[state.turn] += state.total
        if state.scores[state.turn] < self.goal:
            self.end_turn(state)
        else:
            state.total = 0

    def end_turn(self, state: State) -> None:
        state.total = 0
        state.turn = state.turn + 1 if state.turn + 1 < self.players else 0

    def utility(self, state: State, player: Any) -> float:
        if state.scores[state.turn] < self.goal:
            return 0.0
        return 1.0 if player == state.turn else -1.0 / (self.players - 1)

    def key(self, state: State) -> Any:
        word = mix(np.uint64(2 * state.turn + state.rolling + 1))
        word = mix(word ^ (np.uint64(state.decisions) << np.uint64(32) | np.uint64(state.total)))
        for i in range(self.players):
            word = mix(word ^ np.uint64(state.scores[i]))
        return word

    def observe(self, state: State, planes: Any) -> None:
        turn = np.int64(state.turn)
        for i in range(self.players):  # the mover's own score, then the others' in the order of their turns
            planes[i] = state.scores[(turn + i) % self.players] / self.goal
        planes[self.players] = state.total / self.goal
        planes[self.players + 1] = (state.scores[turn] + state.total) / self.goal
        planes[self.players + 2] = 1.0 if self.hold_wins(state) else 0.0
        planes[self.players + 3] = state.decisions / self.horizon
        planes[self.players + 4] = state.rolling

    def chance_view(self, state: State) -> int:
        return state.turn

    def features(self, state: State, out: Any) -> int:
        turn = np.int64(state.turn)
        best, others = np.int64(0), np.int64(0)
        for i in range(1, self.players):
            score = np.int64(state.scores[(turn + i) % self.players])
            best = max(best, score)
            others += score
        out[0] = state.scores[turn] / self.goal
        out[1] = best / self.goal
        out[2] = others / (self.goal * (self.players - 1))
        out[3] = state.total / self.goal
        out[4] = out[0] * out[0] - out[1] * out[1]  # a lead counts for more near the goal
        out[5] = 1.0 if self.hold_wins(state) else 0.0
        out[6] = 1.0
        return 7

    def feature_names(self) -> tuple[str, ...]:
        own = ("own score", "others' best score", "others' mean score", "turn total")
        return (*own, "own score squared less the best other's", "a hold wins", "to move")

    # --- for people ----------------------------------------------------------------------------------

    def show(self, state: State) -> str:
        lines = []
        for i in range(self.players):
            score = int(state.scores[i])
            mark = "\033[93m>\033[0m" if i == state.turn else " "
            total = f" \033[92m+{int(state.total)}\033[0m" if i == state.turn and state.total else ""
            lines.append(f"{mark} player {i + 1}: {score:3d}{total}")
        if self.player(state) == CHANCE:
            lines.append("the die is rolling")
        return "\n".join(lines)

    def action_name(self, state: State, action: int) -> str:
        if self.player(state) == CHANCE:
            return str(int(action) + 1)
        return ("roll", "hold")[int(action)]

    def position_text(self, state: State) -> str:
        scores = " ".join(str(int(score)) for score in state.scores)
        text = f"scores {scores} player {int(state.turn) + 1} total {int(state.total)}"
        return f"{text} decisions {int(state.decisions)}{' rolling' if state.rolling else ''}"

    def parse_position(self, text: str) -> State:
        words = text.lower().split()
        if not words or words[0] != "scores":
            return super().parse_position(text)
        rolling = words[-1] == "rolling"
        if rolling:
            words.pop()
        numbers: dict[str, list[int]] = {}
        for word in words:
            if word in ("scores", "player", "total", "decisions") and word not in numbers:
                numbers[word] = []
                current = numbers[word]
            elif word.isdecimal():
                current.append(int(word))
            else:
                raise InputError(
                    f"position {text!r}: {word!r} is not a number; expected scores, player, total, decisions "
                    "each once with their numbers, then perhaps rolling"
                )
        counts = {"scores": self.players, "player": 1, "total": 1, "decisions": 1}
        for name, found in numbers.items():
            if len(found) != counts[name]:
                raise InputError(f"position {text!r}: {name} needs {counts[name]} number(s), not {len(found)}")
        scores = numbers["scores"]
        player = numbers.get("player", [1])[0] - 1
        total, decisions = numbers.get("total", [0])[0], numbers.get("decisions", [0])[0]
        self._check_position(text, scores, player, total, decisions, rolling)
        state = self.new()[0]
        state.scores[:] = scores
        state.turn, state.total, state.decisions, state.rolling = player, total, decisions, int(rolling)
        return state

    def _check_position(
        self, text: str, scores: list[int], player: int, total: int, decisions: int, rolling: bool
    ) -> None:
        """Raises `InputError` unless some game could look like this (the number of decisions aside)."""
        if not 0 <= player < self.players:
            raise InputError(f"position {text!r}: player must be from 1 to {self.players}, not {player + 1}")
        if decisions > self.horizon:
            raise InputError(f"position {text!r}: decisions must be at most the horizon, {self.horizon}")
        for i, score in enumerate(scores):
            most = self.goal + self.sides - 1 if i == player and total == 0 and not rolling else self.goal - 1
            if score > most or score == 1:
                raise InputError(f"position {text!r}: the score {score} is not possible for player {i + 1} here")
        most = self.goal - scores[player] - 1 + (0 if rolling else self.sides)
        if total == 1 or (total > 0 and total > most):
            raise InputError(f"position {text!r}: the total {total} is not possible here; from 2 to {most}, or 0")
