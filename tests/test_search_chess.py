"""Alpha-beta on chess: published mates, and the Bratko-Kopec test."""

import csv
import re
from pathlib import Path

import pytest

from envs.chess import Chess
from models.evaluation import make_evaluation
from selfplay.agents import make_agent
from selfplay.search.deepening import AlphaBeta
from selfplay.search.result import Limits
from selfplay.search.wins import plies_to_end

DATA = Path(__file__).parent / "data" / "chess"
GAME = Chess()


def test_mates_in_one_and_two_are_found_at_their_depth():
    searchers = {
        moves: AlphaBeta(GAME, make_evaluation("linear", GAME), Limits(depth=2 * moves - 1), megabytes=4)
        for moves in (1, 2)
    }
    with (DATA / "mates_in_1_and_2.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 200
    for row in rows:
        moves = int(row["mate_in"])
        searcher = searchers[moves]
        searcher.reset()
        result = searcher.search(GAME.parse_position(row["fen"]))
        assert result.value == 1.0 and result.proven, row
        assert plies_to_end(GAME, float(searcher.work.root_value[0])) == 2 * moves - 1, row
        assert len(result.line) == 2 * moves - 1, row


@pytest.mark.slow
@pytest.mark.parametrize(("switches", "least"), [("", 11), (",null=on,reductions=on,extend=on", 11)])
def test_bratko_kopec(switches, least):
    agent = make_agent(f"alphabeta:nodes=1000000{switches}", GAME)
    solved = 0
    for line in (DATA / "bratko_kopec_24.epd").read_text().splitlines():
        state = GAME.parse_position(" ".join(line.split()[:4]))
        best = re.search(r"bm ([^;]+);", line)
        agent.reset()
        chosen = GAME.san(state, agent.search(state).action).rstrip("+#")
        solved += chosen in [move.rstrip("+#") for move in best.group(1).split()]
    assert solved >= least
