"""What `selfplay explain` draws, writes and prints."""

import json
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from envs.errors import InputError
from envs.game_tree import GameTree
from envs.registry import GAMES, make
from selfplay.cli import app
from selfplay.explain.draw import pretty, svg
from selfplay.explain.page import page
from selfplay.explain.search import Options, explain

DOCS = Path(__file__).resolve().parents[1] / "docs"
SVG = "{http://www.w3.org/2000/svg}"
SCALE = [[[0.9, [2, 2]], [0.1, [3, 3]]], [[0.9, [1, 1]], [0.1, [4, 4]]]]
THREE = [[[[1, 2, 6], [4, 2, 3]], [[6, 1, 2], [7, 4, 1]]], [[[5, 1, 1], [1, 5, 2]], [[7, 7, 1], [5, 4, 5]]]]
SHOWN = {
    "alphabeta": (GameTree(), Options("alphabeta"), None),
    "expectiminimax": (GameTree(SCALE, levels="max-chance-min"), Options("expectiminimax"), None),
    "star1": (GameTree(SCALE, levels="max-chance-min"), Options("star1"), None),
    "maxn": (GameTree(THREE, players=3), Options("maxn"), None),
    "tic_tac_toe": (make("tic_tac_toe"), Options(depth=2), "b2"),
    "mcts": (make("tic_tac_toe"), Options("mcts", simulations=30), "a1 b2 c3"),
    "nim": (make("nim_cubes"), Options("minimax"), None),
    "odd names": (
        GameTree('root = "a&b"\n[nodes."a&b"]\nmoves = {"<i>" = 1, "</script>" = 2}', players=2),
        Options("alphabeta"),
        None,
    ),
}


@pytest.fixture(scope="module", params=SHOWN)
def trace(request):
    game, options, position = SHOWN[request.param]
    return explain(game, options, position)


def elements(root, kind):
    return {e.get("id"): e for e in root.iter(f"{SVG}g") if e.get("id", "").startswith(kind)}


def test_svg_is_xml_and_holds_every_node(trace):
    for steps in (0, len(trace.steps) // 2, None):
        root = ElementTree.fromstring(svg(trace, steps))
        nodes, edges = elements(root, "n"), elements(root, "e")
        assert len(edges) == len(trace.tree.nodes) - 1
        for node, look in zip(trace.tree.nodes, trace.looks(steps), strict=True):
            drawn = nodes[f"n{node.index}"]
            assert drawn.get("data-name") == node.name
            assert {node.kind, look.status} <= set(drawn.get("class").split())
            value = next(t for t in drawn.iter(f"{SVG}text") if t.get("class") == "value")
            assert (value.text or "") == pretty(look.value)
        assert len(nodes) == len(trace.tree.nodes)


def test_shapes_are_those_of_the_lectures(trace):
    nodes = elements(ElementTree.fromstring(svg(trace)), "n")
    for node in trace.tree.nodes:
        shape = next(e for e in nodes[f"n{node.index}"].iter() if e.get("class") == "shape")
        kind = shape.tag.removeprefix(SVG)
        assert kind == {"max": "path", "min": "path", "chance": "ellipse", "leaf": "rect", "player": "rect"}[node.kind]
        if kind == "path":  # two corners at one height, the third above them for MAX and below for MIN
            _, base, _, tip = map(float, re.fullmatch(r"M(\S+) (\S+)H\S+L(\S+) (\S+)z", shape.get("d")).groups())
            assert (tip < base) == (node.kind == "max")


def boxes(trace):
    """Every shape's rectangle: left, top, right, bottom."""
    from selfplay.explain.boards import Boards
    from selfplay.explain.layout import arrange

    layout = arrange(trace, Boards(trace.tree))
    found = [(p.x - p.width / 2, p.y - p.height / 2, p.x + p.width / 2, p.y + p.height / 2) for p in layout.places]
    return layout, found


def test_nothing_overlaps_and_everything_is_on_the_picture(trace):
    layout, found = boxes(trace)
    for i, a in enumerate(found):
        assert a[0] >= 0 and a[1] >= 0 and a[2] <= layout.width and a[3] <= layout.height
        for b in found[:i]:
            assert a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3]


