"""The configuration of a training run: small frozen models, a sentence per field, the paper's value beside ours.

Order: the defaults here < `[train]` in configs/<game>.toml < --config FILE < --set search.simulations=64.
Unknown keys are errors that name the valid ones.
"""

import json
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from envs.errors import InputError
from envs.game import Game
from models.evaluation import game_config, read_toml
from models.network import ModelConfig


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SearchConfig(_Part):
    """The search that plays and teaches (`selfplay/search/puct.py`)."""

    kind: Literal["gumbel", "puct"] = Field(default="gumbel", description="Gumbel AlphaZero or AlphaZero's PUCT.")
    simulations: int = Field(default=32, ge=1, description="Per recorded move. AlphaZero: 800; Gumbel: 2 to 800.")
    fast_simulations: int = Field(default=8, ge=1, description="Of moves that are not recorded. KataGo: a sixth.")
    full_share: float = Field(default=1.0, gt=0, le=1, description="Share of moves with all simulations. KataGo: 0.25.")
    c_init: float = Field(default=1.25, ge=0, description="PUCT's exploration. AlphaZero: 1.25.")
    c_base: float = Field(default=19652.0, gt=0, description="Its growth with visits. AlphaZero: 19652.")
    fpu: float = Field(default=0.2, ge=0, description="First-play urgency reduction. KataGo: 0.2.")
    c_visit: float = Field(default=50.0, ge=0, description="Gumbel's c_visit. Danihelka et al.: 50.")
    c_scale: float = Field(
        default=1.0, ge=0, description="Gumbel's c_scale. Danihelka et al.: 1.0 for Go, 0.1 for Atari."
    )
    forced: float = Field(default=2.0, ge=0, description="Forced playouts at a PUCT root. KataGo: 2.")
    dirichlet: float = Field(
        default=10.0, gt=0, description="Total concentration of the noise at a PUCT root. KataGo: 10.83."
    )
    dirichlet_part: float = Field(default=0.25, ge=0, le=1, description="Its share of the prior. AlphaZero: 0.25.")
    beyond_chance: bool = Field(
        default=True,
        description="Look at what follows a roll; no: the network's value before the roll stands. TD-Gammon: no.",
    )
    foresight: int = Field(
        default=400, ge=0, description="Positions searched exactly before a leaf is evaluated; 0: none, as AlphaZero."
    )
    endgame: int = Field(
        default=20_000,
        ge=0,
        description="Positions of an exact search to the game's end before that of the network; 0: none, as AlphaZero.",
    )


class ActorConfig(_Part):
    """Self-play."""

    games: int = Field(default=64, ge=1, description="In lockstep per worker: the batch of the network.")
    moves: int = Field(
        default=24, ge=1, description="Per game and round; then the learner trains and the weights are new."
    )
    temperature: float = Field(default=1.0, ge=0, description="Of the choice in the first plies. AlphaZero: 1.")
    temperature_plies: int = Field(default=12, ge=0, description="How many plies that is. AlphaZero chess: 30.")
    late_temperature: float = Field(
        default=0.0, ge=0, description="Of the choice after that (Gumbel: the halving's winner)."
    )
    random_openings: float = Field(default=0.1, ge=0, le=1, description="Share of games that begin with random moves.")
    random_plies: int = Field(default=8, ge=0, description="At most so many of them.")
    reuse: bool = Field(default=True, description="Keep the subtree of the move that was played (PUCT).")
    resign: float = Field(
        default=0.0, ge=0, le=1, description="Resign below minus this value; 0: never. AlphaGo Zero: 0.9."
    )
    resign_check: float = Field(
        default=0.1, ge=0, le=1, description="Share of games played out anyway. AlphaGo Zero: 0.1."
    )
    play_solved: float = Field(
        default=0.25,
        ge=0,
        le=1,
        description="Share of games that are played on once search.endgame knows their result.",
    )
    decay: float = Field(
        default=1.0, ge=0, le=1, description="lambda of the value targets; 1: only results. TD-Gammon: 0.7."
    )
    cache_megabytes: float = Field(default=32.0, gt=0, description="For the network's answers; empty after each round.")


class LearnerConfig(_Part):
    """Replay window and gradient steps."""

    batch: int = Field(default=512, ge=1, description="Positions per step. AlphaZero: 4096.")
    reuse: float = Field(default=4.0, gt=0, description="How often a position is trained on, on average.")
    rate: float = Field(default=2e-3, gt=0, description="The peak learning rate of AdamW.")
    warm_up: int = Field(default=200, ge=0, description="Steps to reach it.")
    final_rate: float = Field(
        default=0.1, ge=0, le=1, description="Share of the rate that is left at the end (cosine)."
    )
    weight_decay: float = Field(default=1e-4, ge=0, description="L2 decay. AlphaZero: 1e-4.")
    clip: float = Field(default=1.0, gt=0, description="Largest norm of the gradient.")
    average: float = Field(
        default=0.99, ge=0, lt=1, description="Decay of the averaged weights that play. KataGo averages too."
    )
    value_weight: float = Field(
        default=1.0, gt=0, description="Of the value loss beside the policy loss. AlphaZero: 1."
    )
    search_value: float = Field(
        default=0.25, ge=0, le=1, description="Share of the search's value in the value target."
    )
    window: int = Field(default=20_000, ge=1, description="Positions in the window at first (KataGo: 250,000).")
    window_growth: float = Field(default=0.5, ge=0, le=1, description="Share of all later positions by which it grows.")
    window_most: int = Field(default=500_000, ge=1, description="Its bound.")
    symmetry: bool = Field(default=True, description="A random symmetry per sampled position. AlphaGo Zero: yes.")
    bf16: bool | Literal["auto"] = Field(
        default="auto", description="Mixed precision of the training step; auto: where the hardware has it."
    )


