"""Memory of a training run: the whole tree of its processes, sampled until it ends.

    .venv/bin/python -m benchmarks.memory --seconds 5 -- .venv/bin/selfplay train connect_four --minutes 60
    .venv/bin/python -m benchmarks.memory --pid 1234

PSS counts a page that several processes share once in all (Linux, /proc/PID/smaps_rollup), also where a process outside
the run shares it: other programs with the same libraries make the figure smaller while they run. The replay's files are
mapped, so their pages count as long as the system keeps them. Evaluations are processes of the tree too, so there is a
line without them. The first tenth of the time, compilation and the filling of buffers, does not count as first half.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple


class Sample(NamedTuple):
    """Megabytes by kind of process."""

    seconds: float
    trainer: float
    actors: float
    evaluation: float
    processes: int

    @property
    def training(self) -> float:
        return self.trainer + self.actors


def tree(root: int) -> list[int]:
    """A process and all below it."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue  # it ended
        children.setdefault(parent, []).append(int(folder.name))
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


def pss(process: int) -> float:
    """Megabytes; 0 for a process that ended."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)


def kind(process: int) -> str:
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return "trainer"
    if "selfplay.train.actors" in words:
        return "actors"
    return "evaluation" if {"selfplay.train.judge", "selfplay.worker"} & set(words) else "trainer"


def sample(root: int, started: float) -> Sample:
    sums = {"trainer": 0.0, "actors": 0.0, "evaluation": 0.0}
    processes = tree(root)
    for process in processes:
        sums[kind(process)] += pss(process)
    return Sample(time.monotonic() - started, **sums, processes=len(processes))


def halves(samples: list[Sample]) -> dict[str, dict[str, float]]:
    """The largest samples of the first half (without its beginning) and of the second half, in megabytes.

    >>> both = halves([Sample(t, 100 + t, 50, 0, 3) for t in range(0, 101, 10)])
    >>> both["first half"]["training"], both["second half"]["training"]
    (190.0, 250.0)
    """
    last = samples[-1].seconds
    parts = {
        "first half": [s for s in samples if 0.1 * last <= s.seconds < 0.5 * last],
        "second half": [s for s in samples if s.seconds >= 0.5 * last],
    }
    return {
        name: {
            "training": float(max((s.training for s in part), default=0.0)),
            "with evaluations": float(max((s.training + s.evaluation for s in part), default=0.0)),
            "mean of training": sum(s.training for s in part) / max(len(part), 1),
        }
        for name, part in parts.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Megabytes of a training run over its time.")
    parser.add_argument("--seconds", type=float, default=2.0, help="between samples")
    parser.add_argument("--pid", type=int, help="a run that is going on, instead of a command")
    parser.add_argument("--out", type=Path, help="a file for all samples, one JSON object per line")
    parser.add_argument("command", nargs="*", help="after --: what to run")
    chosen = parser.parse_args()
    if (chosen.pid is None) == (not chosen.command):
        parser.error("a command after --, or --pid, and not both")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both end with the figures so far
    started = time.monotonic()
    process = None if chosen.pid else subprocess.Popen(chosen.command)
    root = chosen.pid or process.pid  # type: ignore[union-attr]
    samples: list[Sample] = []
    try:
        while process.poll() is None if process else os.path.exists(f"/proc/{root}"):
            samples.append(sample(root, started))
            if chosen.out:
                with chosen.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(samples[-1]._asdict()) + "\n")
            time.sleep(chosen.seconds)
    except KeyboardInterrupt:
        if process:
            process.send_signal(signal.SIGINT)
            process.wait()
    if not samples:
        sys.exit("no sample: the process was gone already")
    for name, figures in halves(samples).items():
        print(f"{name + ':':13}" + ", ".join(f"{label} {megabytes:,.0f} MB" for label, megabytes in figures.items()))
    print(
        f"{len(samples)} samples in {samples[-1].seconds:.0f} s; at most {max(s.processes for s in samples)} processes"
    )


if __name__ == "__main__":
    main()
