"""2048 beside OpenSpiel, a naive referee, and exact values of the 2x2 board.

tests/data/other/2048_2x2_exact.csv: an exact recomputation, independent of this code.
"""

import csv
import random
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pyspiel
import pytest
from referees import look, result, step

from envs.check import check_game
from envs.errors import InputError
from envs.game import CHANCE, TERMINAL, legal_actions
from envs.playouts import play_random_games
from envs.registry import make
from envs.twenty_forty_eight import DIRECTIONS, NAMES, TwentyFortyEight, line_tables

with (Path(__file__).parent / "data/other/2048_2x2_exact.csv").open() as file:
    EXACT = {row["quantity"]: float(row["value"]) for row in csv.DictReader(file)}

# --- a naive referee -----------------------------------------------------------------------------------


def merged(line: list[int]) -> tuple[list[int], list[bool]]:
    """A line of tiles pushed to its first cell: gaps out, then from the front each pair of equals becomes one; and
    which cells hold a tile that was made just now."""
    tiles, out, made = [tile for tile in line if tile], [], []
    while tiles:
        pair = len(tiles) > 1 and tiles[0] == tiles[1] != 32768
        out.append(2 * tiles[0] if pair else tiles[0])
        made.append(pair)
        tiles = tiles[2 if pair else 1 :]
    gaps = len(line) - len(out)
    return out + [0] * gaps, made + [False] * gaps


def pushed(board: list[list[int]], name: str) -> tuple[list[list[int]], list[list[bool]]]:
    """The board after a move, and the tiles that it made; turned so that the move goes to the left."""
    if name in ("up", "down"):
        turned = [list(column) for column in zip(*board, strict=True)]
        after, made = pushed(turned, "left" if name == "up" else "right")
        return [list(row) for row in zip(*after, strict=True)], [list(row) for row in zip(*made, strict=True)]
    way = 1 if name == "left" else -1
    lines = [merged(row[::way]) for row in board]
    return [tiles[::way] for tiles, _ in lines], [made[::way] for _, made in lines]


def points(board: list[list[int]], made: list[list[bool]]) -> int:
    return sum(
        tile for row, marks in zip(board, made, strict=True) for tile, mark in zip(row, marks, strict=True) if mark
    )


def tiles_of(game, state) -> list[list[int]]:
    return [[1 << k if k else 0 for k in row] for row in game.cells(state).tolist()]


def beside_naive(game, games: int, seed: int, first: str = "") -> int:
    """Random games against the naive rules, compiled; returns the largest tile seen."""
    rng, out, probabilities = random.Random(seed), np.empty(32, np.int64), np.empty(32)
    start = game.parse_position(first) if first else game.new()[0]
    largest = 0
    for _ in range(games):
        states = np.array([start], game.state).view(np.recarray)
        state, board, score, due = states[0], tiles_of(game, start), int(start.score), int(start.spawns)
        while True:
            player, count = look(game, state, out, probabilities)
            assert tiles_of(game, state) == board and int(state.score) == score
            largest = max(largest, *map(max, board))
            legal = [name for name in NAMES if pushed(board, name)[0] != board]
            if due:
                empty = [(r, c) for r in range(game.rows) for c in range(game.columns) if not board[r][c]]
                shares = [(2, 1 - game.four_probability), (4, game.four_probability)]
                expected = {
                    2 * (r * game.columns + c) + (tile == 4): share / len(empty)
                    for r, c in empty
                    for tile, share in shares
                    if share > 0
                }
                assert player == CHANCE and out[:count].tolist() == list(expected)
                assert probabilities[:count] == pytest.approx(list(expected.values()))
                action = int(out[rng.randrange(count)])
                row, column = divmod(action >> 1, game.columns)
                assert game.action_name(state, action) == f"{4 if action & 1 else 2}@{row + 1},{column + 1}"
                board[row][column] = 4 if action & 1 else 2
                due -= 1
            elif not legal or (game.target and max(map(max, board)) >= game.target):
                assert player == TERMINAL and result(game, state, 0) == score
                break
            else:
                assert player == 0 and [NAMES[a] for a in out[:count]] == legal
                action = int(out[rng.randrange(count)])
                board, made = pushed(board, NAMES[action])
                score += points(board, made)
                due = 0 if game.target and max(map(max, board)) >= game.target else 1
            step(game, state, action)
    return largest


