"""Monte Carlo tree search (Coulom 2006; UCT: Kocsis and Szepesvari 2006): select, expand, play out, back up.

Values are utilities of the player who chooses at a node. UCB1 wants rewards in [0, 1]: utilities are scaled by the
game's bounds; with one player, whose scores rarely come near them (2048), by the lowest and highest result that
this search has seen. Selection at a node asks only for the view of the player who moves there, so players need not
alternate, there may be any number of them, and their interests need not be opposed.
"""

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from envs.compiled import njit
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, Game, State
from envs.rng import below, generator
from models.evaluation import Evaluation
from selfplay.search.playouts import NOTHING, UNIFORM, Greedy, Policy, playout, playout_fields
from selfplay.search.result import AVERAGE, EXACT, UNKNOWN, MoveReport, Result, clock, require_player
from selfplay.search.tree import (
    NO_CHILD,
    TERMINAL_CHILD,
    Edge,
    back_up,
    best_edge,
    expand,
    has_value_proofs,
    leaf_proof,
    new_tree,
    node_proof,
    outcome_edge,
    settles,
    tree_fields,
    tried_edge,
)
from selfplay.search.tree_reuse import keep_subtree, move_root
from selfplay.search.workspace import workspace

NO_LIMIT = np.iinfo(np.int64).max


@njit
def select(game, work, nodes, edges, state):
    """Follows the tree from the root to its edge, playing in `state`, and makes a node there on a second visit.

    Returns the length of the path. The last edge is new, or ends the game, or is proven, or the tree is full.
    """
    value_proofs = has_value_proofs(game)
    index = np.int64(0)
    depth = np.int64(0)
    while True:
        node = nodes[index]
        work.path_known[depth] = NO_CHILD
        if node.player == CHANCE:
            outcome = game.random_outcome(state, work.choices, work.probabilities[1], work.rng)
            chosen = outcome_edge(node, edges, outcome)
        elif node.tried < node.count:
            chosen = tried_edge(node, edges, below(work.rng, node.count - node.tried))
        else:
            chosen = best_edge(work, node, edges, depth)
        work.path_node[depth] = index
        work.path_edge[depth] = chosen
        depth += 1
        edge = edges[chosen]
        game.play(state, edge.action)
        if edge.visits == 0 or edge.child == TERMINAL_CHILD or (value_proofs and edge.proof != 0):
            return depth
        if edge.child == NO_CHILD:
            player = game.player(state)
            if depth < len(work.path_node) and player != TERMINAL:
                edge.child = expand(game, work, nodes, edges, state, player)
            if edge.child == NO_CHILD:
                return depth
        index = np.int64(edge.child)


@njit
def simulate(game, evaluation, policy, work, nodes, edges):
    """One simulation; returns whether it was finished (it is given up when the search is stopped)."""
    # 1. Select, and expand by one node.
    work.states[1] = work.states[0]
    state = work.states[1]
    depth = select(game, work, nodes, edges, state)
    node = nodes[work.path_node[depth - 1]]
    edge = edges[work.path_edge[depth - 1]]

    # 2. The result beyond the tree: proven, final, or by a playout.
    proof = np.int64(0)
    if edge.proof != 0 and has_value_proofs(game):
        chooser = max(node.player, 0)
        work.values[chooser] = edge.value
        if game.num_players == 2:
            work.values[1 - chooser] = -edge.value
    else:
        final = edge.child == TERMINAL_CHILD or (edge.visits == 0 and game.player(state) == TERMINAL)
        if not playout(game, evaluation, policy, work, state):
            if edge.visits == 0:
                node.tried -= 1  # as if it had never been tried
            return False
        if final:
            edge.child = TERMINAL_CHILD
            if work.solver:
                proof = leaf_proof(game, work)

    # 3. Back up.
    if game.num_players == 1:
        work.low = min(work.low, work.values[0])
        work.high = max(work.high, work.values[0])
    for player in range(game.num_players):
        work.totals[player] += work.values[player]
    back_up(game, work, nodes, edges, depth, proof)
    work.deepest = max(work.deepest, depth)
    work.simulations += 1
    return True


