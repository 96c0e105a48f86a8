"""Ratings of a run: all its evaluated checkpoints and the ladder, by maximum likelihood over all games so far.

Every evaluation adds games, also to what is known of former checkpoints, so the ratings of all are made anew. The
first agent of the ladder is the anchor: 0 Elo, whatever is learned.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from selfplay.ratings import Outcome, fit

_STEP = re.compile(r"step (\d+)")


class Rated(NamedTuple):
    """Elo above the anchor with its 95 % interval; the step where it is a checkpoint of the run."""

    agent: str
    step: int | None
    elo: float
    low: float
    high: float


def name_of(step: int) -> str:
    """How a checkpoint is called in `evaluations.jsonl`.

    >>> name_of(1200)
    'step 1200'
    """
    return f"step {step}"


def rate(evaluations: Sequence[dict[str, Any]]) -> list[Rated]:
    """From the lines of `evaluations.jsonl`, those that have `agents` and `outcomes`: the ladder, then the checkpoints.

    >>> line = {"agents": ["step 5", "random"], "outcomes": [[[0, 1], [1.0, -1.0], 3], [[0, 1], [-1.0, 1.0], 1]]}
    >>> [(rated.agent, rated.step, rated.elo > 0) for rated in rate([line])]
    [('random', None, False), ('step 5', 5, True)]
    """
    lines = [line for line in evaluations if line.get("agents") and line.get("outcomes")]
    names = list(dict.fromkeys(name for line in lines for name in line["agents"]))
    steps = {name: int(found[1]) for name in names if (found := _STEP.fullmatch(name))}
    names = [n for n in names if n not in steps] + sorted(steps, key=lambda name: steps[name])
    number = {name: index for index, name in enumerate(names)}
    outcomes = [
        Outcome(tuple(number[line["agents"][seat]] for seat in seats), tuple(points))
        for line in lines
        for seats, points, times in line["outcomes"]
        for _ in range(times)
    ]
    if not outcomes:
        return []
    table = fit(outcomes, len(names)).agents
    return [Rated(name, steps.get(name), *rating) for name, rating in zip(names, table, strict=True)]
