"""Connect Four against published counts (OEIS A212693, John Tromp's tables) and OpenSpiel."""

import csv
from pathlib import Path

import numpy as np
import pyspiel
import pytest
from referees import play_beside_open_spiel

from envs.compiled import njit
from envs.connect_four import ConnectFour
from envs.errors import InputError
from envs.game import TERMINAL, legal_actions
from selfplay.perft import perft

# Move sequences by depth; d <= 7 agrees with Fairy-Stockfish (reference data, connect4/facts.md).
PERFT = [1, 7, 49, 343, 2401, 16807, 117649, 823536, 5673234, 39394572]
# Different positions after n plies on 7x6, games that are over included: OEIS A212693.
POSITIONS = [1, 7, 49, 238, 1120, 4263, 16422, 54859, 184275, 558186, 1662623]
# Positions of all plies and the value for the first player, by width and height (Tromp, recounted).
BOARDS = list(csv.DictReader((Path(__file__).parent / "data/connect_four/small_boards.csv").read_text().splitlines()))


@njit
def next_layer(game, layer, room, moves):
    """Writes all successors of the positions of a layer into room; returns their number."""
    count = 0
    for i in range(len(layer)):
        if game.player(layer[i]) != TERMINAL:
            for k in range(game.actions(layer[i], moves)):
                room[count] = layer[i]
                game.play(room[count], moves[k])
                count += 1
    return count


def layers(game, plies):
    """All different positions, ply by ply, until there are no more."""
    moves = np.empty(game.max_legal, np.int64)
    layer = game.new()
    for _ in range(plies + 1):
        if not len(layer):
            return
        yield layer
        room = np.empty(len(layer) * game.max_legal, game.state).view(np.recarray)
        room = room[: next_layer(game, layer, room, moves)]
        room = room[np.lexsort((room.mine, room.occupied))]
        new = np.ones(len(room), np.bool_)
        new[1:] = (room.mine[1:] != room.mine[:-1]) | (room.occupied[1:] != room.occupied[:-1])
        layer = room[new]


def test_perft():
    assert [perft(ConnectFour(), depth).nodes for depth in range(len(PERFT))] == PERFT


def test_published_positions_per_ply():
    counts = [len(layer) for layer in layers(ConnectFour(), 8)]
    assert counts == POSITIONS[:9]


@pytest.mark.slow
def test_published_positions_per_ply_further():
    assert [len(layer) for layer in layers(ConnectFour(), 10)] == POSITIONS


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=size, marks=[] if size in ("1x1", "2x5", "4x3") else [pytest.mark.slow])  # compile time
        for row in BOARDS
        if row["reachable_positions_incl_terminal"]
        for size in [f"{row['width']}x{row['height']}"]
    ],
)
def test_positions_of_small_boards(row):
    game = ConnectFour(rows=int(row["height"]), columns=int(row["width"]))
    counts = [len(layer) for layer in layers(game, game.max_length)]
    assert sum(counts) == int(row["reachable_positions_incl_terminal"])


