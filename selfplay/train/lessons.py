"""The first part of a taught run: a teacher's games are gathered, a network learns from them, then self-play goes on.

The games are the first rounds in the run's `games/` folder, as if self-play had made them. A share of them is held out:
those go to `held_out/` and show how far what was learned agrees with the teacher where it was never trained.
"""

import io
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from envs.compiled import njit
from envs.errors import InputError
from envs.game import Game
from selfplay.train import moves
from selfplay.train.config import LearnerConfig, TeacherConfig, TrainConfig
from selfplay.train.replay import Replay
from selfplay.train.runs import write_atomic
from selfplay.train.teacher import Units
from selfplay.train.teacher_games import TeacherGames

if TYPE_CHECKING:
    from selfplay.train.loop import Training
    from selfplay.train.view import View

_MOST_TRIES = 4  # numbers tried per game wanted: games of small boards repeat
_JUDGED = 4096  # held-out positions that are looked at, at most
_ROUNDS = 20  # of imitation: so many points has its curve
_ALL = 1 << 40  # positions: a window that forgets nothing


class Lessons:
    """Gathers the teacher's games, resumably; what is learned from them is the business of others."""

    def __init__(
        self, folder: Path, game_spec: str, game: Game, config: TeacherConfig, seed: int, workers: int, units: Units
    ):
        self.folder, self.game_spec, self.game, self.config = folder / "held_out", game_spec, game, config
        self.seed, self.workers, self.units = seed, workers, units
        self.dtype = moves.sample_dtype(game)
        self.seen: dict[int, None] = {}
        self.tried = self.rounds = self.learned = 0
        self.lengths: list[int] = []  # of the games that are learned from
        self.held: list[np.ndarray] = []
        self.over = not config.agent
        self.ended = self.over  # no more games, but there may be more to learn from them

    @staticmethod
    def window(config: LearnerConfig) -> LearnerConfig:
        """The replay's settings while the teacher's games are learned from: all of them count."""
        return config.model_copy(update={"window": _ALL, "window_most": _ALL})

    def gather(
        self, replay: Replay, out_of_time: Callable[[], bool], show: Callable[[str], None], save: Callable[[], None]
    ) -> None:
        """Rounds of games until there are enough distinct ones; `save` is called after each round."""
        if self.ended:
            return
        wanted = self.config.games
        games = TeacherGames(self.game_spec, self.game, self.config, self.seed, self.workers, self.units)
        try:
            while len(self.seen) < wanted and self.tried < _MOST_TRIES * wanted and not out_of_time():
                numbers = range(self.tried, self.tried + min(self.config.round, wanted - len(self.seen)))
                so_far = 0

                def played(more: int) -> None:
                    nonlocal so_far
                    so_far += more
                    show(f"{len(self.seen) + so_far} of {wanted}")

                self._take(games.play(numbers, played), replay)
                self.tried, self.rounds = numbers.stop, self.rounds + 1
                save()
        finally:
            games.close()
        self.ended = True
        if not sum(self.lengths):
            raise InputError(f"teacher {self.config.agent!r} labelled no position in {self.tried} games")

    def _take(self, games: list[Any], replay: Replay) -> None:
        """A round's games: repeats are dropped, a share is held out, the rest is learned from."""
        learned, held = [], []
        for game in games:
            if not len(game.samples) or game.key in self.seen:
                continue
            number, share = len(self.seen), self.config.held_out
            self.seen[game.key] = None
            if math.floor((number + 1) * share) > math.floor(number * share):
                held.append(game.samples)
            else:
                learned.append(game.samples)
                self.lengths.append(len(game.samples))
        kept = moves.joined(held, self.dtype)
        file = io.BytesIO()
        np.save(file, np.frombuffer(kept.tobytes(), np.uint8), allow_pickle=False)
        write_atomic(self.folder / f"{self.rounds:06d}.npy", file.getvalue())
        self.held.append(kept)
        replay.add(moves.joined(learned, self.dtype))

    def unseen(self, replay: Replay) -> np.ndarray:
        """Held-out positions that no game learned from holds, under any symmetry; all of them where none is left."""
        held = moves.joined(self.held, self.dtype)
        known = self._keys(moves.joined(replay.chunks, self.dtype))
        fresh = held[~np.isin(self._keys(held), known)]
        return (fresh if len(fresh) else held)[:_JUDGED]

    def _keys(self, samples: np.ndarray) -> np.ndarray:
        keys = np.zeros(len(samples), np.uint64)
        return canonical_keys(self.game, samples.view(np.recarray), keys)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        if not self.config.agent:
            return {}, {}
        arrays = {
            "teacher/seen": np.array(list(self.seen), np.uint64),
            "teacher/lengths": np.array(self.lengths, np.int64),
        }
        counters = {name: getattr(self, name) for name in ("tried", "rounds", "learned", "over", "ended")}
        return arrays, counters

    def restore(self, arrays: dict[str, np.ndarray], info: dict[str, Any], replay: Replay) -> None:
        """Goes on from a saved state; what files hold of later rounds is made again. Before the replay's own restore."""
        if not info:
            return
        self.seen = dict.fromkeys(int(key) for key in arrays["teacher/seen"])
        self.lengths = [int(length) for length in arrays["teacher/lengths"]]
        for name, value in info.items():
            setattr(self, name, value)
        if self.over:
            return
        replay.config = self.window(replay.config)
        self.held = []
        for number in range(self.rounds):
            path = self.folder / f"{number:06d}.npy"
            try:
                self.held.append(np.frombuffer(np.load(path, allow_pickle=False).tobytes(), self.dtype))
            except (OSError, ValueError) as error:
                raise InputError(f"held-out games {str(path)!r} can't be read: {error}") from None


