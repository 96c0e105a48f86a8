"""An agent against the truth: `selfplay score`.

On positions that a solver has labelled: the share of moves that keep the game-theoretic value, how far the agent's own
value is from the true one, and wins, draws and losses against `perfect` as first and as second player.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, Game, State
from envs.playouts import buffers
from envs.rng import below, generator
from selfplay.agents import make_agent
from selfplay.play import advance, roll, turn
from selfplay.positions import PHASES, Position, first_solvable, game_length, generate, phase, read_positions
from selfplay.search.result import Limits
from selfplay.solvers import Solver, Unsolved, solver_for
from selfplay.solvers.agent import COVERED

LABEL = Limits(nodes=20_000_000)  # for one position of a set, or one of its moves
_CLOSE = 1e-9
_OPENINGS = 10_000  # added to the seed for the openings of games, so that they are other positions


def label(solver: Solver, positions: list[Position]) -> tuple[list[Position], list[dict[int, float]]]:
    """The positions that the solver can solve within its limits, with every move's value."""
    kept, values = [], []
    for position in positions:
        try:
            found = solver.values(position.state)
        except Unsolved:
            continue
        kept.append(position)
        values.append(found)
    return kept, values


def score(
    game: Game,
    spec: str,
    file: Path | None = None,
    count: int = 200,
    seed: int = 0,
    games: int = 20,
    first: int | None = None,
    last: int | None = None,
    megabytes: float | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Plain data: `positions`, `kept`, `by_phase`, `value_error`, `against_perfect` and what they rest on."""
    if count < 1 or games < 0:
        raise InputError(f"count={count} must be at least 1 and games={games} at least 0")
    started = time.perf_counter()
    agent = make_agent(spec, game, seed)  # first: a wrong name costs no time
    solver = solver_for(game, LABEL, megabytes)
    first = first_solvable(game) if first is None else first
    tell("solving positions …")
    asked = read_positions(game, file) if file else generate(game, count, seed, first, last)
    positions, truth = label(solver, asked)
    if not positions:
        raise InputError(f"none of {len(asked)} positions could be solved, so there is no truth; covered: {COVERED}")
    tell(f"asking {spec} …")
    rows = [_judge(game, agent, p, values) for p, values in zip(positions, truth, strict=True)]
    plies = [p.plies for p in positions if p.plies is not None]
    phases = {name: [row for row in rows if row["phase"] == name] for name in (*PHASES, "unknown")}
    report = {
        **_summary(rows),
        "by_phase": {name: _summary(group) for name, group in phases.items() if group},
        "plies": [min(plies), max(plies)] if plies else None,
        "game_plies": game_length(game),
        "sources": {s: sum(p.source == s for p in positions) for s in ("random", "mixed")} if not file else {},
        "unsolved": len(asked) - len(positions),
    }
    if games and game.num_players == 2:
        tell(f"{games} games against perfect …")
        openings = [Position(game.new()[0], 0, "start")]
        if first > 0 or file:
            openings = positions if file else generate(game, (games + 1) // 2, seed + _OPENINGS, first, first)
        report["against_perfect"] = _match(game, agent, solver, openings, games, seed)
    report["seconds"] = time.perf_counter() - started
    return report


def _judge(game: Game, agent: Any, position: Position, values: dict[int, float]) -> dict[str, Any]:
    """What the agent does in one position."""
    agent.reset()
    best, own = max(values.values()), None
    if hasattr(agent, "search"):
        result = agent.search(position.state)
        action, own = int(result.action), float(result.value)
    else:
        action = int(agent.choose(position.state))
    if action not in values:
        raise InputError(f"agent {agent} chose {action}, which is not legal in this position")
    return {
        "phase": phase(game, position.plies),
        "kept": values[action] >= best - _CLOSE,
        "matters": min(values.values()) < best - _CLOSE,
        "error": None if own is None else abs(own - best),
        "plies": position.plies,
    }


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    matter = [row for row in rows if row["matters"]]
    errors = [row["error"] for row in rows if row["error"] is not None]
    return {
        "positions": len(rows),
        "kept": sum(row["kept"] for row in rows) / len(rows),
        "critical": len(matter),  # positions where some move gives the value away
        "kept_critical": sum(row["kept"] for row in matter) / len(matter) if matter else None,
        "value_error": float(np.mean(errors)) if errors else None,
    }


def _match(game: Game, agent: Any, solver: Solver, openings: list[Position], games: int, seed: int) -> dict[str, Any]:
    """Games from the openings, the agent as first and as second player in turn.

    `expected` is what two perfect players would score in the agent's place.
    """
    rng = generator(seed, stream=3)
    report: dict[str, Any] = {}
    for seat, name in enumerate(("first", "second")):
        results, expected = [], []
        for number in range((games + 1 - seat) // 2):
            state = openings[number % len(openings)].state.copy()
            try:
                value = max(solver.values(state).values())
                utility = _play(game, agent, solver, state, seat, rng)
            except Unsolved:
                continue
            expected.append(value if int(turn(game, state)) == seat else -value)
            results.append(utility)
        report[name] = {**_outcomes(results), "expected": _outcomes(expected)}
    report["openings"] = "start" if openings[0].source == "start" else f"{openings[0].plies} plies played"
    return report


def _outcomes(utilities: list[float]) -> dict[str, int]:
    return {
        "wins": sum(u > _CLOSE for u in utilities),
        "draws": sum(abs(u) <= _CLOSE for u in utilities),
        "losses": sum(u < -_CLOSE for u in utilities),
    }


def _play(game: Game, agent: Any, solver: Solver, start: State, seat: int, rng: Any) -> float:
    """The agent's utility of one game against best moves, chosen at random among equals."""
    state = start.copy()
    out, probabilities = buffers(game)
    agent.reset()
    while (player := int(turn(game, state))) != TERMINAL:
        if player == CHANCE:
            action = int(roll(game, state, out, probabilities, rng))
        elif player == seat:
            action = int(agent.choose(state))
        else:
            best = solver.solve(state).best
            action = best[int(below(rng, len(best)))]
        advance(game, state, action)
    return float(game.utility(state, seat))


def rows(report: dict[str, Any]) -> list[list[str]]:
    """The table for people."""
    found = []
    for name, part in [*report["by_phase"].items(), ("all", report)]:
        critical = "" if part["kept_critical"] is None else f"{100 * part['kept_critical']:.1f}%"
        error = "" if part["value_error"] is None else f"{part['value_error']:.3f}"
        found.append(
            [name, str(part["positions"]), f"{100 * part['kept']:.1f}%", str(part["critical"]), critical, error]
        )
    return found


def sentences(report: dict[str, Any]) -> list[str]:
    """What the table leaves out."""
    lines = []
    if report["plies"]:
        low, high = report["plies"]
        lines.append(f"positions after {low} to {high} plies of at most {report['game_plies']}")
    if report["unsolved"]:
        lines.append(f"{report['unsolved']} positions were too large to solve, so they do not count")
    for name in ("first", "second"):
        if part := report.get("against_perfect", {}).get(name):
            truth = part["expected"]
            lines.append(
                f"against perfect as {name} player: {part['wins']} wins, {part['draws']} draws, {part['losses']} losses "
                f"(perfect play: {truth['wins']}, {truth['draws']}, {truth['losses']}); "
                f"openings: {report['against_perfect']['openings']}"
            )
    return lines
