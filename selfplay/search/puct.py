"""Tree search with a network: PUCT (AlphaZero) and Gumbel AlphaZero, for many games at once.

The network is not called from here. A caller alternates two compiled functions:

    collect     every tree runs simulations until it needs the network; the observations of all the leaves that wait,
                each distinct one once, are the rows of one batch
    back_up     the network's answers become nodes, and their values go up the trees

Leaves that the cache knows, that end the game, that are proven or that a short exact search settles (`foresight.py`)
never wait. The trees' arrays are in `network_tree.py`, Gumbel's choices in `gumbel.py`, answers in `network_root.py`.

Silver et al. 2018 (AlphaZero), Wu 2019 (KataGo), Danihelka et al. 2022 (Gumbel AlphaZero, "Policy improvement by
planning with Gumbel").
"""

import math

import numpy as np

from envs.compiled import njit
from envs.game import CHANCE, TERMINAL
from envs.rng import uniform
from selfplay.search.foresight import foresee
from selfplay.search.gumbel import halving_edge, improved_edge
from selfplay.search.network_tree import (
    BACKED_UP,
    LOST,
    NO_CHILD,
    SPARE,
    TERMINAL_CHILD,
    WAITING,
    has_value_proofs,
    is_known,
    is_lost,
    make_chance_node,
    make_node,
    scaled,
)

GOLDEN = 0.6180339887498949  # its multiples are spread evenly over the unit interval

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
        elif edge.proof == 1:
            value = np.float64(edge.value)
        else:
            value = unvisited
        # Wu 2019, 3.2: a move that was tried gets at least so many playouts.
        if is_root and tree.noise == 1 and edge.visits > 0 and edge.proof == 0:
            value = 1e6 if visits < math.sqrt(options.forced * edge.prior * explored) else value
        score = value + factor * edge.prior / (1 + visits)
        if is_lost(game, edge):
            score -= 1e9
        if score > best_score:
            best, best_score = k, score
    return np.int64(best)


@njit
def sampled_edge(options, tree, node, edges, depth):
    """A chance outcome by its probability.

    In one search the n-th visits of all chance nodes at a depth draw the same number, so that moves are compared on the
    same dice; and the numbers of a node's visits are spread evenly (a golden ratio sequence from a random start).
    """
    visits = np.int64(node.visits)
    if options.leaves_per_tree > 1:
        for k in range(node.first, node.first + node.count):
            visits += edges[k].flying
    rest = tree.drawn[depth % len(tree.drawn)] + GOLDEN * visits
    rest -= math.floor(rest)
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
            chosen = sampled_edge(options, tree, node, edges, depth)
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
            elif player == CHANCE and options.beyond_chance == 0 and game.chance_view(state) >= 0:
                leaf.player, leaf.depth = -1 - game.chance_view(state), depth
                return WAITING
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
                viewer = np.int64(game.chance_view(state))
                if viewer >= 0:  # the first visit asks for the value before chance decides
                    leaf.player, leaf.depth = -1 - viewer, depth
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
        won = game.num_players == 2 and best >= -LOST
        if not (settled or won):
            return False
        node.value = best
    node.proof = 1
    return True


@njit
def best_value(node, edges):
    """The best value of a move that was tried."""
    best = -np.inf
    for k in range(node.first, node.first + node.count):
        if is_known(edges[k]):
            best = max(best, np.float64(edges[k].value))
    return best


@njit
def finish(game, options, tree, nodes, edges, leaf, virtual):
    """Adds the leaf's values to all edges of its path, and proofs as far as they go."""
    if game.num_players == 1:
        tree.low = min(tree.low, leaf.values[0])
        tree.high = max(tree.high, leaf.values[0])
    proofs = has_value_proofs(game)
    proving = proofs
    # Parts of one move with nothing random among them: the whole is worth what its best end is.
    greedy = game.compound_moves and game.has_chance and options.beyond_chance == 0
    for level in range(leaf.depth - 1, -1, -1):
        node = nodes[leaf.path_node[level]]
        edge = edges[leaf.path_edge[level]]
        mover = max(node.player, 0)
        edge.visits += 1
        node.visits += 1
        if virtual:
            edge.flying -= 1
        if edge.proof == 0 and greedy and level + 1 < leaf.depth:
            edge.value = best_value(nodes[leaf.path_node[level + 1]], edges)
        elif edge.proof == 0:
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
    if game.has_chance:
        for i in range(len(tree.drawn)):
            tree.drawn[i] = uniform(tree.rng)
    simulations, noise = tree.limit, tree.noise
    node = nodes[0]
    count = node.count
    if tree.solved_move >= 0:
        for k in range(node.first, node.first + count):
            if edges[k].action == tree.solved_move:
                edges[k].proof, edges[k].value = 1, tree.solved_value
            elif edges[k].proof == 1 and edges[k].value >= tree.solved_value:
                edges[k].proof = 0  # as good, but not as quick, or no such defence
        node.proof, node.value = 1, tree.solved_value
    alive = 0
    for k in range(count):
        alive += 0 if is_lost(game, edges[node.first + k]) else 1
    tree.considered = min(min(max(alive, 1), simulations), 16)
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
def done_slots(trees, nodes, out):
    """Writes which trees' searches are over; returns their number."""
    count = 0
    for slot in range(len(trees)):
        if is_done(trees[slot], nodes[slot]):
            out[count] = slot
            count += 1
    return count


@njit
def answer(game, options, tree, nodes, edges, leaf, logits, values, virtual):
    """The network's answer to a leaf: a node, and values that go up. At the root the search begins."""
    player = leaf.player if leaf.player >= 0 else -1 - leaf.player
    for k in range(game.num_players):
        leaf.values[(player + k) % game.num_players] = values[k]
    if options.to_go == 1:
        leaf.values[0] += game.earned(leaf.state) / options.half
    if leaf.depth == 0:
        make_node(game, tree, nodes, edges, leaf, player, logits, leaf.values[player])
        node_is_proven(game, nodes[0], edges)
        begin(game, options, tree, nodes, edges)
        return
    if leaf.player >= 0:
        edge = edges[leaf.path_edge[leaf.depth - 1]]
        if edge.child == NO_CHILD:
            value = leaf.values[player]
            edge.child = make_node(game, tree, nodes, edges, leaf, player, logits, value)
    finish(game, options, tree, nodes, edges, leaf, virtual)


@njit
def settle(game, nodes, edges, leaf):
    """The move that leads to the leaf is proven, by what was foreseen there."""
    player = leaf.player if leaf.player >= 0 else -1 - leaf.player
    leaf.values[player] = leaf.outcome
    leaf.values[1 - player] = -leaf.outcome
    edge = edges[leaf.path_edge[leaf.depth - 1]]
    edge.proof = 1
    edge.value = leaf.values[nodes[leaf.path_node[leaf.depth - 1]].player]


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
                finish(game, options, tree, nodes[slot], edges[slot], leaf, False)
                continue
            if foresee(game, options, leaf) and leaf.depth > 0:
                options.decided += 1
                settle(game, nodes[slot], edges[slot], leaf)
                finish(game, options, tree, nodes[slot], edges[slot], leaf, False)
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
