"""How much does one agent score? Games for one player against chance, with an interval.

A match of two such agents is a comparison on the same dice (`arena.py`); this is the score itself. A search to a fixed
depth plays whole games in compiled code, one thread per worker; all other agents play in the arena's processes. Same
seed, same games, either way and whatever the number of workers.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np

from envs.compiled import njit
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, Game
from envs.playouts import buffers
from envs.registry import make
from envs.rng import generator
from selfplay.agents import make_agent
from selfplay.arena import schedule
from selfplay.matches import GameRecord, Job, check_agents
from selfplay.paired_score import Z95
from selfplay.search.expectiminimax import Expectiminimax, expectiminimax
from selfplay.search.transposition import EXACT_VALUE
from selfplay.workers import Pool, available_cores

LARGEST = "exponent of the largest tile"  # the feature of 2048 that says how far a game came
_TILES = range(10, 16)  # 1024 to 32768
_CHUNK = 1000  # moves between two looks whether the user wants to stop


class Played(NamedTuple):
    """A finished game."""

    number: int
    points: float
    features: np.ndarray  # of the last position
    moves: int
    seconds: float  # of thinking
    forfeit: dict[str, Any] | None = None


@njit
def play_on(game, evaluation, work, table, depth, state, rng, out, probabilities, most):
    """Plays up to so many moves in place, each by a search; returns how many were made, -1 if one was stopped."""
    made = 0
    while made < most:
        player = game.player(state)
        if player == TERMINAL:
            break
        if player == CHANCE:
            game.play(state, game.random_outcome(state, out, probabilities, rng))
            continue
        work.states[0] = state
        work.nodes, work.stopped, work.horizon = 1, 0, 0
        work.search = (work.search + 1) % 256
        count = expectiminimax(game, evaluation, work, table, depth)
        if work.stopped:
            return -1
        best = 0
        for i in range(1, count):
            if work.root_bound[i] == EXACT_VALUE and work.root_value[i] > work.root_value[best]:
                best = i
        game.play(state, work.root_line[best, 0])
        made += 1
    return made


@njit
def judge(game, state, out):
    """Writes the features of a position and returns its utility."""
    game.features(state, out)
    return game.utility(state, 0)


@njit
def replay_to_end(game, state, actions):
    """Plays all the actions in place."""
    game.start(state)
    for action in actions:
        game.play(state, action)


def fixed_depth_search(game: Game, spec: str) -> Expectiminimax | None:
    """The agent's search if it is one to a fixed depth and nothing else decides, else nothing."""
    agent = make_agent(spec, game, 0)
    searcher = getattr(agent, "searcher", None)
    if not isinstance(searcher, Expectiminimax) or getattr(agent, "opening", None) is not None:
        return None
    limits = searcher.limits
    return searcher if limits.depth and not limits.nodes and not limits.seconds else None


def _compiled_games(
    game: Game, spec: str, first: Expectiminimax, jobs: Sequence[Job], workers: int
) -> Iterator[Played]:
    """The games in the order in which they end; closing it ends the searches that run."""
    stop = threading.Event()
    warm = game.new()[0]
    out, probabilities = buffers(game)
    play_on(  # compiles
        game,
        *(first.evaluation, first.work, first.table, first.limits.depth),
        *(warm, generator(0), out, probabilities, 0),
    )
    searchers = [first] + [fixed_depth_search(game, spec) or first for _ in range(workers - 1)]
    free = list(searchers)

    def play(job: Job) -> Played | None:
        searcher = free.pop()
        try:
            searcher.reset()
            state, rng = game.new()[0], generator(job.dice, stream=1)
            out, probabilities = buffers(game)
            moves, begun = 0, time.perf_counter()
            some = _CHUNK
            while some == _CHUNK:
                if stop.is_set():
                    return None
                own = (searcher.evaluation, searcher.work, searcher.table, searcher.limits.depth)
                some = int(play_on(game, *own, state, rng, out, probabilities, _CHUNK))
                if some < 0:
                    return None
                moves += some
            seconds = time.perf_counter() - begun
            features = np.zeros(game.num_features)
            return Played(job.number, float(judge(game, state, features)), features, moves, seconds)
        finally:
            free.append(searcher)

    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(play, job) for job in jobs]
        try:
            for future in as_completed(futures):
                found = future.result()
                if found is not None:
                    yield found
        finally:
            stop.set()
            for searcher in searchers:
                searcher.stop()
            pool.shutdown(cancel_futures=True)


def _arena_games(
    game_spec: str, game: Game, spec: str, jobs: Sequence[Job], workers: int, tell: Any
) -> Iterator[Played]:
    with Pool(game_spec, game, [spec], workers, tell) as pool:
        for record in pool.run(jobs):
            yield _played(game, record)


def _played(game: Game, record: GameRecord) -> Played:
    state, features = game.new()[0], np.zeros(game.num_features)
    replay_to_end(game, state, np.array(record.actions, np.int64))
    judge(game, state, features)
    own = (record.choices[0], record.seconds[0], record.forfeit)
    return Played(record.number, record.utilities[0], features, *own)


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
    if workers < 0:
        raise InputError(f"--workers {workers} must be 1 or more (0: one per core)")
    if not 0 <= move_seconds < math.inf:
        raise InputError(f"--move-seconds {move_seconds:g} must be 0 (no limit) or more")
    check_agents([agent])
    started, stopped = time.monotonic(), False
    size = workers or available_cores()
    jobs = schedule(game, [(0,)], games, seed, [()], move_seconds)
    searcher = None if move_seconds or agent.partition(":")[0].endswith(".py") else fixed_depth_search(game, agent)
    if searcher is not None:
        source = _compiled_games(game, agent, searcher, jobs, size)
    else:
        source = _arena_games(game_spec, game, agent, jobs, size, tell)
    played: list[Played] = []
    with closing(source):  # type: ignore[type-var]
        try:
            for found in source:
                played.append(found)
                if progress:
                    progress([one.points for one in played], games)
        except KeyboardInterrupt:
            stopped = True
    played.sort(key=lambda one: one.number)
    report = {**summary(game, agent, played), "seed": seed, "workers": size}
    return report | {"seconds": time.monotonic() - started, "stopped": stopped}


def summary(game: Game, agent: str, played: Sequence[Played]) -> dict[str, Any]:
    """Mean score with its 95 % interval (mean +- 1.96 standard errors), and the share of games that made each tile."""
    points = np.array([one.points for one in played])
    count, moves = len(points), sum(one.moves for one in played)
    mean = float(points.mean()) if count else None
    error = Z95 * float(points.std(ddof=1)) / math.sqrt(count) if count > 1 else None
    return {
        "agents": [agent],
        "games": count,
        "points": mean,
        "interval": None if mean is None or error is None else [mean - error, mean + error],
        "median": float(np.median(points)) if count else None,
        "least": float(points.min()) if count else None,
        "most": float(points.max()) if count else None,
        "tiles": tiles(game, played),
        "seconds_per_move": sum(one.seconds for one in played) / moves if moves else None,
        "moves": moves,
        "forfeits": [{"agent": agent, "game": one.number, **one.forfeit} for one in played if one.forfeit],
    }


def tiles(game: Game, played: Sequence[Played]) -> dict[str, float]:
    """2048: by tile the share of games that made it, or a larger one; nothing for other games."""
    names = game.feature_names()
    if LARGEST not in names or not played:
        return {}
    largest = np.array([one.features[names.index(LARGEST)] for one in played])
    return {str(1 << k): float(np.mean(largest >= k)) for k in _TILES}


__all__ = ["Played", "scores", "summary", "tiles"]
