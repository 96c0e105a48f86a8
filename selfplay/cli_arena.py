"""The commands of the arena: match, tournament, replay."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from envs.errors import InputError

GameSpec = Annotated[str, typer.Argument(metavar="GAME", help="connect_four, mnk:rows=5,columns=5,… or my.py:MyGame")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.")]
Seed = Annotated[int, typer.Option(help="Makes everything random repeat.")]
Openings = Annotated[
    int | None, typer.Option(help="Plies of the random openings; by default what gives about a thousand of them.")
]
Workers = Annotated[int, typer.Option(help="Processes that play; 0: one per core.")]
MoveSeconds = Annotated[
    float, typer.Option("--move-seconds", "--seconds-per-move", help="Who thinks longer forfeits; 0: no limit.")
]


def register(app: typer.Typer) -> None:
    """Adds the commands to the command line."""
    app.command()(match)
    app.command()(tournament)
    app.command()(replay)


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM ends a match as Ctrl-C does: what has been played is reported, and nothing half-written is left."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def match(
    game: GameSpec,
    agents: Annotated[
        list[str], typer.Argument(metavar="A B", help="The two agents; one alone where the game has one player.")
    ],
    games: Annotated[int, typer.Option(help="How many; each opening is played from both sides.")] = 100,
    seed: Seed = 0,
    openings: Openings = None,
    workers: Workers = 0,
    sprt: Annotated[str | None, typer.Option(metavar="ELO0,ELO1", help="Stop as soon as one is accepted.")] = None,
    alpha: Annotated[float, typer.Option(help="SPRT: the chance to accept ELO1 wrongly.")] = 0.05,
    beta: Annotated[float, typer.Option(help="SPRT: the chance to accept ELO0 wrongly.")] = 0.05,
    move_seconds: MoveSeconds = 0.0,
    save: Annotated[Path | None, typer.Option(help="A .jsonl, .pgn or .sgf file, or a folder for all.")] = None,
    json: Json = False,
) -> None:
    """Who is stronger? Paired games on all cores, with intervals. One agent of a game for one player: its score.

    With three players or more A sits in every seat in turn, against copies of B."""
    if len(agents) == 1 and sprt is None and save is None and openings is None and _players(game) == 1:
        _score_alone(game, agents[0], games, seed, workers, move_seconds, json)
        return
    from selfplay import console
    from selfplay.arena import Tally
    from selfplay.arena import match as play_match
    from selfplay.paired_score import SPRT
    from selfplay.progress import Report

    if len(agents) != 2:
        raise InputError(f"a match needs 2 agents, not {len(agents)}: {' '.join(agents)}")
    if _players(game) > 2:
        if sprt is not None or save is not None or openings is not None or move_seconds:
            raise InputError(
                f"game {game!r} has {_players(game)} players; --sprt, --save, --openings and --move-seconds are for two"
            )
        _match_of_many(game, agents, games, seed, workers, json)
        return
    test = SPRT.parse(sprt, alpha, beta) if sprt is not None else None
    with _terminated_like_interrupted(), Report(f"{agents[0]} - {agents[1]}") as report:

        def progress(tally: Tally, total: int) -> None:
            wins, draws, losses = tally.counts
            done = len(tally.games)
            score = (wins + draws / 2) / done if done else 0.5
            ratio = f", LLR {test.ratios(tally.pairs)[-1]:+.2f}" if test and tally.pairs else ""
            report.update(done, total, f"+{wins} ={draws} -{losses}, {100 * score:.1f} %{ratio}")

        found = play_match(
            game,
            agents[0],
            agents[1],
            games,
            seed=seed,
            plies=openings,
            workers=workers,
            sprt=test,
            move_seconds=move_seconds,
            save=save,
            progress=progress,
            tell=report.tell,
        )
    if json:
        console.print_json(found)
    else:
        _print_match(found)
    if found["stopped"]:
        raise typer.Exit(130)


def _players(game: str) -> int:
    from envs.registry import make

    return make(game).num_players


def _match_of_many(game: str, agents: list[str], games: int, seed: int, workers: int, json: bool) -> None:
    """One agent in every seat in turn, the other one in all other seats."""
    from selfplay import console
    from selfplay.progress import Report
    from selfplay.train.evaluations import sentence
    from selfplay.train.judge import play
    from selfplay.workers import available_cores

    with _terminated_like_interrupted(), Report(f"{agents[0]} - {agents[1]}") as report:

        def progress(done: int, total: int) -> None:
            report.update(done, total, "games played")

        found = play(game, agents, games, seed, workers or available_cores(), progress)
    if json:
        console.print_json({**found, "elo": None})  # between two agents at a table of three there is none
        return
    console.out.print(f"{agents[0]}: {found['games']} games, in every seat in turn", markup=False, soft_wrap=True)
    console.out.print(sentence(f"copies of {agents[1]}", found), markup=False, soft_wrap=True)
    for line in found["forfeits"]:
        console.out.print(f"forfeit     {line}", markup=False, soft_wrap=True)


def _score_alone(game: str, agent: str, games: int, seed: int, workers: int, move_seconds: float, json: bool) -> None:
    """What one agent scores alone against chance."""
    from selfplay import console
    from selfplay.alone import scores
    from selfplay.progress import Report

    with _terminated_like_interrupted(), Report(agent) as report:

        def progress(points: list[float], total: int) -> None:
            report.update(len(points), total, f"{sum(points) / len(points):,.0f} points a game")

        found = scores(
            game,
            agent,
            games,
            seed=seed,
            workers=workers,
            move_seconds=move_seconds,
            progress=progress,
            tell=report.tell,
        )
    if json:
        console.print_json(found)
    elif found["games"]:
        _print_alone(found)
    if found["stopped"]:
        raise typer.Exit(130)


def _print_alone(found: dict[str, Any]) -> None:
    from selfplay import console

    def say(text: str) -> None:
        console.out.print(text, markup=False, soft_wrap=True)

    interval = ""
    if found["interval"]:
        low, high = found["interval"]
        interval = f"  (95 %: {low:,.1f} to {high:,.1f})"
    say(f"{found['agents'][0]}: {found['games']} games")
    say(f"points      {found['points']:,.1f} per game{interval}")
    say(f"            median {found['median']:,.1f}, from {found['least']:,.1f} to {found['most']:,.1f}")
    made = [f"{tile} {100 * share:.1f} %" for tile, share in found["tiles"].items() if share]
    if made:
        say(f"tiles made  {', '.join(made)}")
    say(f"per move    {_time(found['seconds_per_move'])}")
    _print_forfeits(found)
    if found["stopped"]:
        say("stopped before the end")


def _print_match(found: dict[str, Any]) -> None:
    from selfplay import console

    def say(text: str) -> None:
        console.out.print(text, markup=False, soft_wrap=True)

    a, b = found["agents"]
    low, high = (100 * bound for bound in found["interval"])
    say(f"{a} against {b}: {found['games']} games, {found['wins']} won, {found['draws']} drawn, {found['losses']} lost")
    say(f"score       {100 * found['score']:.1f} %  (95 %: {low:.1f} to {high:.1f})")
    elo_low, elo_high = (_elo(bound, sign) for bound, sign in zip(found["elo_interval"], "-+", strict=True))
    say(f"Elo         {found['elo']:+.0f}  (95 %: {elo_low} to {elo_high})")
    say(f"superior    {100 * found['superiority']:.1f} % likely")
    if found.get("first_player_score") is not None:
        say(f"first move  scored {100 * found['first_player_score']:.1f} %")
    points = found["points"]
    if None not in points and (len(set(map(abs, points))) > 1 or max(points) > 1):
        say(f"points      {points[0]:.3f} against {points[1]:.3f} per game")
    if found["sprt"]:
        test = found["sprt"]
        verdict = {
            None: "undecided",
            "elo0": f"{test['elo0']:g} Elo accepted",
            "elo1": f"{test['elo1']:g} Elo accepted",
        }
        bounds = f"{test['bounds'][0]:.2f} to {test['bounds'][1]:.2f}"
        say(f"SPRT        LLR {test['llr']:+.2f} (bounds {bounds}): {verdict[test['accepted']]}")
    times = [f"{spec} {_time(value)}" for spec, value in zip((a, b), found["seconds_per_move"], strict=True)]
    say(f"per move    {', '.join(times)}")
    say(_repeats(found))
    _print_forfeits(found)
    if found["stopped"]:
        say("stopped before the end")


def _repeats(found: dict[str, Any]) -> str:
    """What is to be said of games that are the same move for move."""
    repeats, games = found["repeated_games"], found["repeated_games"] + found["distinct_games"]
    plies = found["opening_plies"]
    if not repeats:
        return "openings    every game is different from all others"
    return (
        f"openings    {repeats} of {games} games repeat another one move for move and say nothing new; "
        f"{found['openings']} different openings of {plies} plies were played (longer ones: --openings {plies + 2})"
    )


def _print_forfeits(found: dict[str, Any]) -> None:
    from selfplay import console

    for forfeit in found["forfeits"][:20]:
        text = f"forfeit     game {forfeit['game']}, move {forfeit['ply']}: {forfeit['agent']}"
        console.out.print(f"{text}: {forfeit['kind']}: {forfeit['reason']}", markup=False, soft_wrap=True)
    if len(found["forfeits"]) > 20:
        console.out.print(f"            and {len(found['forfeits']) - 20} more forfeits")


def _elo(value: float | None, sign: str) -> str:
    return f"{sign}infinite" if value is None else f"{value:+.0f}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "no moves"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.2f} s"


def tournament(
    game: GameSpec,
    agents: Annotated[list[str], typer.Argument(metavar="AGENTS", help="Two or more agents.")],
    games_per_pair: Annotated[int, typer.Option(help="For every two agents (n players: every n).")] = 20,
    gauntlet: Annotated[bool, typer.Option("--gauntlet", help="Only the first agent against all others.")] = False,
    anchor: Annotated[str | None, typer.Option(help="The agent that has 0 Elo; by default the first.")] = None,
    file: Annotated[Path | None, typer.Option(help="Keeps the games; the same command goes on from there.")] = None,
    seed: Seed = 0,
    openings: Openings = None,
    workers: Workers = 0,
    move_seconds: MoveSeconds = 0.0,
    json: Json = False,
) -> None:
    """Everybody against everybody, ending in a table of ratings."""
    from selfplay import console
    from selfplay.matches import GameRecord
    from selfplay.progress import Report
    from selfplay.tournament import tournament as play_tournament

    with _terminated_like_interrupted(), Report(f"tournament of {len(agents)}") as report:

        def progress(records: list[GameRecord], total: int) -> None:
            report.update(len(records), total, f"{sum(r.forfeit is not None for r in records)} forfeits")

        found = play_tournament(
            game,
            agents,
            games_per_pair,
            gauntlet=gauntlet,
            anchor=anchor,
            seed=seed,
            plies=openings,
            workers=workers,
            move_seconds=move_seconds,
            file=file,
            progress=progress,
            tell=report.tell,
        )
    if json:
        console.print_json(found)
    else:
        _print_standings(found)
    if found["stopped"]:
        raise typer.Exit(130)


def _print_standings(found: dict[str, Any]) -> None:
    from selfplay import console

    rated = "elo" in found["rows"][0]
    columns = ["", "agent", *(["Elo", "95 %"] if rated else ["points", "95 %"]), "games"]
    columns += ["won", "drawn", "lost", "score"] if rated else []
    columns += ["per move"]
    rows = []
    for place, row in enumerate(found["rows"], 1):
        if rated:
            low, high = row["interval"]
            width = "anchor" if low == high else f"{low:+.0f} to {high:+.0f}"
            score = "" if row["score"] is None else f"{100 * row['score']:.1f} %"
            value, counts = f"{row['elo']:+.0f}", [str(row[name]) for name in ("wins", "draws", "losses")] + [score]
        else:
            width = "" if row["interval"] is None else f"{row['interval'][0]:.2f} to {row['interval'][1]:.2f}"
            value, counts = "" if row["points"] is None else f"{row['points']:.2f}", []
        cells = [str(place), row["agent"], value, width, str(row["games"]), *counts, _time(row["seconds_per_move"])]
        rows.append(cells)
    console.table(f"{found['game']}: {found['games']} games", columns, rows)
    for seat, advantage in enumerate(found["advantages"], 1):
        low, high = advantage["interval"]
        text = (
            f"seat {seat} is worth {advantage['elo']:+.0f} Elo (95 %: {low:+.0f} to {high:+.0f}) against the last seat"
        )
        console.out.print(text, markup=False)
    console.out.print(_repeats(found).replace("openings    ", ""), markup=False, soft_wrap=True)
    _print_forfeits(found)
    if found["stopped"]:
        console.out.print("stopped before the end; the same command goes on, if it has a --file")


def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What match --save or tournament --file wrote.")],
    game_number: Annotated[int, typer.Option(help="Which game of the file to show.")] = 1,
    json: Json = False,
) -> None:
    """Show a saved game move by move, after a check of every move of every game in the file."""
    from rich.text import Text

    from envs.game import TERMINAL
    from envs.registry import make
    from selfplay import console
    from selfplay.records import load, mover_name, replayed

    games = load(file)
    if not 1 <= game_number <= len(games):
        raise InputError(f"--game-number {game_number} must be from 1 to {len(games)}, the games in {file}")
    for number, saved in enumerate(games, 1):
        for _ in replayed(saved, f"{file}, game {number}", named=False):
            pass
    saved = games[game_number - 1]
    game = make(saved.game_spec)
    steps = list(replayed(saved, f"{file}, game {game_number}"))
    if json:
        data = {"games": len(games), "game_number": game_number, "game": saved.game_spec, "agents": saved.agents}
        moves = {"moves": [name for _, name, _ in steps[1:]], "actions": saved.actions}
        console.print_json({**data, **moves, "utilities": saved.utilities, "forfeit": saved.forfeit})
        return

    def say(text: str) -> None:
        sys.stdout.write((text if sys.stdout.isatty() else Text.from_ansi(text).plain) + "\n")

    say(f"game {game_number} of {len(games)}, {saved.game_spec}: {', '.join(saved.agents)}; all moves are legal")
    for ply, (mover, name, state) in enumerate(steps):
        say(
            game.show(state)
            if mover == TERMINAL
            else f"\n{ply}. {mover_name(saved, mover)}: {name}\n{game.show(state)}"
        )
    if saved.forfeit:
        loser = saved.agents[saved.forfeit["seat"]]
        say(f"\n{loser} forfeits: {saved.forfeit['kind']}: {saved.forfeit['reason']}")
    elif saved.utilities is not None:
        say("\nresult: " + ", ".join(f"{u:g}" for u in saved.utilities))
