"""Self-play of pgx with mctx, timed: a program of its own, because JAX lives in another environment than ours.

    python benchmarks/selfplay_peers.py --seconds 20        prints one JSON object

128 games of Connect Four in lockstep, each move chosen by Gumbel MuZero search (Danihelka et al. 2022) with 64
simulations of the true rules; a network of 5 blocks of 64 channels in float32, without normalisation, which in a
trained network folds into the convolutions. A finished game starts again in the same step, so that every row of the
batch is a searched position that training could use.

XLA may use all cores but on a CPU does not spread this program over them: one process keeps one core busy. So the
figure says how many cores it used, and `benchmarks/selfplay.py` also measures a process per core.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PYTHON = "SELFPLAY_PEERS_PYTHON"  # the variable that names an interpreter with jax, pgx and mctx
PACKAGES = ("jax", "pgx", "mctx")
BATCH = 128


def peers_python() -> str | None:
    """The interpreter that can import the peers: the one that the variable names, or this one; None if it can't."""
    python = os.environ.get(PYTHON, sys.executable)
    probe = f"import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, {PACKAGES})))"
    try:
        found = subprocess.run([python, "-c", probe], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return python if found.returncode == 0 else None


class Peer:
    """The peer in a process of its own, compiled and waiting: `measure` lets it play for a while, and it sleeps else."""

    def __init__(self, python: str, simulations: int, blocks: int, channels: int, batch: int = BATCH):
        sizes = {"simulations": simulations, "blocks": blocks, "channels": channels, "batch": batch}
        options = [text for name, value in sizes.items() for text in (f"--{name}", str(value))]
        self.process = subprocess.Popen(
            [python, str(Path(__file__).resolve()), "--serve", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
        )
        self.versions: dict[str, str] = self.answer()["versions"]

    def measure(self, seconds: float) -> dict[str, Any]:
        """`positions`, `seconds`, `cores` used, `positions_per_second`, `evaluations_per_second` of about that long."""
        self.start(seconds)
        return self.answer()

    def start(self, seconds: float) -> None:
        """Begins a measurement, whose figures `answer` waits for."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()

    def answer(self) -> dict[str, Any]:
        """The next line of figures; waits for it."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the peer's process ended with code {self.process.wait(60)}")
        return json.loads(line)


class Actor:
    """pgx's games, mctx's search and a network in JAX. Imports the peers, so only their interpreter can make one."""

    def __init__(self, simulations: int, blocks: int, channels: int, batch: int, seed: int = 0):
        import jax
        import pgx

        self.jax, self.simulations, self.batch = jax, simulations, batch
        self.env: Any = pgx.make("connect_four")
        self.key = jax.random.PRNGKey(seed)
        height, width, planes = self.env.observation_shape
        self.parameters = self._network(blocks, channels, planes, height * width, self.env.num_actions)
        self.states = jax.jit(jax.vmap(self.env.init))(jax.random.split(self._next_key(), batch))
        self.move = jax.jit(self._move)

    def play(self, seconds: float) -> dict[str, Any]:
        """Self-play for about that long, whole moves of the batch."""
        moves, started, worked = 0, time.perf_counter(), time.process_time()
        while True:
            self.states = self.move(self.parameters, self.states, self._next_key())
            self.jax.block_until_ready(self.states)
            moves += 1
            took = time.perf_counter() - started
            if took >= seconds:
                break
        rate = moves * self.batch / took
        return {
            "positions": moves * self.batch,
            "seconds": took,
            "cores": (time.process_time() - worked) / took,
            "positions_per_second": rate,
            "evaluations_per_second": rate * (self.simulations + 1),  # the root counts as well
        }

    def _next_key(self) -> Any:
        self.key, key = self.jax.random.split(self.key)
        return key

    def _network(self, blocks: int, channels: int, planes: int, cells: int, actions: int) -> dict[str, Any]:
        """Random weights, He et al. 2015: their values do not change the time that an evaluation takes."""
        normal = self.jax.random.normal

        def convolution(size: int, before: int, after: int) -> tuple[Any, Any]:
            scale = (2 / (size * size * before)) ** 0.5
            bias = self.jax.numpy.zeros(after)
            return scale * normal(self._next_key(), (size, size, before, after)), bias

        def dense(before: int, after: int) -> tuple[Any, Any]:
            return (2 / before) ** 0.5 * normal(self._next_key(), (before, after)), self.jax.numpy.zeros(after)

        return {
            "stem": convolution(3, planes, channels),
            "blocks": [[convolution(3, channels, channels) for _ in range(2)] for _ in range(blocks)],
            "policy": convolution(1, channels, 2),
            "policy_out": dense(2 * cells, actions),
            "value": convolution(1, channels, 1),
            "value_hidden": dense(cells, channels),
            "value_out": dense(channels, 1),
        }

    def _evaluate(self, parameters: Any, states: Any) -> tuple[Any, Any]:
        """Logits of the legal actions and the value, from the mover's side."""
        jax, jnp = self.jax, self.jax.numpy

        def convolve(x: Any, weights: Any) -> Any:
            kernel, bias = weights
            dimensions = ("NHWC", "HWIO", "NHWC")
            return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=dimensions) + bias

        def flat(x: Any) -> Any:
            return jax.nn.relu(x).reshape(x.shape[0], -1)

        x = jax.nn.relu(convolve(states.observation.astype(jnp.float32), parameters["stem"]))
        for first, second in parameters["blocks"]:
            x = jax.nn.relu(x + convolve(jax.nn.relu(convolve(x, first)), second))
        weights, bias = parameters["policy_out"]
        logits = flat(convolve(x, parameters["policy"])) @ weights + bias
        weights, bias = parameters["value_hidden"]
        hidden = jax.nn.relu(flat(convolve(x, parameters["value"])) @ weights + bias)
        weights, bias = parameters["value_out"]
        value = jnp.tanh(hidden @ weights + bias)[:, 0]
        lowest = jnp.finfo(logits.dtype).min
        return jnp.where(states.legal_action_mask, logits - logits.max(-1, keepdims=True), lowest), value

    def _move(self, parameters: Any, states: Any, key: Any) -> Any:
        """A search in every game and its action played; games that end start again."""
        import mctx

        jax, jnp = self.jax, self.jax.numpy
        rows = jnp.arange(self.batch)

        def simulate(parameters: Any, key: Any, action: Any, states: Any) -> tuple[Any, Any]:
            mover = states.current_player
            states = jax.vmap(self.env.step)(states, action)
            logits, value = self._evaluate(parameters, states)
            over = states.terminated
            # The players alternate, so what follows counts with the other sign for who moved; nothing follows an end.
            output = mctx.RecurrentFnOutput(
                reward=states.rewards[rows, mover],
                discount=jnp.where(over, 0.0, -1.0),
                prior_logits=logits,
                value=jnp.where(over, 0.0, value),
            )
            return output, states

        search_key, start_key = jax.random.split(key)
        logits, value = self._evaluate(parameters, states)
        found = mctx.gumbel_muzero_policy(
            params=parameters,
            rng_key=search_key,
            root=mctx.RootFnOutput(prior_logits=logits, value=value, embedding=states),
            recurrent_fn=simulate,
            num_simulations=self.simulations,
            invalid_actions=~states.legal_action_mask,
            qtransform=mctx.qtransform_completed_by_mix_value,
        )
        states = jax.vmap(self.env.step)(states, found.action)
        fresh = jax.vmap(self.env.init)(jax.random.split(start_key, self.batch))

        def choose(new: Any, old: Any) -> Any:
            return jnp.where(states.terminated.reshape(-1, *[1] * (old.ndim - 1)), new, old)

        return jax.tree_util.tree_map(choose, fresh, states)


def main() -> None:
    options = argparse.ArgumentParser(description="Self-play positions/s of pgx with mctx on Connect Four.")
    options.add_argument("--seconds", type=float, default=20.0)
    options.add_argument("--simulations", type=int, default=64)
    options.add_argument("--blocks", type=int, default=5)
    options.add_argument("--channels", type=int, default=64)
    options.add_argument("--batch", type=int, default=BATCH)
    options.add_argument("--serve", action="store_true", help="measure once for each line of seconds on standard input")
    given = options.parse_args()
    from importlib.metadata import version

    actor = Actor(given.simulations, given.blocks, given.channels, given.batch)
    actor.play(0.0)  # compiled before any clock starts
    versions = {"versions": {package: version(package) for package in PACKAGES}}
    if not given.serve:
        print(json.dumps({**actor.play(given.seconds), **versions}))
        return
    print(json.dumps(versions), flush=True)
    for line in sys.stdin:
        print(json.dumps(actor.play(float(line))), flush=True)


if __name__ == "__main__":
    main()
