"""What a training run shows of itself: scalars, positions with heat maps, sample games, calibration, in TensorBoard.

Every scalar also goes to `metrics.jsonl` and every evaluation to `evaluations.jsonl`, which `selfplay report` reads.
Pictures are plain NumPy, boards as `render_mode="rgb_array"` draws them.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from envs.game import CHANCE, TERMINAL, Game, State, legal_actions
from envs.glyphs import write
from envs.render import CELL, picture

if TYPE_CHECKING:
    from selfplay.train.runs import Run

BINS = 10
_ELO = "elo/anchored"
TOP_MOVES = 8
_SCALE = 3  # of the text in pictures
_LINE = 8 * _SCALE
_PAPER, _INK, _FAINT = (24, 26, 32), (220, 222, 226), (90, 94, 104)
_HEAT, _SEARCH = (255, 64, 200), (64, 224, 255)  # the network's and the search's colour: on no board
_SIDE = 300  # pixels of the calibration's square


class Watch:
    """Writes a run's curves from `step` on; what was logged beyond it before a kill is dropped.

    It opens the run's writer (`Run.start_curves`), so nobody else need; `Run.close` closes it.
    """

    def __init__(self, run: "Run", step: int = 0):
        self.run = run
        self.evaluations = run.path / "evaluations.jsonl"
        _drop_after(self.evaluations, step)
        run.start_curves(step)
        # TensorBoard's page CUSTOM SCALARS: the rating with its band.
        run.writer.add_custom_scalars_marginchart([_ELO, f"{_ELO}_low", f"{_ELO}_high"], "strength", "anchored Elo")

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Figures by tag, `group/name`; those that are no finite number are left out (JSON has none)."""
        finite = {tag: float(value) for tag, value in values.items() if math.isfinite(value)}
        if finite:
            self.run.log(finite, step)

    def evaluation(
        self, step: int, opponent: str, wins: int, draws: int, losses: int, score: float, interval: Sequence[float]
    ) -> None:
        """A match against an opponent: a line of `evaluations.jsonl`, and its score as a scalar."""
        counts = {"games": int(wins + draws + losses), "wins": int(wins), "draws": int(draws), "losses": int(losses)}
        bounds = [float(bound) for bound in interval]
        self._line({"step": int(step), "opponent": opponent, **counts, "score": float(score), "interval": bounds})
        self.scalars(step, {f"evaluation/{tag_of(opponent)}": float(score)})

    def judged(self, step: int, opponent: str, names: Sequence[str], answer: Mapping[str, Any]) -> dict[str, Any]:
        """What a `judge.py` process found, as a line of `evaluations.jsonl`, which is returned, and as scalars."""
        line = {"step": int(step), "opponent": opponent, **answer, "agents": list(names)}
        self._line(line)
        tag, values = tag_of(opponent), {f"evaluation/{tag_of(opponent)}": answer["score"]}
        if not names:
            values = {"truth/kept": answer["score"]}
            values |= {f"truth/{n}": answer[n] for n in ("kept_critical", "value_error") if answer[n] is not None}
        elif answer["players"] == 1:
            values |= {"points/own": answer["points"][0], f"points/{tag}": answer["points"][1]}
            if (bounds := answer["points_intervals"][0]) is not None:
                values |= {"points/own_low": bounds[0], "points/own_high": bounds[1]}
        elif any(abs(points) not in (0, 1) for _, game, _ in answer["outcomes"] for points in game):
            values[f"points/against-{tag}"] = answer["points"][0]
        self.scalars(step, values)
        return line

    def ladder_match(self, step: int, names: Sequence[str], answer: Mapping[str, Any]) -> dict[str, Any]:
        """Games of two fixed agents, for the ratings: a line without `opponent` and `score`, so no row of a table."""
        line = {"step": int(step), "agents": list(names), "outcomes": answer["outcomes"]}
        self._line(line)
        return line

    def elo(self, step: int, elo: float, low: float, high: float) -> None:
        """The rating of the checkpoint of that step, as known then, with its 95 % interval."""
        self.scalars(step, {_ELO: elo, f"{_ELO}_low": low, f"{_ELO}_high": high})

    def read_evaluations(self) -> list[dict[str, Any]]:
        """The lines so far, those of former sessions included."""
        from selfplay.train.report import read_lines

        return read_lines(self.evaluations)

    def _line(self, entry: dict[str, Any]) -> None:
        from selfplay.train.runs import append_line

        append_line(self.evaluations, json.dumps(entry))

    def position_image(
        self, step: int, game: Game, state: State, policy: np.ndarray, search: np.ndarray, value: float, name: str = ""
    ) -> None:
        """A position with the network's policy and the search's visits side by side; arrays over all actions."""
        image = position_picture(game, state, policy, search, value)
        self.run.writer.add_image(f"positions/{name or 'sample'}", image, step, dataformats="HWC")

    def game_text(self, step: int, game: Game, actions: Sequence[int], name: str = "") -> None:
        """A sample game as its players write it, with its last position and result."""
        self.run.writer.add_text(f"games/{name or 'sample'}", game_lines(game, actions), step)

    def samples_text(
        self, step: int, game: Game, states: Sequence[State], actions: Sequence[int], utilities: Sequence[float]
    ) -> None:
        """A sample game from the positions where somebody moved, for games with chance or a random opening."""
        text = recorded_lines(game, states, actions, utilities)
        self.run.writer.add_text("games/sample", text, step)

    def calibration(
        self, step: int, predicted: np.ndarray, actual: np.ndarray, low: float = -1.0, high: float = 1.0
    ) -> None:
        """How far predicted values agree with the results that followed, both from the mover's side."""
        bins = reliability(predicted, actual, low, high)
        if not bins:
            return
        total = sum(count for _, _, _, count in bins)
        values = {
            "calibration/error": sum(count * abs(mean - result) for _, mean, result, count in bins) / total,
            "calibration/bias": sum(count * (mean - result) for _, mean, result, count in bins) / total,
        }
        values |= {f"calibration/result_in_bin_{index}": result for index, _, result, _ in bins}
        self.scalars(step, values)
        self.run.writer.add_image("calibration", calibration_picture(bins, low, high), step, dataformats="HWC")
        self.run.writer.add_histogram("calibration/predicted", np.asarray(predicted, np.float64), step)

    def hyperparameters(self, config_flat: Mapping[str, Any], results: Mapping[str, float]) -> None:
        """The config with what it reached, for TensorBoard's HPARAMS page; once, when the run is over."""
        plain = {k: v if isinstance(v, bool | int | float | str) else json.dumps(v) for k, v in config_flat.items()}
        metrics = {f"final/{tag_of(name)}": float(value) for name, value in results.items()}
        self.run.writer.add_hparams(plain, metrics, run_name=".")  # into the run itself, not a run below it
        self.run.writer.flush()


