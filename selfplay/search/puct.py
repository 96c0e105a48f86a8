"""Tree search with a network: PUCT (AlphaZero) and Gumbel AlphaZero, for many games at once.

The network is not called from here. A caller alternates two compiled functions:

    collect     every tree runs simulations until it needs the network; the observations of all the leaves that wait,
                each distinct one once, are the rows of one batch
    back_up     the network's answers become nodes, and their values go up the trees

Leaves that the cache knows, that end the game or that are proven never wait. Values are in the network's units and,
along a path, a vector with one entry per player; an edge keeps the mean for the player who chooses there, so players
need not alternate, there may be any number of them, and chance may move in between.

Silver et al. 2018 (AlphaZero), Wu 2019 (KataGo), Danihelka et al. 2022 (Gumbel AlphaZero, "Policy improvement by
planning with Gumbel").
"""

import math
from typing import Any

import numpy as np

from envs.compiled import njit
from envs.game import CHANCE, TERMINAL, Game
from envs.rng import uniform

NO_CHILD, TERMINAL_CHILD = -1, -2
MOST_DEPTH = 256  # plies of the longest line
SPARE = 4  # chance nodes in a row beyond it
WAITING, BACKED_UP = 1, 0

NODE = np.dtype(
    [
        ("first", "i4"),  # its edges are first .. first + count - 1
        ("count", "i4"),
        ("tried", "i4"),  # as many as count; named as `tree_reuse` wants it
        ("player", "i4"),  # who chooses, or CHANCE
        ("visits", "i4"),  # the sum of its edges' visits
        ("proof", "i4"),  # 1: its value is exact
        ("value", "f4"),  # what the network says for the mover; once proven, the exact value
        ("moved_to", "i4"),  # for compaction
    ],
    align=True,
)
EDGE = np.dtype(
    [
        ("prior", "f4"),  # the network's probability of the move, or the chance of the outcome
        ("logit", "f4"),  # its logarithm
        ("value", "f4"),  # the mean for the player who chooses, or the exact value once proven
        ("visits", "i4"),
        ("flying", "i4"),  # simulations that went through and wait for the network (virtual loss)
        ("action", "i4"),
        ("child", "i4"),  # the node beyond, or NO_CHILD or TERMINAL_CHILD
        ("proof", "i4"),
    ],
    align=True,
)


def tree_dtype(game: Game, simulations: int) -> np.dtype:
    """One tree's counters, its root position and the options of the search that runs in it."""
    width = max(game.max_legal, game.num_outcomes, 1)
    return np.dtype(
        [
            ("root", game.state),
            ("rng", "u8", (2,)),
            ("num_nodes", "i8"),
            ("num_edges", "i8"),
            ("simulations", "i8"),  # done in this search
            ("limit", "i8"),
            ("flying", "i8"),  # waiting for the network
            ("low", "f8"),  # one player: the range of values seen, by which they are scaled
            ("high", "f8"),
            ("gumbel", "f4", (width,)),  # per root edge
            ("before", "i4", (width,)),  # the root edges' visits when the search began
            ("planned", "i8"),  # simulations and noise of the search that begins once the root is a node
            ("planned_noise", "i8"),
            ("noise", "i8"),  # explore at the root (Dirichlet noise, forced playouts, Gumbel noise)
            ("considered", "i8"),  # Gumbel: root moves in sequential halving
            ("choices", "i8", (width,)),
            ("probabilities", "f8", (width,)),
        ],
        align=True,
    )


