"""Random play: whole games/s and plies/s of every game, beside OpenSpiel's C++ random rollouts."""

import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.environments import bench_environments
from envs.game import Game
from envs.playouts import play_random_games
from envs.registry import GAMES, make

# Our games and the same rules in OpenSpiel (its rollouts refuse 2048, whose rewards come before the end).
OPEN_SPIEL = {
    "backgammon": "backgammon",
    "checkers": "checkers",
    "chess": "chess",
    "connect_four": "connect_four",
    "go": "go(board_size=9,komi=7.5)",
    "gomoku": "mnk(m=15,n=15,k=5)",
    "nim": "nim(is_misere=False)",
    "othello": "othello",
    "pig": "pig",
    "tic_tac_toe": "tic_tac_toe",
}
# Where only one of the two units compares, and why.
ONLY = {
    "backgammon": ("games/s", "a ply is one man's move here, a whole roll's there"),
    "checkers": ("plies/s", "a draw after 80 plies without progress here, 40 without a capture there"),
    "go": ("plies/s", "superko forbids a repetition here, it ends the game there"),
}
REPEATS = 5
_LENGTH_GAMES = 3000
UNITS = ("games/s", "plies/s")


def bench_rules(games: list[str] | None, seconds: float, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """Medians of five runs of about `seconds` each, ours and the peer's in turn."""
    names = games or sorted(GAMES)
    made = [make(name) for name in names]  # before anything is measured: a wrong name costs no time
    rows = []
    for name, game in zip(names, made, strict=True):
        tell(f"{name} …")
        ours, peer = _Ours(game), _open_spiel(OPEN_SPIEL.get(name))
        contestants: list[_Ours | _OpenSpiel] = [ours, peer] if peer else [ours]
        for contestant in contestants:
            contestant.calibrate(seconds)
        runs = [[contestant.run() for contestant in contestants] for _ in range(REPEATS)]
        medians = [[statistics.median(run[c][u] for run in runs) for u in range(2)] for c in range(len(contestants))]
        rows += [_row(name, index, medians) for index in range(len(UNITS))]
    if not games or "connect_four" in games:
        rows += bench_environments(["connect_four"], seconds, tell)
    return rows


def _row(name: str, index: int, medians: list[list[float]]) -> dict[str, Any]:
    comparable, reason = ONLY.get(name, (UNITS[index], ""))
    ours, theirs = medians[0][index], medians[1][index] if len(medians) > 1 else None
    return {
        "job": "rules",
        "game": name,
        "unit": UNITS[index],
        "ours": ours,
        "peer": "open_spiel" if theirs else None,
        "theirs": theirs,
        "ratio": ours / theirs if theirs and comparable == UNITS[index] else None,
        "note": reason if theirs and comparable != UNITS[index] else "",
    }


class _Ours:
    def __init__(self, game: Game):
        self.game, self.count, self.seed = game, 1, 0

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
        """Plies per random game, chance included, as its rollouts do not tell: about one second's worth of games."""
        rng, plies, games, started = random.Random(0), 0, 0, time.perf_counter()
        while games < _LENGTH_GAMES and (games < 5 or time.perf_counter() - started < 1):
            state = self.game.new_initial_state()
            while not state.is_terminal():
                if state.is_chance_node():
                    outcomes, weights = zip(*state.chance_outcomes(), strict=True)
                    state.apply_action(rng.choices(outcomes, weights)[0])
                else:
                    state.apply_action(rng.choice(state.legal_actions()))
                plies += 1
            games += 1
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
