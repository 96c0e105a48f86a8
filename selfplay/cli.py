"""The command line: thin commands over functions that a program can call too."""

import sys
from typing import Annotated

import typer

from envs.errors import InputError

app = typer.Typer(
    name="selfplay",
    help="Train game-playing agents by self-play, and judge them with real classical search.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

GameSpec = Annotated[str, typer.Argument(metavar="GAME", help="connect_four, mnk:rows=5,columns=5,… or my.py:MyGame")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.")]
Seed = Annotated[int, typer.Option(help="Makes everything random repeat.")]
Position = Annotated[str | None, typer.Option(help="Where to start, in the game's own notation.")]


@app.command()
def games(json: Json = False) -> None:
    """All games of the registry."""
    from envs.registry import GAMES, make
    from selfplay import console

    rows = []
    for name in sorted(GAMES):
        game = make(name)
        rows.append(
            {
                "name": name,
                "players": game.num_players,
                "chance": bool(game.has_chance),
                "actions": game.num_actions,
                "state_bytes": game.new(1).dtype.itemsize,
                "notation": game.notation,
            }
        )
    if json:
        console.print_json({"games": rows})
        return
    columns = ["name", "players", "chance", "actions", "state bytes", "notation"]
    texts = [[str(row[c.replace(" ", "_")]) for c in columns] for row in rows]
    for text in texts:
        text[2] = "yes" if text[2] == "True" else ""
    console.table("", columns, texts)


@app.command()
def play(
    game: GameSpec,
    agents: Annotated[list[str], typer.Argument(help="One agent per player: human, random, …")],
    seed: Seed = 0,
    position: Position = None,
    json: Json = False,
) -> None:
    """Play a game in the terminal."""
    from envs.registry import make
    from selfplay import console
    from selfplay.play import play as play_game

    made = make(game)

    def tell(text: str) -> None:
        stream = sys.stderr if json else sys.stdout
        stream.write((text if stream.isatty() else _plain(text)) + "\n")

    def ask(prompt: str) -> str:
        try:
            sys.stderr.write(prompt)
            sys.stderr.flush()
            line = sys.stdin.readline()
        except KeyboardInterrupt:
            line = ""
        if not line:
            sys.stderr.write("\n")
            return "quit"
        return line

    played = play_game(made, agents, seed, position, tell, ask)
    if json:
        console.print_json(
            {
                "moves": played.names,
                "actions": played.actions,
                "utilities": played.utilities,
                "finished": played.finished,
            }
        )


def _plain(text: str) -> str:
    import re

    return re.sub(r"\033\[[0-9;]*m", "", text)


@app.command()
def perft(
    game: GameSpec,
    depth: Annotated[int, typer.Argument(help="How many moves.")],
    position: Position = None,
    json: Json = False,
) -> None:
    """Count the sequences of exactly DEPTH moves."""
    from envs.registry import make
    from selfplay import console
    from selfplay.perft import perft as count

    made = make(game)
    state = made.parse_position(position) if position else None
    count(made, 1, state)  # compiled, or loaded from the cache, before the clock starts
    counted = count(made, depth, state)
    if json:
        console.print_json({"nodes": counted.nodes, "seconds": counted.seconds})
    else:
        rate = counted.nodes / max(counted.seconds, 1e-9)
        console.out.print(f"{counted.nodes:,} nodes in {counted.seconds:.2f} s ({rate / 1e6:.1f} M nodes/s)")


@app.command()
def check(
    game: GameSpec,
    states: Annotated[int, typer.Option(help="How many states to look at.")] = 10_000,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Test every promise that a game makes; exit code 1 if one is broken."""
    from envs.check import PROMISES, check_game
    from envs.registry import make
    from selfplay import console

    report = check_game(make(game), states, seed)
    if json:
        broken = [{"promise": b.promise, "sentence": b.sentence, "moves": b.moves} for b in report.broken.values()]
        console.print_json({"ok": report.ok, "tested": report.tested, "broken": broken})
    else:
        rows = [
            [
                name,
                "BROKEN" if name in report.broken else "ok" if tested else "not asked",
                f"{tested:,}",
                PROMISES[name],
            ]
            for name, tested in report.tested.items()
        ]
        console.table(str(report.game), ["promise", "", "tests", "what it says"], rows)
        for b in report.broken.values():
            console.out.print(f"broken: {b}", markup=False)
    raise typer.Exit(0 if report.ok else 1)


@app.command()
def bench(
    job: Annotated[str, typer.Argument(help="rules, …")],
    game: Annotated[list[str] | None, typer.Option(help="Only this game; may be repeated.")] = None,
    seconds: Annotated[float, typer.Option(help="Time for each of the five measurements.")] = 0.5,
    json: Json = False,
) -> None:
    """Measure speed, beside a peer in the same run where one is installed."""
    from benchmarks import JOBS
    from selfplay import console

    if job not in JOBS:
        raise InputError(f"unknown benchmark {job!r}; benchmarks: {', '.join(JOBS)}")
    rows = JOBS[job](game, seconds, lambda text: console.err.print(text, style="dim"))
    if json:
        console.print_json({"rows": rows})
        return
    texts = [
        [r["job"], r["game"], r["unit"], _number(r["ours"]), r["peer"] or "", _number(r["theirs"]), _ratio(r["ratio"])]
        for r in rows
    ]
    console.table("", ["job", "game", "unit", "ours", "peer", "theirs", "ratio"], texts)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}x"


def main() -> None:
    """Entry point: bad input ends in one sentence and exit code 2."""
    from selfplay.console import announce_compilation

    try:
        announce_compilation()
        app()
    except InputError as error:
        sys.stderr.write(f"selfplay: {error}\n")
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(1)


if __name__ == "__main__":
    main()
