"""Will it run? A kernel against the limits and instructions of a GPU, and the smallest change after which it fits, found by trying it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from tilelab import ir, isa
from tilelab.analysis.budget import budget_findings
from tilelab.analysis.expr import const_int
from tilelab.finding import Finding, finding
from tilelab.machine import GPUS, Gpu, gpu, is_nvidia
from tilelab.ops import SPELLING, TILE_OPS, arg

#: Tile operations that are one hardware instruction by name.
_OPS = {"wgmma_gemm": "wgmma", "wgmma_gemm_sp": "wgmma", "tma_copy": "cp.async.bulk"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a kernel runs on a GPU.

    Attributes:
        gpu: The GPU's name.
        target: Its target.
        runs: Whether nothing stands against it.
        findings: What does (TL501, TL502, TL504).
        change: The smallest change after which nothing does, e.g. ``"num_stages=2"``; empty where it runs or none is known.
        tried: The change was made and the kernel looked at again.
    """

    gpu: str
    target: str
    runs: bool
    findings: tuple[Finding, ...]
    change: str = ""
    tried: bool = False


def verdicts(program: ir.Program, gpus: Sequence[Gpu] = GPUS) -> tuple[Verdict, ...]:
    """Return the verdict of each of ``gpus`` on a captured Program."""
    return tuple(verdict(program, g.name) for g in gpus)


def verdict(program: ir.Program, name: str) -> Verdict:
    """Return whether ``program`` runs on the GPU ``name`` (or that of a target).

    Raises:
        InputError: There is no such GPU.
    """
    g = gpu(name)
    found = problems(program, g)
    errors = [f for f in found if f.severity == "error"]
    if not errors:
        return Verdict(gpu=g.name, target=g.target, runs=True, findings=found)
    for text, edited in _changes(program):
        if not any(f.severity == "error" for f in problems(edited, g)):
            return Verdict(gpu=g.name, target=g.target, runs=False, findings=found, change=text, tried=True)
    return Verdict(gpu=g.name, target=g.target, runs=False, findings=found, change=errors[0].fix)


def problems(program: ir.Program, g: Gpu) -> tuple[Finding, ...]:
    """Return what stands against running ``program`` on ``g``."""
    return (*budget_findings(program, g.name), *instruction_findings(program, g))


def instruction_findings(program: ir.Program, g: Gpu) -> tuple[Finding, ...]:
    """Return a TL504 for each instruction that ``program`` needs and ``g`` lacks, once each."""
    found: dict[str, Finding] = {}
    for what, name, s in _needed(program):
        if name not in found and not _has(g, name, s):
            found[name] = _lacks(what, name, s, g)
    return tuple(found.values())


@lru_cache(maxsize=16)
def _needed(program: ir.Program) -> tuple[tuple[str, str, ir.Stmt | ir.Expr], ...]:
    return tuple((what, name, s) for s in ir.walk(program) for what, name in _needs(s))


# ---------------------------------------------------------------------------------------------- instructions
def _needs(s: ir.Stmt | ir.Expr) -> Iterator[tuple[str, str]]:
    """(as the user writes it, instruction) for what a node cannot do without."""
    if isinstance(s, ir.Tile):
        name = "tcgen05" if s.op.startswith("tcgen05") else _OPS.get(s.op, "")
        if name:
            yield SPELLING[s.op], name
        elif s.op == "gemm":
            dtype = _operand(s)
            if dtype in isa.MMA:
                yield f"T.gemm on {dtype}", isa.MMA[dtype]
    elif isinstance(s, ir.Call):
        name = isa.needed(s.op) or ""
        if name:
            yield s.op, name


def _operand(s: ir.Tile) -> str:
    a = arg(s.op, s.args, "a") if "a" in TILE_OPS[s.op] else None
    return a.buffer.dtype if isinstance(a, ir.Region) else ""


def _has(g: Gpu, name: str, s: ir.Stmt | ir.Expr) -> bool:
    if is_nvidia(g.target):
        return isa.supports(g.target, name)
    return isinstance(s, ir.Tile) and s.op == "gemm" and (_operand(s) in g.matrix_flops or _operand(s) in ("float32", "uint8"))


def _lacks(what: str, name: str, s: ir.Stmt | ir.Expr, g: Gpu) -> Finding:
    loc = s.loc if isinstance(s, ir.Stmt) else None
    where = isa.where(name)
    return finding(
        "TL504",
        f"{what} needs {name} ({isa.ISA[name].what}), which {g.name} ({g.target}) lacks: {where}.",
        fix=f"choose a GPU that has it ({where})" + (", or cast the operands to float16 first." if name.startswith("mma") else "."),
        file=loc.file if loc else None,
        line=loc.line if loc else None,
        evidence={"instruction": name, "gpu": g.name, "where": where},
    )


# --------------------------------------------------------------------------------------------------- changes
def _changes(program: ir.Program) -> Iterator[tuple[str, ir.Program]]:
    """Edited programs, the smallest change first."""
    stages = [n for n in (_stages(s) for s in ir.walk(program)) if n]
    for fewer in range(max(stages, default=1) - 1, 0, -1):
        yield f"num_stages={fewer}", edit(program, lambda s, n=fewer: _with_stages(s, n))  # type: ignore[misc]
    most = max((prod(const_int(e) or 1 for e in s.threads) for s in ir.walk(program) if isinstance(s, ir.Launch)), default=0)
    for fewer in (1024, 512, 256, 128):
        if fewer < most:
            yield f"threads={fewer}", edit(program, lambda s, n=fewer: _with_threads(s, n))  # type: ignore[misc]


def edit(program: ir.Program, change: Callable[[ir.Stmt], ir.Stmt]) -> ir.Program:
    """Return ``program`` with ``change`` made to every statement, outermost first."""

    def body(statements: ir.Body) -> ir.Body:
        return tuple(one(s) for s in statements)

    def one(s: ir.Stmt) -> ir.Stmt:
        s = change(s)
        if isinstance(s, ir.If):
            return replace(s, then=body(s.then), orelse=body(s.orelse))
        if isinstance(s, ir.Launch | ir.Block | ir.For | ir.While | ir.Attribute):
            return replace(s, body=body(s.body))
        return s

    return replace(program, body=body(program.body))


def _stages(s: object) -> int:
    n = s.attrs.get("num_stages") if isinstance(s, ir.For) else 0
    return n if isinstance(n, int) else const_int(n) or 0


def _with_stages(s: ir.Stmt, n: int) -> ir.Stmt:
    return replace(s, attrs={**s.attrs, "num_stages": n}) if isinstance(s, ir.For) and _stages(s) > n else s


def _with_threads(s: ir.Stmt, n: int) -> ir.Stmt:
    if not isinstance(s, ir.Launch) or prod(const_int(e) or 1 for e in s.threads) <= n:
        return s
    counts = (n, 1, 1)[: max(len(s.threads), 1)]
    return replace(s, threads=tuple(ir.Const(dtype="int32", value=c) for c in counts))
