"""Fits the parameters of ProbCut and Multi-ProbCut (Buro 1995, 1997): how well a shallow search predicts a deep one.

For pairs of depths, deep = slope * shallow + offset + error, the error normally distributed with standard deviation
sigma. A search to the deep depth may stop where the shallow one lies `probcut` sigmas outside the window.
"""

from typing import Any

import numpy as np

from envs.errors import InputError
from envs.game import TERMINAL, Game
from envs.playouts import buffers
from envs.rng import below, generator
from selfplay.search.deepening import AlphaBeta
from selfplay.search.result import Limits
from selfplay.search.wins import win_value

# Depth and its shallow partner, of equal parity: estimates swing with who moved last (Buro 1995 used 8 and 4).
PAIRS = ((3, 1), (4, 2), (5, 1), (6, 2), (7, 3), (8, 4))


def sample_positions(game: Game, count: int, seed: int) -> list[Any]:
    """Different positions met in random play."""
    rng, (out, _) = generator(seed), buffers(game)
    positions: dict[int, Any] = {}
    with np.errstate(over="ignore"):
        for _ in range(50 * count):
            state = game.new()[0]
            for _ in range(int(below(rng, min(game.max_length, 60)))):
                if game.player(state) == TERMINAL:
                    break
                game.play(state, int(out[int(below(rng, game.actions(state, out)))]))
            if game.player(state) != TERMINAL:
                positions.setdefault(int(game.key(state)), state.copy())
            if len(positions) == count:
                break
    return list(positions.values())


def fit_cuts(game: Game, evaluation: Any, positions: int = 300, depth: int = 6, seed: int = 0) -> list[dict[str, Any]]:
    """The parameters for all pairs of depths up to `depth`, for the `[probcut]` table of a game's config."""
    if positions < 20:
        raise InputError(f"positions={positions} must be at least 20: a line cannot be fitted to fewer")
    if depth < PAIRS[0][0]:
        raise InputError(f"depth={depth} must be at least {PAIRS[0][0]}")
    pairs = [pair for pair in PAIRS if pair[0] <= depth]
    states = sample_positions(game, positions, seed)
    values: dict[int, np.ndarray] = {}
    for level in sorted({d for pair in pairs for d in pair}):
        searcher = AlphaBeta(game, evaluation, Limits(depth=level), megabytes=16)
        values[level] = np.array([_value(searcher, state) for state in states])
    cuts = []
    for deep, shallow in pairs:
        estimates = (np.abs(values[deep]) < win_value(game)) & (np.abs(values[shallow]) < win_value(game))
        x, y = values[shallow][estimates], values[deep][estimates]
        if len(x) < 20 or x.std() == 0:
            continue
        slope, offset = np.polyfit(x, y, 1)
        if slope > 0:
            sigma = float(np.std(y - slope * x - offset, ddof=2))
            fit = {"depth": deep, "shallow": shallow, "slope": float(slope), "offset": float(offset), "sigma": sigma}
            cuts.append(fit | {"correlation": float(np.corrcoef(x, y)[0, 1]), "positions": len(x)})
    if not cuts:
        raise InputError("the evaluation tells too little here: no pair of depths gave a line to fit")
    return cuts


def _value(searcher: AlphaBeta, state: Any) -> float:
    searcher.reset()
    result = searcher.search(state)
    return result.value


def cuts_as_toml(cuts: list[dict[str, Any]]) -> str:
    """The lines for a game's config."""
    keys = ("depth", "shallow", "slope", "offset", "sigma")
    rows = (", ".join(f"{key} = {cut[key]:.6g}" for key in keys) for cut in cuts)
    return "[probcut]\ncuts = [\n" + "".join(f"    {{ {row} }},\n" for row in rows) + "]\n"
