"""Where compiled code is kept on disk, so that it survives the process and can't go stale.

Numba's cache looks only at the file of the function that it caches: after an edit of a helper, a stale
search would be found. Hence one folder per state of the sources that any compiled function may use.
The files of the games do not count in the folder's name: each game's own digest is part of its Numba
type (see `compiled.py`), so editing one game recompiles that game alone.
"""

import hashlib
import os
import shutil
import sys
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
_PACKAGES = ("envs", "models", "selfplay")
_KEEP_DAYS = 14.0


def kernel_sources() -> list[Path]:
    """All files that may hold or feed compiled code, apart from the games of the registry."""
    from envs.registry import game_files

    games = game_files()
    files = (path for package in _PACKAGES for path in sorted((PROJECT / package).rglob("*.py")))
    return [path for path in files if path not in games]


def cache_root() -> Path:
    """The folder that holds one folder of compiled code per state of the sources."""
    if "SELFPLAY_CACHE" in os.environ:
        return Path(os.environ["SELFPLAY_CACHE"])
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "selfplay"


def use_cache_folder() -> None:
    """Points Numba at the right folder. Must run before Numba is imported; an explicit choice wins."""
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    digest = hashlib.sha256(sys.version.encode())
    for path in kernel_sources():
        digest.update(path.read_bytes())
    folder = cache_root() / digest.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        _forget_old_folders(folder)
    except OSError:
        return  # a read-only home: compiled code lives as long as the process
    os.environ["NUMBA_CACHE_DIR"] = str(folder)


def _forget_old_folders(current: Path) -> None:
    oldest = time.time() - _KEEP_DAYS * 86_400
    for folder in current.parent.iterdir():
        if folder != current and folder.is_dir() and folder.stat().st_mtime < oldest:
            shutil.rmtree(folder, ignore_errors=True)
