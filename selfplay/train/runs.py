"""A training run is a folder: what it was told, what it did, and all that it needs to go on.

    runs/connect_four-20260131-154210/
      config.toml        complete, as resolved, with the version of its format
      state/             what resume needs: one folder per save, of which the newest complete one counts
      checkpoints/       networks or evaluations, by step
      games/             every self-play game, compact
      tensorboard/       the curves          metrics.jsonl  the same as lines
      evaluations.jsonl  matches against the ladder

Every file is written aside, synced, then renamed: a kill at any instant leaves a run that resumes. A state is saved in
a new folder whose name ends in its step; the old one goes only when the new one is complete.
"""

import contextlib
import fcntl
import json
import os
import shutil
import threading
import time
import tomllib
from pathlib import Path
from typing import Any, Self

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from envs.errors import InputError

VERSION = 1  # of the layout of a run and of its config


def sync_folder(folder: Path) -> None:
    """Makes renames in the folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_atomic(path: Path, data: bytes) -> None:
    """The file has either its old content or all of the new one, whatever happens."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise InputError(f"file {str(path)!r} can't be written: {error.strerror}") from None


def append_line(path: Path, text: str) -> None:
    """Adds a line as a whole: where there is no room for it, the file is as it was before."""
    size = path.stat().st_size if path.exists() else 0
    try:
        with path.open("ab") as file:
            file.write(f"{text}\n".encode())
    except OSError as error:
        with contextlib.suppress(OSError):
            os.truncate(path, size)
        raise InputError(f"file {str(path)!r} can't be written: {error.strerror}") from None


def toml_text(table: dict[str, Any], prefix: str = "") -> str:
    """A nested table of plain values as TOML."""
    lines, nested = [], []
    for key, value in table.items():
        if isinstance(value, dict):
            nested.append((f"{prefix}.{key}" if prefix else key, value))
        elif value is not None:
            lines.append(f"{key} = {_toml_value(value)}")
    text = "\n".join(lines) + ("\n" if lines else "")
    for name, value in nested:
        text += f"\n[{name}]\n" + toml_text(value, name)
    return text


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml_value(v) for v in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)


