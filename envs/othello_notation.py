"""How Othello players write moves and positions: OBF boards, move lists, scores of moves, and a drawing.

OBF is one line per position: the cells from a1 along the rows as X, O and -, a space, the side to move, and after
semicolons, where known, moves with their exact scores: `--XO... X; G8:+18; H1:+12;`. A % begins a comment.

Move lists run on, `f5d6c3`, or have spaces or commas between the moves. A board is refused where it is plain that no game reaches it:
- a centre cell is empty;
- a disc had no two discs in line beside it to be played against, in whatever order the discs came;
- there are four discs and this is not the start (its mirror image, which some programs begin with, is let through);
- nobody can have made the last move: it leaves its disc in line with a turned one and one more of the same colour,
  and if that colour is to move again, then the other had to pass.
"""

import re
from typing import TYPE_CHECKING

import numpy as np

from envs.bits import lowest
from envs.errors import InputError
from envs.game import TERMINAL, State

if TYPE_CHECKING:
    from envs.othello import Othello

PASSES = ("pass", "ps", "pa", "--")
_CELLS = {"X": 1, "x": 1, "*": 1, "O": 2, "o": 2, "-": 0, ".": 0}
_SIDES = {"X": 0, "x": 0, "*": 0, "O": 1, "o": 1}
_NAMES = ("X", "O")
_MOVES = re.compile(r"(?:[a-z][0-9]{1,2}|pass|ps|pa|--|[\s,]+)*")
_MOVE = re.compile(r"[a-z][0-9]{1,2}|pass|ps|pa|--")
_SCORE = re.compile(r"\s*([a-hA-H][1-8]|(?i:pass|ps|pa)|--)\s*:\s*([+-]?[0-9]{1,2})\s*")


def clipped(text: str) -> str:
    """The text for an error message, cut where it is long."""
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _without_comment(line: str) -> str:
    return line.partition("%")[0]


def parse_position(game: "Othello", text: str) -> State:
    """The state of an OBF line or of the moves played; raises `InputError` otherwise.

    Passes may be left out of the moves, as transcripts do: who has no move can do nothing else.
    """
    position = _without_comment(text).partition(";")[0].strip()
    if position and set(position) <= {*_CELLS, " "}:
        return parse_board(game, position)
    moves = position.lower()
    if not _MOVES.fullmatch(moves):
        raise InputError(
            f"position {clipped(text)} is neither OBF ({game.num_cells} cells as X, O or -, a space, the side "
            "to move X or O) nor the moves played, such as f5d6c3"
        )
    states = game.new()
    for number, move in enumerate(_MOVE.findall(moves), 1):
        if game.player(states[0]) == TERMINAL:
            raise InputError(f"position {clipped(text)}: the game is over before move {number}, {move!r}")
        if not states[0].moves and move not in PASSES:
            game.play(states[0], game.num_cells)
        try:
            action = game.parse_action(states[0], move)
        except InputError as error:
            raise InputError(f"position {clipped(text)}, move {number}: {error}") from None
        game.play(states[0], action)
    return states[0]


def parse_board(game: "Othello", text: str) -> State:
    """The state of an OBF board and side to move."""
    words, start = text.split(), f"position {clipped(text)}"
    if len(words) != 2 or len(words[0]) != game.num_cells or words[1] not in _SIDES:
        raise InputError(f"{start}: OBF is {game.num_cells} cells (X, O or -), a space and the side to move (X or O)")
    boards = [0, 0, 0]
    for cell, mark in enumerate(words[0]):
        boards[_CELLS[mark]] |= 1 << cell
    empty, black, white = boards
    state = game.new()[0]
    state.turn = _SIDES[words[1]]
    state.mine, state.theirs = (black, white) if state.turn == 0 else (white, black)
    why = _impossible(game, state, empty)
    if why:
        raise InputError(f"{start} is impossible: {why}")
    game.settle(state)
    return state


