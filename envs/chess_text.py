"""Chess moves and games in writing: UCI, SAN and PGN (Edwards 1994, "Portable Game Notation Specification").

Moves are read in UCI or SAN, with or without the marks for capture, check and judgement; they are written in UCI,
which is unique without looking at the position, and for people in SAN.
"""

import re
import textwrap
from typing import TYPE_CHECKING

import numpy as np

from envs.chess_board import CHECKMATE, PLAIN_MOVES, QUEEN
from envs.chess_fen import POSITIONS, fen, letters, parse_fen, square_name, square_number
from envs.chess_moves import underpromotion
from envs.errors import InputError
from envs.game import TERMINAL, State, legal_actions

if TYPE_CHECKING:
    from envs.chess import Chess

PROMOTIONS = "nbrq"  # by number: KNIGHT, BISHOP, ROOK, QUEEN


def parse_position(game: "Chess", text: str) -> State:
    """A name, a FEN or EPD, or either with `moves` and UCI or SAN moves behind it."""
    words, after = text.split(), []
    if "moves" in words:
        after, words = words[words.index("moves") + 1 :], words[: words.index("moves")]
    if words[:1] == ["fen"]:
        words = words[1:]
    if not words:
        raise InputError(f"position {text!r} is empty: give a FEN or one of {', '.join(POSITIONS)}")
    if len(words) == 1 and "/" not in words[0]:
        if words[0].lower() not in POSITIONS:
            raise InputError(f"position {text!r} is neither a FEN nor one of {', '.join(POSITIONS)}")
        words = POSITIONS[words[0].lower()].split()
    state = parse_fen(game, text, words)
    for number, word in enumerate(after, 1):
        if game.player(state) == TERMINAL:
            raise InputError(f"position {text!r}: the game is over before move {number}, {word!r}")
        try:
            game.play(state, parse_move(game, state, word))
        except InputError as error:
            raise InputError(f"position {text!r}, move {number}: {error}") from None
    return state


# --- moves -------------------------------------------------------------------------------------------


