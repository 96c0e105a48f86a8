"""Self-play with a network: positions/s beside pgx with mctx, same network shape, same simulations, both cores ours.

The peer is measured twice. As it comes, one process, it keeps one core busy and leaves the others idle; that is what
its user gets. With a process per core it has as much of the machine as we have: the ratio of like with like.
"""

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.selfplay_peers import PYTHON, Peer, peers_python

SIMULATIONS, BLOCKS, CHANNELS = 64, 5, 64
REPEATS = 3
SHORTEST = 10.0  # seconds: the peer plays whole moves of its batch, some three seconds each
PEER_GAME = "connect_four"
_QUIET = 0.1  # cores that others may use before the figures say so


def bench_selfplay(games: list[str] | None, seconds: float, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """Medians of three runs, ours and the peer's in turn, each of `seconds` but no less than ten."""
    seconds = max(seconds, SHORTEST)
    rows = []
    for game in games or [PEER_GAME]:
        python = peers_python() if game == PEER_GAME else None
        if python is None:
            why = f"pgx and mctx are not installed ({PYTHON} may name a Python that has them)"
            tell(f"{game} alone{': ' + why if game == PEER_GAME else ''} …")
        else:
            tell(f"{game}: the peer compiles …")
        peers: list[Peer] = []
        try:
            if python:
                for _ in range(os.cpu_count() or 1):
                    peers.append(Peer(python, SIMULATIONS, BLOCKS, CHANNELS))
            rows += _measure(game, seconds, peers, tell)
        finally:
            for peer in peers:
                peer.close()
    return rows


def our_positions_per_second(
    game_spec: str, simulations: int, blocks: int, channels: int, seconds: float
) -> dict[str, float]:
    """Ours for about that long, compiled before the clock starts: `positions_per_second`, and where they are known
    `evaluations_per_second`, `bare_evaluations_per_second` (the backend alone) and `inference_share` of the time."""
    from selfplay.train.actor import measure_self_play

    return measure_self_play(game_spec, simulations, blocks, channels, seconds)


def _measure(game: str, seconds: float, peers: list[Peer], tell: Callable[[str], None]) -> list[dict[str, Any]]:
    ours: list[dict[str, float]] = []
    alone: list[dict[str, float]] = []
    per_core: list[dict[str, float]] = []
    for repeat in range(REPEATS):
        tell(f"{game}, run {repeat + 1} of {REPEATS} …")
        ours.append(our_positions_per_second(game, SIMULATIONS, BLOCKS, CHANNELS, seconds))
        if peers:
            alone.append(_peers_together(peers[:1], seconds))
            per_core.append(_peers_together(peers, seconds))
    mine = statistics.median(figures["positions_per_second"] for figures in ours)
    rows: list[dict[str, Any]] = []
    names = ("pgx + mctx, one process", f"pgx + mctx, {len(peers)} processes")
    for name, runs in zip(names, (alone, per_core), strict=True):
        theirs = statistics.median(run["positions_per_second"] for run in runs) if runs else None
        note = _note(ours) if not rows else ""
        if runs:
            cores = statistics.median(run["cores"] for run in runs)
            others = max(run["others"] for run in runs)
            note = "; ".join(filter(None, [note, f"the peer used {cores:.1f} cores"]))
            note += f"; NOT QUIET: others used up to {others:.1f} cores" if others > _QUIET else ""
        rows.append(
            {
                "job": "selfplay",
                "game": game,
                "unit": "positions/s",
                "ours": mine,
                "peer": name if runs else None,
                "theirs": theirs,
                "ratio": mine / theirs if theirs else None,
                "note": note,
            }
        )
        if not runs:
            break
    return rows


def _peers_together(peers: list[Peer], seconds: float) -> dict[str, float]:
    """The sum of what they make side by side, and the cores that they and that others used meanwhile."""
    busy, started = _busy_seconds(), time.perf_counter()
    for peer in peers:
        peer.start(seconds)
    figures = [peer.answer() for peer in peers]
    took = time.perf_counter() - started
    cores = sum(figure["cores"] * figure["seconds"] for figure in figures) / took
    now = _busy_seconds()
    others = (now - busy) / took - cores if now is not None and busy is not None else 0.0
    rate = sum(figure["positions_per_second"] for figure in figures)
    return {"positions_per_second": rate, "cores": cores, "others": others}


def _busy_seconds() -> float | None:
    """Processor time that this machine has spent since its start, idle time apart; None where Linux does not say."""
    try:
        with open("/proc/stat") as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
    except (OSError, ValueError):
        return None
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def _note(ours: list[dict[str, float]]) -> str:
    """What limits ours: the share of the time in the network, and its rate beside that of the network alone."""

    def median(name: str) -> float | None:
        known = [figures[name] for figures in ours if name in figures]
        return statistics.median(known) if known else None

    share, rate, bare = (
        median(n) for n in ("inference_share", "evaluations_per_second", "bare_evaluations_per_second")
    )
    parts = [f"{share:.0%} of our time in the network"] if share is not None else []
    if rate is not None:
        parts.append(f"{rate:,.0f} evaluations/s" + (f" of {bare:,.0f} of the network alone" if bare else ""))
    return ", ".join(parts)
