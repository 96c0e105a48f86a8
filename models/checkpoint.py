"""Checkpoints: a folder with `model.safetensors` (the weights) and `model.json` (all else). Nothing is unpickled.

A folder is written aside, synced and renamed, so that a kill at any instant leaves the old one or the new one.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from envs.errors import InputError
from envs.registry import make, spec_of
from models.network import ModelConfig, Network, build

if TYPE_CHECKING:
    from envs.game import Game

FORMAT = 1  # of model.json; a change that old code can't read raises it
SHIPPED = Path(__file__).resolve().parent.parent / "checkpoints"
_WEIGHTS, _REST = "model.safetensors", "model.json"
_KEYS = ("format", "game", "network", "config", "meta")


@dataclass(frozen=True)
class Checkpoint:
    """A network as it was saved, in evaluation mode; `meta` is what the trainer noted (step, games, seed, command)."""

    network: Network
    game_spec: str
    config: ModelConfig
    meta: dict[str, Any]
    path: Path


def save_checkpoint(folder: Path, network: Network, game_spec: str, config: ModelConfig, meta: dict[str, Any]) -> None:
    """Writes the checkpoint; one that is already there is replaced. `meta` must be JSON."""
    shape = {
        "name": network.game_name,
        "observation_shape": list(network.observation_shape),
        "num_actions": network.num_actions,
        "num_players": network.num_players,
    }
    rest = {"format": FORMAT, "game": game_spec, "network": shape, "config": config.model_dump(), "meta": meta}
    text = json.dumps(rest, indent=2, allow_nan=False) + "\n"
    tensors = {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
    with atomic_folder(folder) as aside:
        save_file(tensors, aside / _WEIGHTS)
        (aside / _REST).write_text(text, encoding="utf-8")


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A new folder to write files into; at the end they are synced and the folder takes the place of `path`.

    No system renames a folder over a full one, so the old one first moves to `.NAME.replaced`, where `settle` finds it
    if a kill comes between the two renames. After an exception nothing has changed. One writer at a time.
    """
    path = Path(os.path.abspath(path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        settle(path)
        aside = path.with_name(f".{path.name}.new")
        shutil.rmtree(aside, ignore_errors=True)  # left by a process that was killed
        aside.mkdir()
    except OSError as error:
        raise InputError(f"folder {str(path)!r} can't be written: {error.strerror}") from None
    try:
        yield aside
        for file in (*aside.iterdir(), aside):
            _sync(file)
        replaced = _replaced(path)
        if path.exists():
            path.rename(replaced)
        aside.rename(path)
        _sync(path.parent)
        shutil.rmtree(replaced, ignore_errors=True)
    except OSError as error:
        settle(path)
        raise InputError(f"folder {str(path)!r} can't be written: {error.strerror or error}") from None
    except SafetensorError as error:  # its way to report a full disk
        raise InputError(f"folder {str(path)!r} can't be written: {error}") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def settle(path: Path) -> None:
    """Ends what a kill interrupted: an old folder that has no successor comes back, one that has goes."""
    replaced = _replaced(path)
    if replaced.exists() and not path.exists():
        replaced.rename(path)
    shutil.rmtree(replaced, ignore_errors=True)


def find_checkpoint(path_or_name: str) -> Path:
    """The folder of a checkpoint: itself, the newest of a run's, or a shipped one by its name."""
    given = Path(path_or_name).expanduser()
    places = [given]
    if not given.is_absolute():
        parts = given.parts[1:] if given.parts[:1] == ("checkpoints",) else given.parts
        places.append(SHIPPED.joinpath(*parts))
    for place in places:
        if _complete(place):
            return place
        if _complete(_replaced(place)) and not place.exists():  # only read: whoever writes next settles it
            return _replaced(place)
        if (place / "checkpoints").is_dir():
            inside = sorted(folder for folder in (place / "checkpoints").iterdir() if folder.name[0] != ".")
            complete = [folder for folder in inside if _complete(folder)]
            if complete:
                return complete[-1]
            raise InputError(f"run {str(given)!r} has no complete checkpoint yet")
    if given.exists():
        raise InputError(f"checkpoint {str(given)!r} is not a folder with {_WEIGHTS} and {_REST}, nor a run's folder")
    shipped = sorted(path.name for path in SHIPPED.iterdir() if _complete(path)) if SHIPPED.is_dir() else []
    raise InputError(
        f"checkpoint {path_or_name!r} does not exist; accepted: a checkpoint's folder, a run's folder, or one of those "
        f"that ship: {', '.join(shipped) or 'none'}"
    )


def load_checkpoint(path_or_name: str, game: "Game | None" = None) -> Checkpoint:
    """Reads a checkpoint; with a game it must be one for that very game."""
    path = find_checkpoint(path_or_name)
    what = f"checkpoint {str(path)!r}"
    rest = _read_rest(path / _REST, what)
    if game is None:
        try:
            game = make(rest["game"])
        except InputError as error:
            raise InputError(f"{what}: {error}") from None
    _check_game(game, rest, what)
    try:
        config = ModelConfig(**rest["config"])
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{what}: config {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    network = build(game, config)
    try:
        tensors = load_file(path / _WEIGHTS)
        network.load_state_dict(tensors)
    except OSError as error:
        raise InputError(f"{what}: {_WEIGHTS} can't be read: {error.strerror or error}") from None
    except SafetensorError as error:
        raise InputError(f"{what}: {_WEIGHTS} is damaged: {error}") from None
    except RuntimeError:  # torch lists every tensor that does not fit, over many lines
        raise InputError(f"{what}: the weights in {_WEIGHTS} are not those of the network in {_REST}") from None
    if not all(bool(torch.isfinite(value).all()) for value in tensors.values() if value.is_floating_point()):
        raise InputError(f"{what}: {_WEIGHTS} holds weights that are not finite numbers")
    return Checkpoint(network.eval(), rest["game"], config, rest["meta"], path)


def _read_rest(file: Path, what: str) -> dict[str, Any]:
    try:
        rest = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{what}: {_REST} can't be read: {error.strerror}") from None
    except ValueError as error:  # not JSON, or not even text
        raise InputError(f"{what}: {_REST} is not JSON: {error}") from None
    if not isinstance(rest, dict) or "format" not in rest:
        raise InputError(f"{what}: {_REST} is not a checkpoint's")
    if rest["format"] != FORMAT:
        raise InputError(f"{what} has format {rest['format']!r}; this version reads format {FORMAT}")
    kinds = {"game": str, "network": dict, "config": dict, "meta": dict}
    for key, kind in kinds.items():
        if not isinstance(rest.get(key), kind):
            raise InputError(f"{what}: {_REST} has no valid {key!r}; it needs {', '.join(_KEYS)}")
    return rest


def _check_game(game: "Game", rest: dict[str, Any], what: str) -> None:
    shape = rest["network"]
    ours = (spec_of(game), list(game.observation_shape), game.num_actions, game.num_players)
    theirs = tuple(shape.get(key) for key in ("name", "observation_shape", "num_actions", "num_players"))
    if ours != theirs:
        raise InputError(
            f"{what} is for {theirs[0]!r} (observation {theirs[1]}, {theirs[2]} actions, {theirs[3]} players), "
            f"not for {ours[0]!r} (observation {ours[1]}, {ours[2]} actions, {ours[3]} players)"
        )


def _complete(folder: Path) -> bool:
    return (folder / _WEIGHTS).is_file() and (folder / _REST).is_file()


def _replaced(path: Path) -> Path:
    return path.with_name(f".{path.name}.replaced")


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


__all__ = ["Checkpoint", "atomic_folder", "find_checkpoint", "load_checkpoint", "save_checkpoint", "settle"]
