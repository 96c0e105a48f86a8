"""Nim: players take objects from one heap at a time (Bouton 1901).

In normal play whoever takes the last object wins, in misere play loses. `take` limits how many objects one
move may take (0: any number); one heap with a limit is the subtraction game. `nim_cubes` is the textbook's
first example: four cubes, one or two at a time.

Moves are written heap:objects, heaps counted from 1: "2:3" takes three from the second heap. Positions are
moves from the start ("2:3 1:1"), or what is left on the heaps, joined by +, and the player to move, 1 (if not
given) or 2: "1+0+5+7 2".
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.bits import mix
from envs.errors import InputError
from envs.game import TERMINAL, Game, State
from envs.rng import below

_MOST_HEAPS = 32
_MOST_OBJECTS = 1000


@dataclass(frozen=True)
class Nim(Game):
    """Parameters: the objects on each heap, the most that one move takes (0: all), and who the last one makes lose."""

    heaps: tuple[int, ...] = (1, 3, 5, 7)
    take: int = 0
    misere: bool = False

    title = "Nim"
    notation = "moves from the start: 2:3 1:1; or heaps left and the player to move: 1+0+5+7 2"
    num_features = 4

    def __post_init__(self) -> None:
        object.__setattr__(self, "heaps", tuple(int(heap) for heap in self.heaps))
        if not 1 <= len(self.heaps) <= _MOST_HEAPS or not all(1 <= heap <= _MOST_OBJECTS for heap in self.heaps):
            raise InputError(f"{self}: heaps must be 1 to {_MOST_HEAPS} numbers from 1 to {_MOST_OBJECTS}")
        if self.take < 0:
            raise InputError(f"{self}: take must be 0 (any number) or more")

    @property
    def num_heaps(self) -> int:
        return len(self.heaps)

    @property
    def most(self) -> int:
        """The most objects that one move takes."""
        return min(max(self.heaps), self.take or _MOST_OBJECTS)

    @property
    def state(self) -> np.dtype:
        return np.dtype([("left", "i2", (self.num_heaps,)), ("mover", "i2")], align=True)

    @property
    def num_actions(self) -> int:
        return self.num_heaps * self.most  # heap * most + objects - 1

    @property
    def max_legal(self) -> int:
        return sum(min(heap, self.most) for heap in self.heaps)

    @property
    def max_length(self) -> int:
        return sum(self.heaps)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (1, self.num_heaps, max(self.heaps))  # as many ones in a row as there are objects

    def tables(self) -> dict[str, np.ndarray]:
        return {"first": np.array(self.heaps, np.int64)}

    def start(self, state: State) -> None:
        for heap in range(self.num_heaps):
            state.left[heap] = self.first[heap]
        state.mover = 0

    def takable(self, state: State, heap: Any) -> Any:
        """How many objects one move may take from the heap."""
        return min(np.int64(state.left[heap]), self.most)

    def choices(self, state: State) -> int:
        count = 0
        for heap in range(self.num_heaps):
            count += self.takable(state, heap)
        return count

    def player(self, state: State) -> int:
        for heap in range(self.num_heaps):
            if state.left[heap] != 0:
                return state.mover
        return TERMINAL

    def actions(self, state: State, out: Any) -> int:
        count = 0
        for heap in range(self.num_heaps):
            for objects in range(self.takable(state, heap)):
                out[count] = heap * self.most + objects
                count += 1
        return count

    def random_action(self, state: State, out: Any, rng: Any) -> Any:
        rest = below(rng, self.choices(state))
        heap = 0
        while rest >= self.takable(state, heap):
            rest -= self.takable(state, heap)
            heap += 1
        return heap * self.most + rest

    def play(self, state: State, action: Any) -> None:
        chosen, objects = action // self.most, action % self.most + 1
        for heap in range(self.num_heaps):  # all are written, as all are read next: the processor forwards whole words
            state.left[heap] -= objects if heap == chosen else 0
        state.mover = 1 - state.mover

    def utility(self, state: State, player: Any) -> float:
        # At the end it is the turn of the player who did not take the last object.
        return 1.0 if (player == state.mover) == self.misere else -1.0

    def key(self, state: State) -> Any:
        total = mix(np.uint64(state.mover + 1))
        for heap in range(self.num_heaps):
            total = mix(total ^ np.uint64(state.left[heap]))
        return total

    def nim_sum(self, state: State) -> int:
        """The exclusive or of the heaps; with a limit, of their remainders modulo limit + 1 (Sprague, Grundy)."""
        total: Any = 0
        for heap in range(self.num_heaps):
            total ^= np.int64(state.left[heap]) % (self.most + 1)
        return total

    def observe(self, state: State, planes: Any) -> None:
        for heap in range(self.num_heaps):
            for i in range(state.left[heap]):
                planes[0, heap, i] = 1.0

    def features(self, state: State, out: Any) -> int:
        ones, bigger = 0, 0
        for heap in range(self.num_heaps):
            ones += state.left[heap] == 1
            bigger += state.left[heap] > 1
        out[0] = 1.0 if self.nim_sum(state) != 0 else 0.0
        out[1] = ones % 2
        out[2] = bigger
        out[3] = 1.0
        return self.num_features

    # --- for people ----------------------------------------------------------------------------------

    def feature_names(self) -> tuple[str, ...]:
        return ("nim-sum is not zero", "odd number of heaps of one", "heaps of more than one", "to move")

    def show(self, state: State) -> str:
        lines = [f"{heap + 1:2}: {'| ' * int(left)}({int(left)})" for heap, left in enumerate(state.left)]
        return "\n".join(lines)

    def action_name(self, state: State, action: int) -> str:
        return f"{int(action) // self.most + 1}:{int(action) % self.most + 1}"

    def parse_position(self, text: str) -> State:
        words = text.split()
        if not words or ":" in text:
            return super().parse_position(text)
        accepted = f"{'+'.join(map(str, self.heaps))} or less on each heap, then perhaps the player to move, 1 or 2"
        if not re.fullmatch(r"\d+(\+\d+)*", words[0], re.ASCII) or words[1:] not in ([], ["1"], ["2"]):
            raise InputError(f"position {text!r}: expected {accepted}")
        left = [int(number) for number in words[0].split("+")]
        if len(left) != self.num_heaps or any(now > first for now, first in zip(left, self.heaps, strict=True)):
            raise InputError(f"position {text!r}: expected {accepted}")
        state = self.new()[0]
        state.left[:] = left
        state.mover = 1 if words[1:] == ["2"] else 0
        return state

    def position_text(self, state: State) -> str:
        return "+".join(str(int(left)) for left in state.left) + (" 2" if state.mover else "")
