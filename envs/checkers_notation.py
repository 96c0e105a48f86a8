"""How checkers players write moves and positions: Portable Draughts Notation (PDN) and its FEN, and a drawing.

A FEN names the side to move and the squares of both sides, kings with a K: "B:W18,24,K10:B12,16,K22". Men may be
given as ranges, "W:W21-32:B1-12"; a dot at the end is allowed. Two more fields are optional:
- "H12": 12 plies since the last capture or man move, for the 40-move rule (a field that servers write as well);
- "J22": the piece on 22 is in the middle of a multi-jump and must go on; only this program writes it.
A FEN does not carry the history that the repetition rule needs: after reading one, repetitions are counted from
that position on. Move lists do carry it.
"""

import re
from typing import TYPE_CHECKING

import numpy as np

from envs.errors import InputError
from envs.game import TERMINAL, State, legal_actions

if TYPE_CHECKING:
    from envs.checkers import Checkers

COLOURS = "BW"  # players 0 and 1
NAMES = ("Black", "White")
FEN_EXAMPLE = "B:W18,24,K10:B12,16,K22"


def place(square: int) -> tuple[int, int]:
    """Row and column of a square in the diagram, White at the bottom.

    >>> place(1), place(5), place(32)
    ((0, 1), (1, 0), (7, 6))
    """
    row = (square - 1) // 4
    return row, 2 * ((square - 1) % 4) + 1 - row % 2


def square_at(row: int, column: int) -> int:
    """The number of a playable square."""
    return 4 * row + column // 2 + 1


def clipped(text: str) -> str:
    """The text for an error message, its middle left out where it is long."""
    return repr(text if len(text) <= 120 else f"{text[:80]} … {text[-30:]}")


def move_name(state: State, action: int, jumps: bool) -> str:
    """The PDN name of one step or one jump."""
    if state.turn == 0:
        action = 127 - action
    square, distance = action // 4 + 1, 2 if jumps else 1
    row, column = place(square)
    row += -distance if action % 4 < 2 else distance
    column += distance if action % 2 else -distance
    return f"{square}{'x' if jumps else '-'}{square_at(row, column)}"


# --- FEN ---------------------------------------------------------------------------------------------


def fen(game: "Checkers", state: State) -> str:
    """The position as FEN; H and J are left out where they say nothing."""
    sides: tuple[list[str], list[str]] = ([], [])
    for square, (player, king) in game.pieces(state).items():
        sides[player].append(f"K{square}" if king else str(square))
    text = f"{COLOURS[state.turn]}:W{','.join(sides[1])}:B{','.join(sides[0])}"
    if state.quiet:
        text += f":H{state.quiet}"
    if state.jumper:
        view = (int(state.jumper).bit_length() - 1) // 2  # squares are bits 2v or 2v + 1 of the mover's view
        text += f":J{view + 1 if state.turn == 1 else 32 - view}"
    return text


def parse_fen(game: "Checkers", text: str) -> State:
    """The state of a FEN; raises `InputError` for bad text and for positions that no game can reach."""
    start = f"position {clipped(text)}"
    fields = [field.strip() for field in text.strip().removesuffix(".").upper().split(":")]
    if fields[0] not in ("B", "W"):
        raise InputError(f"{start}: the side to move must be B or W, as in {FEN_EXAMPLE}")
    mover = COLOURS.index(fields[0])
    given: dict[str, str] = {}
    for field in fields[1:]:
        letter = field[:1]
        if letter not in ("B", "W", "H", "J"):
            raise InputError(f"{start}: field {field!r} must begin with B, W, H or J, as in {FEN_EXAMPLE}")
        if letter in given:
            raise InputError(f"{start}: field {letter} is given twice")
        given[letter] = field[1:].strip()
    sides = [_squares(start, letter, given) for letter in COLOURS]
    for player in range(2):
        _check_side(start, player, sides[player])
    both = sorted(set(sides[0]) & set(sides[1]))
    if both:
        raise InputError(f"{start}: square {both[0]} is named for both sides")
    if not sides[1 - mover]:
        raise InputError(f"{start}: {NAMES[1 - mover]}, who moved last, has no pieces")
    state = game.new()[0]
    boards = [0, 0, 0]
    for player, squares in enumerate(sides):
        for square, king in squares.items():
            cell = int(game.origin[4 * (square - 1 if mover == 1 else 32 - square)])
            boards[0 if player == mover else 1] |= cell
            boards[2] |= cell if king else 0
    state.mine, state.theirs, state.kings = (np.uint64(board) for board in boards)
    state.turn = mover
    state.quiet = _quiet_plies(start, game, given)
    if "J" in given:
        _set_jumper(start, game, state, given["J"])
    return state


def _squares(start: str, letter: str, given: dict[str, str]) -> dict[int, bool]:
    """Square -> whether a king stands there."""
    if letter not in given:
        raise InputError(f"{start}: the squares of {letter} are missing, as in {FEN_EXAMPLE}")
    squares: dict[int, bool] = {}
    for word in given[letter].split(",") if given[letter] else []:
        match = re.fullmatch(r"\s*(K?)([0-9]{1,2})(?:-([0-9]{1,2}))?\s*", word)
        if not match:
            raise InputError(f"{start}: {clipped(word)} is not a square such as 18, K18 or 1-12")
        first, last = int(match[2]), int(match[3] or match[2])
        if not 1 <= first <= last <= 32:
            raise InputError(f"{start}: squares must be from 1 to 32, not {word.strip()!r}")
        for square in range(first, last + 1):
            if square in squares:
                raise InputError(f"{start}: square {square} is named twice")
            squares[square] = bool(match[1])
    return squares


