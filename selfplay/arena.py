"""Who is stronger: matches of two agents that mean something, on all cores.

Every opening is played from both sides, chance shows both games the same dice, and the verdict comes from the pairs
(`paired_score.py`). Same seed, same games, whatever the number of workers: a game's random numbers depend on its
number alone, and results are counted in the order of the numbers.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envs.errors import InputError
from envs.game import Game
from envs.registry import make
from selfplay.matches import GameRecord, Job, check_agents, seed_of
from selfplay.openings import default_plies, openings
from selfplay.paired_score import SPRT, estimate
from selfplay.records import Saver
from selfplay.workers import Pool


def schedule(
    game: Game,
    groups: Sequence[tuple[int, ...]],
    games: int,
    seed: int,
    starts: Sequence[Sequence[int]],
    move_seconds: float = 0.0,
    texts: tuple[str, ...] = (),
) -> list[Job]:
    """`games` games for each group of agents: one opening after the other, each from all seats in turn.

    Game k of group g has the number k * len(groups) + g + 1, so that more games per group only add to the list.
    """
    players, jobs = game.num_players, []
    for k in range(games):
        round_, shift = divmod(k, players)
        for g, group in enumerate(groups):
            seats = tuple(group[(seat + shift) % players] for seat in range(players))
            across = g if players > 1 else 0  # alone with chance, all agents meet the same dice
            jobs.append(
                Job(
                    number=k * len(groups) + g + 1,
                    seats=seats,
                    opening=tuple(starts[round_ % len(starts)]),
                    round=round_,
                    dice=seed_of(seed, 1, across, round_),
                    seeds=tuple(seed_of(seed, 2, across, k, seat) for seat in range(players)),
                    move_seconds=move_seconds,
                    texts=texts,
                )
            )
    return jobs


def points_of(record: GameRecord, agent: int) -> float:
    """1, 1/2 or 0 for that agent in a game of two."""
    mine = record.utilities[record.seats.index(agent)]
    theirs = record.utilities[1 - record.seats.index(agent)]
    return 0.5 if mine == theirs else float(mine > theirs)


@dataclass
class Tally:
    """A match so far, from A's view, game after game in the order of their numbers."""

    game: Game
    agents: Sequence[str]
    records: list[GameRecord] = field(default_factory=list)
    games: list[float] = field(default_factory=list)
    pairs: list[float] = field(default_factory=list)  # complete ones

    def add(self, record: GameRecord) -> bool:
        """Counts a game; returns whether it completed a pair."""
        self.records.append(record)
        if self.game.num_players == 1:  # A and B, one after the other on the same dice, are one comparison
            if len(self.records) % 2:
                return False
            a, b = (found.utilities[0] for found in self.records[-2:])
            self.games.append(0.5 if a == b else float(a > b))
            self.pairs.append(self.games[-1])
            return True
        self.games.append(points_of(record, 0))
        if len(self.games) % 2 == 0:
            self.pairs.append(sum(self.games[-2:]) / 2)
            return True
        return False

    @property
    def counts(self) -> tuple[int, int, int]:
        """Wins, draws, losses."""
        found = Counter(self.games)
        return found[1.0], found[0.5], found[0.0]