def _impossible(game: "Othello", state: State, empty: int) -> str:
    """Why no game reaches the position, or nothing."""
    mine, theirs = int(state.mine), int(state.theirs)
    if empty & int(game.centre):
        return "a centre cell is empty, and the game starts with four discs"
    orphans = _unplayable(game, mine | theirs)
    if orphans:
        return f"the disc on {game.action_name(None, lowest(orphans))} has no discs beside it to outflank"
    if mine | theirs == int(game.centre):
        start = game.new()[0]
        starts = (int(start.mine), int(start.theirs))
        if state.turn != 0 or (mine, theirs) not in (starts, starts[::-1]):
            return "with four discs only the start is, two of each colour crosswise and X to move"
    elif not _last_discs(game, theirs):
        mover, other = _NAMES[state.turn], _NAMES[1 - state.turn]
        if not _last_discs(game, mine):
            return "no disc can be the last one played, in line with a turned disc and one more of its colour"
        with np.errstate(over="ignore"):
            if game.reach(state.theirs, state.mine):
                return f"{other} cannot have moved last, nor did it have to pass, so {mover} is not to move"
    return ""


def _lines(game: "Othello") -> list[tuple[int, int]]:
    """By direction: the step, and the cells that a line can cross that way without leaving its row."""
    whole, middle = int(game.board), int(game.middle)
    return [(1, middle), (game.size - 1, middle), (game.size, whole), (game.size + 1, middle)]


def _unplayable(game: "Othello", occupied: int) -> int:
    """The discs that no order of play can have put there: each needs two discs in line before it."""
    built = int(game.centre)
    while True:
        grown = built
        for step, inner in _lines(game):
            over = built & inner
            grown |= (over & built << step) << step | (over & built >> step) >> step
        grown &= occupied
        if grown == built:
            return occupied & ~built
        built = grown


def _last_discs(game: "Othello", discs: int) -> int:
    """The discs of one colour that it can have played last."""
    found = 0
    for step, inner in _lines(game):
        over = discs & inner
        found |= (over & discs << step) << step | (over & discs >> step) >> step
    return found & discs & ~int(game.centre)


def position_text(game: "Othello", state: State) -> str:
    """The board and the side to move in OBF."""
    return "".join("-XO"[cell] for cell in game.cells(state).reshape(-1)) + " " + _NAMES[state.turn]


def drawing(game: "Othello", state: State) -> str:
    """The board with coordinates, legal moves as stars, the discs and the side to move."""
    marks = [".", "\033[96mX\033[0m", "\033[93mO\033[0m", "\033[90m*\033[0m"]
    board = game.cells(state)
    for cell in range(game.num_cells):
        board[cell // game.size, cell % game.size] += 3 * (int(state.moves) >> cell & 1)
    letters = "  " + " ".join("abcdefgh"[: game.size])
    rows = [f"{number} " + " ".join(marks[cell] for cell in row) for number, row in enumerate(board, 1)]
    black, white = np.count_nonzero(board == 1), np.count_nonzero(board == 2)
    side = _NAMES[state.turn]
    what = "game over" if state.over else f"{side} to move" if state.moves else f"{side} must pass"
    return "\n".join([letters, *rows, f"X {black}, O {white}; {what}"])


def move_scores(line: str) -> dict[str, int]:
    """The scores of the moves in a line of an OBF file, from the mover's side, empties to the winner.

    >>> move_scores("--XO-- X; G8:+18; a2:-6;")
    {'g8': 18, 'a2': -6}
    """
    scores: dict[str, int] = {}
    for part in _without_comment(line).split(";")[1:]:
        if not part.strip():
            continue
        found = _SCORE.fullmatch(part)
        if not found or abs(int(found[2])) > 64:
            raise InputError(
                f"OBF line {clipped(line)}: {clipped(part.strip())} is not a move and its score from -64 to +64, "
                "like G8:+18"
            )
        name = "pass" if found[1].lower() in PASSES else found[1].lower()
        if name in scores:
            raise InputError(f"OBF line {clipped(line)}: the move {name} has two scores")
        scores[name] = int(found[2])
    return scores
