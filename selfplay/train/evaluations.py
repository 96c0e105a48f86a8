"""How good is it by now? Matches and truth while the training goes on, in processes of low priority."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from envs.game import Game
from selfplay.train.config import EvaluationConfig
from selfplay.train.runs import Run


class Evaluations:
    """One evaluation at a time: opponents of the ladder one after the other, then truth where there is a solver."""

    def __init__(
        self,
        run: Run,
        watch: Any,
        game_spec: str,
        game: Game,
        config: EvaluationConfig,
        tell: Callable[[str], None],
    ):
        self.run, self.watch, self.game_spec, self.game, self.config = run, watch, game_spec, game, config
        self.tell = tell
        self.last_minutes = 0.0
        self.scores: dict[str, float] = {}
        self.former: str | None = None
        self.in_use: set[str] = set()
        self._step = 0
        self._jobs: list[tuple[str, list[str]]] = []
        self._running: tuple[str, subprocess.Popen[str]] | None = None

    def due(self, minutes: float) -> bool:
        busy = self._running is not None or bool(self._jobs)
        return self.config.minutes > 0 and minutes - self.last_minutes >= self.config.minutes and not busy

    def agent(self, step: int) -> str:
        path = self.run.path / "checkpoints" / f"{step:09d}"
        return f"alphazero:checkpoint={path},simulations={self.config.simulations}"

    def jobs(self, step: int) -> list[tuple[str, list[str]]]:
        """Name and command line of every part of an evaluation."""
        agent, games = self.agent(step), str(self.config.games)
        found = []
        if self.game.num_players == 2:
            for opponent in self.config.ladder:
                found.append((opponent, ["match", self.game_spec, agent, opponent, "--games", games, "--workers", "1"]))
            if self.config.former and self.former:
                words = ["match", self.game_spec, agent, self.former, "--games", games, "--workers", "1"]
                found.append(("former", words))
        else:
            for opponent in self.config.ladder:
                found.append((opponent, ["tournament", self.game_spec, agent, opponent, "--games-per-pair", games]))
        if self.config.positions and _has_truth(self.game_spec):
            words = ["score", self.game_spec, agent, "--count", str(self.config.positions)]
            found.append(("truth", words))
        return found

    def start(self, step: int, minutes: float) -> None:
        self.last_minutes, self._step = minutes, step
        self._jobs = self.jobs(step)
        self.in_use = {f"{step:09d}"} | ({Path(self.former.split("=")[1].split(",")[0]).name} if self.former else set())
        self._next()

    def _next(self) -> None:
        if self._running is None and self._jobs:
            name, words = self._jobs.pop(0)
            command = [sys.executable, "-P", "-m", "selfplay.cli", *words, "--json"]
            process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
            )
            os.setpriority(os.PRIO_PROCESS, process.pid, 10)
            self._running = name, process

    def collect(self, view: Any, wait: bool = False) -> None:
        """Takes in what has been finished; with `wait`, all of it."""
        while self._running is not None:
            name, process = self._running
            if process.poll() is None and not wait:
                return
            text, _ = process.communicate()
            self._running = None
            self._take(name, text, process.returncode, view)
            self._next()

    def _take(self, name: str, text: str, code: int, view: Any) -> None:
        try:
            answer = json.loads(text)
        except ValueError:
            view.tell(f"evaluation against {name} failed (exit code {code})")
            return
        if name == "truth":
            self.scores[name] = float(answer["kept"])
            self.watch.scalars(self._step, {"truth/kept": float(answer["kept"])})
            view.tell(f"step {self._step}: keeps the value in {answer['kept']:.1%} of {answer['positions']} positions")
        elif "score" in answer:
            self.scores[name] = float(answer["score"])
            wdl = answer["wins"], answer["draws"], answer["losses"]
            self.watch.evaluation(self._step, name, *wdl, answer["score"], answer["interval"])
            low, high = answer["interval"]
            view.tell(
                f"step {self._step}: {answer['score']:.1%} ({low:.1%} to {high:.1%}) against {name}, "
                f"{wdl[0]} won, {wdl[1]} drawn, {wdl[2]} lost"
            )
            self.watch.scalars(self._step, {f"elo/{name.partition(':')[0]}": float(answer.get("elo") or 0.0)})
        if not self._jobs:
            self.former = self.agent(self._step)

    def finish(self, step: int, view: Any) -> None:
        """Ends what runs, then evaluates the last checkpoint whole."""
        self.collect(view, wait=True)
        self.start(step, self.last_minutes)
        self.collect(view, wait=True)

    def close(self) -> None:
        self._jobs = []
        if self._running is not None:
            self._running[1].kill()
            self._running[1].communicate()
            self._running = None


def _has_truth(game_spec: str) -> bool:
    return game_spec.split(":")[0] in ("tic_tac_toe", "connect_four", "nim")
