"""Programs in integer arithmetic: expressions, loops and conditions as z3 terms. Loads z3 when first used.

What integers cannot say (floats, bit patterns) becomes a free unknown and marks the world ``inexact``; what memory decides
becomes a free unknown marked as ``data``: a function of the indices where nothing writes the buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tilelab import ir
from tilelab.analysis.accesses import Binding, Frame, Guard
from tilelab.analysis.text import text

_QUICK_MS = 200


@dataclass(kw_only=True)
class World:
    """One execution of an access: values of its variables, and what is known of them.

    Attributes:
        suffix: Tells the variables of two executions apart.
        values: Variable → z3 term.
        known: z3 conditions that hold.
        shown: Variables and terms that a counterexample may tell, outermost first.
        data: Text and term of loaded values that indices and trip counts depend on; those of conditions are left out.
        inexact: Whether something was left out, so that a counterexample may be spurious.
    """

    solver: Smt
    suffix: str = ""
    values: dict[ir.Var, Any] = field(default_factory=dict)
    known: list[Any] = field(default_factory=list)
    shown: list[tuple[ir.Var, Any]] = field(default_factory=list)
    data: list[tuple[str, Any]] = field(default_factory=list)
    inexact: bool = False
    divided: dict[tuple[int, int], Any] = field(default_factory=dict)

    def fork(self, suffix: str) -> World:
        """Another execution that shares what is known so far."""
        return replace(
            self, suffix=suffix, values=dict(self.values), known=list(self.known), shown=list(self.shown), data=list(self.data),
            divided=dict(self.divided),
        )  # fmt: skip

    def enter(self, frames: tuple[Frame, ...]) -> World:
        """Add the variables and conditions of ``frames``; returns self."""
        for f in frames:
            if isinstance(f, ir.Launch):
                for var, extent in (*zip(f.block_vars, f.grid, strict=True), *zip(f.thread_vars, f.threads, strict=True)):
                    self._range(var, 0, self.integer(extent))
            elif isinstance(f, ir.For):
                low = self.integer(f.min)
                known = not self.solver.light or isinstance(f.extent, ir.Const)
                v = self._range(f.var, low, low + self.integer(f.extent) if known else None)
                step = self.integer(f.step) if f.step is not None else 1
                if f.step is not None:
                    self.known.append((v - low) % step == 0)
            elif isinstance(f, Guard) and self.solver.light:
                continue
            elif isinstance(f, Guard):
                before = len(self.data)
                cond = self.boolean(f.cond)
                del self.data[before:]
                self.known.append(self.solver.z3.Not(cond) if f.negated else cond)
            elif isinstance(f, Binding):
                self.values[f.var] = self.term(f.value)
        return self

    def _range(self, var: ir.Var, low: Any, end: Any) -> Any:
        v = self.solver.z3.Int(f"{var.name}#{id(var)}{self.suffix}")
        self.values[var] = v
        self.known += [low <= v] if end is None else [low <= v, v < end]
        self.shown.append((var, v))
        return v

    # -------------------------------------------------------------------------------------------- terms
    def integer(self, e: ir.Expr) -> Any:
        """``e`` as a z3 integer."""
        t = self.term(e)
        return self.solver.z3.If(t, 1, 0) if self.solver.z3.is_bool(t) else t

    def boolean(self, e: ir.Expr) -> Any:
        """``e`` as a z3 truth value."""
        t = self.term(e)
        return t if self.solver.z3.is_bool(t) else t != 0

    def term(self, e: ir.Expr) -> Any:
        """``e`` as a z3 integer or truth value."""
        z3 = self.solver.z3
        if isinstance(e, ir.Const) and not isinstance(e.value, float):
            return z3.BoolVal(e.value) if e.dtype == "bool" else z3.IntVal(int(e.value))
        if isinstance(e, ir.Var):
            return self.values[e] if e in self.values else self.solver.free(e)
        if isinstance(e, ir.Bin) and not _is_float(e.a.dtype):
            return self._binary(e)
        if isinstance(e, ir.Not):
            return z3.Not(self.boolean(e.a))
        if isinstance(e, ir.Cast) and not _is_float(e.dtype) and not _is_float(e.a.dtype):
            return self.term(e.a)
        if isinstance(e, ir.Select):
            return z3.If(self.boolean(e.cond), self.integer(e.a), self.integer(e.b))
        if isinstance(e, ir.LetExpr):
            self.values[e.var] = self.term(e.value)
            return self.term(e.body)
        if isinstance(e, ir.Load) and not _is_float(e.dtype):
            return self._loaded(e)
        if isinstance(e, ir.Call) and not _is_float(e.dtype):
            return self._call(e)
        return self._unknown(e)

    def _binary(self, e: ir.Bin) -> Any:
        z3 = self.solver.z3
        if e.op in ("and", "or"):
            return (z3.And if e.op == "and" else z3.Or)(self.boolean(e.a), self.boolean(e.b))
        a, b = self.integer(e.a), self.integer(e.b)
        if self.solver.abstract and e.op in ("floordiv", "floormod") and not z3.is_int_value(b):
            quotient, rest = self._divided(a, b)
            return quotient if e.op == "floordiv" else rest
        if self.solver.abstract and e.op == "mul" and not z3.is_int_value(a) and not z3.is_int_value(b):
            return self.solver.product(a, b)
        return _BIN[e.op](z3, a, b)

    def _divided(self, a: Any, b: Any) -> tuple[Any, Any]:
        """Quotient and rest by a divisor that is not a constant, with their product as an unknown."""
        key = (a.get_id(), b.get_id())
        if key not in self.divided:
            quotient, rest = self.solver.fresh("quotient"), self.solver.fresh("rest")
            z3 = self.solver.z3
            whole = self.solver.product(quotient, b)
            facts = [rest >= 0, rest < b, a == whole + rest]
            if self.solver.model([*self.known, b <= 0], _QUICK_MS)[0] == "unsat":
                self.known += [b > 0, *facts]
            else:
                self.known.append(z3.Implies(b > 0, z3.And(*facts)))
            self.divided[key] = (quotient, rest, a, b)  # which keeps both terms, and so their numbers, alive
        return self.divided[key][:2]  # type: ignore[no-any-return]

    def _call(self, e: ir.Call) -> Any:
        z3 = self.solver.z3
        if e.op == "tirx.if_then_else":
            return z3.If(self.boolean(e.args[0]), self.integer(e.args[1]), self.integer(e.args[2]))
        if e.op == "tirx.likely":
            return self.term(e.args[0])
        if len(e.args) == 2 and isinstance(e.args[1], ir.Const) and isinstance(e.args[1].value, int):
            a, k = e.args[0], e.args[1].value
            if e.op == "tirx.shift_left" and 0 <= k < 63:
                return self.integer(a) * (1 << k)
            if e.op == "tirx.shift_right" and 0 <= k < 63:
                return self.integer(a) / (1 << k)  # z3 rounds down
            if e.op == "tirx.bitwise_and" and k >= 0 and k & (k + 1) == 0:
                return self.integer(a) % (k + 1)
        return self._unknown(e)

    def _loaded(self, e: ir.Load) -> Any:
        z3 = self.solver.z3
        if e.buffer.data in self.solver.constant_storage and not any(isinstance(i, ir.Ramp) for i in e.indices):
            indices = [self.integer(i) for i in e.indices]
            fn = z3.Function(f"{e.buffer.name}#{id(e.buffer)}", *([z3.IntSort()] * (len(indices) + 1)))
            value = fn(*indices)
        else:
            value = self.solver.fresh(e.buffer.name)
        low, high = _int_range(e.dtype)
        self.known += [low <= value, value <= high]
        self.data.append((text(e), value))
        return value != 0 if e.dtype == "bool" else value

    def _unknown(self, e: ir.Expr) -> Any:
        z3 = self.solver.z3
        if any(isinstance(n, ir.Load) for n in ir.walk(e)):  # what memory decides
            value = z3.FreshBool("data") if e.dtype == "bool" else self.solver.fresh("data")
            self.data.append((text(e), value))
            return value
        self.inexact = True
        return z3.FreshBool("unknown") if e.dtype == "bool" else self.solver.fresh("unknown")


class Smt:
    """The z3 module, the free variables of a program, and its time."""

    def __init__(self, program: ir.Program, constant_storage: set[ir.Var]) -> None:
        import z3

        self.z3: Any = z3
        self.begin(abstract=False)
        self.constant_storage = constant_storage
        self.sizes = _size_variables(program)
        self.variables: dict[ir.Var, Any] = {}
        self.known: list[Any] = []

    def free(self, var: ir.Var) -> Any:
        """A variable that nothing binds: a size (at least 1) or a scalar parameter. Sizes of one name are one size."""
        same = next((v for v in self.variables if v.name == var.name and {v, var} <= self.sizes), None)
        if same is not None:
            return self.variables[same]
        if var not in self.variables:
            v = self.z3.Int(f"{var.name}#{id(var)}")
            low, high = _int_range(var.dtype)
            self.variables[var] = v
            self.known += [v >= (1 if var in self.sizes else low), v <= high]
        return self.variables[var]

    def fresh(self, name: str) -> Any:
        """A new integer of which nothing is known."""
        return self.z3.FreshInt(name)

    def product(self, a: Any, b: Any) -> Any:
        """A product of two unknowns as an unknown: equal factors give equal products, greater ones greater (for a positive other)."""
        for x, y, p in self.products:
            if (x.eq(a) and y.eq(b)) or (x.eq(b) and y.eq(a)):
                return p
        new, z3 = self.fresh("product"), self.z3
        for x, y, p in self.products:
            if y.eq(b):
                self.lemmas += [
                    z3.Implies(x == a, p == new),
                    z3.Implies(z3.And(b > 0, x < a), p + b <= new),
                    z3.Implies(z3.And(b > 0, a < x), new + b <= p),
                ]
        self.lemmas += [z3.Implies(z3.And(a >= 0, b >= 0), new >= 0), z3.Implies(a == 0, new == 0)]
        self.products.append((a, b, new))
        return new

    def begin(self, *, abstract: bool, light: bool = False) -> None:
        """Model products of unknowns as such, or as unknowns (``abstract``); ``light``: without conditions and ends of loops."""
        self.abstract, self.light = abstract, light
        self.products: list[tuple[Any, Any, Any]] = []
        self.lemmas: list[Any] = []

    def model(self, conditions: list[Any], timeout_ms: int) -> tuple[str, Any]:
        """Ask for an assignment: ``("sat", solver)``, ``("unsat", None)`` or ``("unknown", None)``."""
        solver = self.z3.Solver()
        solver.set("timeout", max(1, timeout_ms))
        solver.add(*self.known, *self.lemmas, *conditions)
        answer = str(solver.check())
        return answer, solver if answer == "sat" else None

    def smallest(self, solver: Any, terms: list[Any], deadline: Callable[[], int]) -> Any:
        """The model of ``solver`` with each of ``terms`` in turn made as small as time allows."""
        model = solver.model()
        for t in terms:
            high = model.eval(t, model_completion=True).as_long()
            low = 0
            while low < high and deadline() > 0:
                middle = (low + high) // 2 if high - low > 1 else low
                solver.push()
                solver.add(t >= low, t <= middle)
                solver.set("timeout", max(1, min(200, deadline())))
                if str(solver.check()) == "sat":
                    model = solver.model()
                    high = model.eval(t, model_completion=True).as_long()
                    solver.pop()
                else:
                    solver.pop()
                    low = middle + 1
            solver.add(t == high)
        return model


def _size_variables(program: ir.Program) -> set[ir.Var]:
    found: set[ir.Var] = set()
    for p in program.params:
        if p.buffer is not None:
            for e in (*p.buffer.shape, *p.buffer.strides):
                found |= {n for n in ir.walk(e) if isinstance(n, ir.Var)}
    return found


def _is_float(dtype: str) -> bool:
    return "float" in dtype


def _int_range(dtype: str) -> tuple[int, int]:
    if dtype == "bool":
        return 0, 1
    digits = "".join(c for c in dtype if c.isdigit())
    bits = int(digits) if digits else 64
    return (0, (1 << bits) - 1) if dtype.startswith("uint") else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def _floor_div(z3: Any, a: Any, b: Any) -> Any:
    if z3.is_int_value(b) and b.as_long() > 0:
        return a / b  # z3's division of integers rounds down for a positive divisor
    return z3.If(b > 0, a / b, (-a) / (-b))


def _trunc_div(z3: Any, a: Any, b: Any) -> Any:
    magnitude = z3.If(a >= 0, a, -a) / z3.If(b >= 0, b, -b)
    return z3.If((a >= 0) == (b >= 0), magnitude, -magnitude)


_BIN: Mapping[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda z3, a, b: a + b, "sub": lambda z3, a, b: a - b, "mul": lambda z3, a, b: a * b,
    "floordiv": _floor_div, "floormod": lambda z3, a, b: a - b * _floor_div(z3, a, b),
    "div": _trunc_div, "mod": lambda z3, a, b: a - b * _trunc_div(z3, a, b),
    "min": lambda z3, a, b: z3.If(a <= b, a, b), "max": lambda z3, a, b: z3.If(a >= b, a, b),
    "eq": lambda z3, a, b: a == b, "ne": lambda z3, a, b: a != b, "lt": lambda z3, a, b: a < b, "le": lambda z3, a, b: a <= b,
    "gt": lambda z3, a, b: a > b, "ge": lambda z3, a, b: a >= b,
}  # fmt: skip
