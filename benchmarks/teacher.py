"""Time for a network to reach a fixed strength, from a teacher and from scratch, as a ratio.

    .venv/bin/python -m benchmarks.teacher --teacher alphabeta:depth=8,full_root=on --teacher-games 5000 \\
        --opponent alphabeta:depth=8 --share 0.5 --interval 1 --budget 30 --seed 1

Both runs have the same game, seed, config and limit, so also the same schedule of the learning rate. Every `--interval`
minutes a run is stopped, its checkpoint plays a match of `--games` games against the opponent off the clock, and if it
scored less than `--share`, the run is resumed. The clock is the run's own: the teacher's games and learning from them
count, compiling and matches do not. The first match that reaches the share gives the time; runs stay in `--runs`.
"""

import argparse
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-P", "-m", "selfplay.cli"]
SAVE_SECONDS = 5  # between two looks at the run's own clock


def minutes_of(run: Path) -> float:
    """How long the run has trained, as of its last save."""
    try:
        return float(json.loads((run / "summary.json").read_text())["minutes"])
    except (OSError, ValueError, KeyError):
        return 0.0


def train_until(words: list[str], folder: Path, minutes: float) -> Path:
    """Starts or resumes a run and stops it when its clock shows so many minutes; returns its folder."""
    process = subprocess.Popen([*COMMAND, "train", *words, "--no-evaluate"], stdout=subprocess.DEVNULL)
    stopped = False
    try:
        while process.poll() is None:
            time.sleep(0.5)
            found = list(folder.glob("*/summary.json"))
            if found and not stopped and minutes_of(found[0].parent) >= minutes:
                process.send_signal(signal.SIGTERM)
                stopped = True
    finally:
        process.kill() if process.poll() is None else None
    if process.returncode:
        raise SystemExit(f"training ended with exit code {process.returncode}")
    (run,) = (path for path in folder.iterdir() if path.is_dir())
    return run


def match(run: Path, opponent: str, options: argparse.Namespace) -> dict[str, Any]:
    """The match of the run's newest checkpoint against the opponent."""
    agent = f"alphazero:checkpoint={run},simulations={options.simulations}"
    words = ["match", options.game, agent, opponent, "--games", str(options.games), "--seed", "1", "--json"]
    answer = subprocess.run([*COMMAND, *words], stdout=subprocess.PIPE, text=True, check=True).stdout
    found: dict[str, Any] = json.loads(answer)
    return found


def measure(way: str, options: argparse.Namespace) -> dict[str, Any]:
    """One run until it is strong enough or its budget is spent: its points, and the minutes it took (None: never)."""
    folder = options.runs / way
    if folder.exists() and any(folder.iterdir()):
        raise SystemExit(f"{folder} is not empty: name another folder with --runs")
    words = [options.game, "--minutes", str(options.budget), "--seed", str(options.seed), "--runs", str(folder)]
    for setting in ("evaluation.minutes=0", f"save_seconds={SAVE_SECONDS}", *options.set):
        words += ["--set", setting]
    if way == "taught":
        words += ["--teacher", options.teacher, "--teacher-games", str(options.teacher_games)]
    points: list[dict[str, Any]] = []
    reached, target = None, options.interval
    while reached is None and (not points or points[-1]["minutes"] < options.budget):
        run = train_until(words, folder, min(target, options.budget))
        words = ["--resume", str(run)]
        summary = json.loads((run / "summary.json").read_text())
        point = {"minutes": summary["minutes"], "step": summary["steps"], "score": None, "interval": None}
        if summary["steps"]:  # else the teacher still plays
            found = match(run, options.opponent, options)
            point |= {"score": found["score"], "interval": found["interval"]}
            reached = summary["minutes"] if found["score"] >= options.share else None
        points.append(point)
        sys.stderr.write(f"{way}: {json.dumps(point)}\n")
        target = summary["minutes"] + options.interval
        if summary.get("finished"):
            break
    return {"way": way, "minutes": reached, "points": points}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="connect_four")
    parser.add_argument("--teacher", default="alphabeta:depth=8,full_root=on")
    parser.add_argument("--teacher-games", type=int, default=5000)
    parser.add_argument("--opponent", default="alphabeta:depth=8")
    parser.add_argument("--share", type=float, default=0.5, help="The score that counts as reached.")
    parser.add_argument("--games", type=int, default=100, help="Of each match.")
    parser.add_argument("--simulations", type=int, default=64, help="Of the network's search in matches.")
    parser.add_argument("--interval", type=float, default=1.0, help="Minutes of training between matches.")
    parser.add_argument("--budget", type=float, default=30.0, help="Minutes of training at most, of each run.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], help="A setting of both runs, such as workers=1.")
    parser.add_argument("--runs", type=Path, default=Path("runs/teacher"))
    options = parser.parse_args()
    rows = [measure(way, options) for way in ("taught", "scratch")]
    taught, scratch = (row["minutes"] for row in rows)
    ratio = scratch / taught if taught and scratch else None
    options_told = {k: v if isinstance(v, int | float | str | list) else str(v) for k, v in vars(options).items()}
    sys.stdout.write(json.dumps({"options": options_told, "rows": rows, "ratio": ratio}) + "\n")


if __name__ == "__main__":
    main()
