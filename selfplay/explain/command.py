"""`selfplay explain` as a function: which game, which file, and what is printed."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from envs.errors import InputError
from envs.game import Game
from envs.registry import make
from models.evaluation import Nothing, make_evaluation
from selfplay.explain import report
from selfplay.explain.draw import MOST_DRAWN, svg
from selfplay.explain.page import page
from selfplay.explain.search import Options, explain
from selfplay.explain.steps import Trace

GAME_DEPTH = 2  # plies of a game that are drawn where nobody says; a tree is drawn to its end
DEFAULTS = Options()
ENDINGS = (".html", ".svg", ".json")


@dataclass(frozen=True)
class Explained:
    """A trace with what it is about."""

    trace: Trace
    name: str
    about: str


def chosen_game(game: str | None, tree: str | None, levels: str, players: int) -> tuple[Game, str]:
    """The game that is explained, and its name for files."""
    if game is not None and tree is not None:
        raise InputError(f"give a game ({game!r}) or --tree, not both")
    if game is not None:
        if levels or players:
            raise InputError(f"--levels and --players belong to --tree, but the game is {game!r}")
        return make(game), re.sub(r"[^\w.-]+", "_", game).strip("_")
    parameters = {"tree": tree} if tree is not None else {}
    return make("game_tree", levels=levels, players=players, **parameters), "tree"


def run(
    game: str | None = None,
    tree: str | None = None,
    levels: str = "",
    players: int = 0,
    position: str | None = None,
    depth: int | None = None,
    options: Options = DEFAULTS,
) -> Explained:
    """The search of a game's first plies, or of a whole tree, step by step."""
    made, name = chosen_game(game, tree, levels, players)
    plies = depth if depth is not None else (GAME_DEPTH if name != "tree" else 0)
    options = Options(**{**vars(options), "depth": plies})
    trace = explain(made, options, position)
    what = f"the tree {made.tree.replace(';', ', ')}" if name == "tree" else game
    about = f"{what}{f', from position {position}' if position else ''}"
    if trace.algorithm == "mcts":
        about += f"; {len(trace.simulations)} simulations, C = {options.c:.4g}"
    elif plies:
        known = not isinstance(make_evaluation(options.evaluation, made), Nothing)
        what = f"EVAL = {options.evaluation}" if known else "EVAL = the middle of the utilities"
        about += f"; {plies} {'ply' if plies == 1 else 'plies'} deep, then {what}"
    return Explained(trace, f"{name}-{trace.algorithm}", about)


def is_drawn(explained: Explained) -> bool:
    return len(explained.trace.tree.nodes) <= MOST_DRAWN


def too_many(explained: Explained) -> str:
    """What to do about a tree that can't be drawn."""
    count = len(explained.trace.tree.nodes)
    fewer = "fewer --simulations" if explained.trace.visits else "a smaller --depth"
    return f"a tree of {count:,} nodes is too large to draw (at most {MOST_DRAWN}): give {fewer}, or read --steps or --json"


def checked_output(output: str) -> Path:
    """The path of a file to write; its name says what kind."""
    path = Path(output)
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"--output {output!r} must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    if not path.parent.is_dir():
        raise InputError(f"--output {output!r}: the folder {str(path.parent)!r} does not exist")
    return path


def write(explained: Explained, path: Path, step: int | None = None) -> None:
    """The page, the drawing (after so many steps) or the data, by the file's name."""
    trace, kind = explained.trace, path.suffix.lower()
    if kind != ".json" and not is_drawn(explained):
        raise InputError(too_many(explained))
    if step is not None and not 0 <= step <= len(trace.steps):
        raise InputError(f"--step {step} must be from 0 to {len(trace.steps)}")
    if kind == ".json":
        text = json.dumps(report.data(trace)) + "\n"
    else:
        text = svg(trace, step) if kind == ".svg" else page(trace, explained.about, step or 0)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"--output {str(path)!r} can't be written: {error.strerror}") from None
