"""``tilelab.simulate`` and ``tilelab.check``: capture (from a cache), run, and give back tensors of the kind that came."""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tilelab import ir
from tilelab.errors import InputError
from tilelab.finding import Finding, KernelRefused, finding
from tilelab.trace import SimParams, Trace

if TYPE_CHECKING:
    from tilelab.analysis.prove import Proof

_KEPT = 128  # captured programs held, least recently used go first
_programs: OrderedDict[Any, tuple[Any, ir.Program]] = OrderedDict()


def simulate(
    kernel: Any, *tensors: Any, level: str = "tile", params: SimParams | None = None, consts: Mapping[str, Any] | None = None
) -> Trace:
    """Run ``kernel`` in the simulator; no GPU and no TileLang runtime take part.

    Args:
        kernel: A jitted kernel, a prim_func, a captured Program, or a function of ``consts`` that returns one.
        tensors: Its inputs, torch or numpy, in order; with none at all they are made as ``tilelab check`` makes them.
        level: ``"tile"``: what the kernel means.
        params: How to simulate. Default: ``SimParams()``.
        consts: Constants, dynamic sizes and scalars by name.

    Returns:
        The Trace; ``outputs`` and ``result`` are torch where any input was, else numpy. Inputs are left as they were.

    Raises:
        KernelRefused: TileLang, or the simulator, cannot take this kernel; ``finding`` says why.
        InputError: A tensor or constant does not fit.
    """
    params = canonical(params or SimParams())
    program = program_of(kernel, *tensors, consts=consts)
    trace = run(program, arguments(kernel, program, tensors, consts or {}, params.seed), level=level, params=params)
    return _as_given(trace, tensors)


def check(
    kernel: Any,
    *tensors: Any,
    level: str = "tile",
    target: str = "sm_80",
    params: SimParams | None = None,
    consts: Mapping[str, Any] | None = None,
    prove: bool = False,
) -> tuple[Finding, ...]:
    """Return what is wrong with ``kernel``: from running it, from its budgets, and from lowering it for ``target``.

    Takes what :func:`simulate` takes; a kernel that is refused is a finding too. With ``prove``, Z3 also looks for sizes, blocks and
    iterations, other than those that ran, in which an access leaves its buffer, two blocks or iterations collide, or a layout
    sends two elements to one place (see :func:`tilelab.analysis.prove.prove`; ten seconds at most).

    Raises:
        InputError: A tensor, a constant or the target does not fit.
    """
    params = canonical(dataclasses.replace(params or SimParams(), target=target))
    try:
        program = program_of(kernel, *tensors, consts=consts)
    except KernelRefused as refused:
        return (refused.finding,)
    try:
        ran = run(program, arguments(kernel, program, tensors, consts or {}, params.seed), level=level, params=params).findings
    except KernelRefused as refused:
        ran = (refused.finding,)
    found = with_static(ran, program, params.target)
    return with_proof(found, proof_of(program)) if prove else found


def canonical(params: SimParams) -> SimParams:
    """Return ``params`` with its target in canonical form (``sm_90`` → ``sm_90a``)."""
    from tilelab.machine import canonical_target

    return dataclasses.replace(params, target=canonical_target(params.target))


def run(program: ir.Program, inputs: Mapping[str, Any], *, level: str, params: SimParams) -> Trace:
    """Simulate a captured program on numpy inputs by name.

    Raises:
        KernelRefused: The level, or something in the program, is not simulated yet (TL703).
    """
    if level not in ("tile", "thread"):
        raise InputError(f"level {level!r} is neither 'tile' nor 'thread'")
    if level == "thread":
        raise KernelRefused(finding("TL703", "The thread level is not simulated yet.", fix="Use level tile."))
    from tilelab import sim

    trace: Trace = sim.simulate(program, inputs, params)
    return trace


def with_static(ran: tuple[Finding, ...], program: ir.Program, target: str) -> tuple[Finding, ...]:
    """Join what a run found with what needs no run; a shape that does not fit is told once, by the run, in plainer words."""
    static = static_findings(program, target)
    if any(f.code == "TL701" for f in ran):
        static = tuple(f for f in static if f.code != "TL702")
    return merged(ran, static)


