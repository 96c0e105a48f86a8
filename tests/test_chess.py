"""Chess against published counts, python-chess and OpenSpiel, move for move."""

import csv
import random
from collections import Counter
from pathlib import Path

import chess
import numpy as np
import pyspiel
import pytest

from envs.check import check_game, look, step
from envs.chess import Chess
from envs.chess_board import CHECKMATE, FIFTY_MOVES, GOING, MATERIAL, PLAIN_MOVES, REPETITION, STALEMATE
from envs.chess_fen import POSITIONS
from envs.compiled import njit
from envs.game import TERMINAL, legal_actions
from selfplay.perft import perft

DATA = Path(__file__).parent / "data" / "chess"
GAME = Chess()

OUT, PLANES = np.empty(GAME.max_legal, np.int64), np.zeros(GAME.observation_shape, np.float32)
FEATURES, UTILITIES = np.zeros(GAME.num_features), np.zeros(2)


def rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open() as file:
        return list(csv.DictReader(file))


def compiled_actions(state) -> tuple[int, list[int]]:
    """The player and the legal actions, by compiled code."""
    player, count, _, _ = look(GAME, state, OUT, np.empty(1), PLANES, FEATURES, UTILITIES)
    return player, OUT[:count].tolist()


# --- counts --------------------------------------------------------------------------------------------

CPW = [(row["name"], row["fen"], int(row["depth"]), int(row["nodes"])) for row in rows("perft_cpw.csv")]
SUITE = []
for line in (DATA / "perftsuite_63.epd").read_text().splitlines():
    fen, *counts = line.split(";")
    SUITE += [(fen.strip(), int(word[1]), int(word.split()[1])) for word in counts]


def test_perft_of_the_standard_positions():
    for name, fen, depth, nodes in CPW:
        if nodes <= 5_000_000:
            assert perft(GAME, depth, GAME.parse_position(fen)).nodes == nodes, (name, depth)


@pytest.mark.parametrize("name", POSITIONS)
def test_positions_by_name(name):
    fens = {cpw.split("(")[0]: fen for cpw, fen, _, _ in CPW}
    assert GAME.position_text(GAME.parse_position(name)) == fens[name]


def test_perft_suite():
    assert len(SUITE) == 63 * 6
    for fen, depth, nodes in SUITE:
        if depth <= 4:
            assert perft(GAME, depth, GAME.parse_position(fen)).nodes == nodes, (fen, depth)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "fen", "depth", "nodes"), [row for row in CPW if row[3] > 5_000_000])
def test_deep_perft_of_the_standard_positions(name, fen, depth, nodes):
    assert perft(GAME, depth, GAME.parse_position(fen)).nodes == nodes


@pytest.mark.slow
def test_deep_perft_suite():
    standard = {fen for _, fen, _, _ in CPW}
    for fen, depth, nodes in SUITE:
        if depth > 4 and fen not in standard:
            assert perft(GAME, depth, GAME.parse_position(fen)).nodes == nodes, (fen, depth)


@pytest.mark.parametrize("fen", ["8/8/8/4k3/8/4K3/8/8 w - - 0 1", "4k3/8/8/8/8/8/8/4K2R w K - 100 80"])
def test_perft_ignores_the_draw_rules(fen):
    def count(board: chess.Board, depth: int) -> int:
        if depth == 0:
            return 1
        total = 0
        for move in list(board.legal_moves):
            board.push(move)
            total += count(board, depth - 1)
            board.pop()
        return total

    state = GAME.parse_position(fen)
    assert GAME.player(state) == TERMINAL
    assert perft(GAME, 3, state).nodes == count(chess.Board(fen), 3)


