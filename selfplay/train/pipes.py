"""Processes that play for a training run, and what is said to them: each message is one safetensors block.

Arrays and a JSON head are all that passes, never pickles, so the other end could as well be on another machine.
"""

import json
import os
import select
import signal
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from selfplay.worker import leave_with_parent


def send(pipe: Any, arrays: dict[str, np.ndarray], head: dict[str, Any]) -> None:
    head_bytes = np.frombuffer(json.dumps(head).encode(), np.uint8)
    data = save({**{k: np.ascontiguousarray(v) for k, v in arrays.items()}, "": head_bytes})
    pipe.write(struct.pack("<Q", len(data)))
    pipe.write(data)
    pipe.flush()


def receive(pipe: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The next message; EOFError where the other end is gone."""
    size = pipe.read(8)
    if len(size) < 8:
        raise EOFError
    arrays = load(pipe.read(struct.unpack("<Q", size)[0]))
    return arrays, json.loads(arrays.pop("").tobytes())


def is_waiting(pipe: Any, seconds: float) -> bool:
    """Whether a message, or the end, is there within so many seconds."""
    return bool(select.select([pipe], [], [], seconds)[0])


def start(module: str, count: int) -> list[subprocess.Popen[bytes]]:
    """Processes that run the module's `main`, which begins with `serve`."""
    paths = [str(Path(__file__).resolve().parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}
    return [
        subprocess.Popen(
            [sys.executable, "-P", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the parent, which ends them, also while they still start
        )
        for _ in range(count)
    ]


def end(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.kill()
    for process in processes:
        process.wait()
        for pipe in (process.stdin, process.stdout):
            try:
                pipe.close()  # type: ignore[union-attr]
            except OSError:
                pass


def serve() -> tuple[Any, Any]:
    """In such a process: where it hears and where it answers. It ends with its parent, however that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=leave_with_parent, args=(os.getppid(),), daemon=True).start()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a game or an agent prints must not disturb the answers
    return sys.stdin.buffer, answers
