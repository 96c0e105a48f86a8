"""The replay window: the newest positions of self-play, in files that are mapped, not read.

Each round's samples are one file `games/<number>.npy`, written once and atomically. The window is the last so many
positions of them, so its memory is the system's page cache, and a resumed run finds the very same window: files beyond
the saved round are removed and made again, bit for bit.
"""

import io
from pathlib import Path
from typing import Any

import numpy as np

from envs.errors import InputError
from envs.game import Game
from selfplay.train import moves
from selfplay.train.config import LearnerConfig
from selfplay.train.runs import write_atomic


class Replay:
    """Samples by number, oldest first; sampling is uniform over the window."""

    def __init__(self, folder: Path, game: Game, config: LearnerConfig, scale: float = 0.0):
        self.folder, self.game, self.config = folder, game, config
        self.scale = scale  # of a network that values what will still be earned, in points; 0: it values the utility
        self.dtype = moves.sample_dtype(game)
        self.chunks: list[Any] = []
        self.first_chunk = 0
        self.positions = 0  # of the whole run
        self.permutations = moves.permutations_of(game)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06d}.npy"

    def add(self, samples: np.ndarray) -> None:
        """One round's samples; an empty round has a file too, so that the numbers tell the rounds."""
        file = io.BytesIO()
        np.save(file, np.frombuffer(samples.tobytes(), np.uint8), allow_pickle=False)
        number = self.first_chunk + len(self.chunks)
        write_atomic(self._path(number), file.getvalue())
        self._map(number)

    def _map(self, number: int) -> None:
        path = self._path(number)
        try:
            data = np.load(path, mmap_mode="r", allow_pickle=False)
            chunk = np.frombuffer(data, self.dtype) if data.size else np.zeros(0, self.dtype)
        except (OSError, ValueError) as error:
            raise InputError(f"games {str(path)!r} can't be read: {error}") from None
        self.chunks.append(chunk.view(np.recarray))
        self.positions += len(chunk)
        self._trim()

    def _trim(self) -> None:
        size = self.size
        held = sum(len(chunk) for chunk in self.chunks)
        while len(self.chunks) > 1 and held - len(self.chunks[0]) >= size:
            held -= len(self.chunks[0])
            self.chunks.pop(0)
            self.first_chunk += 1

    @property
    def size(self) -> int:
        """How many positions the window may hold by now."""
        config = self.config
        grown = config.window + config.window_growth * max(0, self.positions - config.window)
        return min(int(grown), config.window_most)

    def state(self) -> dict[str, int]:
        return {"first_chunk": self.first_chunk, "chunks": len(self.chunks), "positions": self.positions}

    def restore(self, state: dict[str, int]) -> None:
        """Maps the files of a saved window and removes later ones."""
        end = state["first_chunk"] + state["chunks"]
        for path in self.folder.glob("*.npy"):
            if path.stem.isdigit() and int(path.stem) >= end:
                path.unlink()
        self.chunks, self.first_chunk = [], state["first_chunk"]
        self.positions = state["positions"]
        for number in range(state["first_chunk"], end):
            self._map(number)
            self.positions = state["positions"]

    def __len__(self) -> int:
        return min(sum(len(chunk) for chunk in self.chunks), self.size)

    def batch(self, rng: np.random.Generator, count: int) -> dict[str, np.ndarray]:
        """A training batch, drawn without replacement within itself where the window allows."""
        lengths = np.array([len(chunk) for chunk in self.chunks])
        held, size = int(lengths.sum()), len(self)
        drawn = held - 1 - (rng.permutation(size)[:count] if count * 4 > size else _distinct(rng, size, count))
        ends = np.cumsum(lengths)
        which = np.searchsorted(ends, drawn, side="right")
        rows = np.zeros(len(drawn), self.dtype).view(np.recarray)
        for i, (chunk, index) in enumerate(zip(which, drawn - (ends - lengths)[which], strict=True)):
            rows[i] = self.chunks[chunk][index]
        return self.observed(rows, rng)

    def observed(self, rows: Any, rng: np.random.Generator | None) -> dict[str, np.ndarray]:
        """Network input and targets of these samples, each under a random symmetry if `rng` is given."""
        game, count = self.game, len(rows)
        symmetries = np.zeros(count, np.int64)
        if rng is not None and self.config.symmetry and game.num_symmetries > 1:
            symmetries = rng.integers(0, len(self.permutations), count)
        planes = np.zeros((count, *game.observation_shape), np.float32)
        policies = np.zeros((count, game.num_actions), np.float32)
        values = np.zeros((count, game.num_players), np.float32)
        chosen = np.arange(count)
        after = np.zeros(count, np.int64)
        if rng is not None and game.has_chance:  # every second time a network learns the value before chance decides
            after[:] = (rows.after == 1) & (rng.random(count) < 0.5)
        earned = np.zeros(count)
        moves.observe_samples(
            game, rows, chosen, symmetries, after, planes, policies, values, earned, self.permutations
        )
        known = np.where(after == 1, rows.after_value, rows.search_value)
        share = np.where((rows.proof == 1) & (after == 0), 1.0, self.config.search_value)  # proven: needs no other
        if game.num_players == 1 or (game.num_players == 2 and game.zero_sum):
            values[:, 0] = (1 - share) * values[:, 0] + share * known
            if game.num_players == 2:
                values[:, 1] = -values[:, 0]
        if self.scale:
            values[:, 0] -= earned / self.scale
        return {
            "planes": planes,
            "policies": policies,
            "values": values,
            "full": (rows.full * (1 - after)).astype(np.float32),
        }


def _distinct(rng: np.random.Generator, size: int, count: int) -> np.ndarray:
    """Numbers below `size` without repeats, for count much less than size."""
    drawn = np.unique(rng.integers(0, size, count + 16))
    while len(drawn) < count:
        drawn = np.unique(np.concatenate([drawn, rng.integers(0, size, count)]))
    return rng.permutation(drawn)[:count]
