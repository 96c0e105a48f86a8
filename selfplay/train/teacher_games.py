"""Where a teacher's games are played: in this process, or on all cores by processes that speak through pipes.

A game depends only on its number, so it does not matter who plays it.
"""

import json
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

import numpy as np

from envs.errors import InputError
from envs.game import Game
from envs.registry import make
from selfplay.train.config import TeacherConfig
from selfplay.train.moves import sample_dtype
from selfplay.train.pipes import end, receive, send, serve, start
from selfplay.train.teacher import TaughtGame, Teacher, Units
from selfplay.workers import available_cores

_AT_ONCE = 4  # games between two words of a process


class TeacherGames:
    """Plays games by number. `workers` 0: a process per core; 1: here."""

    def __init__(self, game_spec: str, game: Game, config: TeacherConfig, seed: int, workers: int, units: Units):
        self.dtype = sample_dtype(game)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.here: Teacher | None = None
        count = workers or available_cores()
        if count == 1:
            self.here = Teacher(game, config, seed, units)
            return
        head = {"game": game_spec, "teacher": config.model_dump(), "seed": seed, "units": asdict(units)}
        self.processes = start("selfplay.train.teacher_games", count)
        for number, process in enumerate(self.processes):
            send(process.stdin, {}, {**head, "announce": number == 0})

    def play(self, numbers: Sequence[int], played: Callable[[int], None]) -> list[TaughtGame]:
        """The games of these numbers, in their order; `played` hears how many have been finished since."""
        found: list[TaughtGame] = []
        if self.here is not None:
            for number in numbers:
                found.append(self.here.play(number))
                played(1)
            return found
        waiting = deque(list(numbers)[i : i + _AT_ONCE] for i in range(0, len(numbers), _AT_ONCE))
        done: deque[int] = deque()
        with ThreadPoolExecutor(len(self.processes)) as pool:
            try:
                drives = [pool.submit(self._drive, process, waiting, done) for process in self.processes]
                while not all(drive.done() for drive in drives):
                    threading.Event().wait(0.05)
                    while done:
                        played(done.popleft())
                for drive in drives:
                    found += drive.result()
                while done:
                    played(done.popleft())
            except BaseException:
                self.close()  # leaving the pool waits for its threads, and they for the processes
                raise
        return sorted(found, key=lambda game: game.number)

    def _drive(self, process: Any, waiting: deque[list[int]], done: deque[int]) -> list[TaughtGame]:
        """Keeps one process busy until no games are left."""
        found: list[TaughtGame] = []
        while True:
            try:
                numbers = waiting.popleft()
            except IndexError:
                return found
            try:
                send(process.stdin, {}, {"numbers": numbers})
                arrays, head = receive(process.stdout)
            except (EOFError, OSError, ValueError):
                raise InputError(
                    f"a process of the teacher died, exit code {process.wait()}; the run can be resumed"
                ) from None
            if "error" in head:
                raise InputError(head["error"])
            samples = np.frombuffer(arrays["samples"].tobytes(), self.dtype)
            first = 0
            for number, length, key in head["games"]:
                found.append(TaughtGame(number, samples[first : first + length], key))
                first += length
            done.append(len(numbers))

    def close(self) -> None:
        end(self.processes)
        self.processes = []


def main() -> None:
    """A process of the teacher: hears numbers on standard input, answers with games on standard output."""
    hears, answers = serve()
    try:
        _, first = receive(hears)
        if first["announce"]:
            from selfplay.console import announce_compilation

            announce_compilation()
        config = TeacherConfig.model_validate_json(json.dumps(first["teacher"]))
        teacher = Teacher(make(first["game"]), config, first["seed"], Units(**first["units"]))
        while True:
            _, head = receive(hears)
            games = [teacher.play(number) for number in head["numbers"]]
            samples = b"".join(game.samples.tobytes() for game in games)
            heads = [[game.number, len(game.samples), game.key] for game in games]
            send(answers, {"samples": np.frombuffer(samples, np.uint8)}, {"games": heads})
    except (EOFError, BrokenPipeError):
        return
    except InputError as error:
        send(answers, {}, {"error": str(error)})


if __name__ == "__main__":
    main()