@pytest.mark.parametrize(
    ("game", "games"),
    [
        (TwentyFortyEight(2, 2), 100),
        (TwentyFortyEight(3, 3), 30),
        pytest.param(TwentyFortyEight(2, 4, four_probability=0.0), 100, marks=pytest.mark.slow),
        pytest.param(TwentyFortyEight(4, 3, four_probability=1.0), 30, marks=pytest.mark.slow),
        pytest.param(TwentyFortyEight(3, 2, target=16), 200, marks=pytest.mark.slow),
        pytest.param(TwentyFortyEight(four_probability=0.5), 30, marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_random_games_beside_a_naive_referee(game, games):
    assert beside_naive(game, games, seed=1) >= 4


def test_games_with_large_tiles_beside_a_naive_referee():
    first = "32768 32768 16384 16384/8192 4096 4096 2048/1024 512 256 128/2 0 0 4 score 1000000"
    assert beside_naive(TwentyFortyEight(target=0), 10, seed=2, first=first) == 32768


def test_every_row_beside_a_naive_referee():
    to_first, to_last, score, changes = line_tables(4, 1 << 16)

    def packed(tiles: list[int]) -> int:
        return sum((tile.bit_length() - 1) << 4 * i for i, tile in enumerate(tiles) if tile)

    for index in range(1 << 16):
        line = [1 << k if k else 0 for k in ((index >> 4 * i) & 15 for i in range(4))]
        left, made = merged(line)
        right, also = merged(line[::-1])
        assert (to_first[index], to_last[index]) == (packed(left), packed(right[::-1])), line
        assert score[index] == points([left], [made]) == points([right], [also])
        assert changes[index] == (left != line) + 2 * (right[::-1] != line)


# --- OpenSpiel -----------------------------------------------------------------------------------------

WAYS = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}


def open_spiel_allows(board: list[list[int]], made: list[list[bool]], name: str) -> bool:
    """Its rule: a tile slides, or merges into a neighbour that the move before did not make."""
    down, right = WAYS[name]
    for row, column in product(range(4), range(4)):
        to_row, to_column = row + down, column + right
        if board[row][column] and 0 <= to_row < 4 and 0 <= to_column < 4:
            target = board[to_row][to_column]
            if target == 0 or (target == board[row][column] and not made[to_row][to_column]):
                return True
    return False


@pytest.mark.parametrize(
    ("target", "games"),
    [(2048, 40), (64, 200), pytest.param(2048, 1000, marks=pytest.mark.slow), pytest.param(256, 1500, marks=pytest.mark.slow)],
)  # fmt: skip
def test_random_games_beside_open_spiel(target, games):
    game, spiel = TwentyFortyEight(target=target), pyspiel.load_game(f"2048(max_tile={target})")
    rng, out, probabilities, refused = random.Random(target), np.empty(32, np.int64), np.empty(32), 0
    for _ in range(games):
        state, theirs = game.new()[0], spiel.new_initial_state()
        made = [[False] * 4] * 4
        while True:
            player, count = look(game, state, out, probabilities)
            ours, board = out[:count].tolist(), tiles_of(game, state)
            assert [list(map(int, line.split())) for line in str(theirs).split("\n")[:4]] == board
            assert (player == TERMINAL) == theirs.is_terminal()
            if player == TERMINAL:
                assert [result(game, state, 0)] == theirs.returns()
                break
            if player == CHANCE:
                expected = theirs.chance_outcomes()
                assert ours == [outcome for outcome, _ in expected]
                assert probabilities[:count] == pytest.approx([share for _, share in expected], rel=1e-9)
                action = rng.choices(ours, probabilities[:count].tolist())[0]
            else:
                assert theirs.legal_actions() == [a for a in ours if open_spiel_allows(board, made, NAMES[a])]
                refused += len(ours) - len(theirs.legal_actions())
                action = rng.choice(ours)
                made = pushed(board, NAMES[action])[1]
            step(game, state, action)
            theirs.apply_action(action)  # it plays the moves well that it calls illegal
    assert refused > games  # so often that the prediction is well tested


# --- exact values --------------------------------------------------------------------------------------


def solve(game, finished, gain):
    """Best play's expectation of finished(state) + the gains, through the game's own rules, by board."""

    @cache
    def value(board: int, spawns: int) -> float:
        states = game.new()
        states[0].board, states[0].spawns = board, spawns
        if spawns == 0:
            states[0].legal = game.legal_moves(states[0].board)
            if game.target and game.holds_target(states[0].board):
                states[0].legal = 0
        player = game.player(states[0])
        if player == TERMINAL:
            return finished(states[0])
        out, probabilities = np.empty(32, np.int64), np.empty(32)
        count = game.outcomes(states[0], out, probabilities) if player == CHANCE else game.actions(states[0], out)
        children = []
        for action in out[:count].tolist():
            after = states.copy()
            game.play(after[0], action)
            children.append(gain * int(after[0].score) + value(int(after[0].board), int(after[0].spawns)))
        return max(children) if player == 0 else float(np.dot(children, probabilities[:count]))

    return value(0, 2)


@pytest.mark.parametrize("target", [8, 16, 32, 64])
def test_chances_of_a_tile_on_the_smallest_board(target):
    game = TwentyFortyEight(2, 2, target=target)
    chance = solve(game, lambda state: float(game.holds_target(state.board)), gain=0)
    assert chance == pytest.approx(EXACT[f"P(reach {target}) optimal play 2x2"], abs=1e-12)


def test_best_expected_score_on_the_smallest_board():
    score = solve(TwentyFortyEight(2, 2), lambda state: 0.0, gain=1)
    assert score == pytest.approx(EXACT["max expected score 2x2 (standard merge score)"], abs=1e-9)


def test_bounds_hold_on_the_smallest_board():
    """The longest line and the highest score of all, by exhaustion, are within what the game promises."""
    game = TwentyFortyEight(2, 2)

    @cache
    def most(board: int, spawns: int) -> tuple[int, int]:
        states = game.new()
        states[0].board, states[0].spawns = board, spawns
        states[0].legal = game.legal_moves(states[0].board) if spawns == 0 else 0
        if game.player(states[0]) == TERMINAL:
            return 0, 0
        lengths, scores = [], []
        for action in legal_actions(game, states[0]):
            after = states.copy()
            game.play(after[0], action)
            length, score = most(int(after[0].board), int(after[0].spawns))
            lengths.append(length + 1)
            scores.append(score + int(after[0].score))
        return max(lengths), max(scores)

    length, score = most(0, 2)
    assert 0.5 * game.max_length < length <= game.max_length
    assert 0.5 * game.max_utility < score <= game.max_utility
    assert game.tile_limits() == [2, 3, 4, 5]  # 32 is the largest, as the chance 0 of a 64 says too


# --- positions, parameters, symmetries -------------------------------------------------------------------


def test_positions():
    game = TwentyFortyEight()
    text = "2 0 0 4/0 0 0 0/0 0 2 0/0 0 0 0 score 4"
    state = game.parse_position(text)
    assert game.position_text(state) == text and game.player(state) == 0
    game.play(state, game.parse_action(state, "LEFT"))
    assert game.position_text(state) == "2 4 0 0/0 0 0 0/2 0 0 0/0 0 0 0 score 4 spawns 1"
    assert game.parse_position(game.position_text(state)).tobytes() == state.tobytes()
    moved = game.parse_position("2@1,1 2@1,3 right 4@4,4")
    assert game.position_text(moved) == "0 0 0 4/0 0 0 0/0 0 0 0/0 0 0 4 score 4"
    stuck = game.parse_position("2 4 2 4/4 2 4 2/2 4 2 4/4 2 4 2 score 100")
    assert game.player(stuck) == TERMINAL and game.utility(stuck, 0) == 100.0
    blocked = game.parse_position("32768 32768 2 4/4 2 4 2/2 4 2 4/4 2 4 2")
    assert game.player(blocked) == TERMINAL
    won = TwentyFortyEight(target=2048).parse_position("2048 0 0 0/0 0 0 0/0 0 0 0/0 0 0 2")
    assert TwentyFortyEight(target=2048).player(won) == TERMINAL
    assert "2048" in game.show(won) and game.cells(won)[0, 0] == 11


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2 0 0 4/0 0 0 0/0 0 2 0", "4 rows of 4"),
        ("2 0 0/0 0 0/0 0 0/0 0 0", "4 rows of 4"),
        ("2 0 0 3/0 0 0 0/0 0 2 0/0 0 0 0", "'3' is no tile"),
        ("2 0 0 65536/0 0 0 0/0 0 2 0/0 0 0 0", "'65536' is no tile"),
        ("2 0 0 4/0 0 0 0/0 0 2 0/0 0 0 0 score 3", "multiple of 4"),
        ("2 0 0 4/0 0 0 0/0 0 2 0/0 0 0 0 score 4000000000", "at most"),
        ("2 0 0 4/0 0 0 0/0 0 2 0/0 0 0 0 score x", "whole number"),
        ("2 0 0 4/0 0 0 0/0 0 2 0/0 0 0 0 score 4 score 4", "at most once"),
        ("2 0 0 4/0 0 0 0/0 0 2 0/0 0 0 0 spawns 1 score 4", "in that order"),
        ("2 0 0 4/0 0 0 0/0 0 2 0/0 0 0 0 spawns 2", "spawns must be 0 or 1"),
        ("0 0 0 0/0 0 0 0/0 0 0 0/0 0 0 0 spawns 1", "spawns must be 2"),
        ("2 4 2 4/4 2 4 2/2 4 2 4/4 2 4 2 spawns 1", "spawns must be 0"),
        ("2@1,1 2@1,1", "not legal"),
        ("up", "not legal"),
        ("2@1,1 2@1,2 up", "not legal"),
    ],
)
def test_bad_positions(text, why):
    with pytest.raises(InputError, match=why):
        TwentyFortyEight().parse_position(text)


