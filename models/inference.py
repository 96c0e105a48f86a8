"""Fast evaluation of many positions with one network: the backend is chosen by measurement at the start.

An evaluator pads every batch to one of a few sizes, because a runtime prepares itself per size. Kernels may differ
between sizes and so may the last bits; with `exact` all work is done in batches of one size, and a position then gives
the same bits whatever else is asked with it (the tests check it for each backend). "auto" measures and may choose
otherwise another time: a run that has to be repeated keeps `Evaluator.name` and asks for that backend.

`openvino-int8` computes the tower in integers of 8 bits, 2 to 3 times as fast as float32 where the processor has
instructions for it (VNNI). Its answers are a little off: on the network in `checkpoints/connect_four` and positions of
its own games 0.004 in the value on average and 0.04 at most, with the same first move in 99.4 % of them. That is far
less than a search of some dozens of simulations or the next update changes, so self-play takes it (`quantised`).

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
from models.network import Network, flops, folded
from models.quantise import limits

SIZES = (1, 8, 32, 64, 128, 256, 512, 1024)  # batches are padded to one of these
_FLOAT32, _BFLOAT16, _HALF, _INT8 = 1e-4, 5e-2, 2e-2, 0.2  # tolerances, see `Evaluator.tolerance`
_EXACT_SIZE = 32  # large enough for full speed on CPUs
_SMALLEST_WORK = 1e8  # operations in a batch from which on OpenVINO is at full speed: about a millisecond
_MEASURED_BATCH = 64
_SECONDS_EACH = 0.12  # of measuring per backend
CPU_BACKENDS = (
    "openvino-int8",
    "openvino-bf16",
    "openvino",
    "onnxruntime",
    "torch-bf16",
    "torch",
    "compile-bf16",
    "compile",
)
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
        self.sizes = self._sizes(network, exact)
        self.layout = _layout(network)
        self.value_width = self.num_players
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
        values = np.empty((count, self.value_width), np.float32)
        step = self.sizes[-1]
        for start in range(0, count, step):
            part = planes[start : start + step]
            size = next(size for size in self.sizes if size >= len(part))
            some_logits, some_values = self._run(part, size)
            logits[start : start + step] = some_logits[: len(part)]
            values[start : start + step] = some_values[: len(part)]
        return logits, self._finish(values)

    def _sizes(self, network: Network, exact: bool) -> list[int]:
        """The sizes of batches, ascending."""
        return [_EXACT_SIZE] if exact else [size for size in SIZES if size < self.max_batch] + [self.max_batch]

    def _take(self, network: Network) -> None:
        """Takes new weights, folded."""
        raise NotImplementedError

    def _run(self, part: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Logits and values of these rows, as a batch of `size`; the padding's may follow."""
        raise NotImplementedError

    def _finish(self, values: np.ndarray) -> np.ndarray:
        """The values, of what `_run` gave for them with rows of `value_width`."""
        return values


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

    def _run(self, part: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
        assert self.model is not None
        batch = _padded(part, size)
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
    """OpenVINO's CPU plugin; each batch size is compiled when first met after an update, in 0.05 to 0.3 s."""

    def __init__(self, network: Network, threads: int, max_batch: int, exact: bool, precision: str) -> None:
        self.ov = openvino_module()
        self.core = self.ov.Core()
        self.tolerance = {"f32": _FLOAT32, "bf16": _BFLOAT16, "int8": _INT8}[precision]
        self.int8 = precision == "int8"
        self.properties = {
            "INFERENCE_PRECISION_HINT": "f32" if self.int8 else precision,  # what is not in integers
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            "ENABLE_CPU_PINNING": False,  # two evaluators would be pinned to the same core
            "SNIPPETS_MODE": "DISABLE",  # 2026.4 crashes on our MLPs when it fuses matrices into its "snippets"
        }
        super().__init__(network, threads, max_batch, exact)
        self.value_width = network.value.out_features

    def _sizes(self, network: Network, exact: bool) -> list[int]:
        """One size, or two for who asks for single positions: each has to be compiled anew after each update. Beyond a
        millisecond's work a larger batch is no faster, and a small one has less padding."""
        size, work = 16, flops(network)
        while size < 64 and size * work < _SMALLEST_WORK:
            size *= 2
        size *= self.threads
        if exact or self.int8:
            return [size]
        return [1, min(size, self.max_batch)] if self.max_batch > 1 else [1]

    def update(self, network: Network) -> None:
        self.limits: list[float] = limits(network) if self.int8 else []
        super().update(network)

    def _take(self, network: Network) -> None:
        self.network: Network = network
        self.requests: dict[int, tuple[Any, ...]] = {}

    def _run(self, part: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
        if size not in self.requests:
            model = OpenVino(self.ov).model(self.network, size, self.limits)
            request = self.core.compile_model(model, "CPU", self.properties).create_infer_request()
            tensors = request.get_input_tensor(0), request.get_output_tensor(0), request.get_output_tensor(1)
            tensors[0].data[:] = 0
            self.requests[size] = (request, *(tensor.data for tensor in tensors))
        # The request's own memory: one that shares the caller's would outlive it. Padding is what was there before.
        request, planes, logits, values = self.requests[size]
        planes[: len(part)] = part
        request.infer()
        return logits, values

    def _finish(self, values: np.ndarray) -> np.ndarray:
        # The values' last steps in float32: bfloat16 has only 128 numbers between 0.5 and 1.
        return self.network.values_of(values)


class OnnxEvaluator(Evaluator):
    """ONNX Runtime on the CPU, float32."""

    def _take(self, network: Network) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = self.threads, 3
        model = Onnx().model(network).SerializeToString()
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def _run(self, part: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
        logits, values = self.session.run(["policy", "values"], {"planes": _padded(part, size)})
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
    quantised: bool = False,
) -> Evaluator:
    """An evaluator of that network. "auto" measures the available backends, about a second in all, and takes the
    fastest; `tell` hears of it in a line. `threads` counts on CPUs only. `exact`: see the top of this file. `quantised`
    allows "auto" integers of 8 bits; by name they can always be had."""
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
    left_out = _ONLY_BY_NAME if quantised and network.board else (*_ONLY_BY_NAME, "openvino-int8")
    for name in (name for name in names if name not in left_out):
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
        precision = name.partition("-")[2] or "f32"
        evaluator = OpenVinoEvaluator(network, threads, max_batch, exact, precision)
    elif name == "onnxruntime":
        evaluator = OnnxEvaluator(network, threads, max_batch, exact)
    else:
        dtype = torch.bfloat16 if "bf16" in name else torch.float16 if "half" in name else torch.float32
        device = "cuda" if name.startswith("cuda") else "cpu"
        evaluator = TorchEvaluator(network, threads, max_batch, exact, dtype, device, name.startswith("compile"))
    evaluator.name = name
    return evaluator


def _padded(part: np.ndarray, size: int) -> np.ndarray:
    batch = np.zeros((size, *part.shape[1:]), np.float32)
    batch[: len(part)] = part
    return batch


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
