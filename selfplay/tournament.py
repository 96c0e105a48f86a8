"""Tournaments: everybody against everybody, or one against all others (a gauntlet), ending in a table of ratings.

Every finished game is appended to the tournament's file at once; a tournament that was stopped goes on from there.
Games of n players seat every n of the agents in turn on all seats and are rated by rank. A game for one player has no
opponents to rate: there the table shows the mean points on the same seeds.
"""

import contextlib
import itertools
import json
import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from envs.errors import InputError
from envs.game import Game
from envs.registry import make
from selfplay.arena import distinct_games, forfeits, per_move, schedule
from selfplay.matches import GameRecord, check_agents
from selfplay.openings import default_plies, openings
from selfplay.paired_score import Z95
from selfplay.ratings import Outcome, Rating, fit
from selfplay.records import one_sentence, texts_of
from selfplay.workers import Pool


def groups_of(game: Game, agents: int, gauntlet: bool) -> list[tuple[int, ...]]:
    """Who meets whom; the gauntlet's hero is agent 0. With fewer agents than seats some sit twice."""
    players = game.num_players
    if players == 1:
        return [(agent,) for agent in range(agents)]
    if agents >= players:
        groups = list(itertools.combinations(range(agents), players))
    else:
        repeated = itertools.combinations_with_replacement(range(agents), players)
        groups = [group for group in repeated if len(set(group)) == agents]
    return [group for group in groups if 0 in group] if gauntlet else groups


class TournamentFile:
    """The games played so far: a line that says which tournament this is, then one line per game."""

    def __init__(self, path: Path, identity: dict[str, Any]):
        self.path, self.identity = path, identity
        self.what = f"tournament file {str(path)!r}"
        self.records: dict[int, GameRecord] = {}
        self.size = 0  # bytes of whole lines
        self.new = not path.exists()
        self.made = [folder for folder in path.parents if not folder.exists()]  # the innermost first
        if not self.new:
            self._read()
        try:
            with one_sentence(self.what):
                path.parent.mkdir(parents=True, exist_ok=True)
                self.file = path.open("w+b" if self.new else "r+b")
                self.file.truncate(self.size)  # a last line that a kill tore goes
                self.file.seek(self.size)
            if not self.size:
                self._append(json.dumps({"tournament": identity}))
        except InputError:
            self.discard_if_new()
            raise

    def _read(self) -> None:
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise InputError(f"{self.what} cannot be read: {error.strerror}") from error
        whole, _, torn = content.rpartition(b"\n")
        lines = whole.split(b"\n") if whole else []
        if not lines and torn and not b'{"tournament": '.startswith(torn[:15]):
            raise InputError(f"{self.what} is not a tournament's; it is left as it is")
        for number, line in enumerate(lines, 1):
            try:
                data = json.loads(line)
                if number == 1:
                    self._compare(data["tournament"])
                else:
                    record = GameRecord.from_json(data)
                    self.records[record.number] = record
            except InputError:
                raise
            except (ValueError, KeyError, TypeError) as error:
                kind = "a tournament's" if number == 1 else f"readable: line {number} is damaged"
                raise InputError(f"{self.what} is not {kind}; it is left as it is") from error
        self.size = len(whole) + 1 if lines else 0

    def _compare(self, found: dict[str, Any]) -> None:
        for name, value in self.identity.items():
            if found.get(name) != value:
                raise InputError(
                    f"{self.what} belongs to another tournament: its {name} is {found.get(name)!r}, not {value!r}"
                )

    def add(self, record: GameRecord, line: str) -> None:
        self._append(line)
        self.records[record.number] = record

    def _append(self, line: str) -> None:
        text = f"{line}\n".encode()
        try:
            with one_sentence(self.what):
                self.file.write(text)
                self.file.flush()
        except InputError:
            self.file = _reopened(self.file, self.path, self.size)
            raise
        self.size += len(text)

    def close(self) -> None:
        with one_sentence(self.what):
            os.fsync(self.file.fileno())
            self.file.close()

    def discard_if_new(self) -> None:
        """Leaves nothing behind of a file that has no game yet."""
        if self.new and not self.records:
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)
                for folder in self.made:
                    folder.rmdir()


def _reopened(file: Any, path: Path, size: int) -> Any:
    """After a write that failed: what got into the file goes, and so does what still waits in the buffer."""
    with contextlib.suppress(OSError):
        file.close()
    os.truncate(path, size)
    return path.open("r+b")


