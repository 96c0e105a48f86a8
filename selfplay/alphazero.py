"""The agent of a trained network: `alphazero:checkpoint=checkpoints/connect_four,simulations=64`."""

import time
from dataclasses import dataclass
from typing import Any, ClassVar

from envs.errors import InputError
from envs.game import Game, State
from selfplay.search.result import AVERAGE, EXACT, UNKNOWN, MoveReport, Result, require_player
from selfplay.search_agents import SearchAgent


class Searcher:
    """A single-game search with a network; keeps nothing between moves but the network's answers."""

    def __init__(self, game: Game, agent: "AlphaZeroAgent"):
        from models.checkpoint import load_checkpoint
        from models.inference import make_evaluator
        from selfplay.search.endgame import Endgame
        from selfplay.train.actor import Trees
        from selfplay.train.config import SearchConfig, resolve, validated

        found = load_checkpoint(agent.checkpoint, game)
        self.game, self.agent, self.network = game, agent, found.network
        settings = resolve(game).search
        trained = found.meta.get("train")
        own = trained.get("search") if isinstance(trained, dict) else None
        if isinstance(own, dict):  # as the network was trained to be searched
            known = {name: value for name, value in own.items() if name in SearchConfig.model_fields}
            settings = validated({"search": known}, f"checkpoint {str(found.path)!r}").search
        rows = agent.leaves + 1
        evaluator = make_evaluator(self.network, game, agent.device, agent.backend, threads=1, max_batch=rows)
        self.trees = Trees(
            game,
            evaluator,
            1,
            max(agent.simulations, 1),
            gumbel=agent.kind == "gumbel" or (agent.kind == "auto" and bool(game.has_chance)),
            offset=float(self.network.offset),
            scale=float(self.network.scale),
            to_go=self.network.to_go,
            leaves_per_tree=agent.leaves,
            search=settings.model_copy(update={"foresight": agent.foresight if agent.simulations else 0}),
        )
        nodes = settings.endgame if agent.endgame < 0 else agent.endgame
        self.endgame = Endgame(game, nodes if agent.simulations else 0)
        self.seed, self.stopped = 0, False

    def reset(self) -> None:
        from envs.rng import generator

        self.endgame.reset()
        self.trees.trees[0].rng = generator(self.seed)

    def stop(self) -> None:
        self.stopped = True

    def search(self, state: State) -> Result:
        from selfplay.search import network_tree

        player = require_player(self.game, state)
        t, started, agent = self.trees, time.perf_counter(), self.agent
        tree = t.trees[0]
        self.stopped = False
        network_tree.clear(tree)
        tree.root = state
        solved = self.endgame.solve(state)
        if solved:
            tree.solved_move, tree.solved_value = solved[0], float(self.network.to_units(solved[1]))
        t.plan(0, max(agent.simulations, 0) or 1, False)
        if agent.simulations == 0:  # the network alone: the root's priors
            while tree.num_nodes == 0:
                tree.planned = 1
                t.step()
        else:
            while not t.is_done(0) and not (self.stopped and tree.num_nodes > 0):
                t.step()
                if agent.seconds and time.perf_counter() - started > agent.seconds and tree.num_nodes > 0:
                    break
        return self._result(player, time.perf_counter() - started)

    def _result(self, player: int, seconds: float) -> Result:
        from selfplay.search import network_root

        game, t = self.game, self.trees
        tree, nodes, edges = t.trees[0], t.nodes[0], t.edges[0]
        node: Any = nodes[0]
        network_root.target_policy(game, t.options, tree, node, edges, t.policy)
        chosen = int(network_root.chosen_edge(game, t.options, tree, node, edges, t.policy, 0.0))
        utility = self.network.from_units
        reports = []
        for k in range(node.count):
            edge = edges[node.first + k]
            bound = EXACT if edge.proof else AVERAGE if edge.visits else UNKNOWN
            value = float(utility(float(edge.value))) if edge.visits or edge.proof else 0.0
            reports.append(MoveReport(int(edge.action), value, bound, int(edge.visits), (int(edge.action),)))
        best = reports[chosen]
        reports.sort(key=lambda report: (report.action != best.action, -report.visits, report.action))
        value = float(utility(float(network_root.root_value(game, t.options, node, edges, t.policy))))
        line = self._line(node.first + chosen)
        return Result(
            best.action, value, tuple(reports), line, int(tree.simulations), len(line), seconds, proven=bool(node.proof)
        )

    def _line(self, index: int) -> tuple[int, ...]:
        nodes, edges = self.trees.nodes[0], self.trees.edges[0]
        line = []
        while True:
            edge = edges[index]
            line.append(int(edge.action))
            if edge.child < 0:
                return tuple(line)
            node = nodes[edge.child]
            best = max(range(node.first, node.first + node.count), key=lambda k: int(edges[k].visits))
            if edges[best].visits == 0:
                return tuple(line)
            index = best


@dataclass
class AlphaZeroAgent(SearchAgent):
    """Tree search with a trained network. simulations=0: the network's first choice, without search."""

    name: ClassVar[str] = "alphazero"
    checkpoint: str = ""  # a run, a checkpoint's folder or the name of a shipped one; by default the game's
    simulations: int = 64
    seconds: float = 0.0
    kind: str = "auto"  # puct or gumbel; auto: gumbel where there is chance, whose values differ by little
    foresight: int = 400  # positions searched exactly before the network is asked; 0: none
    endgame: int = (
        -1
    )  # positions of an exact search to the game's end before the network's; 0: none, -1: as in training
    leaves: int = 1  # several leaves per batch, with virtual loss: faster on a GPU, a little weaker
    device: str = "auto"
    backend: str = "auto"

    def start(self, game: Game, seed: int) -> None:
        super().start(game, seed)
        if self.kind not in ("auto", "puct", "gumbel"):
            raise InputError(f"agent {self}: kind={self.kind!r} must be auto, puct or gumbel")
        if min(self.simulations, self.foresight, self.endgame + 1) < 0 or self.leaves < 1:
            raise InputError(
                f"agent {self}: simulations and foresight must be 0 or more, endgame -1 or more, leaves 1 or more"
            )
        if not self.checkpoint:
            from envs.registry import spec_of

            self.checkpoint = spec_of(game).split(":")[0]
        self.searcher = Searcher(game, self)  # type: ignore[misc]
        self.searcher.seed = seed
