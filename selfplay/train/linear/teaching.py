"""A learned evaluation taught by an agent: its games are the positions of the first rounds of the regression.

Each pass over them is a round of the run, with a point in the curves: how many of the teacher's moves a search of one
ply with the evaluation finds in held-out games, and how far its value is from the target there. Afterwards self-play
goes on from these weights; for the regression the teacher's positions stay in the window until newer rounds fill it.
"""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from envs.compiled import njit
from envs.errors import InputError
from envs.game import TERMINAL
from selfplay.train import moves
from selfplay.train.config import LearnerConfig
from selfplay.train.lessons import Lessons
from selfplay.train.linear.learners import Learner, PatternLearner, SearchLearner
from selfplay.train.linear.regression import fit_pass
from selfplay.train.replay import Replay
from selfplay.train.teacher import Units, check_teacher

if TYPE_CHECKING:
    from selfplay.train.linear.method import LinearTraining
    from selfplay.train.view import View


def check_taught(learner: Learner) -> None:
    """Refuses a teacher that fits neither the game nor the method."""
    teacher = learner.settings.teacher
    if not teacher.agent:
        return
    if not isinstance(learner, PatternLearner) or learner.alone:
        raise InputError(
            f"teacher {teacher.agent!r}: only evaluations of two players by regression, td or td_leaf can be taught"
        )
    check_teacher(learner.played_game, teacher)


class LinearLessons(Lessons):
    """The lessons of a linear evaluation."""

    def __init__(self, folder: Path, game_spec: str, learner: Learner):
        settings, game = learner.settings, learner.played_game
        units = Units(0.0, float(game.max_utility))
        spec = settings.learn_as or game_spec
        super().__init__(folder, spec, game, settings.teacher, settings.seed, settings.workers, units)
        self.replay = Replay(folder / "games", game, self.window(LearnerConfig()))

    def resume(self, arrays: dict[str, np.ndarray], info: dict[str, Any]) -> None:
        """Goes on from a saved state of the run."""
        self.restore(arrays, info, self.replay)
        if not self.over:
            positions = sum(self.lengths)
            self.replay.restore({"first_chunk": 0, "chunks": self.rounds, "positions": positions})

    def run(self, training: "LinearTraining", view: "View") -> None:
        """The whole of it, from where it was; on return self-play may begin."""
        if self.over:
            return
        started, before, limits = time.monotonic(), training.minutes, training.limits

        def out_of_time() -> bool:
            training.minutes = before + (time.monotonic() - started) / 60
            return 0 < self.config.most_time * limits.minutes <= training.minutes

        def show(games: str) -> None:
            out_of_time()  # minutes are a figure too
            view.update({"teacher's games": games, "minutes": training.minutes})

        def save() -> None:
            if time.monotonic() - training.saved_at >= training.settings.save_seconds:
                training.save()

        if not self.ended:
            view.tell(f"{self.config.agent} plays {self.config.games:,} games to learn from")
        self.gather(self.replay, out_of_time, show, save)
        self._teach(training, view, out_of_time)
        self.over, self.held = True, []
        self.replay.chunks.clear()
        training.save()

    def _teach(self, training: "LinearTraining", view: "View", out_of_time: Callable[[], bool]) -> None:
        learner: Any = training.learner
        samples = moves.joined(self.replay.chunks, self.dtype)
        part = {
            "states": np.ascontiguousarray(samples["state"]),
            "target": np.ascontiguousarray(samples["values"][:, 0]),
            "final": np.sign(samples["network_value"]).astype(np.float32),
            "owner": np.repeat(np.arange(len(self.lengths)), self.lengths).astype(np.int64),
        }
        judged = self.unseen(self.replay)
        view.tell(
            f"learning from {len(self.lengths):,} games with {len(samples):,} positions; "
            f"{len(judged):,} positions of {len(self.seen) - len(self.lengths):,} games are held out"
        )
        if isinstance(learner, SearchLearner):
            learner.parts, learner.next_owner = [part], len(self.lengths)
            learner.searched = 1  # it knows something by now: no random first round, no TD before the regression
        figures: dict[str, float] = {}

        def end_round(more: dict[str, float]) -> None:
            out_of_time()
            learner.rounds += 1
            figures.update(judge_evaluation(learner, judged))
            training.watch.scalars(learner.rounds, {**more, **figures})
            shown = {f"held-out {tag.partition('/')[2].replace('_', ' ')}": value for tag, value in figures.items()}
            view.update({"step": learner.rounds, "minutes": training.minutes, **shown})

        if learner.layout.entries:
            fit(learner, part, math.ceil(self.config.passes), end_round)
        else:
            end_round(learner.fit_features())
        if figures:
            error = figures.get("imitation/value_error")
            off = "" if error is None else f", value off by {error:.3f}"
            view.tell(f"round {learner.rounds}: {figures['imitation/accuracy']:.1%} of the teacher's moves{off}")


def fit(learner: Any, part: dict[str, Any], passes: int, end_round: Callable[[dict[str, float]], None]) -> None:
    """So many passes over the positions; the step sizes of what follows start afresh."""
    settings = learner.settings
    states = part["states"].view(np.recarray)
    scratch = np.zeros(max(learner.game.num_features, 1))
    shared = (learner.live, learner.canonical, learner.weights, learner.first, learner.second, learner.feature_state)
    for _ in range(passes):
        order = np.random.default_rng([settings.seed, learner.rounds]).permutation(len(states))
        numbers = (settings.rate, settings.shrink, learner.kind, scratch)
        loss = fit_pass(learner.game, *shared, states, part["target"], order, *numbers)
        if isinstance(learner, SearchLearner):
            learner.calibrate(states)
        end_round({"fit/loss": float(loss / max(len(states), 1))})
    learner.first[:], learner.second[:], learner.feature_state[1:] = 0, 0, 0


def judge_evaluation(learner: Any, judged: np.ndarray) -> dict[str, float]:
    """The share of positions where the best move at one ply is one of the teacher's best, and how far the value is from
    the target on average, in parts of the largest utility."""
    if not len(judged):
        return {}
    game = learner.game
    sums = np.zeros(2)
    out, scratch = np.zeros(max(game.max_legal, 1), np.int64), np.zeros(max(game.num_features, 1))
    judge(game, learner.evaluation(), judged.view(np.recarray), game.new(), out, scratch, sums)
    figures = {"imitation/accuracy": float(sums[0] / len(judged))}
    if learner.played_game == game:  # else the target is another quantity, such as discs
        figures["imitation/value_error"] = float(sums[1] / len(judged))
    return figures


@njit
def judge(game, evaluation, samples, child, out, scratch, sums):
    """Adds the number of agreements, and the absolute errors of the values."""
    for i in range(len(samples)):
        sample = samples[i]
        mover = game.player(sample.state)
        best, chosen = -np.inf, np.int64(-1)
        for k in range(game.actions(sample.state, out)):
            child[0] = sample.state
            game.play(child[0], out[k])
            player = game.player(child[0])
            if player == TERMINAL:
                value = game.utility(child[0], mover)
            else:
                value = evaluation.evaluate(game, child[0], scratch)
                if player != mover:
                    value = -value
            if value > best:
                best, chosen = value, np.int64(out[k])
        top, weight = 0.0, 0.0
        for k in range(sample.count):
            top = max(top, sample.policy[k])
            if sample.actions[k] == chosen:
                weight = sample.policy[k]
        sums[0] += weight >= top - 1e-6
        sums[1] += abs(evaluation.evaluate(game, sample.state, scratch) / game.max_utility - sample.values[0])
