"""How far a weight moves: temporal coherence or Adam, for each weight on its own.

Both keep two numbers per weight. Temporal coherence (Beal and Smith 1999; Jaskowski 2017 for 2048): the rate is
|sum of the errors| / sum of |errors|, so that a weight whose errors alternate in sign has learned what it can. Adam
(Kingma and Ba 2015) keeps running means of gradient and squared gradient, here of the visits of each weight only, since
of a million weights a position touches fifty.
"""

from typing import Any

import numpy as np

from envs.compiled import njit
from envs.errors import InputError

TC, ADAM = 0, 1
STEPS = {"tc": TC, "adam": ADAM}
_KEEP, _KEEP_SQUARE, _TINY = 0.9, 0.999, 1e-8


def step_kind(name: str) -> int:
    """The number of a step rule."""
    if name not in STEPS:
        raise InputError(f"step {name!r} is unknown; steps: {', '.join(STEPS)}")
    return STEPS[name]


@njit
def move_weight(weights: Any, first: Any, second: Any, i: Any, push: Any, rate: Any, kind: Any) -> None:
    """Moves weights[i] along `push` (error times gradient); rate is the largest step per unit of push."""
    if kind == TC:
        share = 1.0
        if second[i] > 0.0:
            share = abs(np.float64(first[i])) / np.float64(second[i])
        weights[i] += np.float32(rate * share * push)
        first[i] += np.float32(push)
        second[i] += np.float32(abs(push))
    else:
        mean = _KEEP * np.float64(first[i]) + (1.0 - _KEEP) * push
        square = _KEEP_SQUARE * np.float64(second[i]) + (1.0 - _KEEP_SQUARE) * push * push
        first[i] = np.float32(mean)
        second[i] = np.float32(square)
        weights[i] += np.float32(rate * mean / (np.sqrt(square) + _TINY))
