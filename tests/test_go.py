"""Go against published counts and values, GNU Go's records, OpenSpiel and a slow second opinion."""

import csv
import itertools
import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import psutil
import pyspiel
import pytest
from naive_go import NaiveGo, board_of, diagram
from referees import look, result, step

from envs.check import check_game
from envs.compiled import njit
from envs.errors import InputError
from envs.game import TERMINAL, legal_actions
from envs.go import Go
from envs.go_text import parse_cell
from envs.playouts import play_random_games
from envs.registry import make
from envs.rng import below, generator
from selfplay.perft import perft

DATA = Path(__file__).parent / "data" / "go"  # copied from the reference data: Tromp, Drange, van der Werf, GNU Go
GAME = Go()

with (DATA / "legal_positions.csv").open() as file:
    LEGAL_POSITIONS = {
        (int(row["rows"]), int(row["cols"])): int(row["legal_positions"]) for row in csv.DictReader(file)
    }
with (DATA / "solved_values.csv").open() as file:
    SOLVED = {row["board"]: int(row["black_margin_area_scoring"].split()[0]) for row in csv.DictReader(file)}
RECORDS = [json.loads(line) for line in (DATA / "random_games_gnugo_50.jsonl").read_text().splitlines()]


# --- published counts ----------------------------------------------------------------------------------


def reachable(game: Go) -> dict[tuple[int, ...], set[tuple[int, ...]]]:
    """All boards that stones of either colour can lead to from the empty board, and each one's successors."""
    graph: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    waiting = [(0,) * game.points]
    while waiting:
        board = waiting.pop()
        if board in graph:
            continue
        graph[board] = set()
        for mover in "bw":
            root = game.parse_position(diagram(game, board, mover))
            for action in legal_actions(game, root)[:-1]:
                state = root.copy()
                game.play(state, action)
                graph[board].add(board_of(game, state))
        waiting += graph[board]
    return graph


@pytest.mark.parametrize(("rows", "columns", "degree"), [(1, 2, 2.4), (1, 3, 2.8), (1, 4, None), (2, 2, 3.368)])
def test_legal_positions_are_those_that_play_reaches(rows, columns, degree):
    """Also the average number of moves in the game graph, by Tromp and Farnebäck, where suicide counts."""
    graph = reachable(Go(size=columns, rows=rows, suicide=True))
    assert len(graph) == LEGAL_POSITIONS[rows, columns]
    assert degree is None or round(sum(map(len, graph.values())) / len(graph), 3) == degree


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns", "degree"), [(2, 3, 4.728), (1, 5, None)])
def test_more_legal_positions_by_play(rows, columns, degree):
    test_legal_positions_are_those_that_play_reaches(rows, columns, degree)


def accepted_diagrams(rows: int, columns: int) -> int:
    """How many of all ways to colour the points are accepted as positions."""
    game, count = Go(size=columns, rows=rows), 0
    for board in itertools.product(range(3), repeat=game.points):
        try:
            game.parse_position(diagram(game, board))
        except InputError as error:
            assert "no liberty" in str(error)
        else:
            count += 1
    return count


@pytest.mark.parametrize(("rows", "columns"), [(1, 2), (1, 3), (1, 4), (1, 5), (2, 2), (2, 3)])
def test_legal_positions_as_diagrams(rows, columns):
    assert accepted_diagrams(rows, columns) == LEGAL_POSITIONS[rows, columns]


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns"), [(2, 4)])
def test_more_legal_positions_as_diagrams(rows, columns):
    assert accepted_diagrams(rows, columns) == LEGAL_POSITIONS[rows, columns]


@njit
def count_possible(game, states):
    """How many of all colourings of the board leave each chain a liberty."""
    state, total = states[0], 0
    while True:
        game.set_up(state, 0)
        possible = True
        for a in range(game.points):
            point = game.point_of[a]
            if state.colour[point] != state.setup[a] or (
                state.setup[a] != 0 and state.liberties[state.head[point]] == 0
            ):
                possible = False
                break
        total += possible
        a = 0  # counts in base three
        while a < game.points and state.setup[a] == 2:
            state.setup[a] = 0
            a += 1
        if a == game.points:
            return total
        state.setup[a] += 1


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (3, 4), (4, 4)])
def test_legal_positions_of_larger_boards(rows, columns):
    game = Go(size=columns, rows=rows, length=1)
    assert count_possible(game, game.new()) == LEGAL_POSITIONS[rows, columns]


