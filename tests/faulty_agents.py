"""Agents that do what an agent must not do, for the tests of the arena: `tests/faulty_agents.py:Crashes`."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from envs.game import legal_actions
from selfplay.agents import Agent, RandomAgent


@dataclass
class Crashes(RandomAgent):
    """Plays `after` moves at random, then raises."""

    after: int = 1

    def reset(self):
        self.moves = 0

    def choose(self, state):
        self.moves += 1
        if self.moves > self.after:
            raise ValueError("out of ideas")
        return super().choose(state)


class CrashesAtReset(RandomAgent):
    def reset(self):
        raise RuntimeError("not ready")


class First(Agent):
    """Nothing wrong with it: the first legal move."""

    def choose(self, state):
        return legal_actions(self.game, state)[0]


class Illegal(Agent):
    def choose(self, state):
        return 77


class Nothing(Agent):
    def choose(self, state):
        return None


class Hangs(Agent):
    def choose(self, state):
        while True:
            pass


@dataclass
class Slow(RandomAgent):
    """Plays at random, but takes its time."""

    seconds: float = 0.15

    def choose(self, state):
        time.sleep(self.seconds)
        return super().choose(state)


class Dies(Agent):
    """Takes its whole process with it, always."""

    def choose(self, state):
        os._exit(7)


@dataclass
class KilledOnce(RandomAgent):
    """Plays at random; its process is killed once, in the middle of a game, if the file `mark` is not there yet."""

    mark: str = ""

    def reset(self):
        self.moves = 0

    def choose(self, state):
        self.moves += 1
        if self.moves == 2:
            try:
                Path(self.mark).touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().choose(state)


class Scribbles(RandomAgent):
    """Prints, and writes into the state that it was shown."""

    def choose(self, state):
        print("thinking aloud")
        action = super().choose(state)
        state["ply" if "ply" in state.dtype.names else state.dtype.names[0]] = 0
        return action
