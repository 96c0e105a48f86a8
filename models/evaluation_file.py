"""Learned evaluations on disk: a folder with `evaluation.json` (what the weights mean) and `weights.safetensors`.

    game        the spec of the game, such as "othello"; another game's evaluation is refused
    kind        "patterns" (models/patterns.py) or "network" (models/td_network.py)
    features    the names of the named features, in the order of their weights; other features are refused
    patterns    lists of cells; values: kinds of content of a cell
    phases, parity, squash, afterstates, cuts (ProbCut parameters)
    unit        {"name": ..., "value": ...}: what one of the game's units (a pawn, a disc) is in half log-odds
    meta        the command, seed and cost that made it

Weights of patterns are kept once for mirrored contents, as 32-bit floats; in evaluations that ship as 16-bit numbers
with a scale per phase, and only those that are not zero in all phases (`nonzero` has a bit for each). Nothing is
pickled; every file is written aside, synced and renamed.
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from envs.errors import InputError
from envs.game import Game
from envs.registry import make, spec_of
from models.evaluation import Evaluation
from models.patterns import NO_SQUASH, TANH, Layout, Patterns

FORMAT = 1
_LEAST = 8  # of 32,767 parts of the largest weight: what is less does not ship
CHECKPOINTS = Path(__file__).resolve().parent.parent / "checkpoints"
_JSON, _WEIGHTS = "evaluation.json", "weights.safetensors"
_SQUASH = {"none": NO_SQUASH, "tanh": TANH}


def find_folder(name: str) -> Path | None:
    """The evaluation's folder: the one named, or the newest evaluation of the run named, or a shipped one."""
    for path in (Path(name), CHECKPOINTS / name):
        if path.name == _JSON and path.is_file():
            return path.parent
        if (path / _JSON).is_file():
            return path
        if path.is_dir():
            found = sorted(path.glob(f"checkpoints/*/{_JSON}"))
            if found:
                return found[-1].parent
    return None


def shipped() -> list[str]:
    """The names of the evaluations that come with the program."""
    return sorted(path.parent.name for path in CHECKPOINTS.glob(f"*/{_JSON}"))


def read_description(folder: Path) -> dict[str, Any]:
    """The JSON of an evaluation, checked as far as it goes without the game."""
    path = folder / _JSON
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"file {str(path)!r} can't be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"file {str(path)!r} is not JSON: {error}") from None
    if not isinstance(table, dict) or table.get("format") != FORMAT:
        found = table.get("format") if isinstance(table, dict) else None
        raise InputError(f"evaluation {str(path)!r} has format {found!r}; this program reads {FORMAT}")
    missing = [key for key in ("game", "kind", "features", "phases", "squash") if key not in table]
    if missing:
        raise InputError(f"evaluation {str(path)!r} has no {missing[0]!r}")
    return table


def read_arrays(folder: Path) -> dict[str, np.ndarray]:
    """The arrays of an evaluation."""
    path = folder / _WEIGHTS
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"file {str(path)!r} can't be read: {error}") from None


def check_game(table: dict[str, Any], game: Game, what: str) -> None:
    """Refuses another game's evaluation, and one with other features. Rules that change no position (how a result is
    counted, draw rules) may differ."""
    here = spec_of(game)
    made_for = make(table["game"])
    same = type(made_for) is type(game) and made_for.observation_shape == game.observation_shape
    if not same or made_for.state != game.state:
        raise InputError(f"{what} is for the game {table['game']!r}, not for {here!r}")
    names = list(game.feature_names())
    if table["features"] and table["features"] != names:
        strange = [name for name in table["features"] if name not in names] or table["features"]
        raise InputError(f"{what} has the feature {strange[0]!r}, which {here!r} has not; features: {', '.join(names)}")


def load_evaluation(folder: Path, game: Game) -> Evaluation:
    """The evaluation in the folder, for that game."""
    what = f"evaluation {str(folder)!r}"
    table = read_description(folder)
    check_game(table, game, what)
    arrays = read_arrays(folder)
    try:
        if table["kind"] == "network":
            from models.td_network import network_from

            return network_from(game, arrays, table)
        if table["kind"] != "patterns" or table["squash"] not in _SQUASH:
            raise InputError(f"{what} is of an unknown kind {table['kind']!r}")
        if table["patterns"] and table["values"] != game.cell_values:
            raise InputError(f"{what} has cells of {table['values']} values; in this game they have {game.cell_values}")
        layout = Layout(game, tuple(tuple(int(cell) for cell in pattern) for pattern in table["patterns"]))
        return Patterns(
            layout,
            _unpacked(layout, arrays, int(table["phases"]), what),
            arrays.get("features", np.zeros((int(table["phases"]), 0))).astype(np.float64),
            _SQUASH[table["squash"]],
            bool(table.get("afterstates", False)),
            tuple(table.get("cuts", ())),
            label=folder.name,
            parity=bool(table.get("parity", False)),
        )
    except InputError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{what} is damaged: {error!r}") from None


