"""The settings of `--method linear`, from the `[linear]` table of the game's config; each line says what it does."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from envs.errors import InputError
from envs.game import Game
from models.evaluation import game_config
from selfplay.train.config import TeacherConfig, merged


class LinearSettings(BaseModel):
    """What is learned, and how. The defaults suit a game of two players with named features."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: Literal["regression", "td", "td_leaf", "network"] = Field(
        "regression",
        description="Regression on the results of searched games; TD at one ply; TD-Leaf; TD with a network.",
    )
    patterns: str = Field("none", description="The set of patterns (selfplay/train/linear/layouts.py).")
    features: bool = Field(True, description="Whether the game's named features count.")
    phases: int = Field(1, ge=1, le=60, description="Tables of weights by number of men. Logistello: 13.")
    parity: bool = Field(
        False, description="Even and odd numbers of men have phases of their own; phases is even then."
    )
    learn_as: str = Field("", description="The variant of the game that is played for learning.")
    unit: str = Field("", description="The feature whose weight is the unit in which weights are shown.")
    step: Literal["tc", "adam"] = Field("tc", description="Step sizes: temporal coherence or Adam.")
    rate: float = Field(1.0, gt=0, description="The largest step. Jaskowski 2017: 1.0 with temporal coherence.")
    decay: float = Field(0.7, ge=0, le=1, description="lambda of TD(lambda); 1: only results count.")
    epsilon: float = Field(0.1, ge=0, le=1, description="Share of random moves.")
    openings: int = Field(8, ge=0, description="At most so many random plies before a game.")
    games: int = Field(1000, ge=1, description="Per round and worker.")
    td_share: float = Field(0.0, ge=0, le=1, description="Share of the training that is TD, before the regression.")
    search_games: int = Field(1000, ge=10, description="Games per round of regression or TD-Leaf, of all workers.")
    search_depth: int = Field(2, ge=1, description="How deep these games are searched.")
    search_decay: float = Field(1.0, ge=0, le=1, description="lambda of their returns; 1: only results count.")
    search_epsilon: float = Field(0.05, ge=0, le=1, description="Share of random moves in them.")
    leaf: bool = Field(False, description="Learn from the ends of best lines instead of the positions searched.")
    window: int = Field(4, ge=1, description="Rounds whose positions are fitted together.")
    passes: int = Field(3, ge=0, description="Over the window, per round, where there are patterns.")
    ridge: float = Field(10.0, ge=0, description="L2 regularisation of named features, in positions.")
    fit_step: Literal["same", "tc", "adam"] = Field("same", description="Step sizes of the passes, if not as step.")
    fit_rate: float = Field(0.02, gt=0, description="Their largest step then; it falls to a tenth until the end.")
    shrink: float = Field(0.002, ge=0, description="L2 regularisation of patterns, per visit.")
    hidden: int = Field(80, ge=1, le=1024, description="Hidden units of the network. TD-Gammon: 80.")
    match_minutes: float = Field(3.0, ge=0, description="Between matches while training; 0: only at the end.")
    match_games: int = Field(40, ge=2, description="Of each match.")
    match_depth: int = Field(2, ge=1, description="How deep both sides search in them.")
    match_against: str = Field("linear", description="The other side's evaluation; linear: the hand-made one.")
    save_seconds: float = Field(20.0, ge=0, description="Between saves of what resume needs; 0: each round.")
    workers: int = Field(1, ge=0, description="Threads; 0: one per core; 1: exactly repeatable.")
    seed: int = Field(0, description="Of everything random.")
    teacher: TeacherConfig = Field(TeacherConfig(), description="An agent whose games are learned from first.")


def settings_of(game: Game, changes: dict[str, Any] | None = None) -> LinearSettings:
    """The defaults, then the game's `[linear]` table, then the changes; one sentence for what is wrong."""
    config, path = game_config(game)
    return checked(game, merged(config.get("linear", {}), changes or {}), path)


def checked(game: Game, table: dict[str, Any], path: str) -> LinearSettings:
    """The settings of a table; `path` says where it is from."""
    table = dict(table)
    if "features" not in table and not game.num_features:
        table["features"] = False
    try:
        return LinearSettings.model_validate(table)
    except ValidationError as error:
        problem = error.errors()[0]
        name = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            kind = TeacherConfig if problem["loc"][0] == "teacher" else LinearSettings
            known = ", ".join(kind.model_fields)
            raise InputError(f"[linear] in {path or 'the settings'}: unknown key {name!r}; keys: {known}") from None
        raise InputError(f"[linear] {name}={problem['input']!r}: {problem['msg']}") from None
