"""Where compiled code is kept on disk, so that it survives the process and can't go stale.

Numba's cache looks only at the file of the function that it caches: after an edit of a helper, a stale
search would be found. Hence one folder per state of the sources that the functions of a file may use: that file
and all that it imports. The games that such a function is called with do not count in the folder's name: each
game's own digest is part of its Numba type (see `compiled.py`). So an edit recompiles what it touches, and no more.
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

OUR_ROOT = Path(__file__).resolve().parents[1]  # a user's file depends on what it imports from here as well
_KEEP_DAYS = 14.0
_IMPORT = re.compile(r"^\s*(?:from\s+(\.*[\w.]*)\s+import\s+(\([^)]*\)|[^\n#]*)|import\s+([^\n#]*))", re.MULTILINE)


def local_imports(files: Iterable[Path]) -> list[Path]:
    """The files and all that they import from their own packages or folders and from these packages, transitively."""
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
    paths = [Path(*name.split(".")).with_suffix(".py") for name in names if name.strip(".")]
    return tuple(
        file for folder in dict.fromkeys([root, OUR_ROOT]) for path in paths if (file := folder / path).is_file()
    )


def digest_of_files(files: Iterable[Path]) -> str:
    """Changes with the contents of the files."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(_file_digest(path, path.stat().st_mtime_ns))
    return digest.hexdigest()


@functools.lru_cache(maxsize=1024)
def _file_digest(path: Path, changed: int) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


def cache_root() -> Path:
    """The folder that holds one folder of compiled code per state of the sources."""
    if "SELFPLAY_CACHE" in os.environ:
        return Path(os.environ["SELFPLAY_CACHE"])
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "selfplay"


def cache_folder(file: Path) -> Path | None:
    """The folder for the functions of a file in the present state of its sources; None where none can be written."""
    digest = hashlib.sha256(sys.version.encode())
    digest.update(digest_of_files(local_imports([file.resolve()])).encode())
    return _made(cache_root() / digest.hexdigest()[:16])


@functools.lru_cache(maxsize=1024)
def _made(folder: Path) -> Path | None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        _forget_old_folders(folder.parent)
    except OSError:
        return None
    return folder


@functools.lru_cache(maxsize=1)
def _forget_old_folders(root: Path) -> None:
    oldest = time.time() - _KEEP_DAYS * 86_400
    for folder in root.iterdir():
        if folder.is_dir() and folder.stat().st_mtime < oldest:
            shutil.rmtree(folder, ignore_errors=True)
