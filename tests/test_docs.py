"""The documents' code and commands, run as they stand."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from envs.check import check_game
from envs.registry import GAMES, make
from selfplay.cli import main
from selfplay.perft import perft

ROOT = Path(__file__).resolve().parents[1]


def blocks(name: str, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def commands(name: str) -> list[tuple[str, str]]:
    """The lines that begin with "$ selfplay", each with the output that the document shows below it."""
    found = []
    for block in blocks(name, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            if re.match(r"(\.venv/bin/)?selfplay ", command):
                found.append((command, output.strip()))
    return found


@pytest.fixture
def hexapawn(tmp_path, monkeypatch):
    """The file that docs/adding_a_game.md writes, in the working folder."""
    code = "\n".join(blocks("docs/adding_a_game.md", "python"))
    (tmp_path / "hexapawn.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    return code


def run(command: str, monkeypatch, capsys) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", shlex.split(command, comments=True))
    with pytest.raises(SystemExit) as caught:
        main()
        raise SystemExit(0)
    return int(caught.value.code or 0), capsys.readouterr().out


def without_times(text: str) -> str:
    """Seconds and rates differ from run to run; so does the space at the ends of lines."""
    text = re.sub(r"[\d.]+ s \([\d.]+ M nodes/s\)", "TIME", text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def test_the_code_is_short(hexapawn):
    assert len(hexapawn.splitlines()) <= 80
    assert not any("hexapawn" in name.lower() for name in GAMES)


@pytest.mark.parametrize("size", ["", ":rows=4,columns=3"])
def test_the_game_keeps_its_promises(hexapawn, size):
    report = check_game(make(f"hexapawn.py:Hexapawn{size}"), states=2000)
    assert report.ok, "; ".join(map(str, report.broken.values()))


def test_counts_of_the_game(hexapawn):
    """Against a few lines of Python that know only Gardner's rules."""

    def count(white: frozenset, black: frozenset, up: int, depth: int) -> int:
        if depth == 0:
            return 1
        total = 0
        for x, y in white:
            for side in (-1, 0, 1):
                cell = x + side, y + up
                if 0 <= cell[0] < 3 and (cell in black if side else cell not in white | black):
                    mine, theirs = white - {(x, y)} | {cell}, black - {cell}
                    ended = cell[1] in (0, 2)
                    total += count(theirs, mine, -up, depth - 1) if not ended else depth == 1
        return total

    white, black = (frozenset((x, y) for x in range(3)) for y in (0, 2))
    game = make("hexapawn.py:Hexapawn")
    assert [perft(game, depth).nodes for depth in range(8)] == [count(white, black, 1, depth) for depth in range(8)]


def test_commands_of_adding_a_game(hexapawn, monkeypatch, capsys):
    printed = {}
    for command, _ in commands("docs/adding_a_game.md"):
        code, printed[command.split()[1]] = run(command, monkeypatch, capsys)
        assert code == 0, command
    assert set(printed) == {"perft", "play", "check", "analyze"}
    assert json.loads(printed["perft"])["nodes"] > 0
    assert "won" in printed["play"]
    assert "value -1" in printed["analyze"]  # Gardner 1962: the second player wins


@pytest.mark.parametrize("command", [c for c, _ in commands("README.md")])
def test_commands_of_the_readme(command, monkeypatch, capsys):
    """Every command works, and prints what the document shows, wherever it shows something."""
    shown = dict(commands("README.md"))[command]
    code, out = run(command.removeprefix(".venv/bin/"), monkeypatch, capsys)
    assert code == 0
    if shown:
        assert without_times(out) == without_times(shown)


def test_the_readme_lists_every_game():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in GAMES if f"`{name}`" not in text] == []


def test_links_lead_somewhere():
    for name in ("README.md", "CHANGELOG.md", "docs/architecture.md", "docs/adding_a_game.md"):
        path = ROOT / name
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (path.parent / target).exists(), f"{name}: {target}"


def test_the_code_of_the_page_about_search(monkeypatch, capsys):
    (code,) = blocks("docs/search.md", "python")
    exec(compile(code, "docs/search.md", "exec"), {})
    assert capsys.readouterr().out.strip().endswith("True")
    for command in re.findall(
        r"^selfplay analyze (?:connect_four|backgammon).*$", "\n".join(blocks("docs/search.md", "")), re.MULTILINE
    ):
        code, out = run(command, monkeypatch, capsys)
        assert code == 0 and "value" in out, command
