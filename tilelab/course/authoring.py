"""For teachers: a new puzzle that passes its own checks, and exports for nbgrader and for release."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

from tilelab.course import percent
from tilelab.course.card import Puzzle
from tilelab.course.catalog import folders, puzzle
from tilelab.course.generate import solution_file
from tilelab.errors import InputError
from tilelab.files import write_bytes, write_text

#: What a learner may have of a puzzle: what the wheel carries, too. No solution, no wrong answer.
RELEASED = ("puzzle.toml", "oracle.py", "stub.py", "README.md", "README.zh.md", "picture.svg")


def new_puzzle(name: str, root: Path) -> Path:
    """Make a puzzle's folder under ``root`` from a template: it doubles a vector, and passes its own checks.

    Raises:
        InputError: The name is no puzzle name, the number is taken, or the folder exists.
    """
    match = re.fullmatch(r"(?:(\d\d)_)?([a-z][a-z0-9_]*)", name)
    if match is None:
        raise InputError(f"{name!r} is no name for a puzzle", fix="use small letters, digits and underscores, as in 61_my_puzzle")
    own = [p.name for p in root.iterdir()] if root.is_dir() else []
    taken = {n[:2] for n in [*(p.name for p in folders()), *own] if re.match(r"\d\d_", n)}
    number = match[1] or next((f"{n:02d}" for n in range(61, 100) if f"{n:02d}" not in taken), None)
    if number is None or number in taken:
        raise InputError(f"the number {number or 'from 61 to 99'} is taken", fix="choose another number")
    folder = root / f"{number}_{match[2]}"
    words = {"ID": folder.name, "NUMBER": str(int(number)), "TITLE": match[2].replace("_", " ").capitalize(), "ENTRY": match[2]}
    files = {path: re.sub("|".join(words), lambda m: words[m[0]], text) for path, text in _TEMPLATE.items()}
    for path, text in files.items():
        write_text(folder / path, text)
    made = puzzle(folder)
    write_text(folder / "stub.py", percent.stub(made.source()))
    write_text(folder / "solution.py", solution_file(made))
    return folder


def export(p: Puzzle, folder: Path, lang: str) -> list[Path]:
    """Write the nbgrader source notebook (``source/ID/ID.ipynb``) and the release archive (``ID.zip``) of a puzzle."""
    source = folder / "source" / p.id / f"{p.id}.ipynb"
    write_text(source, percent.dump(nbgrader_notebook(p, lang)))
    archive = folder / f"{p.id}.zip"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as z:
        for name in RELEASED:
            if (p.folder / name).is_file():
                z.writestr(zipfile.ZipInfo(f"{p.id}/{name}", (1980, 1, 1, 0, 0, 0)), (p.folder / name).read_bytes())
    write_bytes(archive, data.getvalue())
    return [source, archive]


def nbgrader_notebook(p: Puzzle, lang: str) -> dict[str, object]:
    """Return the puzzle as an nbgrader source: a solution cell, and a graded cell whose value is the score."""
    prose = p.prose(lang)
    cells = [percent.Cell(kind="markdown", source=prose.inlined().strip())]
    for c in percent.parse(p.source(), f"{p.id}/puzzle.py"):
        if c.metadata.get("lang", lang) != lang or ".check(" in c.source:
            continue
        meta = {k: v for k, v in c.metadata.items() if k != "lang"}
        source = c.source
        if meta.get("tilelab", {}).get("role") == "solution":
            meta["nbgrader"] = _nbgrader(f"{p.id}-solution", solution=True)
            source = "\n".join(line for line in source.split("\n") if not line.strip().startswith(percent.STARTER))
        cells.append(percent.Cell(kind=c.kind, source=source, metadata=meta))
    test = f"report = puzzle.check({p.spec.entry})\nprint(report)\nreport.score"
    cells.append(percent.Cell(kind="code", source=test, metadata={"nbgrader": _nbgrader(f"{p.id}-grade", points=100)}))
    return percent.notebook(cells, {"tilelab": {"lang": lang, "puzzle": p.id}})


def _nbgrader(grade_id: str, *, solution: bool = False, points: int | None = None) -> dict[str, object]:
    graded = points is not None
    meta: dict[str, object] = {
        "schema_version": 3,
        "grade_id": grade_id,
        "grade": graded,
        "solution": solution,
        "locked": graded,
        "task": False,
    }
    return {**meta, "points": points} if graded else meta


_TEMPLATE = {
    "puzzle.toml": """schema = 1
id = "ID"
title = { en = "TITLE", zh = "TITLE" }
idea = { en = "Double every element", zh = "把每个元素加倍" }
part = "X"
entry = "ENTRY"
arch = "sm_80"
teaches = ["T.Parallel"]
hints = 3

[[arguments]]
name = "A"
dtype = "float32"
shape = ["N"]

[[returns]]
name = "B"
dtype = "float32"
shape = ["N"]

[cases]
visible = [{ N = 256 }]
always = [{ sizes = { N = 1 } }, { sizes = { N = 1000 } }]

[cases.draw]
count = 1
ranges = { N = [2, 2000] }
inputs = ["nan"]

[counts]
sizes = { N = 65536 }
figures = [{ name = "bytes_moved", start = 1048576, best = 524288, floor = 524288 }]

[[wrong]]
file = "no_doubling.py"
fails = "N = 1000"
""",
    "oracle.py": '"""What the kernel means, in numpy."""\n\n\ndef oracle(A):\n    return 2 * A\n',
    "puzzle.py": """# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("NUMBER")
puzzle

# %% tilelab={"role": "solution"}
@tilelang.jit
def ENTRY(A, block: int = 256):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    B = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        for i in T.Parallel(block):
            if bx * block + i < N:
                ### BEGIN SOLUTION
                #| B[bx * block + i] = 0.0  # your turn
                B[bx * block + i] = A[bx * block + i] * 2.0
                ### END SOLUTION
    return B


# %%
puzzle.check(ENTRY)
""",
    "README.md": """# Puzzle NUMBER: TITLE

Write `ENTRY`: it returns a vector that is twice `A`.

## Hints

<details>
<summary>Hint 1: a nudge</summary>

Which element belongs to iteration `i` of block `bx`?

</details>

<details>
<summary>Hint 2: the plan</summary>

Read that element, double it, write it to the same place of `B`.

</details>

<details>
<summary>Hint 3: nearly the answer</summary>

The index on both sides is `bx * block + i`.

</details>

## What to read next

- Change this puzzle into your own: `puzzle.toml` says what is graded, `puzzle.py` holds the solution and the starter.
""",
    "README.zh.md": """# 第 NUMBER 题：TITLE

请写出 `ENTRY`：它返回的向量是 `A` 的两倍。

## 提示

<details>
<summary>提示 1：点到为止</summary>

第 `bx` 块的第 `i` 次迭代，对应哪个元素？

</details>

<details>
<summary>提示 2：思路</summary>

读出这个元素，加倍，写到 `B` 的同一位置。

</details>

<details>
<summary>提示 3：几乎就是答案</summary>

等号两边的下标都是 `bx * block + i`。

</details>

## 接下来读什么

- 把它改成你自己的题目：`puzzle.toml` 规定怎样评分，`puzzle.py` 里是解答和起始代码。
""",
    "wrong/no_doubling.py": '''"""Copies and forgets to double."""

import tilelang
import tilelang.language as T


@tilelang.jit
def ENTRY(A, block: int = 256):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    B = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        T.copy(A[bx * block : bx * block + block], B[bx * block : bx * block + block])
    return B
''',
}