class Run:
    """A run's folder, held by one process at a time; use as a context manager or call `close`."""

    def __init__(self, path: Path):
        self.path = path
        self._lock: Any = None
        self._writer: Any = None

    # --- making and opening --------------------------------------------------------------------------

    @classmethod
    def create(cls, game_spec: str, method: str, config: dict[str, Any], folder: Path | None = None) -> Self:
        """A new run `<folder>/<game>-<time>`; the folder is `runs` by default."""
        name = "".join(c if c.isalnum() or c == "_" else "-" for c in Path(game_spec.split(":")[0]).stem)
        name += "-linear" if method == "linear" else ""
        base = (folder or Path("runs")) / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
        path = base
        for number in range(2, 1000):
            try:
                path.mkdir(parents=True)
                break
            except FileExistsError:
                path = base.with_name(f"{base.name}-{number}")
            except OSError as error:
                raise InputError(f"run folder {str(path)!r} can't be made: {error.strerror}") from None
        run = cls(path)
        head = {"version": VERSION, "game": game_spec, "method": method, "started": time.strftime("%Y-%m-%dT%H:%M:%S")}
        try:
            write_atomic(path / "config.toml", toml_text({**head, **config}).encode())
            run.lock()
        except InputError:  # a full disk: a folder without a config is no run
            shutil.rmtree(path, ignore_errors=True)
            raise
        return run

    @classmethod
    def open(cls, path: Path) -> Self:
        """A run to resume; one sentence where there is none, or another process has it."""
        run = cls(path)
        run.head()
        run.lock()
        return run

    def lock(self) -> None:
        """Refuses a second process; the lock goes with the process, so a killed one leaves none behind."""
        try:
            self._lock = (self.path / ".lock").open("w")
        except OSError as error:
            raise InputError(f"run {str(self.path)!r} can't be written: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            self._lock = None
            raise InputError(f"run {str(self.path)!r} is in use by another process") from None

    def head(self) -> dict[str, Any]:
        """The whole config as a table."""
        path = self.path / "config.toml"
        if not self.path.is_dir():
            raise InputError(f"run {str(self.path)!r} does not exist; 'selfplay runs' lists those that do")
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError:
            raise InputError(f"{str(self.path)!r} is not a run: it has no config.toml") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"file {str(path)!r} is not TOML: {error}") from None
        if table.get("version") != VERSION:
            raise InputError(
                f"run {str(self.path)!r} has a config of version {table.get('version')!r}; this program reads {VERSION}"
            )
        for name in ("game", "method"):
            if not isinstance(table.get(name), str):
                raise InputError(f"run {str(self.path)!r} has a config.toml without a {name}, so it can't be read")
        return table

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        if self._writer is not None:
            # Where the disk is full, its thread fails too: what led here says so, and curves are made again on resume.
            with contextlib.suppress(OSError):
                self._writer.close()
            self._writer = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # --- what resume needs ---------------------------------------------------------------------------

    def save_state(self, arrays: dict[str, np.ndarray], info: dict[str, Any], step: int) -> None:
        """Saves all that is needed to go on from here, as one whole; the state before goes after that."""
        base = self.path / "state"
        # The same step once more gets a later name: the state before may only go when the new one is complete.
        again = len(list(base.glob(f"{step:012d}*")))
        aside, final = base / f".{step:012d}.tmp", base / (f"{step:012d}" + (f"-{time.time_ns()}" if again else ""))
        try:
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(parents=True)
            for name, data in (
                ("arrays.safetensors", save({k: np.ascontiguousarray(v) for k, v in arrays.items()})),
                ("info.json", json.dumps(info).encode()),
            ):
                with (aside / name).open("wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
            sync_folder(aside)
            aside.rename(final)
            sync_folder(base)
        except OSError as error:
            shutil.rmtree(aside, ignore_errors=True)
            raise InputError(f"state of run {str(self.path)!r} can't be saved: {error.strerror}") from None
        for other in base.iterdir():
            if other != final:
                shutil.rmtree(other, ignore_errors=True)

    def load_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """The newest state that is complete, or None where the run was not saved yet."""
        base = self.path / "state"
        names = sorted((p for p in base.glob("[0-9]*") if p.is_dir()), reverse=True) if base.is_dir() else []
        for folder in names:
            try:
                arrays = load_file(folder / "arrays.safetensors")
                info = json.loads((folder / "info.json").read_text())
                info.keys()  # a table
                return arrays, info
            except (OSError, SafetensorError, ValueError, AttributeError) as error:
                if folder == names[-1]:
                    raise InputError(f"state {str(folder)!r} is corrupt: {error}") from None
        return None

    # --- curves --------------------------------------------------------------------------------------

    def start_curves(self, step: int) -> None:
        """Opens TensorBoard's file and `metrics.jsonl`, dropping what was logged beyond `step` before a kill."""
        from torch.utils.tensorboard.writer import SummaryWriter

        path = self.path / "metrics.jsonl"
        if path.exists():
            text = path.read_text(encoding="utf-8", errors="replace")
            kept = [line for line in text.splitlines() if _step_of(line) <= step]
            write_atomic(path, "".join(line + "\n" for line in kept).encode())
        threading.excepthook = _without_full_disk
        self._writer = SummaryWriter(str(self.path / "tensorboard"), purge_step=step + 1)

    @property
    def writer(self) -> Any:
        """TensorBoard's SummaryWriter, for images, text and histograms."""
        if self._writer is None:
            self.start_curves(2**62)
        return self._writer

    def log(self, values: dict[str, float], step: int) -> None:
        """Scalars to TensorBoard and to `metrics.jsonl`."""
        append_line(self.path / "metrics.jsonl", json.dumps({"step": step, "time": round(time.time(), 3), **values}))
        try:
            for tag, value in values.items():
                self.writer.add_scalar(tag, value, step)
        except OSError as error:  # of its thread, some time ago
            raise InputError(f"curves of run {str(self.path)!r} can't be written: {error.strerror}") from None


def _step_of(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return np.inf  # a torn line


def _without_full_disk(failed: threading.ExceptHookArgs) -> None:
    """TensorBoard writes in a thread; that its disk is full is said once, by who waits for it (`Run.log`)."""
    if not (isinstance(failed.exc_value, OSError) and type(failed.thread).__name__ == "_AsyncWriterThread"):
        threading.__excepthook__(failed)
