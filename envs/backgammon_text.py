"""How backgammon players write moves and positions: "8/5 6/5", and GNU Backgammon's position and match ids.

A position is a GNU Backgammon position id, perhaps followed by a match id or a roll, all joined by colons:

    4HPwATDgc/ABMA                        player 0 is on roll
    4HPwATDgc/ABMA:31                     player 0 has rolled 3-1
    4HPwATDgc/ABMA:cIkKAAAAAAAE           player 1 has rolled 5-2
    4HPwATDgc/ABMA:cAkAAAAAAAAE:+33       player 1 is in the middle of a turn and has two threes left to play

The part with the plus sign is ours: GNU Backgammon has no position in the middle of a turn. Its players 0 and 1 are
ours. Or it is moves from the start, "31 8/5 6/5 62 24/18 13/11"; the last turn may be unfinished.

The position id (GNU Backgammon manual, 11.6) is 80 bits in base64: for each player, the one who is not on roll
first, the points 1 to 24 and the bar as so many ones as there are checkers and then a zero.
The match id (11.7) is 67 bits: the cube, who is on roll, the dice, the score, and a one for "no Jacoby rule". The
game has no cube and no score, so only money games with the cube in the middle are accepted; both states of the
Jacoby bit are, and it is written as a one, since our gammons always count.
"""

import base64
import itertools
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from envs.backgammon_moves import BAR, PASS, sources
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, State, legal_actions

if TYPE_CHECKING:
    from envs.backgammon import Backgammon

POSITION_ID = re.compile(r"[A-Za-z0-9+/]{14}")
MATCH_ID = re.compile(r"[A-Za-z0-9+/]{12}")
ROLL = re.compile(r"([1-6])-?([1-6])")
EXAMPLE = "such as 4HPwATDgc/ABMA, 4HPwATDgc/ABMA:31 or 4HPwATDgc/ABMA:cIkKAAAAAAAE"

# The fields of a match id: name -> (first bit, number of bits)
FIELDS = {
    "cube": (0, 4),
    "owner": (4, 2),
    "roller": (6, 1),
    "crawford": (7, 1),
    "game": (8, 3),
    "turn": (11, 1),
    "double": (12, 1),
    "resignation": (13, 2),
    "first": (15, 3),
    "second": (18, 3),
    "length": (21, 15),
    "score 0": (36, 15),
    "score 1": (51, 15),
    "no jacoby": (66, 1),
}
NOT_STARTED, PLAYING, OVER = range(3)
CENTRED = 3


def clipped(text: str) -> str:
    """The text for an error message, its middle left out where it is long."""
    return repr(text if len(text) <= 120 else f"{text[:80]} … {text[-30:]}")


def copied(game: "Backgammon", state: State) -> State:
    """A copy of the state that can be played on."""
    states = game.new()
    states[0] = state
    return states[0]


# --- one move ----------------------------------------------------------------------------------------


def hits(state: State, target: int) -> bool:
    """Whether a checker of the player on roll that lands there hits."""
    return target > 0 and bool(state.points[1 - state.turn, 25 - target] == 1)


def action_name(game: "Backgammon", state: State, action: int) -> str:
    """A roll "31" (at the opening player 0's die first), or a move "13/7", "bar/22*", "6/off", or "pass"."""
    if game.player(state) == CHANCE:
        return f"{action // 6 + 1}{action % 6 + 1}"
    if action == PASS:
        return "pass"
    die, source = action // 25 + 1, action % 25 + 1
    target = max(source - die, 0)
    start = "bar" if source == BAR else str(source)
    return f"{start}/{target if target else 'off'}{'*' if hits(state, target) else ''}"


def parse_action(game: "Backgammon", state: State, text: str) -> int:
    """The legal action that the text names; stars may be left out, and a roll's dice may come in either order."""
    word = text.strip().lower()
    legal = {action_name(game, state, action): action for action in legal_actions(game, state)}
    if game.player(state) == CHANCE:
        match = ROLL.fullmatch(word)
        if match:
            a, b = match.groups()
            if state.turn >= 0:
                a, b = max(a, b), min(a, b)
            if a + b in legal:
                return legal[a + b]
        doubles = ", no doubles: player 0's die, then player 1's" if state.turn < 0 else ""
        raise InputError(f"roll {clipped(text)} is not possible here; expected two dice such as 31{doubles}")
    if word in legal:
        return legal[word]
    plain = {name.rstrip("*"): action for name, action in legal.items()}
    word = re.sub(r"^25/", "bar/", re.sub(r"/0$", "/off", word))
    if word in plain:
        return plain[word]
    raise InputError(f"move {clipped(text)} is not legal here; legal moves of one checker: {', '.join(legal)}")