def tag_of(text: str) -> str:
    """An agent's spec as TensorBoard allows it in a tag.

    >>> tag_of("alphabeta:depth=8,eval=linear")
    'alphabeta-depth-8-eval-linear'
    """
    return re.sub(r"[^\w.]+", "-", text).strip("-")


def flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """
    >>> flat({"seed": 1, "search": {"simulations": 64}})
    {'seed': 1, 'search.simulations': 64}
    """
    found: dict[str, Any] = {}
    for key, value in table.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return found


def _drop_after(path: Path, step: int) -> None:
    """Keeps the lines of a JSONL file up to a step."""
    from selfplay.train.runs import write_atomic

    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line)
        except (ValueError, KeyError, TypeError):
            continue  # torn by a kill
    write_atomic(path, "".join(line + "\n" for line in kept).encode())


# --- games as text -----------------------------------------------------------------------------------


def game_lines(game: Game, actions: Sequence[int]) -> str:
    """Markdown: the moves (chance outcomes in parentheses), the last position, the utilities."""
    states = game.new()
    state, words = states[0], []
    with np.errstate(over="ignore"):
        for action in actions:
            name = game.action_name(state, int(action))
            words.append(f"({name})" if game.player(state) == CHANCE else name)
            game.play(state, int(action))
        over = game.player(state) == TERMINAL
        board = re.sub(r"\033\[[\d;]*m", "", game.show(state))
        utilities = [f"{game.utility(state, player):g}" for player in range(game.num_players)] if over else []
    ending = f"result {', '.join(utilities)}" if over else "not over"
    return f"{len(words)} plies, {ending}\n\n{' '.join(words)}\n\n" + "\n".join("    " + x for x in board.splitlines())