def breakdown(states, level: int, depth: int, counts: Counter) -> None:
    """Counts what kind the last moves of all sequences are."""
    _, actions = compiled_actions(states[level])
    for action in actions:
        before = states[level]
        states[level + 1] = before
        step(GAME, states[level + 1], action)
        if depth > 1:
            if states[level + 1].ending not in (CHECKMATE, STALEMATE):
                breakdown(states, level + 1, depth - 1, counts)
            continue
        source = action >> 6 if action < PLAIN_MOVES else 48 + (action - PLAIN_MOVES) // 9
        target = action & 63 if action < PLAIN_MOVES else 63
        pawn, king = int(before.pawns) >> source & 1, int(before.kings) >> source & 1
        passant = pawn and before.passant and target == before.passant
        counts["nodes"] += 1
        counts["captures"] += int(before.theirs).bit_count() - int(states[level + 1].mine).bit_count()
        counts["ep"] += bool(passant)
        counts["castles"] += king and abs(target - source) == 2
        counts["promotions"] += pawn and target >= 56
        counts["checks"] += states[level + 1].checkers != 0
        counts["checkmates"] += states[level + 1].ending == CHECKMATE


def check_breakdown(smallest: int, largest: int) -> int:
    """Compares the published rows with so many nodes; returns how many there are."""
    compared = 0
    for row in rows("perft_breakdown.csv"):
        if smallest <= int(row["nodes"]) <= largest:
            counts: Counter = Counter(dict.fromkeys(list(row)[2:], 0))
            states = GAME.new(8)
            states[0] = GAME.parse_position(row["name"])
            breakdown(states, 0, int(row["depth"]), counts)
            assert {name: str(count) for name, count in counts.items()} == dict(list(row.items())[2:]), row
            compared += 1
    return compared


def test_breakdown_of_perft():
    assert check_breakdown(0, 10_000) == 13


@pytest.mark.slow
def test_breakdown_of_deeper_perft():
    assert check_breakdown(10_001, 1_000_000) == 4


# --- mates and stalemates ------------------------------------------------------------------------------


@njit
def mates(game, states, moves, level, plies):
    """Whether the mover of states[level] mates within so many plies (an odd number)."""
    for i in range(game.actions(states[level], moves[level])):
        states[level + 1] = states[level]
        game.play(states[level + 1], moves[level, i])
        if states[level + 1].ending == 1:
            return True
        if plies > 1 and states[level + 1].ending == 0:
            forced = True
            for j in range(game.actions(states[level + 1], moves[level + 1])):
                states[level + 2] = states[level + 1]
                game.play(states[level + 2], moves[level + 1, j])
                if states[level + 2].ending != 0 or not mates(game, states, moves, level + 2, plies - 2):
                    forced = False
                    break
            if forced:
                return True
    return False


MATES = rows("mates_in_1_and_2.csv")


def test_mates_in_one():
    found = 0
    for row in MATES:
        if row["mate_in"] == "1":
            state = GAME.parse_position(row["fen"])
            mover = GAME.player(state)
            step(GAME, state, GAME.parse_action(state, row["one_mating_first_move"]))
            assert state.ending == CHECKMATE and GAME.player(state) == TERMINAL, row
            assert (GAME.utility(state, mover), GAME.utility(state, 1 - mover)) == (1.0, -1.0)
            found += 1
    assert found == 8


@pytest.mark.slow
def test_mates_in_two():
    states, moves = GAME.new(8), np.empty((8, GAME.max_legal), np.int64)
    for row in MATES:
        states[0] = GAME.parse_position(row["fen"])
        assert mates(GAME, states, moves, 0, 1) == (row["mate_in"] == "1"), row
        assert mates(GAME, states, moves, 0, 3), row


@pytest.mark.parametrize("row", rows("stalemate_flags_8.csv"), ids=lambda row: row["fen"])
def test_stalemates(row):
    state = GAME.parse_position(row["fen"])
    assert (state.ending == STALEMATE) == (row["is_stalemate"] == "True")
    assert len(legal_actions(GAME, state)) == int(row["legal_moves"])
    if state.ending == STALEMATE:
        assert GAME.player(state) == TERMINAL and GAME.utility(state, 0) == GAME.utility(state, 1) == 0.0


# --- python-chess ----------------------------------------------------------------------------------------

