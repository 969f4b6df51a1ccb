"""The same kernels and inputs on this GPU, in the simulator and through their oracles: do the three agree?

    python tests/gpu/agreement.py [puzzles] [corpus] [--only REGEX] [--jobs N] [--record FILE]

The three puzzles' solutions are called as a learner calls them, on tensors of ``device="cuda"``; the corpus is captured, and its Programs compiled for this
device. Workers are processes, so a kernel that hangs or faults costs its own case only. Prints the agreement table; exit status 1 if a case disagrees.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "corpus")]
LIMIT_S = 45
#: what tensor cores do that the oracle does not: how much wider a case's bound is for the native run, and why
KNOWN = {
    "puzzle/25_tiled_gemm": (4.0, "float32 sums of tensor cores are cut off, not rounded: on inputs of one sign the error adds up"),
    "corpus/gemm_float8": (100.0, "the tensor cores keep about 14 bits of a sum of float8 products"),
}
PUZZLES = ("01_copy", "07_row_sum", "25_tiled_gemm")


def names(groups: list[str]) -> list[str]:
    """``puzzle/ID/NUMBER`` and ``corpus/NAME``."""
    found = []
    if "puzzles" in groups:
        found += [f"puzzle/{p}/{i}" for p in PUZZLES for i in range(len(puzzle_cases(p)))]
    if "corpus" in groups:
        from cases import cases

        found += [f"corpus/{c.name}" for c in cases()]
    return found


def puzzle_cases(name: str) -> list[dict[str, Any]]:
    """The visible sizes and those that are always graded, with the kind of their inputs."""
    import tomllib

    table = tomllib.loads((ROOT / "puzzles" / name / "puzzle.toml").read_text())["cases"]
    shown = [{"sizes": sizes} for sizes in table["visible"]]
    return [{"sizes": c["sizes"], "inputs": c.get("inputs", "random")} for c in shown + table["always"]]


def values(kind: str, shape: list[int], dtype: str, rng: np.random.Generator) -> np.ndarray:
    """Inputs of one kind: random, uniform, large, or with a NaN in every third row."""
    x = rng.uniform(0.5, 1.5, shape) if kind == "uniform" else rng.standard_normal(shape) * (1e3 if kind == "large" else 1.0)
    if kind == "nan":
        x[..., ::3] = np.where(np.arange(x[..., ::3].size).reshape(x[..., ::3].shape) % 7 == 0, np.nan, x[..., ::3])
    return x.astype(dtype)


def run_puzzle(name: str, number: int) -> dict[str, Any]:
    """One case of one puzzle."""
    import importlib.util
    import tomllib

    import torch

    import tilelab
    from tilelab.loading import load_module

    folder = ROOT / "puzzles" / name
    table = tomllib.loads((folder / "puzzle.toml").read_text())
    case = puzzle_cases(name)[number]
    rng = np.random.default_rng(number)
    arrays = [values(case["inputs"], [case["sizes"].get(s, s) for s in a["shape"]], a["dtype"], rng) for a in table["arguments"]]
    spec = importlib.util.spec_from_file_location("oracle", folder / "oracle.py")
    oracle = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(oracle)
    kernel = getattr(load_module(str(folder / "solution.py")), table["entry"])
    native = kernel(*[torch.tensor(a, device="cuda") for a in arrays]).cpu().numpy()
    simulated = tilelab.simulate(kernel, *arrays).result
    wide = [a.astype(np.float64) for a in arrays]
    want = oracle.oracle(*wide)
    atol = table["tolerance"]["rtol"] * (oracle.magnitude(*wide) if hasattr(oracle, "magnitude") else 0.0)
    return compare({"out": native}, {"out": np.asarray(simulated)}, {"out": want}, 0.0, atol, KNOWN.get(f"puzzle/{name}"))


def run_corpus(name: str) -> dict[str, Any]:
    """One case of the corpus."""
    from cases import cases

    import tilelab
    from tilelab.build import launch
    from tilelab.sim import simulate
    from tilelab.tensors import default_inputs

    case = next(c for c in cases() if c.name == name)
    program = tilelab.capture(case.load(), consts=case.consts)
    inputs = case.make_inputs() or default_inputs(program)
    want = case.expected({k: v for k, v in inputs.items() if v is not None})
    simulated = simulate(program, inputs).outputs
    native = launch(program, inputs)
    return compare(native, simulated, want, case.rtol, case.atol, KNOWN.get(f"corpus/{name}"))


def compare(
    native: dict[str, Any], simulated: dict[str, Any], want: dict[str, Any], rtol: float, atol: Any, known: tuple[float, str] | None = None
) -> dict[str, Any]:
    """Largest relative errors (to the oracle's norm), the fraction of equal bits, and whether all lie within the bounds."""
    wider, reason = known or (1.0, "")
    row: dict[str, Any] = {"native_error": 0.0, "simulated_error": 0.0, "difference": 0.0, "equal": 1.0, "native_ok": True, "simulated_ok": True, "agree": True}
    for name, reference in want.items():
        r = np.asarray(reference, np.float64)
        n, s = (np.asarray(side[name]).astype(np.float64).reshape(r.shape) for side in (native, simulated))
        row["native_ok"] &= bool(within(n, r, rtol * wider, atol * wider))
        row["simulated_ok"] &= bool(within(s, r, rtol, atol))
        row["agree"] &= bool(within(n, s, rtol * wider, atol * wider))
        row["native_error"] = max(row["native_error"], relative(n, r))
        row["simulated_error"] = max(row["simulated_error"], relative(s, r))
        row["difference"] = max(row["difference"], relative(n, s))
        row["equal"] = min(row["equal"], float(np.mean((n == s) | (np.isnan(n) & np.isnan(s)))) if n.size else 1.0)
    if reason:
        row["known"] = reason
    row["passed"] = row["native_ok"] and row["simulated_ok"] and row["agree"]
    return row


def within(a: np.ndarray, b: np.ndarray, rtol: float, atol: Any) -> bool:
    """Element by element, with NaN equal to NaN and infinities to themselves."""
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        return bool(np.all(same | (np.abs(a - b) <= atol + rtol * np.abs(b))))


def relative(a: np.ndarray, b: np.ndarray) -> float:
    """‖a − b‖ / ‖b‖ over what is finite in both."""
    known = np.isfinite(a) & np.isfinite(b)
    scale = np.linalg.norm(b[known])
    return float(np.linalg.norm(a[known] - b[known]) / scale) if scale else float(np.abs(a[known] - b[known]).max(initial=0.0))


def worker() -> int:
    """Runs the cases named on standard input; one line of JSON for each."""
    for line in sys.stdin:
        name = line.strip()
        if not name:
            break
        try:
            kind, *rest = name.split("/")
            row = run_puzzle(rest[0], int(rest[1])) if kind == "puzzle" else run_corpus(rest[0])
        except Exception as error:
            row = {"passed": False, "why": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        print("ROW " + json.dumps(row), flush=True)
    return 0


def drive(work: queue.Queue[str], rows: dict[str, Any]) -> None:
    """One worker process and its successors: takes cases until there are none left."""
    process = None
    while True:
        try:
            name = work.get_nowait()
        except queue.Empty:
            break
        if process is None or process.poll() is not None:
            env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
            process = subprocess.Popen(
                [sys.executable, __file__, "--worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env
            )
        begun = time.perf_counter()
        timer = threading.Timer(LIMIT_S, process.kill)
        timer.start()
        line = ""
        try:
            print(name, file=process.stdin, flush=True)
            while not line.startswith("ROW ") and (line := process.stdout.readline()):
                pass
        except OSError:
            line = ""
        timer.cancel()
        row = json.loads(line[4:]) if line.startswith("ROW ") else {"passed": False, "why": "the process ended, or took too long"}
        if not row["passed"]:  # a fault may have spoilt the device's context
            process.kill()
            process.wait()
            process = None
        rows[name] = {"case": name, "seconds": round(time.perf_counter() - begun, 1), **row}
        print(text(rows[name]), flush=True)
    if process is not None and process.poll() is None:
        process.stdin.close()
        process.wait(timeout=30)


def text(row: dict[str, Any]) -> str:
    """One row of the table."""
    if "why" in row:
        return f"FAIL {row['case']:<34} {row['why']}"
    head = f"{'ok  ' if row['passed'] else 'FAIL'} {row['case']:<34} native {row['native_error']:.1e}  simulator {row['simulated_error']:.1e}"
    return f"{head}  apart {row['difference']:.1e}  equal {row['equal']:7.2%}  {row['seconds']:.1f} s"


def main() -> int:
    """Runs the cases, prints the table, writes the record."""
    parser = argparse.ArgumentParser()
    parser.add_argument("groups", nargs="*", default=[])
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=12)
    parser.add_argument("--record")
    parser.add_argument("--worker", action="store_true")
    args = parser.parse_args()
    if args.worker:
        return worker()
    work: queue.Queue[str] = queue.Queue()
    wanted = [name for name in names(args.groups or ["puzzles", "corpus"]) if re.search(args.only, name)]
    for name in wanted:
        work.put(name)
    rows: dict[str, Any] = {}
    threads = [threading.Thread(target=drive, args=(work, rows)) for _ in range(min(args.jobs, len(wanted)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ordered = [rows[name] for name in wanted]
    print(f"{sum(row['passed'] for row in ordered)} of {len(ordered)} agree")
    if args.record:
        from tilelab.bench.gpu import environment

        record = {"schema": "tilelab.gpu.agreement", "version": 1, "environment": environment(), "rows": ordered}
        Path(args.record).write_text(json.dumps(record, indent=1) + "\n")
    return 0 if all(row["passed"] for row in ordered) else 1


if __name__ == "__main__":
    raise SystemExit(main())
