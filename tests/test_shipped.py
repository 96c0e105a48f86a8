"""The networks that come with the program: small, loadable by name, and they say how they were made."""

import json
from pathlib import Path

import pytest

from envs.registry import make
from selfplay.agents import make_agent
from selfplay.play import advance, turn

CHECKPOINTS = Path(__file__).resolve().parents[1] / "checkpoints"


@pytest.mark.parametrize("name", sorted(path.parent.name for path in CHECKPOINTS.glob("*/model.json")))
def test_shipped_network(name):
    folder = CHECKPOINTS / name
    meta = json.loads((folder / "model.json").read_text(encoding="utf-8"))["meta"]
    assert sum(path.stat().st_size for path in folder.iterdir()) < 2_000_000
    assert meta["command"].startswith(f"selfplay train {name} ") and isinstance(meta["seed"], int)
    game = make(name)
    state = game.new()[0]
    assert turn(game, state) == 0
    found = make_agent(f"alphazero:checkpoint={name},simulations=16,backend=torch", game, 1).search(state)
    assert found.action in [report.action for report in found.moves] and -1.0 <= found.value <= 1.0
    advance(game, state, found.action)


def test_three_ship():
    assert {"connect_four", "pig", "tic_tac_toe"} <= {path.parent.name for path in CHECKPOINTS.glob("*/model.json")}