def count_games(game: Go, state) -> int:
    if game.player(state) == TERMINAL:
        return 1
    total = 0
    for action in legal_actions(game, state):
        after = state.copy()
        game.play(after, action)
        total += count_games(game, after)
    return total


@pytest.mark.parametrize(("columns", "games"), [(2, 9), (3, 907)])
def test_number_of_games(columns, games):
    """All games to two passes on 1xn with suicide, which are the simple paths of Tromp and Farnebäck's game graph."""
    game = Go(size=columns, rows=1, suicide=True, length=200)
    assert count_games(game, game.new()[0]) == games


# Sequences that end in a stone: OEIS A048289 for 19x19. Perft also counts those that end in one pass or two.
STONE_LAST = [1, 361, 130321, 46915560]


def test_perft():
    assert [perft(Go(size=5), depth).nodes for depth in range(4)] == [1, 26, 651, 15650]  # OpenSpiel's counts


@pytest.mark.slow
@pytest.mark.parametrize("depth", [2, 3])
def test_perft_19x19(depth):
    assert perft(Go(size=19), depth).nodes == sum(STONE_LAST[depth - 2 : depth + 1])


@njit
def solve(game, states, moves, level, alpha, beta):
    """Alpha-beta to the end of the game, superko and all; fail-soft. Second passes come first, then captures."""
    state = states[level]
    if game.player(state) == TERMINAL:
        return game.utility(state, np.int64(state.turn))
    best = -np.inf
    count = game.actions(state, moves[level])
    for stage in range(3):
        for i in range(count):
            action = moves[level, i]
            if action == game.points:
                rank = 0 if state.passes == 1 else 2
            else:
                rank = 0 if game.is_loud(state, action) else 1
            if rank == stage:
                states[level + 1] = state
                game.play(states[level + 1], action)
                best = max(best, -solve(game, states, moves, level + 1, -beta, -max(alpha, best)))
                if best >= beta:
                    return best
    return best


@pytest.mark.slow
@pytest.mark.parametrize("board", ["1x2", "1x3", "1x4", "1x5", "2x2"])
def test_solved_values(board):
    rows, columns = map(int, board.split("x"))
    game = Go(size=columns, rows=rows, komi=0.0, margin=True)
    levels = game.max_length + 1
    assert solve(game, game.new(levels), np.empty((levels, game.max_legal), np.int64), 0, -99.0, 99.0) == SOLVED[board]


# --- GNU Go --------------------------------------------------------------------------------------------


def replay(record: dict, game: Go) -> Counter:
    """Follows a recorded game; what GNU Go forbids, its captures, board and score must be ours.

    GNU Go forbids the simple ko only. With our superko more points are forbidden, and each of those must repeat a
    former board; a recorded move that does ends the comparison of that game.
    """
    naive, found = NaiveGo(game.size, game.height, superko=game.superko), Counter()
    state = game.new()[0]
    for move, forbidden in zip(record["moves"], record["illegal_empty_points_before_each_move"], strict=True):
        colour, name = move.split(":")
        assert game.player(state) == "bw".index(colour)
        legal = legal_actions(game, state)
        empty = [cell for cell, mark in enumerate(board_of(game, state)) if mark == 0]
        theirs = {game.action_name(state, cell) for cell in empty} - set(forbidden)
        ours = {game.action_name(state, action) for action in legal[:-1]}
        assert ours <= theirs
        for extra in theirs - ours:
            cell = parse_cell(game.size, game.height, extra)
            assert game.superko and naive.after(naive.board, cell, naive.turn) in naive.boards
            found["forbidden by superko alone"] += 1
        if name != "pass" and name not in ours:
            found["games with a repetition"] += 1
            return found
        action = game.parse_action(state, name)
        game.play(state, action)
        naive.play(None if action == game.points else action)
        assert board_of(game, state) == naive.board
    found["whole games"] += 1
    assert ["".join(".XO"[cell] for cell in row) for row in game.cells(state)] == record["final_board_top_to_bottom"]
    assert naive.captured[1:] == [record["captured_black_stones"], record["captured_white_stones"]]
    assert stones_taken(game, state) == naive.captured[1:]
    assert int(game.score(state)) == naive.score() == record["area_score_black_minus_white"]
    if game.player(state) == TERMINAL:
        assert game.utility(state, 0) == record["area_score_black_minus_white"] - game.komi
        found["ended by two passes"] += 1
    return found


