"""How good is it by now? Matches and truth while the training goes on, in a process of low priority.

Each part of an evaluation is a process (`judge.py`): the opponents of the ladder one after the other, the checkpoint of
the evaluation before, exact truth where there is a solver, and once in a run the ladder's agents among themselves. All
games so far give the ratings (`elo.py`).
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs.game import Game
from selfplay.train.config import EvaluationConfig
from selfplay.train.elo import Rated, name_of, rate
from selfplay.train.runs import Run

TRUTH, FORMER = "truth", "former"
_SHORT = 12  # plies of the longest game that the general solver labels in seconds


@dataclass(frozen=True)
class _Job:
    """One part: against whom, and the request to the process; `names` are those of the agents in the ratings."""

    opponent: str
    asked: dict[str, Any]
    names: tuple[str, ...] = ()


class Evaluations:
    """One evaluation at a time; `scores` and `figures` are the last ones."""

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
        self.elo: Rated | None = None  # of the last checkpoint that was evaluated
        self.points: tuple[float, float] | None = None  # a game for one: ours and the ladder's last agent's
        self.lines = self.watch.read_evaluations()
        self.former = self._last_step()
        self.in_use: set[str] = {_folder(self.former)} if self.former is not None else set()
        self._step = -1
        self._jobs: list[_Job] = []
        self._running: tuple[_Job, subprocess.Popen[str]] | None = None

    def _last_step(self) -> int | None:
        """The newest evaluated checkpoint of a resumed run that is still there."""
        steps = {int(line["step"]) for line in self.lines if line.get("opponent", TRUTH) != TRUTH}
        return max((s for s in steps if (self.run.path / "checkpoints" / _folder(s)).is_dir()), default=None)

    def due(self, minutes: float) -> bool:
        busy = self._running is not None or bool(self._jobs)
        return self.config.minutes > 0 and minutes - self.last_minutes >= self.config.minutes and not busy

    def agent(self, step: int) -> str:
        path = self.run.path / "checkpoints" / _folder(step)
        return f"alphazero:checkpoint={path},simulations={self.config.simulations}"

    def jobs(self, step: int, workers: int = 1) -> list[_Job]:
        """All parts of an evaluation."""
        config, mine = self.config, self.agent(step)

        def against(opponent: str, spec: str, name: str, agent: str = mine, own: str = name_of(step)) -> _Job:
            asked = {"game": self.game_spec, "agents": [agent, spec], "games": config.games, "workers": workers}
            return _Job(opponent, {**asked, "seed": step}, (own, name))

        found = [against(spec, spec, spec) for spec in config.ladder]
        if config.former and self.former is not None and self.former != step:
            found.append(against(FORMER, self.agent(self.former), name_of(self.former)))
        if config.positions and has_truth(self.game):
            asked = {"game": self.game_spec, "agents": [mine], "positions": config.positions}
            found.append(_Job(TRUTH, asked))
        if self.game.num_players > 1:
            # Without games of their own the ladder's agents would be compared through the checkpoints only.
            known = {tuple(line.get("agents", ())) for line in self.lines}
            for weaker, stronger in zip(config.ladder, config.ladder[1:], strict=False):
                if (stronger, weaker) not in known:
                    found.append(against(weaker, weaker, weaker, stronger, stronger))
        return found

    def start(self, step: int, minutes: float, workers: int = 1) -> None:
        self.last_minutes, self._step = minutes, step
        self._jobs = self.jobs(step, workers)
        self.in_use = {_folder(s) for s in (step, self.former) if s is not None}
        self._next()

    def _next(self) -> None:
        if self._running is None and self._jobs:
            job = self._jobs.pop(0)
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "selfplay.train.judge"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,  # Ctrl-C is for the trainer, which ends it
                env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": _paths()},
            )
            self._running = job, process
            with contextlib.suppress(OSError):  # it may be dead already: `collect` says so
                os.setpriority(os.PRIO_PROCESS, process.pid, 10)
                process.stdin.write(json.dumps(job.asked))  # type: ignore[union-attr]
                process.stdin.close()  # type: ignore[union-attr]
            process.stdin = None

    def collect(self, view: Any, wait: bool = False) -> None:
        """Takes in what has been finished; with `wait`, all of it."""
        while self._running is not None:
            job, process = self._running
            if process.poll() is None and not wait:
                return
            text, _ = process.communicate()
            self._running = None
            self._take(job, text, process.returncode, view)
            self._next()

    def _take(self, job: _Job, text: str, code: int, view: Any) -> None:
        try:
            answer = json.loads(text)
        except ValueError:
            answer = {"error": f"its process ended with exit code {code}"}
        if "error" in answer:
            view.tell(f"evaluation against {job.opponent} failed: {answer['error']}")
        elif job.names and job.names[0] != name_of(self._step):
            self.lines.append(self.watch.ladder_match(self._step, job.names, answer))
        else:
            self.scores[job.opponent] = float(answer["score"])
            if self.game.num_players == 1 and job.opponent != TRUTH:
                self.points = answer["points"][0], answer["points"][1]
            self.lines.append(self.watch.judged(self._step, job.opponent, job.names, answer))
            view.tell(f"step {self._step}: {sentence(job.opponent, answer)}")
        if not self._jobs:
            self._rate(view)
            self.former = self._step

    def _rate(self, view: Any) -> None:
        """The ratings by all games so far; the newest checkpoint's is the curve."""
        table = rate(self.lines)
        found = next((rated for rated in table if rated.step == self._step), None)
        if found is not None:
            self.elo = found
            self.watch.elo(self._step, found.elo, found.low, found.high)
            view.tell(
                f"step {self._step}: Elo {found.elo:+.0f} ({found.low:+.0f} to {found.high:+.0f}), {table[0].agent} = 0"
            )

    def figures(self) -> dict[str, Any]:
        """For the view, beside the scores."""
        found: dict[str, Any] = {}
        if self.elo is not None:
            found["Elo"] = f"{self.elo.elo:+.0f} ({self.elo.low:+.0f} to {self.elo.high:+.0f})"
        if self.points is not None:
            found["points"] = f"{points_text(self.points[0])} (other {points_text(self.points[1])})"
        return found

    def results(self) -> dict[str, float]:
        """For the table of hyper-parameters: the last scores, and the rating where there is one."""
        found = dict(self.scores)
        if self.elo is not None:
            found["elo"] = self.elo.elo
        if self.points is not None:
            found["points"] = self.points[0]
        return found

    def finish(self, step: int, view: Any) -> None:
        """Ends what runs, then evaluates the last checkpoint whole, now on all cores."""
        from selfplay.workers import available_cores

        if self._running is not None:
            view.tell(f"finishing the evaluation of step {self._step}")
        self.collect(view, wait=True)
        if self._step != step:
            view.tell("evaluating the last checkpoint")
            self.start(step, self.last_minutes, available_cores())
            self.collect(view, wait=True)

    def close(self) -> None:
        self._jobs = []
        if self._running is not None:
            process = self._running[1]
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)  # its players as well
            process.communicate()
            self._running = None


