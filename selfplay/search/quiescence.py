"""Quiescence search: beyond the horizon only loud moves are looked at, until the position is quiet (Shannon 1950).

The mover may always stand pat, that is take the estimate, because some quiet move will do about as well; not in check,
where every move is looked at. A capture that loses material by the exchanges on its square is left out. Fail-soft, the same contract as alpha-beta.
"""

import numpy as np

from envs.compiled import njit_part
from envs.game import TERMINAL
from selfplay.search.wins import leaf_utility, relative
from selfplay.search.workspace import extend_line


@njit_part
def quiesce(game, evaluation, work, level, alpha, beta):
    """The value of work.states[level] for its mover, loud moves played out."""
    state = work.states[level]
    work.nodes += 1
    known = evaluation.known(game, state, game.player(state))
    if not np.isnan(known):
        work.line_length[level] = 0
        return relative(game, known, -level)
    work.horizon += 1
    if work.stop != 0 or work.nodes >= work.node_limit:
        work.stopped = 1
        return 0.0
    work.line_length[level] = 0
    checked = game.in_check(state)
    deepest = level + 3 >= work.levels
    best = -np.inf
    if not checked or deepest:
        best = evaluation.evaluate(game, state, work.features)
        if best >= beta or deepest:
            return best
        alpha = max(alpha, best)
    player = game.player(state)
    count = 0
    for i in range(game.actions(state, work.moves[level])):
        action = work.moves[level, i]
        if checked or (game.is_loud(state, action) and not game.loses_material(state, action)):
            work.moves[level, count] = action
            work.scores[level, count] = game.move_value(state, action)
            count += 1
    for i in range(count):
        chosen = i
        for k in range(i + 1, count):
            if work.scores[level, k] > work.scores[level, chosen]:
                chosen = k
        action = work.moves[level, chosen]
        work.moves[level, chosen], work.scores[level, chosen] = work.moves[level, i], work.scores[level, i]
        work.states[level + 1] = work.states[level]
        child = work.states[level + 1]
        game.play(child, action)
        mover = game.player(child)
        if mover == TERMINAL:
            work.nodes += 1
            work.line_length[level + 1] = 0
            value = leaf_utility(game, child, player, level + 1)
        else:
            low, high = (alpha, beta) if mover == player else (-beta, -alpha)
            value = quiesce(game, evaluation, work, level + 1, low, high)
            value *= 1.0 if mover == player else -1.0
        if work.stopped:
            return 0.0
        if value > best:
            best = value
            if value > alpha:
                alpha = value
                extend_line(work, level, action)
                if value >= beta:
                    break
    return best
