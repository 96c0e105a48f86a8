"""Proximal policy optimisation (Schulman et al. 2017) with masked actions, small, in the manner of a single file.

It knows nothing of this project: any Gymnasium vector environment with next-step autoreset, flat or image
observations, discrete actions and an `action_mask` in its infos will do.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical


@dataclass
class Settings:
    steps: int = 32  # per environment and update
    updates: int = 120
    epochs: int = 4
    minibatches: int = 4
    learning_rate: float = 1e-3
    discount: float = 1.0
    trace: float = 0.95  # generalised advantage estimation
    clip: float = 0.2
    entropy: float = 0.01


class ActorCritic(nn.Module):
    def __init__(self, inputs: int, actions: int, hidden: int = 128):
        super().__init__()
        self.body = nn.Sequential(
            nn.Flatten(), nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.policy, self.value = nn.Linear(hidden, actions), nn.Linear(hidden, 1)

    def forward(self, observation, mask):
        body = self.body(observation)
        logits = self.policy(body).masked_fill(mask == 0, -1e9)
        return Categorical(logits=logits), self.value(body).squeeze(-1)


def collect(vector, network, observation, mask, over, settings):
    """Plays `steps` steps. `over` marks environments whose coming step only resets them: nothing to learn there."""
    names = ("observation", "mask", "action", "chance", "value", "reward", "ended", "real")
    memory = {name: [] for name in names}
    for _ in range(settings.steps):
        with torch.no_grad():
            choice, value = network(observation, mask)
            action = choice.sample()
        step = {"observation": observation, "mask": mask, "action": action, "value": value, "real": ~over}
        step["chance"] = choice.log_prob(action)
        seen, reward, terminated, truncated, info = vector.step(action.numpy())
        observation, mask = torch.from_numpy(seen), torch.from_numpy(info["action_mask"])
        step["reward"] = torch.from_numpy(reward).float()
        over = torch.from_numpy(terminated | truncated)
        step["ended"] = over
        for name in names:
            memory[name].append(step[name])
    return {name: torch.stack(values) for name, values in memory.items()}, observation, mask, over


def advantages(memory, last_value, settings):
    result, running = torch.zeros_like(memory["value"]), torch.zeros_like(last_value)
    following = last_value
    for t in reversed(range(settings.steps)):
        going_on = (~memory["ended"][t]).float()
        error = memory["reward"][t] + settings.discount * following * going_on - memory["value"][t]
        running = error + settings.discount * settings.trace * going_on * running
        result[t], following = running, memory["value"][t]
    return result


def train(vector, seed=0, settings=None):
    """A network that plays the vector environment's game."""
    settings = settings or Settings()
    torch.manual_seed(seed)
    inputs = int(np.prod(vector.single_observation_space.shape))
    network = ActorCritic(inputs, int(vector.single_action_space.n))
    optimiser = torch.optim.Adam(network.parameters(), settings.learning_rate)
    seen, info = vector.reset(seed=seed)
    observation, mask = torch.from_numpy(seen), torch.from_numpy(info["action_mask"])
    over = torch.zeros(vector.num_envs, dtype=torch.bool)
    for update in range(settings.updates):
        optimiser.param_groups[0]["lr"] = settings.learning_rate * (1 - update / settings.updates)
        memory, observation, mask, over = collect(vector, network, observation, mask, over, settings)
        with torch.no_grad():
            gain = advantages(memory, network(observation, mask)[1], settings)
        goal = gain + memory["value"]
        flat = {name: values.flatten(0, 1) for name, values in memory.items()}
        gain, goal, real = gain.flatten(), goal.flatten(), torch.nonzero(flat["real"]).squeeze(-1)
        for _ in range(settings.epochs):
            for rows in real[torch.randperm(len(real))].chunk(settings.minibatches):
                choice, value = network(flat["observation"][rows], flat["mask"][rows])
                ratio = (choice.log_prob(flat["action"][rows]) - flat["chance"][rows]).exp()
                better = (gain[rows] - gain[rows].mean()) / (gain[rows].std() + 1e-8)
                clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
                loss = -torch.min(ratio * better, clipped * better).mean()
                loss = loss + 0.5 * (value - goal[rows]).square().mean() - settings.entropy * choice.entropy().mean()
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(network.parameters(), 0.5)
                optimiser.step()
    return network
