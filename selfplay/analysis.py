"""What an agent thinks of a position: `selfplay analyze`."""

from typing import Any

import numpy as np

from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, Game, State, advance
from selfplay.agents import make_agent
from selfplay.search.result import Result


def line_names(game: Game, state: State, line: tuple[int, ...]) -> list[str]:
    """A line of actions as their players write it, from the given position on."""
    names, here = [], np.array([state], game.state).view(np.recarray)[0]
    for action in line:
        if int(game.player(here)) == TERMINAL:
            break
        names.append(game.action_name(here, action))
        advance(game, here, action)
    return names


def analyze(game: Game, spec: str, position: str | None = None, seed: int = 0) -> dict[str, Any]:
    """The agent's choice in a position with its grounds, as plain data with moves in the game's notation."""
    agent = make_agent(spec, game, seed)
    if not hasattr(agent, "search"):
        raise InputError(f"agent {spec!r} does not search, so there is nothing to analyze; use one that does")
    with np.errstate(over="ignore"):
        state = game.parse_position(position) if position else game.new()[0]
        if int(game.player(state)) == CHANCE and position is None:
            raise InputError("chance begins this game: give --position with its outcome, where a player chooses")
        result: Result = agent.search(state)
        moves = [
            {
                "move": game.action_name(state, move.action),
                "value": move.value,
                "bound": move.bound,
                "visits": move.visits,
                "line": line_names(game, state, move.line),
            }
            for move in result.moves
        ]
        return {
            "move": game.action_name(state, result.action),
            "value": result.value,
            "values": list(result.values),
            "proven": result.proven,
            "depth": result.depth,
            "nodes": result.nodes,
            "seconds": result.seconds,
            "line": line_names(game, state, result.line),
            "moves": moves,
        }


SIGNS = {"exact": "", "upper": "≤ ", "lower": "≥ ", "unknown": "? ", "average": "≈ "}


def rows(analysis: dict[str, Any]) -> list[list[str]]:
    """The table of moves for people, the best first as the search ordered them."""
    found = []
    for move in analysis["moves"]:
        value = "" if move["bound"] == "unknown" else f"{SIGNS[move['bound']]}{move['value']:+.4f}"
        found.append([move["move"], value, f"{move['visits']:,}" if move["visits"] else "", " ".join(move["line"])])
    return found
