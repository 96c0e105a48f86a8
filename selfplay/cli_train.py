"""The commands of training: train, runs, report, export."""

import os
from json import dumps as json_text
from pathlib import Path
from typing import Annotated, Any

import typer

from envs.errors import InputError

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.")]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")]


def register(app: typer.Typer) -> None:
    """Adds the commands to the command line."""
    app.command()(train)
    app.command()(runs)
    app.command()(report)
    app.command()(export)


def train(
    game: Annotated[str | None, typer.Argument(metavar="GAME", help="connect_four, … or my_game.py:MyGame")] = None,
    method: Annotated[
        str, typer.Option(help="alphazero: a network; linear: an evaluation for the classical searches.")
    ] = "alphazero",
    minutes: Annotated[float, typer.Option(help="How long; 0: no such limit.")] = 0.0,
    games: Annotated[int, typer.Option(help="How many games of self-play; 0: no such limit.")] = 0,
    steps: Annotated[int, typer.Option(help="How many gradient steps; 0: no such limit.")] = 0,
    resume: Annotated[Path | None, typer.Option(metavar="RUN", help="Go on with this run.")] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file with settings.")] = None,
    set: Annotated[list[str] | None, typer.Option(help="One setting, such as search.simulations=64.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda.")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Self-play processes; 0: one per core; 1: exactly repeatable.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Makes everything random repeat.")] = None,
    teacher: Annotated[
        str | None, typer.Option(metavar="AGENT", help="Learn from this agent's games first: alphabeta:depth=8, …")
    ] = None,
    teacher_games: Annotated[int | None, typer.Option(help="How many games it plays.")] = None,
    runs: Annotated[Path | None, typer.Option(help="Where runs go; by default ./runs.")] = None,
    evaluate: Annotated[bool, typer.Option(help="Evaluate at the end.")] = True,
    json: Json = False,
) -> None:
    """Train an agent from scratch by self-play."""
    # Threads that wait by spinning starve each other as soon as anything else runs; read when torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from selfplay import console
    from selfplay.train.config import resolve
    from selfplay.train.loop import Limits, config_of
    from selfplay.train.loop import train as train_network
    from selfplay.train.runs import Run

    if (game is None) == (resume is None):
        raise InputError("train needs a game, or --resume RUN, and not both")
    if min(minutes, games, steps) < 0:
        raise InputError("--minutes, --games and --steps must be 0 or more")
    if method not in ("alphazero", "linear"):
        raise InputError(f"unknown method {method!r}; methods: alphazero, linear")
    set = [*(set or []), *_teacher_settings(teacher, teacher_games, resume)]
    console.announce_compilation()
    if method == "linear" or (resume is not None and Run(resume).head().get("method") == "linear"):
        if device is not None:
            raise InputError("--device is for --method alphazero")
        wanted = Limits(minutes or (0.0 if games or steps or resume else 15.0), games, steps)
        _train_linear(game, wanted, resume, config, set, workers, seed, runs, evaluate, json)
        return
    if resume is not None:
        run = Run.open(resume)
        game_spec, _, settings, limits = config_of(run)
        if minutes or games or steps:
            limits = Limits(minutes, games, steps)
        path = train_network(game_spec, settings, limits, final_evaluation=evaluate, resume=run)
    else:
        from envs.registry import make

        assert game is not None
        game_spec = game
        settings = resolve(make(game), config, set, device=device, workers=workers, seed=seed)
        if teacher_games is not None and not settings.teacher.agent:
            raise InputError("--teacher-games needs --teacher AGENT")
        limits = Limits(minutes or (0.0 if games or steps else 15.0), games, steps)
        path = train_network(game, settings, limits, runs, evaluate)
    if json:
        from selfplay.train.report import summary_of

        console.print_json({"run": str(path), **summary_of(path)})
        return
    console.out.print(f"run: {path}", markup=False, soft_wrap=True)
    playable = any((path / "checkpoints").glob("[0-9]*"))  # not where Ctrl-C came first
    agent = f"alphazero:checkpoint={path}"
    play = (("play against it", f"selfplay play {game_spec} human {agent}"),) if playable else ()
    for what, command in (
        *play,
        ("its curves", f"tensorboard --logdir {path.parent}"),
        ("a page about it", f"selfplay report {path}"),
        ("go on", f"selfplay train --resume {path} --minutes {round(2 * limits.minutes) or 30}"),
    ):
        console.out.print(f"{what + ':':17}{command}", markup=False, soft_wrap=True)


def _teacher_settings(agent: str | None, games: int | None, resume: Path | None) -> list[str]:
    """`--teacher` and `--teacher-games` as settings."""
    if resume is not None and (agent is not None or games is not None):
        raise InputError("a run that is resumed keeps its teacher: leave --teacher and --teacher-games out")
    if agent is not None and not agent.strip():
        raise InputError("--teacher needs an agent, such as alphabeta:depth=8")
    if games is not None and games < 1:
        raise InputError(f"--teacher-games {games} must be 1 or more")
    found = [f"teacher.agent={json_text(agent)}"] if agent is not None else []
    return found + ([f"teacher.games={games}"] if games is not None else [])


def _train_linear(
    game: str | None,
    limits: Any,
    resume: Path | None,
    config: Path | None,
    settings: list[str] | None,
    workers: int | None,
    seed: int | None,
    folder: Path | None,
    evaluate: bool,
    json: bool,
) -> None:
    from envs.registry import make
    from models.evaluation import read_toml
    from selfplay import console
    from selfplay.train.config import merged, setting
    from selfplay.train.linear.method import agent_spec, settings_of_run
    from selfplay.train.linear.method import train as train_linear
    from selfplay.train.linear.settings import settings_of
    from selfplay.train.runs import Run

    if resume is not None:
        run = Run.open(resume)
        spec, chosen, before = settings_of_run(run)
        limits = limits if limits.minutes or limits.games or limits.steps else before
        path = train_linear(spec, chosen, limits, final_evaluation=evaluate, resume=run)
    else:
        assert game is not None
        spec = game
        changes = dict(read_toml(config).get("linear", {})) if config is not None else {}
        for text in settings or []:
            changes = merged(changes, setting(text))
        changes |= {key: value for key, value in (("workers", workers), ("seed", seed)) if value is not None}
        chosen = settings_of(make(spec), changes)
        if "games" in changes.get("teacher", {}) and not chosen.teacher.agent:
            raise InputError("--teacher-games needs --teacher AGENT")
        path = train_linear(spec, chosen, limits, folder, evaluate)
    if json:
        from selfplay.train.report import summary_of

        console.print_json({"run": str(path), **summary_of(path)})
        return
    made = make(spec)
    depth = 6 if made.num_players == 2 and not made.has_chance else 2
    agent, hand = agent_spec(made, str(path), depth), agent_spec(made, "linear", depth)
    console.out.print(f"run: {path}", markup=False, soft_wrap=True)
    against = f"selfplay match {spec} {agent} {hand}"
    for what, command in (
        ("what it learned", f"selfplay weights {path}"),
        ("against hand-made", against) if made.num_players == 2 else ("see it play", f"selfplay play {spec} {agent}"),
        ("its curves", f"tensorboard --logdir {path.parent}"),
        ("a page about it", f"selfplay report {path}"),
        ("go on", f"selfplay train --resume {path} --minutes {round(2 * limits.minutes) or 30}"),
    ):
        console.out.print(f"{what + ':':19}{command}", markup=False, soft_wrap=True)


def runs(
    folder: Annotated[Path, typer.Argument(help="Where the runs are.")] = Path("runs"), json: Json = False
) -> None:
    """The training runs of a folder."""
    from selfplay import console
    from selfplay.train.report import list_runs

    found = list_runs(folder)
    if json:
        console.print_json({"runs": found})
        return
    if not found:
        console.out.print(f"no runs in {folder}; 'selfplay train GAME' makes one", markup=False)
        return
    columns = list(found[0])
    console.table("", columns, [[_cell(row.get(column)) for column in columns] for row in found])


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, dict):
        return ", ".join(f"{k} {_cell(v)}" for k, v in value.items())
    return "" if value is None else str(value)


