"""One HTML page that steps through a search: everything is in the file, nothing comes from a network."""

import json
from html import escape
from typing import Any

from selfplay.explain.draw import STYLE, node_classes, pretty, svg
from selfplay.explain.search import ALGORITHMS
from selfplay.explain.steps import Look, Trace

_PAGE_STYLE = """
:root { color-scheme: light; }
body { margin: 0; color: #1d2433; background: #f4f5f8; font: 16px/1.5 "Segoe UI", "DejaVu Sans", Verdana, sans-serif; }
main { max-width: 1500px; margin: 0 auto; padding: 18px 24px 40px; }
h1 { font-size: 22px; margin: 0 0 2px; } .about { margin: 0 0 14px; color: #5b6478; overflow-wrap: anywhere; }
.panel { background: #fff; border: 1px solid #d9dde5; border-radius: 10px; padding: 14px 16px; margin-bottom: 14px; }
.controls { display: flex; gap: 8px; align-items: center; flex-wrap: wrap; }
button { font: inherit; padding: 5px 14px; border: 1px solid #b9c0cf; border-radius: 7px; background: #fff;
  cursor: pointer; }
button:hover:enabled { background: #eef3fb; } button:disabled { opacity: .4; cursor: default; }
button:focus-visible, input:focus-visible, li:focus-visible { outline: 3px solid #e08a00; outline-offset: 2px; }
input[type=range] { flex: 1 1 200px; min-width: 120px; } #count { min-width: 8em; text-align: right; color: #5b6478; }
#sentence { min-height: 3.2em; margin: 12px 0 0; font-size: 18px; overflow-wrap: anywhere; }
#drawing { overflow-x: auto; text-align: center; } #drawing svg { max-width: none; height: auto; }
.legend { color: #5b6478; font-size: 14px; margin: 8px 0 0; }
ol { margin: 6px 0 0; padding-left: 3em; max-height: 22em; overflow-y: auto; font-size: 14.5px; }
ol li { cursor: pointer; padding: 1px 6px; border-radius: 5px; overflow-wrap: anywhere; }
ol li.now { background: #fdf0d5; }
summary { cursor: pointer; font-weight: 600; }
"""

_SCRIPT = """
const data = JSON.parse(document.getElementById("trace").textContent);
const byId = id => document.getElementById(id);
const nodes = data.nodes.map((kind, i) => {
  const group = byId("n" + i), edge = byId("e" + i);
  const find = (parent, name) => parent ? parent.querySelector("." + name) : null;
  return {kind, group, edge, value: find(group, "value"), alpha: find(group, "alpha"), beta: find(group, "beta"),
          note: find(edge, "note"), move: find(edge, "move")};
});
const slider = byId("slider"), items = [...document.querySelectorAll("#steps li")];
let step = 0;
nodes.forEach(node => { if (node.move) node.top = +node.move.getAttribute("y") + (node.note.textContent ? 5 : 0); });

function show(number) {
  step = Math.max(0, Math.min(data.steps.length, number));
  const looks = data.nodes.map(() => ({...data.first}));
  for (let i = 0; i < step; i++)
    for (const [index, change] of Object.entries(data.steps[i].changes)) Object.assign(looks[index], change);
  const now = step > 0 ? data.steps[step - 1] : null;
  const active = now && now.kind !== "result" ? now.node : -1;
  nodes.forEach((node, i) => {
    const look = looks[i];
    node.group.setAttribute("class", `node ${node.kind} ${look.status}${i === active ? " active" : ""}`);
    node.value.textContent = look.value;
    if (node.alpha) {
      node.alpha.textContent = look.alpha ? "α = " + look.alpha : "";
      node.beta.textContent = look.beta ? "β = " + look.beta : "";
    }
    if (node.edge) {
      node.edge.setAttribute("class", `edge ${look.edge}${look.status === "absent" ? " absent" : ""}`);
      node.note.textContent = look.note;
      node.move.setAttribute("y", node.top - (look.note ? 5 : 0));
    }
  });
  byId("sentence").textContent = now ? now.text : data.before;
  byId("count").textContent = `step ${step} of ${data.steps.length}`;
  slider.value = step;
  byId("first").disabled = byId("back").disabled = step === 0;
  byId("next").disabled = byId("last").disabled = step === data.steps.length;
  items.forEach((item, i) => item.classList.toggle("now", i === step - 1));
  const list = byId("steps");
  if (step > 0 && list.offsetParent) list.scrollTop = items[step - 1].offsetTop - list.offsetTop - 80;
}

const drawing = document.querySelector("#drawing svg"), natural = +drawing.getAttribute("width");
let fitted = true;
function resize() {
  const room = byId("drawing").clientWidth, share = Math.min(1.7, room / natural);
  drawing.style.width = (fitted ? natural * share : natural * Math.max(1, share)) + "px";
  byId("zoom").hidden = natural <= room;
  byId("zoom").textContent = fitted ? "full size" : "fit to the page";
}
byId("zoom").onclick = () => { fitted = !fitted; resize(); };
addEventListener("resize", resize);
byId("first").onclick = () => show(0);
byId("back").onclick = () => show(step - 1);
byId("next").onclick = () => show(step + 1);
byId("last").onclick = () => show(data.steps.length);
slider.oninput = () => show(+slider.value);
items.forEach((item, i) => { item.onclick = () => show(i + 1); });
addEventListener("keydown", event => {
  const target = {ArrowRight: step + 1, ArrowLeft: step - 1, Home: 0, End: data.steps.length}[event.key];
  if (target === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  show(target);
});
resize();
show(/^#\\d+$/.test(location.hash) ? +location.hash.slice(1) : data.at);
"""

