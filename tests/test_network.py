"""Networks: shapes, the meaning of their values, folding; checkpoints and all that can be wrong with them; ONNX."""

import json
import shutil

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from envs.errors import InputError
from envs.registry import GAMES, make
from models import checkpoint as checkpoints
from models.checkpoint import atomic_folder, find_checkpoint, load_checkpoint, save_checkpoint
from models.export import export_onnx
from models.network import ModelConfig, build, flops, folded, parameter_count

TINY = ModelConfig(blocks=2, channels=8, hidden=8, pooling=2)


def lively(network, seed=0):
    """As after some training: no block is the identity, and batch normalisation has something to say."""
    generator = torch.Generator().manual_seed(seed)
    for module in network.modules():
        if isinstance(module, (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d)):
            module.weight.data.uniform_(0.5, 1.5, generator=generator)
            module.bias.data.normal_(0, 0.3, generator=generator)
            module.running_mean.normal_(0, 0.3, generator=generator)
            module.running_var.uniform_(0.5, 2, generator=generator)
    return network.eval()


def some_planes(network, count=4, seed=0):
    return torch.rand(count, *network.observation_shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", GAMES)
def test_every_game_has_a_network(name):
    game = make(name)
    network = lively(build(game, TINY))
    planes = some_planes(network)
    with torch.no_grad():
        policy, value_out = network(planes)
        values = network.values(value_out)
        again_policy, again_value = folded(network)(planes)
    assert policy.shape == (4, game.num_actions) and values.shape == (4, game.num_players)
    torch.testing.assert_close(again_policy, policy, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(again_value, value_out, atol=1e-5, rtol=1e-4)
    assert (values.abs() <= 1).all()
    if network.mirrored:
        assert torch.allclose(values[:, 0], -values[:, 1])
    for utility in (game.min_utility, game.max_utility):
        assert network.from_units(network.to_units(utility)) == pytest.approx(utility)
        assert abs(network.to_units(utility)) == pytest.approx(1)
    loss = network.value_loss(value_out, network.value_targets(values))
    assert loss.shape == (4,) and torch.isfinite(loss).all()


def test_kinds():
    assert build(make("connect_four"), TINY).board and not build(make("backgammon"), TINY).board
    assert not build(make("nim_cubes"), TINY).board  # a board of one row
    assert not build(make("connect_four"), ModelConfig(kind="mlp", blocks=1)).board
    with pytest.raises(InputError, match="residual.*observation"):
        build(make("pig"), ModelConfig(kind="residual"))
    with pytest.raises(InputError, match="wdl.*backgammon"):
        build(make("backgammon"), ModelConfig(value="wdl"))
    with pytest.raises(ValidationError):
        ModelConfig(chanels=3)  # type: ignore[call-arg]
    assert all(field.description for field in ModelConfig.model_fields.values())


def test_win_draw_loss():
    network = build(make("tic_tac_toe"), TINY)
    assert network.wdl
    sure = torch.tensor([[20.0, 0, 0], [0, 20.0, 0], [0, 0, 20.0], [0, 0, 0]])
    assert torch.allclose(network.values(sure)[:, 0], torch.tensor([1.0, 0, -1, 0]), atol=1e-6)
    results = torch.tensor([[1.0, -1], [0, 0], [-1, 1], [0.5, -0.5]])
    targets = network.value_targets(results)
    assert targets.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0]]
    assert (network.value_loss(sure, targets)[:3] < 1e-6).all() and network.value_loss(sure, targets)[3] > 1
    scalar = build(make("tic_tac_toe"), ModelConfig(blocks=1, channels=4, value="scalar"))
    assert scalar.values(torch.tensor([[0.5]])).tolist()[0] == pytest.approx([np.tanh(0.5), -np.tanh(0.5)])
    assert scalar.value_targets(results) is results


def test_values_of_other_games():
    three = build(make("tic_tac_toe_three"), TINY)  # pays 1 to the winner, -0.5 to the others
    assert three.values(torch.zeros(1, 3)).shape == (1, 3)
    assert three.to_units(np.array([1.0, -0.5])).tolist() == [1, -1]
    score = build(make("twenty_forty_eight"), ModelConfig(blocks=1, channels=4, value_scale=1000.0))
    assert score.values(torch.tensor([[7.5]])).tolist() == [[7.5]] and score.from_units(7.5) == 7500
    out = torch.tensor([[3.0]], requires_grad=True)
    score.value_loss(out, torch.tensor([[100.0]])).sum().backward()
    assert out.grad is not None and abs(out.grad.item()) <= 1  # Huber: a far target does not explode


