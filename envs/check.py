"""The conformance checker: random play under every promise of the contract in `game.py`.

It plays random games with compiled code, looks at each state in every way that the contract offers, and
repeats a sample of it interpreted. A broken promise is reported by name, with a sentence and the moves that
lead there. It serves the registry's tests and `selfplay check my_game.py:MyGame` alike.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from envs.compiled import njit
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, Game, legal_actions
from envs.rng import below, generator

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
    "random": "random_action() is legal",
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


@njit
def look(game, state, out, probabilities, planes, numbers, utilities):
    """Everything the contract can say about a state: player, count of actions, count of features, key."""
    player = game.player(state)
    count, features = 0, 0
    if player == TERMINAL:
        for p in range(game.num_players):
            utilities[p] = game.utility(state, p)
    elif player == CHANCE:
        count = game.outcomes(state, out, probabilities)
    else:
        count = game.actions(state, out)
        planes[:] = np.float32(0.0)
        game.observe(state, planes)
        features = game.features(state, numbers)
    return player, count, features, game.key(state)


@njit
def choose(game, state, out, rng):
    return game.random_action(state, out, rng)


@njit
def step(game, state, action):
    game.play(state, action)


@njit
def begin(game, state):
    game.start(state)


@njit
def image(game, state, symmetry):
    game.transform(state, symmetry)


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
        self.out = np.full(max(game.max_legal, game.num_outcomes, 1) + 8, -99, np.int64)
        self.probabilities = np.zeros(max(game.num_outcomes, 1) + 8)
        self.planes = np.zeros(game.observation_shape, np.float32)
        self.numbers = np.zeros(game.num_features + 8)
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
            return state.tobytes()
        copied = self.copy(state)
        for name in self.game.history_fields:
            copied[name] = np.zeros_like(copied[name])
        return copied.tobytes()

    # --- the promises --------------------------------------------------------------------------------

    def check_start(self, states: Any) -> None:
        states.view(np.uint8)[:] = 0xFF if not states.dtype.hasobject else 0
        begin(self.game, states[0])
        dirty = states[0].copy()
        states.view(np.uint8)[:] = 0
        begin(self.game, states[0])
        clean = states[0]
        same = all(np.array_equal(dirty[name], clean[name]) for name in states.dtype.names or ())
        self.test("start", same, "start() leaves fields of the former state")

    def check_node(self, view: View) -> None:
        game, player, actions = self.game, view.player, view.actions
        known = 0 <= player < game.num_players or player == TERMINAL or (player == CHANCE and game.has_chance)
        if not self.test("player", known, f"player() is {player}"):
            raise _Stop
        if player == TERMINAL:
            values = view.utilities
            bounded = np.isfinite(values).all() and (values >= game.min_utility).all()
            bounded = bounded and (values <= game.max_utility).all()
            self.test(
                "utility",
                bool(bounded),
                f"utilities {values.tolist()} leave [{game.min_utility}, {game.max_utility}]",
            )
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
        self.test("purity", state.tobytes() == before, "looking at the state changed it")
        position = self.position(state)
        other = self.by_key.setdefault(view.key, position)
        self.test("key", other == position, f"two different positions share the key {view.key}")
        known = self.by_position.setdefault(position, view.key)
        self.test("key", known == view.key, f"equal positions have keys {known} and {view.key}")
        if view.player < 0:
            return
        self.test("observe", bool(np.isfinite(view.planes).all()), "the observation is not finite")
        again = self.look(state)
        self.test("observe", np.array_equal(again.planes, view.planes), "observing twice gives different planes")
        self.test("features", len(view.features) == game.num_features, f"{len(view.features)} features")
        self.test("features", bool(np.isfinite(view.features).all()), f"features {view.features.tolist()}")
        action = int(choose(game, state, self.out, self.rng))
        self.test("random", action in view.actions, f"random_action() gave {action}, which is not legal")

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
        game = self.game
        self.test("show", bool(game.show(state).strip()), "show() is empty")
        if view.player == TERMINAL:
            return
        names = [game.action_name(state, a) for a in view.actions]
        self.test("names", len(set(names)) == len(names), f"two moves share a name: {names}")
        for name, action in zip(names, view.actions, strict=True):
            try:
                parsed: Any = game.parse_action(state, name)
            except InputError as error:
                parsed = str(error)
            if not self.test("names", parsed == action, f"{name!r} is {action} but parses to {parsed}"):
                break
        text = game.position_text(state)
        if text is not None:
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
            same = np.allclose(mine, theirs, rtol=1e-6) if isinstance(mine, np.ndarray) else mine == theirs
            self.test("interpreted", same, f"{name}: compiled {mine}, interpreted {theirs}")
        if action is not None:
            compiled, plain = self.copy(state).copy(), self.copy(state).copy()
            step(self.game, compiled, action)
            try:
                self.game.play(plain, action)
            except Exception as error:
                self.test("interpreted", False, f"play({action}) raises {type(error).__name__}: {error}")
                return
            same = compiled.tobytes() == plain.tobytes()
            self.test("interpreted", same, f"play({action}): compiled {compiled}, interpreted {plain}")

    # --- random play ---------------------------------------------------------------------------------

    def play_game(self, states: Any, budget: int, text_every: int, interpreted_every: int) -> int:
        """One random game; returns how many states it looked at."""
        game, state = self.game, states[0]
        begin(game, state)
        self.moves = []
        for ply in range(budget):
            before = state.tobytes()
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


def check_statics(checker: _Checker) -> None:
    """The promises that need no play."""
    game, test = checker.game, checker.test
    test("features", len(game.feature_names()) == game.num_features, f"{len(game.feature_names())} feature names")
    test("symmetry", len(checker.symmetries) == game.num_symmetries, f"{len(checker.symmetries)} symmetries")
    sizes = {"actions": game.num_actions, "outcomes": game.num_outcomes}
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
    checker = _Checker(game, seed)
    room = np.zeros(1, game.state).view(np.recarray)
    with np.errstate(over="ignore"):
        check_statics(checker)
        try:
            checker.check_start(room)
            checker.look(room[0])
            image(game, checker.copy(room[0]), 0)
            checker.test("compiles", True, "")
        except Exception as error:
            first = next((line for line in str(error).splitlines() if line.strip()), "")
            checker.test("compiles", False, f"{type(error).__name__}: {_cause(error) or first}")
            return checker.report
        seen = 0
        while seen < states:
            try:
                seen += checker.play_game(
                    room, states, max(1, states // max(texts, 1)), max(1, states // max(interpreted, 1))
                )
            except _Stop:
                break
    return checker.report


def _cause(error: Exception) -> str:
    """The line of a Numba error that says what is wrong, rather than where it was noticed."""
    lines = [line.strip() for line in str(error).splitlines()]
    telling = [
        line for line in lines if "Error:" in line or line.startswith(("Unknown", "Cannot", "No implementation"))
    ]
    return telling[-1] if telling else ""


__all__ = ["PROMISES", "Broken", "Report", "check_game", "legal_actions"]