def recorded_lines(game: Game, states: Sequence[State], actions: Sequence[int], utilities: Sequence[float]) -> str:
    """Markdown: who moved what, the position before the last move, the utilities. What chance did between two moves is
    in the positions only, of which there may be a thousand."""
    with np.errstate(over="ignore"):
        words = [
            f"{game.player(state) + 1}: {game.action_name(state, int(action))}"
            for state, action in zip(states, actions, strict=True)
        ]
        board = re.sub(r"\033\[[\d;]*m", "", game.show(states[-1]))
    result = ", ".join(f"{utility:g}" for utility in utilities)
    shown = "\n".join("    " + line for line in board.splitlines())
    return (
        f"{len(words)} moves (player: move), result {result}\n\n{'; '.join(words)}\n\nbefore the last move:\n\n{shown}"
    )


# --- positions as pictures ---------------------------------------------------------------------------


def cells_of_actions(game: Game, state: State) -> dict[int, tuple[int, int]] | None:
    """The cell that each legal action fills, where every action puts one new piece on a cell of its own (a pass may put
    none); None for games of other moves."""
    with np.errstate(over="ignore"):
        cells = game.cells(state)
        if cells is None or cells.ndim != 2 or game.player(state) < 0:
            return None
        size, by_column = cells.size, game.num_actions == cells.shape[1]
        if not by_column and game.num_actions not in (size, size + 1):
            return None
        found: dict[int, tuple[int, int]] = {}
        for action in legal_actions(game, state):
            after = np.zeros(1, game.state).view(np.recarray)
            after[0] = state
            game.play(after[0], action)
            then = game.cells(after[0])
            assert then is not None
            filled = np.argwhere((cells == 0) & (then != 0))
            if len(filled) == 0 and action == size:
                continue  # a pass
            if len(filled) != 1:
                return None
            row, column = (int(i) for i in filled[0])
            gone = cells[(cells != 0) & (then == 0)]
            if len(gone) and (by_column or (gone == then[row, column]).any()):
                return None  # a piece moved; where it is the opponent's, it was captured
            found[action] = row, column
    return found if len(set(found.values())) == len(found) else None


def position_picture(game: Game, state: State, policy: np.ndarray, search: np.ndarray, value: float) -> np.ndarray:
    """Rows, columns and colours: the board with a heat map for each, or the board and bars of the top moves."""
    places = cells_of_actions(game, state)
    policy, search = _shares(policy), _shares(search)
    title = f"network {value:+.2f}"
    if places is None:
        board = _below(f"value {value:+.2f}", picture(game, state), _INK)
        return _beside([board, _bars(game, state, policy, search)])
    maps = []
    for text, shares, colour in ((title, policy, _HEAT), ("search", search, _SEARCH)):
        image = picture(game, state)
        top = max([shares[action] for action in places], default=0.0)
        for action, (row, column) in places.items():
            _heat(image, row, column, float(shares[action]), float(top), colour)
        passing = [a for a in legal_actions(game, state) if a not in places]
        text += f" pass {100 * shares[passing[0]]:.0f}%" if passing else ""
        maps.append(_below(text, image, colour))
    return _beside(maps)


def _shares(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, np.float64)
    total = values.sum()
    return values / total if total > 0 else values