# --- whole turns -------------------------------------------------------------------------------------


class Trip(NamedTuple):
    """What is left of one checker's way: where it stands and the points that it still has to touch."""

    at: int
    stops: tuple[int, ...]
    stars: tuple[bool, ...]


def parse_trips(text: str) -> list[Trip]:
    """The checkers' ways that the words of a play describe."""
    trips = []
    for word in text.lower().split():
        match = re.fullmatch(r"([0-9]{1,2}|bar)((?:/(?:[0-9]{1,2}|off)\*?)+)(?:\(([1-4])\))?", word)
        if not match:
            raise InputError(f"{clipped(word)} is not a move such as 13/7, bar/22*, 6/off, 24/18/13 or 8/7(2)")
        stops = match[2].split("/")[1:]
        names = [match[1], *(stop.rstrip("*") for stop in stops)]
        points = [int({"bar": "25", "off": "0"}.get(name, name)) for name in names]
        if max(points) > BAR or any(a <= b for a, b in itertools.pairwise(points)):
            raise InputError(f"{clipped(word)} must go downwards, from the bar (25) at most")
        stars = tuple(stop.endswith("*") for stop in stops)
        for copy in range(int(match[3] or 1)):  # in 8/7*(2) the first checker hits
            trips.append(Trip(points[0], tuple(points[1:]), stars if copy == 0 else (False,) * len(stars)))
    if len(trips) > 4:
        raise InputError(f"{clipped(text)} moves {len(trips)} checkers; a turn moves at most 4")
    return trips


def _ways(
    game: "Backgammon", state: State, trips: list[Trip], strict: bool, whole: bool
) -> list[tuple[list[int], Any]]:
    """All sequences of actions that make these trips, each with the state they lead to.

    Strict: hits are where the stars are and nowhere else. Otherwise stars may be missing.
    """
    if not trips:
        return [([], state)] if state.left == 0 or not whole else []
    found = []
    if state.left > 0:
        legal = legal_actions(game, state)
        for index, trip in enumerate(trips):
            if trip in trips[:index]:
                continue
            for action in legal:
                die, source = action // 25 + 1, action % 25 + 1
                target = max(source - die, 0)
                if action == PASS or source != trip.at or target < trip.stops[0]:
                    continue
                arrived, hit = target == trip.stops[0], hits(state, target)
                starred = arrived and trip.stars[0]
                if (starred and not hit) or (strict and hit and not starred):
                    continue
                rest = trips[:index] + trips[index + 1 :]
                if not arrived:
                    rest = [*rest, Trip(target, trip.stops, trip.stars)]
                elif len(trip.stops) > 1:
                    rest = [*rest, Trip(target, trip.stops[1:], trip.stars[1:])]
                after = copied(game, state)
                mover = state.turn
                game.play(after, action)
                if rest and (after.left == 0 or after.turn != mover):
                    continue
                found += [([action, *more], end) for more, end in _ways(game, after, rest, strict, whole)]
    return found


def parse_play(game: "Backgammon", state: State, text: str, whole: bool = True) -> list[int]:
    """The actions of a turn, of a whole one unless told otherwise; raises `InputError` if it is not legal."""
    start = f"play {clipped(text)}"
    if state.left == 0:
        raise InputError(f"{start}: the dice have to be rolled first")
    if text.strip().lower() == "pass":
        return [parse_action(game, state, "pass")]
    if not text.strip():
        raise InputError(f"{start} is empty; expected moves such as 8/5 6/5, or pass")
    try:
        trips = parse_trips(text)
    except InputError as error:
        raise InputError(f"{start}: {error}") from None
    ways = _ways(game, state, trips, True, whole) or _ways(game, state, trips, False, whole)
    if not ways:
        dice = [int(state.die)] * int(state.left) if state.second == 0 else [int(state.die), int(state.second)]
        raise InputError(f"{start} is no legal play of the dice {' '.join(map(str, dice))}")
    if len({end.tobytes() for _, end in ways}) > 1:
        raise InputError(f"{start} can be played in ways that differ; name the points between and the hits")
    return ways[0][0]