def test_cut_edges_are_struck_through():
    root = ElementTree.fromstring(svg(explain(GameTree(), Options("alphabeta"))))
    struck = [e.get("id") for e in elements(root, "e").values() if "cut" in e.get("class").split()]
    trace = explain(GameTree(), Options("alphabeta"))
    assert struck == [f"e{n.index}" for n in trace.tree.nodes if n.name in ("2.2", "2.3")]


class Tags(HTMLParser):
    """Checks that every tag is closed, and collects ids and scripts."""

    VOID = ("meta", "input", "br")

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.texts = [], [], {}

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append((tag, dict(attributes).get("id")))
        self.ids += [value for name, value in attributes if name == "id"]
        assert not {name for name, _ in attributes} & {"src", "srcset"}

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, text):
        if self.open and self.open[-1][1]:
            self.texts[self.open[-1][1]] = text


def test_pages_need_no_network(trace):
    text = page(trace, "a tree")
    assert set(re.findall(r"https?://[^\"' )]*", text)) == {"http://www.w3.org/2000/svg"}
    assert "@import" not in text and "url(" not in text
    tags = Tags()
    tags.feed(text)
    assert tags.open == [] and len(set(tags.ids)) == len(tags.ids)
    assert {"first", "back", "next", "last", "slider", "sentence", "steps"} <= set(tags.ids)
    data = json.loads(tags.texts["trace"])
    assert len(data["steps"]) == len(trace.steps) and len(data["nodes"]) == len(trace.tree.nodes)
    assert [step["text"] for step in data["steps"]] == [pretty(step.text) for step in trace.steps]


def test_pretty():
    assert pretty("v = -2 <= alpha = +inf, beta = -inf, 3-4, a-1") == "v = −2 ≤ α = +∞, β = −∞, 3-4, a-1"


POSITIONS = {"twenty_forty_eight": "2 4 2 4/4 2 4 2/2 4 2 4/4 2 2 4 score 0"}


@pytest.mark.parametrize("name", sorted(set(GAMES) - {"game_tree", "gomoku", "backgammon"}))
def test_every_game_can_be_drawn(name):
    """Its first ply, by the search that fits; where chance begins, from where a player chooses."""
    game = make(name)
    trace = explain(game, Options(depth=1), POSITIONS.get(name))
    root = ElementTree.fromstring(svg(trace))
    boards = [e for e in root.iter(f"{SVG}g") if e.get("class") == "board"]
    assert len(boards) in (0, len(trace.tree.nodes))
    if game.cells(game.new()[0]) is not None:
        assert boards


# --- the command --------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def command(*arguments):
        return CliRunner().invoke(app, ["explain", *arguments], catch_exceptions=True)

    return command


def test_the_lectures_tree(run, tmp_path):
    done = run("--tree", "[[3,12,8],[2,4,6],[14,5,2]]", "--algorithm", "alphabeta")
    assert done.exit_code == 0
    assert "value 3 for MAX, best move 1" in done.stdout and "3, 12, 8, 2, 14, 5, 2" in done.stdout
    assert "v = 2 <= alpha = 3" in done.stdout and "moves: 1 = 3, 2 <= 2, 3 = 2" in done.stdout
    (file,) = tmp_path.iterdir()
    assert f"written: {file.name}" in done.stdout and file.read_text().startswith("<!DOCTYPE html>")


def test_json_writes_nothing_unless_asked(run, tmp_path):
    done = run("--json")
    found = json.loads(done.stdout)
    assert found["leaves"] == [3, 12, 8, 2, 14, 5, 2] and found["move"] == "1" and found["value"] == 3
    assert list(tmp_path.iterdir()) == []
    for name in ("a.svg", "a.html", "a.json"):
        assert run("--json", "--output", name).exit_code == 0
    assert json.loads((tmp_path / "a.json").read_text()) == found
    assert ElementTree.parse(tmp_path / "a.svg").getroot().tag == f"{SVG}svg"


