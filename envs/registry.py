"""All games by name. One line per game; a game's file is imported when the game is first asked for."""

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from envs import specs
from envs.errors import InputError

if TYPE_CHECKING:
    from envs.game import Game


class Entry(NamedTuple):
    """Where a game's class lives, and the parameters that make this name out of it."""

    module: str
    name: str
    parameters: dict[str, Any]


_FOLDER = Path(__file__).resolve().parent

GAMES: dict[str, Entry] = {
    "connect_four": Entry("envs.connect_four", "ConnectFour", {}),
    "checkers": Entry("envs.checkers", "Checkers", {}),
    "mnk": Entry("envs.mnk", "MNK", {}),
    "tic_tac_toe": Entry("envs.mnk", "MNK", {"rows": 3, "columns": 3, "connect": 3}),
    "tic_tac_toe_three": Entry("envs.mnk", "MNK", {"rows": 4, "columns": 4, "connect": 3, "players": 3}),
    "gomoku": Entry("envs.mnk", "MNK", {"rows": 15, "columns": 15, "connect": 5}),
    "nim": Entry("envs.nim", "Nim", {}),
    "nim_cubes": Entry("envs.nim", "Nim", {"heaps": (4,), "take": 2}),
    "chess": Entry("envs.chess", "Chess", {}),
    "game_tree": Entry("envs.game_tree", "GameTree", {}),
    "othello": Entry("envs.othello", "Othello", {}),
    "pig": Entry("envs.pig", "Pig", {}),
}


def game_files() -> set[Path]:
    """The files that define the games of the registry."""
    return {_FOLDER / f"{entry.module.split('.')[-1]}.py" for entry in GAMES.values()}


def make(spec: str, **parameters: Any) -> "Game":
    """The game that a spec names.

    `connect_four`, `mnk:rows=15,columns=15,connect=5`, or a class in a user's file, `my_game.py:MyGame`,
    `my_game.py:MyGame:size=5`. Keyword arguments are added to those in the spec.

    >>> make("connect_four:rows=5", columns=6)
    ConnectFour(rows=5, columns=6, connect=4)
    """
    head, _, rest = spec.partition(":")
    if head.endswith(".py"):
        class_name, _, rest = rest.partition(":")
        game_class, preset = _class_from_file(Path(head), class_name), {}
    elif head in GAMES:
        entry = GAMES[head]
        game_class, preset = getattr(importlib.import_module(entry.module), entry.name), dict(entry.parameters)
    else:
        raise InputError(f"unknown game {head!r}; games: {', '.join(sorted(GAMES))}, or a file: my_game.py:MyGame")
    what = f"game {spec!r}"
    return specs.build(what, game_class, {**preset, **specs.pairs(what, rest), **parameters})


def _class_from_file(path: Path, class_name: str) -> type:
    from envs.game import Game

    if not path.is_file():
        raise InputError(f"game file {str(path)!r} does not exist")
    path = path.resolve()
    module_name = path.stem
    module = sys.modules.get(module_name)
    if module is None or getattr(module, "__file__", None) != str(path):
        description = importlib.util.spec_from_file_location(module_name, path)
        assert description and description.loader
        module = importlib.util.module_from_spec(description)
        shadowed = sys.modules.get(module_name)
        sys.modules[module_name] = module
        sys.path.insert(0, str(path.parent))
        try:
            description.loader.exec_module(module)
        except Exception as error:
            del sys.modules[module_name]
            if shadowed is not None:
                sys.modules[module_name] = shadowed
            raise InputError(f"game file {str(path)!r} fails to import: {type(error).__name__}: {error}") from error
        finally:
            sys.path.remove(str(path.parent))
    classes = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Game) and value.__module__ == module_name
    }
    if not class_name and len(classes) == 1:
        return next(iter(classes.values()))
    if class_name not in classes:
        raise InputError(f"{str(path)!r} has no game {class_name!r}; games in it: {', '.join(classes) or 'none'}")
    return classes[class_name]
