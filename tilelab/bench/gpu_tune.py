"""The landscape of an operator's configurations on this GPU: every candidate compiled in parallel, timed in short bursts, drawn.

python -m tilelab.bench.gpu_tune gemm [--out FILE] [--picture FILE.svg] [--write]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from tilelab.bench import landscape
from tilelab.bench.gpu import measure
from tilelab.bench.gpu_gemm import SHAPES
from tilelab.files import write_bytes

TUNED = Path(__file__).parents[1] / "kernels" / "tuned.json"


def torch_name() -> str:
    """The GPU's name."""
    import torch

    return str(torch.cuda.get_device_name(0))


def gemm_candidates(M: int, N: int, K: int) -> list[dict[str, Any]]:
    """Configurations worth trying for a shape, by its kind."""
    if M <= 64:
        base = {"bm": 64, "cluster": 1, "consumers": 1}
        tiles = [(64, 128, 6), (64, 64, 12), (32, 128, 8), (64, 256, 3), (128, 128, 4)]
        return [{**base, "bn": bn, "cn": min(bn, 64), "bk": bk, "stages": st} for bn, bk, st in tiles] + [
            {**base, "bn": 128, "bk": 128, "stages": 4, "split_k": 2},
            {**base, "bn": 256, "bk": 64, "stages": 4, "split_k": 4},
        ]
    if M * N <= 1536 * 1536:
        return [
            {"bn": 64, "bk": 128, "stages": 4, "cluster": 1},
            {"bn": 64, "bk": 64, "stages": 6, "cluster": 1},
            {"bn": 64, "bk": 64, "stages": 8, "cluster": 2},
            {"bn": 64, "bk": 128, "stages": 4, "cluster": 2},
            {"bm": 64, "bn": 128, "bk": 128, "stages": 4, "cluster": 1, "consumers": 1},
            {"bm": 64, "bn": 128, "bk": 128, "stages": 4, "cluster": 2, "consumers": 1},
            {"bn": 128, "bk": 128, "stages": 3, "cluster": 1},
            {"bn": 128, "bk": 64, "stages": 4, "cluster": 1, "split_k": 2},
        ]
    found = [{"cluster": cluster, "group": group} for cluster in (1, 2) for group in (4, 8, 16)]
    found += [{"bm": 256, "bn": 128, "cluster": cluster, "group": group, "cn": 32} for cluster in (1, 2) for group in (4, 8)]
    found += [{"bn": 192, "cluster": 2, "group": 8, "stages": 4}, {"bn": 128, "cluster": 2, "group": 8, "stages": 6}, {"bn": 128,
        "cluster": 2, "bk": 128, "stages": 3}]
    return found


def warm(shape: Sequence[int], settings: dict[str, Any]) -> str:
    """Compiles one candidate in a process of its own, into the kernel cache; empty, or why not."""
    job = json.dumps([list(shape), settings])
    try:
        done = subprocess.run([sys.executable, "-m", "tilelab.bench.gpu_tune", "--compile", job], capture_output=True, text=True,
            timeout=180, check=False)
    except subprocess.TimeoutExpired:
        return "compiling took over 180 s"
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["?"])[-1][:200]


def build(shape: Sequence[int], settings: dict[str, Any], sms: int) -> Any:
    """The kernel of one candidate."""
    from tilelab.kernels import gemm as op

    return op.build(*shape, "NT", "bfloat16", False, None, False, sms, op.Config(**settings))


def sweep(jobs: int) -> list[dict[str, Any]]:
    """Every candidate of every shape."""
    import torch

    work = [(shape, settings) for shape in SHAPES for settings in gemm_candidates(*shape)]
    begun = time.perf_counter()
    with ThreadPoolExecutor(jobs) as pool:
        refused = list(pool.map(lambda job: warm(job[0], job[1]), work))
    print(f"compiled {len(work)} in {time.perf_counter() - begun:.0f} s", flush=True)
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    rows = []
    for (shape, settings), why in zip(work, refused, strict=True):
        row: dict[str, Any] = {"shape": list(shape), "config": settings, "why": why}
        rows.append(row)
        M, N, K = shape
        if not why:
            count = max(2, min(16, int(240e6 / (2 * (M * K + N * K)))))
            sets = [(torch.randn(M, K, dtype=torch.bfloat16, device="cuda"), torch.randn(N, K, dtype=torch.bfloat16,
                device="cuda")) for _ in range(count)]
            out = torch.full((M, N), float("nan"), dtype=torch.bfloat16, device="cuda")
            try:
                kernel = build(shape, settings, sms)
                none, none2 = out.new_empty(1), out.new_empty((1, 1))
                kernel(*sets[0], none, none2, out)
                want = sets[0][0] @ sets[0][1].T
                row["error"] = float((out.float() - want.float()).norm() / want.float().norm())
                if row["error"] < 1e-2:
                    timing = measure([partial(kernel, a, b, none, none2, out) for a, b in sets], bursts=3, sustain_s=0.0)
                    row.update(asdict(timing), tflop_s=2 * M * N * K / timing.burst_us / 1e6)
            except Exception as error:
                row["why"] = f"{type(error).__name__}: {str(error)[:200]}"
            del sets, out
        speed = f"- {row.get('error', '')} {row['why']}"
        if "tflop_s" in row:
            speed = f"{row['tflop_s']:7.1f} TFLOP/s {row['burst_us']:8.1f} us ±{row['burst_spread']:.3f}"
        print(f"{'x'.join(map(str, shape)):<18} {speed} {'#' * int(row.get('tflop_s', 0) / 20)} {settings}", flush=True)
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Sweeps, prints, writes the landscape."""
    parser = argparse.ArgumentParser()
    parser.add_argument("operator", nargs="?", choices=["gemm"], default="gemm")
    parser.add_argument("--out")
    parser.add_argument("--jobs", type=int, default=15)
    parser.add_argument("--compile")
    parser.add_argument("--picture", help="an SVG of the landscape")
    parser.add_argument("--write", action="store_true", help="keep the best configuration of each shape and class")
    args = parser.parse_args(argv)
    if args.compile:
        shape, settings = json.loads(args.compile)
        build(shape, settings, 132)
        return 0
    rows = sweep(args.jobs)
    best: dict[str, dict[str, Any]] = {}
    for shape in SHAPES:
        timed = [row for row in rows if row["shape"] == list(shape) and "burst_us" in row]
        if timed:
            best["x".join(map(str, shape))] = min(timed, key=lambda row: float(row["burst_us"]))["config"]
    print(json.dumps(best, indent=1))
    if args.write:
        from tilelab.kernels.gemm import shape_class

        record = {"device": torch_name(), "gemm": best, "gemm classes": landscape.best_of_classes(rows, shape_class)}
        write_bytes(TUNED, (json.dumps(record, indent=1) + "\n").encode())
    if args.picture:
        write_bytes(Path(args.picture), landscape.picture(rows).encode())
    if args.out:
        write_bytes(Path(args.out), (json.dumps({"schema": "tilelab.bench.landscape", "version": 1, "rows": rows},
            indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
