"""Where compiled code is kept on disk, so that it survives the process and can't go stale.

Numba's cache looks only at the file of the function that it caches: after an edit of a helper, a stale
search would be found. Hence one folder per state of the sources that any compiled function may use: the files
with compiled functions and all that they import. The games themselves do not count in the folder's name:
each game's own digest is part of its Numba type (see `compiled.py`), so editing one game recompiles that
game alone.
"""

import functools
import hashlib
import os
import re
import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
_PACKAGES = ("envs", "models", "selfplay")
_KEEP_DAYS = 14.0
_COMPILES = re.compile(r"\b(njit|intrinsic|overload|Compiled)\b")
_IMPORT = re.compile(r"^\s*(?:from\s+(\.*[\w.]*)\s+import\s+(\([^)]*\)|[^\n#]*)|import\s+([^\n#]*))", re.MULTILINE)


def local_imports(files: Iterable[Path]) -> list[Path]:
    """The files and all that they import from their own packages or folders, transitively."""
    found: set[Path] = set()
    waiting = list(files)
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _imports(path, path.stat().st_mtime_ns)
    return sorted(found)


@functools.lru_cache(maxsize=1024)
def _imports(path: Path, changed: int) -> tuple[Path, ...]:
    root = path.parent
    while (root / "__init__.py").exists():
        root = root.parent
    names: list[str] = []
    for source, targets, modules in _IMPORT.findall(path.read_text(encoding="utf-8", errors="replace")):
        if modules:
            names += [word.split(" as ")[0].strip() for word in modules.split(",")]
            continue
        dots = len(source) - len(source.lstrip("."))
        folder = path.parents[dots - 1].relative_to(root).parts if dots else ()
        base = ".".join([*folder, *filter(None, [source.lstrip(".")])])
        names += [base, *(f"{base}.{word.split(' as ')[0].strip()}" for word in targets.strip("()").split(","))]
    candidates = (root / Path(*name.split(".")).with_suffix(".py") for name in names if name.strip("."))
    return tuple(file for file in candidates if file.is_file())


def kernel_sources() -> list[Path]:
    """All files that hold or feed compiled functions, apart from the games and their parts (chess, chess_moves)."""
    from envs.registry import game_files

    games = tuple(path.stem for path in game_files())
    parts = tuple(f"{name}_" for name in games)
    files = (path for package in _PACKAGES for path in (PROJECT / package).rglob("*.py"))
    kernels = [path for path in files if path.stem not in games and not path.stem.startswith(parts)]
    compiling = (path for path in kernels if _COMPILES.search(path.read_text(encoding="utf-8")))
    return [path for path in local_imports(compiling) if path.name not in ("cache.py", "errors.py", "registry.py")]


def cache_root() -> Path:
    """The folder that holds one folder of compiled code per state of the sources."""
    if "SELFPLAY_CACHE" in os.environ:
        return Path(os.environ["SELFPLAY_CACHE"])
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "selfplay"


def cache_folder() -> Path | None:
    """The folder for the present state of the sources, made if need be; None where none can be written."""
    digest = hashlib.sha256(sys.version.encode())
    for path in kernel_sources():
        digest.update(path.read_bytes())
    folder = cache_root() / digest.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        _forget_old_folders(folder)
    except OSError:
        return None
    return folder


def _forget_old_folders(current: Path) -> None:
    oldest = time.time() - _KEEP_DAYS * 86_400
    for folder in current.parent.iterdir():
        if folder != current and folder.is_dir() and folder.stat().st_mtime < oldest:
            shutil.rmtree(folder, ignore_errors=True)
