"""Games between agents and people, in the terminal."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from envs.compiled import njit
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, Game, State, legal_actions
from envs.playouts import buffers
from envs.rng import generator
from selfplay.agents import HumanAgent, make_agent

HELP = """Type a move as shown by 'moves'. Also:
  moves     the legal moves here
  undo      take back your last move (and the replies)
  position  the position in the game's notation
  help      this text
  quit      leave the game"""


class Played(NamedTuple):
    """A finished game: the actions (chance outcomes included) with their names, and each player's utility."""

    actions: list[int]
    names: list[str]
    utilities: list[float]
    finished: bool


@njit
def turn(game, state):
    return game.player(state)


@njit
def advance(game, state, action):
    game.play(state, action)


@njit
def roll(game, state, out, probabilities, rng):
    return game.random_outcome(state, out, probabilities, rng)


@njit
def result(game, state, utilities):
    for player in range(game.num_players):
        utilities[player] = game.utility(state, player)


class Quit(Exception):
    """The person at the terminal leaves."""


class Undo(Exception):
    """The person at the terminal takes a move back."""


def play(
    game: Game,
    agents: list[str],
    seed: int = 0,
    position: str | None = None,
    tell: Callable[[str], None] | None = None,
    ask: Callable[[str], str] | None = None,
) -> Played:
    """Plays one game; `tell` shows a text to the person who watches, `ask` asks them for a line."""
    if len(agents) != game.num_players:
        raise InputError(f"this game needs {game.num_players} agents, one per player, not {len(agents)}: {agents}")
    say: Callable[[str], None] = tell or (lambda text: None)
    if ask is not None:
        HumanAgent.ask = _asker(say, ask)
    players = [make_agent(spec, game, seed * 1000 + number) for number, spec in enumerate(agents)]
    state: Any = game.parse_position(position) if position else game.new()[0]
    out, probabilities = buffers(game)
    rng = generator(seed, stream=1)
    line = [state.copy()]
    actions: list[int] = []
    names: list[str] = []
    say(game.show(state))
    finished = True
    while (mover := int(turn(game, state))) != TERMINAL:
        try:
            if mover == CHANCE:
                action = int(roll(game, state, out, probabilities, rng))
            else:
                action = int(players[mover].choose(state))
        except Undo:
            last = _last_choice_of_a_person(game, line, agents)
            if last is None:
                say("there is nothing to take back")
                continue
            del line[last + 1 :], actions[last:], names[last:]
            state = line[-1].copy()
            say(game.show(state))
            continue
        except Quit:
            finished = False
            break
        name = game.action_name(state, action)
        advance(game, state, action)
        line.append(state.copy())
        actions.append(action)
        names.append(name)
        who = "chance" if mover == CHANCE else f"player {mover + 1} ({agents[mover]})"
        say(f"\n{who}: {name}\n{game.show(state)}")
    utilities = np.zeros(game.num_players)
    if finished:
        result(game, state, utilities)
        say("\n" + _verdict(game, agents, utilities))
    return Played(actions, names, utilities.tolist(), finished)


def _last_choice_of_a_person(game: Game, line: list[Any], agents: list[str]) -> int | None:
    for index in range(len(line) - 2, -1, -1):
        mover = int(turn(game, line[index]))
        if mover >= 0 and agents[mover] == "human":
            return index
    return None


def _verdict(game: Game, agents: list[str], utilities: np.ndarray) -> str:
    if game.num_players == 1:
        return f"the game is over: {utilities[0]:g} points"
    best = utilities.max()
    if (utilities == best).all():
        return "a draw"
    winners = [f"player {p + 1} ({agents[p]})" for p in range(game.num_players) if utilities[p] == best]
    points = "" if set(np.abs(utilities).tolist()) <= {0.0, 1.0} else f" by {best:g}"
    return f"{' and '.join(winners)} won{points}"


def _asker(say: Callable[[str], None], ask: Callable[[str], str]) -> Callable[[Game, State], int]:
    def ask_for_move(game: Game, state: State) -> int:
        while True:
            word = ask("your move ('help' for help): ").strip()
            command = word.lower()
            if command in ("quit", "exit"):
                raise Quit
            if command == "undo":
                raise Undo
            if command == "help":
                say(HELP)
            elif command == "moves":
                say(" ".join(game.action_name(state, action) for action in legal_actions(game, state)))
            elif command == "position":
                say(game.position_text(state) or "this game has no notation for positions")
            elif word:
                try:
                    with np.errstate(over="ignore"):
                        return game.parse_action(state, word)
                except InputError as error:
                    say(str(error))

    return ask_for_move
