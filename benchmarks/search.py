"""Classical search: what each addition to alpha-beta saves, what Star1 and Star2 save, speed beside OpenSpiel's
alpha-beta, and how exactly limits are kept."""

import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from envs.game import CHANCE, Game, State, advance
from envs.playouts import buffers
from envs.registry import make
from envs.rng import generator
from models.evaluation import Nothing, make_evaluation
from selfplay.perft import perft
from selfplay.play import roll
from selfplay.search.deepening import PLAIN, AlphaBeta, Switches
from selfplay.search.expectiminimax import Expectiminimax
from selfplay.search.result import Limits

Row = dict[str, Any]
ABLATION_DEPTH = {"tic_tac_toe": 9, "connect_four": 10, "othello": 10, "checkers": 9, "chess": 6}
# OpenSpiel's name, its depth and ours without additions: deep enough to measure.
SPEED = {"connect_four": ("connect_four", 8, 14), "othello": ("othello", 6, 11), "chess": ("chess", 4, 7)}
CHANCE_DEPTH = {"backgammon": 2, "pig": 6}
BALLARD = {"Star1": "Ballard 1983: 25 to 30 % saved", "Star2": "Ballard 1983: over 50 % saved, unordered"}
REPEATS = 5


def bench_search(games: list[str] | None, seconds: float, tell: Callable[[str], None]) -> list[Row]:
    """All rows of `selfplay bench search`."""
    rows: list[Row] = []
    for name, depth in ABLATION_DEPTH.items():
        if not games or name in games:
            tell(f"{name}: what each addition saves at depth {depth} …")
            rows += ablation(name, depth)
    for name, depth in CHANCE_DEPTH.items():
        if not games or name in games:
            tell(f"{name}: Star1 and Star2 at depth {depth} …")
            rows += stars(name, depth)
    for name in SPEED:
        if not games or name in games:
            tell(f"{name}: nodes/s …")
            rows += speed(name, seconds)
    if not games or "connect_four" in games:
        rows += limits()
    return rows


def row(job: str, game: str, unit: str, ours: float, **more: Any) -> Row:
    return {"job": job, "game": game, "unit": unit, "ours": ours, "peer": None, "theirs": None, "ratio": None, **more}


# --- what each addition saves ------------------------------------------------------------------------


def ablation(name: str, depth: int) -> list[Row]:
    """Nodes to a fixed depth as each exact addition is switched on, on top of those before."""
    game = make(name)
    minimax = sum(perft(game, d).nodes for d in range(depth + 1))
    # Knuth and Moore 1975: with perfect order about the square root of the leaves; b is the mean branching factor.
    minimum = perft(game, depth).nodes ** 0.5
    switches, rows = replace(PLAIN), []
    steps = [f.name for f in fields(Switches) if f.name in _EXACT]
    for step in ["", *steps]:
        if step:
            switches = replace(switches, **{step: getattr(Switches(), step)})
        searcher = AlphaBeta(game, make_evaluation("linear", game), Limits(depth=depth), switches)
        searcher.search(game.new()[0])
        searcher.reset()
        result = searcher.search(game.new()[0])
        note = f"{1000 * result.seconds:.1f} ms, {result.nodes / minimum:.2f} x the minimum b^(d/2) = {minimum:,.0f}"
        rows.append(
            row(
                f"+ {step}" if step else "plain alpha-beta",
                name,
                f"nodes to depth {depth}",
                result.nodes,
                peer="minimax",
                theirs=minimax,
                ratio=minimax / result.nodes,
                seconds=result.seconds,
                minimum=minimum,
                times_minimum=result.nodes / minimum,
                note=note,
            )
        )
    return rows


_EXACT = ("deepening", "table", "symmetry", "order", "killers", "history", "sort", "pvs", "aspiration")


def stars(name: str, depth: int) -> list[Row]:
    """Nodes with Star1 and Star2, without a table, beside the exhaustive search's, over a few positions."""
    game, states = make(name), []
    for seed in range(5):
        states.append(_some_position(game, seed))
    variants = {
        "exhaustive": {"prune": False},
        "alpha-beta": {"star1": False, "star2": False},
        "Star1": {"star2": False},
        "Star2": {},
        "Star2 and table": {"table": True},
    }
    counts, took = {}, {}
    for variant, options in variants.items():
        searcher = Expectiminimax(
            game,
            make_evaluation("linear", game),
            Limits(depth=depth),
            **{"table": False, **options},  # type: ignore[arg-type]
        )
        results = []
        for state in states:
            searcher.reset()
            results.append(searcher.search(state))
        counts[variant], took[variant] = sum(r.nodes for r in results), sum(r.seconds for r in results)
    rows = []
    for variant, nodes in counts.items():
        saved = 1 - nodes / counts["exhaustive"]
        note = f"{1000 * took[variant]:.1f} ms, {100 * saved:.0f} % saved"
        if variant in BALLARD:
            note += f" ({BALLARD[variant]})"
        rows.append(
            row(
                variant,
                name,
                f"nodes to depth {depth}",
                nodes,
                peer="exhaustive",
                theirs=counts["exhaustive"],
                ratio=counts["exhaustive"] / nodes,
                saved=saved,
                note=note,
            )
        )
    return rows


