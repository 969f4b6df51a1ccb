"""Every puzzle of the course: its texts are whole, what is generated of it is up to date, and the course finds it."""

import itertools
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import jupytext
import nbformat
import pytest
from which import ALL, EACH

from tilelab.course import percent, puzzle
from tilelab.course.generate import generated, main
from tilelab.grader.grading import grade

ROOT = Path(__file__).resolve().parents[2]


@EACH
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_prose_is_whole(p, lang):
    prose = p.prose(lang)
    assert prose.title
    assert len(prose.hints) == p.spec.hints == 3
    assert all(title and text for title, text in prose.hints)
    assert len(prose.hints[0][1]) < len(p.source())
    pictures = re.findall(r"!\[(.+?)\]\((.+?)\)", prose.statement)
    assert pictures, "a statement has a picture, with words for those who cannot see it"
    for alt, file in pictures:
        assert len(alt) > 10
        ET.parse(p.folder / file)
    assert prose.after.startswith("## ")
    assert p.title(lang)
    assert p.idea(lang)
    assert bool(re.search(r"[\u4e00-\u9fff]", prose.statement)) == (lang == "zh")


@EACH
def test_chinese_paragraphs_are_not_hard_wrapped(p):
    lines = (p.folder / "README.zh.md").read_text("utf-8").split("\n")
    text = re.compile(r"^(?!\d+\. )[^#|\-!<\s]")
    assert not [a for a, b in itertools.pairwise(lines) if text.match(a) and text.match(b)]


# ------------------------------------------------------------------------------------------------------ generated
@EACH
def test_what_is_committed_equals_what_is_generated(p):
    for path, text in generated(p, ROOT / "notebooks").items():
        assert path.read_text("utf-8") == text, f"{path}: run python -m tilelab.course.generate"


def test_the_generator_says_that_nothing_differs(capsys):
    assert main(["--check"]) == 0
    assert capsys.readouterr().out == ""


@EACH
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_notebooks_are_valid_and_their_cells_are_jupytexts(p, lang):
    book = p.notebook(lang)
    nbformat.validate(nbformat.from_dict(book))
    theirs = jupytext.reads(p.stub(), fmt="py:percent").cells
    mine = percent.parse(p.stub())
    assert [(c.cell_type, c.source) for c in theirs] == [(c.kind, c.source) for c in mine]
    assert [c.metadata.get("tilelab") for c in theirs] == [c.metadata.get("tilelab") for c in mine]
    ids = [c["id"] for c in book["cells"]]
    assert len(set(ids)) == len(ids)
    roles = [c["metadata"].get("tilelab", {}).get("role") for c in book["cells"]]
    assert roles.count("solution") == 1


@EACH
def test_no_notebook_or_stub_gives_the_solution_away(p):
    code = p.source().split(percent.BEGIN)[1].split(percent.END)[0]
    plain = re.compile(r"(for|if|else|with|while)\b.*:$|[)\]]*$|.*\($|\w+ = T\.alloc_")  # headers and brackets give nothing away
    lines = [line for line in map(str.strip, code.split("\n")) if line and not line.startswith((percent.STARTER, "#"))]
    assert lines
    secret = [line for line in lines if not plain.match(line)] or lines  # … unless they are all there is
    if p.spec.kind == "debug":  # the lines may be there, though not as they should stand
        solved = "\n".join(line for line in code.split("\n")[1:] if not line.strip().startswith(percent.STARTER)).rstrip()
        assert solved not in p.stub()
        return
    text = p.stub() + "".join("".join(c["source"]) for c in p.notebook()["cells"] if c["cell_type"] == "code")
    assert not [line for line in secret if line in text]


# --------------------------------------------------------------------------------------------------------- course
@pytest.mark.parametrize("name", ["1", 1, "01", "1_copy", "01_copy", "copy", ROOT / "puzzles" / "01_copy"])
def test_a_puzzle_by_any_of_its_names(name):
    assert puzzle(name).id == "01_copy"


def test_the_notebook_is_byte_identical_each_time():
    assert json.dumps(puzzle("1").notebook()) == json.dumps(puzzle("1").notebook())


def test_the_wheel_carries_every_puzzle_and_no_solution():
    import importlib.util

    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    carried = hook.released_puzzles(ROOT)
    for p in ALL:
        names = {Path(to).name for to in carried.values() if Path(to).parent == Path("tilelab/_puzzles") / p.id}
        assert names == {"puzzle.toml", "oracle.py", "stub.py", "README.md", "README.zh.md", "picture.svg"}


def test_a_puzzle_without_its_solution_is_whole(tmp_path):
    import shutil

    p = puzzle("1")
    shutil.copytree(p.folder, tmp_path / p.id, ignore=shutil.ignore_patterns("puzzle.py", "solution.py", "wrong"))
    carried = puzzle(tmp_path / p.id)
    assert carried.notebook() == p.notebook()
    assert grade(carried, p.folder / "solution.py", seed=1).score == 100
    with pytest.raises(Exception, match="in the repository and not in the wheel"):
        carried.source()
