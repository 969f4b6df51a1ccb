"""TileLang's refusals while lowering, as findings: layouts that conflict (TL402), no layout (TL403), the rest (TL702)."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tilelab import ir
from tilelab.analysis.runs import edit
from tilelab.compiler.lowering_words import told
from tilelab.compiler.provenance import decode
from tilelab.compiler.refusals import first_sentence, plain
from tilelab.compiler.staging import staged
from tilelab.finding import Finding, finding
from tilelab.layout import Layout
from tilelab.ops import SPELLING, TILE_OPS, arg, position

_CONFLICT = re.compile(r"Layout infer conflict between (?P<a>[\w.]+) and (?P<b>[\w.]+)(?P<where>[^\n]*)")
#: How TileLang says that it dealt the elements of a fill out to the threads and some were left over.
_DEALT = re.compile(r"Layout\(\((?P<dims>\d+(?:, \d+)*)\)[^\n]*has errors[^\n]*bijective")
_FRAGMENT = re.compile(r"^\s*(?P<role>loop|fragment|\w+)?\s*(?P<text>Fragment\(.*\))\s*$", re.MULTILINE)
_MARKER = re.compile(r"-->\s+(?P<file>.+?):(?P<line>\d+)(?::\d+)?\s*$", re.MULTILINE)
_BIN = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "floordiv", ast.Mod: "floormod"}
_POLICIES = ("Square", "FullRow", "FullCol")  # by value, as in T.GemmWarpPolicy
_GEMMS = frozenset(op for op in TILE_OPS if "gemm" in op)

#: What TileLang says where a target lacks something → how to say it. ``{target}`` is the target.
_LACKS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), said)
    for pattern, said in (
        (r"tl\.(?P<op>\w+) requires a target-specific implementation", "TileLang has no T.{op} for {target}"),
        (r"Unresolved call ir\.Op\(.*?name=\"(?:tl|tirx)\.(?P<op>\w+)\"", "TileLang makes no code of T.{op} for {target}"),
        (r"Unknown Metal storage scope `(?P<op>shared\.\w*barrier)`", "Metal has no mbarriers ({op})"),
        (r"The layout for fragment (?P<op>\w+) can not be inferred", "TileLang finds no layout for the fragment {op} on {target}"),
        (r"\[TileLang Semantic Check\] (?P<op>[^\n]*?)\.?(?:\n|$)", "{op}"),
    )
)

#: Tells whether an edited program gets layouts: remedies are offered only if they work.
Tries = Callable[[ir.Program], bool]


def lowering_finding(error: BaseException, program: ir.Program, target: str, tries: Tries) -> Finding:
    """Return the finding for an error that TileLang raised while lowering ``program``."""
    text = str(error)
    conflict = _CONFLICT.search(text)
    if conflict:
        return _conflict(conflict, text, program, tries)
    if "no available layout" in text:
        return _no_layout(program, tries, list(_spaces(program)))
    dealt = _DEALT.search(text)
    elements = _product(tuple(map(int, dealt["dims"].split(", ")))) if dealt else 0
    fills = [s for s in _spaces(program, fills=True) if _product(s.shape) == elements]
    if fills:
        return _no_layout(program, tries, fills)
    if "Mixed-dtype GEMM" in text:
        mixed = next(_mixed(program), None)
        if mixed is not None:
            return mixed
    known = told(text, program, target)
    if known is not None:
        return known
    place = _MARKER.search(text)
    loc = decode(place["file"], int(place["line"])) if place else None
    said = _lack(text, target) or first_sentence(ValueError(text[: place.start()] if place else text))
    fix = "change that line, or choose another target." if loc else "write it with what this target has, or choose another target."
    loc = loc or next((s.loc for s in ir.walk(program) if isinstance(s, ir.Launch)), None)
    return finding(
        "TL702",
        f"TileLang cannot lower this kernel for {target}: {said}.",
        fix=fix,
        file=loc.file if loc else None,
        line=loc.line if loc else None,
        evidence={"target": target, "said": plain(text)[:2000]},
    )


def _lack(text: str, target: str) -> str:
    """What the target lacks, in plain words, where TileLang's are not."""
    found = next(((m, said) for pattern, said in _LACKS if (m := pattern.search(text)) is not None), None)
    return found[1].format(target=target, op=found[0]["op"]) if found else ""


