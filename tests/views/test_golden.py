"""Goldens that the TypeScript tests read as well: fields of views, and links worked out here by plain loops."""

import subprocess
import sys
from pathlib import Path

import pytest

from tilelab.layout_make import atom, make_fragment, row_major, swizzled
from tilelab.views import layout

ROOT = Path(__file__).resolve().parents[2]

CASES = {
    "layout_mma_d": lambda: atom("mma.m16n8k16.D"),
    "layout_swizzled": lambda: swizzled((64, 64), name="A_shared"),
    "layout_copies": lambda: make_fragment((8, 4), lambda i, j, rep: (i + 8 * rep, j), replicate=4, name="row_max"),
    "layout_cube": lambda: row_major((3, 8, 4), dtype="float32", name="cube"),
}


def links(record):
    """For a few elements: owners or address; for a few threads or words: what they hold. By scanning every element."""
    shape, arrays = record["shape"], record["arrays"]
    size = 1
    for n in shape:
        size *= n
    flat = {name: a.reshape(size, -1) for name, a in arrays.items() if name in ("thread", "register", "address", "bank", "bank_before", "word")}
    picked = sorted({0, 1, size // 3, size // 2, size - 1})
    out = {"elements": {}, "held": {}}
    for e in picked:
        entry = {name: int(flat[name][e, 0]) for name in ("address", "bank", "bank_before", "word") if name in flat}
        if "thread" in flat:
            entry["owners"] = [[int(t), int(r)] for t, r in zip(flat["thread"][e], flat["register"][e], strict=True)]
        out["elements"][str(e)] = entry
    key = "thread" if "thread" in flat else "word"
    top = int(flat[key].max())
    for place in sorted({0, top // 2, top}):
        held = [(int(flat["register"][e, c]) if key == "thread" else 0, e) for e in range(size) for c in range(flat[key].shape[1]) if flat[key][e, c] == place]
        out["held"][str(place)] = [e for _, e in sorted(held)]
    return out


@pytest.mark.parametrize("name", CASES)
def test_view_and_links(golden, name):
    view = layout(CASES[name]())
    golden(f"views/{name}", {"view": view.to_json(), "links": links(view.data["layouts"][0]), "table": view.table(8)[1]})


def test_generated_typescript_is_up_to_date():
    done = subprocess.run([sys.executable, ROOT / "visualizers" / "generate.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_example_is_a_view_of_today():
    import json

    from tilelab.views import View

    record = json.loads((ROOT / "visualizers" / "layout" / "example.json").read_text())
    assert View.from_json(record).to_json() == record
