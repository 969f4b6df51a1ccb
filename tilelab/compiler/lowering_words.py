"""Errors of TileLang's lowering that name no line, in the learner's words: which operation, on which line, what to change."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from tilelab import ir
from tilelab.finding import Finding, finding
from tilelab.ops import SPELLING

_GEMM = ("gemm", "gemm_sp", "wgmma_gemm", "tcgen05_gemm")


def told(text: str, program: ir.Program, target: str) -> Finding | None:
    """Return the finding that tells ``text``, what TileLang said while it lowered ``program``; None where nothing better is known."""
    for pattern, make in _WORDS:
        found = pattern.search(text)
        if found is not None:
            code, message, fix, loc = make(found, program, target)
            loc = loc or next((s.loc for s in ir.walk(program) if isinstance(s, ir.Launch)), None)
            where: dict[str, Any] = {"file": loc.file, "line": loc.line} if loc is not None else {}
            return finding(code, message, fix=fix, evidence={"target": target, "said": found[0][:500]}, **where)
    return None


_Told = tuple[str, str, str, ir.SourceLoc | None]


def _tiles(program: ir.Program, ops: tuple[str, ...]) -> Iterator[ir.Tile]:
    return (n for n in ir.walk(program) if isinstance(n, ir.Tile) and n.op in ops)


def _regions(tile: ir.Tile) -> list[ir.Region]:
    return [r for r in tile.args if isinstance(r, ir.Region)]


def _scope(found: re.Match[str], program: ir.Program, target: str) -> _Told:
    place = "ABC".find(found["which"])
    for tile in _tiles(program, _GEMM):
        regions = _regions(tile)
        if 0 <= place < len(regions) and regions[place].buffer.scope == found["scope"]:
            name = regions[place].buffer.name
            message = f"{SPELLING[tile.op]} adds into a fragment, and {name} lies in {found['scope']} memory."
            return "TL701", message, f"T.alloc_fragment for the sum, and T.copy it to {name} at the end.", tile.loc
    return "TL701", f"{found['which']} of T.gemm must be a fragment, not {found['scope']}.", "T.alloc_fragment", None


def _multiple(found: re.Match[str], program: ir.Program, target: str) -> _Told:
    axis, size, step = found["axis"], int(found["size"]), int(found["step"])
    tile = next((t for t in _tiles(program, _GEMM) if any(_is(e, size) for r in _regions(t) for e in r.extents)), None)
    op = SPELLING[tile.op] if tile is not None else "T.gemm"
    message = f"{op}: {axis} is {size}, and the tensor cores of {target} take only multiples of {step}."
    return (
        "TL701",
        message,
        f"make {axis} of the tile {step} or a multiple of it, and pad what is missing with zeros.",
        tile.loc if tile else None,
    )


def _is(extent: ir.Expr, size: int) -> bool:
    return isinstance(extent, ir.Const) and extent.value == size


def _argument(found: re.Match[str], program: ir.Program, target: str) -> _Told:
    op = found["op"]
    tile = next((t for t in _tiles(program, tuple(SPELLING)) if SPELLING[t.op] == op or f"T.{t.op}" == op), None)
    odd = [a.value for a in tile.args if isinstance(a, ir.Str)] if tile is not None else []
    which = f" {odd[0]!r}" if odd else ""
    message = f"{op} is given an argument{which} of a kind that it does not take."
    return "TL702", message, f"see what {op} takes, e.g. policy=T.GemmWarpPolicy.FullRow.", tile.loc if tile else None


def _no_map(found: re.Match[str], program: ir.Program, target: str) -> _Told:
    fragments = (n for n in ir.walk(program) if isinstance(n, ir.For) and n.kind == "parallel" and any(map(_odd_read, ir.walk(n))))
    loop = next(fragments, None)
    message = "a fragment is read at a computed index, and no way to share it out gives each thread the elements that it reads."
    return (
        "TL403",
        message,
        "T.copy the fragment into a shared buffer and read that, or index it by the loop variables alone.",
        loop.loc if loop else None,
    )


def _odd_read(n: Any) -> bool:
    return isinstance(n, ir.Load) and n.buffer.scope == "local.fragment" and any(not isinstance(i, ir.Var | ir.Const) for i in n.indices)


def _two_places(found: re.Match[str], program: ir.Program, target: str) -> _Told:
    name, one, two = found["name"], found["one"], found["two"]
    loop = next(
        (n for n in ir.walk(program) if isinstance(n, ir.For) and n.kind == "parallel" and _loads(n, name) > 1), None
    )  # fmt: skip
    message = (
        f"a parallel loop uses the fragment {name} at {one} and at {two}; each element lies with one thread, so both cannot be its own."
    )
    return "TL402", message, f"copy {name} into shared memory and read one of them there, or split the loop.", loop.loc if loop else None


def _loads(n: ir.Stmt, name: str) -> int:
    return sum(isinstance(m, ir.Load | ir.Store) and m.buffer.name == name for m in ir.walk(n))


def _lacks(found: re.Match[str], program: ir.Program, target: str) -> _Told:
    ops = {"WGMMA": "wgmma_gemm", "TCGEN5MMA": "tcgen05_gemm"}
    tile = next(iter(_tiles(program, (ops.get(found["unit"], ""),))), None)
    gpu = "Hopper (sm_90)" if found["unit"] == "WGMMA" else "Blackwell (sm_100)"
    if target.startswith("sm_90" if found["unit"] == "WGMMA" else "sm_10"):
        message = (
            f"{found['op']} cannot be made of these operands: it takes tiles of shared memory, M a multiple of 64, and four warps in step."
        )
        return (
            "TL701",
            message,
            "see the shapes and scopes of its operands, or T.gemm, which takes another instruction then.",
            tile.loc if tile else None,
        )
    message = f"{found['op']} needs {gpu}, four warps in step and operands of the right kind; here it is lowered for {target}."
    return (
        "TL504",
        message,
        f"T.gemm, which takes the instruction that the GPU has, or another target than {target}.",
        tile.loc if tile else None,
    )


def _outside(found: re.Match[str], program: ir.Program, target: str) -> _Told:
    first = next((s for s in program.body if not isinstance(s, ir.Launch)), None)
    while isinstance(first, ir.Block) and first.body:
        first = next((s for s in first.body if not isinstance(s, ir.Launch | ir.Bind)), first.body[0])
    message = f"{found['name']} is used outside a kernel, where only the host is."
    return "TL702", message, "put the statements into `with T.Kernel(…):`.", first.loc if first is not None else None


_WORDS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], ir.Program, str], _Told]], ...] = tuple(
    (re.compile(pattern), make)
    for pattern, make in {
        r"local_buf (?P<which>[ABC]) must be a fragment, but got (?P<scope>[\w.]+)": _scope,
        r"(?P<axis>[MNK]) must be divisible by (?P<step>\d+), but got (?P<size>\d+)": _multiple,
        r"bad_optional_access while parsing tile op call: (?P<op>T\.\w+)": _argument,
        r"Cannot represent as IterMap": _no_map,
        r"(?P<op>T\.\w+)\(\) requires \w+ (?P<unit>WGMMA|TCGEN5MMA)": _lacks,
        r"Variable `(?P<name>\w+)` is directly accessed by host memory": _outside,
        r"(?m)(?P<name>\w+): (?P<one>\([^()\n]*\)) and (?P<two>\([^()\n]*\))\s*$": _two_places,
    }.items()
)