def _mixed(program: ir.Program) -> Iterator[Finding]:
    """The gemms whose operands have dtypes that no tensor core multiplies."""
    for n in ir.walk(program):
        if isinstance(n, ir.Tile) and n.op in _GEMMS:
            a, b = [r.buffer for r in n.args if isinstance(r, ir.Region)][:2]
            if a.dtype != b.dtype:
                yield finding(
                    "TL701",
                    f"{SPELLING[n.op]} does not fit its operands: {a.name} is {a.dtype} but {b.name} is {b.dtype}.",
                    fix="give both the same dtype: T.copy one of them into a buffer of the other's dtype first.",
                    file=n.loc.file if n.loc else None,
                    line=n.loc.line if n.loc else None,
                    evidence={"dtypes": [a.dtype, b.dtype]},
                )


# -------------------------------------------------------------------------------------------------- conflicts
def _conflict(match: re.Match[str], text: str, program: ir.Program, tries: Tries) -> Finding:
    a, b = match["a"], match["b"]
    first, second = _user(program, a), _user(program, b)
    loc = _where_both(program, a, b) or (second.loc if second else None) or _alloc(program, b)
    maps = [_parsed(m["text"]) for m in _FRAGMENT.finditer(text)][:2]
    evidence: dict[str, Any] = {
        "buffers": [a, b],
        "maps": [_map_evidence(name, m, raw) for name, m, raw in zip((a, b), maps, _raw(text), strict=False)],
        "text": _line_text(program, loc),
        "texts": {name: _line_text(program, op.loc) for name, op in ((a, first), (b, second)) if op is not None},
        "lines": {name: op.loc.line for name, op in ((a, first), (b, second)) if op is not None and op.loc is not None},
    }
    part = _first_difference(maps)
    other = b if second is not None else a
    evidence["remedies"] = [words for words, edited in _remedies(program, other) if tries(edited)]
    if part is not None:
        evidence["parts_at"] = part
    wants = " and ".join(_want(name, op) for name, op in ((a, first), (b, second)) if op is not None)
    message = f"{a} and {b} need different layouts, and a parallel loop uses both"
    if part is not None:
        one, two = map(threads_text, part["threads"])
        message += f": element {tuple(part['index'])} is with {one} in one and {two} in the other"
    if wants:
        message += f" ({wants})"
    fix = "; or ".join(evidence["remedies"][:2]) or f"stage {other} in shared memory, or give every T.gemm the same policy"
    return finding(
        "TL402", f"{message}.", fix=f"{fix}.", file=loc.file if loc else None, line=loc.line if loc else None, evidence=evidence
    )  # fmt: skip


def _line_text(program: ir.Program, loc: ir.SourceLoc | None) -> str:
    """The source line at ``loc``, where it is known."""
    lines = program.sources.get(loc.file, "").splitlines() if loc else []
    return lines[loc.line - 1].strip() if loc and 0 < loc.line <= len(lines) else ""


def _remedies(program: ir.Program, name: str) -> Iterator[tuple[str, ir.Program]]:
    """Edited programs that may have layouts: ``name`` staged in shared memory; one policy for every gemm; other numbers of threads."""
    yield (
        f"stage {name} in shared memory: allocate {name}_shared with T.alloc_shared, T.copy into it, and give {name}_shared to the T.gemm",
        staged(program, name),
    )
    policies = [arg(n.op, n.args, "policy") for n in ir.walk(program) if isinstance(n, ir.Tile) and n.op in _GEMMS]
    if len(policies) > 1:
        for value, name in enumerate(_POLICIES):
            yield f"use policy=T.GemmWarpPolicy.{name} in every T.gemm", edit(program, partial(_with_policy, value=value))
    threads = _threads(next((s for s in ir.walk(program) if isinstance(s, ir.Launch)), None))
    for n in (128, 64, 32):
        if n < threads:
            yield f"use threads={n}", _with_threads(program, n)


def _with_policy(s: ir.Stmt, value: int) -> ir.Stmt:
    if not isinstance(s, ir.Tile) or s.op not in _GEMMS:
        return s
    at = position(s.op, "policy")
    return replace(s, args=(*s.args[:at], ir.Const(dtype="int32", value=value), *s.args[at + 1 :]))


def _want(name: str, op: ir.Tile) -> str:
    line = f" on line {op.loc.line}" if op.loc else ""
    return f"{SPELLING[op.op]}{line} fixes that of {name}"


def _user(program: ir.Program, name: str) -> ir.Tile | None:
    """The gemm that fixes the layout of the fragment called ``name``."""
    for n in ir.walk(program):
        if isinstance(n, ir.Tile) and n.op in _GEMMS and any(isinstance(r, ir.Region) and r.buffer.name == name for r in n.args):
            return n
    return None


