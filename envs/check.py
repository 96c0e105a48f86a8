"""The conformance checker: random play under every promise of the contract in `game.py`.

It plays random games with compiled code, looks at each state in every way that the contract offers, and
repeats a sample of it interpreted. A broken promise is reported by name, with a sentence and the moves that
lead there. It serves the registry's tests and `selfplay check my_game.py:MyGame` alike.
"""

import itertools
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, Game, legal_actions, state_bytes
from envs.probes import begin, choose, hints, image, look, step
from envs.rng import below, generator

_PARSED = 12  # names of one state that are parsed back
_REHEARSAL = 40  # plies of the interpreted game that comes first
_GUARD = 1024  # numbers beyond the end of each buffer that nobody may touch

# Every promise, in the order in which it is reported.
PROMISES = {
    "compiles": "the methods compile to native code",
    "start": "start() writes every byte of S0",
    "player": "player() is a player's number, CHANCE (if has_chance) or TERMINAL",
    "actions": "legal actions are ascending, in range, at least one, at most max_legal",
    "outcomes": "outcomes are ascending, in range, with positive probabilities that sum to 1",
    "length": "every game ends within max_length plies",
    "utility": "utilities are finite, within bounds and sum to zero where promised",
    "key": "keys are equal exactly where positions are",
    "observe": "observations are finite and look the same each time",
    "features": "features are finite, named, and as many as promised",
    "purity": "looking at a state does not change it",
    "random": "random_action() and playout_action() are legal",
    "hints": "count_actions() counts the actions, and the hints for searches agree with each other",
    "symmetry": "symmetries commute with play and with looking",
    "names": "every move has a name of its own that parses back",
    "position": "position_text() parses back to the same position",
    "show": "show() draws something",
    "interpreted": "interpreted and compiled code agree",
}


@dataclass
class Broken:
    """A promise that does not hold, and the moves from the start that show it."""

    promise: str
    sentence: str
    moves: list[str]

    def __str__(self) -> str:
        where = f" after {' '.join(self.moves)}" if self.moves else ""
        return f"{self.promise}: {self.sentence}{where}"


@dataclass
class Report:
    """How often each promise was tested, and the first failure of each that broke."""

    game: Game
    tested: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PROMISES, 0))
    broken: dict[str, Broken] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return not self.broken


@dataclass
class View:
    """What `look` saw, copied."""

    player: int
    actions: list[int]
    probabilities: np.ndarray
    planes: np.ndarray
    features: np.ndarray
    utilities: np.ndarray
    key: int


class _Stop(Exception):
    """Ends one random game after a failure that makes going on pointless."""


