"""Fast evaluation of many positions with one network: the backend is chosen by measurement at the start.

An evaluator pads every batch to one of a few sizes, because a runtime prepares itself per size. Kernels may differ
between sizes and so may the last bits; with `exact` all work is done in batches of one size, and a position then gives
the same bits whatever else is asked with it (the tests check it for each backend). "auto" measures and may choose
otherwise another time: a run that has to be repeated keeps `Evaluator.name` and asks for that backend.

Evaluators are not for several threads at once: each thread makes its own. On two cores two threads with an evaluator of
one thread each are faster than one evaluator of two threads, and all backends release the interpreter's lock.
"""

import shutil
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from envs.errors import InputError
from envs.game import Game
from models.graph import Onnx, OpenVino, openvino_module
from models.network import Network, folded

SIZES = (1, 8, 32, 64, 128, 256, 512, 1024)  # batches are padded to one of these
_FLOAT32, _BFLOAT16, _HALF = 1e-4, 5e-2, 2e-2  # tolerances, see `Evaluator.tolerance`
_EXACT_SIZE = 32  # large enough for full speed on CPUs
_MEASURED_BATCH = 64
_SECONDS_EACH = 0.12  # of measuring per backend
CPU_BACKENDS = ("openvino-bf16", "openvino", "onnxruntime", "torch-bf16", "torch", "compile-bf16", "compile")
CUDA_BACKENDS = ("cuda-half", "cuda")
# torch.compile takes 4 to 16 s before its first answer and was never the fastest: only by name.
_ONLY_BY_NAME = ("compile-bf16", "compile")


