"""`selfplay book`: opening books, made by search or from self-play, and looked into."""

from pathlib import Path
from typing import Annotated

import typer

book = typer.Typer(
    help="Opening books: build them by search, grow them by self-play, look into them.", no_args_is_help=True
)

GameSpec = Annotated[str, typer.Argument(metavar="GAME", help="connect_four, mnk:rows=5,columns=5,… or my.py:MyGame")]
File = Annotated[Path | None, typer.Option("--file", help="The book; books/<game>.sqlite if not given.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.")]
Seed = Annotated[int, typer.Option(help="Makes everything random repeat.")]
Plies = Annotated[int, typer.Option(help="How many plies the opening has.")]


@book.command()
def build(
    game: GameSpec,
    agent: Annotated[str, typer.Option(help="Who judges the positions: perfect, alphabeta:depth=10, …")],
    plies: Plies = 4,
    file: File = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Search every position of the first plies, mirror images once; goes on where an earlier build stopped."""
    from envs.registry import make
    from selfplay import book as books
    from selfplay import book_making, console

    made = make(game)
    path = file or books.default_path(made)
    kept = books.load(made, path) if path.exists() else books.Book(made)
    with console.progress("positions") as tell:
        searched = book_making.build(kept, agent, plies, seed, tell=tell)
    kept.save(path)
    console.say(json, {"file": str(path), "positions": len(kept.positions), "searched": searched},
                f"{searched:,} positions searched; {path} knows {len(kept.positions):,}")  # fmt: skip


@book.command()
def grow(
    game: GameSpec,
    agents: Annotated[list[str], typer.Option("--agent", help="Who plays; may be repeated.")],
    games: Annotated[int, typer.Option(help="How many games.")] = 100,
    plies: Plies = 8,
    explore: Annotated[float, typer.Option(help="How often a move of the opening is random.")] = 0.2,
    file: File = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Play games and count which first moves led to wins."""
    from envs.registry import make
    from selfplay import book as books
    from selfplay import book_making, console

    made = make(game)
    path = file or books.default_path(made)
    kept = books.load(made, path) if path.exists() else books.Book(made)
    with console.progress("games") as tell:
        book_making.grow(kept, agents, games, plies, explore, seed, tell)
    kept.save(path)
    console.say(json, {"file": str(path), "positions": len(kept.positions), "games": games},
                f"{games:,} games counted; {path} knows {len(kept.positions):,} positions")  # fmt: skip


@book.command()
def show(
    game: GameSpec,
    position: Annotated[str | None, typer.Option(help="Where to look, in the game's own notation.")] = None,
    file: File = None,
    json: Json = False,
) -> None:
    """What the book knows of a position's moves."""
    from envs.registry import make
    from selfplay import book as books
    from selfplay import book_making, console

    made = make(game)
    path = file or books.default_path(made)
    kept = books.load(made, path)
    state = made.parse_position(position) if position else made.new()[0]
    found = book_making.rows(kept, state)
    if json:
        console.print_json({"file": str(path), "positions": len(kept.positions), "moves": found})
        return
    texts = [
        [
            row["move"],
            "" if row["value"] is None else f"{row['value']:+.4f}",
            str(row["depth"] or ""),
            row["agent"],
            f"{row['games']:,}" if row["games"] else "",
            f"{row['wins']}-{row['draws']}-{row['losses']}" if row["games"] else "",
            "" if row["score"] is None else f"{row['score']:.2f}",
        ]
        for row in found
    ]
    console.table(
        made.show(state) if not position else "", ["move", "value", "depth", "by", "games", "w-d-l", "score"], texts
    )
    console.out.print(f"{path}: {len(kept.positions):,} positions", markup=False)
