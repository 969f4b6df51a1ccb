"""puzzle.toml: what is wrong is said in one line that names file, key and remedy."""

import tomllib

import pytest

from tilelab.course import puzzle
from tilelab.errors import InputError
from tilelab.grader import shapes
from tilelab.grader.schema import load_spec, parse_spec

GOOD = (puzzle("1").folder / "puzzle.toml").read_text()


def edited(old: str, new: str):
    assert old in GOOD
    return tomllib.loads(GOOD.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("schema = 1", "schema = 2", "schema is 2"),
        ('id = "01_copy"', 'id = "copy"', "id is 'copy'"),
        ('part = "A"', "part = 3", "part must be a string, not 3"),
        ('kind = "kernel"', 'kind = "poem"', "kind is 'poem'"),
        ('entry = "copy"', "", "entry is missing"),
        ("launches = 1", "launch = 1", "launch is not a key of the schema"),
        ('shape = ["N"]', 'shape = "N"', "arguments[0].shape must be a list"),
        ('dtype = "float32"', 'dtype = "float32"\nrole = "both"', "arguments[0].role is 'both'"),
        ("{ N = 1 }", "{ M = 1 }", "cases.always[0] gives M; the shapes use N"),
        ("N = [130, 20000]", "N = [130]", "cases.draw.ranges.N must be [low, high]"),
        ('"nan", "large"', '"weird"', "cases: inputs is 'weird'"),
        ("rtol = 0.0", 'rtol = "small"', "tolerance.rtol must be a number"),
        ('"bytes_moved"', '"beauty"', "counts.figures[0].name is 'beauty'"),
        ("start = 16777216", "start = 8388608", "same start and best"),
        ("allowed = []", 'allowed = ["TL999"]', "findings.allowed names 'TL999'"),
        ("needs = []", 'needs = ["copy"]', "needs names 'copy'"),
    ],
)
def test_a_mistake_is_said_in_one_line(old, new, said):
    with pytest.raises(InputError) as e:
        parse_spec(edited(old, new), puzzle("1").folder)
    assert said in str(e.value)
    assert "puzzle.toml" in str(e.value)
    assert "\n" not in str(e.value)


def test_missing_and_broken_files(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        load_spec(tmp_path)
    (tmp_path / "puzzle.toml").write_text("schema = = 1")
    with pytest.raises(InputError, match="not TOML"):
        load_spec(tmp_path)


@pytest.mark.parametrize(("text", "value"), [("N", 12), ("ceildiv(N, 5) * 2 + 1", 7), ("max(N, K) // 3 - N % 5", 2), (7, 7)])
def test_shape_expressions(text, value):
    assert shapes.evaluate(text, {"N": 12, "K": 4}) == value


@pytest.mark.parametrize("text", ["__import__('os')", "N.real", "[1, 2]", "N ** 2", "M", "N if N else 1", "1.5", "("])
def test_other_expressions_are_refused(text):
    with pytest.raises(InputError):
        shapes.evaluate(text, {"N": 12})
