"""What self-play does between searches, compiled: the move of a finished search becomes a sample, then is played."""

from typing import Any

import numpy as np

from envs.compiled import njit
from envs.game import CHANCE, TERMINAL, Game
from envs.rng import below, uniform
from selfplay.search.network_root import chosen_edge, root_value, target_policy
from selfplay.search.network_tree import clear
from selfplay.search.puct import plan
from selfplay.search.tree_reuse import keep_subtree

MOST_MOVES = 64  # moves of a policy target that are kept; the weight of others is next to nothing
PLAYED, RESIGNED = 0, 1


def sample_dtype(game: Game) -> np.dtype:
    """A position to learn from. Values are in the network's units, the mover's first, then the next players'."""
    width = min(max(game.max_legal, 1), MOST_MOVES)
    return np.dtype(
        [
            ("state", game.state),
            ("actions", "i4", (width,)),
            ("policy", "f4", (width,)),
            ("count", "i4"),
            ("player", "i4"),
            ("full", "i4"),  # 1: searched with all simulations, so that its policy counts
            ("search_value", "f4"),
            ("proof", "i4"),  # 1: the search value is the exact one
            ("network_value", "f4"),
            ("surprise", "f4"),  # KL divergence of the target from the prior
            ("action", "i4"),
            ("after", "i4"),  # 1: the action left the position to chance, and a network can be asked for that one
            ("after_value", "f4"),  # what the search thought of it, for the player from whose view it is
            ("values", "f4", (game.num_players,)),  # the result, written when the game is over
        ],
        align=True,
    )


def joined(parts: list[np.ndarray], dtype: np.dtype) -> np.ndarray:
    """All samples in one array of that very layout: NumPy alone would leave out the gaps of aligned records."""
    whole = np.zeros(sum(len(part) for part in parts), dtype)
    first = 0
    for part in parts:
        whole[first : first + len(part)] = part
        first += len(part)
    return whole


@njit
def chance_viewer(game, state):
    """From whose view a network can be asked for a position that is left to chance; -1 where it can't be."""
    return np.int64(game.chance_view(state)) if game.player(state) == CHANCE else np.int64(-1)


@njit
def write_policy(sample, node, edges, policy):
    """The target, sparse; where there are too many moves, the heaviest."""
    width = len(sample.actions)
    threshold = -1.0
    if node.count > width:
        copy = policy[: node.count].copy()
        copy.sort()
        threshold = copy[node.count - width]
    count, total, surprise = 0, 0.0, 0.0
    for k in range(node.count):
        if policy[k] >= threshold and count < width:
            sample.actions[count] = edges[node.first + k].action
            sample.policy[count] = policy[k]
            total += policy[k]
            count += 1
        if policy[k] > 0.0 and node.proof == 0:
            surprise += policy[k] * (np.log(policy[k]) - edges[node.first + k].logit)
    for i in range(count):
        sample.policy[i] /= total
    for i in range(count, width):
        sample.actions[i] = 0
        sample.policy[i] = 0.0
    sample.count = count
    sample.surprise = surprise


@njit
def roll_on(game, state, tree):
    """Plays chance's moves; returns whose turn it is then."""
    player = game.player(state)
    while player == CHANCE:
        game.play(state, game.random_outcome(state, tree.choices, tree.probabilities, tree.rng))
        player = game.player(state)
    return player


@njit
def open_game(game, tree, random_plies):
    """A new game at the root, after some random moves; never one that is over."""
    clear(tree)
    game.start(tree.root)
    player = roll_on(game, tree.root, tree)
    for _ in range(random_plies):
        if player == TERMINAL:
            break
        game.play(tree.root, game.random_action(tree.root, tree.choices, tree.rng))
        player = roll_on(game, tree.root, tree)
    if player == TERMINAL:
        game.start(tree.root)
        roll_on(game, tree.root, tree)


