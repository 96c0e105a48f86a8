"""The commands of learned linear evaluations: weights, fit-probcut."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from envs.errors import InputError

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.")]
_PHASES_SHOWN = 6  # columns


def register(app: typer.Typer) -> None:
    """Adds the commands to the command line."""
    app.command()(weights)
    app.command("fit-probcut")(fit_probcut)


def weights(
    evaluation: Annotated[str, typer.Argument(metavar="RUN_OR_EVALUATION", help="A run, a folder or a shipped name.")],
    top: Annotated[int, typer.Option(help="How many contents of patterns are drawn.")] = 8,
    json: Json = False,
) -> None:
    """What a learned evaluation found: features and patterns with their weights, in the game's units."""
    from envs.registry import make
    from selfplay import console
    from selfplay.train.linear import show

    found = show.describe(evaluation, top)
    if json:
        console.print_json(found)
        return
    meta, game = found["meta"], make(found["game"])
    console.out.print(f"{found['evaluation']}: {found['game']}, in {found['unit']}", markup=False, soft_wrap=True)
    if "command" in meta:
        told = f"made by: {meta['command']} (seed {meta.get('seed')}, {meta.get('minutes')} minutes, "
        console.out.print(f"{told}{meta.get('games', 0):,} games)", markup=False, soft_wrap=True)
    if found["features"]:
        console.table("", *_feature_table(found))
    if found["patterns"]:
        columns = ["pattern", "places", "weights learned", "typical size"]
        rows = [
            [" ".join(p["cells"]), str(p["places"]), f"{p['learned']:,}", f"{p['typical']:.3f}"]
            for p in found["patterns"]
        ]
        console.table("", columns, rows)
    if found["strongest"]:
        starts = ", ".join(str(start) for start in found["phase_starts"])
        console.out.print(f"what counts most for the mover ({show.legend(game)})", markup=False, soft_wrap=True)
        if found["phases"] > 1:
            console.out.print(f"phases begin with so many men on the board: {starts}", markup=False, soft_wrap=True)
        console.out.print()
        for line in show.boards_side_by_side(found["strongest"], console.out.width):
            console.out.print(line, markup=False, soft_wrap=True)


def _feature_table(found: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Weights by size; by phase where there are several, some of them where there are many."""
    count = found["phases"]
    shown = sorted({round(i * (count - 1) / (_PHASES_SHOWN - 1)) for i in range(_PHASES_SHOWN)}) if count > 1 else []
    columns = ["feature", "weight", "±"] + [f"from {found['phase_starts'][phase]} men" for phase in shown]
    rows = []
    for row in sorted(found["features"], key=lambda row: -abs(row["weight"])):
        error = "" if row["error"] is None else f"{row['error']:.3f}"
        by_phase = [f"{row['by_phase'][phase]:+.3f}" for phase in shown]
        rows.append([row["name"], f"{row['weight']:+.3f}", error, *by_phase])
    return columns, rows


def fit_probcut(
    game: Annotated[str, typer.Argument(metavar="GAME", help="othello, … or my.py:MyGame")],
    evaluation: Annotated[
        str, typer.Option("--eval", help="linear, or a file; a learned one's folder or run keeps the result.")
    ] = "linear",
    positions: Annotated[int, typer.Option(help="How many positions to search.")] = 300,
    depth: Annotated[int, typer.Option(help="The deepest search to predict.")] = 6,
    seed: Annotated[int, typer.Option(help="Makes everything random repeat.")] = 0,
    json: Json = False,
) -> None:
    """Measure how well shallow searches predict deep ones: the parameters for alphabeta:probcut=1.5."""
    from envs.registry import make
    from models.evaluation import make_evaluation
    from models.evaluation_file import find_folder, write_cuts
    from selfplay import console
    from selfplay.search.probcut import cuts_as_toml, fit_cuts

    made = make(game)
    cuts = fit_cuts(made, make_evaluation(evaluation, made), positions, depth, seed)
    named = evaluation in ("linear", "none") or evaluation.endswith(".toml")
    folder: Path | None = None if named else find_folder(evaluation)
    if folder is not None:
        write_cuts(folder, cuts)
    if json:
        console.print_json({"cuts": cuts, "written": None if folder is None else str(folder)})
        return
    sys.stdout.write(cuts_as_toml(cuts))
    if folder is not None:
        console.err.print(f"written into {folder}", markup=False, soft_wrap=True)


def export_evaluation(run: Path, folder: Path) -> str:
    """A run's learned evaluation as a small folder to ship; the sentence that tells what was written."""
    from models.evaluation_file import export_small
    from selfplay.train.linear.show import open_evaluation

    source, game, evaluation, table = open_evaluation(str(run))
    if folder.exists() and (
        not folder.is_dir() or (any(folder.iterdir()) and not (folder / "evaluation.json").is_file())
    ):
        raise InputError(f"--eval {str(folder)!r} exists and is no evaluation; name a new folder")
    size = export_small(source, folder, game, evaluation, table)
    return f"written: {folder} ({size / 1e6:.2f} MB; use it as eval={folder})"


__all__ = ["export_evaluation", "register"]