class _Checker:
    def __init__(self, game: Game, seed: int):
        self.game, self.report = game, Report(game)
        # All buffers are longer than promised, so that a game that breaks its promise does not break the process.
        self.out = np.full(max(game.max_legal, game.num_actions, game.num_outcomes) + _GUARD, -99, np.int64)
        self.probabilities = np.zeros(max(game.num_outcomes, 1) + _GUARD)
        size = int(np.prod(game.observation_shape))
        self.guarded_planes = np.zeros(size + _GUARD, np.float32)
        self.planes = self.guarded_planes[:size].reshape(game.observation_shape)
        self.numbers = np.zeros(game.num_features + _GUARD)
        self.utilities = np.zeros(game.num_players)
        self.rng = generator(seed)
        self.moves: list[int] = []
        self.symmetries = game.symmetries()
        self.by_key: dict[int, bytes] = {}
        self.by_position: dict[bytes, int] = {}
        self.one = game.new(1)  # room for a changed copy

    # --- helpers -------------------------------------------------------------------------------------

    def test(self, promise: str, holds: bool, sentence: str | Callable[[], str]) -> bool:
        self.report.tested[promise] += 1
        if not holds and promise not in self.report.broken:
            text = sentence if isinstance(sentence, str) else sentence()
            self.report.broken[promise] = Broken(promise, text, self.move_names())
        return holds

    def move_names(self) -> list[str]:
        state, names = self.game.new()[0], []
        with np.errstate(over="ignore"):
            for action in self.moves:
                try:
                    names.append(self.game.action_name(state, action))
                    self.game.play(state, action)
                except Exception:
                    return [str(action) for action in self.moves]
        return names

    def look(self, state: Any) -> View:
        player, count, features, key = look(
            self.game, state, self.out, self.probabilities, self.planes, self.numbers, self.utilities
        )
        return self.view(player, count, features, key)

    def look_interpreted(self, state: Any) -> View:
        looked = getattr(look, "py_func", look)(
            self.game, state, self.out, self.probabilities, self.planes, self.numbers, self.utilities
        )
        return self.view(*looked)

    def view(self, player: Any, count: Any, features: Any, key: Any) -> View:
        return View(
            int(player),
            [int(a) for a in self.out[: max(0, min(count, len(self.out)))]],
            self.probabilities[:count].copy(),
            self.planes.copy(),
            self.numbers[: int(features)].copy(),
            self.utilities.copy(),
            int(key),
        )

    def copy(self, state: Any) -> Any:
        self.one[0] = state
        return self.one[0]

    def position(self, state: Any) -> bytes:
        """The bytes that `key` answers for: the state without its history."""
        if not self.game.history_fields:
            return state_bytes(state)
        copied = self.copy(state)
        for name in self.game.history_fields:
            copied[name] = np.zeros_like(copied[name])
        return state_bytes(copied)

    # --- the promises --------------------------------------------------------------------------------

    def check_start(self, states: Any) -> None:
        states.view(np.uint8)[:] = 0xFF if not states.dtype.hasobject else 0
        begin(self.game, states[0])
        dirty = states[0].copy()
        states.view(np.uint8)[:] = 0
        begin(self.game, states[0])
        clean = states[0]
        left = [name for name in states.dtype.names or () if not np.array_equal(dirty[name], clean[name])]
        self.test("start", not left, f"start() leaves {', '.join(left)} of the former state")

    def check_node(self, view: View) -> None:
        game, player, actions = self.game, view.player, view.actions
        known = 0 <= player < game.num_players or player == TERMINAL or (player == CHANCE and game.has_chance)
        if not self.test("player", known, f"player() is {player}"):
            raise _Stop
        if player == TERMINAL:
            values = view.utilities
            bounded = np.isfinite(values).all() and (values >= game.min_utility).all()
            bounded = bounded and (values <= game.max_utility).all()
            bounds = f"[{game.min_utility}, {game.max_utility}]"
            self.test("utility", bool(bounded), f"utilities {values.tolist()} leave {bounds}")
            if game.zero_sum:
                self.test("utility", abs(values.sum()) < 1e-9, f"utilities {values.tolist()} do not sum to zero")
            return
        limit, room = (game.num_outcomes, game.num_outcomes) if player == CHANCE else (game.num_actions, game.max_legal)
        promise = "outcomes" if player == CHANCE else "actions"
        fine = self.test(promise, 1 <= len(actions) <= room, f"{len(actions)} {promise}, allowed are 1 to {room}")
        fine &= self.test(promise, all(0 <= a < limit for a in actions), f"{promise} {actions} leave 0..{limit - 1}")
        fine &= self.test(promise, all(a < b for a, b in itertools.pairwise(actions)), f"{actions} is not ascending")
        if player == CHANCE:
            p = view.probabilities
            good = (p > 0).all() and abs(p.sum() - 1) < 1e-9
            self.test("outcomes", bool(good), f"probabilities {p.tolist()} are not positive with sum 1")
        if not fine:
            raise _Stop

    def check_looks(self, state: Any, before: bytes, view: View) -> None:
        game = self.game
        self.test("purity", state_bytes(state) == before, "looking at the state changed it")
        position = self.position(state)
        other = self.by_key.setdefault(view.key, position)
        self.test("key", other == position, f"two different positions share the key {view.key}")
        known = self.by_position.setdefault(position, view.key)
        self.test("key", known == view.key, f"equal positions have keys {known} and {view.key}")
        if view.player == CHANCE:
            viewer = int(game.chance_view(state))
            self.test("observe", -1 <= viewer < game.num_players, f"chance_view() is {viewer}, no player's number")
        if view.player != TERMINAL:
            self.test("observe", bool(np.isfinite(view.planes).all()), "the observation is not finite")
        if view.player < 0:
            return
        again = self.look(state)
        self.test("observe", np.array_equal(again.planes, view.planes), "observing twice gives different planes")
        self.test("observe", not self.guarded_planes[view.planes.size :].any(), "observe() writes beyond the planes")
        self.test("key", again.key == view.key, f"the same state has the keys {view.key} and {again.key}")
        self.test("features", len(view.features) == game.num_features, f"{len(view.features)} features")
        self.test("features", bool(np.isfinite(view.features).all()), f"features {view.features.tolist()}")
        action = int(choose(game, state, self.out, self.rng))
        self.test("random", action in view.actions, f"random_action() gave {action}, which is not legal")
        count, playout, loud, value, _ = hints(game, state, action, self.out, self.rng)
        self.test("random", int(playout) in view.actions, f"playout_action() gave {playout}, which is not legal")
        self.test("hints", count == len(view.actions), f"count_actions() is {count}, actions() {len(view.actions)}")
        fine = value >= 0 and (value > 0 or not loud)
        self.test("hints", fine, f"move_value() of action {action} is {value}, is_loud() {bool(loud)}")
        self.test("purity", state_bytes(state) == before, "random_action() or a hint changed the state")

    def check_symmetry(self, state: Any, view: View, action: int) -> None:
        index = 1 + int(below(self.rng, self.game.num_symmetries - 1))
        symmetry = self.symmetries[index]
        mirrored = self.copy(state).copy()
        image(self.game, mirrored, index)
        seen = self.look(mirrored)
        permutation = symmetry.outcomes if view.player == CHANCE else symmetry.actions
        same_player = self.test("symmetry", seen.player == view.player, f"symmetry {index} changes the mover")
        if not same_player:
            return
        expected = sorted(int(permutation[a]) for a in view.actions)
        self.test("symmetry", seen.actions == expected, f"symmetry {index}: legal {seen.actions}, not {expected}")
        if view.player >= 0 and len(self.game.observation_shape) >= 2:
            shape = self.game.observation_shape
            flat = view.planes.reshape(*shape[:-2], -1)
            moved = np.empty_like(flat)
            moved[..., symmetry.cells] = flat
            same = np.array_equal(moved.reshape(shape), seen.planes)
            self.test("symmetry", same, f"symmetry {index} does not commute with observe()")
        after = self.copy(state).copy()
        step(self.game, after, action)
        image(self.game, after, index)
        step(self.game, mirrored, int(permutation[action]))
        same = self.position(after) == self.position(mirrored)
        self.test("symmetry", same, lambda: f"symmetry {index} does not commute with play({action})")

    def check_text(self, state: Any, view: View) -> None:
        """What people read; a method that raises breaks its promise."""
        promise = "show"
        try:
            self.test("show", bool(self.game.show(state).strip()), "show() is empty")
            if view.player == TERMINAL:
                return
            promise = "names"
            self.check_names(state, view)
            promise = "position"
            self.check_position(state)
        except Exception as error:
            self.test(promise, False, f"raises {type(error).__name__}: {error}")

    def check_names(self, state: Any, view: View) -> None:
        game = self.game
        names = [game.action_name(state, a) for a in view.actions]
        self.test("names", len(set(names)) == len(names), f"two moves share a name: {_short(names)}")
        first = int(below(self.rng, len(names)))  # some of them: a default parse_action() lists all moves each time
        for name, action in list(zip(names, view.actions, strict=True))[first:][:_PARSED]:
            try:
                parsed: Any = game.parse_action(state, name)
            except InputError as error:
                parsed = str(error)
            if not self.test("names", parsed == action, f"{name!r} is {action} but parses to {parsed}"):
                break

    def check_position(self, state: Any) -> None:
        game = self.game
        text = game.position_text(state)
        if text is None:
            return
        try:
            back = game.parse_position(text)
        except InputError as error:
            self.test("position", False, f"{text!r} is refused: {error}")
            return
        same = self.position(back) == self.position(state)
        self.test("position", same, f"{text!r} parses to {game.position_text(back)!r}")

    def check_interpreted(self, state: Any, view: View, action: int | None) -> None:
        try:
            seen = self.look_interpreted(state)
        except Exception as error:
            self.test("interpreted", False, f"looking raises {type(error).__name__}: {error}")
            return
        for name in ("player", "actions", "probabilities", "planes", "features", "utilities", "key"):
            if view.player < 0 and name in ("planes", "features"):
                continue
            mine, theirs = getattr(view, name), getattr(seen, name)
            self.test("interpreted", _same(mine, theirs), partial(_difference, name, mine, theirs))
        if action is not None:
            compiled, plain = self.copy(state).copy(), self.copy(state).copy()
            step(self.game, compiled, action)
            try:
                self.game.play(plain, action)
            except Exception as error:
                self.test("interpreted", False, f"play({action}) raises {type(error).__name__}: {error}")
                return
            for name in compiled.dtype.names or ():
                mine, theirs = compiled[name], plain[name]
                where = f"play({action}) leaves {name}"
                same = np.array_equal(mine, theirs)
                self.test("interpreted", same, partial(_difference, where, mine, theirs))

    def rehearse(self, plies: int) -> bool:
        """A random game interpreted, where NumPy watches the bounds: compiled code would write anywhere."""
        state = self.game.new()[0]
        what = "looking"
        try:
            for _ in range(plies):
                what = "looking"
                view = self.look_interpreted(state)
                self.check_node(view)
                if view.player == TERMINAL:
                    break
                action = _pick(view.actions, view.probabilities if view.player == CHANCE else None, self.rng)
                what = f"play({action})"
                self.game.play(state, action)
                self.moves.append(action)
        except _Stop:
            return False
        except Exception as error:
            promise, method = _promise_of(error)
            return self.test(promise, False, f"{method or what} raises {type(error).__name__}: {error}")
        finally:
            self.moves = self.moves if self.report.broken else []
        return True

    # --- random play ---------------------------------------------------------------------------------

    def play_game(self, states: Any, budget: int, text_every: int, interpreted_every: int) -> int:
        """One random game; returns how many states it looked at."""
        game, state = self.game, states[0]
        begin(game, state)
        self.moves = []
        for ply in range(budget):
            before = state_bytes(state)
            view = self.look(state)
            self.check_node(view)
            self.check_looks(state, before, view)
            action = None
            if view.player != TERMINAL:
                weights = view.probabilities if view.player == CHANCE else None
                action = _pick(view.actions, weights, self.rng)
            if below(self.rng, text_every) == 0:
                self.check_text(state, view)
            if below(self.rng, interpreted_every) == 0:
                self.check_interpreted(state, view, action)
            if action is None:
                self.test("length", True, "")
                return ply + 1
            if game.num_symmetries > 1:
                self.check_symmetry(state, view, action)
            if not self.test("length", ply < game.max_length, f"still going after max_length = {game.max_length}"):
                raise _Stop
            step(game, state, action)
            self.moves.append(action)
        return budget