def test_same_seed_same_weights():
    game, state = make("tic_tac_toe"), torch.random.get_rng_state()
    first, second, other = (build(game, TINY, seed).state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert not all(torch.equal(first[key], other[key]) for key in first)
    assert torch.equal(state, torch.random.get_rng_state())


def test_counts():
    """By hand: 42 cells; the stem sees 6 planes; the heads make 16 and 4 planes."""
    game = make("connect_four")
    network = build(game, ModelConfig(blocks=1, channels=8, hidden=8))
    weights = 9 * 6 * 8 + 2 * 9 * 8 * 8 + 8 * 16 + 8 * 4  # convolutions
    matrices = 16 * 42 * 7 + 4 * 42 * 8 + 8 * 3
    norms, biases = 2 * (3 * 8 + 16 + 4), 7 + 8 + 3
    assert parameter_count(network) == weights + matrices + norms + biases
    assert flops(network, game) == 2 * (42 * weights + matrices)


def test_it_learns():
    """A dozen positions by heart, policy and value."""
    network = build(make("tic_tac_toe"), ModelConfig(blocks=1, channels=16))
    planes, generator = some_planes(network, 12).round(), torch.Generator().manual_seed(1)
    moves = torch.randint(0, 9, (12,), generator=generator)
    result = torch.randint(-1, 2, (12,), generator=generator).float()
    optimiser = torch.optim.Adam(network.parameters(), 1e-2)
    for _ in range(80):
        policy, value_out = network(planes)
        loss = torch.nn.functional.cross_entropy(policy, moves)
        loss = loss + network.value_loss(value_out, network.value_targets(torch.stack([result, -result], 1))).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    policy, value_out = network.eval()(planes)
    assert (policy.argmax(1) == moves).all()
    assert torch.allclose(network.values(value_out)[:, 0], result, atol=0.2)


# --- checkpoints -------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    network = lively(build(make("tic_tac_toe"), TINY))
    save_checkpoint(tmp_path / "one", network, "tic_tac_toe", TINY, {"step": 5, "elo": None})
    return tmp_path / "one", network


def test_round_trip(saved):
    path, network = saved
    loaded = load_checkpoint(str(path), make("mnk:rows=3,columns=3,connect=3"))
    assert (loaded.game_spec, loaded.config, loaded.meta) == ("tic_tac_toe", TINY, {"step": 5, "elo": None})
    planes = some_planes(network)
    assert all(torch.equal(a, b) for a, b in zip(network(planes), loaded.network(planes), strict=True))
    assert sorted(file.name for file in path.iterdir()) == ["model.json", "model.safetensors"]
    assert [entry.name for entry in path.parent.iterdir()] == ["one"]


def test_newest_of_a_run_and_shipped_ones(saved, tmp_path, monkeypatch):
    path, network = saved
    for step in (100, 200):
        save_checkpoint(tmp_path / f"run/checkpoints/{step:08d}", network, "tic_tac_toe", TINY, {"step": step})
    (tmp_path / "run/checkpoints/00000300").mkdir()  # incomplete
    assert load_checkpoint(str(tmp_path / "run")).meta["step"] == 200
    monkeypatch.setattr(checkpoints, "SHIPPED", tmp_path)
    monkeypatch.chdir(tmp_path / "run" / "checkpoints" / "00000300")
    assert find_checkpoint("one") == find_checkpoint("checkpoints/one") == path
    with pytest.raises(InputError, match=r"'two' does not exist; .*ship: one"):
        load_checkpoint("two")
    shutil.rmtree(tmp_path / "run/checkpoints")
    (tmp_path / "run/checkpoints").mkdir()
    with pytest.raises(InputError, match="no complete checkpoint"):
        load_checkpoint(str(tmp_path / "run"))


def edit(path, **changes):
    file = path / "model.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def test_what_can_be_wrong(saved, tmp_path):
    path, _ = saved
    weights, rest = (path / "model.safetensors").read_bytes(), (path / "model.json").read_text()

    def refused(match, game=None):
        with pytest.raises(InputError, match=match) as error:
            load_checkpoint(str(path), game)
        assert "\n" not in str(error.value) and str(path) in str(error.value)
        (path / "model.safetensors").write_bytes(weights)
        (path / "model.json").write_text(rest)

    refused(r"for 'tic_tac_toe'.*\[2, 3, 3\], 9 actions.*not for 'connect_four'.*7 actions", make("connect_four"))
    for damage in (b"", weights[:100], weights[:-7], b"\xff" * 200):
        (path / "model.safetensors").write_bytes(damage)
        refused("model.safetensors is damaged")
    for garbage in ("", "{", "\x00"):
        (path / "model.json").write_text(garbage)
        refused("not JSON")
    (path / "model.json").write_bytes(b"\xff\xfe{}")
    refused("not JSON")
    (path / "model.json").write_text("[1]")
    refused("not a checkpoint's")
    edit(path, format=99)
    refused("format 99; this version reads format 1")
    edit(path, meta=3)
    refused("no valid 'meta'")
    edit(path, config={"channels": 8, "depth": 3})
    refused("config depth")
    edit(path, config={"blocks": 2, "channels": 4})
    refused("not those of the network")
    edit(path, game="no_such_game")
    refused("unknown game 'no_such_game'")
    (path / "model.json").unlink()
    refused("not a folder with")
    assert load_checkpoint(str(path)).meta["step"] == 5


def test_weights_that_are_no_numbers(tmp_path):
    network = build(make("tic_tac_toe"), TINY)
    network.policy.bias.data[3] = np.nan
    save_checkpoint(tmp_path / "bad", network, "tic_tac_toe", TINY, {})
    with pytest.raises(InputError, match="not finite"):
        load_checkpoint(str(tmp_path / "bad"))


def test_saving_is_all_or_nothing(saved, monkeypatch):
    path, network = saved
    save_checkpoint(path, network, "tic_tac_toe", TINY, {"step": 6})
    assert load_checkpoint(str(path)).meta == {"step": 6}
    with pytest.raises(ZeroDivisionError), atomic_folder(path) as aside:
        (aside / "model.json").write_text("half")
        raise ZeroDivisionError
    assert load_checkpoint(str(path)).meta == {"step": 6}

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "save_file", full)
        with pytest.raises(InputError, match="can't be written: No space left"):
            save_checkpoint(path, network, "tic_tac_toe", TINY, {"step": 7})
    assert load_checkpoint(str(path)).meta == {"step": 6} and len(list(path.parent.iterdir())) == 1
    # Killed between the two renames, and the next writer killed while it wrote.
    path.rename(path.with_name(".one.replaced"))
    path.with_name(".one.new").mkdir()
    assert load_checkpoint(str(path)).meta == {"step": 6}
    save_checkpoint(path, network, "tic_tac_toe", TINY, {"step": 8})
    assert load_checkpoint(str(path)).meta == {"step": 8} and len(list(path.parent.iterdir())) == 1


