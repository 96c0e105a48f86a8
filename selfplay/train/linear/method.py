"""`selfplay train GAME --method linear`: rounds of self-play and learning until a limit is reached, as a run.

The run's folder is that of any training (`selfplay/train/runs.py`); its checkpoints are evaluations that every search
takes (`alphabeta:depth=6,eval=RUN`). Matches against the same search with the hand-made evaluation run in a process of
their own. What a run depends on is saved between rounds, so that with one worker and a limit of games or steps it ends
with the same bits however often it was killed. A step is a round.
"""

import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from envs.errors import InputError
from envs.game import Game
from envs.registry import make
from models.evaluation_file import save_evaluation
from selfplay.train.config import EvaluationConfig
from selfplay.train.evaluations import Evaluations
from selfplay.train.linear.learners import Learner, SearchLearner, make_learner
from selfplay.train.linear.settings import LinearSettings, checked
from selfplay.train.linear.teaching import LinearLessons, check_taught
from selfplay.train.loop import CHECKPOINTS_KEPT, Interrupted, Limits
from selfplay.train.runs import Run, write_atomic
from selfplay.train.view import View
from selfplay.train.watch import Watch


def agent_spec(game: Game, evaluation: str, depth: int) -> str:
    """The search that suits the game, with that evaluation at its leaves.

    >>> agent_spec(make("othello"), "runs/othello-linear-1", 6)
    'alphabeta:depth=6,eval=runs/othello-linear-1'
    """
    kind = "expectimax" if game.num_players == 1 else "expectiminimax" if game.has_chance else "alphabeta"
    return f"{kind}:depth={depth},eval={evaluation}"


class LinearEvaluations(Evaluations):
    """Matches of the learned evaluation against another one under the same search."""

    depth = 2

    def agent(self, step: int) -> str:
        return agent_spec(self.game, str(self.run.path / "checkpoints" / f"{step:09d}"), self.depth)


class LinearTraining:
    """One run, from its start or from where it was."""

    def __init__(self, run: Run, game_spec: str, learner: Learner, limits: Limits, tell: Callable[[str], None]):
        self.run, self.limits, self.learner = run, limits, learner
        self.game, self.settings = learner.game, learner.settings
        settings = learner.settings
        self.minutes = 0.0  # of all sessions
        self.lessons = LinearLessons(run.path, game_spec, learner)
        saved = run.load_state()
        if saved:
            arrays, info = saved
            self.learner.restore(arrays)
            self.learner.rounds, self.learner.games = info["rounds"], info["games"]
            self.minutes = info["minutes"]
            self.lessons.resume(arrays, info.get("lessons", {}))
        self.watch = Watch(run, self.learner.rounds)
        against = agent_spec(self.game, settings.match_against, settings.match_depth)
        config = EvaluationConfig(
            minutes=settings.match_minutes if self.game.num_players == 2 else 0.0,
            games=settings.match_games,
            ladder=(against,) if self.game.num_players == 2 else (),
            former=False,
            positions=0,
        )
        self.evaluations = LinearEvaluations(run, self.watch, game_spec, self.game, config, tell)
        self.evaluations.depth = settings.match_depth
        self.evaluations.last_minutes = self.minutes
        self.saved_at = time.monotonic()

    @property
    def command(self) -> str:
        return " ".join(["selfplay", *sys.argv[1:]])

    def describe(self) -> str:
        learner = self.learner
        if self.settings.method == "network":
            what = f"a network of {self.settings.hidden} hidden units"
        else:
            layout = getattr(learner, "layout", None)
            parts = []
            if layout is not None and layout.entries:
                size = f"{layout.entries * self.settings.phases:,} weights"
                parts.append(f"{len(layout.patterns)} patterns in {len(layout.places)} places, {size}")
            if isinstance(learner, SearchLearner) and self.settings.features:
                parts.append(f"{self.game.num_features} named features")
            what = " and ".join(parts)
        return f"{self.settings.method}: {what}; workers: {learner.workers}; run {self.run.path}"

    def train(self, view: View) -> None:
        """Rounds until a limit is reached or the user stops."""
        self.lessons.run(self, view)
        started, before = time.monotonic(), self.minutes
        while (progress := self.limits.progress(self.minutes, self.learner.games, self.learner.rounds)) < 1.0:
            begun, games = time.monotonic(), self.learner.games
            figures = self.learner.round(progress)
            now = time.monotonic()
            self.minutes = before + (now - started) / 60
            figures["speed/games_per_second"] = (self.learner.games - games) / max(now - begun, 1e-9)
            figures["self_play/games"] = self.learner.games
            self.watch.scalars(self.learner.rounds, figures)
            shown = {name.partition("/")[2].replace("_", " "): value for name, value in figures.items()}
            shown.pop("games", None)
            view.update(
                {
                    "step": self.learner.rounds,
                    "games": self.learner.games,
                    "minutes": self.minutes,
                    "scores": self.evaluations.scores,
                    **shown,
                }
            )
            if now - self.saved_at >= self.settings.save_seconds:
                self.save()
            if self.evaluations.due(self.minutes):
                self.checkpoint()
                self.evaluations.start(self.learner.rounds, self.minutes)
            self.evaluations.collect(view)
        self.save(finished=True)

    def save(self, finished: bool = False) -> None:
        """What resume needs, and what `selfplay runs` shows."""
        lessons, taught = self.lessons.state()
        info = {
            "lessons": taught,
            "rounds": self.learner.rounds,
            "steps": self.learner.rounds,
            "games": self.learner.games,
            "minutes": self.minutes,
            "finished": finished,
            "command": self.command,
        }
        self.run.save_state({**self.learner.arrays(), **lessons}, info, self.learner.rounds + self.lessons.rounds)
        write_atomic(self.run.path / "summary.json", json.dumps(info).encode())
        self.saved_at = time.monotonic()

    def checkpoint(self) -> Path:
        """What was learned so far, as an evaluation; the newest few are kept."""
        learner = self.learner
        folder = self.run.path / "checkpoints" / f"{learner.rounds:09d}"
        meta = {
            "command": self.command,
            "seed": self.settings.seed,
            "minutes": round(self.minutes, 2),
            "games": learner.games,
            "rounds": learner.rounds,
            "settings": self.settings.model_dump(),
        }
        table = {"unit": learner.unit(), "meta": meta}
        save_evaluation(folder, self.game, learner.evaluation(), table, learner.error_bars())
        for old in sorted(p for p in folder.parent.glob("[0-9]*") if p.is_dir())[:-CHECKPOINTS_KEPT]:
            if old.name not in self.evaluations.in_use:
                shutil.rmtree(old, ignore_errors=True)
        return folder