def match(
    game_spec: str,
    a: str,
    b: str,
    games: int = 100,
    *,
    seed: int = 0,
    plies: int | None = None,
    workers: int = 0,
    sprt: SPRT | None = None,
    move_seconds: float = 0.0,
    save: Path | str | None = None,
    progress: Callable[[Tally, int], None] | None = None,
    tell: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Plays the match and returns the report as plain data; the keys are explained in docs/arena.md.

    `workers` 0 means one per core; `move_seconds` 0 means no limit. `progress` hears of every game counted, with the
    number of games planned. A KeyboardInterrupt ends the match with what has been played.
    """
    game = make(game_spec)
    if game.num_players > 2:
        raise InputError(
            f"game {game_spec!r} has {game.num_players} players and a match two agents; use 'selfplay tournament'"
        )
    if games < 1:
        raise InputError(f"--games {games} must be 1 or more")
    if not 0 <= move_seconds < math.inf:
        raise InputError(f"--move-seconds {move_seconds:g} must be 0 (no limit) or more")
    agents = [a, b]
    check_agents(agents)
    started, stopped = time.monotonic(), False
    tally = Tally(game, agents)
    decision = (-1, -1)
    saver = Saver(Path(save), game_spec, game, agents) if save is not None else None
    try:
        with Pool(game_spec, game, agents, workers, tell) as pool:
            # While the workers get ready.
            starts = openings(game, -(-games // 2), plies, seed)
            groups = [(0, 1)] if game.num_players == 2 else [(0,), (1,)]
            jobs = schedule(game, groups, games, seed, starts, move_seconds, saver.kinds if saver else ())
            early: dict[int, GameRecord] = {}
            try:
                for record in pool.run(jobs):
                    early[record.number] = record
                    while len(tally.records) + 1 in early and decision[0] < 0:
                        found = early.pop(len(tally.records) + 1)
                        complete = tally.add(found)
                        if saver:
                            saver.add(found)
                        if progress:
                            progress(tally, games)
                        if sprt and complete:
                            decision = sprt.first_decision(sprt.ratios(tally.pairs))
                    if decision[0] >= 0:
                        break
            except KeyboardInterrupt:
                stopped = True
            lost = pool.lost_workers
        report = summary(tally, sprt, decision[1])
        report |= {
            "opening_plies": default_plies(game) if plies is None else plies,
            "openings": len(starts),
            "seed": seed,
            "workers": pool.size,
            "lost_workers": lost,
            "seconds": time.monotonic() - started,
            "stopped": stopped,
        }
        if saver:
            saver.finish(report)
        return report
    finally:
        if saver:
            saver.close()


def summary(tally: Tally, sprt: SPRT | None = None, accepted: int = -1) -> dict[str, Any]:
    """The numbers of a match, as plain data; infinite bounds become null."""
    records, agents = tally.records, tally.agents
    lone = [tally.games[-1]] if tally.game.num_players == 2 and len(tally.games) % 2 else []
    found = estimate(tally.games, [*tally.pairs, *lone])
    wins, draws, losses = tally.counts
    shares = Counter(round(4 * pair) for pair in tally.pairs)
    data: dict[str, Any] = {
        "agents": list(agents),
        "games": len(tally.games),
        "wins": wins,
        "draws": draws,
        "losses": losses,
        "score": found.score,
        "interval": [found.low, found.high],
        "elo": found.elo,
        "elo_interval": [_finite(found.elo_low), _finite(found.elo_high)],
        "superiority": found.superiority,
        "pairs": [shares[quarters] for quarters in range(5)],
        "points": [_mean(_points(records, agent)) for agent in range(2)],
        "seconds_per_move": [per_move(records, agent) for agent in range(2)],
        "moves": [sum(_by_seat(records, agent, "choices")) for agent in range(2)],
        "forfeits": forfeits(records, agents),
        "distinct_games": distinct_games(records),
        "repeated_games": len(records) - distinct_games(records),
        "sprt": None,
    }
    if tally.game.num_players == 2:
        data["first_player_score"] = _mean([points_of(record, record.seats[0]) for record in records])
    if sprt:
        ratios = sprt.ratios(tally.pairs)
        data["sprt"] = {
            "elo0": sprt.elo0,
            "elo1": sprt.elo1,
            "alpha": sprt.alpha,
            "beta": sprt.beta,
            "llr": float(ratios[-1]) if len(ratios) else 0.0,
            "bounds": list(sprt.bounds),
            "accepted": {0: "elo0", 1: "elo1"}.get(accepted),
        }
    return data


def forfeits(records: Sequence[GameRecord], agents: Sequence[str]) -> list[dict[str, Any]]:
    """Every forfeit with the agent's name, the game's number, the kind and the reason."""
    return [{"agent": agents[r.seats[r.forfeit["seat"]]], "game": r.number, **r.forfeit} for r in records if r.forfeit]


def distinct_games(records: Sequence[GameRecord]) -> int:
    """How many games differ in some move, chance included; alone with chance, two agents may well play the same."""
    return len({(tuple(r.seats) if len(r.seats) == 1 else (), *r.actions) for r in records})


def per_move(records: Sequence[GameRecord], agent: int) -> float | None:
    """Seconds per move of that agent, None where it never moved."""
    moves = sum(_by_seat(records, agent, "choices"))
    return sum(_by_seat(records, agent, "seconds")) / moves if moves else None


def _by_seat(records: Sequence[GameRecord], agent: int, what: str) -> list[Any]:
    return [getattr(r, what)[seat] for r in records for seat, number in enumerate(r.seats) if number == agent]


def _points(records: Sequence[GameRecord], agent: int) -> list[float]:
    return _by_seat(records, agent, "utilities")


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
