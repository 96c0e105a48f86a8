"""A public algorithm learns through the Gymnasium environments: PPO with masks beats random play at tic-tac-toe."""

import gymnasium
import numpy as np
import pytest
import torch
from ppo import ActorCritic, Settings, train

import envs  # noqa: F401  registers the environments


def results(network, games=400):
    """Wins, draws and losses of the network's best moves against random, both sides, in the single environment."""
    env = gymnasium.make("selfplay/TicTacToe-v0", opponent="random", agent_player="alternate")
    counts = {1.0: 0, 0.0: 0, -1.0: 0}
    for game in range(games):
        observation, info = env.reset(seed=1000 if game == 0 else None)
        terminated = False
        while not terminated:
            with torch.no_grad():
                choice, _ = network(torch.from_numpy(observation)[None], torch.from_numpy(info["action_mask"])[None])
            observation, reward, terminated, _, info = env.step(int(choice.logits.argmax()))
        counts[reward] += 1
    return counts[1.0] / games, counts[0.0] / games, counts[-1.0] / games


@pytest.mark.slow
def test_ppo_beats_random_at_tic_tac_toe():
    # Perfect play as either side wins about nine games in ten and loses none; a random player wins 43 in 100.
    torch.set_num_threads(1)
    torch.manual_seed(0)
    untrained = results(ActorCritic(18, 9))
    vector = gymnasium.make_vec("selfplay/TicTacToe-v0", 64, opponent="random", agent_player="alternate")
    wins, draws, losses = results(train(vector, seed=1))
    assert wins > 0.85 and losses < 0.06, (wins, draws, losses)
    assert wins > untrained[0] + 0.1 and losses < untrained[2] / 2, untrained


def test_ppo_runs_on_gymnasiums_own_vectors_too():
    few = Settings(steps=8, updates=2)
    networks = []
    for mode in ("vector_entry_point", "sync"):
        vector = gymnasium.make_vec("selfplay/TicTacToe-v0", 4, vectorization_mode=mode, agent_player="alternate")
        networks.append(train(vector, seed=3, settings=few))
    for one, other in zip(*(network.parameters() for network in networks), strict=True):
        assert np.array_equal(one.detach().numpy(), other.detach().numpy())  # the same games, so the same network