@pytest.mark.parametrize("name", ["tic_tac_toe", "backgammon", "tic_tac_toe_three", "twenty_forty_eight"])
def test_onnx(name, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    config = TINY.model_copy(update={"value_scale": 500.0}) if name == "twenty_forty_eight" else TINY
    save_checkpoint(tmp_path / "one", lively(build(make(name), config)), name, config, {})
    checkpoint = load_checkpoint(str(tmp_path / "one"))
    export_onnx(checkpoint, tmp_path / "one.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "one.onnx", providers=["CPUExecutionProvider"])
    for count in (1, 5):
        planes = some_planes(checkpoint.network, count)
        policy, values = session.run(["policy", "values"], {"planes": planes.numpy()})
        with torch.no_grad():
            wanted, value_out = checkpoint.network(planes)
            np.testing.assert_allclose(policy, wanted, atol=1e-5, rtol=1e-4)
            np.testing.assert_allclose(values, checkpoint.network.values(value_out), atol=1e-5, rtol=1e-4)
    facts = session.get_modelmeta().custom_metadata_map
    assert facts["game"] == name and float(facts["scale"]) == checkpoint.network.scale
    with pytest.raises(InputError, match="can't be written"):
        export_onnx(checkpoint, tmp_path / "no" / "folder.onnx")
