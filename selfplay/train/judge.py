"""One part of an evaluation, in a process of its own: games of the trained agent against one other, or exact truth.

    -> {"game": "pig", "agents": ["alphazero:…", "perfect"], "games": 200, "seed": 7, "workers": 1}
    <- {"score": 0.47, "interval": [0.41, 0.53], …}         or {"error": "a sentence"}
    -> {"game": "pig", "agents": ["alphazero:…"], "positions": 200}
    <- {"score": 0.91, "interval": [0.86, 0.94], …}

The score is the agent's share of the wins and `equality` what an equal one would have: with n players it sits in every
seat in turn, against n - 1 copies of the other, so 1/n. Alone, both agents play the same seeds one after the other, and
the score is the share of seeds on which it makes more points.
"""

import json
import math
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from envs.errors import InputError
from envs.game import Game
from envs.registry import make
from selfplay.arena import distinct_games, forfeits, schedule
from selfplay.matches import GameRecord, check_agents
from selfplay.openings import openings
from selfplay.paired_score import Z95
from selfplay.workers import Pool


def share(utilities: Sequence[float], seat: int) -> float:
    """The part of the win that falls to a seat: ties for the first place divide it.

    >>> share([1.0, -0.5, -0.5], 0), share([0.0, 0.0], 1), share([2.0, 2.0, 0.0], 2)
    (1.0, 0.5, 0.0)
    """
    best = max(utilities)
    return 1.0 / list(utilities).count(best) if utilities[seat] == best else 0.0


def share_interval(rounds: Sequence[float], players: int) -> list[float]:
    """95 % for the mean of rounds (an opening from all seats), which are independent of each other.

    As `paired_score.estimate` for two: one round won and players - 1 rounds lost are added, so that a clean sweep has
    an interval too, and equality stays where it is.
    """
    if not rounds:
        return [0.0, 1.0]
    mean = float(np.mean(rounds))
    padded = np.array([*rounds, 1.0, *[0.0] * (players - 1)])
    centre, error = float(padded.mean()), float(padded.std(ddof=1)) / math.sqrt(len(padded))
    return [max(0.0, min(mean, centre - Z95 * error)), min(1.0, max(mean, centre + Z95 * error))]


def mean_interval(values: Sequence[float]) -> list[float] | None:
    """95 % for a mean; None for fewer than two values."""
    if len(values) < 2:
        return None
    error = Z95 * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return [float(np.mean(values)) - error, float(np.mean(values)) + error]


def wilson(count: int, total: int) -> list[float]:
    """95 % for a share of independent cases (Wilson 1927).

    >>> [round(bound, 3) for bound in wilson(9, 10)]
    [0.596, 0.982]
    """
    part, z2 = count / total, Z95**2
    middle = (part + z2 / (2 * total)) / (1 + z2 / total)
    half = Z95 * math.sqrt(part * (1 - part) / total + z2 / (4 * total * total)) / (1 + z2 / total)
    return [max(0.0, middle - half), min(1.0, middle + half)]


def play(
    game_spec: str,
    agents: list[str],
    games: int,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """The first agent against the second one, or against copies of it; at least `games` games, all seats equally."""
    game = make(game_spec)
    if games < 1:
        raise InputError(f"--games {games} must be 1 or more")
    check_agents(agents)
    players = game.num_players
    groups: list[tuple[int, ...]] = [(0,), (1,)] if players == 1 else [(0, *[1] * (players - 1))]
    games += -games % players
    starts = openings(game, games // players, None, seed)
    jobs = schedule(game, groups, games, seed, starts)
    records: list[GameRecord] = []
    with Pool(game_spec, game, agents, min(workers, len(jobs))) as pool:
        for record in pool.run(jobs):
            records.append(record)
            progress(len(records), len(jobs))
    records.sort(key=lambda record: record.number)
    return {"agents": agents, "players": players, "equality": 1 / max(players, 2), **summary(game, agents, records)}


def summary(game: Game, agents: Sequence[str], records: Sequence[GameRecord]) -> dict[str, Any]:
    """The figures of complete rounds; `outcomes`: [seats, points, how often], for ratings."""
    players = game.num_players
    points: list[list[float]] = [[], []]  # of either agent, by game
    shares: list[float] = []
    for record in records:
        for number in (0, 1):
            own = [u for u, seat in zip(record.utilities, record.seats, strict=True) if seat == number]
            if own:
                points[number].append(float(np.mean(own)))
        if players > 1:
            shares.append(share(record.utilities, record.seats.index(0)))
    if players == 1:
        shares = [share(both, 0) for both in zip(*points, strict=True)]
    rounds = [float(np.mean(shares[i : i + players])) for i in range(0, len(shares), players)]
    per_round = [[float(np.mean(p[i : i + players])) for i in range(0, len(p), players)] for p in points]
    counted = Counter((tuple(r.seats), tuple(r.utilities)) for r in records) if players > 1 else Counter()
    wins = sum(s == 1.0 for s in shares)
    draws = sum(0.0 < s < 1.0 for s in shares)
    return {
        "games": len(shares),
        "wins": wins,
        "draws": draws,
        "losses": len(shares) - wins - draws,
        "score": float(np.mean(shares)),
        "interval": share_interval(rounds, max(players, 2)),
        "points": [float(np.mean(p)) for p in points],
        "points_intervals": [mean_interval(p) for p in per_round],
        "distinct_games": distinct_games(records),
        "outcomes": [[list(seats), list(points), times] for (seats, points), times in counted.items()],
        "forfeits": [f"{f['agent']}: {f['reason']}" for f in forfeits(records, agents)],
    }


def truth(game_spec: str, agent: str, positions: int) -> dict[str, Any]:
    """The share of moves that keep the exact value, over the same positions each time."""
    from selfplay.scoreboard import score

    found = score(make(game_spec), agent, count=positions, games=0)
    count, total = round(found["kept"] * found["positions"]), found["positions"]
    names = ("critical", "kept_critical", "value_error", "unsolved")
    return {"games": total, "score": found["kept"], "interval": wilson(count, total), **{n: found[n] for n in names}}


def main() -> None:
    from selfplay.worker import leave_with_parent

    threading.Thread(target=leave_with_parent, args=(os.getppid(),), daemon=True).start()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a game prints must not disturb the answer
    asked = json.load(sys.stdin)
    try:
        if "positions" in asked:
            found = truth(asked["game"], asked["agents"][0], asked["positions"])
        else:
            found = play(asked["game"], asked["agents"], asked["games"], asked["seed"], asked["workers"])
    except InputError as error:
        found = {"error": str(error)}
    answers.write(json.dumps(found))
    answers.close()


if __name__ == "__main__":
    main()
