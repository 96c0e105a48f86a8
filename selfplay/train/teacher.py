"""Teachers: the games of any agent as samples to learn from, the same records that self-play makes.

A game begins with random moves, and a share of its later moves is random too, so that the learner also sees what a
teacher would avoid. The teacher labels each position where it has to choose: a policy from what its search knows of the
moves, a value from its search and from the game's result. A result says nothing about a position from which a random
move led on: there the search's value of the last position before that move stands for it.

A game depends on nothing but the seed and its number, as long as the teacher is limited by depth or nodes and not by a
clock; so games can be played anywhere, in any order, and again after a kill.
"""

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, Game, State
from envs.playouts import buffers
from envs.rng import below, generator, uniform
from selfplay.agents import make_agent, random_action
from selfplay.play import advance, result, roll, turn
from selfplay.search.result import EXACT, UNKNOWN, MoveReport, Result
from selfplay.solvers.agent import PerfectAgent
from selfplay.solvers.generic import AlphaBetaSolver
from selfplay.solvers.solution import Solver, Unsolved, after, legal
from selfplay.solvers.tables import TableSolver
from selfplay.train import moves
from selfplay.train.config import TeacherConfig

_STREAM = 10_000_000  # of the random generators, apart from those of self-play


@dataclass(frozen=True)
class Units:
    """What values are written in: utility = units * scale + offset; bounded ones stay within -1 .. 1."""

    offset: float = 0.0
    scale: float = 1.0
    bounded: bool = True

    def of(self, utilities: Any) -> np.ndarray:
        units = (np.asarray(utilities, np.float64) - self.offset) / self.scale
        return np.clip(units, -1.0, 1.0) if self.bounded else units


@dataclass(frozen=True)
class Label:
    """What the teacher says about a position: its move, a policy, and every player's value where it has one."""

    action: int
    policy: dict[int, float]
    values: np.ndarray | None
    proven: bool


@dataclass(frozen=True)
class TaughtGame:
    """Samples of one game, in the order of play, and what tells the game from others."""

    number: int
    samples: np.ndarray
    key: int


def check_teacher(game: Game, config: TeacherConfig) -> None:
    """Refuses a teacher that does not fit the game, in one sentence."""
    if not config.agent:
        return
    if config.agent.partition(":")[0] == "human":
        raise InputError("agent 'human' can't teach: a teacher plays by itself")
    make_agent(config.agent, game)


