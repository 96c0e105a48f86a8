"""Agents that search: the spec's keys are the search's options (see `selfplay/search/`).

minimax:depth=4    mcts:simulations=10000,playout=own    alphabeta:depth=8,eval=none    alphabeta:seconds=0.5,null=on,reductions=on
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from envs.errors import InputError
from envs.game import Game, State
from models.evaluation import Evaluation, game_config, make_evaluation
from selfplay.agents import Agent
from selfplay.book import open_book
from selfplay.search.deepening import AlphaBeta, Switches
from selfplay.search.expectiminimax import Expectiminimax
from selfplay.search.fit import require_expectation, require_two_players
from selfplay.search.maxn import MaxN
from selfplay.search.mcts import MCTS
from selfplay.search.mcts import Options as TreeOptions
from selfplay.search.minimax import Minimax
from selfplay.search.montecarlo import MonteCarlo
from selfplay.search.montecarlo import Options as PlayoutOptions
from selfplay.search.playouts import make_policy
from selfplay.search.result import Limits, Result


def evaluation_for(game: Game, name: str, tables: bool) -> Any:
    """The evaluation of that name, joined to the game's endgame tables if wanted."""
    evaluation = make_evaluation(name, game)
    if not tables:
        return evaluation
    from selfplay.tables.families import family_of
    from selfplay.tables.store import default_folder

    return family_of(game).evaluation(evaluation, default_folder())


@dataclass
class SearchAgent(Agent):
    """An agent whose choice comes with its grounds: `search` gives the whole result.

    `book` is an opening book to look into first: off, on (books/<game>.sqlite) or a path.
    """

    book: str = "off"

    def start(self, game: Game, seed: int) -> None:
        super().start(game, seed)
        self.opening = open_book(self.book, game)

    def search(self, state: State) -> Result:
        """The choice, its value, what is known of the other moves, and the cost."""
        from_book = self.opening.result(state) if self.opening is not None else None
        return from_book or self.searcher.search(state)

    def choose(self, state: State) -> int:
        return self.search(state).action

    def stop(self) -> None:
        """Ends a running search at once; for use from another thread."""
        self.searcher.stop()

    def reset(self) -> None:
        self.searcher.reset()

    def reseed(self, seed: int) -> None:
        super().reseed(seed)
        self.searcher.seed = seed  # read by the reset of searches that draw random numbers

    searcher: ClassVar[Any] = None


@dataclass
class MinimaxAgent(SearchAgent):
    """Plain minimax; depth=0 searches to the end of the game."""

    name: ClassVar[str] = "minimax"
    depth: int = 0
    nodes: int = 0
    seconds: float = 0.0
    eval: str = "linear"

    def start(self, game: Game, seed: int) -> None:
        super().start(game, seed)
        require_two_players(game, self.name)
        limits = Limits(self.depth, self.nodes, self.seconds)
        self.searcher = Minimax(game, make_evaluation(self.eval, game), limits)  # type: ignore[misc]


@dataclass
class AlphaBetaAgent(SearchAgent):
    """Alpha-beta; without a limit it thinks for one second. The switches are explained in `deepening.Switches`."""

    name: ClassVar[str] = "alphabeta"
    depth: int = 0
    nodes: int = 0
    seconds: float = 0.0
    eval: str = "linear"
    megabytes: float = 64.0
    deepening: bool = True
    table: bool = True
    symmetry: bool = True
    order: bool = True
    killers: bool = True
    history: bool = True
    sort: bool = True
    pvs: bool = True
    aspiration: float = 0.02
    full_root: bool = False
    quiescence: bool = True
    extend: bool = False
    beam: int = 0
    null: bool = False
    reductions: bool = False
    probcut: float = 0.0
    tables: bool = False  # ask the endgame tables in `$SELFPLAY_TABLES` or the folder `tables`

    def start(self, game: Game, seed: int) -> None:
        super().start(game, seed)
        require_two_players(game, self.name)
        limited = self.depth or self.nodes or self.seconds
        limits = Limits(self.depth, self.nodes, self.seconds if limited else 1.0)
        switches = Switches(**{name: getattr(self, name) for name in Switches.__dataclass_fields__})
        # How well shallow searches predict deep ones depends on the evaluation; the config's is for the hand-made one.
        # A learned evaluation brings its own (`selfplay fit-probcut GAME --eval RUN`).
        known = game_config(game)[0].get("probcut", {}).get("cuts")
        cuts = known if self.eval == "linear" else getattr(make_evaluation(self.eval, game), "cuts", ())
        self.searcher = AlphaBeta(  # type: ignore[misc]
            game, evaluation_for(game, self.eval, self.tables), limits, switches, self.megabytes, cuts
        )