def static_findings(program: ir.Program, target: str) -> tuple[Finding, ...]:
    """Return what is wrong before any run: budgets of ``target``, and what its lowering says or refuses."""
    from tilelab.analysis.budget import budget_findings

    budget = tuple(budget_findings(program, target))
    if any(f.severity == "error" for f in budget):
        return budget  # it cannot launch, whatever it lowers to; and what is that large lowers slowly
    try:
        from tilelab.compiler import lower

        return merged(budget, lower(program, target=target).findings)
    except KernelRefused as refused:
        return merged(budget, (refused.finding,))


def proof_of(program: ir.Program, seconds: float = 10.0) -> Proof:
    """Ask Z3 about every access of ``program``, for at most ``seconds``.

    Raises:
        EnvironmentLacks: z3 cannot be imported.
    """
    from tilelab.analysis.prove import prove

    return prove(program, time_limit_s=seconds)


def with_proof(found: tuple[Finding, ...], proof: Proof) -> tuple[Finding, ...]:
    """Add what a proof refutes, where a run has not shown the same already (an access out of bounds has two codes)."""
    seen = {(_SAME.get(f.code, f.code), f.file, f.line) for f in found}
    return merged(found, tuple(f for f in proof.findings() if (_SAME.get(f.code, f.code), f.file, f.line) not in seen))


_SAME = {"TL102": "TL101"}


