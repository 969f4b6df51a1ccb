"""Scores of a class into nbgrader's Gradebook: ours grades the tagged cells, nbgrader carries the points."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tilelab.course.card import Puzzle
from tilelab.errors import EnvironmentLacks, InputError


def enter_scores(puzzle: Puzzle, results: Sequence[Mapping[str, Any]], database: str) -> list[str]:
    """Enter the score of each result as the automatic score of the assignment's graded cell, and return the students.

    Args:
        puzzle: The puzzle, which the assignment is called after.
        results: Of ``tilelab grade --out``.
        database: nbgrader's, such as ``"sqlite:///gradebook.db"``.

    Raises:
        EnvironmentLacks: nbgrader is not installed.
        InputError: The database does not know the assignment.
    """
    try:
        from nbgrader.api import Gradebook, MissingEntry
    except ImportError:
        raise EnvironmentLacks("nbgrader is not installed", fix="pip install 'tilelab[grade]'") from None
    name, cell = puzzle.id, grade_cell(puzzle)
    students = []
    scripts = os.path.dirname(sys.executable)  # noqa: PTH120 (nbgrader calls alembic by its name)
    os.environ["PATH"] = os.pathsep.join([scripts, os.environ.get("PATH", "")])
    with Gradebook(database) as book:
        try:
            book.find_grade_cell(cell, name, name)
        except MissingEntry:
            raise InputError(
                f"the gradebook has no cell {cell} in assignment {name}", fix=f"run `nbgrader generate_assignment {name}` first"
            ) from None
        for r in results:
            book.update_or_create_student(r["student"])
            book.update_or_create_submission(name, r["student"])
            grade = book.find_grade(cell, name, name, r["student"])
            grade.auto_score = min(float(r["report"]["score"]), grade.max_score)
            grade.needs_manual_grade = False
            students.append(r["student"])
        book.db.commit()
    return students


def grade_cell(puzzle: Puzzle) -> str:
    """Return the id of the cell of an exported notebook that carries the points."""
    return f"{puzzle.id}-grade"