def _alloc(program: ir.Program, name: str) -> ir.SourceLoc | None:
    for n in ir.walk(program):
        for b in n.allocs if isinstance(n, ir.Block) else ():
            if b.name == name:
                return b.loc
    return None


def _where_both(program: ir.Program, a: str, b: str) -> ir.SourceLoc | None:
    for n in ir.walk(program):
        if isinstance(n, ir.For) and n.kind == "parallel" and {a, b} <= _names(n):
            return n.loc
    return None


def _names(s: ir.Stmt) -> set[str]:
    return {n.buffer.name for n in ir.walk(s) if isinstance(n, ir.Load | ir.Region | ir.Store)}


def _raw(text: str) -> list[str]:
    return [m["text"] for m in _FRAGMENT.finditer(text)]


def _map_evidence(name: str, m: Layout | None, raw: str) -> dict[str, Any]:
    out: dict[str, Any] = {"buffer": name, "text": raw}
    if m is not None:
        out["shape"] = list(m.shape)
        out["threads"] = m.threads
        out["owners"] = m.threads_of()[..., 0].tolist() if m.threads_of()[..., 0].size <= 65536 else None
    return out


def _first_difference(maps: list[Layout | None]) -> dict[str, Any] | None:
    if len(maps) != 2 or maps[0] is None or maps[1] is None or maps[0].shape != maps[1].shape:
        return None
    import numpy as np

    one, two = (m.threads_of() for m in maps if m is not None)
    apart = np.argwhere(one[..., 0] != two[..., 0])
    if not len(apart) and one.shape[-1] != two.shape[-1]:  # the same first owners, but more copies in one
        apart = np.zeros((1, one.ndim - 1), dtype=np.int64)
    if not len(apart):
        return None
    index = tuple(int(i) for i in apart[0])
    return {"index": list(index), "threads": [sorted({int(t) for t in o[index]}) for o in (one, two)]}


def threads_text(threads: list[int]) -> str:
    """Return ``thread 3``, ``threads 3 and 7``, or the first of many."""
    if len(threads) == 1:
        return f"thread {threads[0]}"
    if len(threads) > 4:
        return f"threads {threads[0]}, {threads[1]}… ({len(threads)} copies)"
    return f"threads {', '.join(map(str, threads[:-1]))} and {threads[-1]}"


def _parsed(text: str) -> Layout | None:
    """Read TileLang's print of a fragment: ``Fragment((64, 128) -> (32,), replicate: 1, thread: 256, …)``."""
    try:
        shape = ast.literal_eval(re.search(r"Fragment\((\([^)]*\)) ->", text)[1])  # type: ignore[index]
        copies = int(re.search(r"replicate: (\d+)", text)[1])  # type: ignore[index]
        threads = int(re.search(r"thread: (\d+)", text)[1])  # type: ignore[index]
        thread = re.search(r"forward_thread: (.*?), forward_index: \(", text)[1]  # type: ignore[index]
        index = re.search(r"forward_index: (\(.*?,?\))(?:, thread_range|\)$)", text)[1]  # type: ignore[index]
        params = tuple(ir.Var(dtype="int32", name=f"_{n}") for n in "ijklmn"[: len(shape)])
        rep = ir.Var(dtype="int32", name="_rep")
        env = {v.name: v for v in (*params, rep)}
        tree = ast.parse(index, mode="eval").body
        outs = tree.elts if isinstance(tree, ast.Tuple) else [tree]
        return Layout(
            name="", kind="fragment", shape=tuple(shape), dtype="", scope="local.fragment", threads=threads,
            map=ir.IndexMap(
                params=params, shape=tuple(ir.Const(dtype="int32", value=n) for n in shape), index=tuple(_expr(o, env) for o in outs),
                thread=_expr(ast.parse(thread, mode="eval").body, env), replicate=rep if copies > 1 else None, replicate_extent=copies,
            ),
        )  # fmt: skip
    except (TypeError, ValueError, SyntaxError, KeyError):
        return None


def _expr(tree: ast.expr, env: dict[str, ir.Var]) -> ir.Expr:
    if isinstance(tree, ast.Constant) and isinstance(tree.value, int):
        return ir.Const(dtype="int32", value=tree.value)
    if isinstance(tree, ast.Name):
        return env[tree.id]
    if isinstance(tree, ast.BinOp):
        return ir.Bin(dtype="int32", op=_BIN[type(tree.op)], a=_expr(tree.left, env), b=_expr(tree.right, env))
    raise ValueError(ast.dump(tree))


