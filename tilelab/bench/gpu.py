"""Timing on a real GPU: burst and sustained, rotated random inputs, accuracy first, one record a run.

*Burst* is the median of 8 replays of a CUDA graph of at least 6 ms, each after 80 ms of idling: what a kernel does before power capping.
*Sustained*
is back to back for 0.45 s, the median of the second half: what it does after. Inputs rotate through sets that are together several times
the L2, and
are random: zeros run faster. Nothing is timed before its result is within the dtype's bound of a float64 reference.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tilelab.files import write_bytes

SCHEMA = "tilelab.bench.gpu"
VERSION = 1
RECORDS = Path(__file__).parent / "records"
#: name of a family of cases → the module that makes them (``cases() -> list[Case]``)
FAMILIES = {
    "gemm": "tilelab.bench.gpu_gemm",
    "attention": "tilelab.bench.gpu_attention",
    "backward": "tilelab.bench.gpu_backward",
    "mla": "tilelab.bench.gpu_mla",
    "sparse": "tilelab.bench.gpu_sparse",
    "fp8": "tilelab.bench.gpu_fp8",
    "grouped": "tilelab.bench.gpu_grouped",
    "decode": "tilelab.bench.gpu_decode",
    "two_four": "tilelab.bench.gpu_two_four",
    "narrow": "tilelab.bench.gpu_narrow",
    "indexer": "tilelab.bench.gpu_indexer",
}
Launch = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """One candidate's times, in microseconds a launch; spread is (max − min) / median of the bursts."""

    burst_us: float
    burst_spread: float
    sustained_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One problem, ready to run: a launch for each rotated input set, for ours and for each peer."""

    ours: Sequence[Launch]
    peers: dict[str, Sequence[Launch]]
    error: Callable[[], float]
    config: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One problem to time: what it costs at least, the bound of its error, the bar and the aim against ``rival`` (a name of a peer).

    A rival that does other work (``rival_flops`` of it) is compared by operations a second.
    """

    family: str
    name: str
    flops: float
    bytes: float
    bound: float
    rival: str
    bar: float
    aim: float
    make: Callable[[], Work] = field(repr=False)
    rival_flops: float = 0.0


def pick_repeats(launches: Sequence[Launch], at_least_ms: float) -> int:
    """How often a round of all launches fits into a graph of ``at_least_ms``."""
    import torch

    for _ in range(2):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for launch in launches:
            launch()
        end.record()
        torch.cuda.synchronize()
    once = max(start.elapsed_time(end), 1e-3 * len(launches))
    return max(1, int(at_least_ms / once * 1.3) + 1)


def capture(launches: Sequence[Launch], repeats: int) -> Any:
    """A CUDA graph of ``repeats`` rounds."""
    import torch

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            for launch in launches:
                launch()
    return graph