@njit
def mcts(game, evaluation, policy, work, nodes, edges):
    """Simulates until a limit is reached, another thread says stop, or the root is proven."""
    if work.num_nodes == 0:
        expand(game, work, nodes, edges, work.states[0], game.player(work.states[0]))
    proof, _ = node_proof(game, nodes[0], edges)  # of a tree that was kept
    work.root_proof = proof if settles(game, nodes[0], proof) else 0
    while work.root_proof == 0 and work.simulations < work.simulation_limit and work.stop == 0:
        if not simulate(game, evaluation, policy, work, nodes, edges):
            break


@dataclass(frozen=True)
class Options:
    """How much and how to search."""

    simulations: int = 1000  # per move, besides what is kept of the last tree; 0: no such limit
    seconds: float = 0.0  # 0: no such limit
    c: float = math.sqrt(2)  # UCB1's constant for rewards in [0, 1]; Auer et al. 2002: sqrt 2
    cutoff: int = 0  # plies of a playout before the evaluation; 0: to the end of the game
    solver: bool = True  # MCTS-Solver: proven results replace averages
    reuse: bool = True  # keep the subtree of the position that the game has come to
    megabytes: float = 256.0  # the tree's memory; once full, simulations go on without new nodes

    def __post_init__(self) -> None:
        if self.simulations < 0:
            raise InputError(f"simulations={self.simulations} must be 1 or more")
        if not self.seconds >= 0:
            raise InputError(f"seconds={self.seconds} must be 0 (no limit) or more")
        if self.simulations == 0 and self.seconds == 0:
            raise InputError("simulations=0 must be 1 or more, unless seconds is the limit")
        if not self.c >= 0:
            raise InputError(f"c={self.c} must be 0 or more")
        if self.cutoff < 0:
            raise InputError(f"cutoff={self.cutoff} must be 0 (play to the end) or more plies")
        if not 0 < self.megabytes < math.inf:
            raise InputError(f"megabytes={self.megabytes} must be more than 0")


