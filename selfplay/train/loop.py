"""The AlphaZero loop: rounds of self-play and of learning in turn, each on all cores.

A round is a fixed number of moves by all actors with one set of weights, then as many gradient steps as the new
positions pay for. What the run depends on is saved between rounds; an interrupted round is played again, so that a run
with one worker ends with the same bits however often it was killed.
"""

import json
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from envs.errors import InputError
from envs.game import Game
from envs.registry import make
from models.checkpoint import save_checkpoint
from models.network import flops, parameter_count
from selfplay.train import moves
from selfplay.train.actor import Finished, Tally
from selfplay.train.actors import make_actors
from selfplay.train.config import TrainConfig, as_table, validated
from selfplay.train.evaluations import Evaluations
from selfplay.train.learner import Learner
from selfplay.train.lessons import lessons_for
from selfplay.train.replay import Replay
from selfplay.train.runs import Run, write_atomic
from selfplay.train.teacher import check_teacher
from selfplay.train.view import View
from selfplay.train.watch import Watch, flat

CHECKPOINTS_KEPT = 3
PICTURES_EVERY = 20  # rounds


@dataclass(frozen=True)
class Limits:
    """When a run ends: the first that is reached; 0: no such limit."""

    minutes: float = 0.0
    games: int = 0
    steps: int = 0

    def progress(self, minutes: float, games: int, steps: int) -> float:
        """The share of the run that is over. Only a run that is limited by its clock depends on it."""
        shares = [
            done / limit for done, limit in ((minutes, self.minutes), (games, self.games), (steps, self.steps)) if limit
        ]
        return max(shares, default=0.0)


class Interrupted:
    """Ctrl-C and SIGTERM set a flag, and raise KeyboardInterrupt unless somebody `looks`, as rounds do many times a second.

    Rounds look because an exception between any two instructions may fall into a callback of foreign code, such as a
    compiler's, that swallows it or crashes. Where it was swallowed `check` raises it once more.
    """

    def __init__(self) -> None:
        self.flag = threading.Event()
        self.looks = False
        self.before: dict[int, Any] = {}

    def stop(self) -> bool:
        return self.flag.is_set()

    def check(self) -> None:
        if self.flag.is_set():
            raise KeyboardInterrupt

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self.before[number] = signal.signal(number, self._handle)
        return self

    def _handle(self, number: int, frame: object) -> None:
        again = self.flag.is_set()
        self.flag.set()
        if again or not self.looks:
            raise KeyboardInterrupt

    def __exit__(self, *error: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)