class TeacherConfig(_Part):
    """An agent whose games are learned from before self-play takes over (`selfplay/train/teacher.py`)."""

    agent: str = Field(default="", description="The teacher's spec; empty: none. AlphaGo: people, then itself.")
    games: int = Field(default=5000, ge=1, description="How many distinct games it plays. AlphaGo: 160,000 of people.")
    openings: int = Field(default=8, ge=0, description="At most so many random moves before a game.")
    random_moves: float = Field(
        default=0.1, ge=0, le=1, description="Share of random moves after that. AlphaGo's value network: one a game."
    )
    labels: float = Field(
        default=1.0, gt=0, le=1, description="Share of positions that a slow teacher labels; at others chance moves."
    )
    search_value: float = Field(
        default=0.5, ge=0, le=1, description="Share of its search in the value target. AlphaGo: 0, results only."
    )
    temperature: float = Field(
        default=0.02, ge=0, description="Of a policy from values, in network units; 0: all best moves alike."
    )
    visit_temperature: float = Field(
        default=1.0, gt=0, description="Of a policy from visits: their power 1/t. AlphaZero: 1."
    )
    passes: float = Field(default=4.0, gt=0, description="How often its positions are trained on. AlphaGo: about 200.")
    held_out: float = Field(
        default=0.05, ge=0, le=0.5, description="Share of games kept for judging, never trained on. AlphaGo: 0.03."
    )
    most_time: float = Field(
        default=0.5, gt=0, le=1, description="Share of a run's minutes after which its games end, if too slow."
    )
    round: int = Field(default=64, ge=1, description="Games per saved round: what a kill may cost.")


class EvaluationConfig(_Part):
    """Matches and truth while training, off the training path."""

    minutes: float = Field(default=5.0, ge=0, description="Between evaluations; 0: only at the end.")
    games: int = Field(default=20, ge=2, description="Per opponent.")
    simulations: int = Field(default=64, ge=1, description="Of the trained agent.")
    ladder: tuple[str, ...] = Field(default=("random", "mcts:simulations=200"), description="The fixed opponents.")
    former: bool = Field(default=True, description="Also against the checkpoint of the evaluation before.")
    positions: int = Field(default=200, ge=0, description="For the scoreboard against exact truth; 0: none.")


class TrainConfig(_Part):
    """All of it."""

    model: ModelConfig = ModelConfig()
    search: SearchConfig = SearchConfig()
    actor: ActorConfig = ActorConfig()
    learner: LearnerConfig = LearnerConfig()
    teacher: TeacherConfig = TeacherConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    save_seconds: float = Field(default=15.0, ge=0, description="Between saves of what resume needs; 0: each round.")
    seed: int = Field(default=0, description="Of everything random.")
    workers: int = Field(
        default=0, ge=0, description="Self-play processes; 0: one per core. 1: in this process, same bits."
    )
    device: str = Field(default="auto", description="cpu, cuda or auto.")
    backend: str = Field(default="auto", description="Of inference: auto measures those that are installed.")


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """The second table over the first, key by key.

    >>> merged({"search": {"kind": "puct", "simulations": 32}}, {"search": {"simulations": 64}})
    {'search': {'kind': 'puct', 'simulations': 64}}
    """
    whole = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(whole.get(key), dict)
        whole[key] = merged(whole[key], value) if both else value
    return whole


def setting(text: str) -> dict[str, Any]:
    """`search.simulations=64` as nested tables.

    >>> setting("search.simulations=64")
    {'search': {'simulations': 64}}
    """
    name, separator, value = text.partition("=")
    if not separator or not name.strip():
        raise InputError(f"--set {text!r}: expected name=value, such as search.simulations=64")
    try:
        parsed = tomllib.loads(f"value = {value.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value.strip()
    for part in reversed(name.strip().split(".")):
        parsed = {part: parsed}
    return parsed


def validated(table: dict[str, Any], what: str) -> TrainConfig:
    """The config of a table; one sentence for what is wrong with it."""
    try:
        return TrainConfig.model_validate(table)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            part: Any = TrainConfig
            for name in problem["loc"][:-1]:
                part = part.model_fields[str(name)].annotation
            raise InputError(f"{what}: unknown key {where!r}; keys: {', '.join(part.model_fields)}") from None
        raise InputError(f"{what}: {where} = {problem['input']!r}: {problem['msg']}") from None


def resolve(game: Game, file: Path | None = None, settings: list[str] | None = None, **direct: Any) -> TrainConfig:
    """The config of a run: defaults, the game's own file, a given file, single settings, then `direct` ones."""
    own, path = game_config(game)
    table: dict[str, Any] = dict(own.get("train", {}))
    validated(table, f"[train] in {path!r}")
    if file is not None:
        table = merged(table, read_toml(file))
        validated(table, f"config {str(file)!r}")
    for text in settings or []:
        table = merged(table, setting(text))
        validated(table, f"--set {text}")
    return validated(merged(table, {k: v for k, v in direct.items() if v is not None}), "options")


def as_table(config: TrainConfig) -> dict[str, Any]:
    """Plain values, for TOML and JSON."""
    table: dict[str, Any] = json.loads(config.model_dump_json())
    return table