@njit
def make_move(game, options, tree, nodes, edges, sample, policy, temperature, reuse):
    """Writes the sample of a finished search, plays its move and chance's answer; returns whose turn it is."""
    node = nodes[0]
    target_policy(game, options, tree, node, edges, policy)
    sample.state = tree.root
    sample.player = node.player
    sample.full = tree.planned_noise
    sample.search_value = root_value(game, options, node, edges, policy)
    sample.proof = node.proof
    sample.network_value = node.value
    write_policy(sample, node, edges, policy)
    chosen = chosen_edge(game, options, tree, node, edges, policy, temperature)
    edge = edges[node.first + chosen]
    sample.action = edge.action
    child = np.int64(edge.child)
    mover = np.int64(node.player)
    value = edge.value if edge.visits > 0 or edge.proof == 1 else node.value
    game.play(tree.root, edge.action)
    player = game.player(tree.root)
    sample.after, sample.after_value = 0, 0.0
    viewer = chance_viewer(game, tree.root)
    if viewer >= 0:  # with three players the value is not read, only results are
        sample.after, sample.after_value = 1, value if viewer == mover else -value
    while player == CHANCE:
        outcome = game.random_outcome(tree.root, tree.choices, tree.probabilities, tree.rng)
        game.play(tree.root, outcome)
        player = game.player(tree.root)
        if child >= 0:
            below_node = nodes[child]
            child = np.int64(-1)
            for k in range(below_node.first, below_node.first + below_node.count):
                if edges[k].action == outcome:
                    child = np.int64(edges[k].child)
    if reuse and child >= 0 and player != TERMINAL and nodes[child].proof == 0:
        keep_subtree(tree, nodes, edges, child)
        tree.simulations, tree.flying, tree.limit, tree.planned = 0, 0, 0, 0
    else:
        clear(tree)
    return np.int64(player)


@njit
def plan_move(game, options, tree, nodes, edges, simulations, fast_simulations, full_share):
    """Plans the next search: with all simulations and noise, or, by playout cap randomisation, a fast one (Wu 2019).

    A kept tree counts: only what is missing is simulated, but something always is.
    """
    if full_share >= 1.0 or uniform(tree.rng) < full_share:
        plan(game, options, tree, nodes, edges, simulations, np.int64(1))
    else:
        plan(game, options, tree, nodes, edges, fast_simulations, np.int64(0))


@njit
def write_result(game, options, state, samples):
    """The game is over: its result becomes the value of all its samples."""
    for i in range(len(samples)):
        for k in range(game.num_players):
            player = (samples[i].player + k) % game.num_players
            samples[i].values[k] = (game.utility(state, player) - options.middle) / options.half


@njit
def soften_results(game, samples, decay):
    """Results become lambda-returns: each target is lambda times that of the next position and the rest what the search
    thought of that one. Only where one value tells all (`has_value_proofs`)."""
    for i in range(len(samples) - 2, -1, -1):
        later = samples[i + 1]
        same = later.player == samples[i].player
        value = (1.0 - decay) * later.search_value + decay * later.values[0]
        samples[i].values[0] = value if same else -value
        if game.num_players == 2:
            samples[i].values[1] = -samples[i].values[0]


@njit
def random_plies(rng, share, most):
    """How many random moves a new game begins with."""
    if most == 0 or uniform(rng) >= share:
        return np.int64(0)
    return 1 + below(rng, most)


@njit
def observe_samples(game, samples, chosen, symmetries, after, planes, policies, values, earned, permutations):
    """The batch of a training step: observations, dense policies and results, each under its symmetry. Where `after` is
    1, the position is the one that the sample's action left to chance, which has no policy. `earned` is the game's."""
    planes[:] = 0.0
    policies[:] = 0.0
    scratch = samples[:1].copy()
    for i in range(len(chosen)):
        sample = samples[chosen[i]]
        scratch[0].state = sample.state
        state = scratch[0].state
        turned = 0
        if after[i] == 1:
            game.play(state, sample.action)
            turned = game.chance_view(state) - sample.player
        if symmetries[i] > 0:
            game.transform(state, symmetries[i])
        game.observe(state, planes[i])
        earned[i] = game.earned(state)
        for k in range(0 if after[i] == 1 else sample.count):
            policies[i, permutations[symmetries[i], sample.actions[k]]] += sample.policy[k]
        for k in range(game.num_players):
            values[i, k] = sample.values[(turned + k) % game.num_players]


def permutations_of(game: Game) -> np.ndarray:
    """Where each action goes under each symmetry."""
    rows: list[Any] = [symmetry.actions for symmetry in game.symmetries()]
    return np.array(rows, np.int64).reshape(len(rows), game.num_actions)