@njit
def value(game, states, moves, level, alpha, beta, keys, bounds):
    """The mover's result under best play: negamax, fail-soft, with a memory of lower and upper bounds."""
    if game.player(states[level]) == TERMINAL:
        return np.int64(game.utility(states[level], level % 2))
    key = game.key(states[level])
    slot = np.int64(key & np.uint64(len(keys) - 1))
    if keys[slot] == key:
        alpha, beta = max(alpha, bounds[slot, 0]), min(beta, bounds[slot, 1])
        if alpha >= beta:
            return np.int64(bounds[slot, 0] if bounds[slot, 0] >= beta else bounds[slot, 1])
    best, limit = -1, alpha
    count = game.actions(states[level], moves[level])
    for i in range(count):
        column = moves[level, (count // 2 + (i + 1) // 2 * (1 if i % 2 else -1)) % count]  # the centre first
        states[level + 1] = states[level]
        game.play(states[level + 1], column)
        best = max(best, -value(game, states, moves, level + 1, -beta, -limit, keys, bounds))
        limit = max(limit, best)
        if limit >= beta:
            break
    if keys[slot] != key:
        keys[slot], bounds[slot, 0], bounds[slot, 1] = key, -1, 1
    if best > alpha:
        bounds[slot, 0] = best
    if best < beta:
        bounds[slot, 1] = best
    return best


@pytest.mark.slow
@pytest.mark.parametrize("size", ["3x5", "4x4", "5x4", "4x5", "6x4"])
def test_values_of_small_boards(size):
    row = next(row for row in BOARDS if f"{row['width']}x{row['height']}" == size)
    game = ConnectFour(rows=int(row["height"]), columns=int(row["width"]))
    room = game.new(game.max_length + 2), np.empty((game.max_length + 2, game.columns), np.int64)
    memory = np.zeros(1 << 22, np.uint64), np.zeros((1 << 22, 2), np.int8)
    assert value(game, *room, 0, -1, 1, *memory) == int(row["value_first_player"])


def test_positions_up_to_reflection():
    """The mirror image of every position is reachable too, and few positions are their own."""
    game = ConnectFour()
    *_, layer = layers(game, 4)
    images = layer.copy()
    for i in range(len(images)):
        game.transform(images[i], 1)
    assert np.array_equal(np.unique(images), np.unique(layer))
    own = sum(bytes(a) == bytes(b) for a, b in zip(images, layer, strict=True))
    assert own == len({bytes(p) for p in layer} & {bytes(p) for p in layer if mirror_text(game, p)})


def mirror_text(game, state):
    rows = game.position_text(state).split("/")
    return rows == [row[::-1] for row in rows]


def test_random_games_beside_open_spiel():
    assert play_beside_open_spiel(ConnectFour(), pyspiel.load_game("connect_four"), games=2000) > 20_000


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns", "connect"), [(4, 5, 3), (5, 4, 4), (7, 8, 5), (6, 9, 4)])
def test_other_sizes_beside_open_spiel(rows, columns, connect):
    spiel = pyspiel.load_game("connect_four", {"rows": rows, "columns": columns, "x_in_row": connect})
    play_beside_open_spiel(ConnectFour(rows, columns, connect), spiel, games=500)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 7,
        "8",
        "0",
        "1111111",
        "4a",
        "12121213",
        "......./......./......./......./x....../.......",
        "......./......./......./......./......./xx.....",
        "......./......./......./......./......./o......",
        "......./......./......./......./......./xo",
    ],
)
def test_bad_positions(text):
    with pytest.raises(InputError) as caught:
        ConnectFour().parse_position(text)
    assert text in str(caught.value)


def test_positions():
    game = ConnectFour()
    state = game.parse_position("4453")
    assert game.position_text(state) == "......./......./......./......./...o.../..oxx.."
    assert bytes(game.parse_position(game.position_text(state))) == bytes(state)
    assert game.player(game.parse_position("1212121")) == TERMINAL
    assert game.utility(game.parse_position("1212121"), 0) == 1.0
    assert game.utility(game.parse_position("1212121"), 1) == -1.0


def test_every_line_wins_and_no_other():
    """A line of four of each direction at each place wins; each of them broken by a gap does not."""
    game = ConnectFour()
    lines = {tuple(i for i in range(64) if int(line) >> i & 1) for line in game.lines}
    assert len(lines) == 69  # the number of lines on 7x6 (Allis 1988, section 1.1)
    for line in lines:
        stones = np.uint64(sum(1 << i for i in line))
        assert game.connected(stones)
        for i in line:
            assert not game.connected(stones ^ np.uint64(1 << i))


@pytest.mark.parametrize(
    "parameters", [{"rows": 0}, {"columns": 0}, {"connect": 1}, {"rows": 9, "columns": 7}, {"columns": 10, "rows": 3}]
)
def test_bad_parameters(parameters):
    with pytest.raises(InputError):
        ConnectFour(**parameters)


def test_no_move_into_a_full_column():
    game = ConnectFour()
    assert legal_actions(game, game.parse_position("444444")) == [0, 1, 2, 4, 5, 6]
    with pytest.raises(InputError, match=r"move '4' is not legal here; legal moves: 1, 2, 3, 5, 6, 7"):
        game.parse_action(game.parse_position("444444"), "4")


@pytest.mark.parametrize(("rows", "columns", "connect"), [(6, 7, 4), (4, 5, 3)])
def test_observation(rows, columns, connect):
    """Threats are the empty cells that a disc too many would win on, found by trying each."""
    game = ConnectFour(rows, columns, connect)
    rng = np.random.default_rng(1)
    for _ in range(30):
        state = game.new()[0]
        for _ in range(int(rng.integers(0, rows * columns))):
            if game.player(state) == TERMINAL:
                break
            game.play(state, rng.choice(legal_actions(game, state)))
        planes = np.zeros(game.observation_shape, np.float32)
        game.observe(state, planes)
        mine, theirs = int(state.mine), int(state.mine ^ state.occupied)
        for row in range(rows):
            for column in range(columns):
                bit = 1 << (game.rows + 1) * column + (rows - 1 - row)
                empty = not (mine | theirs) & bit
                assert planes[0, row, column] == bool(mine & bit) and planes[1, row, column] == bool(theirs & bit)
                assert planes[3, row, column] == (empty and game.connected(np.uint64(mine | bit)))
                assert planes[4, row, column] == (empty and game.connected(np.uint64(theirs | bit)))
                assert planes[5, row, column] == ((rows - row) % 2 == 1)
