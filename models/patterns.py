"""Pattern features: what a handful of cells holds, as an index into a table of weights (Buro 1997, "n-tuples").

    EVAL(s) = w1 f1(s) + ... + wn fn(s) + sum over places k of W[phase, pattern of k, contents of k's cells]

A *pattern* is a tuple of cells; its contents, read as a number in base `cell_values`, are its index. The symmetries of
the rules put each pattern in several *places* on the board, which share one table. Where a pattern is its own mirror
image, each place counts once and mirrored contents share one weight (`canonical`).

Indices are found with no look at single cells: the board's words are cut into bytes, each byte's share in all indices
at once is a row of the table `spread`, and 16 such rows added up are Othello's 46 indices. The games say in
`Game.word_cells` what the bits of their words mean.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array, populate_array

from envs.errors import InputError
from envs.game import Game, State
from models.evaluation import INSIDE, Evaluation

MOST_PLACES = 256
_LANES = 16  # places are padded to full vectors
_MOST_TIED = 1 << 16  # larger patterns count all their images instead of sharing weights between mirrored contents
NO_SQUASH, TANH = 0, 1


def room() -> np.ndarray:
    """Room for the indices of all places. Compiled: on the stack, since an evaluation must not allocate."""
    return np.zeros(MOST_PLACES, np.uint32)


@intrinsic
def _stack_room(typing_context: Any) -> Any:
    array_type = types.Array(types.uint32, 1, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = cgutils.alloca_once(builder, ir.ArrayType(ir.IntType(32), MOST_PLACES))
        array = make_array(array_type)(context, builder)
        populate_array(
            array,
            data=builder.bitcast(block, array.data.type),
            shape=[context.get_constant(types.intp, MOST_PLACES)],
            strides=[context.get_constant(types.intp, 4)],
            itemsize=context.get_constant(types.intp, 4),
            meminfo=None,
        )
        return array._getvalue()

    return array_type(), generate


overload(room)(lambda: lambda: _stack_room())  # type: ignore[call-arg]


def _add_lanes(out: Any, first: Any, table: Any, byte: Any, value: Any) -> None:
    """Adds table[byte, value, first:first + 16] to out[first:first + 16]. Compiled: two vector instructions."""
    out[first : first + _LANES] += table[byte, value, first : first + _LANES]


@intrinsic
def _vector_add(typing_context: Any, out: Any, first: Any, table: Any, flat: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target = make_array(out)(context, builder, arguments[0])
        source = make_array(table)(context, builder, arguments[2])
        wide = ir.VectorType(ir.IntType(32), _LANES)
        kind = ir.VectorType(ir.IntType(table.dtype.bitwidth), _LANES)
        to = builder.bitcast(builder.gep(target.data, [arguments[1]]), wide.as_pointer())
        row = builder.load(builder.bitcast(builder.gep(source.data, [arguments[3]]), kind.as_pointer()), align=4)
        if table.dtype.bitwidth < 32:
            row = builder.zext(row, wide)
        builder.store(builder.add(builder.load(to, align=4), row), to, align=4)
        return context.get_dummy_value()

    return types.void(out, types.intp, table, types.intp), generate


@overload(_add_lanes)
def _compiled_add_lanes(out: Any, first: Any, table: Any, byte: Any, value: Any) -> Any:
    def add(out: Any, first: Any, table: Any, byte: Any, value: Any) -> None:
        _vector_add(  # type: ignore[call-arg]
            out, first, table, (byte * table.shape[1] + value) * table.shape[2] + first
        )

    return add


@dataclass(frozen=True)
class Layout:
    """Where the patterns of a game lie on the board and their weights in the table."""

    game: Game
    patterns: tuple[tuple[int, ...], ...]  # cells, numbered as in the game's observation

    def __post_init__(self) -> None:
        game = self.game
        cells = int(np.prod(game.observation_shape[-2:])) if game.num_words else 0
        if self.patterns and not cells:
            raise InputError(f"game {type(game).__name__} has no cells for patterns")
        for pattern in self.patterns:
            if not pattern or len(set(pattern)) < len(pattern) or not all(0 <= cell < cells for cell in pattern):
                raise InputError(f"pattern {list(pattern)} must be different cells from 0 to {cells - 1}")
            if game.cell_values ** len(pattern) >= 2**31:
                raise InputError(f"pattern {list(pattern)} has too many cells")
        if len(self.places) > MOST_PLACES:
            raise InputError(f"{len(self.places)} places of patterns are too many; the most are {MOST_PLACES}")

    @cached_property
    def sizes(self) -> list[int]:
        return [self.game.cell_values ** len(pattern) for pattern in self.patterns]

    @cached_property
    def starts(self) -> list[int]:
        """Where each pattern's weights begin."""
        return [0, *np.cumsum(self.sizes)[:-1].tolist()] if self.patterns else []

    @property
    def entries(self) -> int:
        return sum(self.sizes)

    @cached_property
    def places(self) -> list[tuple[int, tuple[int, ...]]]:
        """All images of all patterns: the pattern's number and the image's cells."""
        found = []
        images = [symmetry.cells for symmetry in self.game.symmetries()]
        for number, pattern in enumerate(self.patterns):
            seen = set()
            for image in images:
                cells = tuple(int(image[cell]) for cell in pattern)
                key = tuple(sorted(cells)) if self.sizes[number] <= _MOST_TIED else cells
                if key not in seen:
                    seen.add(key)
                    found.append((number, cells))
        return found

    @cached_property
    def canonical(self) -> np.ndarray:
        """For each entry of the table the one that holds its weight: the least of its mirror images."""
        images = [symmetry.cells for symmetry in self.game.symmetries()]
        result = np.arange(self.entries, dtype=np.int32)
        for number, pattern in enumerate(self.patterns):
            if self.sizes[number] > _MOST_TIED:
                continue
            base, length = self.game.cell_values, len(pattern)
            contents = np.arange(self.sizes[number])
            digits = [contents // base**i % base for i in range(length)]
            own = result[self.starts[number] : self.starts[number] + self.sizes[number]]
            for image in images:
                cells = [int(image[cell]) for cell in pattern]
                if sorted(cells) != sorted(pattern):
                    continue
                # What was on pattern[i] now is on cells[i], which is the place of pattern.index(cells[i]).
                moved = sum(digits[i] * base ** pattern.index(cells[i]) for i in range(length))
                np.minimum(own, self.starts[number] + moved, out=own, casting="unsafe")
        return result

    @cached_property
    def tied(self) -> bool:
        small = [set(pattern) for pattern, size in zip(self.patterns, self.sizes, strict=True) if size <= _MOST_TIED]
        images = [symmetry.cells for symmetry in self.game.symmetries()][1:]
        return any({int(image[cell]) for cell in pattern} == pattern for pattern in small for image in images)

    @cached_property
    def bytes_per_word(self) -> int:
        cells, _ = self.game.word_cells()
        used = np.flatnonzero((cells >= 0).any(axis=0))
        return int(used.max()) // 8 + 1 if self.patterns else 0

    @property
    def width(self) -> int:
        return -(-len(self.places) // _LANES) * _LANES

    @cached_property
    def spread(self) -> np.ndarray:
        """By byte of the board and its value: what it adds to the index of each place."""
        if not self.patterns:
            return np.zeros((1, 1, 1), np.uint16)
        cells, digits = self.game.word_cells()
        base, count = self.game.cell_values, self.bytes_per_word
        kind = np.uint16 if max(self.sizes) <= 1 << 16 else np.uint32
        table = np.zeros((len(cells) * count, 256, self.width), kind)
        values = np.arange(256)
        for place, (_, pattern) in enumerate(self.places):
            power = {cell: base**i for i, cell in enumerate(pattern)}
            for word, bit in np.ndindex(len(cells), 8 * count):
                if int(cells[word, bit]) in power:
                    share = power[int(cells[word, bit])] * int(digits[word, bit])
                    table[word * count + bit // 8, (values >> bit % 8 & 1) == 1, place] += kind(share)
        return table

    @cached_property
    def offsets(self) -> np.ndarray:
        """By place: where its pattern's weights begin."""
        return np.array([self.starts[number] for number, _ in self.places] or [0], np.uint64)


def phase_table(game: Game, phases: int, parity: bool = False) -> np.ndarray:
    """By number of men on the board: the phase, all of about equal length. With `parity` an even and an odd number have
    phases of their own, in turn: where each move adds a man, that tells who is to move."""
    filled = np.arange(game.most_filled + 1)
    if parity and phases % 2 == 0:
        return (2 * phase_table(game, phases // 2) + filled % 2).astype(np.uint8)
    return np.minimum(filled * phases // (game.most_filled + 1), phases - 1).astype(np.uint8)


@dataclass(frozen=True, eq=False)
class Patterns(Evaluation):
    """Patterns and named features; the weights are run-time data, so that learners may change them in place.

    `squash` says what the sum is: NO_SQUASH the mover's utility itself, TANH its inverse hyperbolic tangent in parts
    of the largest utility, that is half the log of the odds. `afterstates`: the patterns were learned on positions
    that a player leaves to chance, and a search may ask for those with `evaluate_after`.
    """

    layout: Layout
    weight_values: np.ndarray  # (phases, entries), float32
    feature_values: np.ndarray  # (phases, num_features), or no columns
    squash: int = TANH
    afterstates: bool = False
    cuts: tuple[dict[str, Any], ...] = ()
    label: str = "patterns"
    parity: bool = False  # see `phase_table`

    @property
    def width(self) -> int:
        return self.layout.width

    @property
    def count(self) -> int:
        return len(self.layout.places)

    @property
    def bytes_per_word(self) -> int:
        return self.layout.bytes_per_word

    @property
    def tied(self) -> bool:
        """Whether mirrored contents share a weight, so that learners must look up `Layout.canonical`."""
        return self.layout.tied

    @property
    def num_weighted(self) -> int:
        """The named features that count; 0: none, and they are not computed."""
        return self.feature_values.shape[1]

    @property
    def phases(self) -> int:
        return max(len(self.weight_values), len(self.feature_values))

    def tables(self) -> dict[str, np.ndarray]:
        layout = self.layout
        entries = max(layout.entries, 1)
        weights = np.zeros((self.phases, entries), np.float32)
        if layout.entries:
            weights[:] = self.weight_values
        features = np.zeros((self.phases, max(self.num_weighted, 1)))
        features[:, : self.num_weighted] = self.feature_values
        return {
            "weights": weights,
            "feature_weights": features,
            "spread": layout.spread,
            "offsets": layout.offsets,
            "phase_of": phase_table(layout.game, self.phases, self.parity),
        }

    def indices(self, game: Game, state: State, out: Any) -> None:
        """Writes the contents of all places, as numbers; those beyond `count` are padding."""
        for k in range(self.width):
            out[k] = np.uint32(0)
        for w in range(game.num_words):
            word = np.uint64(game.board_word(state, w))
            for b in range(self.bytes_per_word):
                value = np.int64((word >> np.uint64(8 * b)) & np.uint64(255))
                for first in range(0, self.width, _LANES):
                    _add_lanes(out, first, self.spread, w * self.bytes_per_word + b, value)

    def sum_of(self, game: Game, state: State, scratch: Any) -> float:
        """The weighted sum, before it is squashed."""
        phase = np.uint64(self.phase_of[game.filled(state)])
        total = 0.0
        if self.count > 0:
            found = room()
            self.indices(game, state, found)
            other = 0.0  # two sums at once: half the waiting for the adder
            for k in range(0, self.count - 1, 2):
                total += np.float64(self.weights[phase, self.offsets[k] + np.uint64(found[k])])
                other += np.float64(self.weights[phase, self.offsets[k + 1] + np.uint64(found[k + 1])])
            if self.count % 2 == 1:
                last = self.count - 1
                total += np.float64(self.weights[phase, self.offsets[last] + np.uint64(found[last])])
            total += other
        if self.num_weighted > 0:
            game.features(state, scratch)
            for i in range(self.num_weighted):
                total += self.feature_weights[phase, i] * scratch[i]
        return total

    def squashed(self, game: Game, total: Any) -> float:
        """The utility that a sum stands for, kept strictly inside the game's utilities."""
        if self.squash == TANH:
            return INSIDE * game.max_utility * np.tanh(total)
        return min(max(total, INSIDE * game.min_utility), INSIDE * game.max_utility)

    def evaluate(self, game: Game, state: State, scratch: Any) -> float:
        return self.squashed(game, self.sum_of(game, state, scratch))

    def evaluate_after(self, game: Game, state: State, scratch: Any, player: Any) -> float:
        """One player against chance: the board that the player left."""
        return self.squashed(game, self.sum_of(game, state, scratch))

    def live_weights(self) -> tuple[np.ndarray, np.ndarray]:
        """The weights that compiled code reads, of patterns and of named features, to be changed in place."""
        buffer = self._tables[0]
        buffer.flags.writeable = True
        layout = {name: (dtype, shape, offset) for name, dtype, shape, offset in self._tables[1]}
        views = []
        for name in ("weights", "feature_weights"):
            dtype, shape, offset = layout[name]
            size = int(np.prod(shape)) * np.dtype(dtype).itemsize
            views.append(buffer[offset : offset + size].view(dtype).reshape(shape))
        return views[0], views[1]
