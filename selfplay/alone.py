"""How much does one agent score? Games for one player against chance, on all cores, with an interval.

A match of two such agents is a comparison on the same dice (`arena.py`); this is the score itself. Same seed, same
dice, whatever the number of workers.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from envs.compiled import njit
from envs.errors import InputError
from envs.game import Game
from envs.registry import make
from selfplay.arena import forfeits, per_move, schedule
from selfplay.matches import GameRecord, check_agents
from selfplay.openings import openings
from selfplay.paired_score import Z95
from selfplay.workers import Pool

LARGEST = "exponent of the largest tile"  # the feature of 2048 that says how far a game came
_TILES = range(10, 16)  # 1024 to 32768


@njit
def replay_to_end(game, state, actions):
    """Plays all the actions in place."""
    game.start(state)
    for action in actions:
        game.play(state, action)


@njit
def features_of(game, state, out):
    game.features(state, out)


def scores(
    game_spec: str,
    agent: str,
    games: int = 100,
    *,
    seed: int = 0,
    workers: int = 0,
    move_seconds: float = 0.0,
    progress: Callable[[list[float], int], None] | None = None,
    tell: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Plays the games and returns the report as plain data. `progress` hears the scores so far and the number planned.

    A KeyboardInterrupt ends it with what has been played.
    """
    game = make(game_spec)
    if game.num_players != 1:
        raise InputError(f"game {game_spec!r} has {game.num_players} players: a match needs 2 agents, not 1: {agent}")
    if games < 1:
        raise InputError(f"--games {games} must be 1 or more")
    if not 0 <= move_seconds < math.inf:
        raise InputError(f"--move-seconds {move_seconds:g} must be 0 (no limit) or more")
    check_agents([agent])
    started, stopped = time.monotonic(), False
    records: list[GameRecord] = []
    with Pool(game_spec, game, [agent], workers, tell) as pool:
        jobs = schedule(game, [(0,)], games, seed, openings(game, games, 0, seed), move_seconds)
        try:
            for record in pool.run(jobs):
                records.append(record)
                if progress:
                    progress([r.utilities[0] for r in records], games)
        except KeyboardInterrupt:
            stopped = True
        lost, size = pool.lost_workers, pool.size
    records.sort(key=lambda record: record.number)
    report = summary(game, agent, records)
    report |= {"seed": seed, "workers": size, "lost_workers": lost}
    return report | {"seconds": time.monotonic() - started, "stopped": stopped}


def summary(game: Game, agent: str, records: Sequence[GameRecord]) -> dict[str, Any]:
    """Mean score with its 95 % interval (mean +- 1.96 standard errors), and the share of games that made each tile."""
    found = np.array([record.utilities[0] for record in records])
    count = len(found)
    mean = float(found.mean()) if count else None
    error = Z95 * float(found.std(ddof=1)) / math.sqrt(count) if count > 1 else None
    return {
        "agents": [agent],
        "games": count,
        "points": mean,
        "interval": None if mean is None or error is None else [mean - error, mean + error],
        "median": float(np.median(found)) if count else None,
        "least": float(found.min()) if count else None,
        "most": float(found.max()) if count else None,
        "tiles": tiles(game, records),
        "seconds_per_move": per_move(records, 0),
        "moves": sum(record.choices[0] for record in records),
        "forfeits": forfeits(records, [agent]),
    }


def tiles(game: Game, records: Sequence[GameRecord]) -> dict[str, float]:
    """2048: by tile the share of games that made it, or a larger one; nothing for other games."""
    names = game.feature_names()
    if LARGEST not in names or not records:
        return {}
    state, out = game.new()[0], np.zeros(game.num_features)
    largest = []
    for record in records:
        replay_to_end(game, state, np.array(record.actions, np.int64))
        features_of(game, state, out)
        largest.append(out[names.index(LARGEST)])
    return {str(1 << k): float(np.mean(np.array(largest) >= k)) for k in _TILES}
