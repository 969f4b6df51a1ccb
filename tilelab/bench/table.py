"""The table of kernels in the README, made from the records of a real GPU.

``python -m tilelab.bench.table README.md`` writes it between the file's two marks.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

from tilelab.errors import InputError

RECORDS = Path(__file__).parent / "records"
BEGIN, END = "<!-- kernels: python -m tilelab.bench.table README.md -->", "<!-- /kernels -->"
#: family → what it is called, and the module of ``tilelab.kernels`` that holds it
NAMES = {
    "gemm": ("GEMM bfloat16", "gemm"),
    "fp8": ("FP8 GEMM", "fp8_gemm"),
    "grouped": ("grouped GEMM", "grouped_gemm"),
    "two_four": ("2:4 sparse GEMM", "sparse_gemm"),
    "attention": ("FlashAttention forward", "attention"),
    "backward": ("FlashAttention backward", "attention_backward"),
    "mla": ("MLA decode", "mla"),
    "decode": ("split-KV decode", "decode"),
    "sparse": ("sparse MLA", "sparse_mla"),
}


def rows(records: Path = RECORDS) -> list[dict[str, Any]]:
    """The rows of all records of timings in ``records``, of known families, with the device and date of their record."""
    found = []
    for path in sorted(records.glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        if record.get("schema") == "tilelab.bench.gpu":
            found += [{**row, "device": record["environment"]["device"], "date": record["environment"]["date"]} for row in record["rows"]]
    return [row for row in found if row["family"] in NAMES]


def table(records: Path = RECORDS) -> str:
    """One line for each family and rival: cases, our speed as a share of the rival's (mean and worst), the fastest case."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows(records):
        if "ratio" in row:
            groups.setdefault((row["family"], row["rival"]), []).append(row)
    lines = ["| kernel | beside | cases | speed: mean | worst | fastest case |", "|---|---|---|---|---|---|"]
    for (family, rival), cases in sorted(groups.items(), key=lambda item: list(NAMES).index(item[0][0])):
        name, module = NAMES[family]
        mean = math.exp(sum(math.log(case["ratio"]) for case in cases) / len(cases))
        worst = min(cases, key=lambda case: case["ratio"])
        lead = "tflop_s" if cases[0]["tflop_s"] > 100 else "tb_s"
        best = max(cases, key=lambda case: case[lead])
        speed = f"{best[lead]:.0f} TFLOP/s" if lead == "tflop_s" else f"{best[lead]:.2f} TB/s"
        lines.append(f"| {name} (`kernels.{module}`) | {rival} | {len(cases)} | {mean:.2f} | {worst['ratio']:.2f} | {speed} |")
    devices = sorted({(row["device"], row["date"]) for row in rows(records)})
    lines += [
        "",
        f"Measured on {', '.join(sorted({device for device, _ in devices}))}, {devices[-1][1]}, in bursts; 1.00 is the rival's speed.",
    ]
    return "\n".join(lines)


def placed(text: str, records: Path = RECORDS) -> str:
    """``text`` with the table between its marks.

    Raises:
        InputError: the marks are missing.
    """
    if BEGIN not in text or END not in text:
        raise InputError(f"the file must hold the lines {BEGIN} and {END}")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table(records)}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(placed(target.read_text(encoding="utf-8")), encoding="utf-8")
