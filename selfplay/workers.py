"""Worker processes that play the games of a match, and what happens when one of them dies or hangs.

A finished game is with the parent at once, so a killed worker loses none: the games it had not finished go to another,
and a new worker takes its place. A game over which workers die again and again is lost by the agent that was thinking.
"""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from envs.errors import InputError
from envs.game import Game
from selfplay.matches import GameRecord, Job, forfeited

ATTEMPTS = 3  # deaths over one game before it is forfeited; starts in a row that may fail
_GRACE = 1.0  # seconds over the limit before a worker that does not come back is killed


@dataclass(frozen=True)
class _Thinking:
    seat: int
    actions: list[int]
    since: float


@dataclass
class _Worker:
    process: "subprocess.Popen[str]"
    ready: bool = False
    jobs: dict[int, Job] = field(default_factory=dict)  # in the order in which they will be played
    thinking: _Thinking | None = None
    overdue: bool = False
    last_words: deque[str] = field(default_factory=lambda: deque(maxlen=5))


class Pool:
    """Some worker processes for one game and its agents; use it as a context manager."""

    def __init__(
        self,
        game_spec: str,
        game: Game,
        agents: list[str],
        workers: int = 0,
        tell: Callable[[str], None] | None = None,
    ):
        if workers < 0:
            raise InputError(f"--workers {workers} must be 1 or more (0: one per core)")
        self.game, self.tell = game, tell or (lambda text: None)
        self.size = workers or available_cores()
        self._first = {"game": game_spec, "agents": agents}
        self._events: queue.SimpleQueue[tuple[_Worker, str | None]] = queue.SimpleQueue()
        self._workers: list[_Worker] = []
        self._failed_starts = 0
        self.lost_workers = 0  # how many died or had to be killed

    def __enter__(self) -> Self:
        for number in range(self.size):
            self._start(announce=number == 0)
        return self

    def __exit__(self, *error: object) -> None:
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.process.kill()
        for worker in workers:
            worker.process.wait()
            with contextlib.suppress(OSError):
                worker.process.stdin.close()  # type: ignore[union-attr]

    def run(self, jobs: Iterable[Job]) -> Iterator[GameRecord]:
        """Plays the games and yields them as they finish."""
        waiting = deque(jobs)
        total, played = len(waiting), 0
        while played < total:
            # A second game lies ready with each worker, so that none waits for an answer, but for the last games.
            ahead = 2 if len(waiting) > 2 * self.size else 1
            for worker in self._workers:
                while worker.ready and waiting and len(worker.jobs) < ahead:
                    self._give(worker, waiting.popleft())
            self._kill_overdue()
            try:
                worker, line = self._events.get(timeout=0.2)
            except queue.Empty:
                continue
            if line is None:
                record = self._bury(worker, waiting)
            else:
                record = self._hear(worker, json.loads(line))
            if record is not None:
                played += 1
                yield record

    def _start(self, announce: bool) -> None:
        root = str(Path(__file__).resolve().parents[1])
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        # One thread per worker: all cores are busy with workers already.
        environment = {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "selfplay.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=environment,
        )
        worker = _Worker(process)
        self._workers.append(worker)
        self._send(worker, {**self._first, "announce": announce})
        threading.Thread(target=self._listen, args=(worker,), daemon=True).start()

    def _listen(self, worker: _Worker) -> None:
        errors = threading.Thread(target=self._read_errors, args=(worker,), daemon=True)
        errors.start()
        with worker.process.stdout as answers:  # type: ignore[union-attr]
            for line in answers:
                if line.endswith("\n"):  # else torn by its death
                    self._events.put((worker, line))
        errors.join(1.0)
        self._events.put((worker, None))

    def _read_errors(self, worker: _Worker) -> None:
        with worker.process.stderr as errors:  # type: ignore[union-attr]
            for line in errors:
                worker.last_words.append(line.strip())
                if line.startswith("compiling "):
                    self.tell(line.strip())

    def _send(self, worker: _Worker, data: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # it died: that will be heard from its other pipe
            worker.process.stdin.write(json.dumps(data) + "\n")  # type: ignore[union-attr]
            worker.process.stdin.flush()  # type: ignore[union-attr]

    def _give(self, worker: _Worker, job: Job) -> None:
        worker.jobs[job.number] = job
        self._send(worker, asdict(job))

    def _hear(self, worker: _Worker, answer: dict[str, Any]) -> GameRecord | None:
        if "error" in answer:
            raise InputError(answer["error"])
        if "ready" in answer:
            worker.ready, self._failed_starts = True, 0
            return None
        if "thinks" in answer:
            worker.thinking = _Thinking(answer["thinks"], answer["actions"], time.monotonic())
            return None
        worker.thinking = None
        job = worker.jobs.pop(answer["number"], None)
        return GameRecord.from_json(answer) if job else None

    def _kill_overdue(self) -> None:
        """Kills workers whose agent should have moved long ago; one that only is late answers by itself."""
        for worker in self._workers:
            job = next(iter(worker.jobs.values()), None)
            if job and job.move_seconds and worker.thinking and not worker.overdue:
                late = time.monotonic() - worker.thinking.since - job.move_seconds
                if late > _GRACE + job.move_seconds / 2:
                    worker.overdue = True
                    worker.process.kill()

    def _bury(self, worker: _Worker, waiting: deque[Job]) -> GameRecord | None:
        """Gives the unfinished games of a dead worker back, replaces it; returns a game that is forfeited by that."""
        if worker not in self._workers:
            return None
        self._workers.remove(worker)
        code = worker.process.wait()
        with contextlib.suppress(OSError):
            worker.process.stdin.close()  # type: ignore[union-attr]
        self.lost_workers += 1
        if not worker.ready:
            self._failed_starts += 1
            if self._failed_starts >= ATTEMPTS:
                words = next((line for line in reversed(worker.last_words) if line), f"exit code {code}")
                raise InputError(f"a worker process cannot start: {words}")
        jobs = list(worker.jobs.values())
        waiting.extendleft(reversed(jobs[1:]))
        self._start(announce=False)
        if not jobs:
            return None
        job, thinking = replace(jobs[0], attempt=jobs[0].attempt + 1), worker.thinking
        if thinking and worker.overdue:
            reason = f"no answer after {job.move_seconds:g} s, the limit for a move"
            return self._forfeit(job, thinking, "time-out", reason)
        if job.attempt >= ATTEMPTS:
            if thinking is None:
                raise InputError(f"worker processes died {ATTEMPTS} times over game {job.number}, between moves")
            return self._forfeit(job, thinking, "crash", f"its process died {ATTEMPTS} times, exit code {code}")
        self.tell(f"a worker died (exit code {code}); its game is played again by another")
        waiting.appendleft(job)
        return None

    def _forfeit(self, job: Job, thinking: _Thinking, kind: str, reason: str) -> GameRecord:
        players = len(job.seats)
        record = GameRecord(
            job.number,
            list(job.seats),
            job.round,
            thinking.actions,
            len(job.opening),
            [],
            [0.0] * players,
            [0] * players,
        )
        return forfeited(self.game, record, thinking.seat, kind, reason)


def available_cores() -> int:
    """How many processes can compute at once here."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
