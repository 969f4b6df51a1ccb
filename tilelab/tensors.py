"""Tensors in and out: numpy ↔ torch, default inputs, and inputs named on the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.errors import InputError

#: dtypes that numpy has only through ml_dtypes
_ML = (
    "bfloat16",
    "float8_e4m3",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn",
    "float8_e4m3b11fnuz",
    "float8_e3m4",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "int4",
    "uint4",
    "int2",
    "uint2",
)
#: dtypes that numpy holds as another
_HELD_AS = {
    "float8_e4m3": "float8_e4m3fn",  # as CUDA and torch understand it
    "tfloat32": "float32",
    "custom[tfloat32]": "float32",
    "float4_e2m1_unpacked": "float4_e2m1fn",
    "custom[float4_e2m1_unpacked]": "float4_e2m1fn",
    "custom[float4_e2m1_unpacked]8": "float4_e2m1fn",
}
_FLOATS = ("float", "bfloat")
_KINDS = ("zeros", "ones", "arange", "rand", "randint")


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the numpy dtype of a TileLang dtype string, by ml_dtypes where numpy has none.

    Raises:
        InputError: There is no such dtype for tensors.
    """
    name = _HELD_AS.get(name, name)
    base = name.partition("x")[0] if not name.startswith("complex") else name
    if base == "bool":
        return np.dtype(np.bool_)
    if base in _ML:
        import ml_dtypes

        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, base))
        return found
    try:
        return np.dtype(base)
    except TypeError:
        raise InputError(f"no tensor holds dtype {name!r}") from None


def to_numpy(tensor: Any) -> Any:
    """Return ``tensor`` as a numpy array that shares its memory where it can; numbers and None pass through.

    bfloat16 and float8 become ml_dtypes arrays; a packed float4 tensor becomes one element a byte.

    Raises:
        InputError: ``tensor`` is not a tensor, an array or a number.
    """
    if tensor is None or isinstance(tensor, bool | int | float | np.ndarray):
        return tensor
    if isinstance(tensor, list | tuple):  # what a table of pointers points to
        return tuple(map(to_numpy, tensor))
    if isinstance(tensor, np.generic):
        return tensor.item()
    if is_torch(tensor):
        return _from_torch(tensor)
    raise InputError(f"{type(tensor).__name__} is not a tensor", fix="pass a torch tensor, a numpy array or a number")


def like(array: Any, example: Any) -> Any:
    """Return the numpy ``array`` as the kind of tensor that ``example`` is: torch (on its device) or numpy."""
    return to_torch(array, example.device) if is_torch(example) else array


def to_torch(array: Any, device: Any = "cpu") -> Any:
    """Return a numpy array as a torch tensor on ``device``, sharing memory where it can."""
    import torch

    name = str(array.dtype)
    if name == "float4_e2m1fn" or name in ("int4", "uint4"):
        return torch.from_numpy(np.ascontiguousarray(array).view(np.uint8)).to(device)
    if name in _ML:
        bits = np.ascontiguousarray(array).view(np.uint16 if array.dtype.itemsize == 2 else np.uint8)
        return torch.from_numpy(bits).view(getattr(torch, name)).to(device)
    if not array.flags.writeable:
        array = array.copy()
    return torch.from_numpy(np.asarray(array)).to(device)


