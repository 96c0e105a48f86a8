"""A folded network as a graph for other runtimes: OpenVINO and ONNX.

`describe` says once what the network computes, in a dozen operations; a `Builder` turns them into a runtime's graph.
So neither runtime needs a converter (torch's takes seconds and two more packages), and taking new weights is building
the graph anew: milliseconds.
"""

import importlib
import sys
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from torch import Tensor, nn

from envs.errors import InputError
from models.network import Layer, Network

OPSET = 17  # of ONNX: the oldest with all we use, so that old runtimes run it too
_IR_VERSION = 8  # of ONNX files, the one that came with that opset


class Builder(Protocol):
    """The operations of a runtime; every `x` is a value of that runtime's graph."""

    def convolution(self, x: Any, weight: np.ndarray, bias: np.ndarray, limit: float | None) -> Any: ...
    def linear(self, x: Any, weight: np.ndarray, bias: np.ndarray) -> Any: ...
    def matrix(self, x: Any, matrix: np.ndarray) -> Any: ...
    def relu(self, x: Any) -> Any: ...
    def tanh(self, x: Any) -> Any: ...
    def softmax(self, x: Any) -> Any: ...
    def add(self, x: Any, y: Any) -> Any: ...
    def flatten(self, x: Any) -> Any: ...
    def channels(self, x: Any, count: int) -> Any: ...
    def mean_and_max(self, x: Any) -> Any: ...
    def as_board(self, x: Any) -> Any: ...


def describe(
    network: Network, on: Builder, planes: Any, raw: bool = False, limits: Sequence[float] = ()
) -> tuple[Any, Any]:
    """The graph from the planes to (policy logits, values in relative order); the network has to be folded. `raw` leaves
    the values as the last layer's output, for who works in low precision and calls `network.values` in a better one.
    With `limits` (`models/quantise.py`) the convolutions of the blocks, most of the work, are for integers; the stem,
    the shortcuts' sums and the heads stay in float32, which costs little time and keeps the answers good."""
    left = iter(limits)

    def apply(module: nn.Module | None, x: Any, limit: float | None = None) -> Any:
        inner: Any = module.transform if isinstance(module, Layer) else module
        weight, bias = _array(inner.weight), _array(inner.bias)
        return on.convolution(x, weight, bias, limit) if isinstance(inner, nn.Conv2d) else on.linear(x, weight, bias)

    x = on.relu(apply(network.stem, planes if network.board else on.flatten(planes)))
    block: Any
    for block in network.blocks:
        y = apply(block.first, x, next(left, None))
        if block.shift is not None:
            pooled = on.mean_and_max(on.relu(on.channels(y, block.pooled)))
            y = on.add(y, on.as_board(apply(block.shift, pooled)))
        x = on.relu(on.add(x, apply(block.second, on.relu(y), next(left, None))))
    policy = value = x
    if network.board:
        policy = on.flatten(on.relu(apply(network.policy_planes, x)))
        value = on.flatten(on.relu(apply(network.value_planes, x)))
    value = apply(network.value, on.relu(apply(network.value_hidden, value)))
    if raw:
        return apply(network.policy, policy), value
    value = on.softmax(value) if network.wdl else on.tanh(value) if network.bounded else value
    return apply(network.policy, policy), on.matrix(value, _array(network.mixing))


def openvino_module() -> Any:
    """OpenVINO without its telemetry: importing it plainly reports the use to its makers and leaves an id in the home
    folder. Where the telemetry's package can't be imported it takes a stub of its own. None where not installed."""
    missing, name = object(), "openvino_telemetry"
    before = sys.modules.get(name, missing)
    if before is missing:
        sys.modules[name] = None  # type: ignore[assignment]  # Python's way to say: this import fails
    try:
        module = importlib.import_module("openvino")
        importlib.import_module("openvino.opset13")
        return module
    except ImportError:
        return None
    finally:
        if before is missing:
            del sys.modules[name]


