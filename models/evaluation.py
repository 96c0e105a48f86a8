"""Evaluations: what a search thinks of a position that it does not look beyond.

Compiled objects like games: `evaluate(game, state, scratch)` runs inside the search with no Python call. The value
is an estimate of the mover's utility, so it lies within the game's bounds and, where chance matters, is linear in
the expected result. `scratch` is room for the features, owned by the search.
"""

import functools
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from envs.compiled import Compiled
from envs.errors import InputError
from envs.game import Game, State
from envs.registry import make, names_of

CONFIGS = Path(__file__).resolve().parent.parent / "configs"
INSIDE = 0.99  # an estimate never reaches a proven win's utility


class Evaluation(Compiled):
    """Base class; `evaluate` estimates the utility of the player to move.

    `afterstates`: `evaluate_after` is there too, and searches with chance end there instead of after the dice.
    """

    afterstates: Any = False

    def evaluate(self, game: Game, state: State, scratch: Any) -> float:
        """Only at a player's node."""
        raise NotImplementedError

    def evaluate_after(self, game: Game, state: State, scratch: Any, player: Any) -> float:
        """Only at a chance node, and only with `afterstates`: the estimate for that player before chance decides."""
        return 0.0

    def known(self, game: Game, state: State, player: Any) -> float:
        """The exact value for that player where it is known without a search (endgame tables), else NaN.

        Also at chance nodes; a win counts the less, the farther it is (see `selfplay/search/wins.py`).
        """
        return np.nan


@dataclass(frozen=True)
class Nothing(Evaluation):
    """Knows nothing: every position is worth the middle of the utilities."""

    def evaluate(self, game: Game, state: State, scratch: Any) -> float:
        return 0.5 * (game.min_utility + game.max_utility)


@dataclass(frozen=True)
class Linear(Evaluation):
    """EVAL(s) = w1 f1(s) + ... + wn fn(s), kept strictly inside the game's utilities.

    The weights are in utility per unit of the feature and are run-time data: all evaluations of one game share
    their compiled code.
    """

    weight_values: tuple[float, ...]
    label: str = "linear"

    def tables(self) -> dict[str, np.ndarray]:
        return {"weights": np.array(self.weight_values, np.float64)}

    def evaluate(self, game: Game, state: State, scratch: Any) -> float:
        game.features(state, scratch)
        even, odd = 0.0, 0.0  # two sums at once: half the waiting for the adder
        count = len(self.weights)
        for i in range(0, count - 1, 2):
            even += self.weights[i] * scratch[i]
            odd += self.weights[i + 1] * scratch[i + 1]
        if count % 2 == 1:
            even += self.weights[count - 1] * scratch[count - 1]
        return min(max(even + odd, INSIDE * game.min_utility), INSIDE * game.max_utility)


@functools.lru_cache(maxsize=64)
def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file as a table; bad files end in one sentence."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"file {str(path)!r} can't be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"file {str(path)!r} is not TOML: {error}") from None


def game_config(game: Game) -> tuple[dict[str, Any], str]:
    """The table of the game, or of the one in the registry that it is a variant of, and the file's path."""
    values = {field.name: getattr(game, field.name) for field in fields(game)}  # type: ignore[arg-type]
    for name in names_of(type(game).__module__, type(game).__name__, values):
        path = CONFIGS / f"{name}.toml"
        if path.is_file():
            return read_toml(path), str(path)
    return {}, ""


def from_table(game: Game, table: Any, what: str, strict: bool = True) -> Linear:
    """The evaluation that a table {scale, weights = {feature = weight}} describes; missing features weigh nothing.

    `strict` refuses features that the game does not have.
    """
    if not isinstance(table, dict) or not isinstance(table.get("weights"), dict):
        raise InputError(f"{what}: an evaluation needs a table of weights, one per feature")
    unknown = set(table) - {"scale", "weights"}
    if unknown:
        raise InputError(f"{what}: unknown key {min(unknown)!r}; keys: scale, weights")
    names, scale = game.feature_names(), table.get("scale", 1.0)
    strange = [name for name in table["weights"] if name not in names]
    if strange and strict:
        raise InputError(f"{what}: this game has no feature {strange[0]!r}; features: {', '.join(names) or 'none'}")
    values = [table["weights"].get(name, 0.0) for name in names]
    if not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in [*values, scale]):
        raise InputError(f"{what}: weights and scale must be numbers")
    return Linear(tuple(float(scale * value) for value in values))


def make_evaluation(name: str, game: Game) -> Evaluation:
    """The evaluation of that name: `linear` (the hand-made one in the game's config), `none`, a TOML file's path, a
    learned one's folder or that of a run (its newest), or the name of one that ships (`othello-linear`).

    A game without a hand-made evaluation gets `none` for `linear`.
    """
    if name == "none":
        return Nothing()
    if name == "linear":
        config, path = game_config(game)
        if "evaluation" not in config:
            return Nothing()
        # A variant (three players, five in a line) may have other features than the game that the file is for.
        own = game == make(Path(path).stem)
        return from_table(game, config["evaluation"], f"evaluation in {path!r}", strict=own)
    if name.endswith(".toml"):
        table = read_toml(Path(name))
        return from_table(game, table.get("evaluation", table), f"evaluation {name!r}")
    from models.evaluation_file import find_folder, load_evaluation, shipped  # it needs this file

    folder = find_folder(name)
    if folder is not None:
        return load_evaluation(folder, game)
    known = ", ".join(["linear", "none", *shipped()])
    raise InputError(
        f"unknown evaluation {name!r}; evaluations: {known}, a run's folder, an evaluation's folder, or a .toml file"
    )


__all__ = ["Evaluation", "Linear", "Nothing", "make_evaluation"]
