"""Opening books: what is known of a game's first moves, by search and from games that were played.

A book is an SQLite file with a row per position and move. Mirror images are one position (the image with the smallest
key), so a book learns from all of them. A row holds what a search said (value, depth, and which agent) and what games
showed (how many, and the mover's wins, draws and losses after that move).

A file beside it (`<book>.sha256`) holds the checksum of the book's bytes; a book that differs is refused. A book is
written aside and renamed, so that one that was there before stays whole whatever happens.
"""

import hashlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from envs.compiled import njit
from envs.errors import InputError
from envs.game import Game, State, legal_actions
from envs.registry import spec_of
from selfplay.search.result import AVERAGE, EXACT, MoveReport, Result

VERSION = 1
LEAST_GAMES = 4  # so many games until a move's results count as knowledge
_SCHEMA = """
create table meta (name text primary key, text text not null);
create table moves (
    position integer not null, action integer not null,
    value real, depth integer not null, agent text not null,
    games integer not null, wins integer not null, draws integer not null, losses integer not null,
    primary key (position, action)
) without rowid;
"""


@dataclass
class Entry:
    """What is known of one move. `value` is None until a search has looked at it."""

    value: float | None = None
    depth: int = 0
    agent: str = ""
    games: int = 0
    wins: int = 0
    draws: int = 0
    losses: int = 0

    @property
    def score(self) -> float:
        """The mover's share of the points in the games."""
        return (self.wins + 0.5 * self.draws) / self.games if self.games else 0.5


class Place(NamedTuple):
    """A position as the book sees it: its key, and what each action here is called there.

    A position that is its own mirror image has moves that are images of each other: they have one name.
    """

    key: int
    actions: np.ndarray


@njit
def smallest_image(game, state, room):
    """The smallest key of all mirror images, and which images have it (bit s: symmetry s)."""
    best, which = np.uint64(game.key(state)), np.int64(1)
    for symmetry in range(1, game.num_symmetries):
        room[0] = state
        game.transform(room[0], symmetry)
        key = np.uint64(game.key(room[0]))
        if key < best:
            best, which = key, np.int64(0)
        if key == best:
            which |= np.int64(1) << symmetry
    return best, which


def default_path(game: Game) -> Path:
    """Where `book=on` looks: books/<game>.sqlite here, or in the folder that SELFPLAY_BOOKS names."""
    name = "".join(c if c.isalnum() or c in "_=+-." else "_" for c in spec_of(game))
    return Path(os.environ.get("SELFPLAY_BOOKS", "books")) / f"{name}.sqlite"


