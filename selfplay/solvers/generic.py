"""Any small game, solved by search to its end.

Two opposed players without chance: iterative deepening alpha-beta with its table and symmetries. Deepening by single
plies without quiescence meets the quickest win first, so a forced win or loss is exact with its distance before the
whole game is searched; any other value counts only once no line was cut short.

Everything else (chance, one player, three and more, sums other than zero): backward induction over all positions,
each looked at once (`induce`): expectimax, expectiminimax and max^n without a horizon.
"""

import time
from typing import Any

import numpy as np

from envs.bits import ZERO, mix
from envs.compiled import njit
from envs.game import CHANCE, TERMINAL, Game, State
from models.evaluation import Nothing
from selfplay.search.deepening import AlphaBeta, Switches
from selfplay.search.result import EXACT, Limits, Result, clock, require_player
from selfplay.search.wins import plies_to_end, win_value
from selfplay.search.workspace import rounded
from selfplay.solvers.solution import NO_LIMITS, MoveValue, Solution, Solver, after, legal, mover, refuse

DEEPEST = 1024  # plies of one line that induction follows
DEFAULT_NODES = 50_000_000


class AlphaBetaSolver(Solver):
    """Two opposed players, no chance."""

    def __init__(self, game: Game, limits: Limits = NO_LIMITS, megabytes: float = 64.0):
        self.game, self.limits = game, limits
        # A key leaves former positions out: where those decide (repetitions), the table could not be trusted.
        switches: dict[str, Any] = {
            "quiescence": False,
            "aspiration": 0.0,
            "sort": False,
            "table": not game.history_fields,
        }
        nothing = Nothing()
        self.quick = AlphaBeta(game, nothing, limits, Switches(**switches), megabytes)
        self.full = AlphaBeta(game, nothing, limits, Switches(**switches, full_root=True), 0)
        self.full.table = self.quick.table

    def reset(self) -> None:
        self.quick.reset()
        self.full.reset()

    def solve(self, state: State) -> Solution:
        found = self._search(self.quick, state, 0)
        nodes, seconds, value = found.nodes, found.seconds, self._raw(self.quick, found.action)
        decided = abs(value) >= win_value(self.game)
        distance = plies_to_end(self.game, value)
        # All moves exactly: as deep as the quickest win, or to the end.
        found = self._search(self.full, state, distance or 0)
        nodes, seconds = nodes + found.nodes, seconds + found.seconds
        moves = {}
        for report in found.moves:
            raw = self._raw(self.full, report.action)
            if report.bound == EXACT and (not decided or abs(raw) >= win_value(self.game)):
                moves[report.action] = MoveValue(report.value, plies_to_end(self.game, raw))
        best = tuple(sorted(a for a, m in moves.items() if (m.value, m.distance) == (found.value, distance)))
        if distance is None:
            distance = self._line(state)
        return Solution(found.value, distance, best, nodes, seconds, "alpha-beta to the end", moves)

    def values(self, state: State) -> dict[int, float]:
        """From the children: at a quick win the other moves are not looked at any deeper."""
        player, values = mover(self.game, state), {}
        for action in legal(self.game, state):
            child = after(self.game, state, action)
            there = mover(self.game, child)
            if there == TERMINAL:
                values[action] = float(self.game.utility(child, player))
            else:
                value = self._search(self.quick, child, 0).value
                values[action] = value if there == player else -value
        return values

    def _search(self, search: AlphaBeta, state: State, depth: int) -> Result:
        search.limits = Limits(depth, self.limits.nodes, self.limits.seconds)
        found = search.search(state)
        if search.work.stopped or not (found.proven or depth):
            raise refuse("alpha-beta to the end", found.nodes, found.seconds)
        return found

    def _raw(self, search: AlphaBeta, action: int) -> float:
        """The value with its distance, as the search holds it."""
        work = search.work
        return next(float(work.root_value[i]) for i in range(int(work.root_count)) if work.root_move[i] == action)

    def _line(self, state: State) -> int:
        """The length of one line of best play; the table knows most of it."""
        length = 0
        while mover(self.game, state) != TERMINAL:
            state, length = after(self.game, state, self._search(self.quick, state, 0).action), length + 1
        return length


@njit
def smallest_key(game, states, level, use_symmetry):
    """The least key of all images of states[level]; the last state of the array is room."""
    best = np.uint64(game.key(states[level]))
    if use_symmetry:
        room = len(states) - 1
        for symmetry in range(1, game.num_symmetries):
            states[room] = states[level]
            game.transform(states[room], symmetry)
            best = min(best, np.uint64(game.key(states[room])))
    return best if best != ZERO else np.uint64(1)


