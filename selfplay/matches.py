"""One game between agents, with a referee: what an agent does wrong loses the game, and nothing else stops.

A forfeit is a crash (an exception), an illegal move, or a move that took longer than the limit.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from envs.compiled import njit
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, Game
from envs.playouts import buffers
from envs.rng import generator
from selfplay.agents import make_agent, parse_agent
from selfplay.play import advance, result, roll, turn

WARM_UP = 0.05  # seconds between two attempts to stop a search that was only begun to get it compiled


@dataclass(frozen=True)
class Job:
    """A game to be played. `seats`: the number of the agent in each seat; `round`: games that share an opening."""

    number: int
    seats: tuple[int, ...]
    opening: tuple[int, ...]
    round: int
    dice: int  # seed of chance: games of one round see the same dice in the same order
    seeds: tuple[int, ...]  # of the agents, by seat
    move_seconds: float = 0.0  # 0: no limit
    attempt: int = 0  # how often a worker died over it
    texts: tuple[str, ...] = ()  # what the record shall bring along for the disk: see `records.texts_of`


@dataclass
class GameRecord:
    """A finished game. Forfeits leave the moves made so far; the utilities then only say who lost."""

    number: int
    seats: list[int]
    round: int
    actions: list[int]
    opening: int  # how many of the actions are the opening's
    utilities: list[float]
    seconds: list[float]  # thinking time by seat
    choices: list[int]  # number of moves by seat
    forfeit: dict[str, Any] | None = None  # seat, ply, kind, reason
    texts: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "GameRecord":
        needed = {name: data[name] for name in cls.__dataclass_fields__ if name != "texts"}
        return cls(**needed, texts=data.get("texts", {}))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@njit
def is_legal(game, state, action, out):
    for i in range(game.actions(state, out)):
        if out[i] == action:
            return True
    return False


def seed_of(*numbers: int) -> int:
    """A seed that is a function of these numbers alone, so that it does not matter who plays a game, or when."""
    return int(np.random.SeedSequence([number & 0xFFFF_FFFF_FFFF_FFFF for number in numbers]).generate_state(1)[0])


def check_agents(specs: Sequence[str]) -> None:
    """Raises `InputError` for agents that no match can have; that each fits the game shows when it starts."""
    for spec in specs:
        if parse_agent(spec).name == "human":
            raise InputError("agent 'human' cannot play matches; use 'selfplay play'")


class Table:
    """Plays games one after the other with agents that are made once."""

    def __init__(self, game: Game, specs: Sequence[str]):
        self.game, self.specs = game, list(specs)
        self.agents: dict[tuple[int, int], Any] = {}
        self.out, self.probabilities = buffers(game)

    def agent(self, number: int, copy: int = 0) -> Any:
        """The agent of that number; a game where it has two seats needs a second copy."""
        if (number, copy) not in self.agents:
            self.agents[number, copy] = make_agent(self.specs[number], self.game, 0)
        return self.agents[number, copy]

    def warm_up(self) -> None:
        """Makes all agents. The searches choose one move, stopped as soon as may be, and have compiled after that; a
        user's own agent prepares itself in its `start`."""
        state: Any = self.game.new()[0]
        rng = generator(0)
        while int(turn(self.game, state)) == CHANCE:
            advance(self.game, state, int(roll(self.game, state, self.out, self.probabilities, rng)))
        for number, spec in enumerate(self.specs):
            agent = self.agent(number)
            if int(turn(self.game, state)) == TERMINAL or spec.partition(":")[0].endswith(".py"):
                continue
            done = threading.Event()
            helper = threading.Thread(target=_hurry, args=(agent, done), daemon=True)
            helper.start()
            try:
                agent.choose(state.copy())
            except Exception:
                del self.agents[number, 0]  # it will forfeit its games by name
            finally:
                done.set()
                helper.join()
        if int(turn(self.game, state)) != TERMINAL and is_legal(self.game, state, 0, self.out):
            advance(self.game, state, 0)

    def play(self, job: Job, tell: Callable[[int, list[int]], None] | None = None) -> GameRecord:
        """Plays the game; `tell` hears before every choice whose it is, and the actions so far."""
        game, players = self.game, len(job.seats)
        state: Any = game.new()[0]
        actions = list(job.opening)
        for action in actions:
            advance(game, state, action)
        record = GameRecord(
            job.number, list(job.seats), job.round, actions, len(actions), [], [0.0] * players, [0] * players
        )
        agents: list[Any] = []
        for seat, number in enumerate(job.seats):
            try:
                agents.append(self.agent(number, job.seats[:seat].count(number)))
                agents[seat].reseed(job.seeds[seat])
                agents[seat].reset()
            except Exception as error:
                return forfeited(game, record, seat, *self._crash(number, error))
        dice = generator(job.dice, stream=1)
        while (mover := int(turn(game, state))) != TERMINAL:
            if mover == CHANCE:
                action = int(roll(game, state, self.out, self.probabilities, dice))
            else:
                if tell:
                    tell(mover, actions)
                started = time.perf_counter()
                try:
                    action = int(agents[mover].choose(state.copy()))
                    fault = None if is_legal(game, state, action, self.out) else ("illegal move", f"action {action}")
                except Exception as error:
                    fault = self._crash(job.seats[mover], error)
                seconds = time.perf_counter() - started
                record.seconds[mover] += seconds
                record.choices[mover] += 1
                if fault is None and 0 < job.move_seconds < seconds:
                    fault = ("time-out", f"{seconds:.2f} s for a move, {job.move_seconds:g} s are allowed")
                if fault:
                    return forfeited(game, record, mover, *fault)
            advance(game, state, action)
            actions.append(action)
        utilities = np.zeros(game.num_players)
        result(game, state, utilities)
        record.utilities = utilities.tolist()
        return record

    def _crash(self, number: int, error: Exception) -> tuple[str, str]:
        """Forgets the agent: who knows in what state it is. Returns what to say of it."""
        for key in [key for key in self.agents if key[0] == number]:
            del self.agents[key]
        return "crash", f"{type(error).__name__}: {error}"


def _hurry(agent: Any, done: threading.Event) -> None:
    while not done.wait(WARM_UP):
        if hasattr(agent, "stop"):
            agent.stop()


def forfeited(game: Game, record: GameRecord, seat: int, kind: str, reason: str) -> GameRecord:
    """The same game, lost by that seat; the others share what it lost."""
    others = game.num_players - 1
    lost = float(game.min_utility)
    share = (-lost if game.zero_sum else float(game.max_utility)) / max(others, 1)
    record.utilities = [lost if s == seat else share for s in range(game.num_players)]
    record.forfeit = {"seat": seat, "ply": len(record.actions) + 1, "kind": kind, "reason": reason}
    return record