def fuzz(count: int, seed: int) -> int:
    game, rng, accepted = TwentyFortyEight(2, 2), random.Random(seed), 0
    seeds = ["2 4/0 8 score 12", "2 0/0 2 score 0 spawns 1", "2@1,1 4@2,2 up 2@1,2", "0 0/0 0 spawns 2"]
    alphabet = "0123456789 /@,.-scorepawnup\n\0²١é"
    for _ in range(count):
        letters = list(rng.choice(seeds))
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(letters) + 1)
            letters[at : at + rng.randrange(3)] = rng.choices(alphabet, k=rng.randrange(3))
        try:
            state = game.parse_position("".join(letters))
        except InputError as error:
            assert "\n" not in str(error)
        else:
            accepted += 1
            again = game.parse_position(game.position_text(state))
            assert again.tobytes() == state.tobytes()
    return accepted


def test_fuzzed_positions():
    assert fuzz(3000, seed=1) > 50


@pytest.mark.parametrize(
    "parameters",
    [{"rows": 1}, {"rows": 5}, {"columns": 1}, {"columns": 5}, {"four_probability": -0.1}, {"four_probability": 1.1},
     {"four_probability": float("nan")}, {"target": 4}, {"target": 100}, {"target": 65536}, {"target": -8}],
)  # fmt: skip
def test_bad_parameters(parameters):
    with pytest.raises(InputError, match=next(iter(parameters))):
        make("twenty_forty_eight", **parameters)


