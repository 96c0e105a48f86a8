"""Networks with a policy and a value head: a residual tower for boards, a residual MLP for everything else.

The tower is that of AlphaZero (Silver et al. 2018, after He et al. 2016): convolution, batch normalisation, ReLU, with
the addition before the last ReLU, so that the normalisation folds into the convolutions at play (`folded`).

Units: a *utility* is what the game pays; a network works in *network units*, about -1 .. 1 (`to_units`, `from_units`).
Order: value vectors are relative, index 0 the mover, index k the player (mover + k) % num_players.
"""

import copy
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from pydantic import BaseModel, Field
from torch import nn
from torch.nn import functional
from torch.nn.utils import fuse_conv_bn_eval, fuse_linear_bn_eval

from envs.errors import InputError
from envs.registry import spec_of

if TYPE_CHECKING:
    from envs.game import Game

_POLICY_WEIGHTS = 1 << 17  # the policy head has as many planes as keep its matrix below this, but 2 to 16
_VALUE_PLANES = 4


class ModelConfig(BaseModel, frozen=True, extra="forbid"):
    """The shape of a network."""

    kind: Literal["auto", "residual", "mlp"] = Field(
        default="auto",
        description="Tower or MLP; auto takes the tower where the observation is a board (AlphaZero: residual).",
    )
    blocks: int = Field(default=5, ge=0, le=100, description="Residual blocks of two layers each (AlphaZero: 19).")
    channels: int = Field(
        default=64, ge=1, le=4096, description="Channels of the tower; an MLP is twice as wide (AlphaZero: 256)."
    )
    pooling: int = Field(
        default=0,
        ge=0,
        description="Global pooling in every n-th block, 0 in none (KataGo, Wu 2019: every second or third).",
    )
    value: Literal["auto", "wdl", "scalar"] = Field(
        default="auto",
        description="Win, draw and loss probabilities, or the expected utility; auto takes wdl where the utilities are "
        "those of a win, a draw and a loss (AlphaZero: scalar; Leela Chess Zero: wdl).",
    )
    hidden: int = Field(
        default=64, ge=1, le=4096, description="Width of the value head's hidden layer (AlphaZero: 256)."
    )
    value_scale: float = Field(
        default=0.0,
        ge=0,
        allow_inf_nan=False,
        description="Utility that counts as 1 for an unbounded value, for games paid by score (2048); 0: the game's own "
        "bounds become -1 .. 1, through tanh (AlphaZero: bounded).",
    )


