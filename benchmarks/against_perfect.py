"""An agent as first player against `perfect`, from every start that is won for it.

    .venv/bin/python -m benchmarks.against_perfect connect_four alphabeta:depth=1,eval=connect_four-linear

The starts are all positions after one move by each side (`--plies 2`) that are won for the player to move, in random
order, over and over until so many games are played; `perfect` chooses among equally good moves at random. So whatever is
not a win was given away. Connect Four's first position takes about a minute, the table then knows most of the rest.
"""

import argparse
import json
import sys
import time
from typing import Any

import numpy as np

from envs.errors import InputError
from envs.game import Game, State
from envs.registry import make
from envs.rng import below, generator
from selfplay.agents import make_agent
from selfplay.play import advance, turn
from selfplay.solvers import Solver, solver_for
from selfplay.solvers.solution import after, legal


def won_starts(game: Game, solver: Solver, plies: int) -> list[list[int]]:
    """All openings of so many plies after which the mover, who is the first player, has a won game."""
    openings: list[list[int]] = [[]]
    for _ in range(plies):
        openings = [[*o, action] for o in openings for action in legal(game, played(game, o))]
    found = []
    for opening in openings:
        state = played(game, opening)
        if int(turn(game, state)) == 0 and max(solver.values(state).values()) > 0:
            found.append(opening)
    return found


def played(game: Game, actions: list[int]) -> State:
    """The position after these actions."""
    state: Any = game.new()[0].copy()
    for action in actions:
        state = after(game, state, action)
    return state


def wilson(wins: int, games: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927)."""
    share, z = wins / games, 1.96
    middle = (share + z * z / (2 * games)) / (1 + z * z / games)
    half = z / (1 + z * z / games) * (share * (1 - share) / games + z * z / (4 * games * games)) ** 0.5
    return middle - half, middle + half


def measure(game: Game, spec: str, games: int, plies: int, seed: int, megabytes: float | None = None) -> dict[str, Any]:
    """Wins, draws and losses of the agent, with how many of the games were different."""
    if games < 1 or plies < 0 or plies % 2:
        raise InputError(f"games={games} must be at least 1, and plies={plies} even, so that the agent is to move")
    started = time.perf_counter()
    agent, solver = make_agent(spec, game, seed), solver_for(game, megabytes=megabytes)
    rng = generator(seed)
    starts = won_starts(game, solver, plies)
    if not starts:
        raise InputError(f"after {plies} plies no position is won for the first player")
    np.random.default_rng(seed).shuffle(starts)
    tally, seen = {"wins": 0, "draws": 0, "losses": 0}, set()
    for number in range(games):
        actions = list(starts[number % len(starts)])
        state: Any = played(game, actions)
        agent.reset()
        while (player := int(turn(game, state))) >= 0:
            if player == 0:
                action = int(agent.choose(state))
            else:
                best = solver.solve(state).best
                action = best[int(below(rng, len(best)))]
            actions.append(action)
            advance(game, state, action)
        utility = float(game.utility(state, 0))
        tally["wins" if utility > 0 else "losses" if utility < 0 else "draws"] += 1
        seen.add(tuple(actions))
        sys.stderr.write(f"\r{number + 1}/{games} games: {tally}  ")
    sys.stderr.write("\n")
    low, high = wilson(tally["wins"], games)
    report: dict[str, Any] = {"agent": spec, "starts": len(starts), "games": games, **tally}
    report |= {"won": tally["wins"] / games, "interval": [low, high], "distinct_games": len(seen)}
    return report | {"seconds": round(time.perf_counter() - started, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description="An agent as first player against perfect, from won starts.")
    parser.add_argument("game")
    parser.add_argument("agent")
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--plies", type=int, default=2, help="random plies at the start, even")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--megabytes", type=float, help="the solver's table; a large one is several times as fast")
    given = parser.parse_args()
    try:
        report = measure(make(given.game), given.agent, given.games, given.plies, given.seed, given.megabytes)
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