# ------------------------------------------------------------------------------------------------- no layout
@dataclass(frozen=True, slots=True)
class _Space:
    """A parallel iteration space over fragments: what it is, where it stands, and its extents."""

    what: str
    loc: ir.SourceLoc | None
    shape: tuple[int, ...]
    buffers: tuple[str, ...]


def _no_layout(program: ir.Program, tries: Tries, spaces: list[_Space]) -> Finding:
    launch = next((s for s in ir.walk(program) if isinstance(s, ir.Launch)), None)
    threads = _threads(launch)
    guilty = [s for s in spaces if not _even(_product(s.shape), threads)] or spaces
    space = next((s for s in guilty if s.what == "T.Parallel"), guilty[0]) if guilty else None
    if space is None:
        return finding("TL403", f"TileLang finds no layout for this kernel with {threads} threads.", fix="try another number of threads.")
    extent = _product(space.shape)
    padded = -(-extent // threads) * threads
    remedies = [f"{n} threads" for n in (32, 64, 128, 256, 512) if n != threads and launch is not None and tries(_with_threads(program, n))]
    fix = (
        f"make it {padded} wide (pad, and guard the tail)"
        if len(space.shape) == 1
        else f"pad its last extent so that {threads} threads divide it"
    )
    if remedies:
        fix += f", or use {remedies[0]}"
    names = f" over {', '.join(space.buffers)}" if space.buffers else ""
    shape = f"({', '.join(map(str, space.shape))}{',' if len(space.shape) == 1 else ''})"
    return finding(
        "TL403",
        f"No layout fits {space.what} of shape {shape}{names} on {threads} threads: {extent} elements cannot be dealt out evenly.",
        fix=f"{fix}.",
        file=space.loc.file if space.loc else None,
        line=space.loc.line if space.loc else None,
        evidence={"shape": list(space.shape), "threads": threads, "buffers": list(space.buffers), "padded": padded, "works_with": remedies},
    )


def _even(extent: int, threads: int) -> bool:
    return extent % threads == 0 or threads % extent == 0


def _product(shape: tuple[int, ...]) -> int:
    n = 1
    for s in shape:
        n *= s
    return n


def _threads(launch: ir.Launch | None) -> int:
    return _product(tuple(int(e.value) for e in launch.threads if isinstance(e, ir.Const))) if launch else 0


def _spaces(program: ir.Program, *, fills: bool = False) -> Iterator[_Space]:
    """The spaces over fragments, which need a layout; with ``fills``, those of fills alone, of shared memory too."""
    inner: set[int] = set()
    for n in ir.walk(program):
        if isinstance(n, ir.For) and n.kind == "parallel" and id(n) not in inner and not fills:
            shape: list[int] = []
            at: Any = n
            while isinstance(at, ir.For) and at.kind == "parallel":
                inner.add(id(at))
                shape.append(int(at.extent.value) if isinstance(at.extent, ir.Const) else 0)
                at = at.body[0] if len(at.body) == 1 else None
            fragments = _fragments(n)
            if fragments and all(shape):
                yield _Space("T.Parallel", n.loc, tuple(shape), fragments)
        elif isinstance(n, ir.Tile) and n.op in (("fill",) if fills else ("copy", "fill")):
            for r in n.args:
                if isinstance(r, ir.Region) and (fills or r.buffer.scope == "local.fragment"):
                    extents = tuple(int(e.value) for e in r.extents if isinstance(e, ir.Const))
                    if len(extents) == len(r.extents):
                        yield _Space(SPELLING[n.op], n.loc, extents, (r.buffer.name,))


def _fragments(s: ir.Stmt) -> tuple[str, ...]:
    found = (n.buffer for n in ir.walk(s) if isinstance(n, ir.Load | ir.Store | ir.Region))
    return tuple(dict.fromkeys(b.name for b in found if b.scope == "local.fragment"))


def _with_threads(program: ir.Program, n: int) -> ir.Program:
    """Return the program with every kernel launched with ``n`` threads."""

    def edit(body: ir.Body) -> ir.Body:
        return tuple(one(s) for s in body)

    def one(s: ir.Stmt) -> ir.Stmt:
        if isinstance(s, ir.Launch):
            counts = (n, 1, 1)[: max(len(s.threads), 1)]
            attrs = {k: v for k, v in s.attrs.items() if k != "threads_defaulted"}
            return replace(s, threads=tuple(ir.Const(dtype="int32", value=c) for c in counts), attrs=attrs)
        if isinstance(s, ir.Block | ir.For | ir.Attribute):
            return replace(s, body=edit(s.body))
        return s

    return replace(program, body=edit(program.body))
