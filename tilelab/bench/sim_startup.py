"""How long it takes to import TileLab and to print its help, each in a process of its own."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

#: what is timed → the code
_CODE: Mapping[str, str] = {
    "python": "pass",
    "import": "import tilelab",
    "help": "import sys; sys.argv = ['tilelab', '--help']; from tilelab.cli import main; main()",
}
_IMPORT_S, _HELP_S = 0.05, 0.3


def measure(runs: int = 15) -> dict[str, Any]:
    """Return seconds by what is timed (median and least of ``runs``, taken in turn), and whether the bars are met."""
    samples: dict[str, list[float]] = {name: [] for name in _CODE}
    for _ in range(runs):
        for name, code in _CODE.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
            samples[name].append(time.perf_counter() - began)
    found = {name: {"median_s": statistics.median(s), "min_s": min(s)} for name, s in samples.items()}
    bars = []
    for name, bar, text in (("import", _IMPORT_S, "import tilelab over bare Python"), ("help", _HELP_S, "tilelab --help")):
        base = found["python"] if name == "import" else {"median_s": 0.0, "min_s": 0.0}
        value, least = (found[name][k] - base[k] for k in ("median_s", "min_s"))
        bars.append({"case": "start", "text": f"{text} within {bar} s", "value": value, "least": least, "met": value < bar})
    return {"seconds": found, "bars": bars}