def _some_position(game: Game, seed: int) -> State:
    """A position some random plies into the game where a player chooses."""
    rng, (out, probabilities) = generator(seed), buffers(game)
    state, plies = game.new()[0], 0
    while plies < 4 * seed or int(game.player(state)) < 0:
        if int(game.player(state)) == CHANCE:
            advance(game, state, roll(game, state, out, probabilities, rng))
        else:
            advance(game, state, int(out[: game.actions(state, out)][seed % game.actions(state, out)]))
        plies += 1
    return state


# --- speed -------------------------------------------------------------------------------------------


def speed(name: str, seconds: float) -> list[Row]:
    """Nodes/s beside OpenSpiel's alpha-beta (Python over C++ rules), which knows no addition and no evaluation: first
    ours without them too, then with all exact additions and the game's evaluation."""
    game = make(name)
    spiel_name, depth, plain_depth = SPEED[name]
    plain = AlphaBeta(game, Nothing(), Limits(depth=plain_depth), PLAIN)
    full = AlphaBeta(game, make_evaluation("linear", game), Limits(seconds=seconds))
    peer = _open_spiel_alpha_beta(spiel_name, depth)
    theirs, mine = [], {"plain": [], "full": []}  # type: ignore[var-annotated]
    for repeat in range(REPEATS + 1):
        for label, searcher in (("plain", plain), ("full", full)):
            searcher.reset()
            result = searcher.search(game.new()[0])
            if repeat > 0:  # the first round warms up
                mine[label].append(result.nodes / result.seconds)
        if peer is not None:
            theirs.append(peer())
    other = statistics.median(theirs) if theirs else None
    rows, notes = (
        [],
        {"plain": f"no additions, leaves worth 0, depth {plain_depth}", "full": "everything, own evaluation"},
    )
    for label, rates in mine.items():
        ours = statistics.median(rates)
        more = {"peer": "open_spiel", "theirs": other, "ratio": ours / other} if other else {}
        rows.append(row(f"alphabeta, {label}", name, "nodes/s", ours, **more, note=notes[label]))
    return rows


def _open_spiel_alpha_beta(name: str, depth: int) -> Callable[[], float] | None:
    try:
        import pyspiel
        from open_spiel.python.algorithms import minimax
    except ImportError:
        return None
    game = pyspiel.load_game(name)
    counted = [0]
    plain = minimax._alpha_beta

    def counting(*arguments: Any, **named: Any) -> Any:
        counted[0] += 1
        return plain(*arguments, **named)

    def search() -> None:
        minimax.alpha_beta_search(game, value_function=lambda state: 0, maximum_depth=depth)

    minimax._alpha_beta = counting  # counted once; the timed runs are left as they are
    search()
    minimax._alpha_beta = plain

    def measure() -> float:
        started = time.perf_counter()
        search()
        return counted[0] / (time.perf_counter() - started)

    return measure


# --- limits ------------------------------------------------------------------------------------------


def limits() -> list[Row]:
    """How late a search ends after its time is up, and after another thread says stop; the worst of twenty."""
    game = make("connect_four")
    evaluation = make_evaluation("linear", game)
    late, slow = [], []
    timed = AlphaBeta(game, evaluation, Limits(seconds=0.2))
    timed.search(game.new()[0])
    for _ in range(20):
        timed.reset()
        started = time.perf_counter()
        timed.search(game.new()[0])
        late.append(time.perf_counter() - started - 0.2)
    endless = AlphaBeta(game, evaluation, Limits())
    for _ in range(20):
        endless.reset()
        said: list[float] = []

        def stop(said: list[float] = said) -> None:
            said.append(time.perf_counter())
            endless.stop()

        timer = threading.Timer(0.05, stop)
        timer.start()
        endless.search(game.new()[0])
        slow.append(time.perf_counter() - said[0])
    return [
        row("time limit of 200 ms", "connect_four", "ms late, worst", 1000 * max(late), note=_median(late)),
        row("stop from a thread", "connect_four", "ms late, worst", 1000 * max(slow), note=_median(slow)),
    ]


def _median(values: list[float]) -> str:
    return f"median {1000 * statistics.median(values):.2f} ms"
