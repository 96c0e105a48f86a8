"""Opening books: what they learn, how they are kept, and how agents use them."""

import numpy as np
import pytest

from envs.connect_four import ConnectFour
from envs.errors import InputError
from envs.game import advance
from envs.mnk import MNK
from envs.registry import make
from selfplay.agents import make_agent
from selfplay.book import Book, default_path, load
from selfplay.book_making import build, early_positions, grow, rows
from selfplay.search.result import Result

GAME = MNK(rows=3, columns=3, connect=3)


@pytest.fixture(scope="module")
def searched():
    book = Book(GAME)
    assert build(book, "alphabeta:full_root=on", plies=2) == 4  # the start, and a stone in a corner, on an edge, inside
    return book


def test_mirror_images_are_one_position():
    # Up to symmetry tic-tac-toe has 1, 3, 12, 38 positions by plies (Schaefer 2002).
    assert [len(early_positions(GAME, plies, 1000)) for plies in (1, 2, 3, 4)] == [1, 4, 16, 54]
    book = Book(GAME)
    for first, reply in (("a1", "b1"), ("c3", "c2"), ("a3", "a2")):  # the same game, turned
        state = GAME.parse_position(first)
        book.add_game([(state, 1, GAME.parse_action(state, reply))], [1.0, -1.0])
    known = book.known(GAME.parse_position("c1"))
    assert {GAME.action_name(GAME.parse_position("c1"), action) for action in known} == {"b1", "c2"}
    assert [entry.games for entry in known.values()] == [3, 3]  # one entry: b1 and c2 are images of each other


def test_a_searched_book_knows_the_game(searched):
    corner = searched.result(GAME.parse_position("a1"))
    assert corner is not None and GAME.action_name(GAME.parse_position("a1"), corner.action) == "b2"
    assert corner.value == 0.0 and sum(move.value == -1.0 for move in corner.moves) == 7  # all other replies lose
    assert searched.result(GAME.parse_position("a1 b2 c3")) is None
    assert build(searched, "alphabeta:full_root=on", plies=2) == 0  # nothing left to do


def test_bounds_are_not_taken_for_values():
    book, state = Book(GAME), GAME.new()[0]
    agent = make_agent("alphabeta:depth=9", GAME)
    result = agent.search(state)
    book.add_search(state, result, "alphabeta")
    exact = [move for move in result.moves if move.bound == "exact"]
    place = book.place(state)
    assert set(book.positions[place.key]) == {int(place.actions[move.action]) for move in exact}


def test_games_are_counted_and_the_better_move_is_chosen():
    book = Book(GAME)
    grow(book, ["alphabeta:depth=4", "random"], games=120, plies=2, explore=0.5, seed=1)
    start = GAME.new()[0]
    known = book.known(start)
    assert sum(entry.games for entry in {id(entry): entry for entry in known.values()}.values()) == 120
    assert all(entry.games == entry.wins + entry.draws + entry.losses for entry in known.values())
    again = Book(GAME)
    grow(again, ["alphabeta:depth=4", "random"], games=120, plies=2, explore=0.5, seed=1)
    assert again.positions == book.positions
    chosen = book.result(start)
    best = max(entry.score for entry in known.values() if entry.games >= 10)
    assert known[chosen.action].score >= best - 0.1


def test_a_file_keeps_everything(searched, tmp_path):
    path = tmp_path / "deep" / "book.sqlite"
    searched.save(path)
    assert load(GAME, path).positions == searched.positions
    grown = load(GAME, path)
    grow(grown, ["random"], games=5, plies=2)
    grown.save(path)
    assert load(GAME, path).positions == grown.positions != searched.positions
    assert sorted(p.name for p in path.parent.iterdir()) == ["book.sqlite", "book.sqlite.sha256"]


def test_every_flipped_bit_is_noticed(searched, tmp_path):
    path = tmp_path / "book.sqlite"
    searched.save(path)
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(data), 40):
        changed = bytearray(data)
        changed[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        with pytest.raises(InputError, match="checksum"):
            load(GAME, path)


def test_bad_books(searched, tmp_path):
    path = tmp_path / "book.sqlite"
    with pytest.raises(InputError, match="does not exist"):
        load(GAME, path)
    searched.save(path)
    with pytest.raises(InputError, match="tic_tac_toe"):
        load(ConnectFour(), path)
    with pytest.raises(InputError, match="can't be written"):
        searched.save(tmp_path / "book.sqlite" / "inside" / "a" / "file.sqlite")
    assert load(GAME, path).positions == searched.positions
    for arguments in (("random", 2), ("alphabeta:depth=2", 0)):
        with pytest.raises(InputError):
            build(Book(GAME), *arguments)
    with pytest.raises(InputError, match="plies"):
        build(Book(make("gomoku")), "alphabeta:depth=1", 4, most=500)
    with pytest.raises(InputError, match="two players"):
        grow(Book(make("twenty_forty_eight")), ["random"], 1, 1)


def test_agents_look_into_the_book_first(searched, tmp_path, monkeypatch):
    monkeypatch.setenv("SELFPLAY_BOOKS", str(tmp_path))
    searched.save(default_path(GAME))
    assert default_path(GAME).name == "tic_tac_toe.sqlite"
    agent = make_agent("mcts:simulations=1,book=on", GAME)
    state = GAME.parse_position("a1")
    result = agent.search(state)
    assert isinstance(result, Result) and result.nodes == 0 and GAME.action_name(state, result.action) == "b2"
    advance(GAME, state, result.action)
    assert agent.search(state).nodes > 0  # out of the book
    assert str(agent) == "mcts:book=on,simulations=1"
    with pytest.raises(InputError, match="missing"):
        make_agent("alphabeta:book=missing.sqlite", GAME)


def test_rows_for_people(searched):
    found = rows(searched, GAME.parse_position("a1"))
    assert found[0]["move"] == "b2" and found[0]["value"] == 0.0 and len(found) == 8
