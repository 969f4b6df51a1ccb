"""What the README says runs, runs; the commands it lists are those that there are."""

import re
from pathlib import Path

import pytest

from tilelab.cli import COMMANDS

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_python_of_the_readme_runs(shell, tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (tmp_path / "readme.py").write_text(code + "\nassert trace.findings == () or all(f.severity == 'info' for f in trace.findings)\nprint('ran')\n")
    done = shell("readme.py", python=True)
    assert done.out.strip().endswith("ran"), done.err


def test_the_readme_lists_every_command():
    assert {name for name in COMMANDS if f"tilelab {name}" not in README} == set()


def test_pictures_and_links_are_there():
    here = Path(__file__).resolve().parent.parent
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert [t for t in targets if not t.startswith("http") and not (here / t).exists()] == []