def sentence(opponent: str, answer: dict[str, Any]) -> str:
    """What an evaluation found.

    >>> found = {"games": 10, "score": 0.9, "interval": [0.6, 0.98], "wins": 9, "draws": 0, "losses": 1}
    >>> sentence("random", {**found, "players": 2})
    '90.0% (60.0% to 98.0%) against random, 9 won, 0 drawn, 1 lost'
    """
    low, high = answer["interval"]
    score = f"{answer['score']:.1%} ({low:.1%} to {high:.1%})"
    if opponent == TRUTH:
        return f"keeps the exact value in {score} of {answer['games']} positions"
    if answer["players"] == 1:
        texts = []
        for mean, interval in zip(answer["points"], answer["points_intervals"], strict=True):
            texts.append(points_text(mean, interval))
        return f"{texts[0]} points, {opponent} {texts[1]} in {answer['games']} games; more on {score} of the seeds"
    equal = f" of the wins (equality: {answer['equality']:.1%})" if answer["players"] > 2 else ""
    counts = f"{answer['wins']} won, {answer['draws']} drawn, {answer['losses']} lost"
    return f"{score}{equal} against {opponent}, {counts}"


def points_text(mean: float, interval: Sequence[float] | None = None) -> str:
    """
    >>> points_text(1966.67, (1000.2, 2933.1)), points_text(-0.25, (-0.5329, 0.0329))
    ('1,967 (1,000 to 2,933)', '-0.25 (-0.533 to 0.0329)')
    """
    plain, *bounds = [f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.3g}" for x in (mean, *(interval or ()))]
    return f"{plain} ({bounds[0]} to {bounds[1]})" if bounds else plain


def _folder(step: int | None) -> str:
    return f"{step:09d}"


def _paths() -> str:
    root = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])


def has_truth(game: Game) -> bool:
    """Whether positions of the game are solved in seconds: it has a solver of its own, or is short."""
    from selfplay.solvers import special_solver

    return special_solver(game) is not None or (game.num_players == 2 and game.max_length <= _SHORT)


__all__ = ["Evaluations", "has_truth", "sentence"]