class Evaluator:
    """`evaluator(planes[n, *observation_shape]) -> (logits[n, num_actions], values[n, num_players])`, all float32.

    Values are in network units and relative order (see `models/network.py`).
    """

    name: str = ""  # the backend's name
    tolerance: float = _FLOAT32  # of values absolutely, of logits relative to the largest logit of the batch or to 1

    def __init__(self, network: Network, threads: int, max_batch: int, exact: bool) -> None:
        self.shape, self.threads, self.max_batch = network.observation_shape, threads, max_batch
        self.num_actions, self.num_players = network.num_actions, network.num_players
        self.sizes = [_EXACT_SIZE] if exact else [size for size in SIZES if size < max_batch] + [max_batch]
        self.layout = _layout(network)
        self.update(network)

    def update(self, network: Network) -> None:
        """Takes the weights of a network of the same shape; the network itself may change afterwards."""
        if _layout(network) != self.layout:
            raise InputError("an evaluator takes new weights only from a network of the same game and shape")
        self._take(folded(network))

    def __call__(self, planes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        count = len(planes)
        if count > self.max_batch or planes.shape[1:] != self.shape:
            raise ValueError(f"planes {planes.shape}: at most {self.max_batch} of shape {self.shape} are accepted")
        if count == 0:
            return np.zeros((0, self.num_actions), np.float32), np.zeros((0, self.num_players), np.float32)
        logits = np.empty((count, self.num_actions), np.float32)
        values = np.empty((count, self.num_players), np.float32)
        step = self.sizes[-1]
        for start in range(0, count, step):
            part = planes[start : start + step]
            size = next(size for size in self.sizes if size >= len(part))
            batch = np.zeros((size, *self.shape), np.float32)
            batch[: len(part)] = part
            outputs = self._run(batch)
            for whole, output in zip((logits, values), outputs, strict=True):
                whole[start : start + step] = output[: len(part)]
        return logits, values

    def _take(self, network: Network) -> None:
        raise NotImplementedError

    def _run(self, batch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError


class TorchEvaluator(Evaluator):
    """PyTorch on any device, with convolutions in the channels-last layout; compiled if asked for."""

    def __init__(
        self,
        network: Network,
        threads: int,
        max_batch: int,
        exact: bool,
        dtype: torch.dtype,
        device: str,
        compiled: bool,
    ) -> None:
        self.dtype, self.device, self.compiled = dtype, torch.device(device), compiled
        self.tolerance = {torch.float32: _FLOAT32, torch.bfloat16: _BFLOAT16, torch.float16: _HALF}[dtype]
        self.model: Network | None = None
        self.forward: Any = None
        super().__init__(network, threads, max_batch, exact or compiled)  # one size: one compilation

    def _take(self, network: Network) -> None:
        network = network.to(self.device, self.dtype, memory_format=torch.channels_last)  # type: ignore[call-overload]
        if self.model is None:
            self.model = network
            self.forward = torch.compile(network, dynamic=False) if self.compiled else network
        else:  # in place, so that what was compiled stays valid
            self.model.load_state_dict(network.state_dict())

    def _run(self, batch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        assert self.model is not None
        before = torch.get_num_threads()
        if before != self.threads:
            torch.set_num_threads(self.threads)  # the learner in this process may want another number
        try:
            with torch.inference_mode():
                planes = torch.from_numpy(batch).to(self.device, self.dtype)
                if planes.ndim == 4:
                    planes = planes.contiguous(memory_format=torch.channels_last)
                logits, value_out = self.forward(planes)
                return logits.float().cpu().numpy(), self.model.values(value_out).cpu().numpy()
        finally:
            if before != self.threads:
                torch.set_num_threads(before)


class OpenVinoEvaluator(Evaluator):
    """OpenVINO's CPU plugin; each batch size is compiled when first met, in about 0.04 s."""

    def __init__(self, network: Network, threads: int, max_batch: int, exact: bool, precision: str) -> None:
        self.ov = openvino_module()
        self.core = self.ov.Core()
        self.tolerance = _BFLOAT16 if precision == "bf16" else _FLOAT32
        self.properties = {
            "INFERENCE_PRECISION_HINT": precision,
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            "ENABLE_CPU_PINNING": False,  # two evaluators would be pinned to the same core
            "SNIPPETS_MODE": "DISABLE",  # 2026.4 crashes on our MLPs when it fuses matrices into its "snippets"
        }
        super().__init__(network, threads, max_batch, exact)

    def _take(self, network: Network) -> None:
        self.network: Network = network
        self.requests: dict[int, Any] = {}

    def _run(self, batch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        request = self.requests.get(len(batch))
        if request is None:
            model = OpenVino(self.ov).model(self.network, len(batch))
            request = self.core.compile_model(model, "CPU", self.properties).create_infer_request()
            self.requests[len(batch)] = request
        # Into the request's own memory: one that shares the batch's would outlive it.
        request.get_input_tensor(0).data[:] = batch
        request.infer()
        # The values' last steps in float32: bfloat16 has only 128 numbers between 0.5 and 1.
        values = self.network.values(torch.from_numpy(request.get_output_tensor(1).data))
        return request.get_output_tensor(0).data, values.numpy()


class OnnxEvaluator(Evaluator):
    """ONNX Runtime on the CPU, float32."""

    def _take(self, network: Network) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = self.threads, 3
        model = Onnx().model(network).SerializeToString()
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def _run(self, batch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logits, values = self.session.run(["policy", "values"], {"planes": batch})
        return logits, values


def available_backends(device: str = "auto") -> list[str]:
    """The names that `make_evaluator` accepts on this machine, those only chosen by name included."""
    if _device(device) == "cuda":
        return list(CUDA_BACKENDS)
    import importlib.util

    found = []
    for name in CPU_BACKENDS:
        if name.startswith("openvino") and importlib.util.find_spec("openvino") is None:
            continue
        if name == "onnxruntime" and not (importlib.util.find_spec("onnxruntime") and importlib.util.find_spec("onnx")):
            continue
        if name.startswith("compile") and not (shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")):
            continue
        found.append(name)
    return found


def make_evaluator(
    network: Network,
    game: Game,
    device: str = "auto",
    backend: str = "auto",
    threads: int = 1,
    max_batch: int = 256,
    exact: bool = False,
    tell: Callable[[str], None] | None = None,
) -> Evaluator:
    """An evaluator of that network. "auto" measures the available backends, about a second in all, and takes the
    fastest; `tell` hears of it in a line. `threads` counts on CPUs only. `exact`: see the top of this file."""
    if tuple(game.observation_shape) != network.observation_shape or game.num_actions != network.num_actions:
        raise InputError(
            f"the network is for {network.game_name!r}, with observations {network.observation_shape} and "
            f"{network.num_actions} actions; this game has {tuple(game.observation_shape)} and {game.num_actions}"
        )
    if threads < 1 or max_batch < 1:
        raise InputError(f"threads {threads} and max_batch {max_batch} must be at least 1")
    names = available_backends(device)
    if backend != "auto":
        if backend not in names:
            raise InputError(f"backend {backend!r} is not available here; backends: auto, {', '.join(names)}")
        return _make(backend, network, threads, max_batch, exact)
    best, best_rate, rates = None, 0.0, []
    for name in (name for name in names if name not in _ONLY_BY_NAME):
        try:
            evaluator = _make(name, network, threads, max_batch, exact)
            rate = measure(evaluator, min(_MEASURED_BATCH, max_batch))
        except (RuntimeError, ImportError, OSError) as error:  # a library of another version, or for another processor
            rates.append(f"{name} fails ({next(iter(str(error).splitlines()), type(error).__name__)})")
            continue
        rates.append(f"{name} {rate:,.0f}")
        if rate > best_rate:
            best, best_rate = evaluator, rate
    if best is None:
        raise InputError(f"no backend works on this machine: {'; '.join(rates)}")
    if tell is not None:
        tell(f"inference by {best.name}; evaluations/s measured: {', '.join(rates)}")
    return best


def measure(evaluator: Evaluator, batch: int, seconds: float = _SECONDS_EACH) -> float:
    """Evaluations per second in batches of that size: the best of the calls, as others may use the machine."""
    planes = np.random.default_rng(0).random((batch, *evaluator.shape), np.float32)
    evaluator(planes)  # prepares itself
    fastest, end = np.inf, time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        evaluator(planes)
        now = time.perf_counter()
        fastest = min(fastest, now - start)
        if now > end:
            return batch / fastest


def _make(name: str, network: Network, threads: int, max_batch: int, exact: bool = False) -> Evaluator:
    evaluator: Evaluator
    if name.startswith("openvino"):
        evaluator = OpenVinoEvaluator(network, threads, max_batch, exact, "bf16" if name.endswith("bf16") else "f32")
    elif name == "onnxruntime":
        evaluator = OnnxEvaluator(network, threads, max_batch, exact)
    else:
        dtype = torch.bfloat16 if "bf16" in name else torch.float16 if "half" in name else torch.float32
        device = "cuda" if name.startswith("cuda") else "cpu"
        evaluator = TorchEvaluator(network, threads, max_batch, exact, dtype, device, name.startswith("compile"))
    evaluator.name = name
    return evaluator


def _device(device: str) -> str:
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"device {device!r} is unknown; devices: auto, cpu, cuda")
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("device 'cuda' is not available here; devices: auto, cpu")
    return "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"


def _layout(network: Network) -> Any:
    shapes = [(name, tuple(value.shape)) for name, value in network.named_parameters()]
    return network.observation_shape, network.num_players, network.wdl, network.bounded, shapes


__all__ = ["Evaluator", "available_backends", "make_evaluator", "measure"]
