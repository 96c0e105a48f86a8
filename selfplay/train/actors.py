"""Where actors live: in this process, or in processes of their own that speak through pipes.

An actor takes weights and gives games; a message is one safetensors block, so that actors could as well be on other
machines. With one worker the actor is in this process and the run repeats bit for bit.
"""

import time
from typing import Any, Protocol

import numpy as np
import torch

from envs.errors import InputError
from envs.game import Game
from envs.registry import make
from models.inference import make_evaluator
from models.network import build
from selfplay.train.actor import Actor, Finished, Tally
from selfplay.train.config import TrainConfig, as_table, validated
from selfplay.train.pipes import end, is_waiting, receive, send, serve, start
from selfplay.workers import available_cores

Weights = dict[str, np.ndarray]
_LOOK = 0.2  # seconds between looks whether the user wants to end the run


class Actors(Protocol):
    """Some actors that play a round together."""

    backend: str

    def play(self, weights: Weights, moves: int) -> tuple[list[Finished], Tally]: ...
    def state(self) -> dict[str, np.ndarray]: ...
    def restore(self, arrays: dict[str, np.ndarray]) -> None: ...
    def close(self) -> None: ...


class LocalActor:
    """One actor in this process."""

    def __init__(self, game: Game, config: TrainConfig, number: int = 0, stop: Any = None):
        self.game, self.config, self.stop = game, config, stop
        self.network = build(game, config.model, config.seed).eval()
        self.evaluator = make_evaluator(
            self.network,
            game,
            config.device,
            config.backend,
            threads=1,
            max_batch=config.actor.games + 1,
            exact=config.workers == 1,
            quantised=True,
        )
        self.backend = self.evaluator.name
        self.actor = Actor(game, config, self.evaluator, self.network, number)

    def play(self, weights: Weights, moves: int) -> tuple[list[Finished], Tally]:
        self.network.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in weights.items()})
        self.evaluator.update(self.network)
        return self.actor.play(moves, self.stop)

    def state(self) -> dict[str, np.ndarray]:
        return {f"actor0/{k}": v for k, v in self.actor.state().items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        found = {k.split("/", 1)[1]: v for k, v in arrays.items() if k.startswith("actor0/")}
        self.actor.restore(found)

    def close(self) -> None:
        pass


def pack_games(games: list[Finished]) -> tuple[dict[str, np.ndarray], list[Any]]:
    samples = [np.frombuffer(game.samples.tobytes(), np.uint8) for game in games]
    joined = np.concatenate(samples) if samples else np.zeros(0, np.uint8)
    heads = [[len(g.samples), g.utilities, g.resigned, g.false_resignation] for g in games]
    return {"games": joined}, heads


def unpack_games(dtype: np.dtype, data: np.ndarray, heads: list[Any]) -> list[Finished]:
    samples = np.frombuffer(data.tobytes(), dtype)
    games, first = [], 0
    for length, utilities, resigned, wrong in heads:
        part = samples[first : first + length]
        first += length
        games.append(Finished(part, [int(a) for a in part["action"]], utilities, resigned, wrong))
    return games


class ActorProcesses:
    """Actors in processes of their own, one per core."""

    def __init__(self, game_spec: str, game: Game, config: TrainConfig, count: int, stop: Any = None):
        from selfplay.train.moves import sample_dtype

        self.dtype, self.count, self.stop = sample_dtype(game), count, stop
        self.processes = start("selfplay.train.actors", count)
        for number, process in enumerate(self.processes):
            send(process.stdin, {}, {"game": game_spec, "config": as_table(config), "number": number})
        self.backend = str(self._answers()[0][1]["backend"])
        self.states: dict[str, np.ndarray] = {}

    def _answers(self) -> list[tuple[dict[str, np.ndarray], dict[str, Any]]]:
        answers = []
        for process in self.processes:
            while not is_waiting(process.stdout, _LOOK):
                if self.stop and self.stop():
                    raise KeyboardInterrupt
            try:
                arrays, head = receive(process.stdout)
            except (EOFError, OSError, ValueError):
                raise InputError(
                    f"a self-play process died, exit code {process.wait()}; the run can be resumed"
                ) from None
            if "error" in head:
                raise InputError(head["error"])
            answers.append((arrays, head))
        return answers

    def play(self, weights: Weights, moves: int) -> tuple[list[Finished], Tally]:
        try:
            for process in self.processes:
                send(process.stdin, weights, {"moves": moves // self.count})
        except OSError:
            pass  # it died: `_answers` says so
        games: list[Finished] = []
        tally = Tally()
        self.states = {}
        for number, (arrays, head) in enumerate(self._answers()):
            games += unpack_games(self.dtype, arrays.pop("games"), head["games"])
            self.states.update({f"actor{number}/{k}": v for k, v in arrays.items()})
            for name, value in head["tally"].items():
                setattr(tally, name, getattr(tally, name) + value)
        tally.seconds /= self.count
        tally.inference_seconds /= self.count
        return games, tally

    def state(self) -> dict[str, np.ndarray]:
        return self.states

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        for number, process in enumerate(self.processes):
            mine = {k.split("/", 1)[1]: v for k, v in arrays.items() if k.startswith(f"actor{number}/")}
            if mine:
                send(process.stdin, mine, {"restore": True})
                receive(process.stdout)
        self.states = {k: v for k, v in arrays.items() if k.startswith("actor")}

    def close(self) -> None:
        end(self.processes)


def make_actors(game_spec: str, game: Game, config: TrainConfig, stop: Any = None) -> Actors:
    """One actor here, or a process per core."""
    workers = config.workers or available_cores()
    if workers == 1:
        return LocalActor(game, config, stop=stop)
    return ActorProcesses(game_spec, game, config, workers, stop)


def measure(game_spec: str, simulations: int, blocks: int, channels: int, seconds: float) -> dict[str, float]:
    """Self-play positions/s of an untrained network of that size, on all cores."""
    from models.inference import measure as measure_evaluator

    game = make(game_spec)
    config = validated(
        {
            "model": {"blocks": blocks, "channels": channels},
            "search": {"simulations": simulations},
            "workers": max(2, available_cores()),
        },
        "bench",
    )
    network = build(game, config.model, 0).eval()
    weights = {k: v.numpy() for k, v in network.state_dict().items()}
    actors = ActorProcesses(game_spec, game, config, config.workers)
    try:
        games = config.actor.games * config.workers
        actors.play(weights, games)  # compiles
        positions, evaluations, inference, spent = 0, 0, 0.0, 0.0
        started = time.perf_counter()
        while time.perf_counter() - started < seconds:
            _, tally = actors.play(weights, games * 8)
            positions += tally.positions
            evaluations += tally.evaluations
            inference += tally.inference_seconds
            spent += tally.seconds
        elapsed = time.perf_counter() - started
    finally:
        actors.close()
    evaluator = make_evaluator(network, game, config.device, config.backend, 1, config.actor.games + 1, quantised=True)
    bare = measure_evaluator(evaluator, config.actor.games) * config.workers
    return {
        "positions_per_second": positions / elapsed,
        "evaluations_per_second": evaluations / elapsed,
        "bare_evaluations_per_second": bare,
        "inference_share": inference / spent,
    }


def main() -> None:
    """An actor process: hears from standard input, answers on standard output."""
    hears, answers = serve()
    torch.set_num_threads(1)
    try:
        _, first = receive(hears)
        config = validated(first["config"], "config")
        actor = LocalActor(make(first["game"]), config, first["number"])
        send(answers, {}, {"backend": actor.backend})
        while True:
            arrays, head = receive(hears)
            if "restore" in head:
                actor.actor.restore(arrays)
                send(answers, {}, {})
                continue
            games, tally = actor.play(arrays, head["moves"])
            packed, heads = pack_games(games)
            counts = {k: v for k, v in vars(tally).items() if k != "rows"}
            send(answers, {**packed, **actor.actor.state()}, {"games": heads, "tally": counts})
    except (EOFError, BrokenPipeError):
        return
    except InputError as error:
        send(answers, {}, {"error": str(error)})


if __name__ == "__main__":
    main()
