"""The learners behind `--method linear`: each plays rounds of self-play and keeps all its state in arrays.

A learner's `round` plays and learns; `arrays` and `restore` are what resume needs; `evaluation` is what was learned so
far. With one worker everything depends on nothing but the seed, the settings and the number of rounds.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from envs.errors import InputError
from envs.game import Game
from envs.registry import make
from envs.rng import generator
from models.evaluation import Evaluation
from models.patterns import NO_SQUASH, TANH, Patterns
from models.td_network import TDNetwork
from selfplay.train.linear.games import MOST_GAME, Player
from selfplay.train.linear.layouts import make_layout
from selfplay.train.linear.network_td import network_games, network_work, new_network
from selfplay.train.linear.regression import fit_pass, inputs_of, mean_loss, newton, sums_of
from selfplay.train.linear.settings import LinearSettings
from selfplay.train.linear.steps import step_kind
from selfplay.train.linear.td import one_player_games, td_work, two_player_games

_FIRST_EPSILON = 0.5  # of the first searched round of an evaluation that knows nothing


class Learner:
    """Base class: workers with a random generator each, and counters."""

    def __init__(self, game: Game, settings: LinearSettings):
        self.game, self.settings = game, settings
        self.played_game: Game = make(settings.learn_as) if settings.learn_as else game
        other = self.played_game
        if (
            type(other) is not type(game)
            or other.state != game.state
            or other.observation_shape != game.observation_shape
        ):
            raise InputError(f"learn_as={settings.learn_as!r} must be a variant of the same game")
        self.workers = settings.workers or len(os.sched_getaffinity(0))
        self.rngs = np.stack([generator(settings.seed, stream) for stream in range(self.workers)])
        self.games = 0
        self.rounds = 0

    def share(self, job: Any) -> list[Any]:
        """Runs job(worker) on all workers; compiled code runs without the interpreter's lock."""
        if self.workers == 1:
            return [job(0)]
        with ThreadPoolExecutor(self.workers) as pool:
            try:
                return list(pool.map(job, range(self.workers)))
            except BaseException:
                self.stop()  # leaving the pool waits for all of its threads
                raise

    def stop(self) -> None:
        """Ends a round in progress as soon as possible; called when the user stops the training."""

    def round(self, progress: float) -> dict[str, float]:
        """Plays and learns; returns figures for the curves. `progress` is the share of the training that is over."""
        raise NotImplementedError

    def evaluation(self) -> Evaluation:
        raise NotImplementedError

    def error_bars(self) -> np.ndarray | None:
        """Standard errors of the named features' weights, by phase, where the method gives them."""
        return None

    def unit(self) -> dict[str, Any]:
        """What weights are shown in: its name, and how much of the weighted sum it is."""
        return {"name": "half log-odds", "value": 1.0}

    def arrays(self) -> dict[str, np.ndarray]:
        return {"rngs": self.rngs}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.rngs[:] = arrays["rngs"]