def _pick(actions: list[int], weights: Any, rng: Any) -> int:
    if weights is None:
        return actions[int(below(rng, len(actions)))]
    edge, rest = int(below(rng, 1 << 30)) / (1 << 30), 0.0
    for action, weight in zip(actions, weights, strict=False):
        rest += weight
        if edge < rest:
            return action
    return actions[-1]


def _same(mine: Any, theirs: Any) -> bool:
    if not isinstance(mine, np.ndarray):
        return mine == theirs
    return mine.shape == theirs.shape and np.allclose(mine, theirs, rtol=1e-6)


def _promise_of(error: Exception) -> tuple[str, str]:
    """The promise that an interpreted method broke by raising, and that method."""
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.name in PROMISES:
            return frame.name, f"{frame.name}()"
    return "interpreted", ""


def _short(items: list[Any]) -> str:
    return ", ".join(map(str, items[:12])) + (", …" if len(items) > 12 else "")


def _difference(name: str, compiled: Any, interpreted: Any) -> str:
    """One sentence that says where two values differ, at the first place only where they are arrays."""
    mine, theirs = np.asarray(compiled), np.asarray(interpreted)
    if mine.shape != theirs.shape or mine.ndim == 0:
        return f"{name}: compiled {_brief(mine)}, interpreted {_brief(theirs)}"
    places = np.argwhere(mine != theirs)
    first = tuple(int(i) for i in places[0])
    more = f" (and {len(places) - 1} more places)" if len(places) > 1 else ""
    return f"{name}{list(first)}: compiled {mine[first]}, interpreted {theirs[first]}{more}"


