"""The code of docs/environments.md runs as it stands."""

import re
import sys
from pathlib import Path

import pytest

import envs

PAGE = (Path(envs.__file__).parents[1] / "docs" / "environments.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_has_code():
    assert len(BLOCKS) == 5


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_block(number):
    names = {}
    if number:  # the first one imports what the others use
        exec("import gymnasium", names)
    exec(compile(BLOCKS[number], f"docs/environments.md, block {number + 1}", "exec"), names)
    assert sys.modules["envs"] is envs  # a block may call a variable so, but must not replace the package
