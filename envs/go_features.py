"""What learners and evaluations see of Go: observation planes and the features of a linear evaluation.

All features count the mover's minus the opponent's, in stones, chains or points, where no word says otherwise:

- `stones`, `chains`, and `stones on the first line`, `second`, `third`
- `pseudo-liberties`: the pairs of a stone and an empty point beside it
- `my chains in atari`, `their chains in atari`, `my stones in atari`, `their stones in atari`: for each side apart,
  because the mover can take theirs at once and may lose his own
- `eyes`: empty points with all neighbours of one colour
- `frontier`: empty points that touch one colour only
- `influence`: empty points with a majority of the stones within two steps
- `komi`: what the mover gets (White) or gives (Black)
- `ko`: 1 where the mover may not retake; `they passed`: 1 after a pass; `to move`: always 1
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.game import State
from envs.go_board import BLACK, COUNT, EMPTY, SQUARES, SUM, WHITE, GoBoard

FEATURES = (
    "stones",
    "chains",
    "pseudo-liberties",
    "my chains in atari",
    "their chains in atari",
    "my stones in atari",
    "their stones in atari",
    "eyes",
    "frontier",
    "influence",
    "stones on the first line",
    "stones on the second line",
    "stones on the third line",
    "komi",
    "ko",
    "they passed",
    "to move",
)


@dataclass(frozen=True)
class GoFeatures(GoBoard):
    """The board as learners see it; the rules of the game are in `Go`."""

    num_features = len(FEATURES)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """My stones, theirs; stones with 1, 2, 3+ liberties; forbidden points; the last two moves; and, the same
        everywhere: whether they passed, whether I am Black, my komi / 10, the part of the longest game played."""
        return (12, self.height, self.size)

    def observe(self, state: State, planes: Any) -> None:
        mover = np.int64(state.turn)
        komi = (self.komi if mover == 1 else -self.komi) / 10.0
        for a in range(self.points):
            y, x = a // self.size, a % self.size
            point = self.point_of[a]
            if state.colour[point] == EMPTY:
                if not self.is_legal(state, point):
                    planes[5, y, x] = 1.0
                for k in range(4):  # the liberties of a chain are counted at its head, in the last of their planes
                    n = self.neighbours[point, k]
                    if state.colour[n] & (BLACK | WHITE) != 0 and self.first_touch(state, point, k):
                        head = self.action_of[state.head[n]]
                        planes[4, head // self.size, head % self.size] += 1.0
            else:
                planes[0 if state.colour[point] == mover + 1 else 1, y, x] = 1.0
            planes[8, y, x] = state.passes
            planes[9, y, x] = 1 - mover
            planes[10, y, x] = komi
            planes[11, y, x] = state.ply / self.max_length
        for a in range(self.points):
            point = self.point_of[a]
            if state.colour[point] != EMPTY:
                head = self.action_of[state.head[point]]
                # Heads keep their count until all are served; the loop below gives them their own plane.
                liberties = planes[4, head // self.size, head % self.size]
                if head != a:
                    planes[self.liberty_plane(liberties), a // self.size, a % self.size] = 1.0
        for a in range(self.points):
            point = self.point_of[a]
            if state.colour[point] != EMPTY and state.head[point] == point:
                liberties = planes[4, a // self.size, a % self.size]
                planes[4, a // self.size, a % self.size] = 0.0
                planes[self.liberty_plane(liberties), a // self.size, a % self.size] = 1.0
        for back in range(2 if state.ply > 1 else np.int64(state.ply)):
            action = np.int64(state.moves[state.ply - 1 - back])
            if action < self.points:
                planes[6 + back, action // self.size, action % self.size] = 1.0

    def liberty_plane(self, liberties: Any) -> int:
        return 2 if liberties < 1.5 else (3 if liberties < 2.5 else 4)

    def features(self, state: State, out: Any) -> int:
        for i in range(self.num_features):
            out[i] = 0.0
        mine = np.int64(state.turn) + 1
        for a in range(self.points):
            point = self.point_of[a]
            if state.colour[point] == EMPTY:
                self.empty_features(state, point, mine, out)
                continue
            own = state.colour[point] == mine
            sign = 1.0 if own else -1.0
            out[0] += sign
            line = np.int64(self.line[point])
            if line < 3:
                out[10 + line] += sign
            if state.head[point] != point:
                continue
            word = state.liberties[point]
            count, total, squares = word & COUNT, (word >> SUM) & ((1 << SQUARES - SUM) - 1), word >> SQUARES
            out[1] += sign
            out[2] += sign * count
            if count * squares == total * total:  # no variance: one liberty
                out[3 if own else 4] += 1.0
                out[5 if own else 6] += state.stones[point]
        out[13] = self.komi if mine == WHITE else -self.komi
        out[14] = 1.0 if state.ko != 0 else 0.0
        out[15] = state.passes
        out[16] = 1.0
        return self.num_features

    def empty_features(self, state: State, point: Any, mine: Any, out: Any) -> None:
        """Adds what an empty point counts for."""
        touching, majority, eye = np.int64(0), 0, np.int64(3)
        for k in range(4):
            n = self.neighbours[point, k]
            colour = np.int64(state.colour[n])
            touching |= colour & 3
            if colour <= WHITE:
                eye &= colour
                majority += self.owner(colour, mine)
                for j in range(4):
                    majority += self.owner(np.int64(state.colour[self.neighbours[n, j]]), mine)
        if eye != 0:
            out[7] += 1.0 if eye == mine else -1.0
        if touching == BLACK or touching == WHITE:
            out[8] += 1.0 if touching == mine else -1.0
        if majority != 0:
            out[9] += 1.0 if majority > 0 else -1.0

    def owner(self, colour: Any, mine: Any) -> int:
        if colour == BLACK or colour == WHITE:
            return 1 if colour == mine else -1
        return 0

    def feature_names(self) -> tuple[str, ...]:
        return FEATURES
