"""Registers the Gymnasium ids of all games when somebody imports Gymnasium, and loads nothing before.

Gymnasium up to 0.29 called the entry points of the group `gymnasium.envs`; version 1.0 dropped that. So that
`gymnasium.make("selfplay/ConnectFour-v0")` still needs no import of ours, the installed package brings a one-line
`selfplay_environments.pth` that imports this module when Python starts. It costs a few milliseconds and only puts a
finder on `sys.meta_path`, which waits for the first `import gymnasium`. It is a module by itself, because `envs` must
be looked for when it is needed: a checkout in the working folder comes before an installed one.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as in `typing`, which is too slow to import whenever Python starts
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


def register_when_imported() -> None:
    """Registers the ids now if Gymnasium is imported already, otherwise when it is."""
    if "gymnasium.envs.registration" in sys.modules:
        _register_all()
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _register_all() -> None:
    from envs.gym_plugin import register_all

    register_all()


class _Finder:
    """Waits for the import of `gymnasium`, lets the others find it, and adds the registration to its end."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "gymnasium":
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
                return spec
        return None


class _Loader:
    """Gymnasium's own loader, and then the registration."""

    def __init__(self, loader: Any):
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self.loader  # as if we had never been here, for those who look for its files
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        _register_all()
