"""The Gymnasium ids of all games; `selfplay_environments.py` says when they are registered."""

NAMESPACE, VERSION = "selfplay", 0


def env_id(game: str) -> str:
    """The Gymnasium id of a game in the registry.

    >>> env_id("connect_four")
    'selfplay/ConnectFour-v0'
    """
    return f"{NAMESPACE}/{''.join(word.capitalize() for word in game.split('_'))}-v{VERSION}"


def register_all() -> None:
    """Registers one id for each game of the registry; calling it again changes nothing."""
    from gymnasium.envs.registration import register, registry

    from envs.registry import GAMES

    for game in GAMES:
        if env_id(game) not in registry:
            register(
                id=env_id(game),
                entry_point="envs.gym_env:GameEnv",
                vector_entry_point="envs.vector_env:GameVectorEnv",
                kwargs={"game": game},
            )
