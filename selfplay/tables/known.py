"""What the games' tables share: bytes as values, and evaluations that carry tables.

`known(game, state, player)` of an evaluation is the exact value of a position for a player, wins counted by their
distance as in `selfplay/search/wins.py`, or NaN. Searches ask it at every node, and look no further where it answers.
"""

from pathlib import Path
from typing import Any

import numpy as np

from envs.compiled import njit
from envs.errors import InputError
from envs.game import Game
from models.evaluation import Evaluation, Linear, Nothing
from selfplay.search.wins import STEP
from selfplay.tables.store import found, path_of, read_header, read_table

UNIT = 64  # entries are padded to powers of two, so that searches compile only for a few sizes


@njit
def value_of_byte(game, byte):
    """The mover's value: the utility of the result, a little less per ply until then."""
    if byte == 0:
        return 0.0
    plies = byte - 1
    delay = (game.max_utility - game.min_utility) * STEP * plies
    return game.max_utility - delay if plies % 2 == 1 else game.min_utility + delay


def weights_of(game: Game, inner: Evaluation) -> tuple[float, ...]:
    """The weights of the evaluation that tables are joined to."""
    if type(inner) is Linear:
        return inner.weight_values
    if type(inner) is Nothing:
        return (0.0,) * game.num_features
    raise InputError(f"tables=on goes with a linear evaluation or none, not with {type(inner).__name__}")


def require_all(folder: Path, game: str) -> None:
    """Proves the checksums of a game's tables; one sentence if one is damaged, or if there is none."""
    paths = list(found(folder, game))
    for path in paths:
        read_header(path)
    if not paths:
        raise InputError(
            f"no tables for {game} in the folder {str(folder)!r}; build them by 'selfplay tables build {game}'"
        )


def joined(folder: Path, game: str) -> tuple[dict[str, int], np.ndarray]:
    """All tables of a game one after the other, padded to a power of two, and where each kind starts."""
    offsets: dict[str, int] = {}
    end = 0
    for path in found(folder, game):
        header = read_header(path)
        offsets[header["kind"]], end = end, end + header["arrays"][0]["shape"][0]
    whole = np.zeros(max(UNIT, 1 << (end - 1).bit_length()), np.uint8)
    for kind, offset in offsets.items():
        values = read_table(path_of(folder, game, kind)).arrays["values"]
        whole[offset : offset + len(values)] = values
    return offsets, whole


def stamp(folder: Path, game: str) -> str:
    """Changes when a table of the folder does."""
    return ";".join(f"{path.name}:{path.stat().st_mtime_ns}" for path in found(folder, game))


def random_states(game: Any, count: int, fill: Any, seed: int) -> Any:
    """`count` positions that `fill(state, rng)` finds, which returns whether it did."""
    rng = np.random.default_rng(seed)
    states, done = game.new(count), 0
    for _ in range(1000 * count):
        if done == count:
            break
        if fill(states[done], rng):
            done += 1
    return states[:done]
