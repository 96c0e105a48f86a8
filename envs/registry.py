"""All games by name. One line per game; a game's file is imported when the game is first asked for."""

import importlib
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from envs import specs
from envs.cache import OUR_ROOT, digest_of_files, local_imports
from envs.errors import InputError

if TYPE_CHECKING:
    from envs.game import Game


class Entry(NamedTuple):
    """Where a game's class lives, and the parameters that make this name out of it."""

    module: str
    name: str
    parameters: dict[str, Any]


GAMES: dict[str, Entry] = {
    "backgammon": Entry("envs.backgammon", "Backgammon", {}),
    "checkers": Entry("envs.checkers", "Checkers", {}),
    "chess": Entry("envs.chess", "Chess", {}),
    "connect_four": Entry("envs.connect_four", "ConnectFour", {}),
    "game_tree": Entry("envs.game_tree", "GameTree", {}),
    "go": Entry("envs.go", "Go", {}),
    "gomoku": Entry("envs.mnk", "MNK", {"rows": 15, "columns": 15, "connect": 5}),
    "mnk": Entry("envs.mnk", "MNK", {}),
    "nim": Entry("envs.nim", "Nim", {}),
    "nim_cubes": Entry("envs.nim", "Nim", {"heaps": (4,), "take": 2}),
    "othello": Entry("envs.othello", "Othello", {}),
    "pacman": Entry("envs.pacman", "Pacman", {}),
    "pig": Entry("envs.pig", "Pig", {}),
    "tic_tac_toe": Entry("envs.mnk", "MNK", {"rows": 3, "columns": 3, "connect": 3}),
    "tic_tac_toe_three": Entry("envs.mnk", "MNK", {"rows": 4, "columns": 4, "connect": 3, "players": 3}),
    "twenty_forty_eight": Entry("envs.twenty_forty_eight", "TwentyFortyEight", {}),
}


def make(spec: str, **parameters: Any) -> "Game":
    """The game that a spec names.

    `connect_four`, `mnk:rows=15,columns=15,connect=5`, or a class in a user's file, `my_game.py:MyGame`,
    `my_game.py:MyGame:size=5`. Keyword arguments are added to those in the spec.

    >>> make("connect_four:rows=5", columns=6)
    ConnectFour(rows=5, columns=6, connect=4)
    """
    head, _, rest = spec.partition(":")
    if head.endswith(".py"):
        from envs.game import Game

        class_name, _, rest = rest.partition(":")
        game_class, preset = class_from_file(Path(head), class_name, Game, "game"), {}
    elif head in GAMES:
        entry = GAMES[head]
        game_class, preset = getattr(importlib.import_module(entry.module), entry.name), dict(entry.parameters)
    else:
        raise InputError(f"unknown game {head!r}; games: {', '.join(sorted(GAMES))}, or a file: my_game.py:MyGame")
    what = f"game {spec!r}"
    return specs.build(what, game_class, {**preset, **specs.pairs(what, rest), **parameters})


def names_of(module: str, class_name: str, constants: Mapping[str, Any]) -> list[str]:
    """The registry's names for a game, the most particular one first; none for a game of the user's own.

    >>> names_of("envs.mnk", "MNK", {"rows": 3, "columns": 3, "connect": 3, "players": 2})
    ['tic_tac_toe', 'mnk']
    """
    names = [
        (len(entry.parameters), name)
        for name, entry in GAMES.items()
        if (entry.module, entry.name) == (module, class_name)
        and all(constants.get(key) == value for key, value in entry.parameters.items())
    ]
    return [name for _, name in sorted(names, reverse=True)]


def name_of(module: str, class_name: str, constants: Mapping[str, Any]) -> str:
    """The most particular of the registry's names; the class's name for a game of the user's own."""
    return next(iter(names_of(module, class_name, constants)), class_name)


def spec_of(game: "Game") -> str:
    """The spec that makes this game again, for names of files and in reports; a user's own by its class.

    >>> spec_of(make("mnk:rows=3,columns=3,connect=3")), spec_of(make("connect_four:rows=5"))
    ('tic_tac_toe', 'connect_four:rows=5')
    """
    values = {field.name: getattr(game, field.name) for field in fields(game)}  # type: ignore[arg-type]
    names = names_of(type(game).__module__, type(game).__name__, values)
    preset = GAMES[names[0]].parameters if names else {}
    defaults = {field.name: field.default for field in fields(game)} | preset  # type: ignore[arg-type]
    changed = {name: value for name, value in values.items() if value != defaults[name]}
    texts = (f"{k}={'+'.join(map(str, v)) if isinstance(v, tuple) else v}" for k, v in changed.items())
    return ":".join(filter(None, [names[0] if names else type(game).__name__, ",".join(texts)]))


_loaded: dict[Path, tuple[str, ModuleType]] = {}  # users' files: a digest of their sources, and the module
_helpers: set[str] = set()  # users' files


def class_from_file(path: Path, class_name: str, base: type, kind: str) -> type:
    """A class derived from `base` in a user's file; its name may be left out where there is but one. `kind` is what
    the error messages call it: game, agent."""
    if not path.is_file():
        raise InputError(f"{kind} file {str(path)!r} does not exist")
    module = _module_from_file(path.resolve(), kind)
    classes = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, base) and value.__module__ == module.__name__
    }
    if not class_name and len(classes) == 1:
        return next(iter(classes.values()))
    if class_name not in classes:
        raise InputError(f"{str(path)!r} has no {kind} {class_name!r}; {kind}s in it: {', '.join(classes) or 'none'}")
    return classes[class_name]


def _module_from_file(path: Path, kind: str) -> ModuleType:
    """Imports a user's file, again if it or one of the files beside it that it uses has changed since."""
    files = local_imports([path])
    digest = digest_of_files(files)
    if path in _loaded and _loaded[path][0] == digest:
        return _loaded[path][1]
    # Helper files go by plain names, so those of another folder or of another time have to make way.
    ours = [OUR_ROOT / package for package in ("envs", "models", "selfplay")]
    _helpers.update(str(file) for file in files if not any(folder in file.parents for folder in ours))
    for name, module in list(sys.modules.items()):
        if name != "__main__" and getattr(module, "__file__", None) in _helpers:
            del sys.modules[name]
    name = f"game_file_{path.stem}"  # a name of its own: a file called random.py must not replace Python's
    description = importlib.util.spec_from_file_location(name, path)
    assert description and description.loader
    module = importlib.util.module_from_spec(description)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        description.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        first = next(iter(str(error).splitlines()), "")
        raise InputError(f"{kind} file {str(path)!r} fails to import: {type(error).__name__}: {first}") from error
    finally:
        sys.path.remove(str(path.parent))
    _loaded[path] = digest, module
    return module
