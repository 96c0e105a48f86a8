"""The agent `perfect`: always a best move, chosen by the seed where there are several."""

from dataclasses import dataclass
from typing import ClassVar

from envs.errors import InputError
from envs.game import Game, State
from envs.rng import below
from selfplay.agents import Agent
from selfplay.search.result import EXACT, Limits, MoveReport, Result
from selfplay.solvers import Unsolved, solver_for, special_solver
from selfplay.solvers.tables import has_tables

COVERED = (
    "connect_four (four in a line), othello endgames, nim, pig for two, endgames with tables (selfplay tables build), "
    "and games small enough to search to their end"
)
_SMALL = 100  # plies of the longest game that is not refused at once


@dataclass
class PerfectAgent(Agent):
    """Solves each position; seconds and nodes (0: no limit) bound the work for one move, megabytes (0: the solver's own) the table."""

    name: ClassVar[str] = "perfect"
    seconds: float = 0.0
    nodes: int = 0
    megabytes: float = 0.0

    def start(self, game: Game, seed: int) -> None:
        super().start(game, seed)
        if special_solver(game) is None and game.max_length > _SMALL and not has_tables(game):
            raise InputError(f"no solver covers this game, so nobody plays it perfectly; covered: {COVERED}")
        self.limits = Limits(nodes=self.nodes, seconds=self.seconds)
        self.solver = solver_for(game, self.limits, self.megabytes or None)
        if not (self.seconds or self.nodes):
            self.solver.limits = Limits(seconds=self.solver.default_seconds)

    def search(self, state: State) -> Result:
        """The choice and what is known of the moves."""
        try:
            found = self.solver.solve(state)
        except Unsolved as error:
            raise Unsolved(f"agent {self}: {error}; covered: {COVERED}") from None
        action = found.best[int(below(self.rng, len(found.best)))]
        moves = tuple(MoveReport(a, m.value, EXACT) for a, m in sorted(found.moves.items(), key=lambda p: -p[1].value))
        depth = found.distance or 0
        return Result(action, found.value, moves, (action,), found.nodes, depth, found.seconds, found.values, True)

    def choose(self, state: State) -> int:
        return self.search(state).action
