"""Monte Carlo tree search with random playouts: simulations/s beside OpenSpiel's C++ `MCTSBot`.

Both search the same number of simulations from the start position with an empty tree, one playout each, UCB1 with the
same constant (OpenSpiel's rewards span two, ours one, so its number is doubled), one thread, the solver on (OpenSpiel's
also) and memory enough for the whole tree. What counts are the simulations actually done, should a side prove the
root before the end.
"""

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

from envs.registry import make
from selfplay.search.mcts import MCTS, Options

# The simulations of one search: about as many as a move gets in a game at some tenths of a second for the peer.
SIMULATIONS = {"tic_tac_toe": 10_000, "connect_four": 10_000, "othello": 1_000, "go": 1_000}
OPEN_SPIEL = {
    "tic_tac_toe": "tic_tac_toe",
    "connect_four": "connect_four",
    "othello": "othello",
    "go": "go(board_size=9)",
}
_OTHERS = 1_000  # simulations for games without a peer
_MEGABYTES = 1024
REPEATS = 5


def bench_mcts(games: list[str] | None, seconds: float, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """Medians of five runs of about `seconds` each, ours and the peer's in turn."""
    rows = []
    for name in games or sorted(SIMULATIONS):
        tell(f"{name} …")
        simulations = SIMULATIONS.get(name, _OTHERS)
        ours, peer = _Ours(name, simulations), _open_spiel(OPEN_SPIEL.get(name), simulations)
        contestants: list[Any] = [c for c in (ours, peer) if c is not None]
        rates: dict[Any, list[float]] = {contestant: [] for contestant in contestants}
        for contestant in contestants:
            contestant.search(0)  # compiled, or loaded from the cache; memory touched
        for repeat in range(REPEATS):
            for contestant in contestants:
                rates[contestant].append(_rate(contestant, seconds, 1000 * repeat))
        mine = statistics.median(rates[ours])
        theirs = statistics.median(rates[peer]) if peer else None
        rows.append(
            {
                "job": "mcts",
                "game": name,
                "unit": "simulations/s",
                "ours": mine,
                "peer": "open_spiel" if peer else None,
                "theirs": theirs,
                "ratio": mine / theirs if theirs else None,
            }
        )
    return rows


def _rate(contestant: Any, seconds: float, seed: int) -> float:
    """Simulations/s over whole searches, at least one, for about that time."""
    done, started = 0, time.perf_counter()
    while True:
        seed += 1
        done += contestant.search(seed)
        took = time.perf_counter() - started
        if took >= seconds:
            return done / took


class _Ours:
    def __init__(self, name: str, simulations: int):
        game = make(name)
        self.state = _first_choice(game)
        self.searcher = MCTS(game, options=Options(simulations, reuse=False, megabytes=_MEGABYTES))

    def search(self, seed: int) -> int:
        """A search from the start; the simulations done."""
        self.searcher.seed = seed
        self.searcher.reset()
        return self.searcher.search(self.state).nodes


def _first_choice(game: Any) -> Any:
    """The first position where a player chooses."""
    from envs.game import CHANCE, advance, legal_actions

    state = game.new()[0]
    while game.player(state) == CHANCE:
        advance(game, state, legal_actions(game, state)[0])
    return state


class _OpenSpiel:
    def __init__(self, pyspiel: Any, name: str, simulations: int):
        self.pyspiel, self.game, self.simulations = pyspiel, pyspiel.load_game(name), simulations

    def search(self, seed: int) -> int:
        evaluator = self.pyspiel.RandomRolloutEvaluator(1, seed)
        constant = 2 * math.sqrt(2)
        bot = self.pyspiel.MCTSBot(self.game, evaluator, constant, self.simulations, _MEGABYTES, True, seed, False)
        return bot.mcts_search(self.game.new_initial_state()).explore_count


def _open_spiel(name: str | None, simulations: int) -> _OpenSpiel | None:
    if name is None:
        return None
    try:
        import pyspiel
    except ImportError:
        return None
    return _OpenSpiel(pyspiel, name, simulations)
