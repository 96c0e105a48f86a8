"""A search tree as SVG, as lectures draw it: triangles up for MAX and down for MIN, circles for chance, boxes for leaves
and, where there are more than two, for players; what was cut is grey and its edge struck through.

Every node is a group `n<index>`, every edge a group `e<index>`; their classes say how they look at a step, so that a
page can step on by changing classes and texts alone.
"""

import re
from html import escape

from selfplay.explain.boards import Boards
from selfplay.explain.layout import Layout, Place, arrange, edge_text
from selfplay.explain.steps import Look, Trace
from selfplay.explain.tree import CHANCE_NODE, LEAF, MAX, MIN, Node

MOST_DRAWN = 400  # nodes: more can't be read

STYLE = """
svg.tree { font-family: "Segoe UI", "DejaVu Sans", Verdana, sans-serif; background: #fff; }
.tree text { fill: #1d2433; }
.tree .row { font-size: 13px; font-weight: 600; letter-spacing: .04em; fill: #7a8398; }
.tree .shape { stroke: #1d2433; stroke-width: 1.4; fill: #fff; }
.tree .max .shape { fill: #d9e7fb; stroke: #2b62b8; }
.tree .min .shape { fill: #fbdcd8; stroke: #b3372f; }
.tree .chance .shape { fill: #dff1df; stroke: #2f7d46; }
.tree .player0 .shape { fill: #d9e7fb; stroke: #2b62b8; } .tree .player1 .shape { fill: #fbdcd8; stroke: #b3372f; }
.tree .player2 .shape { fill: #fdf0c8; stroke: #9a7415; } .tree .player3 .shape { fill: #eadcf6; stroke: #7442a8; }
.tree .leaf .shape { fill: #fff; stroke: #5b6478; }
.tree .value { font-size: 14px; font-weight: 600; text-anchor: middle; }
.tree .window { font-size: 11px; fill: #47506a; }
.tree .alpha { text-anchor: end; }
.tree .position { font-family: "DejaVu Sans Mono", Consolas, monospace; font-size: 8.5px; }
.tree .paper { fill: #fffdf4; stroke: #b9b49c; stroke-width: .8; }
.tree .unseen .shape, .tree .unseen .board { opacity: .45; }
.tree .unseen .value, .tree .unseen .window { visibility: hidden; }
.tree .absent { visibility: hidden; }
.tree .cut .shape { fill: #f1f2f4; stroke: #b4b9c4; stroke-dasharray: 4 3; }
.tree .cut .value { fill: #9aa1b0; } .tree .cut .board { opacity: .35; }
.tree .active .shape { stroke: #e08a00; stroke-width: 3.4; }
.tree .line { fill: none; stroke: #8b93a5; stroke-width: 1.3; }
.tree .best .line { stroke: #1d2433; stroke-width: 3; }
.tree .path .line { stroke: #e08a00; stroke-width: 3; }
.tree .edge.cut .line { stroke: #c3c8d2; stroke-dasharray: 5 4; }
.tree .slash { stroke: #b3372f; stroke-width: 2.6; visibility: hidden; }
.tree .edge.cut .slash { visibility: visible; }
.tree .move, .tree .note { font-size: 11px; paint-order: stroke; stroke: #fff; stroke-width: 4px; }
.tree .note { fill: #8a5200; } .tree .edge.cut .move { fill: #9aa1b0; }
"""

_SYMBOLS = ((r"\balpha\b", "α"), (r"\bbeta\b", "β"), ("<=", "≤"), (">=", "≥"), (r"\binf\b", "∞"))


def pretty(text: str) -> str:
    """ASCII as lectures write it: α, β, ≤, ≥, ∞, and a real minus sign before numbers."""
    for pattern, symbol in _SYMBOLS:
        text = re.sub(pattern, symbol, text)
    return re.sub(r"(?<![\w.])-(?=[\d∞])", "−", text)