# --- ids ---------------------------------------------------------------------------------------------


def _number(text: str, size: int) -> int | None:
    """The little-endian number in base64, or None if bits beyond its bytes are set."""
    data = base64.b64decode(text + "=" * (-len(text) % 4))
    if base64.b64encode(data).decode().rstrip("=") != text:
        return None
    return int.from_bytes(data, "little") if len(data) == size else None


def _base64(number: int, size: int) -> str:
    return base64.b64encode(number.to_bytes(size, "little")).decode().rstrip("=")


def position_id(state: State) -> str:
    """GNU Backgammon's position id, from the side of the player on roll (of player 0 before the opening roll)."""
    number, place = 0, 0
    mover = max(int(state.turn), 0)
    for player in (1 - mover, mover):
        for point in range(1, 26):
            count = int(state.points[player, point])
            number |= ((1 << count) - 1) << place
            place += count + 1
    return _base64(number, 10)


def match_id(game: "Backgammon", state: State) -> str:
    """GNU Backgammon's match id of a money game without cube and Jacoby rule.

    In the middle of a turn it has no dice; before the opening roll it says that no game has started.
    """
    values = dict.fromkeys(FIELDS, 0)
    values["owner"], values["no jacoby"] = CENTRED, 1
    values["game"] = OVER if game.player(state) == TERMINAL else NOT_STARTED if state.turn < 0 else PLAYING
    values["roller"] = values["turn"] = max(int(state.turn), 0)
    if state.left == 4 or state.second > 0:
        values["first"], values["second"] = int(state.die), int(state.second or state.die)
    return _base64(sum(value << FIELDS[name][0] for name, value in values.items()), 9)


def position_text(game: "Backgammon", state: State) -> str:
    """Position and match id, and the numbers left where a turn is unfinished."""
    text = f"{position_id(state)}:{match_id(game, state)}"
    unfinished = 0 < state.left < 4 and state.second == 0
    return f"{text}:+{str(int(state.die)) * int(state.left)}" if unfinished else text


def parse_position(game: "Backgammon", text: str) -> State:
    """The state that ids or moves describe; raises `InputError` for bad text and for impossible positions."""
    start = f"position {clipped(text)}"
    words = text.split()
    if words and words[0].lower().rstrip(":") == "gnubgid":
        words = words[1:]
    if not words or ROLL.fullmatch(words[0]):
        return parse_moves(game, start, words)
    fields = ":".join(words).split(":")
    state = game.new()[0]
    state.turn = 0
    set_points(game, state, start, fields[0])
    rest = fields[1:]
    if rest and MATCH_ID.fullmatch(rest[0]):
        set_match(state, start, rest.pop(0), game)
    if rest:
        set_dice(game, state, start, rest.pop(0))
    if rest:
        raise InputError(f"{start}: {clipped(rest[0])} is too much; expected ids {EXAMPLE}")
    check_possible(game, state, start)
    return state


def set_points(game: "Backgammon", state: State, start: str, text: str) -> None:
    """Puts the checkers of a position id on the board, as player 0 on roll sees it."""
    number = _number(text, 10) if POSITION_ID.fullmatch(text) else None
    if number is None:
        raise InputError(f"{start}: {clipped(text)} is neither a roll nor a position id; expected ids {EXAMPLE}")
    for player in (1, 0):
        total = 0
        for point in range(1, 26):
            count = (~number & (number + 1)).bit_length() - 1  # ones at the low end
            number >>= count + 1
            total += count
            state.points[player, point] = min(count, 100)
        if total > game.checkers:
            whose = "the player on roll" if player == 0 else "the other player"
            raise InputError(f"{start}: {whose} has {total} checkers, more than {game.checkers}")
        state.points[player, 0] = game.checkers - total
    if number:
        raise InputError(f"{start}: the position id {text} goes on after both bars")