class Layer(nn.Module):
    """A convolution or a matrix, then batch normalisation (the identity once it is folded)."""

    def __init__(self, transform: nn.Module, norm: nn.Module) -> None:
        super().__init__()
        self.transform, self.norm = transform, norm

    @classmethod
    def make(cls, board: bool, inputs: int, outputs: int, size: int = 3) -> "Layer":
        """`size` is the side of a convolution's kernel."""
        if board:
            return cls(nn.Conv2d(inputs, outputs, size, padding=size // 2, bias=False), nn.BatchNorm2d(outputs))
        return cls(nn.Linear(inputs, outputs, bias=False), nn.BatchNorm1d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.transform(x))

    def fold(self) -> None:
        """Moves the normalisation, as it is in evaluation mode, into the weights."""
        norm: Any = self.norm
        if isinstance(self.transform, nn.Conv2d):
            self.transform = fuse_conv_bn_eval(self.transform, norm)
        elif isinstance(self.transform, nn.Linear):
            self.transform = fuse_linear_bn_eval(self.transform, norm)
        self.norm = nn.Identity()


class Block(nn.Module):
    """Two layers and a shortcut. With `pooled` channels > 0 their mean and maximum over the board shift all channels,
    so that a block sees the whole board at once (a lighter form of Wu 2019, section 3.3: no layer of its own)."""

    def __init__(self, board: bool, width: int, pooled: int) -> None:
        super().__init__()
        self.first = Layer.make(board, width, width)
        self.second = Layer.make(board, width, width)
        self.pooled = pooled
        self.shift = nn.Linear(2 * pooled, width) if pooled else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        if self.shift is not None:
            part = torch.relu(y[:, : self.pooled])
            both = torch.cat([part.mean((2, 3)), part.amax((2, 3))], 1)
            y = y + self.shift(both)[:, :, None, None]
        return torch.relu(x + self.second(torch.relu(y)))


class Network(nn.Module):
    """`forward(planes[B, *observation_shape]) -> (policy_logits[B, num_actions], value_out[B, k])`.

    `value_out` is what `values`, `value_loss` and only they understand.
    """

    def __init__(self, game: "Game", config: ModelConfig) -> None:
        super().__init__()
        self.config, self.game_name = config, spec_of(game)
        self.observation_shape = tuple(int(n) for n in game.observation_shape)
        self.num_actions, self.num_players = int(game.num_actions), int(game.num_players)
        self.board = _is_board(self.observation_shape, config.kind)
        self.mirrored = self.num_players == 2 and bool(game.zero_sum)  # one value tells the other
        self.wdl = _is_wdl(game, config)
        self.bounded = config.value_scale == 0
        self.to_go = self.num_players == 1 and not self.bounded  # what will still be earned (`Game.earned`)
        self.offset, self.scale = _units(game, config, self.mirrored)
        outputs = 3 if self.wdl else 1 if self.mirrored else self.num_players

        width = config.channels if self.board else 2 * config.channels
        cells = self.observation_shape[1] * self.observation_shape[2] if self.board else 1
        inputs = self.observation_shape[0] if self.board else int(torch.Size(self.observation_shape).numel())
        pooled = max(1, config.channels // 4) if self.board else 0  # an MLP sees everything anyway
        every = config.pooling
        self.stem = Layer.make(self.board, inputs, width)
        self.blocks = nn.ModuleList(
            Block(self.board, width, pooled if every and (i + 1) % every == 0 else 0) for i in range(config.blocks)
        )
        planes = min(max(_POLICY_WEIGHTS // (cells * self.num_actions), 2), 16)
        self.policy_planes = Layer.make(True, width, planes, 1) if self.board else None
        self.policy = nn.Linear(planes * cells if self.board else width, self.num_actions)
        self.value_planes = Layer.make(True, width, _VALUE_PLANES, 1) if self.board else None
        self.value_hidden = nn.Linear(_VALUE_PLANES * cells if self.board else width, config.hidden)
        self.value = nn.Linear(config.hidden, outputs)
        for block in self.blocks:
            # Each block begins as the identity (Goyal et al. 2017, section 5.1).
            nn.init.zeros_(block.second.norm.weight)  # type: ignore[union-attr, arg-type]
        mixing = [[1.0, -1.0], [0.0, 0.0], [-1.0, 1.0]] if self.wdl else [[1.0, -1.0]] if self.mirrored else None
        self.mixing = torch.tensor(mixing) if mixing else torch.eye(self.num_players)

    def forward(self, planes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.relu(self.stem(planes if self.board else planes.flatten(1)))
        for block in self.blocks:
            x = block(x)
        policy = value = x
        if self.policy_planes is not None and self.value_planes is not None:
            policy = torch.relu(self.policy_planes(x)).flatten(1)
            value = torch.relu(self.value_planes(x)).flatten(1)
        return self.policy(policy), self.value(torch.relu(self.value_hidden(value)))

    def values(self, value_out: torch.Tensor) -> torch.Tensor:
        """The expected utilities [B, num_players] in network units, relative order."""
        out = value_out.float()
        if self.wdl:
            out = torch.softmax(out, 1)
        elif self.bounded:
            out = torch.tanh(out)
        return out @ self.mixing.to(out.device)

    def values_of(self, value_out: np.ndarray) -> np.ndarray:
        """`values` for arrays: on a few rows torch would take longer to be called than to compute."""
        out = value_out
        if self.wdl:
            out = np.exp(out - out.max(1, keepdims=True))
            out /= out.sum(1, keepdims=True)
        elif self.bounded:
            out = np.tanh(out)
        return out @ self.mixing.cpu().numpy()

    def value_targets(self, units: torch.Tensor) -> torch.Tensor:
        """What `value_loss` compares with, from utilities [B, num_players] in network units, relative order: results
        or mixtures of results and search values.

        For wdl the probabilities [B, 3] of win, draw and loss with the mover's expectation v and the most draws:
        (max(v, 0), 1 - |v|, max(-v, 0)); exact for results. Who knows better may give probabilities of their own.
        """
        if not self.wdl:
            return units
        v = units[:, 0].clamp(-1, 1)
        return torch.stack([v.clamp(min=0), 1 - v.abs(), (-v).clamp(min=0)], 1)

    def value_loss(self, value_out: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The loss [B] of each sample against `value_targets`: cross-entropy for wdl, else the squared error, averaged
        over the players; Huber's for unbounded values, whose rare large errors would drown the rest."""
        out = value_out.float()
        if self.wdl:
            return -(targets * torch.log_softmax(out, 1)).sum(1)
        wanted = targets[:, : out.shape[1]]  # mirrored: the mover's is enough
        if self.bounded:
            return ((torch.tanh(out) - wanted) ** 2).mean(1)
        return functional.smooth_l1_loss(out, wanted, reduction="none").mean(1)

    def to_units(self, utility: Any) -> Any:
        """Network units from utilities; numbers, arrays or tensors."""
        return (utility - self.offset) / self.scale

    def from_units(self, units: Any) -> Any:
        """Utilities from network units."""
        return units * self.scale + self.offset


def build(game: "Game", config: ModelConfig | None = None, seed: int = 0) -> Network:
    """A fresh network; the same seed gives the same weights, and the global random generator is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Network(game, config or ModelConfig())


def folded(network: Network) -> Network:
    """A copy for play only, in evaluation mode, its batch normalisation folded into the weights before it."""
    network = copy.deepcopy(network).eval().requires_grad_(False)
    for module in list(network.modules()):
        if isinstance(module, Layer):
            module.fold()
    return network


def parameter_count(network: nn.Module) -> int:
    """How many numbers training adjusts."""
    return sum(parameter.numel() for parameter in network.parameters())


def flops(network: Network, game: "Game | None" = None) -> int:
    """Floating-point operations per position at play: a multiplication and an addition count as two, those with the
    zeros around a board included; element-wise operations are left out, as is the custom. `game` is the one that the network was built for."""
    from torch.utils.flop_counter import FlopCounterMode

    shape = game.observation_shape if game is not None else network.observation_shape
    device = next(network.parameters()).device
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        folded(network)(torch.zeros(1, *shape, device=device))
    return counter.get_total_flops()


def _is_board(shape: tuple[int, ...], kind: str) -> bool:
    if kind == "residual" and len(shape) != 3:
        raise InputError(f"model.kind 'residual' needs an observation (planes, rows, columns), this game's is {shape}")
    return kind == "residual" or (kind == "auto" and len(shape) == 3 and min(shape[1:]) > 1)


def _is_wdl(game: "Game", config: ModelConfig) -> bool:
    fits = game.num_players == 2 and game.zero_sum and (game.min_utility, game.max_utility) == (-1.0, 1.0)
    fits = fits and config.value_scale == 0
    if config.value == "wdl" and not fits:
        raise InputError(
            f"model.value 'wdl' is for two-player zero-sum games paid from -1 to 1 with value_scale 0, which "
            f"{spec_of(game)!r} with value_scale {config.value_scale:g} is not; accepted: auto, scalar"
        )
    return config.value == "wdl" or (config.value == "auto" and fits)


def _units(game: "Game", config: ModelConfig, mirrored: bool) -> tuple[float, float]:
    """Offset and scale: utility = units * scale + offset."""
    if config.value_scale > 0:
        return 0.0, config.value_scale
    low, high = float(game.min_utility), float(game.max_utility)
    if mirrored:  # v and -v must both be in the range
        return 0.0, max(abs(low), abs(high)) or 1.0
    return (low + high) / 2, (high - low) / 2 or 1.0


__all__ = ["ModelConfig", "Network", "build", "flops", "folded", "parameter_count"]
