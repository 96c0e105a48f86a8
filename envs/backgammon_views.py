"""What a network sees of a backgammon position, and how it is drawn."""

from typing import Any

import numpy as np

from envs.backgammon_features import SCALES, write_features
from envs.backgammon_moves import BAR
from envs.compiled import njit
from envs.game import CHANCE, TERMINAL, State

# 24 points of four units for each player, then bars, checkers off, numbers left, checkers left to move, pip counts, and
# the named features, as later versions of TD-Gammon had them.
DICE = 2 * 24 * 4 + 4
NAMED = DICE + 6 + 1 + 2
OBSERVATION_SIZE = NAMED + len(SCALES)
HEIGHT = 6  # checkers that a point of `board_cells` can show


@njit
def write_observation(state: Any, planes: Any, checkers: Any) -> None:
    """Tesauro's units (TD-Gammon, 1992): one, two, three checkers or more, and half of those beyond three.

    The mover's points 1 to 24 first, then the other's, each counted from its owner's side. Before a roll the player
    who is going to roll counts as the mover.
    """
    me = np.int64(max(state.turn, 0))
    pips = np.zeros(2, np.int64)
    for side in range(2):
        points = state.points[me if side == 0 else 1 - me]
        for point in range(1, 25):
            count = np.int64(points[point])
            if count == 0:
                continue
            at = 96 * side + 4 * (point - 1)
            planes[at] = 1.0
            if count >= 2:
                planes[at + 1] = 1.0
            if count >= 3:
                planes[at + 2] = 1.0
                planes[at + 3] = (count - 3) / 2
            pips[side] += point * count
        pips[side] += BAR * np.int64(points[BAR])
        planes[192 + 2 * side] = points[BAR] / 2
        planes[193 + 2 * side] = points[0] / checkers
        planes[DICE + 7 + side] = pips[side] / 167
    if state.die > 0:
        planes[DICE - 1 + state.die] = 1.0
    if state.second > 0:
        planes[DICE - 1 + state.second] = 1.0
    planes[DICE + 6] = state.left / 4
    write_features(state, planes[NAMED:], checkers)
    for i in range(len(SCALES)):
        planes[NAMED + i] *= SCALES[i]


# --- drawing -----------------------------------------------------------------------------------------

MARKS = ("\033[91mX\033[0m", "\033[97mO\033[0m")
LEFT_TO_RIGHT = (range(12, 6, -1), range(6, 0, -1))  # player 0's points of the lower half, left and right of the bar


def board_cells(state: State) -> np.ndarray:
    """The board as player 0 sits at it: 13 rows of 12 points, the bar in column 6 and the checkers off in 13.

    0 is empty, 1 and 2 are checkers; a stack shows at most six. Player 0's home is in the lower right, and each
    player's bar and checkers off are in the own half.
    """
    cells = np.zeros((2 * HEIGHT + 1, 14), np.int64)

    def stack(column: int, lower: bool, player: int, count: int) -> None:
        for i in range(min(count, HEIGHT)):
            cells[2 * HEIGHT - i if lower else i, column] = player + 1

    for player in range(2):
        for point in range(1, 25):
            seen = point if player == 0 else 25 - point
            lower = seen <= 12
            column = 12 - seen if lower else seen - 13
            stack(column + (column >= 6), lower, player, int(state.points[player, point]))
        stack(6, player == 1, player, int(state.points[player, BAR]))  # a hit checker enters on the other side
        stack(13, player == 0, player, int(state.points[player, 0]))
    return cells


def _half(state: State, lower: bool) -> list[str]:
    """Five lines of one half of the board, from the edge to the middle; taller stacks end in their number."""
    columns: list[tuple[int, int]] = []  # player, count
    for part in LEFT_TO_RIGHT:
        for point in part:
            seen = point if lower else 25 - point
            owner = 0 if state.points[0, seen] else 1
            columns.append((owner, int(state.points[owner, seen if owner == 0 else 25 - seen])))
    bar = 1 if lower else 0
    columns.insert(6, (bar, int(state.points[bar, BAR])))
    lines = []
    for row in range(5):
        words = []
        for player, count in columns:
            mark = MARKS[player] if count > row else " "
            if row == 4 and count > 5:
                mark = f"{MARKS[player][:5]}{count}\033[0m"
            words.append(" " * (3 - (2 if row == 4 and count > 9 else 1)) + mark)
        lines.append("|" + "".join(words[:6]) + " |" + words[6] + "  |" + "".join(words[7:]) + " |")
    return lines


def _edge(numbers: range) -> str:
    labels = [f"{number:>3}" for number in numbers]
    return "+" + "".join(labels[:6]) + "-+-----+" + "".join(labels[6:]) + "-+"


def _words(state: State, player: int) -> str:
    """What is to happen next."""
    if player == TERMINAL:
        return "the game is over"
    if state.turn < 0:
        return "each player throws a die"
    name = f"{MARKS[state.turn]} (player {int(state.turn)})"
    if player == CHANCE:
        return f"{name} is on roll"
    dice = [state.die] * state.left if state.second == 0 else [state.die, state.second]
    return f"{name} has to play {' '.join(str(int(die)) for die in dice)}"


def drawing(state: State, player: int) -> str:
    """The board with the points as player 0 counts them, pip counts, checkers off and what is to happen next.

    X is player 0, who moves towards the lower right; a bar's checkers stand in the half where they have to enter.
    """
    pips = [sum(point * int(state.points[side, point]) for point in range(1, 26)) for side in range(2)]
    sides = [f"{MARKS[side]} {pips[side]} pips, {int(state.points[side, 0])} off" for side in range(2)]
    upper, lower = _half(state, False), _half(state, True)
    middle = "|" + " " * 19 + "| bar |" + " " * 19 + "|"
    lines = [_edge(range(13, 25)), *upper, middle, *reversed(lower), _edge(range(12, 0, -1))]
    lines[1] += f"  {sides[1]}"
    lines[6] += f"  {_words(state, player)}"
    lines[-2] += f"  {sides[0]}"
    return "\n".join(lines)
