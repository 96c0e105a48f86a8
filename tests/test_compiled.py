"""Games that compile: constants, tables, the cache on disk, and that no edit is ever missed."""

import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from envs.cache import cache_folder, local_imports
from envs.compiled import Compiled, njit
from envs.connect_four import ConnectFour
from envs.registry import make
from selfplay.perft import count_sequences, perft

ROOT = Path(__file__).resolve().parents[1]

# Take 1 to MOST from a heap until it is empty; perft 3 tells the rules apart.
GAME = """
from dataclasses import dataclass
import numpy as np
from envs.game import Game, TERMINAL
from envs.bits import mix
from house_rules import most

@dataclass(frozen=True)
class Heap(Game):
    '''Take from a heap until it is empty.'''

    size: int = 20
    title = "Heap"
    state = np.dtype([("left", "i8"), ("mover", "i8")])
    num_actions = 8
    max_legal = 8
    max_length = 50
    observation_shape = (1,)

    def start(self, state):
        state.left = self.size
        state.mover = 0

    def player(self, state):
        return TERMINAL if state.left == 0 else state.mover

    def actions(self, state, out):
        count = min(state.left, most(state.left))
        for i in range(count):
            out[i] = i
        return count

    def play(self, state, action):
        state.left -= action + 1
        state.mover = 1 - state.mover

    def utility(self, state, player):
        return -1.0 if player == state.mover else 1.0

    def key(self, state):
        return mix(state.left * 2 + state.mover)

    def observe(self, state, planes):
        planes[0] = state.left
"""
RULES = """
from envs.compiled import njit

MOST = 3

@njit
def most(left):
    return MOST
"""
COUNT = """
import sys
from envs.registry import make
from selfplay.perft import count_sequences, perft
print(perft(make(sys.argv[1]), 3).nodes, sum(count_sequences.stats.cache_hits.values()))
"""


def write(folder: Path, most: int = 3, game: str = GAME) -> str:
    (folder / "house_rules.py").write_text(RULES.replace("MOST = 3", f"MOST = {most}"))
    (folder / "heap.py").write_text(game)
    return f"{folder / 'heap.py'}:Heap"


