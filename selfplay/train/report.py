"""A training run afterwards: one self-contained HTML page (`selfplay report`), and a list of runs (`selfplay runs`).

Both read what the run wrote and change nothing; a run that is torn, unfinished or foreign says so in one row or one
sentence. Figures come from `metrics.jsonl` and `evaluations.jsonl`; what the run says of itself (`command`,
`parameters`, `flops`, `finished`, `minutes`, `steps`, `games`) from `summary.json` or its newest saved state.
"""

import json
import math
import os
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from envs.errors import InputError
from selfplay.train.charts import Line, chart
from selfplay.train.elo import Rated, rate
from selfplay.train.evaluations import points_text
from selfplay.train.runs import Run, write_atomic
from selfplay.train.watch import flat

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2433; --soft: #5b6478; --page: #f4f5f8; --card: #fff; --line: #d9dde5;
  --c0: #2b62b8; --c1: #b3372f; --c2: #2f7d46; --c3: #9a7415; --c4: #7442a8; --c5: #0f7f8c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ee; --soft: #9aa3b5; --page: #14171d; --card: #1d2129;
  --line: #363c48; --c0: #7aa9f0; --c1: #f08a80; --c2: #74c78d; --c3: #dcb44e; --c4: #bd94ec; --c5: #5cc6d2; } }
body { margin: 0; color: var(--ink); background: var(--page);
  font: 15px/1.5 "Segoe UI", "DejaVu Sans", Verdana, sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 18px 20px 40px; }
h1 { font-size: 22px; margin: 0 0 2px; } h2 { font-size: 17px; margin: 22px 0 8px; }
.about, .none { color: var(--soft); margin: 0 0 10px; overflow-wrap: anywhere; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 340px), 1fr)); gap: 12px; }
figure, .card { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 10px 12px; }
figcaption { font-weight: 600; font-size: 14px; overflow-wrap: anywhere; }
figcaption small { font-weight: 400; color: var(--soft); }
svg { display: block; width: 100%; height: auto; } svg text { font-size: 11px; fill: var(--soft); }
svg .axis { stroke: var(--line); stroke-width: 1; } svg .raw { fill: none; stroke-width: 1; opacity: .35; }
svg .curve { fill: none; stroke-width: 1.8; stroke-linejoin: round; } svg .band { opacity: .15; stroke: none; }
.key { font-size: 12.5px; color: var(--soft); } .key i { display: inline-block; width: 14px; height: 3px;
  margin: 0 5px 3px 10px; vertical-align: middle; }
table { border-collapse: collapse; } th, td { padding: 3px 14px 3px 0; text-align: right; }
th { font-weight: 600; border-bottom: 1px solid var(--line); } th:first-child, td:first-child { text-align: left; }
td, td code { white-space: nowrap; }
.scroll { overflow-x: auto; } code { font: 13.5px "DejaVu Sans Mono", Consolas, monospace; overflow-wrap: anywhere; }
.config { columns: 300px; } .config div { break-inside: avoid; overflow-wrap: anywhere; }
"""


# --- reading -----------------------------------------------------------------------------------------


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSONL file that have a step; none where there is no file. Torn lines are left out."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    found = []
    for line in text.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and _number(entry.get("step")) is not None:
            found.append(entry)
    return found


def _number(value: Any) -> float | None:
    """A finite number, or None."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if plain and math.isfinite(value) else None


def curves(entries: Iterable[dict[str, Any]]) -> dict[str, Line]:
    """The metrics by tag, in the order in which they first appear."""
    found: dict[str, Line] = {}
    for entry in entries:
        for tag, value in entry.items():
            number = _number(value)
            if tag not in ("step", "time") and number is not None:
                line = found.setdefault(tag, Line(tag, [], []))
                line.steps.append(float(entry["step"]))
                line.values.append(number)
    return found


def read_evaluations(run_path: Path) -> list[dict[str, Any]]:
    """The complete lines of `evaluations.jsonl`."""
    return [
        entry
        for entry in read_lines(run_path / "evaluations.jsonl")
        if isinstance(entry.get("opponent"), str) and _number(entry.get("score")) is not None
    ]


