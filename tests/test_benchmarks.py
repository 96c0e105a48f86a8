"""The benchmarks run: every peer can be measured, and the rows have the keys that never change."""

import pytest

from benchmarks import JOBS
from benchmarks.rules import OPEN_SPIEL, _open_spiel
from envs.registry import GAMES

KEYS = {"job", "game", "unit", "ours", "peer", "theirs", "ratio"}


@pytest.mark.parametrize("name", sorted(OPEN_SPIEL))
def test_every_peer_plays(name):
    assert name in GAMES
    games, plies = _open_spiel(OPEN_SPIEL[name]).run()
    assert games > 0 and plies > games


def test_rows_of_the_rules():
    rows = JOBS["rules"](["tic_tac_toe", "twenty_forty_eight"], 0.01, lambda text: None)
    assert all(set(row) >= KEYS for row in rows)
    measured = {(row["game"], row["unit"]): row for row in rows}
    with_peer, alone = measured["tic_tac_toe", "plies/s"], measured["twenty_forty_eight", "plies/s"]
    assert with_peer["ratio"] == pytest.approx(with_peer["ours"] / with_peer["theirs"])
    assert alone["peer"] is None and alone["ratio"] is None and alone["ours"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(("job", "game"), [("search", "tic_tac_toe"), ("search", "pig"), ("mcts", "tic_tac_toe")])
def test_rows_of_the_searches(job, game):
    rows = JOBS[job]([game], 0.02, lambda text: None)
    assert rows and all(set(row) >= KEYS for row in rows)
