"""A worker process of a match: reads what to play from standard input, one JSON object per line, and answers so.

    -> {"game": "connect_four", "agents": ["random", …], "announce": true}
    <- {"ready": true}                              or {"error": "a sentence"}
    -> {"number": 7, "seats": [0, 1], …}            a `matches.Job`
    <- {"thinks": 1, "number": 7, "actions": […]}   before every move, where somebody watches the clock
    <- {"number": 7, "actions": […], …}             a `matches.GameRecord`

A process of its own, not a fork and not Python's `multiprocessing`: so a script without a main guard, a notebook and
a thread can start matches too.
"""

import json
import os
import signal
import sys
import threading
from typing import Any

from envs.errors import InputError
from envs.registry import make
from selfplay.matches import Job, Table
from selfplay.records import texts_of


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C ends
    threading.Thread(target=leave_with_parent, args=(os.getppid(),), daemon=True).start()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # an agent that prints must not disturb the answers

    def answer(data: dict[str, Any]) -> None:
        answers.write(json.dumps(data) + "\n")
        answers.flush()

    try:
        first = json.loads(sys.stdin.readline())
        if first["announce"]:
            from selfplay.console import announce_compilation

            announce_compilation()
        game = make(first["game"])
        table = Table(game, first["agents"])
        table.warm_up()
        answer({"ready": True})
    except InputError as error:
        answer({"error": str(error)})
        return
    except BrokenPipeError:
        return
    for line in sys.stdin:
        data = json.loads(line)
        job = Job(**{**data, **{name: tuple(data[name]) for name in ("seats", "opening", "seeds", "texts")}})

        def tell(mover: int, actions: list[int], job: Job = job) -> None:
            answer({"thinks": mover, "number": job.number, "actions": actions})

        try:
            record = table.play(job, tell if job.move_seconds or job.attempt else None)
            record.texts = texts_of(first["game"], game, first["agents"], record, job.texts)
            answer(record.to_json())
        except BrokenPipeError:
            return


def leave_with_parent(parent: int) -> None:
    """Ends this process when the parent is gone, also in the middle of a long search."""
    import time

    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(0)


if __name__ == "__main__":
    main()