def options_dtype(simulations: int) -> np.dtype:
    return np.dtype(
        [
            ("gumbel", "i8"),  # 1: Gumbel AlphaZero, 0: PUCT
            ("c_init", "f8"),  # PUCT's exploration; AlphaZero: 1.25
            ("c_base", "f8"),  # AlphaZero: 19652
            ("fpu", "f8"),  # an unvisited move is worth that much less than its node, times sqrt of the visited priors
            ("c_visit", "f8"),  # Danihelka et al. 2022: 50
            ("c_scale", "f8"),  # Danihelka et al. 2022: 1.0
            ("forced", "f8"),  # KataGo's forced playouts; Wu 2019: 2
            ("dirichlet_alpha", "f8"),  # per game; AlphaZero: 10 / typical number of moves
            ("dirichlet_part", "f8"),  # AlphaZero: 0.25
            ("gumbel_scale", "f8"),  # 1 for self-play, 0 for play without randomness
            ("middle", "f8"),  # utilities to the network's units: (utility - middle) / half
            ("half", "f8"),
            ("leaves_per_tree", "i8"),
            ("evaluations", "i8"),  # counters: rows given to the network,
            ("cached", "i8"),  # leaves that the cache knew, or that another leaf of the batch asked for,
            ("decided", "i8"),  # simulations that ended in a proven or finished position
            ("schedule", "i4", (17, max(simulations, 1))),  # Gumbel: the visits that a move to be tried must have
        ],
        align=True,
    )


def leaf_dtype(game: Game) -> np.dtype:
    depth = min(game.max_length + 1, MOST_DEPTH) + 2 * SPARE
    return np.dtype(
        [
            ("state", game.state),
            ("path_node", "i4", (depth,)),
            ("path_edge", "i4", (depth,)),
            ("depth", "i8"),
            ("slot", "i8"),
            ("row", "i8"),  # of the batch
            ("key", "u8"),
            ("player", "i8"),
            ("values", "f8", (max(game.num_players, 1),)),
        ],
        align=True,
    )