def test_steps_of_a_game(run, tmp_path):
    done = run("tic_tac_toe", "--depth", "2", "--steps", "--position", "b2")
    assert done.exit_code == 0 and " 1. MAX at the root begins" in done.stdout
    assert (tmp_path / "explain-tic_tac_toe-alphabeta.html").exists()


def test_mcts(run):
    done = run("tic_tac_toe", "--algorithm", "mcts", "--simulations", "12", "--json")
    found = json.loads(done.stdout)
    assert sum(move["visits"] for move in found["moves"]) == 12 == len(found["simulations"])


def test_one_step_as_a_picture(run, tmp_path):
    assert run("--step", "1", "--output", "one.svg").exit_code == 0
    assert run("--step", "7", "--output", "one.html").exit_code == 0
    assert '{"at":7,' in (tmp_path / "one.html").read_text()
    assert run("--step", "16", "--output", "all.svg").exit_code == 0
    one, all_steps = ((tmp_path / name).read_text() for name in ("one.svg", "all.svg"))
    assert one.count(" unseen") > 10 and " unseen" not in re.sub("<style>.*</style>", "", all_steps, flags=re.DOTALL)


def test_files_and_named_nodes(run, tmp_path):
    (tmp_path / "coin.toml").write_text(
        'levels = "max-chance"\ntree = [[["1/2", 8], ["1/3", 24], ["1/6", -12]], [["1/2", 9], ["1/2", 9]]]\n'
    )
    found = json.loads(run("--tree", "coin.toml", "--json").stdout)
    assert found["algorithm"] == "expectimax"
    assert found["value"] == pytest.approx(10) and found["move"] == "1"


def test_a_large_tree_is_told_but_not_drawn(run, tmp_path):
    done = run("tic_tac_toe", "--depth", "3")
    assert done.exit_code == 0 and "586 nodes is too large to draw" in done.stdout
    assert list(tmp_path.iterdir()) == []
    refused = run("tic_tac_toe", "--depth", "3", "--output", "big.svg")
    assert isinstance(refused.exception, InputError) and "smaller --depth" in str(refused.exception)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--algorithm", "alphabeta2"], "unknown algorithm 'alphabeta2'; algorithms: minimax, alphabeta"),
        (["pig", "--algorithm", "minimax"], "use expectiminimax"),
        (["tic_tac_toe", "--tree", "[1,2]"], "not both"),
        (["tic_tac_toe", "--levels", "max"], "belong to --tree"),
        (["--tree", "[[1,2]"], "neither JSON nor nested lists"),
        (["--tree", "none.toml"], "does not exist"),
        (["--output", "tree.png"], "must end in .html, .svg or .json"),
        (["--output", "nowhere/tree.svg"], "does not exist"),
        (["--step", "17", "--output", "tree.svg"], "from 0 to 16"),
        (["--depth", "-1"], "depth=-1"),
        (["--algorithm", "mcts", "--simulations", "0"], "simulations=0"),
        (["tic_tac_toe", "--position", "z9"], "z9"),
        (["no_game"], "unknown game"),
    ],
)
def test_bad_input(run, tmp_path, arguments, words):
    done = run(*arguments)
    assert isinstance(done.exception, InputError) and words in str(done.exception)
    assert "\n" not in str(done.exception) and list(tmp_path.iterdir()) == []


def test_the_document(run, tmp_path):
    """Every command of docs/explain.md works and prints what stands there; the picture is the one it makes."""
    text = (DOCS / "explain.md").read_text(encoding="utf-8")
    parts = "".join(re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE)).split("$ selfplay explain ")
    assert len(parts) == 8
    for part in parts[1:]:
        command, _, shown = part.partition("\n")
        done = run(*shlex.split(command))
        assert done.exit_code == 0
        assert not shown or done.stdout == shown
    assert (tmp_path / "alphabeta.svg").read_text() == (DOCS / "alphabeta.svg").read_text()


def test_bad_input_ends_in_one_sentence():
    import subprocess
    import sys

    command = [sys.executable, "-m", "selfplay.cli", "explain", "--algorithm", "magic"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("selfplay: unknown algorithm 'magic'") and done.stderr.count("\n") == 1