def tournament(
    game_spec: str,
    agents: Sequence[str],
    games: int = 20,
    *,
    gauntlet: bool = False,
    anchor: str | None = None,
    seed: int = 0,
    plies: int | None = None,
    workers: int = 0,
    move_seconds: float = 0.0,
    file: Path | str | None = None,
    progress: Callable[[list[GameRecord], int], None] | None = None,
    tell: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Plays `games` games per pairing (or group) and returns the table as plain data."""
    game = make(game_spec)
    agents = list(agents)
    check_agents(agents)
    _check(game_spec, game, agents, games, anchor, move_seconds)
    anchored = agents.index(anchor) if anchor else 0
    length = default_plies(game) if plies is None else plies
    groups = groups_of(game, len(agents), gauntlet)
    starts = openings(game, -(-games // game.num_players), plies, seed)
    jobs = schedule(game, groups, games, seed, starts, move_seconds, ("jsonl",) if file is not None else ())
    identity = {
        "game": game_spec,
        "agents": agents,
        "gauntlet": gauntlet,
        "seed": seed,
        "openings": length,
        "move_seconds": move_seconds,
    }
    started, stopped = time.monotonic(), False
    book = TournamentFile(Path(file), identity) if file is not None else None
    records: dict[int, GameRecord] = dict(book.records) if book else {}
    resumed = len(records)
    missing = [job for job in jobs if job.number not in records]
    try:
        if missing:
            with Pool(game_spec, game, agents, min(workers, len(missing)), tell) as pool:
                try:
                    for record in pool.run(missing):
                        if book:
                            texts = record.texts or texts_of(game_spec, game, agents, record, ("jsonl",))
                            book.add(record, texts["jsonl"])
                        records[record.number] = record
                        if progress:
                            progress(list(records.values()), len(jobs))
                except KeyboardInterrupt:
                    stopped = True
    finally:
        if book:
            book.close()
            book.discard_if_new()
    ordered = [records[number] for number in sorted(records)]
    return {
        "game": game_spec,
        "games": len(ordered),
        "planned": len(set(records) | {job.number for job in jobs}),
        "resumed": resumed,
        "stopped": stopped,
        "anchor": agents[anchored],
        "seconds": time.monotonic() - started,
        "openings": len(starts),
        "opening_plies": length,
        "distinct_games": distinct_games(ordered),
        "repeated_games": len(ordered) - distinct_games(ordered),
        "forfeits": forfeits(ordered, agents),
        **standings(game, agents, ordered, anchored),
    }


def _check(game_spec: str, game: Game, agents: list[str], games: int, anchor: str | None, move_seconds: float) -> None:
    if len(agents) < 2:
        raise InputError(f"a tournament needs at least 2 agents, not {len(agents)}: {agents}")
    if len(set(agents)) < len(agents):
        raise InputError(f"every agent of a tournament may be named once only: {' '.join(agents)}")
    if anchor is not None and anchor not in agents:
        raise InputError(f"--anchor {anchor!r} does not play; agents: {', '.join(agents)}")
    if games < 1:
        raise InputError(f"--games-per-pair {games} must be 1 or more")
    if not 0 <= move_seconds < math.inf:
        raise InputError(f"--move-seconds {move_seconds:g} must be 0 (no limit) or more")


def standings(game: Game, agents: Sequence[str], records: Sequence[GameRecord], anchor: int) -> dict[str, Any]:
    """The table, best first, as plain data."""
    rows = []
    for number, spec in enumerate(agents):
        mine = [r for r in records if number in r.seats]
        points = [r.utilities[seat] for r in mine for seat, agent in enumerate(r.seats) if agent == number]
        row = {"agent": spec, "games": len(mine), "points": sum(points) / len(points) if points else None}
        rows.append({**row, **_places(mine, number), "seconds_per_move": per_move(mine, number)})
    if game.num_players == 1:
        for number, row in enumerate(rows):
            row |= _mean_interval([r.utilities[0] for r in records if r.seats == [number]])
        return {"rows": sorted(rows, key=lambda row: -(row["points"] or 0.0)), "advantages": [], "ties": {}}
    ratings = fit([Outcome(tuple(r.seats), tuple(r.utilities)) for r in records], len(agents), anchor)
    for row, rating in zip(rows, ratings.agents, strict=True):
        row |= {"elo": rating.elo, "interval": [rating.low, rating.high]}
    return {
        "rows": sorted(rows, key=lambda row: -row["elo"]),
        "advantages": [_as_data(rating) for rating in ratings.advantages],
        "ties": {str(size): odds for size, odds in ratings.ties.items()},
    }


def _places(records: Sequence[GameRecord], agent: int) -> dict[str, Any]:
    """Wins (alone on top), draws (shared top) and losses, and the mean share of opponents beaten."""
    wins = draws = losses = 0
    beaten: list[float] = []
    for record in records:
        for seat, number in enumerate(record.seats):
            others = [u for s, u in enumerate(record.utilities) if s != seat]
            if number != agent or not others:
                continue
            mine = record.utilities[seat]
            wins += mine > max(others)
            draws += mine == max(others)
            losses += mine < max(others)
            beaten.append(float(np.mean([(mine > u) + 0.5 * (mine == u) for u in others])))
    score = float(np.mean(beaten)) if beaten else None
    return {"wins": wins, "draws": draws, "losses": losses, "score": score}


def _mean_interval(points: list[float]) -> dict[str, Any]:
    if len(points) < 2:
        return {"interval": None}
    mean, error = float(np.mean(points)), float(np.std(points, ddof=1)) / math.sqrt(len(points))
    return {"interval": [mean - Z95 * error, mean + Z95 * error]}


def _as_data(rating: Rating) -> dict[str, Any]:
    return {"elo": rating.elo, "interval": [rating.low, rating.high]}