class Teacher:
    """The agent with its exploration; plays games by number."""

    def __init__(self, game: Game, config: TeacherConfig, seed: int, units: Units):
        self.game, self.config, self.seed, self.units = game, config, seed, units
        self.agent: Any = make_agent(config.agent, game, seed)
        self.searches = hasattr(self.agent, "search")
        self.solver: Solver | None = self.agent.solver if isinstance(self.agent, PerfectAgent) else None
        # What these solvers say of equally good moves, and what fits into a limit, depends on what they remember.
        limited = bool(self.solver) and bool(self.agent.nodes or self.agent.seconds)
        self.forgets = limited or isinstance(self.solver, AlphaBetaSolver | TableSolver)
        self.dtype = moves.sample_dtype(game)
        self.opposed = game.num_players == 2 and game.zero_sum

    def play(self, number: int) -> TaughtGame:
        """One game; without samples where it was over before the teacher had anything to say."""
        game, config = self.game, self.config
        rng = generator(self.seed, _STREAM + number)
        out, probabilities = buffers(game)
        self.agent.reseed(int(below(rng, 1 << 30)))
        self.agent.reset()
        if self.solver and self.forgets:
            self.solver.reset()
        state = game.new()[0]
        opening = int(below(rng, config.openings + 1))
        actions: list[int] = []
        steps: list[tuple[np.ndarray, int, Label | None, bool]] = []  # sample, player, label, whether explored
        chosen = 0
        while (player := int(turn(game, state))) != TERMINAL:
            if player == CHANCE:
                action = int(roll(game, state, out, probabilities, rng))
            elif chosen < opening:
                action = int(random_action(game, state, out, rng))
                chosen += 1
            else:
                label = self.label(state) if config.labels >= 1 or uniform(rng) < config.labels else None
                action = label.action if label else int(random_action(game, state, out, rng))
                explored = label is None
                if label is not None and uniform(rng) < config.random_moves:
                    action = int(random_action(game, state, out, rng))
                    explored = action != label.action
                steps.append((self._sample(state, player, label, action), player, label, explored))
            actions.append(action)
            advance(game, state, action)
        utilities = np.zeros(game.num_players)
        result(game, state, utilities)
        key = hashlib.blake2b(np.array(actions, np.int64).tobytes(), digest_size=8).digest()
        samples = self._valued(steps, self.units.of(utilities))
        return TaughtGame(number, samples, int.from_bytes(key, "little"))

    def label(self, state: State) -> Label | None:
        """What the teacher thinks of the position; nothing where it is too large for a solver."""
        if not self.searches:
            action = int(self.agent.choose(state))
            return Label(action, {action: 1.0}, None, False)
        try:
            found: Result = self.agent.search(state)
            if self.solver and len(found.moves) < len(legal(self.game, state)):
                # A solver tells the best moves; how bad the others are, and which are as good, it has to be asked.
                exact = tuple(MoveReport(a, v) for a, v in self.solver.values(state).items())
                found = replace(found, moves=exact)
        except Unsolved:
            return None
        values = None
        if len(found.values) == self.game.num_players:
            values = self.units.of(found.values)
        elif self.opposed or self.game.num_players == 1:
            own = float(self.units.of(found.value))
            values = np.array([own, -own][: self.game.num_players])
            if self.opposed and int(turn(self.game, state)) == 1:
                values = values[::-1].copy()
        return Label(int(found.action), self.policy(found), values, bool(found.proven))

    def policy(self, found: Result) -> dict[int, float]:
        """From exact values where the search has them for all moves, from visits, from averages, or the choice."""
        config, reports = self.config, found.moves
        exact = bool(reports) and all(report.bound == EXACT for report in reports)
        visits = [report.visits for report in reports]
        if found.proven and not exact:
            return dict.fromkeys(found.best, 1.0)
        if not exact and visits and max(visits) > min(visits) + 1:
            most = max(visits)
            return {r.action: float((r.visits / most) ** (1.0 / config.visit_temperature)) for r in reports}
        known = exact or (bool(visits) and min(visits) > 0 and all(r.bound != UNKNOWN for r in reports))
        if not known:
            return dict.fromkeys(found.best, 1.0)
        # Playouts spread evenly over the moves (Monte Carlo) say nothing by their number: the averages do.
        top = max(report.value for report in reports)
        if config.temperature == 0:
            return {r.action: 1.0 for r in reports if r.value == top}
        rate = 1.0 / (config.temperature * self.units.scale)
        return {report.action: float(np.exp((report.value - top) * rate)) for report in reports}

    def _sample(self, state: State, player: int, label: Label | None, action: int) -> np.ndarray:
        """The record of a position, still without values."""
        sample = np.zeros(1, self.dtype)
        if label is None:
            return sample
        width = sample["actions"].shape[1]
        legal_moves = legal(self.game, state)
        weights = np.array([label.policy.get(a, 0.0) for a in legal_moves])
        kept = np.sort(np.argsort(-weights, kind="stable")[:width])
        sample["state"][0] = state
        sample["actions"][0, : len(kept)] = np.array(legal_moves)[kept]
        sample["policy"][0, : len(kept)] = weights[kept] / weights[kept].sum()
        sample["count"], sample["player"], sample["full"], sample["action"] = len(kept), player, 1, action
        return sample

    def _valued(self, steps: list[tuple[np.ndarray, int, Label | None, bool]], final: np.ndarray) -> np.ndarray:
        """The samples of labelled positions with their values, from the end of the game to its start."""
        found: list[np.ndarray] = []
        outcome: np.ndarray | None = final
        for sample, player, label, explored in reversed(steps):
            own = label.values if label else None
            if explored:
                outcome = own
            if label is None:
                continue
            share = 1.0 if label.proven else self.config.search_value
            if own is None:
                target = final if outcome is None else outcome
            else:
                target = own if outcome is None else share * own + (1 - share) * outcome
            order = (player + np.arange(self.game.num_players)) % self.game.num_players
            sample["values"][0] = target[order]
            # The replay mixes both fields by a share of its own: equal ones stay what they are.
            sample["search_value"] = target[player]
            sample["network_value"] = final[player]  # there is no network yet: the plain result
            viewer = moves.chance_viewer(self.game, after(self.game, sample["state"][0], int(sample["action"][0])))
            if viewer >= 0 and not explored:
                sample["after"], sample["after_value"] = 1, target[viewer]
            found.append(sample)
        return moves.joined(found[::-1], self.dtype)
