"""`selfplay tables build|info|verify GAME`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(help="Endgame tables: build, list and check them.", no_args_is_help=True)

GameSpec = Annotated[str, typer.Argument(metavar="GAME", help="chess, checkers, backgammon, pig or pig:goal=50")]
Kinds = Annotated[list[str] | None, typer.Option("--kind", help="Only this kind (KQK, KKvK, …); may be repeated.")]
Folder = Annotated[Path | None, typer.Option(help="Where the tables are; default $SELFPLAY_TABLES, else ./tables.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.")]


@contextmanager
def _bar() -> Iterator[Any]:
    """A progress bar on standard error, for people who watch; gone when done."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from selfplay import console

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    with Progress(*columns, TimeElapsedColumn(), console=console.err, transient=True) as bar:
        task = bar.add_task("", total=None)

        def progress(kind: str, done: int, total: int, step: int) -> None:
            description = f"{kind}, pass {step}" if step else kind
            bar.update(task, description=description, completed=done, total=total)

        yield progress


@app.command()
def build(
    game: GameSpec,
    kind: Kinds = None,
    men: Annotated[int, typer.Option(help="At most so many men or pieces (chess, checkers).")] = 0,
    folder: Folder = None,
    json: Json = False,
) -> None:
    """Build tables, and those that they need; finished files are kept, so a stopped build goes on where it was."""
    from envs.registry import make
    from selfplay import console
    from selfplay.tables import manage

    made = make(game)
    with _bar() as progress:
        rows = manage.build(made, kind, men, folder, progress)
    if json:
        console.print_json({"tables": rows})
        return
    _show(rows)


@app.command()
def info(game: GameSpec, kind: Kinds = None, folder: Folder = None, json: Json = False) -> None:
    """What tables are there: positions, results, the longest mate; every checksum is proven."""
    from envs.registry import make
    from selfplay import console
    from selfplay.tables import manage

    rows = manage.info(make(game), kind, folder)
    if json:
        console.print_json({"tables": rows})
    elif rows:
        _show(rows)
    else:
        console.out.print("no tables yet")


@app.command()
def verify(
    game: GameSpec,
    kind: Kinds = None,
    folder: Folder = None,
    samples: Annotated[int, typer.Option(min=1, help="Entries of each table to compare.")] = 1000,
    seed: Annotated[int, typer.Option(help="Which entries.")] = 0,
    json: Json = False,
) -> None:
    """Compare entries with a move looked ahead by the game's own rules; exit code 1 if one is wrong."""
    from envs.registry import make
    from selfplay import console
    from selfplay.tables import manage

    made = make(game)
    with _bar() as progress:
        rows = manage.verify(made, kind, folder, samples, seed, progress)
    wrong = sum(len(row["wrong"]) for row in rows)
    if json:
        console.print_json({"ok": wrong == 0, "tables": rows})
    else:
        texts = [[r["kind"], f"{r['compared']:,}", f"{len(r['wrong']):,}", (r["wrong"] or [""])[0]] for r in rows]
        console.table("", ["kind", "compared", "wrong", "for example"], texts)
    raise typer.Exit(0 if wrong == 0 else 1)


def _show(rows: list[dict[str, Any]]) -> None:
    from selfplay import console

    texts = []
    for row in rows:
        sides = [part for part in row["counts"].values() if isinstance(part, dict)]
        if sides:
            positions = sum(side["positions"] for side in sides)
            results = [f"{sum(side[name] for side in sides):,}" for name in ("wins", "draws", "losses")]
        else:
            positions, results = row["counts"]["positions"], ["", "", ""]
        longest = row.get("longest_mate") or row.get("longest_win_plies")
        what = "" if longest is None else f"mate in {longest}" if "longest_mate" in row else f"{longest} plies"
        if "first_player_wins" in row:
            what = f"first player wins {row['first_player_wins']:.4f}"
        seconds = f"{row['seconds']:.1f}" if row.get("built") else ""
        texts.append([row["kind"], f"{positions:,}", *results, what, f"{row['bytes']:,}", seconds])
    console.table("", ["kind", "positions", "wins", "draws", "losses", "longest", "bytes", "seconds"], texts)