def merged(*groups: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Join findings, each (code, file, line) of a later group only where an earlier one lacks it, in source order."""
    out: list[Finding] = []
    for group in groups:
        seen = {(f.code, f.file, f.line) for f in out}
        out += [f for f in group if (f.code, f.file, f.line) not in seen]
    return tuple(sorted(out, key=lambda f: (f.file or "", f.line or 0)))


# ------------------------------------------------------------------------------------------------- capture
def program_of(kernel: Any, *tensors: Any, consts: Mapping[str, Any] | None = None, files: Mapping[str, str] | None = None) -> ir.Program:
    """Capture ``kernel``, or answer from the cache: its key is what the kernel is made from, not its TIR.

    ``files`` maps file names to what the user typed, for what is refused.

    Raises:
        KernelRefused: TileLang refuses the kernel.
        InputError: ``kernel`` is not a kernel, or a constant is missing.
    """
    if isinstance(kernel, ir.Program):
        return kernel
    from tilelab.compiler import capture

    key = _key(kernel, tensors, consts or {})
    if key is not None and key in _programs:
        _programs.move_to_end(key)
        return _programs[key][1]
    try:
        program: ir.Program = capture(kernel, *tensors, consts=dict(consts or {}), files=files)
    except KernelRefused as refused:
        from tilelab.given import at_fault

        told = at_fault(lambda c: capture(kernel, *tensors, consts=dict(c), files=files), consts or {}, refused, _called(kernel))
        if told is None:
            raise
        raise told from None
    if key is not None:
        _programs[key] = (kernel, program)  # holding the kernel keeps its id, which is in the key, from being reused
        while len(_programs) > _KEPT:
            _programs.popitem(last=False)
    return program


def _called(kernel: Any) -> str:
    function = getattr(getattr(kernel, "func", kernel), "orig_func", kernel)
    return str(getattr(function, "__name__", "") or "the kernel")


def check_block(program: ir.Program, block: tuple[int, int, int], inputs: Mapping[str, Any]) -> None:
    """Refuse a block that no launch of the program has.

    Raises:
        InputError: The grid, as far as ``inputs`` (arrays, numbers and sizes by name) tell it, is smaller.
    """
    from tilelab.tensors import evaluated, sizes_of

    known = sizes_of(program, inputs)
    grids = []
    for launch in (s for s in ir.walk(program) if isinstance(s, ir.Launch)):
        grid = tuple(evaluated(e, known) for e in launch.grid)
        padded = (*grid, 1, 1, 1)[:3]
        if all(isinstance(n, ir.Expr) or at < n for at, n in zip(block, padded, strict=True)):
            return
        grids.append("×".join(str(n) for n in padded))
    if grids:
        shown = ",".join(map(str, block))
        raise InputError(
            f"{program.name} has no block {shown}: its grid is {' and '.join(grids)}", fix="blocks are counted from 0, as x,y,z"
        )


def arguments(kernel: Any, program: ir.Program, tensors: tuple[Any, ...], consts: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return the program's inputs by name, as numpy; with no tensors at all, made from ``seed``.

    Raises:
        InputError: They do not fit the kernel's declaration.
    """
    from tilelab.tensors import bind, default_inputs, inputs_of

    names = [p.name for p in inputs_of(program)]
    if not tensors and any(name not in consts for name in names):
        return sizes(program, consts) | default_inputs(program, seed=seed, consts=consts)
    given = _positional(kernel, tensors, names)
    return sizes(program, consts) | bind(program, given, consts)


def sizes(program: ir.Program, consts: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of ``consts`` that are dynamic sizes of the program.

    Raises:
        InputError: One is not a whole number from 0 up.
    """
    from tilelab.errors import InputError

    found = {name: consts[name] for name in ir.dynamic_sizes(program) if name in consts}
    for name, value in found.items():
        if not hasattr(value, "__index__") or isinstance(value, bool) or value < 0:
            raise InputError(f"{name} is a size of {program.name}, {value!r} was given", fix="give a whole number from 0 up")
    return found


def _positional(kernel: Any, tensors: tuple[Any, ...], names: list[str]) -> tuple[Any, ...]:
    """An eager kernel may take compile-time constants among its tensors: leave them out, they are in the program."""
    signature = getattr(kernel, "signature", None)
    if not isinstance(signature, inspect.Signature) or len(tensors) == len(names):
        return tensors
    given = dict(zip(signature.parameters, tensors, strict=False))
    return tuple(given[n] for n in names if n in given) if set(given) >= set(names) else tensors


def _as_given(trace: Trace, tensors: tuple[Any, ...]) -> Trace:
    from tilelab.tensors import is_torch, like

    example = next((t for t in tensors if is_torch(t)), None)
    if example is None:
        return trace
    made = {id(a): like(a, example) for a in trace.outputs.values()}

    def convert(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return type(value)(map(convert, value))
        return made.get(id(value)) if id(value) in made else like(value, example) if hasattr(value, "dtype") else value

    return dataclasses.replace(trace, outputs={n: made[id(a)] for n, a in trace.outputs.items()}, result=convert(trace.result))


def _key(kernel: Any, tensors: tuple[Any, ...], consts: Mapping[str, Any]) -> Any:
    try:
        key = (id(kernel), tuple(map(_kind, tensors)), tuple(sorted((k, _kind(v)) for k, v in consts.items())), _surroundings(kernel))
        hash(key)
    except TypeError:
        return None
    return key


def _kind(value: Any) -> Any:
    """What of an argument a captured program depends on: a tensor's type, or the value itself."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        strides = value.stride() if callable(getattr(value, "stride", None)) else getattr(value, "strides", None)
        return "tensor", tuple(value.shape), str(value.dtype), strides
    return type(value).__name__, value


def _surroundings(kernel: Any) -> tuple[Any, ...]:
    """The plain globals and closure values that the kernel's Python reads: changing one must capture again."""
    function = getattr(getattr(kernel, "func", kernel), "orig_func", kernel)
    return tuple(_read_by(function, set())) if isinstance(function, types.FunctionType) else ()


def _read_by(function: types.FunctionType, seen: set[int]) -> list[tuple[str, Any]]:
    if id(function) in seen or len(seen) > 32:
        return []
    seen.add(id(function))
    names: set[str] = set()
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
    scope = {n: function.__globals__[n] for n in sorted(names) if n in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            scope[name] = cell.cell_contents
        except ValueError:  # not yet bound
            continue
    out: list[tuple[str, Any]] = []
    for name, value in scope.items():
        value = getattr(value, "orig_func", value)
        if isinstance(value, bool | int | float | str | bytes | type(None)):
            out.append((name, (type(value).__name__, value)))
        elif isinstance(value, tuple | list) and all(isinstance(v, bool | int | float | str) for v in value):
            out.append((name, tuple(value)))
        elif isinstance(value, types.FunctionType) and not value.__module__.startswith(("tilelang", "tvm", "torch", "numpy")):
            out.append((name, id(value)))
            out += _read_by(value, seen)
    return out