def _unpacked(layout: Layout, arrays: dict[str, np.ndarray], phases: int, what: str) -> np.ndarray:
    if not layout.entries:
        return np.zeros((phases, 0), np.float32)
    weights = arrays["weights"].astype(np.float32)
    if "present" in arrays:
        columns = int(np.bitwise_count(arrays["nonzero"]).sum())
        present = np.unpackbits(arrays["present"], count=phases * columns).astype(bool).reshape(phases, columns)
        whole = np.zeros((phases, columns), np.float32)
        whole[present] = weights
        weights = whole
    if "scale" in arrays:
        weights *= arrays["scale"].astype(np.float32)[:, None]
    distinct = np.unique(layout.canonical) if layout.tied else None
    expected = (phases, layout.entries if distinct is None else len(distinct))
    if "nonzero" in arrays:
        kept = np.unpackbits(arrays["nonzero"], count=expected[1]).astype(bool)
        full = np.zeros(expected, np.float32)
        full[:, kept] = weights
        weights = full
    if weights.shape != expected:
        raise InputError(f"{what} has weights of shape {weights.shape}; its patterns need {expected}")
    if distinct is None:
        return weights
    return weights[:, np.searchsorted(distinct, layout.canonical)]


def save_evaluation(
    folder: Path,
    game: Game,
    evaluation: Evaluation,
    table: dict[str, Any],
    errors: np.ndarray | None = None,
    small: bool = False,
) -> None:
    """Writes an evaluation; `errors` are the named features' error bars, `small` keeps weights as 16-bit numbers."""
    from models.td_network import TDNetwork

    if isinstance(evaluation, TDNetwork):
        about = {"format": FORMAT, "game": spec_of(game), "kind": "network", "features": [], "phases": 1}
        about |= {"squash": "none", "afterstates": True, **table}
        write_folder(folder, {"hidden": evaluation.hidden_values, "output": evaluation.output_values}, about)
        return
    if not isinstance(evaluation, Patterns):
        raise InputError(f"an evaluation of kind {type(evaluation).__name__} can't be saved")
    layout = evaluation.layout
    arrays: dict[str, np.ndarray] = {}
    if layout.entries:
        weights = evaluation.weight_values
        if layout.tied:
            weights = weights[:, np.unique(layout.canonical)]
        if small:
            kept = weights.any(axis=0)
            arrays["nonzero"] = np.packbits(kept)
            weights = weights[:, kept]
            scale = np.maximum(np.abs(weights).max(axis=1, initial=0.0), 1e-9) / 32767
            arrays["scale"] = scale.astype(np.float32)
            rounded = np.rint(weights / arrays["scale"][:, None]).clip(-32767, 32767).astype(np.int16)
            rounded[np.abs(rounded) < _LEAST] = 0
            arrays["present"] = np.packbits(rounded != 0)  # most contents are met in some phases only
            arrays["weights"] = rounded[rounded != 0]
        else:
            arrays["weights"] = weights.astype(np.float32)
    if evaluation.num_weighted:
        arrays["features"] = evaluation.feature_values
        if errors is not None:
            arrays["errors"] = errors.astype(np.float64)
    names = {number: name for name, number in _SQUASH.items()}
    described = {
        "format": FORMAT,
        "game": spec_of(layout.game),
        "kind": "patterns",
        "features": list(layout.game.feature_names()) if evaluation.num_weighted else [],
        "patterns": [list(pattern) for pattern in layout.patterns],
        "values": layout.game.cell_values,
        "phases": evaluation.phases,
        "parity": evaluation.parity,
        "squash": names[evaluation.squash],
        "afterstates": evaluation.afterstates,
        "cuts": list(evaluation.cuts),
        **table,
    }
    write_folder(folder, arrays, described)


def export_small(source: Path, folder: Path, game: Game, evaluation: Evaluation, table: dict[str, Any]) -> int:
    """Writes an evaluation that was read from `source` as small as it ships; returns the bytes of its files."""
    kept: dict[str, Any] = {key: value for key, value in table.items() if key in ("unit", "meta", "cuts")}
    save_evaluation(folder, game, evaluation, kept, read_arrays(source).get("errors"), small=True)
    return sum((folder / name).stat().st_size for name in (_JSON, _WEIGHTS))


def write_cuts(folder: Path, cuts: list[dict[str, Any]]) -> None:
    """Keeps ProbCut parameters beside the weights that they were measured with."""
    table = read_description(folder) | {"cuts": cuts}
    try:
        _write(folder / _JSON, (json.dumps(table, indent=1, ensure_ascii=False) + "\n").encode())
    except OSError as error:
        raise InputError(f"evaluation {str(folder)!r} can't be written: {error.strerror}") from None


def write_folder(folder: Path, arrays: dict[str, np.ndarray], table: dict[str, Any]) -> None:
    """Writes both files, the JSON last: without it the folder is no evaluation."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / _WEIGHTS, save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))
        _write(folder / _JSON, (json.dumps(table, indent=1, ensure_ascii=False) + "\n").encode())
    except OSError as error:
        raise InputError(f"evaluation {str(folder)!r} can't be written: {error.strerror}") from None


def _write(path: Path, data: bytes) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with aside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)