def _heat(image: np.ndarray, row: int, column: int, share: float, top: float, colour: tuple[int, int, int]) -> None:
    """A disc of the colour, the stronger the larger the share, with its percentage."""
    square = image[CELL // 2 + row * CELL :, CELL // 2 + column * CELL :][:CELL, :CELL]
    middle = (CELL - 1) / 2
    y, x = np.ogrid[:CELL, :CELL]
    strength = 0.9 * (share / top if top > 0 else 0.0)
    cover = strength * np.clip(0.40 * CELL - np.hypot(y - middle, x - middle) + 0.5, 0, 1)[..., None]
    square[:] = (square * (1 - cover) + np.array(colour) * cover).astype(np.uint8)
    percent = f"{100 * share:.0f}"
    if percent != "0":
        left = (CELL - (4 * len(percent) - 1) * _SCALE) // 2
        ink = (20, 20, 24) if square[CELL // 2, CELL // 2].sum() > 380 else (245, 245, 240)
        write(square, percent, (CELL - 5 * _SCALE) // 2, left, _SCALE, ink)


def _bars(game: Game, state: State, policy: np.ndarray, search: np.ndarray) -> np.ndarray:
    """The moves that the search or the network likes most, a bar of either colour for each."""
    legal = legal_actions(game, state)
    best = sorted(legal, key=lambda action: (-search[action], -policy[action]))[:TOP_MOVES]
    names = [game.action_name(state, action)[:12] for action in best]
    left = (4 * max(map(len, names), default=0) + 2) * _SCALE
    length = 160
    image = np.full(((len(best) + 1) * 2 * _LINE, left + length + 16 * _SCALE, 3), _PAPER, np.uint8)
    write(image, "network", _SCALE, _SCALE, _SCALE, _HEAT)
    write(image, "search", _SCALE, 36 * _SCALE, _SCALE, _SEARCH)
    for index, (action, name) in enumerate(zip(best, names, strict=True)):
        top = (index + 1) * 2 * _LINE
        write(image, name, top + _LINE // 2, _SCALE, _SCALE, _INK)
        for offset, shares, colour in ((0, policy, _HEAT), (_LINE - _SCALE, search, _SEARCH)):
            bar = round(length * float(shares[action]))
            image[top + offset : top + offset + 5 * _SCALE, left : left + max(1, bar)] = colour
            write(image, f"{100 * shares[action]:.0f}", top + offset, left + bar + _SCALE, _SCALE, _INK)
    return image


def _below(title: str, image: np.ndarray, colour: tuple[int, int, int]) -> np.ndarray:
    """The image with a line of text above it, wide enough for both."""
    width = max(image.shape[1], 4 * _SCALE * len(title) + 2 * _SCALE)
    whole = np.full((image.shape[0] + _LINE, width, 3), _PAPER, np.uint8)
    write(whole, title, _SCALE, _SCALE, _SCALE, colour)
    whole[_LINE:, : image.shape[1]] = image
    return whole


def _beside(images: list[np.ndarray]) -> np.ndarray:
    height, gap = max(image.shape[0] for image in images), 4 * _SCALE
    width = sum(image.shape[1] for image in images) + gap * (len(images) - 1)
    whole = np.full((height, width, 3), _PAPER, np.uint8)
    left = 0
    for image in images:
        whole[: image.shape[0], left : left + image.shape[1]] = image
        left += image.shape[1] + gap
    return whole


# --- calibration -------------------------------------------------------------------------------------


def reliability(
    predicted: np.ndarray, actual: np.ndarray, low: float = -1.0, high: float = 1.0
) -> list[tuple[int, float, float, int]]:
    """For each of ten equal bins of the prediction that has any: its number, mean prediction, mean result, count.

    >>> reliability(np.array([-0.9, 0.75, 0.85]), np.array([-1.0, 1.0, 0.0]))
    [(0, -0.9, -1.0, 1), (8, 0.75, 1.0, 1), (9, 0.85, 0.0, 1)]
    """
    guesses, results = np.asarray(predicted, np.float64).ravel(), np.asarray(actual, np.float64).ravel()
    index = np.clip(((guesses - low) / (high - low) * BINS).astype(np.int64), 0, BINS - 1)
    return [
        (i, float(guesses[index == i].mean()), float(results[index == i].mean()), int((index == i).sum()))
        for i in range(BINS)
        if (index == i).any()
    ]


def calibration_picture(bins: list[tuple[int, float, float, int]], low: float, high: float) -> np.ndarray:
    """Results over predictions: the diagonal is perfect; grey columns from below say how many positions a bin has."""
    image = np.full((_SIDE + 2 * _LINE, _SIDE + 2 * _LINE, 3), _PAPER, np.uint8)
    plot = image[_LINE : _LINE + _SIDE, _LINE : _LINE + _SIDE]
    most = max(count for _, _, _, count in bins)
    wide = _SIDE // BINS
    for index, _, _, count in bins:
        tall = round(0.3 * _SIDE * count / most)
        plot[_SIDE - tall :, index * wide + 1 : (index + 1) * wide - 1] = _FAINT
    diagonal = np.arange(_SIDE)
    plot[_SIDE - 1 - diagonal, diagonal] = _INK

    def place(value: float) -> int:
        return int(np.clip((value - low) / (high - low), 0, 1) * (_SIDE - 1))

    for _, mean, result, _ in bins:
        x, y = place(mean), _SIDE - 1 - place(result)
        plot[max(0, y - 4) : y + 5, max(0, x - 4) : x + 5] = _SEARCH
    plot[[0, -1]] = _FAINT
    plot[:, [0, -1]] = _FAINT
    write(image, "result over predicted value", _SCALE, _LINE, 2, _INK)
    write(image, f"{low:g}", _LINE + _SIDE + _SCALE, _LINE, 2, _INK)
    write(image, f"{high:g}", _LINE + _SIDE + _SCALE, _LINE + _SIDE - 8 * len(f"{high:g}"), 2, _INK)
    return image
