"""Evaluators: every backend that this machine has agrees with plain PyTorch within its stated tolerance."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from test_network import TINY, lively

from envs.batch import EVERYONE, Batch, sample_rows
from envs.errors import InputError
from envs.registry import GAMES, make
from envs.rng import generator
from models import inference
from models.checkpoint import load_checkpoint
from models.inference import available_backends, make_evaluator, measure
from models.network import ModelConfig, build
from models.quantise import limits

ALL = [*inference.CPU_BACKENDS, *inference.CUDA_BACKENDS]
QUICK = [name for name in ALL if not name.startswith(("compile", "cuda"))]
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ALL if name.startswith("compile")]
CUDA = [name for name in ALL if name.startswith("cuda")]


def evaluator_or_skip(name, network, game, **options):
    device = "cuda" if name.startswith("cuda") else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    if name not in available_backends(device):
        pytest.skip(f"{name} is not installed")
    return make_evaluator(network, game, device, name, **options)


def some_planes(game, count, seed=0):
    return np.random.default_rng(seed).random((count, *game.observation_shape), np.float32).round()


def assert_equal_within(tolerance, network, planes, logits, values):
    with torch.no_grad():
        wanted, value_out = network(torch.from_numpy(planes))
        wanted_values = network.values(value_out).numpy()
    scale = max(1.0, float(wanted.abs().max()))
    assert logits.dtype == values.dtype == np.float32
    assert np.abs(logits - wanted.numpy()).max() <= tolerance * scale
    assert np.abs(values - wanted_values).max() <= tolerance * max(1.0, float(np.abs(wanted_values).max()))


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # torch.compile's own use of it
@pytest.mark.parametrize("name", [*QUICK, *SLOW, *CUDA])
def test_a_backend(name):
    """Equal within its tolerance for any number of positions, also after new weights; exact where promised."""
    game = make("connect_four")
    first, second = (lively(build(game, ModelConfig(blocks=2, channels=32, pooling=2), seed), seed) for seed in (1, 2))
    evaluator = evaluator_or_skip(name, first, game, max_batch=48, exact=True)
    assert evaluator.name == name
    planes = some_planes(game, 48)
    for network in (first, second):
        evaluator.update(network)
        logits, values = evaluator(planes)
        assert_equal_within(evaluator.tolerance, network, planes, logits, values)
        for chosen in ([0], [47], [3, 2, 1], list(range(40, 5, -1))):
            some_logits, some_values = evaluator(planes[chosen])
            assert np.array_equal(some_logits, logits[chosen]) and np.array_equal(some_values, values[chosen])
    assert evaluator(planes[:0])[0].shape == (0, 7)
    held = logits.copy()
    evaluator(planes[::-1].copy())
    assert np.array_equal(held, logits)  # what was returned is the caller's
    with pytest.raises(ValueError, match="at most 48"):
        evaluator(some_planes(game, 49))
    with pytest.raises(InputError, match="same game and shape"):
        evaluator.update(build(game, TINY))


@pytest.mark.parametrize("name", QUICK)
def test_a_backend_with_every_game(name):
    # Integers change nothing but the towers' convolutions: a board with pooling and an MLP will do.
    for spec in ("go:size=9", "backgammon") if name == "openvino-int8" else GAMES:
        game = make(spec)
        network = lively(build(game, TINY))
        evaluator = evaluator_or_skip(name, network, game, max_batch=8)
        planes = some_planes(game, 5)
        assert_equal_within(evaluator.tolerance, network, planes, *evaluator(planes))


def settled(network, planes):
    """Its normalisation knows these planes, as training would have it."""
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None  # the average of all it sees
            module.reset_running_stats()
    with torch.no_grad():
        network.train()(torch.from_numpy(planes))
    return network.eval()


@pytest.mark.parametrize("pooling", [0, 2])
def test_limits_are_those_of_the_activations(pooling):
    """Nothing is cut off, and the steps of 8 bits are not wasted."""
    game = make("connect_four")
    planes = some_planes(game, 256)
    network = settled(lively(build(game, ModelConfig(blocks=3, channels=16, pooling=pooling))), planes)
    largest = []
    for block in network.blocks:
        for layer in (block.first, block.second):
            layer.register_forward_pre_hook(lambda _, inputs: largest.append(float(inputs[0].max())))
    with torch.no_grad():
        network(torch.from_numpy(planes))
    found = limits(network)
    assert len(found) == len(largest) == 6
    assert all(0.8 * top < limit < 5 * top for limit, top in zip(found, largest, strict=True)), (found, largest)
    assert limits(build(make("backgammon"), TINY)) == []
    for block in network.blocks:
        torch.nn.init.zeros_(block.first.norm.weight)
        torch.nn.init.constant_(block.first.norm.bias, -1)
    assert min(limits(network)) > 0


def real_planes(game, count):
    """Positions of random games."""
    batch = Batch(game, 32, EVERYONE, False)
    planes = batch.new_observations()
    for i in range(32):
        batch.seed(i, i)
    batch.begin(np.ones(32, np.bool_), planes)
    found, actions, rng = [], np.zeros(32, np.int64), generator(1)
    while len(found) < count:
        found += list(planes.copy())
        sample_rows(batch.masks, rng, actions)
        batch.step(actions, planes)
    return np.array(found[:count])


def test_integers_are_good_enough_for_self_play():
    """On the trained network, with positions of random games, which it knows less well than its own."""
    game = make("connect_four")
    network = load_checkpoint(Path(__file__).resolve().parents[1] / "checkpoints/connect_four", game).network
    evaluator = evaluator_or_skip("openvino-int8", network, game, max_batch=512)
    planes = real_planes(game, 512)
    logits, values = evaluator(planes)
    with torch.no_grad():
        wanted, value_out = network(torch.from_numpy(planes))
        errors = np.abs(values - network.values(value_out).numpy())
    right, ours = torch.log_softmax(wanted, 1), torch.log_softmax(torch.from_numpy(logits), 1)
    assert errors.mean() < 0.01 and errors.max() < evaluator.tolerance
    assert (right.exp() * (right - ours)).sum(1).mean() < 0.001
    assert (logits.argmax(1) == wanted.numpy().argmax(1)).mean() > 0.98
    # The convolutions of its 4 blocks are executed in integers.
    (request, *_) = evaluator.requests[evaluator.sizes[0]]
    nodes = [node.get_rt_info() for node in request.get_compiled_model().get_runtime_model().get_ordered_ops()]
    kinds = [(node["layerType"].astype(str), node["runtimePrecision"].astype(str)) for node in nodes]
    assert kinds.count(("Convolution", "u8")) == 8 and ("Eltwise", "f32") not in kinds, kinds
    # Another evaluator, as a resumed run makes it, gives the same bits.
    again = make_evaluator(network, game, "cpu", "openvino-int8", max_batch=9)
    assert np.array_equal(again(planes[3:7])[0], logits[3:7])


@pytest.mark.parametrize("spec", ["connect_four", "tic_tac_toe_three", "twenty_forty_eight"])
def test_values_of_arrays(spec):
    network = build(make(spec), TINY)
    out = np.random.default_rng(0).normal(size=(9, network.value.out_features)).astype(np.float32) * 3
    wanted = network.values(torch.from_numpy(out)).numpy()
    assert np.allclose(network.values_of(out), wanted, atol=1e-6)
    assert np.array_equal(network.values_of(out[4:5]), network.values_of(out)[4:5])


def test_the_fastest_is_chosen(monkeypatch):
    game = make("tic_tac_toe")
    network, lines = lively(build(game, TINY)), []
    assert make_evaluator(network, game, max_batch=8, tell=lines.append).name in available_backends()
    assert len(lines) == 1 and "evaluations/s" in lines[0]
    rates = {"torch": 5.0, "torch-bf16": 7.0}
    monkeypatch.setattr(inference, "measure", lambda evaluator, *_: rates.get(evaluator.name, 1.0))
    assert make_evaluator(network, game, "cpu", max_batch=8).name == "torch-bf16"

    rates["openvino-int8"] = 9.0
    for allowed, chosen in ((False, "torch-bf16"), (True, "openvino-int8")):
        if "openvino-int8" in available_backends("cpu"):
            assert make_evaluator(network, game, "cpu", max_batch=8, quantised=allowed).name == chosen
    mlp = build(make("backgammon"), TINY)  # has nothing to compute in integers
    assert make_evaluator(mlp, make("backgammon"), "cpu", max_batch=8, quantised=True).name == "torch-bf16"

    def broken(evaluator, *_):
        if evaluator.name != "torch":
            raise RuntimeError("not on this processor")
        return 1.0

    monkeypatch.setattr(inference, "measure", broken)
    assert make_evaluator(network, game, "cpu", max_batch=8, tell=lines.append).name == "torch"
    assert "torch-bf16 fails (not on this processor)" in lines[1]


def test_measuring_says_evaluations_per_second():
    game = make("tic_tac_toe")
    evaluator = make_evaluator(build(game, TINY), game, "cpu", "torch")
    assert measure(evaluator, 16, 0.02) > 100


def test_what_can_be_wrong():
    game = make("tic_tac_toe")
    network = build(game, TINY)
    with pytest.raises(InputError, match="network is for 'tic_tac_toe'.*9 actions"):
        make_evaluator(network, make("connect_four"))
    with pytest.raises(InputError, match="'tensorrt' is not available here; backends: auto, .*torch"):
        make_evaluator(network, game, "cpu", "tensorrt")
    with pytest.raises(InputError, match="device 'tpu' is unknown"):
        make_evaluator(network, game, "tpu")
    with pytest.raises(InputError, match="max_batch 0"):
        make_evaluator(network, game, max_batch=0)


def test_threads_of_torch_stay_as_they_were():
    game = make("tic_tac_toe")
    before = torch.get_num_threads()
    make_evaluator(build(game, TINY), game, "cpu", "torch", threads=before + 1)(some_planes(game, 2))
    assert torch.get_num_threads() == before


def test_openvino_reports_to_nobody(tmp_path):
    """Imported plainly it writes an id into the home folder and sends it off."""
    script = (
        "import sys; from models.graph import openvino_module; module = openvino_module();"
        "assert not [name for name in sys.modules if name.startswith('openvino_telemetry')];"
        "print('absent' if module is None else 'present')"
    )
    root = Path(__file__).resolve().parents[1]
    environment = {"HOME": str(tmp_path), "PYTHONPATH": str(root), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert list(tmp_path.iterdir()) == [], "something was written into the home folder"
    if "absent" in done.stdout:
        pytest.skip("openvino is not installed")
