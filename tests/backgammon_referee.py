"""Slow second opinions on backgammon: all plays by brute force, and all plays as our rules offer them."""

import itertools
from collections.abc import Iterator

import numpy as np
from referees import look, step

from envs.backgammon import Backgammon
from envs.game import State

PROBABILITIES = np.empty(36)
Side = tuple[int, ...]  # checkers on the own points 1 to 24 and, last, on the bar; as GNU Backgammon's records


def sides(state: State, player: int) -> tuple[Side, Side]:
    """The checkers of that player and of the other one."""
    return tuple(state.points[player, 1:].tolist()), tuple(state.points[1 - player, 1:].tolist())


def state_of(game: Backgammon, mine: Side, theirs: Side, dice: tuple[int, int], player: int = 0) -> State:
    """A state with these checkers, that player to move and this roll just thrown."""
    states = game.new()
    state = states[0]
    for side, checkers in ((player, mine), (1 - player, theirs)):
        state.points[side, 1:] = checkers
        state.points[side, 0] = game.checkers - sum(checkers)
    game.refresh(state)
    state.turn = player
    step(game, state, 6 * (max(dice) - 1) + min(dice) - 1)
    return state


def ends_by_the_rules(game: Backgammon, state: State) -> dict[tuple[Side, Side], list[int]]:
    """The positions after all whole plays, the mover's checkers first, each with some actions that lead there."""
    player, out, room = int(state.turn), np.empty(36, np.int64), np.zeros(2, game.state)
    before, after, left, points = room[0], room[1], room["left"], room["points"]
    ends: dict[tuple[Side, Side], list[int]] = {}
    seen = {state.tobytes()}
    waiting: list[tuple[bytes, list[int]]] = [(state.tobytes(), [])]
    while waiting:
        text, path = waiting.pop()
        room[0] = np.frombuffer(text, game.state)[0]
        _, count = look(game, before, out, PROBABILITIES)
        for action in out[:count].tolist():
            room[1] = room[0]
            step(game, after, action)
            name = after.tobytes()
            if name in seen:
                continue
            seen.add(name)
            if left[1] == 0:
                ends[tuple(points[1, player, 1:].tolist()), tuple(points[1, 1 - player, 1:].tolist())] = [*path, action]
            else:
                waiting.append((name, [*path, action]))
    return ends


def single_moves(mine: Side, theirs: Side, die: int) -> Iterator[tuple[Side, Side]]:
    """The positions after one checker has moved by this number, straight from the rule book."""
    for source in range(25, 0, -1):
        if mine[source - 1] == 0 or (mine[24] and source != 25):
            continue
        after, other = list(mine), list(theirs)
        target = source - die
        after[source - 1] -= 1
        if target <= 0:
            if any(mine[6:]) or (target < 0 and any(mine[source:])):
                continue
        else:
            standing = theirs[24 - target]
            if standing > 1:
                continue
            if standing == 1:
                other[24 - target] = 0
                other[24] += 1
            after[target - 1] += 1
        yield tuple(after), tuple(other)


def plays(mine: Side, theirs: Side, dice: tuple[int, ...]) -> Iterator[tuple[int, tuple[Side, Side], tuple[int, ...]]]:
    """Every way to play these dice in this order until no more fits: number played, position, dice played."""
    stuck = True
    if dice:
        for after in single_moves(mine, theirs, dice[0]):
            stuck = False
            for count, end, used in plays(*after, dice[1:]):
                yield count + 1, end, (dice[0], *used)
    if stuck:
        yield 0, (mine, theirs), ()


def ends_by_brute_force(mine: Side, theirs: Side, dice: tuple[int, int]) -> set[tuple[Side, Side]]:
    """All positions after a legal play: as many dice as possible, and the larger if only one of two fits."""
    orders = [dice * 2] if dice[0] == dice[1] else list(itertools.permutations(dice))
    found = [play for order in orders for play in plays(mine, theirs, order)]
    most = max(count for count, _, _ in found)
    found = [play for play in found if play[0] == most]
    if most == 1 and dice[0] != dice[1]:
        largest = max(used[0] for _, _, used in found)
        found = [play for play in found if play[2][0] == largest]
    return {end for _, end, _ in found}
