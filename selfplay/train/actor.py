"""An actor: weights in, games out. It plays many games at once, so that the network sees full batches.

Everything that an actor is between two rounds is in `state()`: the positions of the games in play, their samples so
far, and the random generators. Trees and the cache of the network's answers begin anew with each round's weights, so
an actor that was restored plays on bit for bit.
"""

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from envs.game import TERMINAL, Game
from envs.rng import generator, uniform
from models.network import Network
from selfplay.search import gumbel as halving
from selfplay.search import network_tree, puct
from selfplay.search.endgame import Endgame
from selfplay.train import moves
from selfplay.train.config import TrainConfig

SPARE_NODES = 8


@dataclass
class Finished:
    """A game that is over."""

    samples: np.ndarray
    actions: list[int]
    utilities: list[float]
    resigned: int = -1  # who would have resigned, or did
    false_resignation: bool = False


@dataclass
class Tally:
    """Where the time went and what was done, for the curves."""

    seconds: float = 0.0
    inference_seconds: float = 0.0
    positions: int = 0
    evaluations: int = 0
    cached: int = 0
    decided: int = 0
    rows: list[int] = field(default_factory=list)


class Trees:
    """The memory of many searches in lockstep, and the loop over `collect` and `back_up`."""

    def __init__(
        self,
        game: Game,
        evaluator: Any,
        count: int,
        simulations: int,
        *,
        gumbel: bool,
        offset: float,
        scale: float,
        to_go: bool = False,
        leaves_per_tree: int = 1,
        room: int = 0,
        cache_megabytes: float = 32.0,
        search: Any = None,
    ):
        self.game, self.evaluator, self.count = game, evaluator, count
        self.trees: Any = np.zeros(count, network_tree.tree_dtype(game, simulations)).view(np.recarray)
        nodes = max(room, simulations) * (3 if game.has_chance else 2) + SPARE_NODES
        width = max(min(max(game.max_legal, 1), 64), min(game.num_outcomes, 64))
        self.nodes: Any = np.zeros((count, nodes), network_tree.NODE).view(np.recarray)
        self.edges: Any = np.zeros((count, nodes * width), network_tree.EDGE).view(np.recarray)
        self.leaves: Any = np.zeros(count * leaves_per_tree + 1, network_tree.leaf_dtype(game)).view(np.recarray)
        self.options: Any = np.zeros(1, network_tree.options_dtype(game, simulations)).view(np.recarray)[0]
        options = self.options
        options.gumbel, options.middle, options.half = int(gumbel), offset, scale
        options.to_go = int(to_go)
        options.leaves_per_tree, options.gumbel_scale = leaves_per_tree, 1.0
        for name in (
            "c_init",
            "c_base",
            "fpu",
            "c_visit",
            "c_scale",
            "forced",
            "dirichlet_part",
            "foresight",
            "beyond_chance",
        ):
            setattr(options, name, getattr(search, name))
        options.dirichlet_alpha = search.dirichlet
        halving.fill_schedule(options, simulations)
        rows = count * leaves_per_tree + 1
        size = int(np.prod(game.observation_shape))
        padded = size + size % 2
        self.memory = np.zeros((rows, padded), np.float32)
        self.words = self.memory.view(np.uint64)
        self.planes = self.memory[:, :size].reshape((rows, *game.observation_shape))
        if not np.shares_memory(self.planes, self.memory):  # an odd size: NumPy had to copy
            raise ValueError("observation memory is not shared")
        self.keys = np.zeros(rows, np.uint64)
        self.pending = np.full(1 << (2 * rows).bit_length(), -1, np.int64)
        entry = 8 + 4 * (game.num_actions + game.num_players)
        entries = 1 << max(8, int(cache_megabytes * 1e6 / entry).bit_length() - 1)
        self.cache = (
            np.zeros(entries, np.uint64),
            np.zeros((entries, game.num_actions), np.float32),
            np.zeros((entries, game.num_players), np.float32),
        )
        self.policy = np.zeros(max(game.max_legal, 1), np.float64)
        # A record of an array costs microseconds to make, each time; these are made once.
        self.slots = [(self.trees[slot], self.nodes[slot], self.edges[slot]) for slot in range(count)]
        self.finished = np.zeros(count, np.int64)
        self.num_leaves = 0
        self.inference_seconds = 0.0

    def forget(self) -> None:
        """The weights are new: nothing that the old network said counts any more."""
        self.cache[0][:] = 0
        for slot in range(self.count):
            network_tree.clear(self.trees[slot])

    def step(self) -> bool:
        """One batch: collects leaves, asks the network, backs up. False where no tree waits for the network."""
        game = self.game
        self.num_leaves, rows = puct.collect(
            game,
            self.options,
            self.trees,
            self.nodes,
            self.edges,
            self.leaves,
            0,
            self.planes,
            self.words,
            self.keys,
            self.pending,
            self.cache,
        )
        if self.num_leaves == 0:
            return False
        started = time.perf_counter()
        logits, values = self.evaluator(self.planes[:rows])
        self.inference_seconds += time.perf_counter() - started
        puct.back_up(
            game,
            self.options,
            self.trees,
            self.nodes,
            self.edges,
            self.leaves,
            self.num_leaves,
            self.keys,
            rows,
            logits,
            values,
            self.cache,
        )
        return True

    def plan(self, slot: int, simulations: int, noise: bool) -> None:
        puct.plan(self.game, self.options, *self.slots[slot], simulations, int(noise))

    def is_done(self, slot: int) -> bool:
        tree, nodes, _ = self.slots[slot]
        return bool(puct.is_done(tree, nodes))

    def done(self) -> list[int]:
        """The trees whose search is over."""
        return self.finished[: puct.done_slots(self.trees, self.nodes, self.finished)].tolist()