def halving_schedule(moves: int, simulations: int) -> list[int]:
    """Sequential halving as a list: how many visits the move tried at each simulation has by then.

    All moves in the race are tried once before any is tried again, then half of them go.

    >>> halving_schedule(4, 8)
    [0, 0, 0, 0, 1, 1, 2, 2]
    """
    if moves <= 1:
        return list(range(simulations))
    rounds = max(1, math.ceil(math.log2(moves)))
    order: list[int] = []
    racing, visits = moves, 0
    while len(order) < simulations:
        for _ in range(max(1, simulations // (rounds * racing))):
            order += [visits] * racing
            visits += 1
        racing = max(2, racing // 2)
    return order[:simulations]


def fill_schedule(options: Any, simulations: int) -> None:
    """Writes the schedules of searches of that many simulations; shorter searches take `halving_schedule` too."""
    for moves in range(1, 17):
        options.schedule[moves, :simulations] = halving_schedule(moves, simulations)


@njit
def has_value_proofs(game):
    """Whether the value of the player to move says it for all: then proofs are exact values."""
    return game.num_players == 1 or (game.num_players == 2 and game.zero_sum)


@njit
def scaled(game, tree, value):
    """A value of the network's units in [0, 1]."""
    if game.num_players == 1:
        if tree.high - tree.low < 1e-9:
            return 0.5
        return min(max((value - tree.low) / (tree.high - tree.low), 0.0), 1.0)
    return 0.5 * (value + 1.0)


# --- making nodes ------------------------------------------------------------------------------------


@njit
def make_node(game, tree, nodes, edges, state, player, logits, value):
    """Adds the node of a player's position; returns its index, or NO_CHILD where there is no room."""
    if tree.num_nodes >= len(nodes):
        return np.int64(NO_CHILD)
    count = game.actions(state, tree.choices)
    if tree.num_edges + count > len(edges):
        return np.int64(NO_CHILD)
    index, first = tree.num_nodes, tree.num_edges
    tree.num_nodes += 1
    tree.num_edges += count
    highest = -np.inf
    for i in range(count):
        highest = max(highest, np.float64(logits[tree.choices[i]]))
    total = 0.0
    for i in range(count):
        total += math.exp(np.float64(logits[tree.choices[i]]) - highest)
    log_total = math.log(total)
    for i in range(count):
        edge = edges[first + i]
        edge.logit = np.float64(logits[tree.choices[i]]) - highest - log_total
        edge.prior = math.exp(edge.logit)
        clear_edge(edge, tree.choices[i])
    node = nodes[index]
    node.first, node.count, node.tried, node.player = first, count, count, player
    node.visits, node.proof, node.value = 0, 0, value
    return np.int64(index)


@njit
def clear_edge(edge, action):
    edge.value = 0.0
    edge.visits = 0
    edge.flying = 0
    edge.action = action
    edge.child = NO_CHILD
    edge.proof = 0


@njit
def make_chance_node(game, tree, nodes, edges, state):
    if tree.num_nodes >= len(nodes):
        return np.int64(NO_CHILD)
    count = game.outcomes(state, tree.choices, tree.probabilities)
    if tree.num_edges + count > len(edges):
        return np.int64(NO_CHILD)
    index, first = tree.num_nodes, tree.num_edges
    tree.num_nodes += 1
    tree.num_edges += count
    for i in range(count):
        edge = edges[first + i]
        edge.prior = tree.probabilities[i]
        edge.logit = 0.0
        clear_edge(edge, tree.choices[i])
    node = nodes[index]
    node.first, node.count, node.tried, node.player = first, count, count, CHANCE
    node.visits, node.proof, node.value = 0, 0, 0.0
    return np.int64(index)


# --- selection ---------------------------------------------------------------------------------------


@njit
def puct_edge(game, options, tree, node, edges, is_root):
    """The edge of PUCT; edges that are known to lose, and are not all there is, are passed over."""
    total = 0
    mass = 0.0
    mean = 0.0
    flying = 0
    for k in range(node.first, node.first + node.count):
        edge = edges[k]
        flying += edge.flying
        if edge.visits > 0:
            total += edge.visits
            mass += edge.prior
            mean += edge.visits * np.float64(edge.value)
    mean = mean / total if total > 0 else np.float64(node.value)
    explored = np.float64(total + flying)
    rate = options.c_init + math.log((1.0 + explored + options.c_base) / options.c_base)
    factor = rate * math.sqrt(max(explored, 1.0))
    if game.num_players == 1:  # PUCT's constants are for values in [-1, 1]
        unvisited = 2.0 * scaled(game, tree, mean) - 1.0
    else:
        unvisited = mean
    unvisited -= 0.0 if (is_root and tree.noise == 1) else options.fpu * math.sqrt(mass)
    lowest = -0.999 if has_value_proofs(game) and game.num_players == 2 else -np.inf
    best, best_score = node.first, -np.inf
    for k in range(node.first, node.first + node.count):
        edge = edges[k]
        visits = edge.visits + edge.flying
        if edge.visits > 0:
            value = np.float64(edge.value)
            if game.num_players == 1:
                value = 2.0 * scaled(game, tree, value) - 1.0
            if edge.flying > 0:  # virtual loss: as if each had been lost
                value = (value * edge.visits - edge.flying) / visits
        else:
            value = unvisited
        # Wu 2019, 3.2: a move that was tried gets at least so many playouts.
        if is_root and tree.noise == 1 and edge.visits > 0 and edge.proof == 0:
            value = 1e6 if visits < math.sqrt(options.forced * edge.prior * explored) else value
        score = value + factor * edge.prior / (1 + visits)
        if edge.proof == 1 and edge.value < lowest:
            score -= 1e9
        if score > best_score:
            best, best_score = k, score
    return np.int64(best)


@njit
def completed_value(game, tree, node, edges):
    """v_mix of Danihelka et al. 2022, appendix D: the value taken for moves without visits; and the most visits."""
    visits, mass, weighted, most = 0, 0.0, 0.0, 0
    for k in range(node.first, node.first + node.count):
        edge = edges[k]
        if edge.visits > 0:
            visits += edge.visits
            mass += edge.prior
            weighted += edge.prior * np.float64(edge.value)
            most = max(most, edge.visits)
    if visits == 0 or mass <= 0.0:
        return np.float64(node.value), np.int64(0)
    return (np.float64(node.value) + visits * weighted / mass) / (1 + visits), np.int64(most)


@njit
def improved_scale(options, most):
    """sigma's factor: Danihelka et al. 2022, eq. 8."""
    return (options.c_visit + most) * options.c_scale


@njit
def improved_edge(game, options, tree, node, edges):
    """Below the root: the move whose share of visits lags most behind the improved policy (eq. 14)."""
    mixed, most = completed_value(game, tree, node, edges)
    factor = improved_scale(options, most)
    highest = -np.inf
    visits = 0
    for k in range(node.first, node.first + node.count):
        edge = edges[k]
        value = np.float64(edge.value) if edge.visits > 0 else mixed
        highest = max(highest, edge.logit + factor * scaled(game, tree, value))
        visits += edge.visits + edge.flying
    total = 0.0
    for k in range(node.first, node.first + node.count):
        edge = edges[k]
        value = np.float64(edge.value) if edge.visits > 0 else mixed
        total += math.exp(edge.logit + factor * scaled(game, tree, value) - highest)
    best, best_score = node.first, -np.inf
    for k in range(node.first, node.first + node.count):
        edge = edges[k]
        value = np.float64(edge.value) if edge.visits > 0 else mixed
        share = math.exp(edge.logit + factor * scaled(game, tree, value) - highest) / total
        score = share - (edge.visits + edge.flying) / (1.0 + visits)
        if score > best_score:
            best, best_score = k, score
    return np.int64(best)


@njit
def halving_edge(game, options, tree, node, edges):
    """At the root: of the moves with as many visits as the schedule says, the best by Gumbel, logit and value."""
    done = min(tree.simulations + tree.flying, tree.limit - 1)
    wanted = options.schedule[tree.considered, min(done, options.schedule.shape[1] - 1)]
    mixed, most = completed_value(game, tree, node, edges)
    factor = improved_scale(options, most)
    best, best_score, fewest = np.int64(-1), -np.inf, np.int64(1 << 30)
    for k in range(node.count):
        edge = edges[node.first + k]
        tries = edge.visits + edge.flying - tree.before[k]
        value = np.float64(edge.value) if edge.visits > 0 else mixed
        score = tree.gumbel[k] + edge.logit + factor * scaled(game, tree, value)
        if tries == wanted and score > best_score:
            best, best_score = np.int64(node.first + k), score
        fewest = min(fewest, np.int64(tries))
    if best >= 0:
        return best
    for k in range(node.count):  # a schedule for other numbers: the least tried
        if edges[node.first + k].visits + edges[node.first + k].flying - tree.before[k] == fewest:
            return np.int64(node.first + k)
    return np.int64(node.first)


@njit
def sampled_edge(tree, node, edges):
    """A chance outcome by its probability."""
    rest = uniform(tree.rng)
    for k in range(node.first, node.first + node.count - 1):
        rest -= edges[k].prior
        if rest < 0:
            return np.int64(k)
    return np.int64(node.first + node.count - 1)


# --- one simulation ----------------------------------------------------------------------------------


@njit
def descend(game, options, tree, nodes, edges, leaf):
    """From the root to a position that is not in the tree, or is decided. Writes the leaf.

    Returns WAITING where the network is to be asked, otherwise BACKED_UP, which here means that the values are known.
    """
    leaf.state = tree.root
    state = leaf.state
    index = np.int64(0)
    depth = np.int64(0)
    proofs = has_value_proofs(game)
    while True:
        node = nodes[index]
        if node.player == CHANCE:
            chosen = sampled_edge(tree, node, edges)
        elif options.gumbel == 1:
            if depth == 0:
                chosen = halving_edge(game, options, tree, node, edges)
            else:
                chosen = improved_edge(game, options, tree, node, edges)
        else:
            chosen = puct_edge(game, options, tree, node, edges, depth == 0)
        leaf.path_node[depth] = index
        leaf.path_edge[depth] = chosen
        depth += 1
        edge = edges[chosen]
        game.play(state, edge.action)
        if edge.proof == 1 and proofs:
            leaf.depth = depth
            mover = max(node.player, 0)
            leaf.values[mover] = edge.value
            if game.num_players == 2:
                leaf.values[1 - mover] = -edge.value
            return BACKED_UP
        if edge.child == NO_CHILD:
            player = game.player(state)
            if player == TERMINAL:
                edge.child = TERMINAL_CHILD
            elif player == CHANCE:
                edge.child = make_chance_node(game, tree, nodes, edges, state)
                if edge.child == NO_CHILD or depth >= len(leaf.path_node) - SPARE:  # no room: one outcome, not kept
                    game.play(state, game.random_outcome(state, tree.choices, tree.probabilities, tree.rng))
                    while game.player(state) == CHANCE:
                        game.play(state, game.random_outcome(state, tree.choices, tree.probabilities, tree.rng))
                    player = game.player(state)
                    if player == TERMINAL:
                        write_result(game, options, leaf, state)
                        leaf.depth = depth
                        return BACKED_UP
                    leaf.player, leaf.depth = -1 - player, depth  # evaluated, but makes no node
                    return WAITING
            else:
                leaf.player, leaf.depth = player, depth
                return WAITING
        if edge.child == TERMINAL_CHILD:
            write_result(game, options, leaf, state)
            leaf.depth = depth
            if proofs:
                edge.proof = 1
                edge.value = leaf.values[max(node.player, 0)]
            return BACKED_UP
        if depth >= len(leaf.path_node) - SPARE:
            player = game.player(state)
            if player != CHANCE and player != TERMINAL:
                leaf.player, leaf.depth = -1 - player, depth
                return WAITING
        index = np.int64(edge.child)


@njit
def write_result(game, options, leaf, state):
    for player in range(game.num_players):
        leaf.values[player] = (game.utility(state, player) - options.middle) / options.half


@njit
def node_is_proven(game, node, edges):
    """Whether the node's value is settled; then writes it."""
    if node.player == CHANCE:
        total = 0.0
        for k in range(node.first, node.first + node.count):
            if edges[k].proof == 0:
                return False
            total += edges[k].prior * np.float64(edges[k].value)
        node.value = total
    else:
        best = -np.inf
        settled = True
        for k in range(node.first, node.first + node.count):
            if edges[k].proof == 1:
                best = max(best, np.float64(edges[k].value))
            else:
                settled = False
        won = game.num_players == 2 and best >= 0.9999
        if not (settled or won):
            return False
        node.value = best
    node.proof = 1
    return True


@njit
def finish(game, tree, nodes, edges, leaf, virtual):
    """Adds the leaf's values to all edges of its path, and proofs as far as they go."""
    if game.num_players == 1:
        tree.low = min(tree.low, leaf.values[0])
        tree.high = max(tree.high, leaf.values[0])
    proofs = has_value_proofs(game)
    proving = proofs
    for level in range(leaf.depth - 1, -1, -1):
        node = nodes[leaf.path_node[level]]
        edge = edges[leaf.path_edge[level]]
        mover = max(node.player, 0)
        edge.visits += 1
        node.visits += 1
        if virtual:
            edge.flying -= 1
        if edge.proof == 0:
            edge.value += (leaf.values[mover] - edge.value) / edge.visits
        if proving:
            proving = False
            if edge.proof == 1 and node.proof == 0 and node_is_proven(game, node, edges):
                proving = True
                if level > 0:
                    parent = nodes[leaf.path_node[level - 1]]
                    above = edges[leaf.path_edge[level - 1]]
                    same = max(parent.player, 0) == max(node.player, 0)
                    above.proof = 1
                    above.value = node.value if same else -node.value
    tree.simulations += 1


@njit
def observation_key(planes):
    """64 bits of an observation's values."""
    key = np.uint64(0x9E3779B97F4A7C15)
    for i in range(len(planes)):
        key = (key ^ np.uint64(planes[i])) * np.uint64(0xD6E8FEB86659FD93)
        key ^= key >> np.uint64(32)
    return key | np.uint64(1)


@njit
def gamma_variate(rng, alpha):
    """Marsaglia and Tsang 2000; for alpha < 1 by their boost."""
    boost = 1.0
    if alpha < 1.0:
        boost = max(uniform(rng), 1e-300) ** (1.0 / alpha)
        alpha += 1.0
    d = alpha - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        radius = math.sqrt(-2.0 * math.log(max(uniform(rng), 1e-300)))
        x = radius * math.cos(2.0 * math.pi * uniform(rng))
        v = (1.0 + c * x) ** 3
        if v > 0.0 and math.log(max(uniform(rng), 1e-300)) < 0.5 * x * x + d - d * v + d * math.log(v):
            return boost * d * v


@njit
def begin(game, options, tree, nodes, edges):
    """Begins the planned search at a root that is a node already: its limit, and its noise."""
    tree.simulations = 0
    tree.limit = tree.planned
    tree.noise = tree.planned_noise
    simulations, noise = tree.limit, tree.noise
    node = nodes[0]
    count = node.count
    tree.considered = min(min(count, simulations), 16)
    for k in range(count):
        tree.before[k] = edges[node.first + k].visits
        tree.gumbel[k] = 0.0
        if noise == 1 and options.gumbel == 1:
            tree.gumbel[k] = -options.gumbel_scale * math.log(-math.log(max(uniform(tree.rng), 1e-300)))
    if noise == 1 and options.gumbel == 0 and options.dirichlet_part > 0.0:
        alpha = options.dirichlet_alpha / count
        total = 0.0
        for k in range(count):
            tree.gumbel[k] = gamma_variate(tree.rng, alpha)
            total += tree.gumbel[k]
        for k in range(count):
            edge = edges[node.first + k]
            drawn = tree.gumbel[k] / total if total > 0.0 else 1.0 / count
            edge.prior = (1.0 - options.dirichlet_part) * edge.prior + options.dirichlet_part * drawn


@njit
def plan(game, options, tree, nodes, edges, simulations, noise):
    """Asks for a search of the root position: at once where the root is a node, else as soon as it is one."""
    tree.planned = simulations
    tree.planned_noise = noise
    if tree.num_nodes > 0:
        begin(game, options, tree, nodes, edges)


@njit
def is_done(tree, nodes):
    """Whether the planned search is over."""
    return tree.num_nodes > 0 and tree.flying == 0 and (nodes[0].proof == 1 or tree.simulations >= tree.limit)


@njit
def answer(game, options, tree, nodes, edges, leaf, logits, values, virtual):
    """The network's answer to a leaf: a node, and values that go up. At the root the search begins."""
    player = leaf.player if leaf.player >= 0 else -1 - leaf.player
    for k in range(game.num_players):
        leaf.values[(player + k) % game.num_players] = values[k]
    if leaf.depth == 0:
        make_node(game, tree, nodes, edges, leaf.state, player, logits, leaf.values[player])
        begin(game, options, tree, nodes, edges)
        return
    if leaf.player >= 0:
        edge = edges[leaf.path_edge[leaf.depth - 1]]
        if edge.child == NO_CHILD:
            value = leaf.values[player]
            edge.child = make_node(game, tree, nodes, edges, leaf.state, player, logits, value)
    finish(game, tree, nodes, edges, leaf, virtual)


@njit
def find_row(keys, slots, key):
    """The entry of that key in an open-addressed table, or of the first free one."""
    at = np.int64(key & np.uint64(len(slots) - 1))
    while slots[at] >= 0 and keys[slots[at]] != key:
        at = (at + 1) & (len(slots) - 1)
    return at


@njit
def collect(game, options, trees, nodes, edges, leaves, num_leaves, planes, words, keys, pending, cache):
    """Runs every tree until it waits for the network, or its search is done.

    `leaves[:num_leaves]` already wait; the new number is returned, with the number of rows to evaluate. `planes` are
    the rows, `words` the same memory as integers; `cache` is (keys, logits, values).
    """
    cache_keys, cache_logits, cache_values = cache
    rows = np.int64(0)
    pending[:] = -1
    virtual = options.leaves_per_tree > 1 or options.gumbel == 1
    for slot in range(len(trees)):
        tree = trees[slot]
        while tree.flying < options.leaves_per_tree:
            leaf = leaves[num_leaves]
            leaf.slot = slot
            if tree.num_nodes == 0:
                if tree.flying > 0 or tree.planned == 0:
                    break
                leaf.state = tree.root
                leaf.player, leaf.depth = game.player(tree.root), 0
            elif nodes[slot, 0].proof == 1 or tree.simulations + tree.flying >= tree.limit:
                break
            elif descend(game, options, tree, nodes[slot], edges[slot], leaf) == BACKED_UP:
                options.decided += 1
                finish(game, tree, nodes[slot], edges[slot], leaf, False)
                continue
            row_planes = planes[rows]
            words[rows, :] = 0
            game.observe(leaf.state, row_planes)
            leaf.key = observation_key(words[rows])
            entry = np.int64(leaf.key >> np.uint64(20)) & (len(cache_keys) - 1)
            if cache_keys[entry] == leaf.key:
                options.cached += 1
                known = cache_logits[entry], cache_values[entry]
                answer(game, options, tree, nodes[slot], edges[slot], leaf, known[0], known[1], False)
                continue
            at = find_row(keys, pending, leaf.key)
            if pending[at] >= 0:
                options.cached += 1
                leaf.row = pending[at]
            else:
                leaf.row = rows
                keys[rows] = leaf.key
                pending[at] = rows
                rows += 1
                options.evaluations += 1
            num_leaves += 1
            tree.flying += 1
            if virtual:
                for level in range(leaf.depth):
                    edges[slot, leaf.path_edge[level]].flying += 1
    return num_leaves, rows


@njit
def back_up(game, options, trees, nodes, edges, leaves, num_leaves, keys, rows, logits, values, cache):
    """Takes the network's answers to all leaves that wait."""
    cache_keys, cache_logits, cache_values = cache
    virtual = options.leaves_per_tree > 1 or options.gumbel == 1
    for i in range(num_leaves):
        leaf = leaves[i]
        tree = trees[leaf.slot]
        tree.flying -= 1
        slot, row = leaf.slot, leaf.row
        answer(game, options, tree, nodes[slot], edges[slot], leaf, logits[row], values[row], virtual)
    for row in range(rows):
        entry = np.int64(keys[row] >> np.uint64(20)) & (len(cache_keys) - 1)
        cache_keys[entry] = keys[row]
        for a in range(logits.shape[1]):
            cache_logits[entry, a] = logits[row, a]
        for player in range(values.shape[1]):
            cache_values[entry, player] = values[row, player]


# --- the root ----------------------------------------------------------------------------------------


@njit
def root_value(game, tree, node, edges):
    """What the search thinks of the root, for its mover."""
    if node.proof == 1:
        return np.float64(node.value)
    total, visits = np.float64(node.value), 1
    for k in range(node.first, node.first + node.count):
        edge = edges[k]
        total += edge.visits * np.float64(edge.value)
        visits += edge.visits
    return total / visits


@njit
def target_policy(game, options, tree, node, edges, policy):
    """The policy that the search found better than the network's, over the root's edges.

    Gumbel: softmax of logits and completed values. PUCT: the visits, less those that were forced (Wu 2019).
    A proven root has all its weight on the best proven moves.
    """
    if node.proof == 1:
        count = 0
        for k in range(node.count):
            edge = edges[node.first + k]
            best = edge.proof == 1 and edge.value >= node.value - 1e-6
            policy[k] = 1.0 if best else 0.0
            count += 1 if best else 0
        for k in range(node.count):
            policy[k] /= count
        return
    if options.gumbel == 1:
        mixed, most = completed_value(game, tree, node, edges)
        factor = improved_scale(options, most)
        highest = -np.inf
        for k in range(node.count):
            edge = edges[node.first + k]
            value = np.float64(edge.value) if edge.visits > 0 else mixed
            policy[k] = edge.logit + factor * scaled(game, tree, value)
            highest = max(highest, np.float64(policy[k]))
        total = 0.0
        for k in range(node.count):
            policy[k] = math.exp(policy[k] - highest)
            total += policy[k]
        for k in range(node.count):
            policy[k] /= total
        return
    most, best_index, visits = -1, 0, 0
    for k in range(node.count):
        edge = edges[node.first + k]
        visits += edge.visits
        if edge.visits > most:
            most, best_index = edge.visits, k
    rate = options.c_init + math.log((1.0 + visits + options.c_base) / options.c_base)
    factor = rate * math.sqrt(max(1.0, np.float64(visits)))
    best = edges[node.first + best_index]
    best_score = best.value + factor * best.prior / (1 + best.visits)
    total = 0.0
    for k in range(node.count):
        edge = edges[node.first + k]
        kept = np.float64(edge.visits)
        if k != best_index and tree.noise == 1 and edge.visits > 0 and game.num_players > 1:
            forced = math.sqrt(options.forced * edge.prior * visits)
            gap = best_score - edge.value
            needed = factor * edge.prior / gap - 1.0 if gap > 1e-9 else kept
            kept = max(kept - forced, min(kept, max(0.0, needed)))
            if kept <= 1.0 and options.forced > 0.0:
                kept = 0.0
        if edge.proof == 1 and edge.value <= -0.9999 and game.num_players == 2 and k != best_index:
            kept = 0.0
        policy[k] = kept
        total += kept
    for k in range(node.count):
        policy[k] = policy[k] / total if total > 0.0 else edges[node.first + k].prior


@njit
def chosen_edge(game, options, tree, node, edges, policy, temperature):
    """The root edge to play. Proven: the best. Gumbel: the survivor of the halving, PUCT: the most visited; with
    a temperature, one drawn from the target policy to the power of 1 / temperature."""
    if node.proof == 1 or temperature <= 0.0:
        best, best_score = 0, -np.inf
        mixed, most = completed_value(game, tree, node, edges)
        factor = improved_scale(options, most)
        most_tries = 0
        for k in range(node.count):
            most_tries = max(most_tries, edges[node.first + k].visits - tree.before[k])
        for k in range(node.count):
            edge = edges[node.first + k]
            if node.proof == 1:
                score = policy[k]
            elif options.gumbel == 1:
                value = np.float64(edge.value) if edge.visits > 0 else mixed
                score = tree.gumbel[k] + edge.logit + factor * scaled(game, tree, value)
                if edge.visits - tree.before[k] < most_tries:
                    score -= 1e9
            else:
                score = edge.visits + 1e-3 * edge.prior + 1e-4 * edge.value
                if edge.proof == 1 and edge.value <= -0.9999 and game.num_players == 2:
                    score -= 1e9
            if score > best_score:
                best, best_score = k, score
        return np.int64(best)
    total = 0.0
    for k in range(node.count):
        total += math.pow(np.float64(policy[k]), 1.0 / temperature)
    rest = uniform(tree.rng) * total
    last = 0
    for k in range(node.count):
        weight = math.pow(np.float64(policy[k]), 1.0 / temperature)
        if weight > 0.0:
            last = k
            rest -= weight
            if rest < 0.0:
                return np.int64(k)
    return np.int64(last)


@njit
def clear(tree):
    """An empty tree; its root has to be evaluated anew."""
    tree.num_nodes = 0
    tree.num_edges = 0
    tree.simulations = 0
    tree.flying = 0
    tree.limit = 0
    tree.planned = 0
    tree.low = np.inf
    tree.high = -np.inf