class OpenVino:
    """Builds an `openvino.Model` for batches of one size: `planes` in, logits and the raw value output out."""

    def __init__(self, ov: Any) -> None:
        self.ov, self.op = ov, sys.modules["openvino.opset13"]

    def model(self, network: Network, batch: int, limits: Sequence[float] = ()) -> Any:
        planes = self.op.parameter([batch, *network.observation_shape], np.float32, "planes")
        return self.ov.Model(list(describe(network, self, planes, True, limits)), [planes], "network")

    def convolution(self, x: Any, weight: np.ndarray, bias: np.ndarray, limit: float | None) -> Any:
        pad = [n // 2 for n in weight.shape[2:]]
        kernel = self.op.constant(weight)
        if limit is not None:
            x, kernel = self._in_bytes(x, limit), self._weights_in_bytes(weight)
        y = self.op.convolution(x, kernel, [1, 1], pad, pad, [1, 1])
        return self.op.add(y, self.op.constant(bias.reshape(1, -1, 1, 1)))

    def _in_bytes(self, x: Any, limit: float) -> Any:
        """What comes from a ReLU, in 255 steps from 0 to the limit. OpenVINO's low-precision pass takes such a node
        before a convolution as the wish to compute it in integers."""
        low, high = (self.op.constant(np.array(bound, np.float32)) for bound in (0, limit))
        return self.op.fake_quantize(x, low, high, low, high, 256)

    def _weights_in_bytes(self, weight: np.ndarray) -> Any:
        """-127 .. 127, with a scale for each output channel."""
        top = np.abs(weight).max((1, 2, 3), keepdims=True)
        scale = np.where(top > 0, top / 127, 1).astype(np.float32)
        steps = self.op.constant(np.rint(weight / scale).astype(np.int8))
        return self.op.multiply(self.op.convert(steps, "f32"), self.op.constant(scale))

    def linear(self, x: Any, weight: np.ndarray, bias: np.ndarray) -> Any:
        return self.op.add(self.op.matmul(x, self.op.constant(weight), False, True), self.op.constant(bias[None]))

    def matrix(self, x: Any, matrix: np.ndarray) -> Any:
        return self.op.matmul(x, self.op.constant(matrix), False, False)

    def relu(self, x: Any) -> Any:
        return self.op.relu(x)

    def tanh(self, x: Any) -> Any:
        return self.op.tanh(x)

    def softmax(self, x: Any) -> Any:
        return self.op.softmax(x, 1)

    def add(self, x: Any, y: Any) -> Any:
        return self.op.add(x, y)

    def flatten(self, x: Any) -> Any:
        return self.op.reshape(x, np.array([0, -1]), True)

    def channels(self, x: Any, count: int) -> Any:
        zero, one = np.array([0]), np.array([1])
        return self.op.slice(x, zero, np.array([count]), one, one)

    def mean_and_max(self, x: Any) -> Any:
        axes = np.array([2, 3])
        return self.op.concat([self.op.reduce_mean(x, axes, False), self.op.reduce_max(x, axes, False)], 1)

    def as_board(self, x: Any) -> Any:
        return self.op.unsqueeze(x, np.array([2, 3]))


class Onnx:
    """Builds an ONNX model for batches of any size: `planes` in, `policy` and `values` out."""

    def __init__(self) -> None:
        try:
            import onnx
        except ImportError:
            raise InputError("an ONNX model needs the package onnx, which is not installed: pip install onnx") from None
        self.onnx, self.nodes, self.constants = onnx, [], []  # type: ignore[var-annotated]

    def model(self, network: Network) -> Any:
        helper, kind = self.onnx.helper, self.onnx.TensorProto.FLOAT
        for value, name in zip(describe(network, self, "planes"), ("policy", "values"), strict=True):
            self.nodes.append(helper.make_node("Identity", [value], [name]))
        inputs = [helper.make_tensor_value_info("planes", kind, ["batch", *network.observation_shape])]
        outputs = [
            helper.make_tensor_value_info("policy", kind, ["batch", network.num_actions]),
            helper.make_tensor_value_info("values", kind, ["batch", network.num_players]),
        ]
        graph = helper.make_graph(self.nodes, "network", inputs, outputs, self.constants)
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=_IR_VERSION, producer_name="selfplay")
        self.onnx.checker.check_model(model)
        return model

    def _node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"x{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def _constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def convolution(self, x: str, weight: np.ndarray, bias: np.ndarray, limit: float | None) -> str:
        assert limit is None, "only OpenVINO's graphs are quantised"
        pads = [n // 2 for n in weight.shape[2:]] * 2
        return self._node("Conv", x, self._constant(weight), self._constant(bias), pads=pads)

    def linear(self, x: str, weight: np.ndarray, bias: np.ndarray) -> str:
        return self._node("Gemm", x, self._constant(weight), self._constant(bias), transB=1)

    def matrix(self, x: str, matrix: np.ndarray) -> str:
        return self._node("MatMul", x, self._constant(matrix))

    def relu(self, x: str) -> str:
        return self._node("Relu", x)

    def tanh(self, x: str) -> str:
        return self._node("Tanh", x)

    def softmax(self, x: str) -> str:
        return self._node("Softmax", x, axis=1)

    def add(self, x: str, y: str) -> str:
        return self._node("Add", x, y)

    def flatten(self, x: str) -> str:
        return self._node("Flatten", x, axis=1)

    def channels(self, x: str, count: int) -> str:
        zero, one = self._constant(np.array([0])), self._constant(np.array([1]))
        return self._node("Slice", x, zero, self._constant(np.array([count])), one)

    def mean_and_max(self, x: str) -> str:
        mean, top = (self._node(kind, x, axes=[2, 3], keepdims=0) for kind in ("ReduceMean", "ReduceMax"))
        return self._node("Concat", mean, top, axis=1)

    def as_board(self, x: str) -> str:
        return self._node("Unsqueeze", x, self._constant(np.array([2, 3])))


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().float().cpu().numpy()
