"""Alpha-beta with what real engines add, each addition a switch (Knuth and Moore 1975; Marsland 1986).

Values are from the view of the player to move; they flip with the player, not with the ply. The bound contract of
`search`, fail-soft: the value returned is exact if alpha < value < beta, an upper bound of the true value if it is
<= alpha, a lower bound if it is >= beta.

Exact switches change no value: `deepening`, `table`, `symmetry`, `order`, `killers`, `history`, `sort`, `pvs`,
`aspiration`. `quiescence` and `extend` look beyond the depth. Forward pruning (`beam`, `probcut`, `null`,
`reductions`) may be wrong and is off by default.
"""

import numpy as np

from envs.compiled import njit, njit_part
from envs.game import TERMINAL
from selfplay.search.quiescence import quiesce
from selfplay.search.transposition import COMPLETE, EXACT_VALUE, LOWER_BOUND, UPPER_BOUND, find, store
from selfplay.search.wins import leaf_utility, relative, win_value
from selfplay.search.workspace import extend_line

_HASH_MOVE, _LOUD, _KILLER = 1 << 30, 1 << 26, 1 << 25
SYMMETRY_DEPTH = 3  # from this depth on, looking for mirror images saves more than it costs
SORT_DEPTH = 3  # from this depth on, sorting by the evaluation saves more than it costs
NULL_WINDOW = 1e-12


@njit
def score_moves(game, evaluation, work, level, count, hash_move, player, depth):
    """Writes how promising each move looks, for `next_move` to pick from."""
    state = work.states[level]
    for i in range(count):
        action = work.moves[level, i]
        score = 0
        if action == hash_move:
            score = _HASH_MOVE
        else:
            loud = game.move_value(state, action) if work.order else 0
            if loud > 0:
                score = -_LOUD + loud if game.loses_material(state, action) else _LOUD + loud
            elif work.killers and (action == work.killer[level, 0] or action == work.killer[level, 1]):
                score = _KILLER + (action == work.killer[level, 0])
            elif work.sort and depth >= SORT_DEPTH:
                work.states[level + 1] = work.states[level]
                child = work.states[level + 1]
                game.play(child, action)
                mover = game.player(child)
                if mover == TERMINAL:
                    value = game.utility(child, player)
                else:
                    value = evaluation.evaluate(game, child, work.features)
                    if mover != player:
                        value = -value
                score = int(value / game.max_utility * 1_000_000)
                if work.history:
                    score += work.success[player, action] >> 6
            elif work.history:
                score = work.success[player, action]
        work.scores[level, i] = score


@njit
def next_move(work, level, i, count):
    """Moves the most promising of the moves i .. count - 1 to place i; among equals the first."""
    best = i
    for k in range(i + 1, count):
        if work.scores[level, k] > work.scores[level, best]:
            best = k
    action, score = work.moves[level, best], work.scores[level, best]
    for k in range(best, i, -1):  # the others keep their order
        work.moves[level, k] = work.moves[level, k - 1]
        work.scores[level, k] = work.scores[level, k - 1]
    work.moves[level, i] = action
    work.scores[level, i] = score
    return action


@njit
def remember_cutoff(game, work, level, player, action, depth):
    """A quiet move that refuted another: try it early at this level, and later anywhere."""
    if work.killers and work.killer[level, 0] != action:
        work.killer[level, 1] = work.killer[level, 0]
        work.killer[level, 0] = action
    if work.history:
        work.success[player, action] += depth * depth
        if work.success[player, action] > _KILLER >> 1:
            for a in range(game.num_actions):
                work.success[player, a] >>= 1


@njit
def canonical_key(game, work, level):
    """The smallest key of all mirror images of work.states[level], and which image has it."""
    best, which = np.uint64(game.key(work.states[level])), 0
    for symmetry in range(1, game.num_symmetries):
        work.states[level + 1] = work.states[level]
        game.transform(work.states[level + 1], symmetry)
        key = np.uint64(game.key(work.states[level + 1]))
        if key < best:
            best, which = key, symmetry
    return best, which