class PatternLearner(Learner):
    """TD at one ply for patterns (two players, or one against chance), and what the regression builds upon."""

    def __init__(self, game: Game, settings: LinearSettings, features: bool = False):
        super().__init__(game, settings)
        layout = make_layout(settings.patterns, game)
        if settings.parity and settings.phases % 2:
            raise InputError(f"parity=true needs an even number of phases, not {settings.phases}")
        self.alone = game.num_players == 1
        phases, columns = settings.phases, game.num_features if features else 0
        self.live = Patterns(
            layout,
            np.zeros((phases, layout.entries), np.float32),
            np.zeros((phases, columns)),
            NO_SQUASH if self.alone else TANH,
            afterstates=self.alone,
            parity=settings.parity,
        )
        self.layout = layout
        self.canonical = layout.canonical if layout.tied else np.zeros(1, np.int32)
        self.weights = np.zeros((phases, max(layout.entries, 1)), np.float32)
        self.first, self.second = np.zeros_like(self.weights), np.zeros_like(self.weights)
        # TD's weights never rest. Their average over the rounds, late ones counting most, is what was learned; for one
        # player the tables are too large to have twice.
        self.mean = None if self.alone else np.zeros_like(self.weights)
        self.td_rounds = np.zeros(1, np.int64)
        self.feature_state = np.zeros((3, phases, max(columns, 1)), np.float32)
        self.kind = step_kind(settings.step)
        self.fit_kind = self.kind if settings.fit_step == "same" else step_kind(settings.fit_step)
        self.works = [td_work(self.played_game, self.live) for _ in range(self.workers)] if layout.entries else []

    def round(self, progress: float) -> dict[str, float]:
        return self.td_round()

    def td_round(self) -> dict[str, float]:
        """Games at one ply, learned from one by one."""
        settings = self.settings
        if not self.layout.entries:
            raise InputError("method td needs patterns; see [linear] patterns in the game's config")
        tallies = np.zeros((self.workers, 4))
        scores = np.zeros((self.workers, settings.games))
        shared = (self.live, self.canonical, self.weights, self.first, self.second)

        def job(i: int) -> None:
            if self.alone:
                one_player_games(
                    self.played_game,
                    *shared,
                    self.works[i],
                    self.rngs[i],
                    settings.games,
                    settings.rate,
                    self.kind,
                    scores[i],
                    tallies[i],
                )
                return
            two_player_games(
                self.played_game,
                *shared,
                self.works[i],
                self.rngs[i],
                settings.games,
                settings.epsilon,
                settings.decay,
                settings.rate,
                self.kind,
                settings.openings,
                tallies[i],
            )

        self.share(job)
        self.rounds += 1
        self.td_rounds += 1
        if self.mean is not None:  # Shamir and Zhang 2013: polynomial decay averaging, with eta = 3
            self.mean += (self.weights - self.mean) * np.float32(4.0 / (3.0 + self.td_rounds[0]))
        played, plies, squares, learned = tallies.sum(axis=0)
        self.games += int(played)
        figures = {"td/error": float(np.sqrt(squares / max(learned, 1))), "td/length": float(plies / played)}
        if self.alone:
            figures["td/score"] = float(scores.mean())
        return figures

    def learned(self) -> np.ndarray:
        """The weights as they are best used."""
        return self.weights if self.mean is None or not self.td_rounds[0] else self.mean

    def expanded(self) -> np.ndarray:
        """The weights with mirrored contents filled in."""
        if not self.layout.entries:
            return np.zeros((self.settings.phases, 0), np.float32)
        weights = self.learned()
        return weights[:, self.canonical] if self.layout.tied else weights

    def evaluation(self) -> Patterns:
        features = np.zeros((self.settings.phases, 0))
        if self.alone and "score in thousands" in self.game.feature_names():
            # The value of a board is what will still be scored; a search wants that and what has been scored.
            features = np.zeros((self.settings.phases, self.game.num_features))
            features[:, self.game.feature_names().index("score in thousands")] = 1000.0
        parity = self.settings.parity
        return Patterns(self.layout, self.expanded(), features, self.live.squash, self.alone, parity=parity)

    def unit(self) -> dict[str, Any]:
        return {"name": "points", "value": 1.0} if self.alone else super().unit()

    def arrays(self) -> dict[str, np.ndarray]:
        state: dict[str, np.ndarray] = {"weights": self.weights, "first": self.first, "second": self.second}
        state["td_rounds"] = self.td_rounds
        if self.mean is not None:
            state["mean"] = self.mean
        return {**super().arrays(), **state, "feature_state": self.feature_state}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        super().restore(arrays)
        for name in ("weights", "first", "second", "feature_state", "td_rounds"):
            getattr(self, name)[:] = arrays[name]
        if self.mean is not None:
            self.mean[:] = arrays["mean"]