def run(*arguments: str, cache: Path, script: str = "", **more: str) -> str:
    """Standard output of a fresh interpreter."""
    environment = {**os.environ, "SELFPLAY_CACHE": str(cache), "PYTHONPATH": str(ROOT), **more}
    done = subprocess.run(
        [sys.executable, *arguments], input=script, capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_edit_is_seen_at_once_in_the_same_process(tmp_path, monkeypatch):
    monkeypatch.setenv("SELFPLAY_CACHE", str(tmp_path / "cache"))
    before = make(write(tmp_path))
    assert perft(before, 3).nodes == 27
    write(tmp_path, game=GAME.replace("count = min", "count = 1 + 0 * min"))
    assert perft(make(f"{tmp_path / 'heap.py'}:Heap"), 3).nodes == 1
    write(tmp_path, most=2)  # only the file beside it has changed
    assert perft(make(f"{tmp_path / 'heap.py'}"), 3).nodes == 8
    assert perft(before, 3).nodes == 27  # what was made before the edit keeps its rules


def test_the_cache_survives_processes_and_never_goes_stale(tmp_path):
    spec, cache = write(tmp_path), tmp_path / "cache"
    assert run("-c", COUNT, spec, cache=cache).split() == ["27", "0"]
    assert run("-c", COUNT, spec, cache=cache).split() == ["27", "1"]
    write(tmp_path, most=4)
    assert run("-c", COUNT, spec, cache=cache).split() == ["64", "0"]
    write(tmp_path)  # back again: what was compiled first is still there
    assert run("-c", COUNT, spec, cache=cache).split() == ["27", "1"]


def test_an_edit_between_import_and_compilation_does_not_poison_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SELFPLAY_CACHE", str(tmp_path / "cache"))
    spec = write(tmp_path)
    old = make(spec)
    write(tmp_path, most=2)
    assert perft(old, 3).nodes == 27  # compiled now, after the edit, under the digest of what was imported
    assert run("-c", COUNT, spec, cache=tmp_path / "cache").split() == ["8", "0"]


def test_a_game_typed_into_an_interpreter(tmp_path):
    """As in a notebook: `__main__` without a file, helper functions and all; twice, with another rule."""
    script = RULES + GAME.replace("from house_rules import most\n", "")
    script += """
from selfplay.perft import perft
print(perft(Heap(), 3).nodes)
"""
    for most in (3, 5):
        typed = script.replace("MOST = 3", f"MOST = {most}")
        assert int(run("-", cache=tmp_path, script=typed)) == most**3


def test_a_cell_that_is_run_again(tmp_path, monkeypatch):
    monkeypatch.setenv("SELFPLAY_CACHE", str(tmp_path))
    cell = RULES + GAME.replace("from house_rules import most\n", "")
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(cell, names)
    assert perft(names["Heap"](), 3).nodes == 27
    exec("MOST = 4\n@njit\ndef most(left):\n    return MOST\n", names)  # a helper's cell alone
    exec(cell[cell.index("@dataclass") :], names)
    assert perft(names["Heap"](), 3).nodes == 64


def test_a_file_named_like_a_library_replaces_nothing(tmp_path):
    import random

    (tmp_path / "house_rules.py").write_text(RULES)
    (tmp_path / "random.py").write_text(GAME)
    assert perft(make(f"{tmp_path / 'random.py'}:Heap"), 3).nodes == 27
    assert sys.modules["random"] is random


def test_interpreted(tmp_path):
    """NUMBA_DISABLE_JIT=1 runs the same code and gives the same numbers."""
    script = """
from envs.check import check_game
from envs.playouts import play_random_games
from envs.registry import make
from selfplay.perft import perft
from selfplay.play import play
game = make("connect_four")
print(perft(game, 4).nodes, play_random_games(game, 20, seed=5), play(game, ["random", "random"], seed=3).actions)
assert check_game(make("pig"), states=100).ok
"""
    from envs.playouts import play_random_games
    from selfplay.play import play

    game = make("connect_four")
    plies, actions = play_random_games(game, 20, seed=5), play(game, ["random", "random"], seed=3).actions
    printed = run("-", cache=tmp_path / "none", script=script, NUMBA_DISABLE_JIT="1")
    assert printed == f"2401 {plies} {actions}\n"
    assert not list((tmp_path / "none").rglob("*.nbi"))


@dataclass(frozen=True)
class Weights(Compiled):
    """Every kind of constant and of table."""

    size: int = 3
    factor: float = 0.5
    flag: bool = True
    numbers: tuple[float, ...] = (1.0, 2.0, 3.0)

    @property
    def mask(self) -> np.uint64:
        return np.uint64((1 << 63) | self.size)

    def tables(self) -> dict[str, np.ndarray]:
        return {"row": np.array(self.numbers), "grid": np.arange(self.size * 2, dtype=np.int32).reshape(self.size, 2)}

    def total(self, index: Any) -> float:
        return self.row[index] * self.factor + self.grid[index, 1]


@njit
def read(weights, index):
    return weights.total(index), weights.mask, weights.flag, len(weights.grid), weights.grid.shape[1]


def test_constants_and_tables():
    weights = Weights()
    assert read(weights, 2) == (3.0 * 0.5 + 5, (1 << 63) | 3, True, 3, 2)
    assert read(weights, 2) == read.py_func(weights, 2)
    assert not weights.row.flags.writeable


def test_other_contents_of_tables_need_no_compilation():
    read(Weights(), 0)
    compiled = len(read.signatures)
    assert read(Weights(numbers=(4.0, 5.0, 6.0)), 1)[0] == 2.5 + 3
    assert len(read.signatures) == compiled
    assert read(Weights(factor=2.0), 1)[0] == 4.0 + 3
    assert len(read.signatures) == compiled + 1


def test_methods_may_not_write_to_tables():
    @dataclass(frozen=True)
    class Vandal(Weights):
        def total(self, index: Any) -> float:
            self.row[index] = 7.0
            return 0.0

    with pytest.raises(Exception, match="[Cc]annot modify readonly"):
        read(Vandal(), 0)


def test_equal_games_share_compiled_code():
    perft(ConnectFour(4, 4, 3), 2)
    compiled = len(count_sequences.signatures)
    perft(ConnectFour(4, 4, 3), 3)
    assert len(count_sequences.signatures) == compiled


def test_games_can_be_sent_to_other_processes():
    game = ConnectFour(rows=5)
    copied = pickle.loads(pickle.dumps(game))
    assert copied == game and perft(copied, 3).nodes == 343


def test_the_folder_depends_on_all_imports_and_on_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setenv("SELFPLAY_CACHE", str(tmp_path / "cache"))
    write(tmp_path)
    heap = tmp_path / "heap.py"
    names = {path.name for path in local_imports([heap])}
    assert {"heap.py", "house_rules.py", "game.py", "bits.py", "rng.py", "compiled.py", "cache.py"} <= names
    assert "connect_four.py" not in names
    first = cache_folder(heap)
    assert first == cache_folder(heap) and first is not None and first.is_dir()
    (tmp_path / "unrelated.py").write_text("x = 1")
    assert cache_folder(heap) == first
    write(tmp_path, most=9)
    assert cache_folder(heap) != first


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SELFPLAY_CACHE", str(tmp_path / "file"))
    assert cache_folder(Path(__file__)) is None