def measure(launches: Sequence[Launch], *, bursts: int = 8, burst_ms: float = 6.0, idle_s: float = 0.08, sustain_s: float = 0.45) -> Timing:
    """Times one candidate as the module's docstring says."""
    import torch

    repeats = pick_repeats(launches, burst_ms)
    graph = capture(launches, repeats)
    graph.replay()
    torch.cuda.synchronize()
    count = repeats * len(launches)

    def replay() -> float:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1e3 / count

    times = []
    for _ in range(bursts):
        time.sleep(idle_s)
        times.append(replay())
    burst = statistics.median(times)
    sustained = 0.0
    if sustain_s > 0:
        held, begun = [], time.perf_counter()
        while time.perf_counter() - begun < sustain_s:
            held.append(replay())
        sustained = statistics.median(held[len(held) // 2 :])
    return Timing(burst_us=burst, burst_spread=(max(times) - min(times)) / burst, sustained_us=sustained)


def relative_error(out: Any, reference: Any) -> float:
    """‖out − reference‖ / ‖reference‖ in float64; infinite where a value is not finite."""
    import torch

    out, reference = out.double(), reference.double()
    if not bool(torch.isfinite(out).all()):
        return float("inf")
    return float((out - reference).norm() / reference.norm().clamp_min(1e-300))


#: inputs that accuracy is checked on: the last one is what is timed
DRAWS = ("large", "one sign", "heavy tail", "random")


def draw(kind: str, *shape: int, dtype: Any = None) -> Any:
    """A tensor on the GPU: normal; of large magnitude; of one sign, where sums grow; or with a few giants among small ones."""
    import torch

    dtype = dtype or torch.float32
    if kind == "one sign":
        return torch.rand(*shape, dtype=dtype, device="cuda")
    x = torch.randn(*shape, dtype=dtype, device="cuda")
    if kind == "large":
        return x.mul_(4 if dtype == torch.float16 else 2.0**40)  # products must stay within float16 there
    return x.mul_(torch.randn(*shape, dtype=dtype, device="cuda").exp_() / 16) if kind == "heavy tail" else x


def worst_error(tensors: Sequence[Any], error: Callable[[], float]) -> float:
    """The largest of ``error()`` while ``tensors`` hold each kind of draw in turn; they end random."""
    errors = []
    for kind in DRAWS:
        for tensor in tensors:
            tensor.copy_(draw(kind, *tensor.shape, dtype=tensor.dtype))
        errors.append(error())
    return max(errors)


def sets_for(bytes_a_set: float, factor: float = 4.0, most: int = 16) -> int:
    """How many input sets rotate so that one round is ``factor`` times the L2."""
    import torch

    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    return max(2, min(most, int(factor * l2 / bytes_a_set) + 1))


def ceilings() -> dict[str, Any]:
    """What this GPU gives at best in the same run: a copy, and cuBLAS on 8192³ bfloat16."""
    import torch

    source = torch.empty(1 << 30, dtype=torch.float32, device="cuda").normal_()
    target = torch.empty_like(source)
    copy = measure([lambda: target.copy_(source)], bursts=3, sustain_s=0.0, burst_ms=20)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    time.sleep(0.08)
    start.record()
    for _ in range(4):
        target.copy_(source)
    end.record()
    torch.cuda.synchronize()
    stream_us = start.elapsed_time(end) / 4 * 1e3
    sets = [tuple(torch.randn(8192, 8192, dtype=torch.bfloat16, device="cuda") for _ in range(2)) for _ in range(2)]
    out = torch.empty(8192, 8192, dtype=torch.bfloat16, device="cuda")
    product = measure([partial(torch.matmul, a, b.T, out=out) for a, b in sets])
    return {
        "copy_tb_s": 8 * 2**30 / min(copy.burst_us, stream_us) / 1e6,
        "bf16_tflop_s": 2 * 8192**3 / product.burst_us / 1e6,
        "bf16_tflop_s_sustained": 2 * 8192**3 / product.sustained_us / 1e6,
    }


def environment() -> dict[str, str]:
    """Device, driver and versions, for the record."""
    import torch

    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True, check=False
    )
    versions = {"python": platform.python_version(), "torch": torch.__version__, "cuda": str(torch.version.cuda)}
    for package in ("tilelang", "fa3-fwd", "flashinfer-python", "sgl-deep-gemm"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {"device": torch.cuda.get_device_name(0), "driver": driver.stdout.strip(), "date": time.strftime("%Y-%m-%d"), **versions}


def run_case(case: Case) -> dict[str, Any]:
    """Checks, then times ours and every peer; one row of the record."""
    import torch

    row: dict[str, Any] = {
        "family": case.family,
        "name": case.name,
        "bar": case.bar,
        "aim": case.aim,
        "rival": case.rival,
        "bound": case.bound,
    }
    work = case.make()
    row["config"] = work.config
    row["error"] = work.error()
    torch.cuda.synchronize()
    if not row["error"] <= case.bound:
        row["failed"] = f"error {row['error']:.3g} is over the bound {case.bound:.3g}"
        return row
    ours = measure(work.ours)
    peers = {name: measure(launches) for name, launches in work.peers.items()}
    row["ours"] = asdict(ours)
    row["peers"] = {name: asdict(timing) for name, timing in peers.items()}
    row["tflop_s"] = case.flops / ours.burst_us / 1e6
    row["tb_s"] = case.bytes / ours.burst_us / 1e6
    if case.rival in peers:
        share = case.flops / case.rival_flops if case.rival_flops else 1.0
        row["ratio"] = share * peers[case.rival].burst_us / ours.burst_us
        row["ratio_sustained"] = share * peers[case.rival].sustained_us / ours.sustained_us
    return row


def line(row: dict[str, Any]) -> str:
    """One row as text."""
    if "ours" not in row:
        return f"{row['family']:<10} {row['name']:<34} {row.get('failed', 'not run')}"
    peers = "  ".join(f"{name} {timing['burst_us']:.1f}|{timing['sustained_us']:.1f}" for name, timing in row["peers"].items())
    ratio = f"{row['ratio']:.3f} (bar {row['bar']:.2f}) sustained {row['ratio_sustained']:.3f}" if "ratio" in row else "no rival"
    ours = row["ours"]
    times = f"{ours['burst_us']:9.1f}|{ours['sustained_us']:9.1f} us ±{ours['burst_spread']:.3f}"
    speed = f"{row['tflop_s']:7.1f} TFLOP/s {row['tb_s']:5.2f} TB/s"
    return f"{row['family']:<10} {row['name']:<34} {times} {speed}  err {row['error']:.1e}  ratio {ratio}  [{peers}] {row['config']}"


def load_cases(families: Sequence[str]) -> list[Case]:
    """The cases of the named families."""
    return [case for name in families for case in importlib.import_module(FAMILIES[name]).cases()]


def main(argv: Sequence[str] | None = None) -> int:
    """``python -m tilelab.bench.gpu [FAMILY…] [--out FILE]``: prints a table and writes a record."""
    parser = argparse.ArgumentParser(description="time the library's operators on this GPU")
    parser.add_argument("families", nargs="*", default=[], metavar="FAMILY", help=f"{', '.join(FAMILIES)} (default: all)")
    parser.add_argument("--out", default=None, help="the record to write (default: a file named by date in the package)")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    args = parser.parse_args(argv)
    rows = []
    top = ceilings()
    print("ceilings", {key: round(value, 2) for key, value in top.items()}, flush=True)
    out = Path(args.out) if args.out else RECORDS / f"gpu-{time.strftime('%Y-%m-%d')}.json"
    for case in load_cases(args.families or list(FAMILIES)):
        if args.only in case.name:
            try:
                row = run_case(case)
            except Exception as error:  # one case that breaks must not cost the run
                row = {"family": case.family, "name": case.name, "failed": f"{type(error).__name__}: {str(error)[:300]}"}
            if "tflop_s" in row:
                row["fraction"] = max(row["tflop_s"] / top["bf16_tflop_s"], row["tb_s"] / top["copy_tb_s"])
            rows.append(row)
            print(line(row), flush=True)
            record = {"schema": SCHEMA, "version": VERSION, "environment": environment(), "ceilings": top, "rows": rows}
            write_bytes(out, (json.dumps(record, indent=1) + "\n").encode())  # after each row: a run that is cut short keeps what it has
    return 0 if all("failed" not in row for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