class MCTS:
    """Monte Carlo tree search for one game; keeps its tree from move to move until `reset`."""

    def __init__(
        self,
        game: Game,
        evaluation: Evaluation = NOTHING,
        options: Options = Options(),
        policy: Policy = UNIFORM,
        seed: int = 0,
    ):
        self.game, self.options, self.policy, self.seed = game, options, policy, seed
        # An evaluation that nobody asks is left out, so that all such searches share their compiled code.
        asked = options.cutoff > 0 or isinstance(policy, Greedy)
        self.evaluation = evaluation if asked else NOTHING
        self.value_proofs = bool(has_value_proofs(game))
        self.nodes, self.edges = new_tree(game, options.megabytes, options.simulations or 2**40)
        self.work = workspace(game, "mcts", [*playout_fields(game), *tree_fields(game)])
        self.work.c, self.work.solver, self.work.cutoff = options.c, options.solver, options.cutoff
        self.work.simulation_limit = options.simulations or NO_LIMIT
        self.ready = False
        self.reset()

    def reset(self) -> None:
        """Forgets the tree and starts the random numbers again, so that the same position gives the same result."""
        self._clear()
        self.work.rng = generator(self.seed)

    def _clear(self) -> None:
        work = self.work
        work.num_nodes = work.num_edges = work.root_proof = 0
        one = self.game.num_players == 1
        work.low = np.inf if one else self.game.min_utility
        work.high = -np.inf if one else self.game.max_utility

    def _prepare(self, state: State) -> None:
        """Compiles what the search needs, before any clock starts."""
        work, tree = self.work, (self.nodes, self.edges)
        work.states[0], work.stop = state, 1
        mcts(self.game, self.evaluation, self.policy, work, *tree)  # stops before the first simulation
        if self.options.reuse:
            keep_subtree(work, *tree, 0)
            move_root(self.game, work, *tree, state)
        self._clear()
        self.ready = True

    def stop(self) -> None:
        """Ends a running search; for use from another thread."""
        self.work.stop = 1

    def search(self, state: State) -> Result:
        """The most visited move, or a proven one, within the limits."""
        game, work = self.game, self.work
        player = require_player(game, state)
        work.simulations = work.deepest = work.full = 0
        work.totals[:] = 0.0
        if not self.ready:
            self._prepare(state)
        with clock(work, self.options.seconds) as started:
            kept = self.options.reuse and work.num_nodes > 0 and move_root(game, work, self.nodes, self.edges, state)
            if not kept:
                self._clear()
                work.states[0] = state
            mcts(game, self.evaluation, self.policy, work, self.nodes, self.edges)
        return self._result(player, time.perf_counter() - started)

    # --- what the tree says --------------------------------------------------------------------------

    def _edges_of(self, index: int) -> list[Edge]:
        """The edges of a node that were tried, as plain tuples, which Python reads many times faster."""
        node = self.nodes[index]
        end = node.first + node.tried
        return [Edge(*values) for values in self.edges.view(np.ndarray)[node.first : end].tolist()]

    def _chosen(self, index: int) -> Edge | None:
        """The edge to play: the most visited one that is open, unless the best proven one is worth as much.

        At a chance node the outcome seen most often. None where nothing was tried.
        """
        player = int(self.nodes[index].player)
        known: list[Edge] = []
        unknown: list[Edge] = []
        for edge in self._edges_of(index):
            (known if player != CHANCE and self._is_known(player, edge) else unknown).append(edge)
        best_known = max(known, key=lambda edge: (edge.value, edge.visits), default=None)
        most_visited = max(unknown, key=lambda edge: (edge.visits, edge.value), default=None)
        if best_known is None or (most_visited is not None and most_visited.value > best_known.value):
            return most_visited
        return best_known

    def _is_known(self, player: int, edge: Edge) -> bool:
        """Whether the edge's value is the mover's exact one."""
        return edge.proof != 0 and (self.value_proofs or edge.proof == 1 + player)

    def _line(self) -> tuple[int, ...]:
        """The moves that would be played, as far as the tree goes."""
        line: list[int] = []
        index = 0
        while index >= 0 and (edge := self._chosen(index)) is not None:
            line.append(edge.action)
            index = edge.child
        return tuple(line)

    def _result(self, player: int, seconds: float) -> Result:
        game, work = self.game, self.work
        chosen = self._chosen(0)
        reports = []
        for edge in self._edges_of(0):
            bound = EXACT if self._is_known(player, edge) else AVERAGE
            reports.append(MoveReport(edge.action, edge.value, bound, edge.visits, (edge.action,)))
        root = self.nodes[0]
        untried = self.edges.view(np.ndarray)["action"][root.first + root.tried : root.first + root.count]
        reports += [MoveReport(int(action), 0.0, UNKNOWN) for action in untried]
        simulations, depth = int(work.simulations), int(work.deepest)
        if chosen is None:  # stopped before the first simulation was finished
            action = min(report.action for report in reports)
            return Result(action, 0.0, tuple(reports), (action,), 0, 0, seconds)
        line = self._line()
        reports = [replace(report, line=line) if report.action == chosen.action else report for report in reports]
        reports.sort(key=lambda report: (report.action != chosen.action, -report.visits, report.action))
        value = chosen.value
        values: tuple[float, ...] = ()
        if game.num_players == 2 and game.zero_sum:
            values = (value, -value) if player == 0 else (-value, value)
        elif simulations > 0:
            values = tuple(float(total) / simulations for total in work.totals[: game.num_players])
        proven = self._is_known(player, chosen) and bool(work.root_proof)
        return Result(chosen.action, value, tuple(reports), line, simulations, depth, seconds, values, proven)
