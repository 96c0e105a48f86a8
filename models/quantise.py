"""How far the activations of a tower reach, for runtimes that compute it in integers of 8 bits.

No data is needed: batch normalisation says it. What a normalisation gives has the mean `bias` and the deviation
`|weight|` in each channel over the positions that the network learned from, so the limits follow from the weights
alone: a run that is resumed has the same, and new weights cost no pass over positions. The sums of the shortcuts are
followed from block to block as if their parts were independent normal variables. They are not quite, so that their
limits are wider; too wide a limit costs little, as 255 steps are many, but what is cut off is lost.
"""

import math
from typing import Any

import torch
from torch.special import ndtr

from models.network import Network

# In deviations, of the sums and inside the blocks. Measured with the network in checkpoints/connect_four on its own
# games, mean error of the value: 0.036 with 3 and 3, 0.0074 with 5 and 4, 0.0040 with 8 and 5, 0.0041 with 8 and 6.
_SUM, _INSIDE = 8.0, 6.0
_LEAST = 1e-3  # a limit has to be positive even if all weights are 0


def limits(network: Network) -> list[float]:
    """The largest input to expect of each convolution in the tower's blocks, in the order in which they are computed;
    none for an MLP. The network's normalisation must not have been folded."""
    found: list[float] = []
    if not network.board:
        return found
    cells = network.observation_shape[1] * network.observation_shape[2]
    block: Any
    with torch.no_grad():
        mean, variance = _after_relu(*_normalised(network.stem))
        for block in network.blocks:
            found.append(_limit(mean, variance, _SUM))
            inner, spread = _normalised(block.first)
            if block.shift is not None:
                inner, spread = _shifted(inner, spread, block, cells)
            found.append(_limit(inner, spread, _INSIDE))
            added, spread = _normalised(block.second)
            mean, variance = _after_relu(mean + added, variance + spread)
    return found


def _normalised(layer: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return layer.norm.bias.double().cpu(), layer.norm.weight.double().cpu() ** 2


def _limit(mean: torch.Tensor, variance: torch.Tensor, deviations: float) -> float:
    return max(_LEAST, float((mean + deviations * variance.sqrt()).max()))


def _after_relu(mean: torch.Tensor, variance: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and variance of max(x, 0) for normal x."""
    deviation = variance.sqrt().clamp(min=1e-9)
    z = mean / deviation
    density, below = torch.exp(-z * z / 2) / math.sqrt(2 * math.pi), ndtr(z)
    first = mean * below + deviation * density
    second = (mean * mean + variance) * below + mean * deviation * density
    return first, (second - first * first).clamp(min=0)


def _shifted(mean: torch.Tensor, variance: torch.Tensor, block: Any, cells: int) -> tuple[torch.Tensor, torch.Tensor]:
    """With what global pooling adds; the largest of n normal variables is about sqrt(2 ln n) deviations up."""
    part, spread = _after_relu(mean[: block.pooled], variance[: block.pooled])
    top = part + math.sqrt(2 * math.log(cells)) * spread.sqrt()
    weight, bias = block.shift.weight.double().cpu(), block.shift.bias.double().cpu()
    return mean + weight @ torch.cat([part, top]) + bias, variance + weight**2 @ torch.cat([spread, spread])


__all__ = ["limits"]