# Where python-chess's `Board.outcome()` differs: without claims it knows the 75-move rule and fivefold repetition;
# here, as with `claim_draw=True` asked only of positions on the board, 50 moves and threefold repetition end a game.


def action_of(move: chess.Move, turn: int) -> int:
    """The action of a python-chess move."""
    turned = 56 if turn else 0
    source, target = move.from_square ^ turned, move.to_square ^ turned
    if move.promotion in (None, chess.QUEEN):
        return 64 * source + target
    return PLAIN_MOVES + 9 * (source - 48) + 3 * (target - source - 7) + move.promotion - chess.KNIGHT


def how_it_ends(board: chess.Board, moves: int, occurred: int) -> int:
    """The ending as our docstring defines it, by what python-chess says."""
    if moves == 0:
        return CHECKMATE if board.is_check() else STALEMATE
    if board.halfmove_clock >= 100:
        return FIFTY_MOVES
    if occurred >= 3:
        return REPETITION
    return MATERIAL if board.is_insufficient_material() else GOING


def same_position(state, board: chess.Board) -> bool:
    """What a FEN says, compared field by field, as writing and reading thousands of FENs takes long."""
    words = np.frombuffer(state.tobytes()[:64], np.uint64)
    turned = board.turn == chess.BLACK
    seen = [int(word) for word in (words.byteswap() if turned else words)]
    theirs = [
        board.pawns,
        board.knights,
        board.bishops | board.queens,
        board.rooks | board.queens,
        board.kings,
        board.occupied_co[board.turn],
        board.occupied_co[not board.turn],
        board.castling_rights,
    ]
    passant = board.ep_square if board.has_legal_en_passant() else None
    ours = None if state.passant == 0 else int(state.passant) ^ (56 if turned else 0)
    counters = (int(state.clock), int(state.fullmove)) == (board.halfmove_clock, board.fullmove_number)
    return seen == theirs and passant == ours and counters and bool(state.turn) == turned


def play_beside_python_chess(games: int, seed: int, starts: list[str]) -> Counter:
    """Random games on both sides: same moves, positions and endings; returns how the games ended.

    In half of the games most moves are taken back at once, where they can: so positions repeat and clocks run.
    """
    rng, endings, states = random.Random(seed), Counter(), GAME.new()
    for number in range(games):
        start = starts[number % len(starts)]
        states[0], board, seen, ply = GAME.parse_position(start), chess.Board(POSITIONS.get(start, start)), Counter(), 0
        back: list[chess.Move | None] = [None, None]
        restless = rng.random() < 0.5
        while True:
            player, actions = compiled_actions(states[0])
            moves = {action_of(move, not board.turn): move for move in board.legal_moves}
            seen[board._transposition_key()] += 1
            expected = how_it_ends(board, len(moves), seen[board._transposition_key()])
            assert states[0].ending == expected, board.fen()
            assert same_position(states[0], board), (board.fen(), GAME.position_text(states[0]))
            if expected != GOING:
                assert player == TERMINAL
                endings[expected] += 1
                outcome = board.outcome(claim_draw=True)
                assert outcome is not None
                winner = {None: 0.0, True: 1.0, False: -1.0}[outcome.winner]
                assert GAME.utility(states[0], 0) == winner == -GAME.utility(states[0], 1)
                break
            assert actions == sorted(moves), board.fen()
            if ply % 20 == number % 20:
                assert GAME.position_text(states[0]) == board.fen()
                assert {GAME.action_name(states[0], a) for a in actions} == {m.uci() for m in moves.values()}
            action = rng.choice(actions)
            returning = back[player]
            if restless and rng.random() < 0.6 and returning in moves.values():
                action = action_of(returning, player)
            move = moves[action]
            back[player] = chess.Move(move.to_square, move.from_square)
            board.push(move)
            step(GAME, states[0], action)
            ply += 1
    return endings


STARTS = ["startpos", *(row["fen"] for row in MATES[::9]), *(fen for fen, depth, _ in SUITE if depth == 1)]