def parts(state: State, action: int) -> tuple[int, int, int | None]:
    """From and to as white counts the squares, and the number of the piece that a pawn becomes."""
    turned = 56 if state.turn else 0
    if action >= PLAIN_MOVES:
        rest = action - PLAIN_MOVES
        return (48 + rest // 9) ^ turned, (55 + rest // 9 + rest // 3 % 3) ^ turned, rest % 3
    source, target = action >> 6, action & 63
    promotes = target >= 56 and int(state.pawns) >> source & 1
    return source ^ turned, target ^ turned, QUEEN if promotes else None


def uci(state: State, action: int) -> str:
    source, target, promotion = parts(state, action)
    return square_name(source) + square_name(target) + ("" if promotion is None else PROMOTIONS[promotion])


def san(game: "Chess", state: State, action: int) -> str:
    """Standard algebraic notation, with + for check and # for mate."""
    source, target, promotion = parts(state, action)
    board = letters(state)
    man = board[source].upper()
    takes = board[target] != "." or (man == "P" and (source - target) % 8 != 0)
    goal = ("x" if takes else "") + square_name(target)
    if man == "K" and abs(source - target) == 2:
        text = "O-O" if target > source else "O-O-O"
    elif man == "P":
        text = (square_name(source)[0] if takes else "") + goal
        text += "" if promotion is None else "=" + PROMOTIONS[promotion].upper()
    else:
        text = man + _origin(game, state, board, source, target) + goal
    after = _after(game, state, action)
    return text + ("#" if after.ending == CHECKMATE else "+" if after.checkers else "")


def _origin(game: "Chess", state: State, board: list[str], source: int, target: int) -> str:
    """What tells this man from others of its kind that can go to the same square: nothing, file, rank or both."""
    turned, allowed = 56 if state.turn else 0, game.allowed(state)
    rivals = []
    for start in range(64):
        if start != source and board[start] == board[source]:
            reached = int(game.targets(state, start ^ turned, allowed))
            if reached >> (target ^ turned) & 1:
                rivals.append(start)
    if not rivals:
        return ""
    if all((start - source) % 8 for start in rivals):
        return square_name(source)[0]
    if all(start >> 3 != source >> 3 for start in rivals):
        return square_name(source)[1]
    return square_name(source)


def _after(game: "Chess", state: State, action: int) -> State:
    copy = np.zeros(1, game.state).view(np.recarray)
    copy[0] = state
    with np.errstate(over="ignore"):
        game.play(copy[0], action)
    return copy[0]


_UCI = re.compile(r"([a-h][1-8])([a-h][1-8])([nbrq])?", re.IGNORECASE)
_CASTLES = re.compile(r"([O0]-[O0](-[O0])?)[+#]?[!?]{0,2}")
_SAN = re.compile(r"([KQRBN])?([a-h])?([1-8])?([x:-])?([a-h][1-8])(?:=?([NBRQ]))?(?: ?e\.p\.)?[+#]?[!?]{0,2}")


def parse_move(game: "Chess", state: State, text: str) -> int:
    """The legal action that the text names in UCI or SAN."""
    word = text.strip()
    if not (_UCI.fullmatch(word) or _SAN.fullmatch(word) or _CASTLES.fullmatch(word)):
        raise InputError(f"move {text!r} is neither UCI (e2e4, e7e8q) nor SAN (e4, Nf3, exd6, O-O, e8=Q)")
    if game.player(state) == TERMINAL:
        raise InputError(f"move {text!r} is not legal here: the game is over")
    # B5b6 is a bishop's move in SAN and no capital of UCI; E2E4 can only be UCI.
    as_uci = _UCI.fullmatch(word) and (word.islower() or not _SAN.fullmatch(word))
    if as_uci:
        action = _from_uci(game, state, word.lower())
        if action is not None:
            return action
        if len(word) == 4 and _from_uci(game, state, word.lower() + "q") is not None:
            raise InputError(f"move {text!r} must name the piece that the pawn becomes: {word.lower()}q, r, b or n")
    names = {uci(state, action): action for action in legal_actions(game, state)}
    matches = [] if as_uci else _matching(state, word, names)
    if len(matches) == 1:
        return names[matches[0]]
    if matches:
        raise InputError(f"move {text!r} can mean several moves here: {', '.join(matches)}")
    some = ", ".join(list(names)[:40]) + (", …" if len(names) > 40 else "")
    raise InputError(f"move {text!r} is not legal here; legal moves: {some}")


def _from_uci(game: "Chess", state: State, word: str) -> int | None:
    """The action that a word such as e7e8q names, if it is legal; looks at the moves of that man alone."""
    turned = 56 if state.turn else 0
    source, target = square_number(word[:2]) ^ turned, square_number(word[2:4]) ^ turned
    if not int(state.mine) >> source & 1:
        return None
    promotes = target >= 56 and int(state.pawns) >> source & 1
    if bool(promotes) != (len(word) == 5):
        return None
    if not int(game.targets(state, source, game.allowed(state))) >> target & 1:
        return None
    if promotes and word[4] != "q":
        return int(underpromotion(source, target)) + PROMOTIONS.index(word[4])
    return 64 * source + target


def _matching(state: State, word: str, names: dict[str, int]) -> list[str]:
    """The legal moves that a word in SAN fits."""
    castles, match, board = _CASTLES.fullmatch(word), _SAN.fullmatch(word), letters(state)
    found = []
    for name, action in names.items():
        source, target, promotion = parts(state, action)
        man = board[source].upper()
        is_castling = man == "K" and abs(source - target) == 2
        if castles:
            if is_castling and (target < source) == bool(castles[2]):
                found.append(name)
            continue
        assert match
        letter, file, rank, takes, goal, piece = match.groups()
        become = "" if promotion is None else PROMOTIONS[promotion].upper()
        fits = man == (letter or "P") and name[2:4] == goal and become == (piece or "") and not is_castling
        fits = fits and file in (None, name[0]) and rank in (None, name[1])
        if takes in ("x", ":"):
            fits = fits and (board[target] != "." or (man == "P" and (source - target) % 8 != 0))
        if fits:
            found.append(name)
    return found


# --- PGN ---------------------------------------------------------------------------------------------


def pgn(game: "Chess", actions: list[int], position: str, tags: dict[str, str]) -> str:
    """One game in PGN's export format: the seven tags, others as given, and the moves in lines of 80."""
    state = parse_position(game, position)
    first = fen(state)
    words: list[str] = []
    for action in actions:
        if game.player(state) == TERMINAL or action not in legal_actions(game, state):
            raise InputError(f"action {action} is not legal after {' '.join(words) or 'the start'}")
        if state.turn == 0 or not words:
            words.append(f"{state.fullmove}{'.' if state.turn == 0 else '...'}")
        words.append(san(game, state, action))
        state = _after(game, state, action)
    result = _result(game, state)
    header = {"Event": "?", "Site": "?", "Date": "????.??.??", "Round": "?", "White": "?", "Black": "?"}
    header |= {**tags, "Result": result}
    if first != POSITIONS["startpos"]:
        header |= {"SetUp": "1", "FEN": first}
    seven = ("Event", "Site", "Date", "Round", "White", "Black", "Result")
    order = [*seven, *sorted(name for name in header if name not in seven)]
    for name in order:
        if not re.fullmatch(r"[A-Za-z0-9_]+", name):
            raise InputError(f"PGN tag {name!r} must consist of letters, digits and underscores")
        if not header[name].isprintable():
            raise InputError(f"PGN tag {name} has the value {header[name]!r}, which must be one printable line")
    lines = [f'[{name} "{_quoted(header[name])}"]' for name in order]
    moves = textwrap.wrap(" ".join([*words, result]), 79, break_on_hyphens=False, break_long_words=False)
    return "\n".join([*lines, "", *moves, ""])


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _result(game: "Chess", state: State) -> str:
    if state.ending == CHECKMATE:
        return "1-0" if state.turn == 1 else "0-1"
    return "*" if game.player(state) != TERMINAL else "1/2-1/2"
