"""Making opening books: by searching every early position, or by counting the results of self-play."""

from collections.abc import Callable
from typing import Any

import numpy as np

from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, Game, State, advance, legal_actions
from envs.playouts import buffers
from envs.rng import below, generator
from selfplay.agents import make_agent
from selfplay.book import Book
from selfplay.play import result as write_utilities
from selfplay.play import roll


def early_positions(game: Game, plies: int, most: int) -> list[State]:
    """All positions where a player chooses within so many plies, mirror images once, in order of plies."""
    book, level, found = Book(game), [game.new()[0].copy()], []
    seen = {book.place(level[0]).key}
    for ply in range(plies):
        following = []
        for state in level:
            if int(game.player(state)) >= 0:
                found.append(state)
            if len(found) > most:
                raise InputError(f"within plies={plies} there are more than {most:,} positions; give fewer plies")
            for action in legal_actions(game, state):
                child = state.copy()
                advance(game, child, action)
                key = book.place(child).key
                if key not in seen and int(game.player(child)) != TERMINAL:
                    seen.add(key)
                    following.append(child)
        level = following
        if not level:
            break
        if ply == plies - 1:
            break
    return found


def build(
    book: Book,
    spec: str,
    plies: int,
    seed: int = 0,
    most: int = 100_000,
    tell: Callable[[int, int], None] = lambda done, of: None,
) -> int:
    """Searches every early position that the book does not know as well; returns how many it searched."""
    if plies < 1:
        raise InputError(f"plies={plies} must be at least 1")
    agent = make_agent(spec, book.game, seed)
    if not hasattr(agent, "search"):
        raise InputError(f"agent {spec!r} does not search; a book is built by one that does, such as alphabeta:depth=8")
    positions = early_positions(book.game, plies, most)
    searched = 0
    for done, state in enumerate(positions):
        if not any(entry.agent == str(agent) for entry in book.known(state).values()):
            agent.reset()
            book.add_search(state, agent.search(state), str(agent))
            searched += 1
        tell(done + 1, len(positions))
    return searched


def grow(
    book: Book,
    specs: list[str],
    games: int,
    plies: int,
    explore: float = 0.2,
    seed: int = 0,
    tell: Callable[[int, int], None] = lambda done, of: None,
) -> None:
    """Plays games between the agents and counts the results of their first moves.

    In the opening a move is random with probability `explore`, so that all moves get games; the agents' seats change
    from game to game.
    """
    game = book.game
    if games < 1 or plies < 1:
        raise InputError(f"games={games} and plies={plies} must be at least 1")
    if not 0 <= explore <= 1:
        raise InputError(f"explore={explore} must be from 0 to 1")
    if game.num_players < 2:
        raise InputError("a book counts wins and losses, so it needs at least two players")
    agents = [
        make_agent(specs[i % len(specs)], game, seed * 1000 + i) for i in range(max(len(specs), game.num_players))
    ]
    rng = generator(seed, stream=7)
    for number in range(games):
        line, utilities = play_one(game, agents[number % len(agents) :] + agents, plies, explore, rng)
        book.add_game(line, utilities)
        tell(number + 1, games)


def play_one(
    game: Game, agents: list[Any], plies: int, explore: float, rng: np.ndarray
) -> tuple[list[tuple[State, int, int]], list[float]]:
    """One game; the choices of its opening, and everybody's utility."""
    for agent in agents:
        agent.reset()
    out, probabilities = buffers(game)
    state: Any = game.new()[0].copy()
    line: list[tuple[State, int, int]] = []
    ply = 0
    while (mover := int(game.player(state))) != TERMINAL:
        if mover == CHANCE:
            action = int(roll(game, state, out, probabilities, rng))
        else:
            legal = legal_actions(game, state)
            at_random = ply < plies and int(below(rng, 1 << 20)) < explore * (1 << 20)
            action = legal[int(below(rng, len(legal)))] if at_random else int(agents[mover].choose(state))
            if ply < plies:
                line.append((state.copy(), mover, action))
        advance(game, state, action)
        ply += 1
    utilities = np.zeros(game.num_players)
    write_utilities(game, state, utilities)
    return line, utilities.tolist()


def rows(book: Book, state: State) -> list[dict[str, Any]]:
    """The moves that the book knows here, the best first, for people and programs."""
    chosen = book.result(state)
    order = [move.action for move in chosen.moves] if chosen else []
    known = book.known(state)
    order += sorted((a for a in known if a not in order), key=lambda a: -known[a].games)
    return [
        {
            "move": book.game.action_name(state, action),
            "value": known[action].value,
            "depth": known[action].depth,
            "agent": known[action].agent,
            "games": known[action].games,
            "wins": known[action].wins,
            "draws": known[action].draws,
            "losses": known[action].losses,
            "score": known[action].score if known[action].games else None,
        }
        for action in order
    ]