@njit_part
def search(game, evaluation, work, table, level, alpha, beta, depth, after_null):
    """The value of work.states[level] for its mover, by the contract above; the best line goes to work.line[level]."""
    state = work.states[level]
    work.line_length[level] = 0

    # 0. What tables know needs no search.
    known = evaluation.known(game, state, game.player(state))
    if not np.isnan(known):
        work.nodes += 1
        return relative(game, known, -level)

    # 1. The horizon: estimate, or look on while moves are loud.
    if depth <= 0 or level + 3 >= work.levels:
        if work.quiescence:
            return quiesce(game, evaluation, work, level, alpha, beta)
        work.nodes += 1
        work.horizon += 1
        return evaluation.evaluate(game, state, work.features)

    # 2. Limits.
    work.nodes += 1
    if work.stop != 0 or work.nodes >= work.node_limit:
        work.stopped = 1
        return 0.0
    player = game.player(state)
    first_alpha, horizon = alpha, work.horizon

    # 3. The transposition table: a deep enough bound that settles the matter, and a move to try first.
    hash_move = np.int32(-1)
    key, image = np.uint64(0), 0
    if work.table:
        if work.symmetry and depth >= SYMMETRY_DEPTH:
            key, image = canonical_key(game, work, level)
        else:
            key = np.uint64(game.key(state))
        found = find(table, key)
        if found >= 0:
            entry = table[found]
            hash_move = entry.move
            if image > 0 and hash_move >= 0:
                hash_move = work.source[image, hash_move]
            if entry.depth >= depth:
                value = relative(game, entry.value, -level)
                settled = entry.bound == EXACT_VALUE
                settled |= entry.bound == LOWER_BOUND and value >= beta
                settled |= entry.bound == UPPER_BOUND and value <= alpha
                if settled:
                    work.horizon += entry.depth != COMPLETE
                    if hash_move >= 0:
                        work.line[level, 0] = hash_move
                        work.line_length[level] = 1
                    return value

    # 4. Null move (Beal 1989; Donninger 1993): if passing is good enough, so is some move. Not twice in a row.
    checked = False
    if work.null or work.reductions:
        checked = game.in_check(state)
    try_null = work.null and after_null == 0 and depth >= 3 and not checked and abs(beta) < win_value(game)
    if try_null and game.can_pass(state) and evaluation.evaluate(game, state, work.features) >= beta:
        work.states[level + 1] = work.states[level]
        game.pass_turn(work.states[level + 1])
        less = depth - 3 - depth // 4
        value = -search(game, evaluation, work, table, level + 1, -beta, -beta + NULL_WINDOW, less, np.int64(1))
        if work.stopped:
            return 0.0
        if value >= beta:
            work.horizon += 1
            return beta

    # 5. ProbCut (Buro 1995): a shallow search that is far outside the window predicts that the deep one is, too.
    if work.probcut and after_null == 0 and depth < len(work.cut_depth) and work.cut_depth[depth] > 0:
        for side in range(2):
            bound = beta if side == 0 else alpha
            margin = work.cut_margin * work.cut_sigma[depth] * (1 - 2 * side)
            aim = (bound + margin - work.cut_offset[depth]) / work.cut_slope[depth]
            if abs(bound) < win_value(game) and abs(aim) < win_value(game):
                low = aim - NULL_WINDOW if side == 0 else aim
                shallow = work.cut_depth[depth]
                value = search(game, evaluation, work, table, level, low, low + NULL_WINDOW, shallow, np.int64(1))
                if work.stopped:
                    return 0.0
                if value >= aim if side == 0 else value <= aim:
                    work.horizon += 1
                    return bound

    # 6. The moves, the most promising first.
    count = game.actions(state, work.moves[level])
    score_moves(game, evaluation, work, level, count, hash_move, player, depth)
    if 0 < work.beam < count:
        work.horizon += 1
        count = work.beam
    best = -np.inf
    best_move = np.int32(-1)
    for i in range(count):
        action = next_move(work, level, i, count)
        score = work.scores[level, i]
        work.states[level + 1] = work.states[level]
        child = work.states[level + 1]
        game.play(child, action)
        mover = game.player(child)
        if mover == TERMINAL:
            work.nodes += 1
            work.line_length[level + 1] = 0
            value = leaf_utility(game, child, player, level + 1)
        else:
            sign = 1.0 if mover == player else -1.0
            rest = depth if game.compound_moves and mover == player else depth - 1
            if work.extend and level < 2 * work.root_depth and game.in_check(child):
                rest += 1

            # 7. Late-move reductions: what the order puts last gets a shallower look first.
            less = 0
            if work.reductions and i >= 3 and depth >= 3 and score < _KILLER and not checked:
                less = 1 + (i >= 8) + (depth >= 7)
                less = min(less, rest - 1)

            # 8. Principal variation search (Marsland and Campbell 1982): expect the first move to be the best, show
            # that each other one is not better with an empty window, and look again only where that fails.
            high = beta
            if (work.pvs and i > 0) or less > 0:
                high = min(beta, alpha + NULL_WINDOW)
            while True:
                low_child, high_child = (alpha, high) if mover == player else (-high, -alpha)
                value = search(
                    game, evaluation, work, table, level + 1, low_child, high_child, rest - less, np.int64(0)
                )
                value *= sign
                if work.stopped or value <= alpha or (less == 0 and (high == beta or value >= beta)):
                    break
                less, high = 0, beta
        if work.stopped:
            return 0.0
        if value > best:
            best = value
            best_move = action
            if value > alpha:
                alpha = value
                extend_line(work, level, action)
                if alpha >= beta:
                    if abs(score) < _LOUD:
                        remember_cutoff(game, work, level, player, action, depth)
                    break

    # 9. Remember. A subtree that met no horizon is known to the end, whatever the depth.
    if work.table:
        known = COMPLETE if work.horizon == horizon else depth
        bound = LOWER_BOUND if best >= beta else UPPER_BOUND if best <= first_alpha else EXACT_VALUE
        move = best_move if bound != UPPER_BOUND else np.int32(-1)
        if image > 0 and move >= 0:
            move = work.target[image, move]
        store(table, key, relative(game, best, level), bound, known, move, work.search)
    return best
