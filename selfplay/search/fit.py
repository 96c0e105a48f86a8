"""Which search fits which game: the sentence that a user gets where the two do not go together."""

from envs.errors import InputError
from envs.game import Game


def fitting(game: Game) -> str:
    """The exact searches that fit the game, for error messages."""
    if game.num_players == 1:
        return "expectimax or mcts"
    if game.num_players > 2 or not game.zero_sum:
        return "maxn or mcts"
    return "expectiminimax or mcts" if game.has_chance else "minimax, alphabeta or mcts"


def require_two_players(game: Game, search: str) -> None:
    """Minimax and alpha-beta: two players, what one wins the other loses, no dice."""
    if game.num_players != 2:
        problem = f"this game has {game.num_players} player{'s' * (game.num_players > 1)}"
    elif game.has_chance:
        problem = "this game has chance"
    elif not game.zero_sum:
        problem = "in this game the utilities do not sum to zero"
    else:
        return
    raise InputError(f"{search} needs two players, opposed, without chance, but {problem}: use {fitting(game)}")


def require_expectation(game: Game, search: str) -> None:
    """Expectimax: one player against chance. Expectiminimax: one, or two who are opposed."""
    if search == "expectimax" and game.num_players != 1:
        players = f"{game.num_players} players"
        raise InputError(
            f"expectimax has no MIN, so it needs one player, but this game has {players}: use {fitting(game)}"
        )
    if game.num_players > 2 or (game.num_players == 2 and not game.zero_sum):
        problem = (
            f"this game has {game.num_players} players" if game.num_players > 2 else "the utilities do not sum to zero"
        )
        raise InputError(f"{search} needs one player, or two who are opposed, but {problem}: use {fitting(game)}")
