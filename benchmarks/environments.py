"""The vector environment called from Python: steps/s of a batch of games, beside Gymnasium's vector of single ones."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium

from envs.gym_plugin import env_id, register_all

BATCH, REPEATS = 1024, 5


def bench_environments(games: list[str] | None, seconds: float, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """Medians of five runs of about `seconds` each, ours and the peer's in turn. A step is one action of the caller
    in one game, with the random opponent's reply, observations and masks; drawing the actions counts as well."""
    register_all()
    rows = []
    for game in games or ["connect_four"]:
        tell(f"{game}, {BATCH} environments …")
        ours = gymnasium.make_vec(env_id(game), BATCH, vectorization_mode="vector_entry_point")
        peer = gymnasium.make_vec(env_id(game), 16, vectorization_mode="sync")
        runs: dict[Any, list[float]] = {ours: [], peer: []}
        for vector in runs:
            vector.reset(seed=0)
            _steps_per_second(vector, seconds / 20)  # compiled, or loaded from the cache
        for _ in range(REPEATS):
            for vector, figures in runs.items():
                figures.append(_steps_per_second(vector, seconds))
        mine, theirs = (statistics.median(figures) for figures in runs.values())
        rows.append(
            {
                "job": "rules",
                "game": game,
                "unit": "vector environment steps/s",
                "ours": mine,
                "peer": "gymnasium sync",
                "theirs": theirs,
                "ratio": mine / theirs,
            }
        )
    return rows


def _steps_per_second(vector: Any, seconds: float) -> float:
    """Random legal play for about that long."""
    compiled = hasattr(vector.action_space, "masks")
    steps, started = 0, time.perf_counter()
    while (took := time.perf_counter() - started) < seconds:
        for _ in range(20):
            if compiled:
                actions = vector.action_space.sample()
            else:
                actions = [env.action_space.sample() for env in vector.envs]
            vector.step(actions)
        steps += 20 * vector.num_envs
    return steps / took
