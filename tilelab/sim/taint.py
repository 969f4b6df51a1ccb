"""Which variables and per-thread buffers differ between the threads of a block, and what a parallel loop makes private."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilelab import ir

#: Calls whose value differs between threads, whatever their arguments.
THREAD_OPS = frozenset(
    {
        "tl.get_lane_idx", "tl.get_warp_idx", "tl.get_warp_idx_sync", "tl.get_warp_group_idx", "tl.tl_shuffle_elect", "tl.rng_rand",
        "tl.rng_rand_float", "tl.activemask", "tl.ballot", "tl.warp_reduce_sum", "tl.warp_reduce_max", "tl.warp_reduce_min",
        "tl.warp_reduce_bitand", "tl.warp_reduce_bitor", "tl.any_sync", "tl.all_sync", "tl.ballot_sync", "tl.match_any_sync",
        "tl.match_all_sync",
        "tl.syncthreads_count", "tl.syncthreads_and", "tl.syncthreads_or", "tl.rng_init",
    }
)  # fmt: skip
PRINTS = frozenset({"debug_print_var", "debug_print_buffer_value", "debug_print_msg"})
PARALLEL = frozenset({"parallel", "vectorized"})


def is_local(buffer: ir.Buffer) -> bool:
    """Whether each thread has its own copy of ``buffer``."""
    return buffer.scope in ("local", "local.var")


def is_print(s: ir.Stmt) -> bool:
    """Whether ``s`` does nothing but print."""
    if isinstance(s, ir.Eval):
        return isinstance(s.value, ir.Call) and s.value.op == "tirx.call_extern" and _extern(s.value) in PRINTS
    if isinstance(s, ir.For):
        return bool(s.body) and all(is_print(b) for b in s.body)
    return isinstance(s, ir.If) and not s.orelse and bool(s.then) and all(is_print(b) for b in s.then)


def printed_table(s: ir.Stmt, thread_vars: frozenset[ir.Var]) -> ir.For | None:
    """The loop by which ``T.print`` of a buffer prints element after element, under its test for one thread."""
    if isinstance(s, ir.If) and len(s.then) == 1 and not s.orelse:
        names = {n for n in ir.walk(s.cond) if isinstance(n, ir.Var)}
        return printed_table(s.then[0], thread_vars) if names and names <= thread_vars else None
    if isinstance(s, ir.For) and len(s.body) == 1 and isinstance(s.body[0], ir.Eval):
        call = s.body[0].value
        if isinstance(call, ir.Call) and call.op == "tirx.call_extern" and _extern(call) == "debug_print_buffer_value":
            return s if isinstance(call.args[-1], ir.Load) else None
    return None


def _extern(call: ir.Call) -> str:
    name = call.args[0] if call.args else None
    return name.value if isinstance(name, ir.Str) else ""


def is_element_atomic(op: str) -> bool:
    """Whether ``op`` is an atomic on one element (or a short vector), done once by each thread that meets it."""
    return op.startswith("tl.atomic_") and op.endswith("_elem_op")


class Taint:
    """What varies between threads. ``any`` says whether a thread axis is needed at all.

    ``vars`` and ``buffers`` (by data pointer) may differ; ``hard_vars`` and ``hard_buffers`` are made from the thread
    itself. The others were only assigned where a condition let some threads through: within one role they agree.
    """

    def __init__(self, body: ir.Body, thread_vars: tuple[ir.Var, ...]) -> None:
        self.thread_vars = frozenset(thread_vars)
        self.vars: set[ir.Var] = set(thread_vars)
        self.buffers: set[ir.Var] = set()
        self.hard_vars: set[ir.Var] = set(thread_vars)
        self.hard_buffers: set[ir.Var] = set()
        self.any = False
        while True:
            before = self._size()
            self._body(body, False, False)
            if before == self._size():
                return

    def _size(self) -> tuple[int, ...]:
        return (len(self.vars), len(self.buffers), len(self.hard_vars), len(self.hard_buffers), self.any)

    def expr(self, e: ir.Expr, parallel: bool = True) -> bool:
        """Whether the value of ``e`` may differ between threads."""
        hit = False
        for n in ir.walk(e):
            if isinstance(n, ir.Var):
                hit |= n in self.vars
            elif isinstance(n, ir.Load | ir.Region):
                hit |= n.buffer.data in self.buffers
            elif isinstance(n, ir.Call):
                hit |= _threads_differ(n.op) or (is_element_atomic(n.op) and not parallel)
        self.any |= hit
        return hit

    def hard(self, e: ir.Expr, parallel: bool = True) -> bool:
        """Whether the value of ``e`` is made from the thread itself."""
        for n in ir.walk(e):
            if isinstance(n, ir.Var) and n in self.hard_vars:
                return True
            if isinstance(n, ir.Load | ir.Region) and n.buffer.data in self.hard_buffers:
                return True
            if isinstance(n, ir.Call) and (_threads_differ(n.op) or (is_element_atomic(n.op) and not parallel)):
                return True
        return False

    def stmts(self, body: ir.Body) -> bool:
        """Whether anything in ``body`` depends on the thread."""
        return any(self.expr(n) for s in body for n in ir.walk(s) if isinstance(n, ir.Expr))

    def shares_out(self, loop: ir.For) -> bool:
        """Whether the iterations of a parallel loop are shared out among the threads, not done by each of them."""
        inside = {loop.var} | {n.var for n in ir.walk(loop.body) if isinstance(n, ir.For) and n.kind in PARALLEL}
        for n in ir.walk(loop.body):
            if isinstance(n, ir.Load | ir.Store) and n.buffer.scope == "local" and any(v in inside for i in n.indices for v in ir.walk(i)):
                return False
        return not any(self.hard(n) for n in ir.walk(loop.body) if isinstance(n, ir.Expr))

    def _body(self, body: ir.Body, under: bool, parallel: bool) -> None:
        for s in body:
            self._stmt(s, under, parallel)

    def _stmt(self, s: ir.Stmt, under: bool, parallel: bool) -> None:
        if printed_table(s, self.thread_vars) is not None:
            return
        if isinstance(s, ir.Bind):
            if self.expr(s.value, parallel):
                self.vars.add(s.var)
            if self.hard(s.value, parallel):
                self.hard_vars.add(s.var)
        elif isinstance(s, ir.Store):
            varies = self.expr(s.value, parallel) | any(self.expr(i, parallel) for i in s.indices)
            if is_local(s.buffer) and (varies or under):
                self.buffers.add(s.buffer.data)
            if is_local(s.buffer) and (self.hard(s.value, parallel) or any(self.hard(i, parallel) for i in s.indices)):
                self.hard_buffers.add(s.buffer.data)
        elif isinstance(s, ir.For):
            varies = self.expr(s.min, parallel) | self.expr(s.extent, parallel)
            if varies:
                self.vars.add(s.var)
            if self.hard(s.min, parallel) or self.hard(s.extent, parallel):
                self.hard_vars.add(s.var)
            self._body(s.body, under or varies, parallel or s.kind in PARALLEL)
        elif isinstance(s, ir.If):
            varies = self.expr(s.cond, parallel)
            self._body(s.then, under or varies, parallel)
            self._body(s.orelse, under or varies, parallel)
        elif isinstance(s, ir.While):
            varies = self.expr(s.cond, parallel)
            self._body(s.body, under or varies, parallel)
        elif isinstance(s, ir.Tile | ir.Eval):
            args = s.args if isinstance(s, ir.Tile) else (s.value,)
            varies = any(self.expr(a, parallel or isinstance(s, ir.Tile)) for a in args)
            for n in (n for a in args for n in ir.walk(a)):
                if isinstance(n, ir.Region | ir.Load) and is_local(n.buffer) and (varies or under) and _may_write(s, n):
                    self.buffers.add(n.buffer.data)
                    if any(self.hard(a, parallel or isinstance(s, ir.Tile)) for a in args):
                        self.hard_buffers.add(n.buffer.data)
        elif isinstance(s, ir.Block | ir.Attribute):
            self._body(s.body, under, parallel)


def _threads_differ(op: str) -> bool:
    return op in THREAD_OPS or op.startswith(("tl.shfl", "tirx.tvm_warp_"))


def _may_write(s: ir.Stmt, n: ir.Expr) -> bool:
    if isinstance(n, ir.Region):
        return "w" in n.access
    return isinstance(s, ir.Eval)


def private_buffers(loop: ir.For) -> dict[ir.Var, int]:
    """Per-thread buffers that each iteration of a parallel nest writes for itself → over how many of its loops.

    Such a buffer is written at an index that does not name every parallel loop around it, so each iteration needs its
    own copy while the nest runs.
    """
    depths: dict[ir.Var, int] = {}
    for buffer, indices, loops in _writes((loop,), ()):
        if not is_local(buffer):
            continue
        named = {n for i in indices for n in ir.walk(i) if isinstance(n, ir.Var)}
        if any(v not in named for v in loops):
            depths[buffer.data] = min(depths.get(buffer.data, len(loops)), len(loops))
    return depths


def _writes(body: ir.Body, loops: tuple[ir.Var, ...]) -> Iterator[tuple[ir.Buffer, tuple[ir.Expr, ...], tuple[ir.Var, ...]]]:
    for s in body:
        if isinstance(s, ir.Store):
            yield s.buffer, s.indices, loops
        elif isinstance(s, ir.For):
            yield from _writes(s.body, (*loops, s.var) if s.kind in PARALLEL else loops)
        elif isinstance(s, ir.If):
            yield from _writes((*s.then, *s.orelse), loops)
        elif isinstance(s, ir.While | ir.Block | ir.Attribute):
            yield from _writes(s.body, loops)
        elif isinstance(s, ir.Tile):
            for a in s.args:
                if isinstance(a, ir.Region) and "w" in a.access:
                    yield a.buffer, a.mins, loops


def carried(loop: ir.For, data: ir.Var) -> bool:
    """Whether an iteration of ``loop`` uses what the one before left in the buffer of ``data``."""
    return _first_use(loop.body, data) == "read"


def _first_use(body: ir.Body, data: ir.Var) -> str:
    """How ``body`` first touches a buffer: ``"read"``, ``"written"`` (for certain), or not (empty)."""
    for s in body:
        own: list[ir.Expr] = []
        if isinstance(s, ir.Store):
            own = [s.value, *s.indices]
        elif isinstance(s, ir.Bind | ir.Eval):
            own = [s.value]
        elif isinstance(s, ir.For):
            own = [s.min, s.extent]
        elif isinstance(s, ir.If | ir.While):
            own = [s.cond]
        elif isinstance(s, ir.Tile):
            own = list(s.args)
        for n in (n for e in own for n in ir.walk(e)):
            if isinstance(n, ir.Load) and n.buffer.data is data:
                return "read"
            if isinstance(n, ir.Region) and n.buffer.data is data:
                return "read" if "r" in n.access else "written"
        if isinstance(s, ir.Store) and s.buffer.data is data:
            return "written"
        if isinstance(s, ir.If):
            sides = {_first_use(s.then, data), _first_use(s.orelse, data)}
            if "read" in sides or sides == {"written"}:
                return "read" if "read" in sides else "written"
        elif isinstance(s, ir.For | ir.While | ir.Block | ir.Attribute):
            inside = _first_use(s.body, data)
            if inside:
                return inside
    return ""


def stored_buffers(body: ir.Body) -> set[ir.Var]:
    """Data pointers of the buffers that ``body`` may write, by whatever means."""
    out: set[ir.Var] = set()
    for n in ir.walk(body):
        if isinstance(n, ir.Store) or (isinstance(n, ir.Region) and "w" in n.access):
            out.add(n.buffer.data)
        elif isinstance(n, ir.Call) and n.op not in ("tirx.if_then_else",):
            for a in n.args:
                out |= _pointed(a) | ({a} if isinstance(a, ir.Var) and a.dtype == "handle" else set())
        elif isinstance(n, ir.Bind):
            out |= _pointed(n.value)
        elif isinstance(n, ir.Tile):
            for a in n.args[1:]:
                if isinstance(a, ir.Region):
                    out.add(a.buffer.data)
    return out


def _pointed(e: Any) -> set[ir.Var]:
    if isinstance(e, ir.Call) and e.op in ("tl.access_ptr", "tirx.address_of", "tirx.tvm_access_ptr"):
        return {n.buffer.data for n in ir.walk(e) if isinstance(n, ir.Load)} | {a for a in e.args if isinstance(a, ir.Var)}
    return set()