def _brief(values: np.ndarray) -> str:
    return str(values) if values.ndim == 0 else f"[{_short(values.reshape(-1).tolist())}]"


def check_statics(checker: _Checker) -> None:
    """The promises that need no play."""
    game, test = checker.game, checker.test
    test("features", len(game.feature_names()) == game.num_features, f"{len(game.feature_names())} feature names")
    test("symmetry", len(checker.symmetries) == game.num_symmetries, f"{len(checker.symmetries)} symmetries")
    sizes = {"actions": game.num_actions, "outcomes": game.num_outcomes}
    if len(game.observation_shape) >= 2:
        sizes["cells"] = int(np.prod(game.observation_shape[-2:]))
    for index, symmetry in enumerate(checker.symmetries):
        for name, size in sizes.items():
            permutation = getattr(symmetry, name)
            fine = sorted(permutation.tolist()) == list(range(size))
            fine = fine and (index > 0 or permutation.tolist() == list(range(size)))
            test("symmetry", fine, f"symmetry {index} does not permute the {name}")


def check_game(game: Game, states: int = 10_000, seed: int = 0, texts: int = 300, interpreted: int = 150) -> Report:
    """Plays random games until `states` states were looked at; about `texts` and `interpreted` of them by all means.

    >>> from envs.registry import make
    >>> check_game(make("connect_four"), states=200).ok
    True
    """
    with np.errstate(over="ignore"):
        try:
            checker = _Checker(game, seed)
            check_statics(checker)
        except Exception as error:
            report = Report(game)
            report.broken["start"] = Broken("start", f"raises {type(error).__name__}: {error}", [])
            return report
        if not checker.rehearse(_REHEARSAL):
            return checker.report
        room = np.zeros(1, game.state).view(np.recarray)
        try:
            compile_all(checker, room)
        except Exception as error:
            checker.test("compiles", False, f"{type(error).__name__}: {error_cause(error)}")
            return checker.report
        checker.check_start(room)
        seen = 0
        while seen < states:
            try:
                seen += checker.play_game(
                    room, states, max(1, states // max(texts, 1)), max(1, states // max(interpreted, 1))
                )
            except _Stop:
                break
    return checker.report


def compile_all(checker: _Checker, room: Any) -> None:
    """Calls every compiled function once, at the first player's node."""
    game, state = checker.game, room[0]
    begin(game, state)
    view = checker.look(state)
    while view.player == CHANCE:
        step(game, state, view.actions[0])
        view = checker.look(state)
    if view.player >= 0:
        hints(game, state, int(choose(game, state, checker.out, checker.rng)), checker.out, checker.rng)
        image(game, checker.copy(state), 0)
        step(game, state, view.actions[0])
    checker.test("compiles", True, "")


def error_cause(error: Exception) -> str:
    """The line of a Numba error that says what is wrong, rather than where it was noticed."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [
        line for line in lines if "Error:" in line or line.startswith(("Unknown", "Cannot", "No implementation"))
    ]
    return telling[-1] if telling else (lines or [""])[0]


__all__ = ["PROMISES", "Broken", "Report", "check_game", "error_cause", "legal_actions"]
