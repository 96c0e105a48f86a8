"""Games that break one promise each, on purpose: what the conformance checker is tested with.

All derive from one small game that keeps every promise: two players take turns to add 1 or 2; who reaches
`goal` wins. With `dice`, a coin is tossed after each move and may add one more.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.bits import mix
from envs.game import CHANCE, TERMINAL, Game, State, Symmetry


@dataclass(frozen=True)
class Race(Game):
    """Keeps all promises."""

    goal: int = 21

    title = "Race"
    notation = "moves: 1 2 2"
    state = np.dtype([("total", "i4"), ("mover", "i2"), ("plies", "i2")], align=True)
    num_actions = 2
    max_legal = 2
    observation_shape = (1, 1, 2)
    num_features = 1

    @property
    def max_length(self) -> int:
        return self.goal

    def start(self, state: State) -> None:
        state.total = 0
        state.mover = 0
        state.plies = 0

    def player(self, state: State) -> int:
        return TERMINAL if state.total >= self.goal else np.int64(state.mover)

    def actions(self, state: State, out: Any) -> int:
        out[0] = 0
        out[1] = 1
        return 2

    def play(self, state: State, action: Any) -> None:
        state.total += action + 1
        state.mover = 1 - state.mover
        state.plies += 1

    def utility(self, state: State, player: Any) -> float:
        return -1.0 if player == state.mover else 1.0

    def key(self, state: State) -> Any:
        return mix(state.total * 1_000_000 + state.plies * 2 + state.mover)

    def observe(self, state: State, planes: Any) -> None:
        planes[0, 0, 0] = state.total / self.goal
        planes[0, 0, 1] = 1.0

    def features(self, state: State, out: Any) -> int:
        out[0] = state.total % 3
        return 1

    def action_name(self, state: State, action: int) -> str:
        return str(int(action) + 1)


class NeverEnds(Race):
    """length: a total that comes round."""

    def play(self, state: State, action: Any) -> None:
        state.total = (state.total + action + 1) % (self.goal - 1)
        state.mover = 1 - state.mover
        state.plies = (state.plies + 1) % 2


class Descending(Race):
    """actions: the larger one first, after five moves."""

    def actions(self, state: State, out: Any) -> int:
        first = 1 if state.plies == 5 else 0
        out[0] = first
        out[1] = 1 - first
        return 2


class TooMany(Race):
    """actions: more than max_legal near the end."""

    def actions(self, state: State, out: Any) -> int:
        count = 40 if state.total == self.goal - 3 else 2
        for i in range(count):
            out[i] = i
        return count


class Stuck(Race):
    """actions: none, though the game is not over."""

    def actions(self, state: State, out: Any) -> int:
        out[0] = 0
        out[1] = 1
        return 0 if state.total == 10 else 2


class BothWin(Race):
    """utility: everybody gets 1 if the goal is met exactly."""

    def utility(self, state: State, player: Any) -> float:
        return 1.0 if state.total == self.goal or player != state.mover else -1.0


class Jackpot(Race):
    """utility: beyond max_utility."""

    def utility(self, state: State, player: Any) -> float:
        return -2.0 if player == state.mover else 2.0


class BlindKey(Race):
    """key: forgets who is to move."""

    def key(self, state: State) -> Any:
        return mix(state.total)


@dataclass(frozen=True)
class Forgetful(Race):
    """start: leaves the count of plies as it was."""

    def start(self, state: State) -> None:
        state.total = 0
        state.mover = 0


class Meddler(Race):
    """purity: observing counts as a ply."""

    def observe(self, state: State, planes: Any) -> None:
        planes[0, 0, 0] = state.total / self.goal
        planes[0, 0, 1] = 1.0
        if state.total == 7:
            state.plies += 1


class Infinite(Race):
    """observe: divides by what is left minus two."""

    def observe(self, state: State, planes: Any) -> None:
        left = np.float64(self.goal - state.total - 2)
        planes[0, 0, 0] = np.inf if left == 0.0 else 1.0 / left


class Unnamed(Race):
    """features: one more than there are names for."""

    def features(self, state: State, out: Any) -> int:
        out[0] = 0.0
        out[1] = 1.0
        return 2


class Cheater(Race):
    """random: an action that does not exist."""

    def random_action(self, state: State, out: Any, rng: Any) -> Any:
        return np.int64(2) if state.total == 9 else np.int64(0)


class Miscounting(Race):
    """hints: count_actions() sees one action more."""

    def count_actions(self, state: State, out: Any) -> int:
        return 3 if state.total == 9 else 2


class OneName(Race):
    """names: both moves have the same name."""

    def action_name(self, state: State, action: int) -> str:
        return "one" if state.total > 5 else str(int(action) + 1)


class Mumbler(Race):
    """names: a name that its own parser refuses."""

    def parse_action(self, state: State, text: str) -> int:
        return super().parse_action(state, text if text != "2" else "two")


class Misprint(Race):
    """position: writes a total that is one too many."""

    def position_text(self, state: State) -> str:
        return f"{int(state.total) + 1} {int(state.mover)} {int(state.plies)}"

    def parse_position(self, text: str) -> State:
        state = self.new()[0]
        state.total, state.mover, state.plies = map(int, text.split())
        return state


class Blank(Race):
    """show: draws nothing."""

    def show(self, state: State) -> str:
        return " "


class Crash(Race):
    """show: raises."""

    def show(self, state: State) -> str:
        raise KeyError("board")


class Rounding(Race):
    """interpreted: an unsigned word plus a signed one is a float when compiled, and exact when interpreted."""

    def features(self, state: State, out: Any) -> int:
        word = np.uint64(1 << 60) + np.int64(1 if state.total == 8 else 0)
        out[0] = word % 2
        return 1


class OutOfBounds(Race):
    """observe: writes beyond the planes."""

    def observe(self, state: State, planes: Any) -> None:
        planes[0, 0, 2 if state.total > 4 else 1] = 1.0


class Uncompilable(Race):
    """compiles: Python that Numba does not know."""

    def features(self, state: State, out: Any) -> int:
        out[0] = max((state.total, 3), key=lambda number: -number)
        return 1


class WrongPlayer(Race):
    """player: a third player."""

    def player(self, state: State) -> int:
        return TERMINAL if state.total >= self.goal else (2 if state.total == 6 else np.int64(state.mover))


class SecretChance(Race):
    """player: a chance node, though has_chance is false."""

    def player(self, state: State) -> int:
        return TERMINAL if state.total >= self.goal else (CHANCE if state.total == 6 else np.int64(state.mover))


class FalseMirror(Race):
    """symmetry: swaps the actions, which are not alike."""

    num_symmetries = 2

    def symmetries(self) -> list[Symmetry]:
        cells, none = np.arange(2), np.arange(0)
        return [Symmetry(cells, np.arange(2), none), Symmetry(cells, np.array([1, 0]), none)]


@dataclass(frozen=True)
class Coin(Game):
    """Keeps all promises: players take turns to toss a coin `tosses` times; more heads for player 0 wins."""

    tosses: int = 6

    title = "Coin"
    state = np.dtype([("done", "i2"), ("lead", "i2"), ("tossing", "i2")])
    num_actions = 1
    max_legal = 1
    has_chance = True
    num_outcomes = 2
    observation_shape = (1,)

    @property
    def max_length(self) -> int:
        return 2 * self.tosses

    def start(self, state: State) -> None:
        state.done = 0
        state.lead = 0
        state.tossing = 0

    def player(self, state: State) -> int:
        if state.done == self.tosses:
            return TERMINAL
        return CHANCE if state.tossing != 0 else state.done & 1

    def actions(self, state: State, out: Any) -> int:
        out[0] = 0
        return 1

    def outcomes(self, state: State, out: Any, probabilities: Any) -> int:
        for i in range(2):
            out[i] = i
            probabilities[i] = 0.5
        return 2

    def play(self, state: State, action: Any) -> None:
        if state.tossing == 0:
            state.tossing = 1
            return
        state.tossing = 0
        if action == 1:
            state.lead += 1 - 2 * (state.done & 1)
        state.done += 1

    def utility(self, state: State, player: Any) -> float:
        lead = np.float64(state.lead)
        sign = 1.0 if lead > 0 else (-1.0 if lead < 0 else 0.0)
        return sign if player == 0 else -sign

    def key(self, state: State) -> Any:
        return mix((np.int64(state.lead) + 100) * 1000 + state.done * 2 + state.tossing)

    def observe(self, state: State, planes: Any) -> None:
        planes[0] = state.lead


class BentCoin(Coin):
    """outcomes: probabilities that sum to 1.1."""

    def outcomes(self, state: State, out: Any, probabilities: Any) -> int:
        for i in range(2):
            out[i] = i
            probabilities[i] = 0.5 if state.done != 3 else 0.55
        return 2


class NoOutcome(Coin):
    """outcomes: one of probability nothing."""

    def outcomes(self, state: State, out: Any, probabilities: Any) -> int:
        for i in range(2):
            out[i] = i
            probabilities[i] = np.float64(i)
        return 2


class NoPerft(Race):
    """compiles: Python that Numba does not know, where moves are counted."""

    def count_actions(self, state: State, out: Any) -> int:
        return max((2, 1), key=lambda number: number)