class Actor:
    """Plays games with itself; `number` sets it apart from the other actors of the run."""

    def __init__(self, game: Game, config: TrainConfig, evaluator: Any, network: Network, number: int = 0):
        self.game, self.config, self.evaluator, self.number = game, config, evaluator, number
        search, settings = config.search, config.actor
        self.trees = Trees(
            game,
            evaluator,
            settings.games,
            max(search.simulations, search.fast_simulations),
            gumbel=search.kind == "gumbel",
            offset=float(network.offset),
            scale=float(network.scale),
            to_go=network.to_go,
            cache_megabytes=settings.cache_megabytes,
            search=search,
        )
        self.endgame = Endgame(game, search.endgame)
        self.plies = np.zeros(settings.games, np.int64)
        self.dtype = moves.sample_dtype(game)
        self.sample = np.zeros(1, self.dtype)
        self.room: Any = self.sample.view(np.recarray)[0]  # the same memory
        self.history: list[list[np.ndarray]] = [[] for _ in range(settings.games)]
        self.resigned = np.full(settings.games, -1, np.int64)
        self.plays_on = np.zeros(settings.games)  # in [0, 1): below a share, the game is played to its end
        self.rng = generator(config.seed, 1000 + number)
        for slot in range(settings.games):
            self.trees.trees[slot].rng = generator(config.seed, 100_000 * (1 + number) + slot)
            self._open(slot)

    def _open(self, slot: int) -> None:
        settings, tree = self.config.actor, self.trees.slots[slot][0]
        plies = int(moves.random_plies(tree.rng, settings.random_openings, settings.random_plies))
        moves.open_game(self.game, tree, plies)
        self.history[slot] = []
        self.plies[slot] = plies
        self.resigned[slot] = -1
        self.plays_on[slot] = uniform(self.rng)

    def _plan(self, slot: int) -> None:
        search, t = self.config.search, self.trees
        tree = t.slots[slot][0]
        solved = self.endgame.try_solve(tree.root, int(self.plies[slot]), self.rng)
        tree.solved_move = -1
        if solved:
            tree.solved_move, tree.solved_value = solved[0], (solved[1] - t.options.middle) / t.options.half
        moves.plan_move(
            self.game,
            t.options,
            *t.slots[slot],
            search.simulations,
            search.fast_simulations,
            search.full_share,
        )

    def play(self, total: int, stop: Any = None) -> tuple[list[Finished], Tally]:
        """Plays `total` moves, counted over all games; returns the games that ended, and what it cost."""
        t, started, finished = self.trees, time.perf_counter(), []
        options = t.options
        options.evaluations = options.cached = options.decided = 0
        t.inference_seconds = 0.0
        t.forget()
        self.endgame.reset()
        for slot in range(t.count):
            self._plan(slot)
        played = 0
        while played < total and not (stop and stop()):
            t.step()
            for slot in t.done():
                while t.is_done(slot) and played < total:
                    played += 1
                    over = self._move(slot)
                    if over is not None:
                        finished.append(over)
                    self._plan(slot)
                    if t.slots[slot][0].num_nodes == 0:
                        break
        tally = Tally(
            time.perf_counter() - started,
            t.inference_seconds,
            played,
            int(options.evaluations),
            int(options.cached),
            int(options.decided),
        )
        return finished, tally

    def _move(self, slot: int) -> Finished | None:
        """Plays the move of a finished search; a game that ends is returned, and a new one begun."""
        t, settings = self.trees, self.config.actor
        history = self.history[slot]
        early = len(history) < settings.temperature_plies
        temperature = settings.temperature if early else settings.late_temperature
        reuse = settings.reuse and not t.options.gumbel
        sample = self.room
        player = moves.make_move(self.game, t.options, *t.slots[slot], sample, t.policy, temperature, reuse)
        history.append(self.sample.copy())
        self.plies[slot] += 1
        if player == TERMINAL:
            return self._finish(slot)
        if self.endgame.nodes and sample.proof and self.plays_on[slot] >= settings.play_solved:
            return self._finish(slot, int(sample.player), float(sample.search_value))
        resigns = (
            settings.resign > 0
            and self.resigned[slot] < 0
            and self.game.num_players == 2
            and self.game.zero_sum
            and sample.search_value < -settings.resign
        )
        if resigns:
            self.resigned[slot] = int(sample.player)
            if self.plays_on[slot] >= settings.resign_check:
                return self._finish(slot, int(sample.player), -1.0)
        return None

    def _finish(self, slot: int, player: int = -1, value: float = 0.0) -> Finished:
        """The game at its end; with a player, as good as over: so much is it worth to them, in network units."""
        game, t = self.game, self.trees
        samples: Any = moves.joined(self.history[slot], self.dtype).view(np.recarray)
        if player >= 0:
            samples.values[:, 0] = np.where(samples.player == player, value, -value)
            samples.values[:, 1] = -samples.values[:, 0]
            units = [value if p == player else -value for p in range(2)]
            utilities = [float(unit * t.options.half + t.options.middle) for unit in units]
        else:
            state = t.slots[slot][0].root
            moves.write_result(game, t.options, state, samples)
            utilities = [float(game.utility(state, p)) for p in range(game.num_players)]
        if self.config.actor.decay < 1.0 and network_tree.has_value_proofs(game):
            moves.soften_results(game, samples, self.config.actor.decay)
        resigned = int(self.resigned[slot])
        gave_up = resigned >= 0 and self.plays_on[slot] >= self.config.actor.resign_check
        wrong = resigned >= 0 and not gave_up and utilities[resigned] >= 0.5 * (game.min_utility + game.max_utility)
        actions = [int(a) for a in samples.action]
        self._open(slot)
        return Finished(samples.view(np.ndarray), actions, utilities, resigned, wrong)

    # --- what is between two rounds ------------------------------------------------------------------

    def state(self) -> dict[str, np.ndarray]:
        """All that the next round depends on, as arrays of bytes and numbers."""
        lengths = np.array([len(history) for history in self.history], np.int64)
        parts = [sample for history in self.history for sample in history]
        samples = moves.joined(parts, self.dtype)
        trees = self.trees.trees.view(np.ndarray)
        return {
            "roots": np.frombuffer(np.ascontiguousarray(trees["root"]).tobytes(), np.uint8).copy(),
            "rngs": np.ascontiguousarray(trees["rng"]),
            "rng": self.rng.copy(),
            "lengths": lengths,
            "samples": np.frombuffer(samples.tobytes(), np.uint8).copy(),
            "resigned": self.resigned.copy(),
            "plays_on": self.plays_on.copy(),
            "plies": self.plies.copy(),
            "endgame": np.stack([self.endgame.tried, self.endgame.solved]),
        }

    def restore(self, state: dict[str, np.ndarray]) -> None:
        trees = self.trees.trees.view(np.ndarray)
        trees["root"] = np.frombuffer(state["roots"].tobytes(), self.game.state)
        trees["rng"] = state["rngs"]
        self.rng = state["rng"].copy()
        self.resigned, self.plays_on = state["resigned"].copy(), state["plays_on"].copy()
        self.plies = state["plies"].copy()
        self.endgame.tried, self.endgame.solved = state["endgame"].copy()
        samples = np.frombuffer(state["samples"].tobytes(), self.dtype)
        ends = np.cumsum(state["lengths"])
        for slot, end in enumerate(ends):
            first = int(end - state["lengths"][slot])
            self.history[slot] = [samples[i : i + 1].copy() for i in range(first, int(end))]


def measure_self_play(
    game_spec: str, simulations: int = 64, blocks: int = 5, channels: int = 64, seconds: float = 20.0
) -> dict[str, float]:
    """Self-play positions/s of an untrained network on all cores, for `selfplay bench selfplay`."""
    from selfplay.train.actors import measure

    return measure(game_spec, simulations, blocks, channels, seconds)
