"""Random play: whole games/s and plies/s of every game, beside OpenSpiel's C++ random rollouts."""

import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from envs.playouts import play_random_games
from envs.registry import GAMES, make

# Our games and the same rules in OpenSpiel; where a ply means something else there, only games/s compare.
OPEN_SPIEL = {
    "tic_tac_toe": "tic_tac_toe",
    "connect_four": "connect_four",
}
REPEATS = 5


def bench_rules(games: list[str] | None, seconds: float, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """Medians of five runs of about `seconds` each, ours and the peer's in turn."""
    rows = []
    for name in games or sorted(GAMES):
        tell(f"{name} …")
        ours = _Ours(name)
        peer = _open_spiel(OPEN_SPIEL.get(name))
        measured: dict[Any, list[tuple[float, float]]] = {ours: [], peer: []}
        for contestant in [c for c in (ours, peer) if c is not None]:
            contestant.calibrate(seconds)
        for _ in range(REPEATS):
            for contestant in [c for c in (ours, peer) if c is not None]:
                measured[contestant].append(contestant.run())
        for index, unit in enumerate(("games/s", "plies/s")):
            mine = statistics.median(run[index] for run in measured[ours])
            theirs = statistics.median(run[index] for run in measured[peer]) if peer else None
            rows.append(
                {
                    "job": "rules",
                    "game": name,
                    "unit": unit,
                    "ours": mine,
                    "peer": "open_spiel" if peer else None,
                    "theirs": theirs,
                    "ratio": mine / theirs if theirs else None,
                }
            )
    return rows


class _Ours:
    def __init__(self, name: str):
        self.game, self.count, self.seed = make(name), 1, 0

    def calibrate(self, seconds: float) -> None:
        play_random_games(self.game, 1)  # compiled, or loaded from the cache
        self.count = 1
        while True:
            started = time.perf_counter()
            play_random_games(self.game, self.count)
            took = time.perf_counter() - started
            if took > seconds / 8:
                self.count = max(1, int(self.count * seconds / took))
                return
            self.count *= 2

    def run(self) -> tuple[float, float]:
        """Games/s and plies/s."""
        self.seed += 1
        started = time.perf_counter()
        plies = play_random_games(self.game, self.count, self.seed)
        took = time.perf_counter() - started
        return self.count / took, plies / took


class _OpenSpiel:
    """A search of one simulation whose leaf, the start, is judged by n random games: a loop of its C++ alone."""

    def __init__(self, pyspiel: Any, name: str):
        self.pyspiel, self.game = pyspiel, pyspiel.load_game(name)
        self.count, self.seed, self.length = 1, 0, self._mean_length()

    def _mean_length(self) -> float:
        rng, plies, games = random.Random(0), 0, 30
        for _ in range(games):
            state = self.game.new_initial_state()
            while not state.is_terminal():
                state.apply_action(rng.choice(state.legal_actions()))
                plies += 1
        return plies / games

    def _time(self, count: int) -> float:
        self.seed += 1
        evaluator = self.pyspiel.RandomRolloutEvaluator(count, self.seed)
        bot = self.pyspiel.MCTSBot(self.game, evaluator, 1.0, 1, 100, False, self.seed, False)
        state = self.game.new_initial_state()
        while state.is_chance_node():  # a search starts at a player's node
            state.apply_action(state.chance_outcomes()[0][0])
        started = time.perf_counter()
        bot.step(state)
        return time.perf_counter() - started

    def calibrate(self, seconds: float) -> None:
        self.count = 1
        while (took := self._time(self.count)) < seconds / 8:
            self.count *= 2
        self.count = max(1, int(self.count * seconds / took))

    def run(self) -> tuple[float, float]:
        took = self._time(self.count)
        return self.count / took, self.count * self.length / took


def _open_spiel(name: str | None) -> _OpenSpiel | None:
    if name is None:
        return None
    try:
        import pyspiel
    except ImportError:
        return None
    return _OpenSpiel(pyspiel, name)