@dataclass
class ExpectiminimaxAgent(SearchAgent):
    """Expectiminimax with Star1 and Star2; depth counts players' moves. Without a limit it thinks for one second."""

    name: ClassVar[str] = "expectiminimax"
    depth: int = 0
    nodes: int = 0
    seconds: float = 0.0
    eval: str = "linear"
    megabytes: float = 16.0
    prune: bool = True
    star1: bool = True
    star2: bool = True
    table: bool = True
    full_root: bool = False
    tables: bool = False  # ask the endgame tables in `$SELFPLAY_TABLES` or the folder `tables`

    def start(self, game: Game, seed: int) -> None:
        super().start(game, seed)
        require_expectation(game, self.name)
        limited = self.depth or self.nodes or self.seconds
        limits = Limits(self.depth, self.nodes, self.seconds if limited else 1.0)
        switches = {name: getattr(self, name) for name in ("prune", "star1", "star2", "table", "full_root")}
        evaluation = evaluation_for(game, self.eval, self.tables)
        self.searcher = Expectiminimax(  # type: ignore[misc]
            game, evaluation, limits, **switches, megabytes=self.megabytes, name=self.name
        )


@dataclass
class ExpectimaxAgent(ExpectiminimaxAgent):
    """Expectiminimax without MIN: one player against chance."""

    name: ClassVar[str] = "expectimax"


@dataclass
class MaxNAgent(SearchAgent):
    """max^n for any number of players; depth=0 searches to the end of the game."""

    name: ClassVar[str] = "maxn"
    depth: int = 0
    nodes: int = 0
    seconds: float = 0.0
    eval: str = "linear"

    def start(self, game: Game, seed: int) -> None:
        super().start(game, seed)
        limits = Limits(self.depth, self.nodes, self.seconds)
        evaluation = make_evaluation(self.eval, game)
        self.searcher = MaxN(game, evaluation, limits, self.name == "paranoid")  # type: ignore[misc]


@dataclass
class ParanoidAgent(MaxNAgent):
    """All others are taken to play against the mover."""

    name: ClassVar[str] = "paranoid"


class Default(int):
    """A default that differs from the same number given by hand: `seconds` alone lifts the first, not the second."""

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __hash__ = int.__hash__


def _limit(number: int, seconds: float, name: str) -> int:
    """The number of playouts or simulations, 0 for none: only where time is the limit and no number was given."""
    if number < 1:
        raise InputError(f"{name}={int(number)} must be 1 or more")
    return 0 if isinstance(number, Default) and seconds > 0 else int(number)


def _asked_evaluation(agent: Any, game: Game) -> Evaluation:
    """The agent's evaluation; nothing where its playouts run to the end and nobody asks for one."""
    asked = agent.cutoff > 0 or agent.playout == "greedy" or agent.eval != "linear"
    return make_evaluation(agent.eval if asked else "none", game)


@dataclass
class MonteCarloAgent(SearchAgent):
    """So many playouts from each move, the best average; `seconds` alone gives as many as fit into that time.

    playout: uniform, own (the game's policy) or greedy (by the evaluation, but for a share epsilon of random moves).
    """

    name: ClassVar[str] = "montecarlo"
    playouts: int = Default(1000)
    playout: str = "uniform"
    epsilon: float = 0.1
    cutoff: int = 0
    eval: str = "linear"
    seconds: float = 0.0

    def start(self, game: Game, seed: int) -> None:
        super().start(game, seed)
        options = PlayoutOptions(_limit(self.playouts, self.seconds, "playouts"), self.seconds, self.cutoff)
        policy = make_policy(self.playout, self.epsilon)
        evaluation = _asked_evaluation(self, game)
        self.searcher = MonteCarlo(game, evaluation, options, policy, seed)  # type: ignore[misc]


@dataclass
class MCTSAgent(SearchAgent):
    """Monte Carlo tree search; `seconds` alone gives as many simulations as fit. Options: see `mcts.Options`."""

    name: ClassVar[str] = "mcts"
    simulations: int = Default(1000)
    c: float = TreeOptions.c
    playout: str = "uniform"
    epsilon: float = 0.1
    cutoff: int = 0
    eval: str = "linear"
    solver: bool = True
    reuse: bool = True
    seconds: float = 0.0
    megabytes: float = 256.0

    def start(self, game: Game, seed: int) -> None:
        super().start(game, seed)
        names = ("seconds", "c", "cutoff", "solver", "reuse", "megabytes")
        simulations = _limit(self.simulations, self.seconds, "simulations")
        options = TreeOptions(simulations, **{name: getattr(self, name) for name in names})
        policy = make_policy(self.playout, self.epsilon)
        evaluation = _asked_evaluation(self, game)
        self.searcher = MCTS(game, evaluation, options, policy, seed)  # type: ignore[misc]


SEARCH_AGENTS: tuple[type[Agent], ...] = (
    MinimaxAgent,
    AlphaBetaAgent,
    ExpectiminimaxAgent,
    ExpectimaxAgent,
    MaxNAgent,
    ParanoidAgent,
    MonteCarloAgent,
    MCTSAgent,
)
