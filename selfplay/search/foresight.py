"""What is decided within a few plies needs no network: shallow exact searches before a leaf is evaluated.

Baier and Winands 2015 ("MCTS-minimax hybrids") put such searches into Monte Carlo's tree; beside a network's answer,
which costs as much as some thousand positions, they are almost free. A search deepens ply by ply as long as its budget
of positions lasts, so that the nearest win is found first. Only for two players without chance, whose utilities sum to
zero. Nothing is estimated: a verdict is the game's own result under best play, everything else stays open.
"""

import numpy as np

from envs.compiled import njit, njit_part
from envs.game import CHANCE, TERMINAL
from selfplay.search.network_tree import MOST_AHEAD

_DONE = -1  # in place of a move that ended the game


@njit
def can_foresee(game):
    """Whether verdicts are made for this game at all."""
    return game.num_players == 2 and game.zero_sum and not game.has_chance


@njit_part
def bounds(game, options, level, depth):
    """The least and the most that the mover of options.ahead[level] gets, as far as `depth` plies tell."""
    ahead, moves = options.ahead, options.moves
    player = game.player(ahead[level])
    count = game.actions(ahead[level], moves[level])
    low, high = -np.inf, -np.inf
    left = 0
    for i in range(count):  # moves that end the game come first: a win needs no look at the others
        ahead[level + 1] = ahead[level]
        game.play(ahead[level + 1], moves[level, i])
        options.looked += 1
        if game.player(ahead[level + 1]) == TERMINAL:
            value = np.float64(game.utility(ahead[level + 1], player))
            if value >= game.max_utility:
                return value, value
            low, high = max(low, value), max(high, value)
            moves[level, i] = _DONE
        else:
            left += 1
    if left == 0:
        return low, high
    worst, best = np.float64(game.min_utility), np.float64(game.max_utility)
    if depth <= 1:
        return max(low, worst), best
    for i in range(count):
        if moves[level, i] == _DONE:
            continue
        ahead[level + 1] = ahead[level]
        game.play(ahead[level + 1], moves[level, i])
        mover = game.player(ahead[level + 1])
        if mover == CHANCE:
            least, most = worst, best
        else:
            least, most = bounds(game, options, level + 1, depth - 1)
            if mover != player:
                least, most = -most, -least
        low, high = max(low, least), max(high, most)
        if low >= best:
            break
    return low, high


@njit
def foresee(game, options, leaf):
    """Writes what is settled about the leaf's moves, in network units; True where the leaf itself is, by its outcome."""
    leaf.verdict[:] = np.nan
    if options.foresight == 0 or not can_foresee(game):
        return False
    options.ahead[0] = leaf.state
    player = game.player(leaf.state)
    count = game.actions(options.ahead[0], options.moves[0])
    worst, best = np.float64(game.min_utility), np.float64(game.max_utility)
    for depth in range(MOST_AHEAD):
        before = options.looked
        low, high = -np.inf, -np.inf
        for i in range(count):
            if np.isnan(leaf.verdict[i]):
                options.ahead[1] = options.ahead[0]
                game.play(options.ahead[1], options.moves[0, i])
                options.looked += 1
                mover = game.player(options.ahead[1])
                least, most = worst, best
                if mover == TERMINAL:
                    least = np.float64(game.utility(options.ahead[1], player))
                    most = least
                elif mover != CHANCE and depth > 0:
                    least, most = bounds(game, options, np.int64(1), np.int64(depth))
                    if mover != player:
                        least, most = -most, -least
                if least == most:
                    leaf.verdict[i] = (least - options.middle) / options.half
            else:
                least = np.float64(leaf.verdict[i]) * options.half + options.middle
                most = least
            low, high = max(low, least), max(high, most)
            if low >= best:
                break
        if low >= high:
            leaf.outcome = (low - options.middle) / options.half
            return True
        if (options.looked - before) * count > options.foresight:  # what one ply more may take
            return False
    return False