def is_torch(value: Any) -> bool:
    """Say whether ``value`` is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _from_torch(tensor: Any) -> Any:
    import torch

    tensor = tensor.detach()
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    name = str(tensor.dtype).removeprefix("torch.")
    if name == "float4_e2m1fn_x2":
        packed = tensor.view(torch.uint8).numpy()
        both = np.stack([packed & 15, packed >> 4], axis=-1)
        return both.reshape(*packed.shape[:-1], -1).view(numpy_dtype("float4_e2m1fn"))
    if name in _ML:
        bits = tensor.view(torch.int16 if tensor.element_size() == 2 else torch.uint8).numpy()
        return bits.view(numpy_dtype(name))
    return tensor.numpy()


# ------------------------------------------------------------------------------------------ programs' inputs
def inputs_of(program: ir.Program) -> tuple[ir.Param, ...]:
    """Return the parameters that a caller passes: all but those that the kernel allocates and returns."""
    return tuple(p for i, p in enumerate(program.params) if i not in program.outputs)


def bind(
    program: ir.Program, tensors: tuple[Any, ...], consts: Mapping[str, Any], *, sizes: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Match ``tensors`` to the program's inputs in order and check each against its declaration.

    ``sizes``, where given, is filled with the dynamic sizes that the shapes tell.

    Returns:
        Numpy arrays and numbers by parameter name, and the dynamic sizes that shapes tell; scalars and sizes may come from ``consts``.

    Raises:
        InputError: The count, a shape or a dtype is wrong; the message says both sides.
    """
    params = inputs_of(program)
    named = {p.name: consts[p.name] for p in params if p.name in consts}
    positional = [p for p in params if p.name not in named]
    if len(tensors) != len(positional):
        wanted = ", ".join(describe(p) for p in positional) or "nothing"
        raise InputError(f"{program.name} takes {len(positional)} tensors or numbers ({wanted}), {len(tensors)} given")
    values = {p.name: to_numpy(t) for p, t in zip(positional, tensors, strict=True)} | named
    known = {} if sizes is None else sizes
    known.update(consts)
    for param in params:
        check(param, values[param.name], known)
    told = {n: known[n] for n in ir.dynamic_sizes(program) if n in known and n not in consts}  # some only by a shape such as 4·n
    return told | {p.name: values[p.name] for p in params}


def check(param: ir.Param, value: Any, sizes: dict[str, Any]) -> None:
    """Check one input against its declaration; dynamic sizes are read from shapes into ``sizes``.

    Raises:
        InputError: It does not fit; the message says what was declared and what came.
    """
    if value is None:
        return
    if param.buffer is None:
        if isinstance(value, np.ndarray):
            raise InputError(f"{param.name} is a {param.var.dtype}, an array of shape {value.shape} was given")
        whole = hasattr(value, "__index__") or (isinstance(value, float) and value.is_integer())
        fits = hasattr(value, "__float__") and (whole or not param.var.dtype.startswith(("int", "uint")))
        if not fits and param.var.dtype != "handle":
            raise InputError(f"{param.name} is a {param.var.dtype}, {value!r} was given", fix="give a number of that type")
        sizes.setdefault(param.name, value)
        return
    if isinstance(value, tuple) and param.buffer.dtype in ("int64", "uint64") and all(isinstance(v, np.ndarray) for v in value):
        wanted = tuple(evaluated(e, sizes) for e in param.buffer.shape)
        if len(wanted) != 1 or (not isinstance(wanted[0], ir.Expr) and wanted[0] != len(value)):
            raise InputError(f"{param.name} is declared {describe(param)}, {len(value)} tensors were given for its pointers")
        if isinstance(wanted[0], ir.Var):
            sizes[wanted[0].name] = len(value)
        return
    if not isinstance(value, np.ndarray):
        raise InputError(f"{param.name} is declared {describe(param)}, {value!r} was given")
    wanted = tuple(evaluated(e, sizes) for e in param.buffer.shape)
    fits = len(wanted) == value.ndim and all(isinstance(w, ir.Expr) or w == n for w, n in zip(wanted, value.shape, strict=True))
    if not fits or numpy_dtype(param.buffer.dtype) != value.dtype:
        shape = _shape_text(wanted)
        raise InputError(
            f"{param.name} is declared {shape} {param.buffer.dtype}, {_shape_text(value.shape)} {value.dtype} was given",
            fix="pass a tensor of that shape and dtype" if not fits else f"convert it to {param.buffer.dtype}",
        )
    for extent, size in zip(wanted, value.shape, strict=True):
        if isinstance(extent, ir.Expr):
            _solve(param, extent, size, sizes)


def _solve(param: ir.Param, extent: ir.Expr, size: int, sizes: dict[str, Any]) -> None:
    """Learn a size from an extent such as ``n`` or ``4 * n + 1``; one that is not linear in a single size tells nothing."""
    names = {v.name for v in ir.walk(extent) if isinstance(v, ir.Var) and v.name not in sizes}
    if len(names) != 1:
        return
    name = names.pop()
    try:
        zero, one, two = (evaluated(extent, {**sizes, name: n}) for n in range(3))
    except (ZeroDivisionError, ValueError):
        return
    if not isinstance(zero, int) or not isinstance(one, int) or two != 2 * one - zero or one == zero:
        return
    n, rest = divmod(size - zero, one - zero)
    if rest or n < 0:
        raise InputError(
            f"{param.name} has {size} elements on an axis declared {_linear(name, one - zero, zero)}: no whole {name} gives that"
        )
    sizes[name] = n


