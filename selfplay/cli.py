"""The command line: thin commands over functions that a program can call too."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from envs.errors import InputError
from selfplay import cli_arena, cli_book, cli_linear, cli_tables, cli_train

app = typer.Typer(
    name="selfplay",
    help="Train game-playing agents by self-play, and judge them with real classical search.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(cli_tables.app, name="tables")
app.add_typer(cli_book.book, name="book")

GameSpec = Annotated[str, typer.Argument(metavar="GAME", help="connect_four, mnk:rows=5,columns=5,… or my.py:MyGame")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.")]
Seed = Annotated[int, typer.Option(help="Makes everything random repeat.")]
Position = Annotated[str | None, typer.Option(help="Where to start, in the game's own notation.")]


cli_arena.register(app)
cli_train.register(app)
cli_linear.register(app)


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
    agents: Annotated[list[str], typer.Argument(metavar="AGENTS", help="One agent per player: human, random, …")],
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
    depth: Annotated[int, typer.Argument(metavar="DEPTH", help="How many moves.")],
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
            console.out.print(f"broken: {b}", markup=False, soft_wrap=True)
    raise typer.Exit(0 if report.ok else 1)


@app.command()
def analyze(
    game: GameSpec,
    agent: Annotated[str, typer.Option(help="Who thinks: alphabeta:depth=8, mcts:simulations=1000, …")],
    position: Position = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """What an agent thinks of a position: its move, the value, the line it expects, and the other moves."""
    from envs.registry import make
    from selfplay import analysis, console

    found = analysis.analyze(make(game), agent, position, seed)
    if json:
        console.print_json(found)
        return
    columns = ["move", "value", "visits", "line"]
    console.table("", columns, analysis.rows(found))
    rate = found["nodes"] / max(found["seconds"], 1e-9)
    proven = ", proven" if found["proven"] else ""
    console.out.print(
        f"{found['move']}  value {found['value']:+.4f}{proven}, depth {found['depth']}, {found['nodes']:,} nodes in "
        f"{found['seconds']:.2f} s ({rate / 1e6:.2f} M nodes/s)",
        markup=False,
    )


@app.command()
def explain(
    game: Annotated[
        str | None, typer.Argument(metavar="[GAME]", help="Instead of --tree: a game's first plies.")
    ] = None,
    tree: Annotated[str | None, typer.Option(help="[[3,12,8],[2,4,6],[14,5,2]], or a .toml or .json file.")] = None,
    levels: Annotated[str, typer.Option(help="Who moves on the tree's levels: max-chance-min, 1-2-3.")] = "",
    players: Annotated[int, typer.Option(help="The tree's players, where it does not say so itself.")] = 0,
    algorithm: Annotated[
        str, typer.Option(help="minimax, alphabeta, expectimax, expectiminimax, star1, maxn, paranoid or mcts.")
    ] = "",
    position: Position = None,
    depth: Annotated[
        int | None, typer.Option(help="Plies; 0: to the end. A game is drawn 2 deep, a tree whole.")
    ] = None,
    simulations: Annotated[int, typer.Option(help="Of mcts.")] = 20,
    c: Annotated[float, typer.Option(help="UCB1's constant.")] = 2**0.5,
    evaluation: Annotated[str, typer.Option("--eval", help="At the depth's end: linear, none, or a file.")] = "linear",
    seed: Seed = 0,
    output: Annotated[str | None, typer.Option(help="A file to write: .html, .svg or .json.")] = None,
    step: Annotated[int | None, typer.Option(help="The .svg shows, the .html opens with this step.")] = None,
    steps: Annotated[bool, typer.Option("--steps", help="Print every step.")] = False,
    json: Json = False,
) -> None:
    """Show a search step by step, as lectures draw it: on a page, as a picture and as text."""
    from pathlib import Path

    from selfplay import console
    from selfplay.explain import command, report
    from selfplay.explain.search import Options

    path = command.checked_output(output) if output else None
    options = Options(algorithm, 0, simulations, c, evaluation, seed)
    explained = command.run(game, tree, levels, players, position, depth, options)
    if path is None and not json and command.is_drawn(explained):
        path = Path(f"explain-{explained.name}.html")
    if path is not None:
        command.write(explained, path, step)
    if json:
        console.print_json(report.data(explained.trace))
        return
    text = report.steps_text(explained.trace) if steps else report.tree_text(explained.trace)
    lines = [*text, "", *report.summary(explained.trace)]
    sys.stdout.write("\n".join([*lines, f"written: {path}" if path else command.too_many(explained)]) + "\n")


@app.command()
def solve(
    game: GameSpec,
    position: Position = None,
    nodes: Annotated[int, typer.Option(help="Give up after so many nodes; 0: no such limit.")] = 0,
    seconds: Annotated[
        float | None, typer.Option(help="Give up after that time; 0: never. [default: the solver's own patience]")
    ] = None,
    megabytes: Annotated[
        float | None, typer.Option(help="Memory for the table of positions. [default: 512 for Connect Four, else less]")
    ] = None,
    method: Annotated[
        str, typer.Option(help="auto: the game's own solver if there is one; search: none of those.")
    ] = "auto",
    all_moves: Annotated[bool, typer.Option("--all-moves", help="The other moves' exact values, too.")] = False,
    json: Json = False,
) -> None:
    """The exact value of a position, how far away the end is, and all best moves."""
    from envs.registry import make
    from selfplay import console, solving

    found = solving.solve(make(game), position, nodes, seconds, megabytes, method, all_moves)
    if json:
        console.print_json(found)
        return
    if all_moves:
        console.table("", ["move", "value", "plies", "score", ""], solving.rows(found))
    console.out.print(solving.sentence(found), markup=False, soft_wrap=True)


@app.command()
def score(
    game: GameSpec,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="Whom to judge: alphabeta:depth=8, random, …")],
    positions: Annotated[Path | None, typer.Option(help="A file of positions, one per line; else generated.")] = None,
    count: Annotated[int, typer.Option(help="How many positions to generate.")] = 200,
    games: Annotated[int, typer.Option(help="Games against perfect, half of them as first player.")] = 20,
    first: Annotated[int | None, typer.Option(help="Positions with at least so many plies.")] = None,
    last: Annotated[int | None, typer.Option(help="Positions with at most so many plies.")] = None,
    megabytes: Annotated[float | None, typer.Option(help="Memory for the solver's table.")] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Judge an agent by exact truth: the share of its moves that keep the game-theoretic value."""
    from envs.registry import make
    from selfplay import console, scoreboard

    made = make(game)
    note = lambda text: console.err.print(text, style="dim")
    found = scoreboard.score(made, agent, positions, count, seed, games, first, last, megabytes, note)
    if json:
        console.print_json(found)
        return
    console.table("", ["phase", "positions", "kept", "critical", "kept there", "value error"], scoreboard.rows(found))
    for line in scoreboard.sentences(found):
        console.out.print(line, markup=False, soft_wrap=True)


