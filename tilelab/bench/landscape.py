"""The landscape of an operator's configurations as a picture: for each shape a bar for every configuration tried, the best one marked.

python -m tilelab.bench.landscape RECORD.json PICTURE.svg
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilelab.files import write_text
from tilelab.views.svg import Svg

BAR, ROW, LABEL = 360, 17, 330


def picture(rows: Sequence[Mapping[str, Any]]) -> str:
    """SVG text of a landscape's rows (``shape``, ``config``, and ``burst_us`` or ``why`` it has none)."""
    svg = Svg("Configurations and their times", "For each shape the time of every configuration that was tried, the fastest first")
    svg.heading(16, 28, "Configurations and their times", "burst, microseconds; the fastest of a shape is dark", "head")
    y = 52.0
    for shape in dict.fromkeys(tuple(row["shape"]) for row in rows):
        mine = [row for row in rows if tuple(row["shape"]) == shape]
        timed = sorted((row for row in mine if "burst_us" in row), key=lambda row: float(row["burst_us"]))
        svg.heading(16, y + 12, "×".join(map(str, shape)), f"{len(timed)} of {len(mine)} ran")
        y += 20
        for place, row in enumerate(timed):
            us = float(row["burst_us"])
            svg.text(16, y + 12, named(row["config"]), "tiny mono")
            svg.rect(LABEL, y + 2, BAR, ROW - 5, cls="track", radius=2)
            svg.rect(LABEL, y + 2, BAR * float(timed[0]["burst_us"]) / us, ROW - 5, cls="ran" if place == 0 else "wrote", radius=2)
            svg.text(LABEL + BAR + 8, y + 12, f"{us:.1f} µs · {float(timed[0]['burst_us']) / us:.2f}", "tiny")
            y += ROW
        y += 14
    return svg.finish()


def named(config: Mapping[str, Any]) -> str:
    """A configuration in a line."""
    return " ".join(f"{name} {value}" for name, value in config.items())


def best_of_classes(rows: Sequence[Mapping[str, Any]], class_of: Any) -> dict[str, dict[str, Any]]:
    """Class of shapes → the configuration that loses least on its shapes (geometric mean of its time over the best one's)."""
    best: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(class_of(*row["shape"]) for row in rows):
        mine = [row for row in rows if class_of(*row["shape"]) == name and "burst_us" in row]
        fastest = {tuple(r["shape"]): min(float(o["burst_us"]) for o in mine if o["shape"] == r["shape"]) for r in mine}
        losses: dict[str, list[float]] = {}
        for row in mine:
            losses.setdefault(json.dumps(row["config"]), []).append(math.log(float(row["burst_us"]) / fastest[tuple(row["shape"])]))
        whole = {key: sum(loss) / len(loss) for key, loss in losses.items() if len(loss) == len(fastest)}
        if whole:
            best[name] = json.loads(min(whole, key=lambda key: whole[key]))
    return best


def main(argv: Sequence[str] | None = None) -> int:
    """Draws a record."""
    record, out = argv or sys.argv[1:]
    write_text(Path(out), picture(json.loads(Path(record).read_text())["rows"]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
