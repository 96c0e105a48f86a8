"""Random game trees for tests of searches, and the textbook's definitions written as plainly as possible."""

import random
from typing import Any

import numpy as np

from envs.game import CHANCE, TERMINAL
from envs.game_tree import GameTree

LEAVES = [-3, -2, -1, 0, 1, 2, 3, 0.5, -0.5]


def random_tree(rng: random.Random, depth: int, leaf: Any, chance_levels: tuple[int, ...] = (), level: int = 0) -> Any:
    """Nested lists of that depth at most, some branches shorter; chance levels hold [probability, subtree] pairs."""
    if level == depth or (level > 0 and level not in chance_levels and rng.random() < 0.15):
        return leaf(rng)
    count = rng.randint(1, 3)
    children = [random_tree(rng, depth, leaf, chance_levels, level + 1) for _ in range(count)]
    if level not in chance_levels:
        return children
    weights = [rng.randint(1, 5) for _ in range(count)]
    return [[weight / sum(weights), child] for weight, child in zip(weights, children, strict=True)]


def number(rng: random.Random) -> float:
    return rng.choice(LEAVES)  # few different values: ties are common


def two_players(seed: int, depth: int = 5) -> GameTree:
    rng = random.Random(seed)
    levels = "-".join(rng.choice(["max", "min"]) for _ in range(depth)) if rng.random() < 0.5 else ""
    tree = random_tree(rng, depth, number)
    return GameTree(tree if isinstance(tree, list) else [tree], levels=levels, players=2)


def with_chance(seed: int, players: int = 2) -> GameTree:
    rng = random.Random(seed)
    tree = random_tree(rng, 6, number, chance_levels=(1, 4))
    levels = "max-chance-min-max-chance-min" if players == 2 else "max-chance-max-max-chance-max"
    return GameTree(tree, levels=levels, players=players)


def many_players(seed: int, players: int = 3, chance: bool = False) -> GameTree:
    rng = random.Random(seed)

    def vector(rng: random.Random) -> list[float]:
        return [rng.choice(LEAVES) for _ in range(players)]

    levels = "-".join(str(1 + i % players) for i in range(5))
    if chance:
        levels = levels.replace("-2-", "-chance-2-", 1)
    tree = random_tree(rng, 5, vector, chance_levels=(1,) if chance else ())
    return GameTree(tree, levels=levels, players=players, vector=True)


def value_vector(game: GameTree, state: Any) -> np.ndarray:
    """Each player's value by the definition: everyone maximises their own, the first of equals; chance averages."""
    player = int(game.player(state))
    if player == TERMINAL:
        return np.array([game.utility(state, p) for p in range(game.num_players)])
    out, probabilities = np.empty(64, np.int64), np.empty(64)
    count = game.outcomes(state, out, probabilities) if player == CHANCE else game.actions(state, out)
    values = []
    for action in out[:count]:
        child = state.copy()
        game.play(child, int(action))
        values.append(value_vector(game, child))
    if player == CHANCE:
        return sum((p * v for p, v in zip(probabilities, values, strict=False)), np.zeros(game.num_players))
    return max(values, key=lambda v: v[player])


def move_values(game: GameTree) -> dict[int, np.ndarray]:
    """Every root move's value vector."""
    root, out = game.new()[0], np.empty(64, np.int64)
    found = {}
    for action in out[: game.actions(root, out)].tolist():
        child = root.copy()
        game.play(child, action)
        found[action] = value_vector(game, child)
    return found