_LEGENDS = {
    "alphabeta": "Inside: v, the value so far; ≤ or ≥ where a cut left only a bound. Beside: α, what MAX is sure of, "
    "and β, what MIN is sure of. Struck through and grey: cut, never looked at. Thick: the best child so far.",
    "exhaustive": "Inside: v, the value so far. Thick: the best child so far.",
    "maxn": "Inside: the value of every player, the first player's first. Thick: the best child so far.",
    "mcts": "Inside: w/n, the rewards of the player who chose the node (at the root: of the player to move) and the "
    "visits. On the edges below a move's name: UCB1. Orange: the path of this simulation.",
}
SHAPES = "△ MAX, ▽ MIN, ○ chance, □ leaf. "


def legend(trace: Trace) -> str:
    """How to read the drawing."""
    kind = {"alphabeta": "alphabeta", "star1": "alphabeta", "paranoid": "alphabeta"}.get(trace.algorithm)
    kind = kind or (trace.algorithm if trace.algorithm in _LEGENDS else "exhaustive")
    boxes = any(node.kind == "player" for node in trace.tree.nodes)
    return ("□ leaf, rounded boxes in a player's colour, ○ chance. " if boxes else SHAPES) + _LEGENDS[kind]


def page(trace: Trace, about: str, at: int = 0) -> str:
    """The page; `about` says which game and position, `at` the step that it opens with."""
    title = f"{ALGORITHMS[trace.algorithm]} step by step"
    title = (title[0].upper() + title[1:]).replace("^n", "ⁿ")
    data = json.dumps({"at": at, **_data(trace)}, separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/")
    items = "\n".join(f"<li>{escape(pretty(step.text))}</li>" for step in trace.steps)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_PAGE_STYLE}{STYLE}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
<p class="about">{escape(about)}</p>
<div class="panel">
<div class="controls">
<button id="first" title="Home">|◀ first</button>
<button id="back" title="left arrow">◀ back</button>
<button id="next" title="right arrow">next ▶</button>
<button id="last" title="End">last ▶|</button>
<input type="range" id="slider" min="0" max="{len(trace.steps)}" value="{len(trace.steps)}" aria-label="step">
<span id="count">step {len(trace.steps)} of {len(trace.steps)}</span>
</div>
<p id="sentence" aria-live="polite">{escape(pretty(trace.steps[-1].text))}</p>
</div>
<div class="panel">
<div id="drawing">{svg(trace, with_style=False)}</div>
<p class="legend">{escape(legend(trace))} <button id="zoom" hidden>full size</button></p>
</div>
<div class="panel">
<details open><summary>All steps</summary>
<ol id="steps">
{items}
</ol>
</details>
</div>
</main>
<script type="application/json" id="trace">{data}</script>
<script>{_SCRIPT}</script>
</body>
</html>
"""


def _data(trace: Trace) -> dict[str, Any]:
    """What the script needs, with all texts as they are drawn."""
    first = vars(trace.first_look)
    kinds = [node_classes(node, Look(status=""), False).removeprefix("node ").strip() for node in trace.tree.nodes]
    steps = [
        {
            "kind": step.kind,
            "node": step.node.index,
            "text": pretty(step.text),
            "changes": {
                index: {name: pretty(text) for name, text in change.items()} for index, change in step.changes.items()
            },
        }
        for step in trace.steps
    ]
    before = "Before the first step: press next, or the right arrow."
    return {"nodes": kinds, "first": first, "before": before, "steps": steps}
