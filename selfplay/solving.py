"""The exact truth about a position: `selfplay solve`."""

from typing import Any

import numpy as np

from envs.game import CHANCE, Game
from selfplay.search.result import Limits
from selfplay.solvers import solver_for


def solve(
    game: Game,
    position: str | None = None,
    nodes: int = 0,
    seconds: float | None = None,
    megabytes: float | None = None,
    method: str = "auto",
    all_moves: bool = False,
) -> dict[str, Any]:
    """Value, distance and all best moves as plain data, moves in the game's notation; refuses in one sentence.

    `moves` holds the moves that are known exactly, the best ones at least; with `all_moves` all of them, at a cost.
    `seconds` None is the solver's own patience, 0 none at all: as long as it takes.
    """
    from envs.errors import InputError

    with np.errstate(over="ignore"):
        state = game.parse_position(position) if position else game.new()[0]
        if int(game.player(state)) == CHANCE and position is None:
            raise InputError("chance begins this game: give --position with its outcome, where a player chooses")
    solver = solver_for(game, Limits(nodes=nodes, seconds=seconds or 0.0), megabytes, method)
    if seconds is None:
        solver.limits = Limits(nodes=nodes, seconds=0.0 if nodes else solver.default_seconds)
    found = solver.solve(state)
    known = {**solver.all_moves(state), **found.moves} if all_moves else found.moves
    moves = [
        {
            "move": game.action_name(state, action),
            "value": move.value,
            "distance": move.distance,
            "score": move.score,
            "best": action in found.best,
        }
        for action, move in sorted(known.items(), key=lambda pair: (-pair[1].value, -(pair[1].score or 0), pair[0]))
    ]
    return {
        "value": found.value,
        "distance": found.distance,
        "best": [game.action_name(state, action) for action in found.best],
        "nodes": found.nodes,
        "seconds": found.seconds,
        "score": found.score,
        "values": list(found.values),
        "moves": moves,
        "method": found.method,
    }


def rows(solution: dict[str, Any]) -> list[list[str]]:
    """The table of moves for people."""
    return [
        [
            move["move"],
            f"{move['value']:+g}",
            "" if move["distance"] is None else str(move["distance"]),
            "" if move["score"] is None else f"{move['score']:+d}",
            "best" if move["best"] else "",
        ]
        for move in solution["moves"]
    ]


def sentence(solution: dict[str, Any]) -> str:
    """The solution for people."""
    distance = "" if solution["distance"] is None else f", the game ends in {solution['distance']} plies"
    score = "" if solution["score"] is None else f" (score {solution['score']:+d})"
    several = f", for the players {' '.join(f'{v:+g}' for v in solution['values'])}" if solution["values"] else ""
    return (
        f"value {solution['value']:+g}{score}{several}{distance}; best: {' '.join(solution['best'])}\n"
        f"{solution['method']}, {solution['nodes']:,} nodes in {solution['seconds']:.2f} s"
    )