def shape(node: Node, place: Place) -> str:
    """The outline around a node's value."""
    x, y, w, h = place.x, place.y, place.width / 2, place.height / 2
    if node.kind == MAX:
        return f'<path class="shape" d="M{x - w:g} {y + h:g}H{x + w:g}L{x:g} {y - h:g}z"/>'
    if node.kind == MIN:
        return f'<path class="shape" d="M{x - w:g} {y - h:g}H{x + w:g}L{x:g} {y + h:g}z"/>'
    if node.kind == CHANCE_NODE:
        return f'<ellipse class="shape" cx="{x:g}" cy="{y:g}" rx="{w:g}" ry="{h:g}"/>'
    corner = 0 if node.kind == LEAF else 8
    box = f'x="{x - w:g}" y="{y - h:g}" width="{2 * w:g}" height="{2 * h:g}"'
    return f'<rect class="shape" {box} rx="{corner}"/>'


def node_classes(node: Node, look: Look, active: bool) -> str:
    player = f" player{node.player % 4}" if node.kind == "player" else ""
    return f"node {node.kind}{player} {look.status}{' active' if active else ''}"


def draw_node(node: Node, place: Place, look: Look, boards: Boards, active: bool) -> str:
    low = {MAX: 15, MIN: -5}.get(node.kind, 5)
    reach = place.width / 2 + (-6 if node.kind in (MAX, MIN) else 5)
    board = boards.draw(node.state, *place.board) if place.board else ""
    alpha, beta = (f"{name} = {pretty(text)}" if text else "" for name, text in (("α", look.alpha), ("β", look.beta)))
    texts = f'<text class="value" x="{place.x:g}" y="{place.y + low:g}">{escape(pretty(look.value))}</text>'
    if place.side:
        texts += f'<text class="window alpha" x="{place.x - reach:g}" y="{place.y + 4:g}">{alpha}</text>'
        texts += f'<text class="window beta" x="{place.x + reach:g}" y="{place.y + 4:g}">{beta}</text>'
    name = escape(node.name)
    classes = node_classes(node, look, active)
    title = f"<title>{'EVAL after ' if node.is_estimate else ''}{name}</title>"
    return f'<g id="n{node.index}" class="{classes}" data-name="{name}">{title}{board}{shape(node, place)}{texts}</g>'


def draw_edge(node: Node, place: Place, look: Look) -> str:
    """The way from the parent, with the move, what is noted there, and the stroke of a cut."""
    x, y = place.label
    anchor = f'text-anchor="{place.label_anchor}"'
    a, b = place.slash
    slash = f'<path class="slash" d="M{a - 6:g} {b + 5:g}L{a + 6:g} {b - 5:g}"/>'
    move = f'<text class="move" x="{x:g}" y="{y - (5 if look.note else 0):g}" {anchor}>{escape(edge_text(node))}</text>'
    note = f'<text class="note" x="{x:g}" y="{y + 8:g}" {anchor}>{escape(look.note)}</text>'
    absent = " absent" if look.status == "absent" else ""
    line = f'<path class="line" d="{place.edge}"/>'
    return f'<g id="e{node.index}" class="edge {look.edge}{absent}">{line}{slash}{move}{note}</g>'


def draw_trunks(place: Place) -> list[str]:
    """The lines that columns of children hang on."""
    return [f'<path class="line" d="{path}"/>' for path in place.trunks.values()]


def svg(trace: Trace, steps: int | None = None, with_style: bool = True) -> str:
    """The drawing after so many steps (all, if nobody says)."""
    boards = Boards(trace.tree)
    layout: Layout = arrange(trace, boards)
    looks = trace.looks(steps)
    last = trace.steps[:steps][-1] if steps != 0 else None
    active = last.node.index if last and last.kind != "result" else -1
    parts = [f'<text class="row" x="8" y="{y + 5:g}">{escape(text)}</text>' for y, text in layout.rows]
    nodes = list(zip(trace.tree.nodes, layout.places, looks, strict=True))
    parts += [line for place in layout.places for line in draw_trunks(place)]
    parts += [draw_edge(node, place, look) for node, place, look in nodes[1:]]
    parts += [draw_node(node, place, look, boards, node.index == active) for node, place, look in nodes]
    size = f'viewBox="0 0 {layout.width:g} {layout.height:g}" width="{layout.width:g}" height="{layout.height:g}"'
    style = f"<style>{STYLE}</style>" if with_style else ""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="tree" {size} role="img">'
    return f"{head}{style}<defs>{boards.definitions()}</defs>\n" + "\n".join(parts) + "\n</svg>\n"
