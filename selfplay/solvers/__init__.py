"""Exact truth where a game can be solved: `selfplay solve`, the agent `perfect`, and the scoreboard."""

from envs.game import Game
from selfplay.search.result import Limits
from selfplay.solvers.solution import NO_LIMITS, MoveValue, Solution, Solver, Unsolved

METHODS = ("auto", "search")


def solver_for(game: Game, limits: Limits = NO_LIMITS, megabytes: float | None = None, method: str = "auto") -> Solver:
    """The game's own solver or tables where there are such, else (or with method "search") the one for small games.

    `megabytes` None is the solver's own choice: 512 for Connect Four, 256 for Othello, else 64.
    """
    from envs.errors import InputError

    if method not in METHODS:
        raise InputError(f"unknown method {method!r}; methods: {', '.join(METHODS)}")
    if megabytes is not None and not 0 < megabytes < float("inf"):
        raise InputError(f"megabytes={megabytes} must be more than 0")
    try:
        return _made(game, limits, {} if megabytes is None else {"megabytes": megabytes}, method)
    except MemoryError:
        raise InputError(f"megabytes={megabytes} is more memory than there is") from None


def _made(game: Game, limits: Limits, size: dict[str, float], method: str) -> Solver:
    special = special_solver(game) if method == "auto" else None
    if special is not None:
        return special(game, limits, **size)
    from selfplay.solvers.generic import AlphaBetaSolver, InductionSolver

    opposed = game.num_players == 2 and game.zero_sum and not game.has_chance
    search = (AlphaBetaSolver if opposed else InductionSolver)(game, limits, **size)
    if method == "auto":
        from selfplay.solvers.tables import TableSolver, has_tables

        if has_tables(game):
            return TableSolver(game, search)
    return search


def special_solver(game: Game) -> type | None:
    """The solver written for this game."""
    module, name = type(game).__module__, type(game).__name__
    if (module, name) == ("envs.connect_four", "ConnectFour") and game.connect == 4:
        from selfplay.solvers.connect_four import ConnectFourSolver

        return ConnectFourSolver
    if (module, name) == ("envs.nim", "Nim"):
        from selfplay.solvers.nim import NimSolver

        return NimSolver
    if (module, name) == ("envs.othello", "Othello"):
        from selfplay.solvers.othello import OthelloSolver

        return OthelloSolver
    if (module, name) == ("envs.pig", "Pig"):
        from selfplay.solvers.pig import MOST_GOAL, PigSolver

        # With a nearer horizon the draw counts, and the generic solver finds it.
        if game.players == 2 and game.goal <= MOST_GOAL and game.horizon >= 10 * game.goal:
            return PigSolver
    return None


__all__ = ["METHODS", "MoveValue", "Solution", "Solver", "Unsolved", "solver_for", "special_solver"]
