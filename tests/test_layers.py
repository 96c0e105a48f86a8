"""Imports point one way, envs <- models <- selfplay, and keep to the libraries that each layer may use."""

import ast
from pathlib import Path

import pytest

from envs.registry import GAMES

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(path for package in ("envs", "models", "selfplay") for path in (ROOT / package).rglob("*.py"))
PARTICULAR_GAMES = {entry.module for entry in GAMES.values()}


def imports(path: Path) -> set[str]:
    """All modules that a file imports, anywhere in it; `from a import b` counts as a and a.b."""
    found: set[str] = set()
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, [base, node.module or ""]))
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return found


def uses(path: Path, *modules: str) -> set[str]:
    return {name for name in imports(path) for module in modules if name == module or name.startswith(f"{module}.")}


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_layers(path):
    layer = path.relative_to(ROOT).parts[0]
    assert not uses(path, "tests", "pickle", "dill", "cloudpickle", "shelve", "marshal")
    assert not uses(path, "pyspiel", "open_spiel", "chess", "bitbully")  # referees are for tests and benchmarks
    if layer in ("envs", "models"):
        assert not uses(path, "selfplay")
    if layer == "envs":
        assert not uses(path, "models", "torch", "benchmarks")
    if "search" in path.parts:
        assert not uses(path, "torch", "envs.registry", *PARTICULAR_GAMES)
        assert not {name for name in uses(path, "selfplay") if not name.startswith("selfplay.search")}


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_no_pickle_through_other_doors(path):
    """torch.load, numpy.load with pickles, eval and exec on input."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            assert name not in ("eval", "exec", "torch.load", "torch.save"), f"line {node.lineno}: {name}"
            allowed = {k.arg: ast.unparse(k.value) for k in node.keywords}
            assert allowed.get("allow_pickle", "False") == "False", f"line {node.lineno}"


def test_the_walk_sees_what_it_should(tmp_path):
    path = ROOT / "selfplay" / "cli.py"
    assert "envs.registry" in imports(path)  # imported inside of a function
    assert "envs.errors.InputError" in imports(path)
    assert uses(path, "envs") and not uses(path, "env")


def test_importing_the_rules_imports_no_torch():
    import subprocess
    import sys

    script = "import sys, envs.registry as r; [r.make(n) for n in r.GAMES]; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)