def settings_of_run(run: Run) -> tuple[str, LinearSettings, Limits]:
    """Game, settings and limits of a run as it was begun."""
    table = run.head()
    if table.get("method") != "linear":
        raise InputError(f"run {str(run.path)!r} is of method {table.get('method')!r}, not linear")
    what = str(run.path / "config.toml")
    return table["game"], checked(make(table["game"]), table.get("linear", {}), what), Limits(**table.get("limits", {}))


def train(
    game_spec: str,
    settings: LinearSettings,
    limits: Limits,
    folder: Path | None = None,
    final_evaluation: bool = True,
    resume: Run | None = None,
) -> Path:
    """Trains and returns the run's folder; also after Ctrl-C, with all but the rounds since the last save."""
    learner = make_learner(make(game_spec), settings)  # what does not fit is refused before there is a folder
    check_taught(learner)
    run = resume or Run.create(game_spec, "linear", {"linear": settings.model_dump(), "limits": vars(limits)}, folder)
    goal: dict[str, Any] = {
        "minutes": limits.minutes or None,
        "steps": limits.steps or None,
        "games": limits.games or None,
    }
    with run, Interrupted() as interrupted, View(f"training {game_spec}", **goal) as view:
        training = None
        try:
            training = LinearTraining(run, game_spec, learner, limits, view.tell)
            view.tell(training.describe())
            if training.learner.rounds == 0:
                training.save()
            training.train(view)
            training.checkpoint()
            if final_evaluation:
                training.evaluations.finish(training.learner.rounds, view)
            hyper = {k: v for k, v in settings.model_dump().items() if np.isscalar(v)}
            training.watch.hyperparameters(hyper, training.evaluations.scores)
        except KeyboardInterrupt:
            if not interrupted.flag.is_set():
                raise
            view.tell(f"stopped; go on with: selfplay train --resume {run.path}")
            if training is not None and training.learner.rounds:
                training.checkpoint()
        finally:
            if training is not None:
                training.evaluations.close()
    return run.path