class NetworkLessons(Lessons):
    """The lessons of a network."""

    def run(self, training: "Training", view: "View", check: Callable[[], None]) -> None:
        """The whole of it, from where it was; on return self-play may begin. `check` raises when the user stops."""
        if self.over:
            return
        training.replay.config = self.window(training.config.learner)
        started, before, limits = time.monotonic(), training.minutes, training.limits

        def out_of_time() -> bool:
            check()
            training.minutes = before + (time.monotonic() - started) / 60
            return 0 < self.config.most_time * limits.minutes <= training.minutes

        def show(games: str) -> None:
            out_of_time()  # minutes are a figure too
            view.update({"teacher's games": games, "minutes": training.minutes})

        if not self.ended:
            view.tell(f"{self.config.agent} plays {self.config.games:,} games to learn from")
        self.gather(training.replay, out_of_time, show, lambda: _end_round(training))
        self._imitate(training, view, out_of_time)
        self.over, self.held = True, []
        training.replay.config = training.config.learner
        _end_round(training)
        training.save()
        if training.config.evaluation.minutes > 0:
            training.checkpoint()
            training.evaluations.start(training.learner.step, training.minutes)

    def _imitate(self, training: "Training", view: "View", out_of_time: Callable[[], bool]) -> None:
        learner, replay, limits = training.learner, training.replay, training.limits
        positions, batch = sum(self.lengths), training.config.learner.batch
        steps = math.ceil(self.config.passes * positions / batch)
        each = math.ceil(steps / _ROUNDS)
        judged = self.unseen(replay)
        view.tell(
            f"learning from {len(self.lengths):,} games with {positions:,} positions, {steps:,} steps; "
            f"{len(judged):,} positions of {len(self.seen) - len(self.lengths):,} games are held out"
        )
        figures: dict[str, float] = {}
        while self.learned < steps:
            out_of_time()
            progress = limits.progress(training.minutes, training.games, learner.step)
            if progress >= 1.0:
                break
            losses: dict[str, float] = {}
            number = min(each, steps - self.learned)
            for _ in range(number):
                for name, value in learner.one_step(replay, progress).items():
                    losses[name] = losses.get(name, 0.0) + value / number
            self.learned += number
            figures = judge_network(training, judged)
            training.watch.scalars(learner.step, {**losses, **figures})
            shown = {name.partition("/")[2].replace("_", " "): value for name, value in figures.items()}
            view.update(
                {
                    "step": learner.step,
                    "minutes": training.minutes,
                    "policy_loss": losses["loss/policy"],
                    "value_loss": losses["loss/value"],
                    **{f"held-out {name}": value for name, value in shown.items()},
                }
            )
            _end_round(training)
        if figures:
            accuracy, error = figures["imitation/accuracy"], figures["imitation/value_error"]
            view.tell(f"step {learner.step}: {accuracy:.1%} of the teacher's moves, value off by {error:.3f}")


def _end_round(training: "Training") -> None:
    """The state as it is now is what resume goes on from."""
    training.rounds += 1
    training.unsaved = training.snapshot()
    if time.monotonic() - training.saved_at >= training.config.save_seconds:
        training.save()


def lessons_for(folder: Path, game_spec: str, game: Game, config: TrainConfig, network: Any) -> NetworkLessons:
    """The lessons of a run's config; over at once where it names no teacher."""
    units = Units(float(network.offset), float(network.scale), bool(network.bounded))
    return NetworkLessons(folder, game_spec, game, config.teacher, config.seed, config.workers, units)


def judge_network(training: "Training", judged: np.ndarray) -> dict[str, float]:
    """The share of positions where the network's first move is one of the teacher's best, and how far its value is from
    the target on average, in network units."""
    if not len(judged):
        return {}
    learner, game = training.learner, training.game
    right, error = 0, 0.0
    for first in range(0, len(judged), 512):
        rows: Any = moves.joined([judged[first : first + 512]], judged.dtype).view(np.recarray)
        batch = training.replay.observed(rows, None)
        with torch.no_grad():
            logits, value_out = learner.average(torch.from_numpy(batch["planes"]).to(learner.device))
            values = learner.average.values(value_out)[:, 0].cpu().numpy()
        mask = legal_mask(game, rows, np.zeros((len(rows), game.num_actions), np.bool_))
        chosen = np.where(mask, logits.float().cpu().numpy(), -np.inf).argmax(1)
        policies = batch["policies"]
        right += int((policies[np.arange(len(rows)), chosen] >= policies.max(1) - 1e-6).sum())
        error += float(np.abs(values - batch["values"][:, 0]).sum())
    return {"imitation/accuracy": right / len(judged), "imitation/value_error": error / len(judged)}


@njit
def legal_mask(game, samples, mask):
    """Which actions are legal in each position."""
    out = np.zeros(max(game.max_legal, 1), np.int64)
    for i in range(len(samples)):
        for k in range(game.actions(samples[i].state, out)):
            mask[i, out[k]] = True
    return mask


@njit
def canonical_keys(game, samples, keys):
    """Keys that are the same for all images of a position under the game's symmetries."""
    scratch = samples[:1].copy()
    for i in range(len(samples)):
        for symmetry in range(game.num_symmetries):
            scratch[0].state = samples[i].state
            if symmetry > 0:
                game.transform(scratch[0].state, symmetry)
            key = np.uint64(game.key(scratch[0].state))
            if symmetry == 0 or key < keys[i]:
                keys[i] = key
    return keys