@app.command()
def bench(
    job: Annotated[str, typer.Argument(metavar="JOB", help="rules, …")],
    game: Annotated[list[str] | None, typer.Option(help="Only this game; may be repeated.")] = None,
    seconds: Annotated[float, typer.Option(help="Time for each of the five measurements.")] = 0.5,
    json: Json = False,
) -> None:
    """Measure speed, beside a peer in the same run where one is installed."""
    from benchmarks import JOBS
    from selfplay import console

    if job not in JOBS:
        raise InputError(f"unknown benchmark {job!r}; benchmarks: {', '.join(JOBS)}")
    if not 0 < seconds < float("inf"):
        raise InputError(f"--seconds must be more than 0, not {seconds}")
    rows = JOBS[job](game, seconds, lambda text: console.err.print(text, style="dim"))
    if json:
        console.print_json({"rows": rows})
        return
    columns = ["job", "game", "unit", "ours", "peer", "theirs", "ratio", "note"]
    texts = [
        [
            r["job"],
            r["game"],
            r["unit"],
            _number(r["ours"]),
            r["peer"] or "",
            _number(r["theirs"]),
            _ratio(r["ratio"]),
            r.get("note", ""),
        ]
        for r in rows
    ]
    console.table("", columns, texts)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}x"


def main() -> None:
    """Entry point: bad input ends in one sentence and exit code 2."""
    from numba.core.errors import NumbaError

    from selfplay.console import announce_compilation

    try:
        announce_compilation()
        app(prog_name="selfplay")
    except InputError as error:
        sys.stderr.write(f"selfplay: {error}\n")
        sys.exit(2)
    except NumbaError as error:
        from envs.check import error_cause

        sys.stderr.write(f"selfplay: the game does not compile: {error_cause(error)} ('selfplay check' says more)\n")
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(1)
    except OSError as error:  # a full disk behind standard output, or a file that cannot be read or written
        import os

        sys.stderr.write(f"selfplay: {error.filename or 'standard output'}: {error.strerror or error}\n")
        if error.filename is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what waits in the buffer would fail again at the end
        sys.exit(2)


if __name__ == "__main__":
    main()
