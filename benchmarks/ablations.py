"""What a setting of self-play is worth: runs that differ in it, and a match of each against the run with the defaults.

    .venv/bin/python -m benchmarks.ablations connect_four --minutes 4 --games 200 \\
        search.kind=puct learner.search_value=0.0 search.full_share=0.25,search.simulations=128

Each change, settings with commas between, trains for the same minutes on one core with the same seed; `seed=1` as a
change is the control: how far two runs of equal settings lie apart. Runs stay in `--runs`, and what is there already is
not trained again, so that a longer list goes on where a shorter one ended. One row of the table per change: what the run
with the change scored against the run without it, both at `--simulations`.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from benchmarks.teacher import COMMAND, match


def trained(change: str, options: argparse.Namespace) -> Path:
    """The run with this change, trained if it is not there yet."""
    folder = options.runs / (change.replace("/", "_") or "defaults")
    if not folder.exists():
        words = ["train", options.game, "--minutes", str(options.minutes), "--workers", "1", "--no-evaluate"]
        for setting in ["evaluation.minutes=0", f"seed={options.seed}", *filter(None, change.split(","))]:
            words += ["--set", setting]
        words += ["--runs", str(folder)]
        if code := subprocess.run([*COMMAND, *words], stdout=subprocess.DEVNULL, check=False).returncode:
            raise SystemExit(f"training with {change or 'the defaults'} ended with exit code {code}")
    runs = sorted(path for path in folder.iterdir() if (path / "summary.json").is_file())
    if not runs:
        raise SystemExit(f"{folder} holds no run: remove it, or name another folder with --runs")
    return runs[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description="What a setting of self-play is worth.")
    parser.add_argument("game")
    parser.add_argument("changes", nargs="+", help="such as learner.search_value=0.0; commas between several at once")
    parser.add_argument("--minutes", type=float, default=4.0)
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--simulations", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=Path, default=Path("runs/ablations"))
    options = parser.parse_args()
    base = trained("", options)
    sys.stdout.write(
        f"| change | games | steps | score against the defaults, {options.games} games |\n| --- | --- | --- | --- |\n"
    )
    for change in ["", *options.changes]:
        run = trained(change, options)
        summary = json.loads((run / "summary.json").read_text())
        row = f"| {change or 'none'} | {summary['games']:,} | {summary['steps']:,} | "
        if change:
            found = match(run, f"alphazero:checkpoint={base},simulations={options.simulations}", options)
            low, high = found["interval"]
            row += f"{100 * found['score']:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
        sys.stdout.write(row + " |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