def _linear(name: str, factor: int, offset: int) -> str:
    text = name if factor == 1 else f"{factor} * {name}"
    return text if not offset else f"{text} {'+' if offset > 0 else '-'} {abs(offset)}"


def sizes_of(program: ir.Program, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sizes and scalars of the program that its inputs tell, by name."""
    out = {
        name: value for name, value in inputs.items() if value is not None and not hasattr(value, "shape") and not isinstance(value, tuple)
    }
    for param in inputs_of(program):
        value = inputs.get(param.name)
        if param.buffer is not None and value is not None and hasattr(value, "shape"):
            out.update({e.name: int(n) for e, n in zip(param.buffer.shape, value.shape, strict=False) if isinstance(e, ir.Var)})
    return out


def describe(param: ir.Param) -> str:
    """Return e.g. ``A: (1024, 64) float16`` or ``n: int32``."""
    if param.buffer is None:
        return f"{param.name}: {param.var.dtype}"
    return f"{param.name}: {_shape_text(tuple(evaluated(e, {}) for e in param.buffer.shape))} {param.buffer.dtype}"


def default_inputs(
    program: ir.Program, *, seed: int = 0, how: Mapping[str, str] | None = None, consts: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Make the inputs that were not given, from numpy's PCG64(``seed``) in parameter order.

    Floats are standard normal, integers uniform in [0, 4), bool uniform; parameters that the kernel never reads stay
    None, which the simulator takes as poison. ``how`` is NAME → zeros, ones, arange, rand, randint or FILE.npy.

    Raises:
        InputError: A name is not a parameter, a file does not hold what is declared, or a size is not known.
    """
    how, sizes = dict(how or {}), dict(consts or {})
    params = inputs_of(program)
    unknown = [name for name in how if name not in {p.name for p in params}]
    if unknown:
        names = ", ".join(p.name for p in params) or "none"
        raise InputError(
            f"--input {unknown[0]}={how[unknown[0]]}: {program.name} has no input {unknown[0]!r}", fix=f"its inputs are {names}"
        )
    files = {p.name: _load(p.name, how[p.name]) for p in params if p.name in how and how[p.name] not in _KINDS}
    for param in params:  # files first: they say what dynamic sizes are
        if param.name in files:
            check(param, files[param.name], sizes)
    rng, read, out = np.random.Generator(np.random.PCG64(seed)), read_params(program), {}
    tables = pointer_tables(program)
    for param in params:
        if param.name in files:
            out[param.name] = files[param.name]
        elif param.buffer is None:
            out[param.name] = _scalar(param, sizes)
        else:
            shape = _known_shape(param, sizes, program.name)
            kind = how.get(param.name)
            pointed = tables.get(param.name)
            if pointed is not None:
                extents = tuple(evaluated(e, sizes) for e in pointed.shape)
                if len(shape) != 1 or any(isinstance(n, ir.Expr) for n in extents):
                    raise InputError(
                        f"{param.name} of {program.name} holds pointers to tensors whose size is not known", fix="call it from Python"
                    )
                out[param.name] = tuple(_make(kind, extents, pointed.dtype, rng) for _ in range(shape[0]))  # type: ignore[arg-type]
                continue
            out[param.name] = _make(kind, shape, param.buffer.dtype, rng) if kind or param.name in read else None
    return out


def pointer_tables(program: ir.Program) -> dict[str, ir.Buffer]:
    """Return the parameters that hold addresses, with a tensor that the kernel makes from one."""
    names = {p.buffer.data: p.name for p in program.params if p.buffer is not None}
    made: dict[ir.Var, str] = {}
    found: dict[str, ir.Buffer] = {}
    for node in ir.walk(program):
        if (
            isinstance(node, ir.Bind)
            and isinstance(node.value, ir.Call)
            and node.value.op == "tirx.reinterpret"
            and node.var.dtype == "handle"
        ):
            table = next((names[n.buffer.data] for n in ir.walk(node.value) if isinstance(n, ir.Load) and n.buffer.data in names), None)
            if table is not None:
                made[node.var] = table
        elif isinstance(node, ir.Load | ir.Store | ir.Region) and node.buffer.data in made:
            found.setdefault(made[node.buffer.data], node.buffer)
    return found


def read_params(program: ir.Program) -> set[str]:
    """Return the names of the parameters whose elements the kernel may read."""
    by_data = {p.var: p.name for p in program.params} | {p.buffer.data: p.name for p in program.params if p.buffer is not None}
    read: set[str] = set()
    for node in ir.walk(program):
        if isinstance(node, ir.Load) or (isinstance(node, ir.Region) and "r" in node.access):
            read.add(by_data.get(node.buffer.data, ""))
        if isinstance(node, ir.Tile) and node.op.startswith("atomic"):  # adds to what is there
            read |= {by_data.get(r.buffer.data, "") for r in node.args if isinstance(r, ir.Region)}
        if isinstance(node, ir.Var):  # a raw pointer goes into a call: anything may happen to it
            read.add(by_data.get(node, ""))
    return read - {""}


def _make(kind: str | None, shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> Any:
    kinds: Mapping[str, Callable[[], Any]] = {
        "zeros": lambda: np.zeros(shape),
        "ones": lambda: np.ones(shape),
        "arange": lambda: np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape),
        "rand": lambda: rng.random(shape),
        "randint": lambda: rng.integers(0, 4, shape),
        "randn": lambda: rng.standard_normal(shape),
        "bool": lambda: rng.integers(0, 2, shape),
    }
    natural = "randn" if dtype.startswith(_FLOATS) else "bool" if dtype == "bool" else "randint"
    values = kinds[kind or natural]()
    if dtype.startswith(("float8", "float4", "bfloat16")):
        values = values.astype(np.float32)  # ml_dtypes converts from float32 alone without double rounding
    return values.astype(numpy_dtype(dtype))


def _scalar(param: ir.Param, sizes: Mapping[str, Any]) -> Any:
    if param.name in sizes:
        check(param, sizes[param.name], dict(sizes))
        return sizes[param.name]
    if param.var.dtype == "handle":
        return None
    raise InputError(f"{param.name} ({param.var.dtype}) has no value", fix=f"give --const {param.name}=VALUE")


def _known_shape(param: ir.Param, sizes: Mapping[str, Any], kernel: str) -> tuple[int, ...]:
    assert param.buffer is not None
    shape = tuple(evaluated(e, sizes) for e in param.buffer.shape)
    for extent in shape:
        if isinstance(extent, ir.Expr):
            names = sorted({v.name for v in ir.walk(extent) if isinstance(v, ir.Var)})
            raise InputError(
                f"{kernel} leaves the size of {param.name} open: {', '.join(names)}", fix=f"give --const {names[0]}=VALUE" if names else ""
            )
    return tuple(n for n in shape if not isinstance(n, ir.Expr))


def evaluated(expr: ir.Expr, sizes: Mapping[str, Any]) -> int | ir.Expr:
    """Evaluate an extent or stride with the sizes known so far; the expression itself where one is not."""
    from tilelab.layout import evaluate

    if isinstance(expr, ir.Const):
        return int(expr.value)
    env = {v: sizes[v.name] for v in ir.walk(expr) if isinstance(v, ir.Var) and v.name in sizes}
    free = [v for v in ir.walk(expr) if isinstance(v, ir.Var) and v not in env]
    return expr if free else int(evaluate(expr, env))


def _shape_text(shape: tuple[Any, ...]) -> str:
    return "(" + ", ".join(_extent_text(n) for n in shape) + ("," if len(shape) == 1 else "") + ")"


def _extent_text(extent: Any) -> str:
    return extent.name if isinstance(extent, ir.Var) else "?" if isinstance(extent, ir.Expr) else str(extent)


def _load(name: str, path: str) -> Any:
    if not path.endswith(".npy"):
        raise InputError(f"--input {name}={path}: neither one of {', '.join(_KINDS)} nor a .npy file")
    if not Path(path).is_file():
        raise InputError(f"--input {name}={path}: no such file")
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"--input {name}={path}: not a .npy file ({error})") from None