def report(run: RunPath, out: Annotated[Path | None, typer.Option(help="The HTML file to write.")] = None) -> None:
    """One HTML page with a run's curves and figures."""
    from selfplay import console
    from selfplay.train.report import write_report

    console.out.print(f"report: {write_report(run, out)}", markup=False, soft_wrap=True)


def export(
    run: RunPath,
    onnx: Annotated[Path | None, typer.Option("--onnx", help="The ONNX file to write.")] = None,
    evaluation: Annotated[
        Path | None, typer.Option("--eval", help="A learned evaluation (--method linear): the small folder to write.")
    ] = None,
) -> None:
    """A run's or a checkpoint's network as an ONNX model; a learned evaluation as a small folder."""
    from selfplay import console

    if evaluation is not None:
        from selfplay.cli_linear import export_evaluation

        if onnx is not None:
            raise InputError("--onnx is for networks, --eval for learned evaluations: give one of them")
        console.out.print(export_evaluation(run, evaluation), markup=False, soft_wrap=True)
        return
    from models.checkpoint import load_checkpoint
    from models.export import export_onnx

    found = load_checkpoint(str(run))
    path = onnx or Path(f"{run.name}.onnx")
    export_onnx(found, path)
    console.out.print(f"written: {path} (input: planes; outputs: policy, values)", markup=False, soft_wrap=True)