def set_match(state: State, start: str, text: str, game: "Backgammon") -> None:
    """Who is on roll and the dice, from a match id; turns the board round for player 1."""
    number = _number(text, 9)
    assert number is not None  # twelve characters are just nine bytes
    values = {name: number >> place & (1 << bits) - 1 for name, (place, bits) in FIELDS.items()}
    where = f"{start}: match id {text}"
    if number >> 67:
        raise InputError(f"{where} has bits after its last field")
    if values["cube"] or values["owner"] != CENTRED or values["double"] or values["resignation"]:
        raise InputError(f"{where} has a turned cube, a double or a resignation; expected a cube in the middle at 1")
    if values["length"] or values["score 0"] or values["score 1"] or values["crawford"]:
        raise InputError(f"{where} is of a match with a score; expected a money game, or the position id alone")
    if values["game"] > OVER:
        raise InputError(f"{where} is of a game that was resigned or dropped")
    if values["roller"] != values["turn"]:
        raise InputError(f"{where} has one player on roll and another to decide")
    first, second = values["first"], values["second"]
    if max(first, second) > 6 or (first == 0) != (second == 0):
        raise InputError(f"{where} has the dice {first} and {second}; expected two from 1 to 6, or none")
    finished = any(state.points[player, 0] == game.checkers for player in range(2))
    if finished != (values["game"] == OVER):
        raise InputError(f"{where} says that the game is {'not ' * finished}over, but the position id does not")
    if values["turn"]:
        state.points[:] = state.points[::-1].copy()
    state.turn = values["turn"]
    if values["game"] == NOT_STARTED:
        opening = game.new()[0]
        if (state.points != opening.points).any() or values["turn"] or first:
            raise InputError(f"{where} says that the game has not started, but the board or the dice have")
        state.turn = -1
    elif first:
        give_dice(state, first, second)


def give_dice(state: State, first: int, second: int) -> None:
    """A roll that nothing has been played of."""
    state.die, state.second = max(first, second), min(first, second) if first != second else 0
    state.left = 2 if first != second else 4


def set_dice(game: "Backgammon", state: State, start: str, text: str) -> None:
    """The roll "31", or what is left of one, "+3", "+33"."""
    if state.left or state.turn < 0:
        raise InputError(f"{start}: {clipped(text)} comes after a match id that has dice or no game of its own")
    roll = ROLL.fullmatch(text)
    if roll:
        give_dice(state, int(roll[1]), int(roll[2]))
        return
    left = re.fullmatch(r"\+(([1-6])\2{0,2})", text)
    if not left:
        raise InputError(
            f"{start}: {clipped(text)} is neither a match id nor a roll such as 31 nor dice left, +3 or +33"
        )
    state.die, state.left = int(left[2]), len(left[1])


def check_possible(game: "Backgammon", state: State, start: str) -> None:
    """Raises `InputError` unless some game could look like this; fills in the masks."""
    game.refresh(state)
    for point in range(1, 25):
        if state.points[0, point] and state.points[1, 25 - point]:
            raise InputError(f"{start}: both players have checkers on player 0's point {point}")
    empty = [bool(state.occupied[player] == 0) for player in range(2)]
    if all(empty):
        raise InputError(f"{start}: both players have borne off all their checkers")
    closed = [(state.points[player, 1:7] > 1).all() for player in range(2)]
    if all(closed) and (state.points[:, BAR] > 0).all():
        raise InputError(f"{start}: both players are on the bar against a closed board, which no game can reach")
    if any(empty) and state.left:
        raise InputError(f"{start}: the game is over, so there are no dice to play")
    unfinished = 0 < state.left < 4 and state.second == 0
    me = max(int(state.turn), 0)
    if unfinished and not sources(int(state.occupied[me]), int(state.blocked[me]), int(state.die)):
        raise InputError(f"{start}: no {state.die} can be played, so the turn is over")


# --- move lists --------------------------------------------------------------------------------------


def parse_moves(game: "Backgammon", start: str, words: list[str]) -> State:
    """The state after rolls and plays from the start; only the last turn may be unfinished."""
    states = game.new()
    state = states[0]
    at = 0
    while at < len(words):
        if game.player(state) == TERMINAL:
            raise InputError(f"{start}: the game is over before {clipped(words[at])}")
        try:
            if state.left == 0:
                game.play(state, parse_action(game, state, words[at]))
                at += 1
                continue
            last = at
            while last < len(words) and not ROLL.fullmatch(words[last]):
                last += 1
            whole = last < len(words)
            for action in parse_play(game, state, " ".join(words[at:last]), whole):
                game.play(state, action)
            at = last
        except InputError as error:
            raise InputError(f"{start}, word {at + 1}: {error}") from None
    return state