def last_evaluations(evaluations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The newest match against each opponent, in the order in which they first appeared."""
    return list({entry["opponent"]: entry for entry in evaluations}.values())


def summary_of(run_path: Path) -> dict[str, Any]:
    """What the run says of itself: its newest saved state's info, over it `summary.json`; empty where neither is."""
    states = sorted((run_path / "state").glob("[0-9]*/info.json"))
    found: dict[str, Any] = {}
    for path in [*states[-1:], run_path / "summary.json"]:
        try:
            entry = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        found |= entry if isinstance(entry, dict) else {}
    return found


# --- the list ----------------------------------------------------------------------------------------


def list_runs(folder: Path) -> list[dict[str, Any]]:
    """A row per run in the folder, oldest first: `name`, `path`, `game`, `method`, `started`, `minutes`, `steps`,
    `games`, `scores` (opponent -> score of the last match), `status`: finished, running, resumable, not saved yet, or
    why it can't be read. What is not known is None."""
    if not folder.is_dir():
        return []
    rows = [_row(path) for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
    return sorted(rows, key=lambda row: (row["started"] or "", row["name"]))


def _row(path: Path) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(("game", "method", "started", "minutes", "steps", "games"))
    row = {"name": path.name, "path": str(path), **row, "scores": {}}
    try:
        head = Run(path).head()
    except (InputError, OSError) as error:
        return {**row, "status": f"unreadable: {error}"}
    row |= {key: str(head[key]) for key in ("game", "method", "started") if key in head}
    summary = summary_of(path)
    last = _last_line(path / "metrics.jsonl")
    row["minutes"] = _number(summary.get("minutes"))
    for key, value in (("steps", last.get("step")), ("games", None)):
        number = _number(summary.get(key, summary.get(key.removesuffix("s"), value)))
        row[key] = None if number is None else int(number)
    row["scores"] = {entry["opponent"]: entry["score"] for entry in last_evaluations(read_evaluations(path))}
    row["status"] = _status(path, summary)
    return row


def _status(path: Path, summary: dict[str, Any]) -> str:
    if _is_locked(path / ".lock"):
        return "running"
    if summary.get("finished") is True:
        return "finished"
    return "resumable" if any((path / "state").glob("[0-9]*/info.json")) else "not saved yet"


def _is_locked(path: Path) -> bool:
    """Whether a process holds the run. Asks Linux's list: trying the lock could refuse a trainer that starts now."""
    try:
        inode = path.stat().st_ino
        with open("/proc/locks") as file:
            return any(line.split()[1] == "FLOCK" and f":{inode} " in line for line in file)
    except (OSError, IndexError):
        return False


def _last_line(path: Path) -> dict[str, Any]:
    """The last complete object of a JSONL file, without reading the whole of it."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 65_536))
            lines = file.read().decode("utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    for line in reversed(lines):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            return entry
    return {}


# --- the page ----------------------------------------------------------------------------------------


def write_report(run_path: Path, out: Path | None = None) -> Path:
    """Writes the page, `report.html` in the run if nobody says otherwise, and returns where it is."""
    try:
        head = Run(run_path).head()
    except OSError as error:
        raise InputError(f"run {str(run_path)!r} can't be read: {error.strerror}") from None
    target = out or run_path / "report.html"
    write_atomic(target, page(run_path, head).encode())
    return target


def page(run_path: Path, head: dict[str, Any]) -> str:
    """The page as text."""
    summary, evaluations = summary_of(run_path), read_evaluations(run_path)
    rated = rate(read_lines(run_path / "evaluations.jsonl"))
    lines = curves(read_lines(run_path / "metrics.jsonl"))
    groups: dict[str, list[Line]] = {}
    for tag, line in lines.items():
        group, _, name = tag.rpartition("/")
        # The same with intervals is drawn from the evaluations.
        if (group != "evaluation" or not evaluations) and not (tag.startswith("elo/anchored") and rated):
            groups.setdefault(group or "run", []).append(line._replace(name=name))
    title = f"{head.get('game', run_path.name)}: a training run"
    sections = [_final_table(evaluations), _elo_table(rated), _evaluation_charts(evaluations, rated)]
    for group, members in groups.items():
        charts = "\n".join(chart(line.name, [line]) for line in members)
        sections.append(f'<h2>{escape(group.replace("_", " "))}</h2>\n<div class="charts">\n{charts}\n</div>')
    if not groups:
        sections.append('<p class="none">No curves were logged yet.</p>')
    settings = "\n".join(f"<div><code>{escape(f'{k} = {v}')}</code></div>" for k, v in flat(head).items())
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
{_about(run_path, head, summary)}
{chr(10).join(filter(None, sections))}
<h2>configuration</h2>
<div class="card config">
{settings}
</div>
</main>
</body>
</html>
"""


def _about(run_path: Path, head: dict[str, Any], summary: dict[str, Any]) -> str:
    facts = [str(run_path.resolve().name), f"method {head.get('method', '?')}", f"started {head.get('started', '?')}"]
    for key, label in (
        ("minutes", "minutes"),
        ("steps", "steps"),
        ("games", "games"),
        ("parameters", "parameters of the network"),
        ("flops", "FLOPs an evaluation"),
    ):
        number = _number(summary.get(key))
        if number is not None:
            facts.append(f"{number:,.0f} {label}")
    # The trainer writes the page at its end, when it still holds the run.
    facts.append("finished" if summary.get("finished") is True else _status(run_path, summary))
    command = summary.get("command", head.get("command"))
    said = f'\n<p class="about">Command: <code>{escape(str(command))}</code></p>' if command else ""
    return f'<p class="about">{escape(" · ".join(facts))}</p>{said}'


def _final_table(evaluations: list[dict[str, Any]]) -> str:
    if not evaluations:
        return '<h2>final evaluation</h2>\n<p class="none">Nothing was evaluated yet.</p>'
    last = last_evaluations(evaluations)
    pointed = any(_has_points(entry) for entry in last)
    rows = []
    for entry in last:
        counts = [str(entry.get(key, "")) for key in ("games", "wins", "draws", "losses")]
        cells = [*counts, f"{entry['score']:.1%}", _percents(_interval(entry)), f"{entry['step']:,.0f}"]
        if pointed:
            cells += [_points(entry, 0), _points(entry, 1)]
        opponent = {"truth": "exact truth", "former": "the evaluation before"}.get(entry["opponent"], entry["opponent"])
        rows.append([opponent, *cells])
    names = ["opponent", "games", "wins", "draws", "losses", "score", "interval", "at step"]
    return _table("final evaluation", names + ["points", "the other's"] * pointed, rows) + _meaning(last)


def _meaning(last: list[dict[str, Any]]) -> str:
    """What the score is, where it is not what everybody expects."""
    players = max((entry.get("players", 2) for entry in last), default=2)
    texts = [
        f"The score is the share of the wins against {players - 1} copies of the opponent; equality: {1 / players:.1%}."
    ]
    if players < 3:
        alone = any(entry.get("players") == 1 for entry in last)
        texts = ["The score is the share of seeds on which the agent makes more points than the other."] * alone
    if any(entry["opponent"] == "truth" for entry in last):
        texts.append("Against exact truth, games are positions and the score is the share where the value is kept.")
    return f'<p class="about">{escape(" ".join(texts))}</p>' if texts else ""


def _has_points(entry: dict[str, Any]) -> bool:
    """Whether points say more than wins do."""
    points = entry.get("points")
    if not isinstance(points, list) or len(points) != 2:
        return False
    return entry.get("players") == 1 or any(abs(p) not in (0, 1) for _, game, _ in entry["outcomes"] for p in game)


def _points(entry: dict[str, Any], agent: int) -> str:
    if not _has_points(entry):
        return ""
    return points_text(entry["points"][agent], entry["points_intervals"][agent])


def _elo_table(rated: list[Rated]) -> str:
    """The ladder and the newest checkpoint; former ones are in the chart."""
    shown = [r for r in rated if r.step is None] + [r for r in rated if r.step is not None][-1:]
    rows = []
    for one in sorted(shown, key=lambda r: -r.elo):
        bounds = "anchor" if one.low == one.high else f"{one.low:+,.0f} to {one.high:+,.0f}"
        rows.append([one.agent, f"{one.elo:+,.0f}", bounds])
    return _table("rating by all games of the run", ["agent", "Elo", "95 %"], rows) if rows else ""


def _table(title: str, names: list[str], rows: list[list[str]]) -> str:
    header = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "\n".join(
        f"<tr><td><code>{escape(first)}</code></td>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for first, *cells in rows
    )
    return f"""<h2>{escape(title)}</h2>
<div class="card scroll"><table>
<tr>{header}</tr>
{body}
</table></div>"""


def _percents(bounds: tuple[float | None, float | None]) -> str:
    low, high = bounds
    return f"{low:.1%} to {high:.1%}" if low is not None and high is not None else ""


def _interval(entry: dict[str, Any]) -> tuple[float | None, float | None]:
    interval = entry.get("interval")
    if isinstance(interval, list) and len(interval) == 2:
        return _number(interval[0]), _number(interval[1])
    return None, None


def _evaluation_charts(evaluations: list[dict[str, Any]], rated: list[Rated]) -> str:
    """The rating, and the score against every opponent, over the steps."""
    lines = []
    for opponent in dict.fromkeys(entry["opponent"] for entry in evaluations):
        entries = sorted((e for e in evaluations if e["opponent"] == opponent), key=lambda entry: entry["step"])
        bounds = [_interval(entry) for entry in entries]
        low, high = [b[0] for b in bounds], [b[1] for b in bounds]
        known = all(bound is not None for bound in low + high)
        steps, scores = [float(e["step"]) for e in entries], [float(e["score"]) for e in entries]
        lines.append(Line(opponent, steps, scores, low if known else None, high if known else None))  # type: ignore[arg-type]
    found = []
    mine = [one for one in rated if one.step is not None]
    if len(mine) > 1:
        bands = [one.low for one in mine], [one.high for one in mine]
        anchor = rated[0].agent if rated[0].step is None else "the first checkpoint"
        steps = [float(one.step or 0) for one in mine]
        found.append(chart(f"Elo, {anchor} = 0", [Line("Elo", steps, [one.elo for one in mine], *bands)]))
    if any(len(line.steps) > 1 for line in lines):
        found.append(chart("score by opponent", lines, (0.0, 1.0)))
    return f'<div class="charts" style="margin-top:12px">{"".join(found)}</div>' if found else ""
