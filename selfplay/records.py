"""Games on disk: written while a match runs, read again and checked by `selfplay replay`.

JSONL, one game per line, is complete: actions with their names in the game's notation, agents, thinking times,
forfeits. Chess is written as PGN too, Go as SGF. Files are written aside and renamed when the match is over, so
that nobody finds half a file.
"""

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, Game, State, legal_actions
from envs.playouts import buffers
from envs.registry import make
from selfplay.matches import GameRecord, is_legal
from selfplay.play import advance, result, turn

NOTATIONS = ("pgn", "sgf")


@contextmanager
def one_sentence(what: str) -> Iterator[None]:
    """An unwritable folder or a full disk as an `InputError`."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{what} cannot be written: {error.strerror or error}") from error


class SavedGame(NamedTuple):
    """A game as a file has it."""

    game_spec: str
    agents: list[str]  # by seat
    actions: list[int]
    names: list[str] | None
    utilities: list[float] | None
    forfeit: dict[str, Any] | None


def names_of(game: Game, actions: Iterable[int]) -> tuple[list[str], State]:
    """The actions as players write them, and the state that they lead to."""
    names = []
    with np.errstate(over="ignore"):
        state = game.new()[0]
        for action in actions:
            names.append(game.action_name(state, action))
            game.play(state, action)
    return names, state


def texts_of(
    game_spec: str, game: Game, agents: Sequence[str], record: GameRecord, kinds: Iterable[str]
) -> dict[str, str]:
    """The game as files have it: one JSON object, PGN, SGF. Workers do this, since names of moves take their time."""
    writers: dict[str, Callable[[], str]] = {
        "jsonl": lambda: json.dumps(line_of(game_spec, game, agents, record)),
        "pgn": lambda: pgn_of(game, agents, record),
        "sgf": lambda: sgf_of(game, agents, record),
    }
    return {kind: writers[kind]() for kind in kinds}


def line_of(game_spec: str, game: Game, agents: Sequence[str], record: GameRecord) -> dict[str, Any]:
    """A game as one JSON object."""
    data = record.to_json()
    del data["texts"]
    names = names_of(game, record.actions)[0]
    return {"game": game_spec, "agents": [agents[number] for number in record.seats], **data, "moves": names}


class Saver:
    """Writes the games of a match aside; `finish` puts the files in place, `close` leaves nothing else behind.

    A target that ends in .jsonl, .pgn or .sgf is one file of that kind; any other is a folder for games.jsonl, for
    games.pgn (chess) or games.sgf (Go), and for the report, result.json.
    """

    def __init__(self, target: Path, game_spec: str, game: Game, agents: Sequence[str]):
        self.game_spec, self.game, self.agents = game_spec, game, agents
        self.files: dict[Path, TextIO] = {}  # what each will be called -> where it is written now
        self.made: Path | None = None
        self.report: Path | None = None
        own = [kind for kind in NOTATIONS if hasattr(game, kind)]
        suffix = target.suffix.lower().lstrip(".")
        if suffix in NOTATIONS and suffix not in own:
            raise InputError(f"--save {target}: {game_spec} has no {suffix.upper()}; use a .jsonl file or a folder")
        if suffix in ("jsonl", *NOTATIONS):
            if target.exists() and not target.is_file():
                raise InputError(f"--save {target}: there is something else than a file of that name")
            paths = [target]
        else:
            if target.exists() and not target.is_dir():
                raise InputError(f"--save {target} must be a folder or end in .jsonl, .pgn or .sgf")
            paths = [target / f"games.{kind}" for kind in ("jsonl", *own)]
            self.report = target / "result.json"
        self.what = f"--save {target}"
        try:
            with one_sentence(self.what):
                if self.report and not target.exists():
                    target.mkdir()
                    self.made = target
                for path in [*paths, *filter(None, [self.report])]:
                    self.files[path] = _aside(path).open("w", encoding="utf-8")
        except InputError:
            self.close()
            raise

    @property
    def kinds(self) -> tuple[str, ...]:
        """What texts of a game it needs."""
        return tuple(path.suffix.lower().lstrip(".") for path in self.files if path != self.report)

    def add(self, record: GameRecord) -> None:
        texts = record.texts or texts_of(self.game_spec, self.game, self.agents, record, self.kinds)
        with one_sentence(self.what):
            for path, file in self.files.items():
                if path != self.report:
                    file.write(texts[path.suffix.lower().lstrip(".")] + "\n")
                    file.flush()

    def finish(self, report: dict[str, Any]) -> None:
        """Everything to disk and under its name."""
        with one_sentence(self.what):
            for path, file in self.files.items():
                if path == self.report:
                    file.write(json.dumps(report, indent=1) + "\n")
                file.flush()
                os.fsync(file.fileno())
                file.close()
            for path in list(self.files):
                os.replace(_aside(path), path)
                del self.files[path]
            self.made = None

    def close(self) -> None:
        """Removes what has not been finished."""
        for path, file in self.files.items():
            with contextlib.suppress(OSError):
                file.close()
            with contextlib.suppress(OSError):
                _aside(path).unlink()
        self.files.clear()
        if self.made:
            with contextlib.suppress(OSError):
                self.made.rmdir()


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.part")


# --- PGN and SGF -------------------------------------------------------------------------------------


def pgn_of(game: Any, agents: Sequence[str], record: GameRecord) -> str:
    """One game of chess; a forfeit has its result and says why in the tag Termination."""
    white, black = (agents[number] for number in record.seats)
    tags = {"Event": "selfplay match", "Round": str(record.number), "White": white, "Black": black}
    if record.forfeit is None:
        return game.pgn(record.actions, tags=tags)
    reason = "".join(c if c.isprintable() else " " for c in f"{record.forfeit['kind']}: {record.forfeit['reason']}")
    text = game.pgn(record.actions, tags={**tags, "Termination": reason})
    result = "0-1" if record.forfeit["seat"] == 0 else "1-0"
    return re.sub(r"\*\n$", f"{result}\n", text.replace('[Result "*"]', f'[Result "{result}"]'))


def sgf_of(game: Any, agents: Sequence[str], record: GameRecord) -> str:
    """One game of Go, on one line."""
    names = [agents[number].replace("\\", "\\\\").replace("]", "\\]") for number in record.seats]
    head = f"(;FF[4]PB[{names[0]}]PW[{names[1]}]"
    if record.forfeit:
        head += f"RE[{'WB'[record.forfeit['seat']]}+Forfeit]"
    with np.errstate(over="ignore"):
        return game.sgf(names_of(game, record.actions)[1]).replace("(;FF[4]", head, 1)


def _read_pgn(text: str, path: Path) -> Iterator[SavedGame]:
    game = make("chess")
    for part in re.split(r"(?m)^(?=\[Event )", text):
        if not part.strip():
            continue
        tags = dict(re.findall(r'(?m)^\[(\w+) "((?:[^"\\]|\\.)*)"\]', part))
        if "FEN" in tags:
            raise InputError(f"{path}: a game that starts from a FEN cannot be replayed")
        body = re.sub(r"(?m)^\[.*\]\s*$|\{[^}]*\}|;.*$|\$\d+", " ", part)
        while (plain := re.sub(r"\([^()]*\)", " ", body)) != body:  # variations, innermost first
            body = plain
        words = re.sub(r"\d+\.+|(?<!\S)(1-0|0-1|1/2-1/2|\*)(?!\S)", " ", body).split()
        state, actions = game.new()[0], []
        for number, word in enumerate(words, 1):
            try:
                actions.append(int(game.parse_action(state, word)))
            except InputError as error:
                raise InputError(f"{path}, move {number}: {error}") from None
            game.play(state, actions[-1])
        agents = [re.sub(r"\\(.)", r"\1", tags.get(side, "?")) for side in ("White", "Black")]
        yield SavedGame("chess", agents, actions, None, None, None)


def _read_sgf(text: str) -> Iterator[SavedGame]:
    from envs.go import open_sgf

    for part in re.split(r"(?m)^(?=\(;)", text):
        if part.strip():
            game, state = open_sgf(part)
            found = [re.search(rf"(?<![A-Z]){tag}\[((?:[^\]\\]|\\.)*)\]", part) for tag in ("PB", "PW")]
            agents = [re.sub(r"\\(.)", r"\1", match[1]) if match else "?" for match in found]
            spec = f"go:size={game.size},rows={game.rows},komi={game.komi}"
            yield SavedGame(spec, agents, game.moves_of(state), None, None, None)


# --- reading -----------------------------------------------------------------------------------------


def load(path: Path) -> list[SavedGame]:
    """The games of a .jsonl, .pgn or .sgf file, or of the games.jsonl in a folder."""
    if path.is_dir():
        path = path / "games.jsonl"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise InputError(f"file {str(path)!r} cannot be read: {reason}") from error
    suffix = path.suffix.lower()
    if suffix == ".pgn":
        games = list(_read_pgn(text, path))
    elif suffix == ".sgf":
        games = list(_read_sgf(text))
    else:
        games = list(_read_lines(text, path))
    if not games:
        raise InputError(f"file {str(path)!r} has no games")
    return games


def _read_lines(text: str, path: Path) -> Iterator[SavedGame]:
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
            if "tournament" in data:
                continue
            yield SavedGame(
                str(data["game"]),
                [str(agent) for agent in data["agents"]],
                [int(action) for action in data["actions"]],
                data.get("moves"),
                data.get("utilities"),
                data.get("forfeit"),
            )
        except (ValueError, KeyError, TypeError) as error:
            if number == len(lines):  # torn: its writer was killed in the middle of it
                return
            raise InputError(f"{path}, line {number}, is not a saved game") from error


def replayed(saved: SavedGame, where: str, named: bool = True) -> Iterator[tuple[int, str, State]]:
    """Each move as (who, name, state after it), the start first as (TERMINAL, "", start). Every move is checked, and
    at the end the result; an `InputError` begins with `where`. Names are left out where nobody wants them."""
    game = make(saved.game_spec)
    out = buffers(game)[0]
    state: Any = game.new()[0]
    yield TERMINAL, "", state.copy()
    for ply, action in enumerate(saved.actions):
        mover, name = int(turn(game, state)), ""
        if mover == TERMINAL:
            raise InputError(f"{where}, move {ply + 1}: the game is over before it")
        legal = action in legal_actions(game, state) if mover == CHANCE else is_legal(game, state, action, out)
        if not legal:
            raise InputError(f"{where}, move {ply + 1}: action {action} is not legal")
        if named:
            with np.errstate(over="ignore"):
                name = game.action_name(state, action)
            if saved.names is not None and saved.names[ply : ply + 1] != [name]:
                raise InputError(f"{where}, move {ply + 1}: action {action} is {name}, not {saved.names[ply:][:1]}")
        advance(game, state, action)
        yield mover, name, state.copy()
    if saved.forfeit is None and saved.utilities is not None:
        if int(turn(game, state)) != TERMINAL:
            raise InputError(f"{where}: the game is not over after its last move")
        points = np.zeros(game.num_players)
        result(game, state, points)
        if points.tolist() != saved.utilities:
            raise InputError(f"{where}: the result is {points.tolist()}, not {saved.utilities}")


def mover_name(saved: SavedGame, mover: int) -> str:
    """Who moved, for people."""
    return "chance" if mover == CHANCE else f"player {mover + 1} ({saved.agents[mover]})"
