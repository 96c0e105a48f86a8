"""The learner: gradient steps on the replay window, and the averaged weights that play."""

import math
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from envs.game import Game
from models.network import Network, build
from selfplay.train.config import TrainConfig
from selfplay.train.replay import Replay


def has_bf16(device: str) -> bool:
    """Whether the device multiplies 16-bit numbers faster than it would 32-bit ones."""
    if device.startswith("cuda"):
        return bool(torch.cuda.is_bf16_supported())
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


class Learner:
    """Network, its average, optimiser. All of it goes through `state` and `restore`."""

    def __init__(self, game: Game, config: TrainConfig, device: str = "cpu"):
        self.config, self.device = config, device
        self.network: Network = build(game, config.model, config.seed).to(device)
        self.average: Network = build(game, config.model, config.seed).to(device).eval()
        if self.network.board:
            for module in (self.network, self.average):
                module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        settings = config.learner
        self.optimiser = torch.optim.AdamW(
            self.network.parameters(), lr=settings.rate, weight_decay=settings.weight_decay
        )
        # Both networks' numbers in the same order, so that the average is taken in one call.
        kept = [(ours, self.network.state_dict()[name]) for name, ours in self.average.state_dict().items()]
        self.averaged = [pair for pair in kept if pair[0].dtype.is_floating_point]
        self.counted = [pair for pair in kept if not pair[0].dtype.is_floating_point]
        self.bf16 = has_bf16(device) if settings.bf16 == "auto" else settings.bf16
        self.step = 0
        self.owed = 0.0  # steps that the data so far pays for and that were not made yet

    def rate(self, progress: float) -> float:
        """Warm-up, then a cosine down to the final share; `progress` is the share of the run that is over."""
        settings = self.config.learner
        warm = min(1.0, (self.step + 1) / max(settings.warm_up, 1))
        cosine = 0.5 * (1 + math.cos(math.pi * min(max(progress, 0.0), 1.0)))
        return settings.rate * warm * (settings.final_rate + (1 - settings.final_rate) * cosine)

    def train(self, replay: Replay, new_positions: int, progress: float, stop: Any = None) -> dict[str, float]:
        """As many steps as the new positions pay for; returns the means of losses and the like."""
        settings = self.config.learner
        self.owed += new_positions * settings.reuse / settings.batch
        if len(replay) < settings.batch:
            self.owed = min(self.owed, 1.0)
            return {}
        totals: dict[str, float] = {}
        steps = int(self.owed)
        for _ in range(steps):
            if stop and stop():
                break
            self.owed -= 1
            for name, value in self.one_step(replay, progress).items():
                totals[name] = totals.get(name, 0.0) + value
        return {name: value / max(steps, 1) for name, value in totals.items()}

    def one_step(self, replay: Replay, progress: float) -> dict[str, float]:
        settings = self.config.learner
        rng = np.random.default_rng([self.config.seed & 0xFFFF_FFFF, self.step])
        batch = {k: torch.from_numpy(v).to(self.device) for k, v in replay.batch(rng, settings.batch).items()}
        self.network.train()
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate(progress)
        kind = self.device.split(":")[0]
        with torch.autocast(kind, torch.bfloat16, enabled=self.bf16):
            planes = batch["planes"]
            if self.network.board:
                planes = planes.to(memory_format=torch.channels_last)
            logits, value_out = self.network(planes)
        log_policy = functional.log_softmax(logits.float(), 1)
        weights = batch["full"]
        cross = -(batch["policies"] * log_policy).sum(1)
        policy_loss = (cross * weights).sum() / weights.sum().clamp(min=1)
        targets = self.network.value_targets(batch["values"])
        value_loss = self.network.value_loss(value_out, targets).mean()
        loss = policy_loss + settings.value_weight * value_loss
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), settings.clip)
        self.optimiser.step()
        self.step += 1
        self._take_average()
        with torch.no_grad():
            entropy = -(log_policy.exp() * log_policy).sum(1).mean()
            wanted = torch.where(batch["policies"] > 0, batch["policies"], 1.0).log()
            divergence = cross + (batch["policies"] * wanted).sum(1)
            error = (self.network.values(value_out)[:, 0] - batch["values"][:, 0]).square().mean()
        return {
            "loss/policy": float(policy_loss.detach()),
            "loss/value": float(value_loss.detach()),
            "loss/total": float(loss.detach()),
            "policy/entropy": float(entropy),
            "policy/kl_to_search": float(divergence.mean()),
            "value/squared_error": float(error),
            "learner/gradient_norm": float(norm),
            "learner/rate": self.rate(progress),
        }

    @torch.no_grad()
    def _take_average(self) -> None:
        """Exponential average; young runs forget their beginnings faster."""
        decay = min(self.config.learner.average, (1 + self.step) / (10 + self.step))
        torch._foreach_lerp_([a for a, _ in self.averaged], [b for _, b in self.averaged], 1 - decay)
        for ours, theirs in self.counted:
            ours.copy_(theirs)

    def weights(self) -> dict[str, np.ndarray]:
        """The averaged weights, which play."""
        return {k: v.detach().cpu().numpy() for k, v in self.average.state_dict().items()}

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays: dict[str, np.ndarray] = {}
        for prefix, module in (("network", self.network), ("average", self.average)):
            for name, value in module.state_dict().items():
                arrays[f"{prefix}/{name}"] = value.detach().cpu().numpy().copy()
        for index, slots in self.optimiser.state_dict()["state"].items():
            for name, value in slots.items():
                arrays[f"optimiser/{index}/{name}"] = np.asarray(value.detach().cpu().numpy()).copy()
        return arrays, {"step": self.step, "owed": self.owed}

    def restore(self, arrays: dict[str, np.ndarray], info: dict[str, Any]) -> None:
        for prefix, module in (("network", self.network), ("average", self.average)):
            found = {k.split("/", 1)[1]: torch.from_numpy(v) for k, v in arrays.items() if k.startswith(prefix + "/")}
            module.load_state_dict(found)
        state: dict[int, dict[str, torch.Tensor]] = {}
        for key, value in arrays.items():
            if key.startswith("optimiser/"):
                _, index, name = key.split("/")
                state.setdefault(int(index), {})[name] = torch.from_numpy(value.copy()).reshape(value.shape)
        whole = self.optimiser.state_dict()
        self.optimiser.load_state_dict({"state": state, "param_groups": whole["param_groups"]})
        self.step, self.owed = info["step"], info["owed"]
