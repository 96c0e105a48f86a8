"""Curves as SVG, for the page about a run."""

import itertools
import math
from html import escape
from typing import NamedTuple

MOST_POINTS = 400  # of a curve: more can't be seen
_WIDTH, _HEIGHT = 380, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 10, 24
_COLOURS = 6  # of the page's style, for the lines of one chart


class Line(NamedTuple):
    """A curve of a chart: steps ascending, and a band around it where there is one."""

    name: str
    steps: list[float]
    values: list[float]
    low: list[float] | None = None
    high: list[float] | None = None


def chart(name: str, lines: list[Line], span: tuple[float, float] | None = None) -> str:
    """A figure with its curves over the steps; many points are drawn faint, with their moving mean over them."""
    thin = [thinned(line) for line in lines]
    values = [v for line in thin for v in [*line.values, *(line.low or []), *(line.high or [])]]
    low, high = span or (min(values), max(values))
    if low == high:
        low, high = low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2
    first, last = min(line.steps[0] for line in thin), max(line.steps[-1] for line in thin)

    def x(step: float) -> str:
        share = (step - first) / (last - first) if last > first else 0.5
        return f"{_LEFT + share * (_WIDTH - _LEFT - _RIGHT):.1f}"

    def y(value: float) -> str:
        return f"{_TOP + (high - value) / (high - low) * (_HEIGHT - _TOP - _BOTTOM):.1f}"

    parts = []
    for tick in ticks(low, high):
        parts.append(f'<path class="axis" d="M{_LEFT} {y(tick)}H{_WIDTH - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{float(y(tick)) + 4:.1f}" text-anchor="end">{tick:.4g}</text>')
    base = _HEIGHT - 7
    parts.append(f'<text x="{_LEFT}" y="{base}">{first:,.0f}</text>')
    parts.append(f'<text x="{_WIDTH - _RIGHT}" y="{base}" text-anchor="end">step {last:,.0f}</text>')
    for index, line in enumerate(thin):
        colour = f"var(--c{index % _COLOURS})"
        if line.low and line.high:
            there = [f"{x(s)} {y(v)}" for s, v in zip(line.steps, line.high, strict=True)]
            back = [f"{x(s)} {y(v)}" for s, v in zip(line.steps, line.low, strict=True)]
            parts.append(f'<path class="band" fill="{colour}" d="M{"L".join(there + back[::-1])}z"/>')
        smooth = moving_mean(line.values)
        for kind, drawn in (("raw", line.values), ("curve", smooth)) if smooth else (("curve", line.values),):
            path = "L".join(f"{x(s)} {y(v)}" for s, v in zip(line.steps, drawn, strict=True))
            if len(drawn) == 1:
                parts.append(f'<circle cx="{x(line.steps[0])}" cy="{y(drawn[0])}" r="3" fill="{colour}"/>')
            else:
                parts.append(f'<path class="{kind}" stroke="{colour}" d="M{path}"/>')
    key, note = "", f" <small>last {lines[0].values[-1]:.4g}</small>"
    if len(lines) > 1:
        names = [f'<i style="background:var(--c{i % _COLOURS})"></i>{escape(x.name)}' for i, x in enumerate(lines)]
        key, note = f'<div class="key">{" ".join(names)}</div>', ""
    label = escape(name.replace("_", " "))
    box = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}"'
    return f"<figure><figcaption>{label}{note}</figcaption><svg {box}>{''.join(parts)}</svg>{key}</figure>"


def thinned(line: Line) -> Line:
    """At most `MOST_POINTS` points, each the mean of its neighbours; bands only come with few."""
    count = len(line.steps)
    if count <= MOST_POINTS:
        return line
    edges = [count * i // MOST_POINTS for i in range(MOST_POINTS + 1)]
    pieces = list(itertools.pairwise(edges))
    values = [sum(line.values[a:b]) / (b - a) for a, b in pieces]
    return Line(line.name, [line.steps[b - 1] for _, b in pieces], values)


def moving_mean(values: list[float]) -> list[float] | None:
    """The mean over a window of a twentieth of the curve to both sides; None for a curve of few points.

    >>> moving_mean([1.0, 2.0])
    """
    if len(values) < 60:
        return None
    reach = len(values) // 40
    windows = (values[max(0, i - reach) : i + reach + 1] for i in range(len(values)))
    return [sum(window) / len(window) for window in windows]


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round numbers between the two.

    >>> ticks(0.0, 1.0), ticks(3.1, 17.0)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [5.0, 10.0, 15.0])
    """
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= 0.8 * rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]