@njit
def induce(game, work, states, moves, chances, values, keys, known, level):
    """Writes every player's value of states[level] to values[level]; looks at each position once.

    keys and known are a hash table with open addressing that is never full (`work.room`).
    """
    state = states[level]
    player = game.player(state)
    work.nodes += 1
    if player == TERMINAL:
        for p in range(game.num_players):
            values[level, p] = game.utility(state, p)
        return
    if work.stop != 0 or work.nodes > work.node_limit or level + 3 >= len(states) or work.used >= work.room:
        work.stopped = 1
        return
    key = smallest_key(game, states, level, game.num_symmetries > 1)
    place = np.int64(mix(key) & np.uint64(len(keys) - 1))
    while work.remember and keys[place] != ZERO:
        if keys[place] == key:
            for p in range(game.num_players):
                values[level, p] = known[place, p]
            return
        place = (place + 1) & (len(keys) - 1)
    if player == CHANCE:
        count = game.outcomes(state, moves[level], chances[level])
        for p in range(game.num_players):
            values[level, p] = 0.0
    else:
        count = game.actions(state, moves[level])
    best = -np.inf
    for i in range(count):
        states[level + 1] = states[level]
        game.play(states[level + 1], moves[level, i])
        induce(game, work, states, moves, chances, values, keys, known, level + 1)
        if work.stopped:
            return
        if player == CHANCE:
            for p in range(game.num_players):
                values[level, p] += chances[level, i] * values[level + 1, p]
        elif values[level + 1, player] > best:
            best = values[level + 1, player]
            for p in range(game.num_players):
                values[level, p] = values[level + 1, p]
    if work.remember:
        while keys[place] != ZERO:  # the children took places in the meantime
            place = (place + 1) & (len(keys) - 1)
        keys[place] = key
        work.used += 1
        for p in range(game.num_players):
            known[place, p] = values[level, p]


_WORK = np.dtype([(name, "i8") for name in ("nodes", "node_limit", "stop", "stopped", "used", "room", "remember")])


class InductionSolver(Solver):
    """Chance, one player, several players, or utilities that do not sum to zero."""

    def __init__(self, game: Game, limits: Limits = NO_LIMITS, megabytes: float = 64.0):
        self.game, self.limits = game, limits
        self.work: Any = np.zeros(1, _WORK).view(np.recarray)[0]
        self.work.remember = not game.history_fields
        levels = min(game.max_length + 4, DEEPEST)
        self.states: Any = game.new(levels)
        self.moves = np.zeros((levels, rounded(max(game.max_legal, game.num_outcomes))), np.int32)
        self.chances = np.zeros((levels, rounded(max(game.num_outcomes, 1))))
        self.results = np.zeros((levels, game.num_players))
        entries = max(2, int(megabytes * 2**20) // (8 + 8 * game.num_players))
        size = 1 << (entries.bit_length() - 1)
        self.keys, self.known = np.zeros(size, np.uint64), np.zeros((size, game.num_players))
        self.work.room = size * 3 // 4
        self.ready = False

    def reset(self) -> None:
        self.keys[:] = 0
        self.work.used = 0

    def solve(self, state: State) -> Solution:
        player = require_player(self.game, state)
        vectors, nodes, seconds = self._vectors(state)
        value = max(vector[player] for vector in vectors.values())
        best = tuple(a for a, vector in vectors.items() if np.isclose(vector[player], value, rtol=1e-12, atol=1e-12))
        moves = {action: MoveValue(vector[player], None) for action, vector in vectors.items()}
        distance = None if self.game.has_chance else self._line(state)
        several = self.game.num_players > 2 or not self.game.zero_sum
        values = vectors[best[0]] if several else ()
        method = "backward induction over all positions"
        return Solution(value, distance, best, nodes, seconds, method, moves, values=values)

    def _vectors(self, state: State) -> tuple[dict[int, tuple[float, ...]], int, float]:
        """Every move's vector of utilities."""
        work, vectors = self.work, {}
        actions = legal(self.game, state)
        if not self.ready:  # compile before the clock starts
            work.stop, work.nodes, self.states[0] = 1, 0, state
            self._induce()
            self.ready = True
        work.nodes, work.stopped = 0, 0
        work.node_limit = self.limits.nodes or DEFAULT_NODES
        with clock(work, self.limits.seconds) as started:
            for action in actions:
                self.states[0] = after(self.game, state, action)
                self._induce()
                if work.stopped:
                    seconds = time.perf_counter() - started
                    raise refuse("backward induction over all positions", int(work.nodes), seconds)
                vectors[action] = tuple(float(v) for v in self.results[0])
        return vectors, int(work.nodes), time.perf_counter() - started

    def _induce(self) -> None:
        induce(
            self.game,
            self.work,
            self.states,
            self.moves,
            self.chances,
            self.results,
            self.keys,
            self.known,
            0,
        )

    def _line(self, state: State) -> int:
        """The length of the line where everyone takes the first of the best moves."""
        length = 0
        while (player := int(mover(self.game, state))) != TERMINAL:
            vectors, _, _ = self._vectors(state)
            state, length = after(self.game, state, max(vectors, key=lambda a: vectors[a][player])), length + 1
        return length