def _check_side(start: str, player: int, squares: dict[int, bool]) -> None:
    if len(squares) > 12:
        raise InputError(f"{start}: {NAMES[player]} has {len(squares)} pieces, more than 12")
    king_row = range(29, 33) if player == 0 else range(1, 5)
    for square, king in squares.items():
        if square in king_row and not king:
            raise InputError(f"{start}: a man of {NAMES[player]} cannot stand on {square}, in its king row")


def _quiet_plies(start: str, game: "Checkers", given: dict[str, str]) -> int:
    text = given.get("H", "0")
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > game.quiet_plies:
        raise InputError(
            f"{start}: {clipped('H' + text)} must be H0 to H{game.quiet_plies}, the plies since a capture or man move"
        )
    return int(text)


def _set_jumper(start: str, game: "Checkers", state: State, text: str) -> None:
    if not re.fullmatch(r"[0-9]{1,2}", text) or not 1 <= int(text) <= 32:
        raise InputError(f"{start}: {clipped('J' + text)} must name a square from 1 to 32")
    if state.quiet:
        raise InputError(f"{start}: H must be 0 in the middle of a multi-jump, J{text}")
    if int(state.theirs).bit_count() > 11:
        raise InputError(f"{start}: in the middle of a multi-jump, J{text}, the other side cannot have 12 pieces")
    square = int(text)
    state.jumper = game.origin[4 * (square - 1 if state.turn == 1 else 32 - square)] & state.mine
    if not state.jumper:
        raise InputError(f"{start}: J{text} must name a piece of {NAMES[state.turn]}, the side to move")
    if not any(game.is_jump(state, action) for action in legal_actions(game, state)):
        raise InputError(f"{start}: the piece on {square} is said to be in a multi-jump but cannot jump")


# --- move lists --------------------------------------------------------------------------------------


def parse_moves(game: "Checkers", text: str) -> State:
    """The state after PDN moves from the start; move numbers ("1.") are skipped."""
    states = game.new()
    words = re.sub(r"\b[0-9]{1,3}\.", " ", text).split()
    for number, word in enumerate(words, 1):
        start = f"position {clipped(text)}, move {number}"
        if game.player(states[0]) == TERMINAL:
            raise InputError(f"{start}: the game is over before {clipped(word)}")
        for action in turn_actions(start, game, states[0], word):
            game.play(states[0], action)
    return states[0]


def turn_actions(start: str, game: "Checkers", state: State, word: str) -> list[int]:
    """The actions that one word of a move list stands for; `start` begins the error message."""
    squares = word.lower().split("x")
    names = [f"{squares[i]}x{squares[i + 1]}" for i in range(len(squares) - 1)] or [word]
    if len(names) == 1 and word.lower() not in (game.action_name(state, a) for a in legal_actions(game, state)):
        routes = [route for route in _routes(game, state) if _ends(route) == tuple(squares)]
        if len(routes) == 1:
            return [action for action, _ in routes[0]]
        if routes:
            ways = ", ".join("x".join([squares[0], *(name.split("x")[1] for _, name in r)]) for r in routes)
            raise InputError(f"{start}: {word!r} can be any of {ways}; name all squares")
    actions: list[int] = []
    state = _copy(game, state)
    for i, name in enumerate(names):
        if i and state.jumper == 0:
            raise InputError(f"{start}: {clipped(word)} goes on after the turn has ended with {names[i - 1]}")
        try:
            actions.append(game.parse_action(state, name))
        except InputError as error:
            raise InputError(f"{start}: {error}") from None
        game.play(state, actions[-1])
    return actions


def _ends(route: list[tuple[int, str]]) -> tuple[str, str]:
    return route[0][1].split("x")[0], route[-1][1].split("x")[-1]


def _routes(game: "Checkers", state: State) -> list[list[tuple[int, str]]]:
    """All whole turns of jumps, each a list of (action, name)."""
    found = []
    for action in legal_actions(game, state):
        if not game.is_jump(state, action):
            continue
        after = _copy(game, state)
        game.play(after, action)
        step = (action, game.action_name(state, action))
        found += [[step, *rest] for rest in _routes(game, after)] if after.jumper else [[step]]
    return found


def _copy(game: "Checkers", state: State) -> State:
    states = game.new()
    states[0] = state
    return states[0]


# --- drawing -----------------------------------------------------------------------------------------


def drawing(pieces: dict[int, tuple[int, bool]], numbers: bool) -> str:
    """The board as text: b and w are men, B and W kings; with the numbers of the empty squares if wanted."""
    marks = {(0, False): "\033[91mb", (1, False): "\033[97mw", (0, True): "\033[1;91mB", (1, True): "\033[1;97mW"}
    width = 2 if numbers else 1
    rows = [[" " * width] * 8 for _ in range(8)]
    for square in range(1, 33):
        row, column = place(square)
        if square in pieces:
            rows[row][column] = " " * (width - 1) + marks[pieces[square]] + "\033[0m"
        else:
            rows[row][column] = f"\033[90m{square:>2}\033[0m" if numbers else "."
    return "\n".join(" ".join(words).rstrip() for words in rows)