def test_random_games_beside_python_chess():
    endings = play_beside_python_chess(200, seed=1, starts=STARTS)
    assert min(endings[e] for e in (CHECKMATE, STALEMATE, REPETITION, MATERIAL)) >= 1, endings


@pytest.mark.slow
def test_many_random_games_beside_python_chess():
    endings = play_beside_python_chess(1500, seed=2, starts=["startpos"]) + play_beside_python_chess(1500, 3, STARTS)
    assert min(endings[e] for e in (CHECKMATE, STALEMATE, FIFTY_MOVES, REPETITION, MATERIAL)) >= 20, endings


# --- OpenSpiel -------------------------------------------------------------------------------------------

# OpenSpiel's chess has the same rules and the same draws; its players and actions are numbered otherwise, so moves are
# compared as UCI writes them. The one difference in the rules is tested below.


def play_beside_open_spiel(games: int, seed: int) -> Counter:
    rng, endings, states, spiel = random.Random(seed), Counter(), GAME.new(), pyspiel.load_game("chess")
    for number in range(games):
        states[0], theirs, ply = GAME.new()[0], spiel.new_initial_state(), 0
        while True:
            player, actions = compiled_actions(states[0])
            assert (player == TERMINAL) == theirs.is_terminal(), str(theirs)
            if player == TERMINAL:
                assert [GAME.utility(states[0], p) for p in range(2)] == theirs.returns()[::-1], str(theirs)
                endings[int(states[0].ending)] += 1
                break
            assert player == 1 - theirs.current_player(), str(theirs)  # it numbers black 0 and white 1
            board = theirs.board()
            moves = {}
            for spiel_action in theirs.legal_actions():
                move = chess.Move.from_uci(pyspiel.chess.action_to_move(spiel_action, board).to_lan())
                moves[action_of(move, player)] = spiel_action
            assert sorted(moves) == actions, str(theirs)
            if ply % 20 == number % 20:
                assert GAME.position_text(states[0]).split()[:2] == str(theirs).split()[:2]
            action = rng.choice(actions)
            theirs.apply_action(moves[action])
            step(GAME, states[0], action)
            ply += 1
    return endings


def test_random_games_beside_open_spiel():
    endings = play_beside_open_spiel(20, seed=2)
    assert sum(endings.values()) == 20 and endings[CHECKMATE] >= 1 and len(endings) >= 3, endings


@pytest.mark.slow
def test_many_random_games_beside_open_spiel():
    endings = play_beside_open_spiel(1000, seed=3)
    assert min(endings[e] for e in (CHECKMATE, STALEMATE, FIFTY_MOVES, REPETITION, MATERIAL)) >= 5, endings


def test_a_pinned_pawn_takes_nothing_en_passant_and_so_changes_no_position():
    """FIDE 9.2.3: positions differ by a capture en passant that is possible. OpenSpiel counts the impossible one too."""
    fen = "4k3/3p4/8/K3P2r/8/8/8/8 b - - 0 1"
    state, board, theirs = GAME.parse_position(fen), chess.Board(fen), pyspiel.load_game("chess").new_initial_state(fen)
    for word in ["d7d5", *["a5a4", "e8e7", "a4a5", "e7e8"] * 2]:
        assert GAME.player(state) != TERMINAL
        GAME.play(state, GAME.parse_action(state, word))
        board.push_uci(word)
        theirs.apply_action(theirs.parse_move_to_action(word))
    assert state.ending == REPETITION and board.is_repetition(3) and not theirs.is_terminal()


# --- conformance -----------------------------------------------------------------------------------------


def test_conformance():
    report = check_game(GAME, states=1500, texts=40, interpreted=30)
    assert report.ok, [str(broken) for broken in report.broken.values()]


@pytest.mark.slow
def test_conformance_without_draw_rules():
    report = check_game(Chess(draw_rules=False), states=3000, texts=60, interpreted=60)
    assert report.ok, [str(broken) for broken in report.broken.values()]