class SearchLearner(PatternLearner):
    """Regression on searched games, or TD-Leaf; where there are patterns, after a share of TD at one ply."""

    def __init__(self, game: Game, settings: LinearSettings):
        super().__init__(game, settings, features=settings.features)
        if not settings.features and not self.layout.entries:
            raise InputError("nothing to learn: neither patterns nor named features")
        each = -(-settings.search_games // self.workers)
        self.each_games = each
        room = min(each * 80 + MOST_GAME, 2_000_000)
        self.players = [Player(self.played_game, self.live, settings.search_depth, room) for _ in range(self.workers)]
        self.parts: list[dict[str, np.ndarray]] = []
        self.errors = np.zeros((settings.phases, game.num_features))
        self.slopes = np.ones(settings.phases)
        self.searched = 0  # rounds
        self.next_owner = 0

    def stop(self) -> None:
        for player in self.players:
            player.stopped = True

    def round(self, progress: float) -> dict[str, float]:
        # A longer limit on resume makes `progress` fall; step sizes of another kind would mean nothing to TD.
        going_back = self.searched > 0 and self.fit_kind != self.kind
        if self.layout.entries and progress < self.settings.td_share and not going_back:
            return self.td_round()
        return self.search_round(progress)

    def learned(self) -> np.ndarray:
        return self.weights if self.searched else super().learned()

    def search_round(self, progress: float) -> dict[str, float]:
        """Searched games, then a fit to the positions of the last rounds."""
        settings = self.settings
        if not self.searched:
            self.weights[:] = self.learned()
        live, live_features = self.live.live_weights()
        if self.layout.entries:
            live[:] = self.expanded()
        if self.live.num_weighted:
            live_features[:] = self.feature_state[0]
        knows_nothing = not self.searched and not self.weights.any() and not self.feature_state[0].any()
        epsilon = max(settings.search_epsilon, _FIRST_EPSILON) if knows_nothing else settings.search_epsilon
        leaf = settings.leaf or settings.method == "td_leaf"
        arguments = (self.each_games, epsilon, settings.openings, settings.search_decay, leaf)
        found = self.share(lambda i: self.players[i].play(self.rngs[i], *arguments))
        for states, target, final, owner in found:
            part = {"target": target.copy(), "final": final.copy(), "owner": (owner + self.next_owner).astype(np.int32)}
            part["states"] = states.copy()
            self.next_owner += int(owner.max(initial=0)) + 1
            self.parts.append(part)
        rounds = 1 if settings.method == "td_leaf" else settings.window
        self.parts = self.parts[-rounds * self.workers :]
        tallies = np.sum([player.tallies for player in self.players], axis=0)
        self.games += int(tallies[0])
        self.rounds += 1
        figures = {"search/length": float(tallies[1] / tallies[0]), "search/draws": float(tallies[2] / tallies[0])}
        if self.layout.entries or settings.method == "td_leaf":
            figures.update(self.fit_by_passes(progress))
        else:
            figures.update(self.fit_features())
        self.searched += 1
        return figures

    def window(self, name: str) -> Any:
        return np.concatenate([part[name] for part in self.parts])

    def fit_by_passes(self, progress: float) -> dict[str, float]:
        """Passes over the window; one position in twenty is held out, by whole games."""
        settings = self.settings
        states = self.window("states").view(np.recarray)
        target, owner = self.window("target"), self.window("owner")
        held = np.flatnonzero(owner % 20 == 19)
        order = np.flatnonzero(owner % 20 != 19)
        rng = np.random.default_rng([settings.seed, self.rounds])
        once = settings.method == "td_leaf"
        another_kind = self.fit_kind != self.kind
        # A fit of its own begins with fresh step sizes; after TD they go on, if they mean the same.
        if (another_kind and not self.searched) or not (once or settings.td_share or another_kind):
            self.first[:], self.second[:], self.feature_state[1:] = 0, 0, 0
        rate = settings.rate
        if another_kind:
            rate = settings.fit_rate * max(
                0.1, 1.0 - max(progress - settings.td_share, 0.0) / max(1.0 - settings.td_share, 1e-9)
            )
        scratch = np.zeros(max(self.game.num_features, 1))
        shared = (self.game, self.live, self.canonical, self.weights, self.first, self.second, self.feature_state)
        loss = 0.0
        for _ in range(1 if once else settings.passes):
            rng.shuffle(order)
            loss = fit_pass(*shared, states, target, order, rate, settings.shrink, self.fit_kind, scratch)
        if len(held):
            after = fit_pass(*shared, states, target, held, 0.0, 0.0, self.fit_kind, scratch) / len(held)
        else:
            after = 0.0
        self.calibrate(states)
        return {"fit/loss": float(loss / max(len(order), 1)), "fit/held_out": float(after)}

    def calibrate(self, states: Any) -> None:
        """By phase: the factor that turns the sum into half the log-odds of winning, where what was learned is a
        difference of discs or the like."""
        if self.played_game == self.game:
            return
        total = np.zeros(len(states))
        phase = np.zeros(len(states), np.int64)
        sums_of(self.game, self.live, self.canonical, self.weights, self.feature_state[0], states, total, phase)
        final = self.window("final")
        for number in range(self.settings.phases):
            here = phase == number
            if here.sum() > 1000:
                fit = newton(total[here, None], final[here], np.zeros(int(here.sum()), np.int64), 1.0)
                self.slopes[number] = float(np.clip(fit.weights[0], 0.1, 100.0))

    def fit_features(self) -> dict[str, float]:
        """Newton's method for named features, phase by phase."""
        states = self.window("states").view(np.recarray)
        target, owner = self.window("target"), self.window("owner")
        inputs = inputs_of(self.game, states)
        phase = np.array([self.live.phase_of[0]] * len(states)) if self.settings.phases == 1 else self._phases(states)
        losses = []
        for number in range(self.settings.phases):
            here = phase == number
            if here.sum() < 100:
                continue
            fit = newton(inputs[here], target[here], owner[here], self.settings.ridge)
            self.feature_state[0, number] = fit.weights
            self.errors[number] = fit.errors
            losses.append((fit.loss, fit.held_out))
        if not losses:
            return {}
        return {
            "fit/loss": float(np.mean([a for a, _ in losses])),
            "fit/held_out": float(np.mean([b for _, b in losses])),
        }

    def _phases(self, states: Any) -> np.ndarray:
        total, phase = np.zeros(len(states)), np.zeros(len(states), np.int64)
        sums_of(self.game, self.live, self.canonical, self.weights, self.feature_state[0], states, total, phase)
        return phase

    def evaluation(self) -> Patterns:
        slopes = self.slopes if self.searched else np.ones(self.settings.phases)
        columns = self.live.num_weighted
        features = self.feature_state[0][:, :columns].astype(np.float64) * slopes[:, None]
        weights = (self.expanded() * slopes[:, None]).astype(np.float32)
        return Patterns(self.layout, weights, features, TANH, parity=self.settings.parity)

    def error_bars(self) -> np.ndarray | None:
        return self.errors if self.errors.any() else None

    def unit(self) -> dict[str, Any]:
        name, features = self.settings.unit, self.evaluation().feature_values
        if name in self.game.feature_names() and features.shape[1]:
            value = float(features[:, self.game.feature_names().index(name)].mean())
            return {"name": name, "value": value} if value > 0 else super().unit()
        if name and self.played_game.max_utility > self.game.max_utility:
            # What was learned is the share of the largest result, and a small share is its own inverse tangent.
            return {"name": name, "value": float(self.slopes.mean()) / float(self.played_game.max_utility)}
        return super().unit()

    def arrays(self) -> dict[str, np.ndarray]:
        state = {**super().arrays(), "errors": self.errors, "slopes": self.slopes}
        state["counters"] = np.array([self.searched, self.next_owner], np.int64)
        for number, part in enumerate(self.parts):
            for name, array in part.items():
                # As bytes: a state is a record.
                state[f"part{number}.{name}"] = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
        return state

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        super().restore(arrays)
        self.errors[:], self.slopes[:] = arrays["errors"], arrays["slopes"]
        self.searched, self.next_owner = (int(n) for n in arrays["counters"])
        kinds = {"states": self.game.state, "target": np.float32, "final": np.float32, "owner": np.int32}
        numbers = sorted({int(name[4:].split(".")[0]) for name in arrays if name.startswith("part")})
        self.parts = [
            {name: arrays[f"part{n}.{name}"].view(kind).copy() for name, kind in kinds.items()} for n in numbers
        ]


class NetworkLearner(Learner):
    """TD with a small network (backgammon). The rate falls to a tenth of its start."""

    def __init__(self, game: Game, settings: LinearSettings):
        super().__init__(game, settings)
        if not game.has_chance or "points" not in (game.state.names or ()):
            raise InputError("method network is made for backgammon")
        self.hidden, self.output = new_network(settings.hidden, settings.seed)
        self.works = [network_work(game, settings.hidden) for _ in range(self.workers)]

    def round(self, progress: float) -> dict[str, float]:
        settings = self.settings
        rate = settings.rate * (1.0 - 0.9 * min(progress, 1.0))
        tallies = np.zeros((self.workers, 4))
        self.share(
            lambda i: network_games(
                self.played_game,
                self.hidden,
                self.output,
                self.works[i],
                self.rngs[i],
                settings.games,
                settings.decay,
                rate,
                tallies[i],
            )
        )
        self.rounds += 1
        played, turns, squares, learned = tallies.sum(axis=0)
        self.games += int(played)
        return {"td/error": float(np.sqrt(squares / max(learned, 1))), "td/length": float(turns / played)}

    def evaluation(self) -> TDNetwork:
        return TDNetwork(self.hidden.copy(), self.output.copy())

    def unit(self) -> dict[str, Any]:
        return {"name": "points", "value": 1.0}

    def arrays(self) -> dict[str, np.ndarray]:
        return {**super().arrays(), "hidden": self.hidden, "output": self.output}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        super().restore(arrays)
        self.hidden[:], self.output[:] = arrays["hidden"], arrays["output"]


def make_learner(game: Game, settings: LinearSettings) -> Learner:
    """The learner for the settings; one sentence where game and method do not fit."""
    if settings.method == "network":
        return NetworkLearner(game, settings)
    if game.num_players > 2 or (game.num_players == 2 and game.has_chance):
        raise InputError(f"method {settings.method}: games of two players without chance, or of one player")
    if settings.method == "td":
        return PatternLearner(game, settings)
    if game.num_players == 1:
        raise InputError(f"method {settings.method} needs two players; for one player use method=td")
    return SearchLearner(game, settings)


__all__ = ["Learner", "NetworkLearner", "PatternLearner", "SearchLearner", "make_learner", "mean_loss"]