def stones_taken(game: Go, state) -> list[int]:
    """Captured stones by colour: those played less those on the board."""
    played = [0, 0]
    for ply, action in enumerate(game.moves_of(state)):
        played[ply % 2] += action != game.points
    return [played[player] - int(state.count[player]) for player in range(2)]


@pytest.mark.parametrize("superko", [False, True])
def test_gnu_go_games(superko):
    found: Counter = Counter()
    for record in RECORDS:
        found += replay(record, Go(size=record["size"], superko=superko, margin=True))
    if superko:
        assert found["games with a repetition"] + found["whole games"] == len(RECORDS)
        assert found["games with a repetition"] > 0 and found["whole games"] > 25
    else:
        assert found == {"whole games": len(RECORDS), "ended by two passes": 4}


# --- OpenSpiel -----------------------------------------------------------------------------------------


def play_beside_open_spiel(size: int, games: int, seed: int) -> Counter:
    """Random games on both sides; where the rules differ, that must be the reason.

    OpenSpiel: a longer repetition than the simple ko is legal and ends the game as a draw; our superko forbids it.
    """
    ours = Go(size=size, superko=False, length=2 * size * size)
    strict = Go(size=size, length=2 * size * size)
    spiel = pyspiel.load_game(f"go(board_size={size},komi=7.5)")
    rng, out, found = random.Random(seed), np.empty(ours.max_legal, np.int64), Counter()
    to_spiel = [(size - 1 - a // size) * size + a % size for a in range(ours.points)] + [ours.points]
    for _ in range(games):
        states, twins, theirs = ours.new(), strict.new(), spiel.new_initial_state()
        boards = {states[0].colour.tobytes()}
        while True:
            player, count = look(ours, states[0], out, np.empty(1))
            assert (player == TERMINAL) == theirs.is_terminal(), str(theirs)
            if player == TERMINAL:
                assert [result(ours, states[0], p) for p in range(2)] == theirs.returns()
                found["two passes" if states[0].passes == 2 else "longest game"] += 1
                break
            legal = [int(action) for action in out[:count]]
            assert sorted(to_spiel[a] for a in legal) == theirs.legal_actions(), str(theirs)
            # Passes are rarer than at random, so that positions do come again.
            action = rng.choice(legal[:-1] if len(legal) > 1 and rng.random() < 0.9 else legal)
            theirs.apply_action(to_spiel[action])
            step(ours, states[0], action)
            board = states[0].colour.tobytes()
            twin_legal = out[: look(strict, twins[0], out, np.empty(1))[1]]
            assert (action in twin_legal) == (action == ours.points or board not in boards)
            if action not in twin_legal:
                assert theirs.is_terminal() and theirs.returns() == [0, 0], str(theirs)
                found["repetition"] += 1
                break
            step(strict, twins[0], action)
            boards.add(board)
    return found


def test_random_games_beside_open_spiel():
    found = play_beside_open_spiel(4, 400, seed=1)
    assert found["repetition"] > 2 and found["two passes"] > 20 and found["longest game"] > 20, found


@pytest.mark.slow
@pytest.mark.parametrize(("size", "games"), [(9, 2000), (5, 5000), (3, 5000), (13, 200)])
def test_many_random_games_beside_open_spiel(size, games):
    found = play_beside_open_spiel(size, games, seed=2)
    assert sum(found.values()) == games and (found["repetition"] > 10 or size > 5), found


# --- a slow second opinion -----------------------------------------------------------------------------


def empty_cells(naive: NaiveGo) -> list[int]:
    return [cell for cell, colour in enumerate(naive.board) if colour == 0]


def play_beside_naive(game: Go, games: int, seed: int) -> Counter:
    """Random games: legal moves, boards, playout moves and scores by flood fill."""
    rng, numbers, found = random.Random(seed), generator(seed), Counter()
    out = np.empty(game.max_legal, np.int64)
    for _ in range(games):
        naive, state = NaiveGo(game.size, game.height, game.suicide, game.superko), game.new()[0]
        while game.player(state) != TERMINAL:
            legal = legal_actions(game, state)
            expected = naive.legal()
            changes = {cell: naive.after(naive.board, cell, naive.turn) for cell in empty_cells(naive)}
            retake = [c for c, board in changes.items() if board in naive.boards[-2:-1] and board != naive.board]
            assert [int(game.action_of[state.ko])] * bool(state.ko) == retake
            assert legal == [*expected, game.points]
            bounded = NaiveGo(game.size, game.height)
            sensible = [
                cell
                for cell in expected
                if not naive.is_eye(cell, naive.turn) and bounded.after(naive.board, cell, naive.turn) is not None
            ]
            with np.errstate(over="ignore"):
                chosen = int(game.playout_action(state, out, numbers))
            assert chosen in sensible or (chosen == game.points and not sensible)
            for action in legal:
                taken = 0
                if action != game.points:
                    after = naive.after(naive.board, action, naive.turn)
                    taken = naive.board.count(3 - naive.turn) - after.count(3 - naive.turn)
                assert game.move_value(state, action) == taken and game.is_loud(state, action) == (taken > 0)
            # Passes are rare, so that boards fill up and positions come again.
            action = rng.choice(expected) if expected and rng.random() < 0.95 else game.points
            after = naive.board if action == game.points else naive.after(naive.board, action, naive.turn)
            found["suicides"] += action != game.points and after.count(naive.turn) <= naive.board.count(naive.turn)
            found["captures"] += after.count(3 - naive.turn) < naive.board.count(3 - naive.turn)
            game.play(state, action)
            naive.play(None if action == game.points else action)
            assert board_of(game, state) == naive.board and list(state.count) == [after.count(1), after.count(2)]
        assert int(state.area) == naive.score()
    return found


NAIVE = [
    Go(size=2),
    Go(size=3, suicide=True),
    Go(size=4, rows=2, suicide=True, superko=False),
    Go(size=5, rows=1),
    Go(size=4, rows=3),
    Go(size=3, rows=4, superko=False),
]


@pytest.mark.parametrize("game", NAIVE, ids=str)
def test_random_games_beside_flood_fill(game):
    found = play_beside_naive(game, 4, seed=3)
    assert found["captures"] > 5 and (found["suicides"] > 0) == game.suicide


@pytest.mark.slow
@pytest.mark.parametrize("game", [*NAIVE, Go(size=6), Go(size=5, suicide=True), GAME], ids=str)
def test_many_random_games_beside_flood_fill(game):
    play_beside_naive(game, 30 if game.points < 30 else 4, seed=4)


# --- rules by example ----------------------------------------------------------------------------------


def names(game: Go, text: str) -> list[str]:
    state = game.parse_position(text)
    return [game.action_name(state, action) for action in legal_actions(game, state)]


def test_simple_ko():
    ko = ".xo./x.xo/.xo./.... w"
    game = Go(size=4, superko=False)
    state = game.parse_position(f"{ko} B3")  # takes C3
    assert state.ko and "C3" not in names(game, f"{ko} B3")
    assert "C3" in names(game, f"{ko} B3 D1 A1")  # after a move elsewhere on both sides
    assert "C3" in names(Go(size=4), f"{ko} B3 D1 A1")
    with pytest.raises(InputError, match="superko"):
        Go(size=4).parse_position(f"{ko} B3 C3")


def test_a_longer_cycle_is_forbidden_by_superko_alone():
    text = "B1 D1 A1 C1"  # takes A1 and B1; a stone on B1 would take C1 and D1 and bring back the first board
    assert "B1" in names(Go(size=4, rows=1, superko=False), text)
    assert "B1" not in names(Go(size=4, rows=1), text)
    game = Go(size=4, rows=1, superko=False)
    assert board_of(game, game.parse_position(f"{text} B1")) == (0, 1, 0, 0)


def test_suicide():
    text = ".x.o/xx.o/...o/oooo w"
    assert "A4" not in names(Go(size=4), text)
    assert "A4" not in names(Go(size=4, suicide=True), text)  # changes nothing: the same position again
    text = ".ox./oox./xx../.... w A4"
    with pytest.raises(InputError, match="no liberty"):
        Go(size=4).parse_position(text)
    game = Go(size=4, suicide=True)
    state = game.parse_position(text)
    assert board_of(game, state)[:8] == (0, 0, 1, 0, 0, 0, 1, 0) and state.turn == 0


def test_two_passes_end_the_game():
    game = Go(size=3, komi=0.5, margin=True)
    state = game.parse_position("B2 pass pass")
    assert game.player(state) == TERMINAL and [game.utility(state, p) for p in range(2)] == [8.5, -8.5]
    assert game.result(state) == "B+8.5" and "B+8.5" in game.show(state)
    state = Go(size=3, komi=9.0).parse_position("B2 pass pass")
    assert Go(size=3, komi=9.0).utility(state, 0) == 0.0
    assert game.player(game.parse_position("B2 pass")) == 0
    assert GAME.utility(GAME.parse_position("pass pass"), 0) == -1.0


def test_the_longest_game():
    game = Go(size=2, length=3)
    assert game.player(game.parse_position("A1 A2 B2")) == TERMINAL
    assert [Go(size=n).max_length for n in (2, 9, 19)] == [150, 162, 722]


def test_memory():
    """A 9x9 state with its whole history, and no growth by a million random plies."""
    assert GAME.state.itemsize <= 4096
    play_random_games(GAME, 100)
    process = psutil.Process()
    before = process.memory_info().rss
    assert play_random_games(GAME, 9000) > 1_000_000
    assert process.memory_info().rss - before < 1 << 20


@pytest.mark.parametrize(
    "parameters",
    [{"size": 1}, {"size": 20}, {"rows": 20}, {"rows": -1}, {"komi": "nan"}, {"komi": 2000}, {"length": -1}],
)
def test_bad_parameters(parameters):
    with pytest.raises(InputError, match=next(iter(parameters))):
        make("go", **parameters)


@pytest.mark.parametrize("game", [GAME, Go(size=4, rows=3, suicide=True, margin=True, komi=0.5)], ids=str)
def test_conformance(game):
    report = check_game(game, states=600, texts=30, interpreted=12)
    assert report.ok, [str(broken) for broken in report.broken.values()]


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec",
    ["size=2", "size=5,rows=1", "size=5,superko=false", "size=6,suicide=true,superko=false", "size=13", "size=19"],
)
def test_conformance_of_more_boards(spec):
    report = check_game(make(f"go:{spec}"), states=2000, texts=60, interpreted=20)
    assert report.ok, [str(broken) for broken in report.broken.values()]


# --- golden playthrough --------------------------------------------------------------------------------


def playthrough(game: Go, seed: int) -> str:
    """A random game: before each move the position, the key, the legal moves and the move; then the result."""
    rng, states, lines = generator(seed), game.new(), []
    with np.errstate(over="ignore"):
        while game.player(states[0]) != TERMINAL:
            actions = legal_actions(game, states[0])
            moves = [f"{game.action_name(states[0], action)}={action}" for action in actions]
            pick = int(below(rng, len(actions)))
            text, key = diagram(game, board_of(game, states[0]), "bw"[int(states[0].turn)]), int(game.key(states[0]))
            lines.append(f"{text} | {key:016x} | {' '.join(moves)} | {moves[pick]}")
            game.play(states[0], actions[pick])
    values = [game.utility(states[0], player) for player in range(2)]
    return "\n".join([*lines, f"{game.sgf(states[0])} | {values}", ""])


def test_golden_playthrough():
    """The rules, actions, keys and texts of a whole game, as recorded: a change must be on purpose."""
    assert playthrough(Go(size=5, komi=0.5), seed=44) == (DATA / "playthrough.txt").read_text()