def test_directions_follow_the_cells():
    """A move along a line of cells becomes the move along its image."""
    game = TwentyFortyEight(3, 3)
    for symmetry, directions in zip(game.symmetries(), DIRECTIONS, strict=True):
        for (name, (down, right)), action in product(WAYS.items(), range(4)):
            if NAMES[action] == name:
                here, there = (divmod(int(symmetry.cells[3 * r + c]), 3) for r, c in ((1, 1), (1 + down, 1 + right)))
                assert WAYS[NAMES[directions[action]]] == (there[0] - here[0], there[1] - here[1])


def test_what_the_player_sees():
    game = TwentyFortyEight(3, 3)
    state = game.parse_position("8 8 2/0 4 0/0 0 2 score 2000")
    numbers, planes = np.zeros(8), np.zeros(game.observation_shape, np.float32)
    assert game.features(state, numbers) == 8
    named = dict(zip(game.feature_names(), numbers.tolist(), strict=True))
    assert named["empty cells"] == 4 and named["equal neighbours"] == 1 and named["score in thousands"] == 2.0
    assert named["steps between neighbours"] == 2 + 1  # 8 beside 2, 8 above 4
    assert named["exponent of the largest tile"] == 3 and named["the largest tile in a corner"] == 1
    assert named["legal moves"] == 4
    game.observe(state, planes)
    assert np.argwhere(planes[3]).tolist() == [[0, 0], [0, 1]] and planes[0].sum() == 4 and planes.sum() == 9


@pytest.mark.parametrize(
    "game",
    [TwentyFortyEight(3, 3),
     *(pytest.param(game, marks=pytest.mark.slow) for game in (TwentyFortyEight(), TwentyFortyEight(2, 4, 0.0, 32),
                                                               TwentyFortyEight(4, 2, 1.0), TwentyFortyEight(target=64)))],
    ids=repr,
)  # fmt: skip
def test_conformance(game):
    report = check_game(game, states=1500, texts=80, interpreted=40)
    assert report.ok, [str(broken) for broken in report.broken.values()]


def test_random_games_end():
    assert play_random_games(TwentyFortyEight(3, 3), 100, seed=1) > 100 * 20