@dataclass
class Book:
    """A game's book in memory; `load` and `save` move it from and to the disk."""

    game: Game
    positions: dict[int, dict[int, Entry]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.symmetries = [image.actions for image in self.game.symmetries()]
        self.room = self.game.new()

    # --- positions -----------------------------------------------------------------------------------

    def place(self, state: State) -> Place:
        """The smallest of the keys of all images, so that mirror images are one position."""
        key, which = smallest_image(self.game, state, self.room)
        images = [actions for s, actions in enumerate(self.symmetries) if int(which) >> s & 1]
        return Place(int(key), np.min(images, axis=0))

    def known(self, state: State) -> dict[int, Entry]:
        """What is known of each move here; empty if the position is not in the book."""
        place = self.place(state)
        entries = self.positions.get(place.key, {})
        legal = legal_actions(self.game, state) if entries else []
        return {action: entries[name] for action in legal if (name := int(place.actions[action])) in entries}

    def entry(self, state: State, action: int) -> Entry:
        """The row of a move, made if it is not there."""
        place = self.place(state)
        return self.positions.setdefault(place.key, {}).setdefault(int(place.actions[action]), Entry())

    # --- learning ------------------------------------------------------------------------------------

    def add_search(self, state: State, result: Result, agent: str) -> None:
        """Keeps a search's values of the moves, unless a deeper search was here before."""
        for move in result.moves:
            if move.bound not in (EXACT, AVERAGE):
                continue  # a bound is no value
            entry = self.entry(state, move.action)
            if entry.value is None or result.depth >= entry.depth:
                entry.value, entry.depth, entry.agent = float(move.value), int(result.depth), agent

    def add_game(self, states: Iterable[tuple[State, int, int]], utilities: list[float]) -> None:
        """Counts a game's result for each (state, mover, action) of its opening."""
        middle = 0.5 * (self.game.min_utility + self.game.max_utility)
        for state, mover, action in states:
            entry = self.entry(state, action)
            entry.games += 1
            entry.wins += utilities[mover] > middle
            entry.losses += utilities[mover] < middle
            entry.draws += utilities[mover] == middle

    # --- playing -------------------------------------------------------------------------------------

    def result(self, state: State) -> Result | None:
        """The book's choice as a search's result, or None where it knows too little.

        The best value of a search decides; where no search was, the best score among moves with enough games, each
        counted with one extra draw against luck.
        """
        known = self.known(state)
        searched = {a: e for a, e in known.items() if e.value is not None}
        played = {a: e for a, e in known.items() if e.games >= LEAST_GAMES}
        if searched:
            values = {a: float(e.value or 0.0) for a, e in searched.items()}
        elif played:
            half = 0.5 * (self.game.max_utility - self.game.min_utility)
            middle = 0.5 * (self.game.min_utility + self.game.max_utility)
            values = {
                a: middle + half * (2 * (e.wins + 0.5 * e.draws + 0.5) / (e.games + 1) - 1) for a, e in played.items()
            }
        else:
            return None
        moves = sorted(
            (MoveReport(a, v, EXACT if searched else AVERAGE, known[a].games, (a,)) for a, v in values.items()),
            key=lambda move: (-move.value, move.action),
        )
        depth = known[moves[0].action].depth
        return Result(moves[0].action, moves[0].value, tuple(moves), (moves[0].action,), 0, depth, 0.0)

    # --- the file ------------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Writes the book and its checksum; on any failure what was there before stays as it was."""
        rows = [
            (_signed(key), action, e.value, e.depth, e.agent, e.games, e.wins, e.draws, e.losses)
            for key, entries in sorted(self.positions.items())
            for action, e in sorted(entries.items())
        ]
        aside = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
            os.close(handle)
            aside = Path(name)
            connection = sqlite3.connect(aside)
            try:
                connection.executescript(_SCHEMA)
                connection.execute("insert into meta values ('game', ?)", (json.dumps(_description(self.game)),))
                connection.executemany("insert into moves values (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
                connection.commit()
            finally:
                connection.close()
            _sync(aside)
            digest = hashlib.sha256(aside.read_bytes()).hexdigest()
            former = _digests(path) if path.exists() else []
            _write_digests(path, [digest, *former[:1]])  # either of the two is right until the rename is done
            aside.replace(path)
            _write_digests(path, [digest])
        except (OSError, sqlite3.Error) as error:
            if aside is not None:
                aside.unlink(missing_ok=True)
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"book {str(path)!r} can't be written: {reason}") from None


def load(game: Game, path: Path) -> Book:
    """The book in a file; one sentence for a file that is missing, damaged or of another game."""
    try:
        data = path.read_bytes()
        expected = _digests(path)
    except FileNotFoundError as error:
        raise InputError(f"book {error.filename!r} does not exist; 'selfplay book build' makes one") from None
    except OSError as error:
        raise InputError(f"book {str(path)!r} can't be read: {error.strerror}") from None
    if hashlib.sha256(data).hexdigest() not in expected:
        raise InputError(f"book {str(path)!r} is damaged: its checksum is not the one in {_digest_path(path).name!r}")
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            described = json.loads(dict(connection.execute("select name, text from meta"))["game"])
            rows = connection.execute("select * from moves").fetchall()
        finally:
            connection.close()
    except (sqlite3.Error, KeyError, ValueError) as error:
        raise InputError(f"book {str(path)!r} is not a book: {error}") from None
    if described != _description(game):
        raise InputError(f"book {str(path)!r} is of {described['game']!r}, not of {_description(game)['game']!r}")
    book = Book(game)
    for key, action, *known in rows:
        book.positions.setdefault(key & 0xFFFF_FFFF_FFFF_FFFF, {})[action] = Entry(*known)
    return book


def open_book(name: str, game: Game) -> Book | None:
    """The book that an agent's `book=` names: off, on (the default path), or a path."""
    if name == "off":
        return None
    return load(game, default_path(game) if name == "on" else Path(name))


def _description(game: Game) -> dict[str, Any]:
    return {"game": spec_of(game), "class": f"{type(game).__module__}.{game!r}", "version": VERSION}


def _signed(key: int) -> int:
    return key - (1 << 64) if key >= 1 << 63 else key


def _digest_path(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _digests(path: Path) -> list[str]:
    return _digest_path(path).read_text(encoding="ascii").split()


def _write_digests(path: Path, digests: list[str]) -> None:
    aside = _digest_path(path).with_suffix(".aside")
    aside.write_text("\n".join(digests) + "\n", encoding="ascii")
    _sync(aside)
    aside.replace(_digest_path(path))


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