class Training:
    """One run, from its start or from where it was."""

    def __init__(
        self,
        run: Run,
        game_spec: str,
        config: TrainConfig,
        limits: Limits,
        tell: Callable[[str], None],
        interrupted: Interrupted | None = None,
    ):
        self.run, self.game_spec, self.limits, self.tell = run, game_spec, limits, tell
        self.interrupted = interrupted or Interrupted()
        self.game: Game = make(game_spec)
        if 0 in self.game.observation_shape:
            raise InputError(f"game {game_spec!r} has no observation for a network; --method linear needs none")
        saved = run.load_state()
        if saved:  # the same backend as before: another one rounds otherwise
            config = config.model_copy(update={"backend": saved[1].get("backend", config.backend)})
        self.config = config
        device = _device(config.device)
        torch.set_num_threads(max(1, config.workers or _cores()))
        self.learner = Learner(self.game, config, device)
        network = self.learner.network
        scale = float(network.scale) if network.to_go else 0.0
        self.replay = Replay(run.path / "games", self.game, config.learner, scale)
        self.lessons = lessons_for(run.path, game_spec, self.game, config, self.learner.network)
        self.actors = make_actors(game_spec, self.game, config, self.interrupted.stop)
        self.rounds = self.games = 0
        self.minutes = 0.0  # of all sessions
        if saved:
            self._restore(*saved)
        self.watch = Watch(run, self.learner.step)
        self.evaluations = Evaluations(run, self.watch, game_spec, self.game, config.evaluation, tell)
        self.evaluations.last_minutes = self.minutes
        self.saved_at = time.monotonic()
        self.unsaved: tuple[dict[str, np.ndarray], dict[str, Any]] | None = None  # after the last whole round
        self.pictured = -PICTURES_EVERY  # the round of the last pictures

    def _restore(self, arrays: dict[str, np.ndarray], info: dict[str, Any]) -> None:
        try:
            self.learner.restore(arrays, info["learner"])
            self.lessons.restore(arrays, info.get("lessons", {}), self.replay)
            self.replay.restore(info["replay"])
            self.actors.restore(arrays)
            self.rounds, self.games, self.minutes = info["rounds"], info["games"], info["minutes"]
        except InputError:
            self.actors.close()
            raise
        except (KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
            self.actors.close()
            first = str(error).strip().partition("\n")[0]
            raise InputError(
                f"the state of run {str(self.run.path)!r} is not that of its config.toml, so it can't go on: {first}"
            ) from None

    def describe(self) -> str:
        network = self.learner.network
        return (
            f"network: {parameter_count(network):,} parameters, {flops(network, self.game) / 1e6:.1f} MFLOP a position; "
            f"inference by {self.actors.backend}; run {self.run.path}"
        )

    def train(self, view: View) -> None:
        """Rounds until a limit is reached; KeyboardInterrupt where the user ends it."""
        self.lessons.run(self, view, self.interrupted.check)
        try:
            self._rounds(view)
        finally:
            self.interrupted.looks = False
        self.save(finished=True)

    def _rounds(self, view: View) -> None:
        check = self.interrupted.check
        started, before = time.monotonic(), self.minutes
        while self.limits.progress(self.minutes, self.games, self.learner.step) < 1.0:
            check()
            progress = self.limits.progress(self.minutes, self.games, self.learner.step)
            workers = self.config.workers or _cores()
            total = self.config.actor.games * self.config.actor.moves * workers
            begun = time.monotonic()
            finished, tally = self.actors.play(self.learner.weights(), total)
            check()
            played = time.monotonic()
            joined = moves.joined([game.samples for game in finished], self.replay.dtype)
            self.replay.add(joined)
            self.games += len(finished)
            losses = self.learner.train(self.replay, len(joined), progress, self.interrupted.stop)
            check()
            self.rounds += 1
            self.interrupted.looks = True  # all is compiled
            now = time.monotonic()
            self.minutes = before + (now - started) / 60
            self.unsaved = self.snapshot()
            self._tell(view, finished, tally, losses, now - begun, played - begun)
            if now - self.saved_at >= self.config.save_seconds:
                self.save()
            if self.evaluations.due(self.minutes):
                self.checkpoint()
                self.evaluations.start(self.learner.step, self.minutes)
            self.evaluations.collect(view)

    def _tell(
        self, view: View, finished: list[Finished], tally: Tally, losses: dict[str, float], whole: float, playing: float
    ) -> None:
        step = self.learner.step
        figures: dict[str, float] = {
            **losses,
            "speed/positions_per_second": tally.positions / whole,
            "speed/self_play_positions_per_second": tally.positions / playing,
            "speed/evaluations_per_second": tally.evaluations / playing,
            "speed/games_per_second": len(finished) / whole,
            "time/self_play": playing / whole,
            "time/learning": 1 - playing / whole,
            "time/inference_of_self_play": tally.inference_seconds / max(tally.seconds, 1e-9),
            "replay/window": len(self.replay),
            "replay/positions": self.replay.positions,
            "replay/age_in_rounds": mean_age([len(chunk) for chunk in self.replay.chunks]),
            "self_play/games": self.games,
            "self_play/cached": tally.cached / max(tally.cached + tally.evaluations, 1),
        }
        if finished:
            figures["self_play/length"] = float(np.mean([len(g.samples) for g in finished]))
            figures["self_play/first_player"] = float(np.mean([g.utilities[0] for g in finished]))
            joined: Any = moves.joined([g.samples for g in finished], self.replay.dtype)
            figures["policy/surprise"] = float(joined["surprise"].mean())
            figures["value/search_error"] = float(np.square(joined["search_value"] - joined["values"][:, 0]).mean())
            if self.config.actor.resign > 0:
                checked = [g for g in finished if g.resigned >= 0]
                figures["self_play/false_resignations"] = float(
                    np.mean([g.false_resignation for g in checked] or [False])
                )
        self.watch.scalars(step, figures)
        if finished and self.rounds - self.pictured >= PICTURES_EVERY:
            self.pictured = self.rounds
            self._pictures(step, finished)
        view.update(
            {
                "step": step,
                "games": self.games,
                "minutes": self.minutes,
                "positions_per_second": figures["speed/positions_per_second"],
                "evaluations_per_second": figures["speed/evaluations_per_second"],
                **{f"{name}_loss": losses[f"loss/{name}"] for name in ("policy", "value") if losses},
                "scores": self.evaluations.scores,
                **self.evaluations.figures(),
            }
        )

    def _pictures(self, step: int, finished: list[Finished]) -> None:
        game = finished[0]
        samples: Any = game.samples.view(np.recarray)
        joined: Any = moves.joined([g.samples for g in finished], self.replay.dtype)
        self.watch.calibration(step, joined["network_value"], joined["values"][:, 0])
        sample = samples[len(samples) // 2]
        batch = self.replay.observed(samples[len(samples) // 2 : len(samples) // 2 + 1], None)
        with torch.no_grad():
            logits, _ = self.learner.average(torch.from_numpy(batch["planes"]).to(self.learner.device))
        legal = sample.actions[: sample.count]
        policy = np.zeros(self.game.num_actions)
        policy[legal] = torch.softmax(logits[0].cpu()[torch.from_numpy(legal.astype(np.int64))], 0).numpy()
        states = self.game.new()
        states[0] = sample.state
        self.watch.position_image(step, self.game, states[0], policy, batch["policies"][0], float(sample.search_value))
        if not self.game.has_chance and samples.state[0].tobytes() == self.game.new().tobytes():
            self.watch.game_text(step, self.game, game.actions)
        else:  # dice and openings are no moves of the record
            self.watch.samples_text(step, self.game, samples.state, game.actions, game.utilities)

    def snapshot(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """What resume needs, as it is between two rounds."""
        arrays, learner = self.learner.state()
        arrays.update(self.actors.state())
        lessons, taught = self.lessons.state()
        arrays.update(lessons)
        info = {
            "learner": learner,
            "replay": self.replay.state(),
            "lessons": taught,
            "rounds": self.rounds,
            "games": self.games,
            "steps": self.learner.step,
            "minutes": self.minutes,
            "backend": self.actors.backend,
        }
        return arrays, info

    def save(self, finished: bool = False) -> None:
        """Writes the state after the last whole round, and what `selfplay runs` shows."""
        arrays, info = self.unsaved or self.snapshot()
        info = {
            **info,
            "finished": finished,
            "parameters": parameter_count(self.learner.network),
            "flops": flops(self.learner.network, self.game),
            "command": " ".join(["selfplay", *sys.argv[1:]]),
        }
        self.run.save_state(arrays, info, info["rounds"])
        self.unsaved = None
        write_atomic(self.run.path / "summary.json", json.dumps(info).encode())
        self.saved_at = time.monotonic()

    def checkpoint(self) -> Path:
        """The averaged network as a checkpoint; the newest few are kept."""
        folder = self.run.path / "checkpoints" / f"{self.learner.step:09d}"
        meta = {
            "step": self.learner.step,
            "games": self.games,
            "positions": self.replay.positions,
            "minutes": round(self.minutes, 2),
            "seed": self.config.seed,
            "command": " ".join(["selfplay", *sys.argv[1:]]),
            "train": as_table(self.config),
        }
        save_checkpoint(folder, self.learner.average, self.game_spec, self.config.model, meta)
        for old in sorted(p for p in folder.parent.glob("[0-9]*") if p.is_dir())[:-CHECKPOINTS_KEPT]:
            if old.name not in self.evaluations.in_use:
                shutil.rmtree(old, ignore_errors=True)
        return folder

    def close(self) -> None:
        self.evaluations.close()
        self.actors.close()


def mean_age(lengths: list[int]) -> float:
    """How many rounds ago the positions of the window were played, on average.

    >>> mean_age([10, 10, 20])
    0.75
    """
    ages = sum(length * age for age, length in enumerate(reversed(lengths)))
    return ages / max(sum(lengths), 1)


def _cores() -> int:
    from selfplay.workers import available_cores

    return available_cores()


def _device(name: str) -> str:
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(f"device {name!r} is not available here; devices: cpu")
    if name != "cpu" and not name.startswith("cuda"):
        raise InputError(f"unknown device {name!r}; devices: auto, cpu, cuda")
    return name


def config_of(run: Run) -> tuple[str, str, TrainConfig, Limits]:
    """Game, method, config and limits of a run as it was begun."""
    table = run.head()
    try:
        limits = Limits(**table.pop("limits", {}))
    except TypeError:
        raise InputError(f"run {str(run.path)!r}: [limits] in config.toml takes minutes, games and steps") from None
    game_spec, method = table.pop("game"), table.pop("method")
    for name in ("version", "started"):
        table.pop(name, None)
    config = validated(table, f"config of run {str(run.path)!r}") if method == "alphazero" else TrainConfig()
    return game_spec, method, config, limits


def train(
    game_spec: str,
    config: TrainConfig,
    limits: Limits,
    folder: Path | None = None,
    final_evaluation: bool = True,
    resume: Run | None = None,
) -> Path:
    """Trains and returns the run's folder; also after Ctrl-C, with all but the round in progress saved."""
    table = {**as_table(config), "limits": vars(limits)}
    check_teacher(make(game_spec), config.teacher)  # before there is a folder
    run = resume or Run.create(game_spec, "alphazero", table, folder)
    goal = {
        "minutes": limits.minutes or None,
        "steps": limits.steps or None,
        "games": limits.games or None,
    }
    with run, Interrupted() as interrupted, View(f"training {game_spec}", **goal) as view:  # type: ignore[arg-type]
        training = None
        try:
            view.tell("getting ready: compiling and measuring backends")
            training = Training(run, game_spec, config, limits, view.tell, interrupted)
            interrupted.check()
            view.tell(training.describe())
            if training.rounds == 0:
                training.save()
            training.train(view)
            training.checkpoint()
            if final_evaluation:
                training.evaluations.finish(training.learner.step, view)
            training.watch.hyperparameters(flat(as_table(config)), training.evaluations.results())
        except KeyboardInterrupt:
            if not interrupted.flag.is_set():
                raise
            view.tell(f"stopped; go on with: selfplay train --resume {run.path}")
            if training is not None and training.unsaved is not None:
                training.save()
            if training is not None and training.learner.step:
                training.checkpoint()
        finally:
            if training is not None:
                training.close()
    return run.path
