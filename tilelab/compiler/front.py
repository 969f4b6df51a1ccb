"""Kernel → Program: every form in which TileLang users write a kernel, with its constants given."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import Any

from tilelab import ir
from tilelab.compiler.patience import patience
from tilelab.compiler.provenance import recording
from tilelab.compiler.quiet import quiet
from tilelab.compiler.reader import not_supported
from tilelab.compiler.refusals import input_error, is_ours, refusal
from tilelab.compiler.statements import read_prim_func
from tilelab.errors import EnvironmentLacks, InputError, TileLabError, VerifyError
from tilelab.finding import KernelRefused, finding
from tilelab.verify import verify

#: Attribute of a Program under which a jit's pass configuration is kept.
PASS_CONFIGS = "tilelang_pass_configs"
COMPILE_FLAGS = "tilelang_compile_flags"


def capture(kernel: Any, *tensors: Any, consts: Mapping[str, Any] | None = None, files: Mapping[str, str] | None = None) -> ir.Program:
    """Capture a kernel as a tile-level Program.

    Args:
        kernel: An ``@tilelang.jit`` function (eager or lazy), a ``T.prim_func``, a compiled kernel, a Program, or a
            function with no arguments beyond ``consts`` that returns one of these.
        tensors: Tensors (anything with ``shape``) that settle the ``T.const`` sizes of an eager kernel.
        consts: Values of ``T.const`` names, of compile-time arguments, or of the function's arguments.
        files: File names as recorded → as the user typed them, for findings.

    Raises:
        InputError: A constant is missing or unknown, or ``kernel`` is not a kernel.
        KernelRefused: TileLang refuses the kernel (TL701, TL702), or a Program cannot say it (TL703).
    """
    if isinstance(kernel, ir.Program):
        return kernel
    with loading(files), patience(files):
        program = _capture(kernel, tensors, dict(consts or {}))
    try:
        return verify(program, closed=False)
    except VerifyError as error:
        raise _not_valid(error, files or {}) from error


#: How a grammar error begins → what is wrong with it, and what to write instead.
_INVALID = {
    "the extent ": ("is not a size", "sizes are whole numbers from 0 on, or names from T.dynamic"),
    "the dtype ": ("does not exist", "for example float32, float16, bfloat16, float8_e4m3fn, int32, int8, bool"),
    "the scope ": ("does not exist", "T.alloc_shared, T.alloc_fragment and T.alloc_local know their scopes: leave scope= out"),
    "an index of dtype ": ("is not a whole number", "use // for the division of indices, or T.cast(…, 'int32')"),
}


def _not_valid(error: VerifyError, files: Mapping[str, str]) -> KernelRefused:
    """The refusal of what no kernel can have (TL702), or of what a Program cannot say (TL703)."""
    for start, (wrong, fix) in _INVALID.items():
        if error.what.startswith(start):
            loc = error.loc
            file = files.get(loc.file, loc.file) if loc else None
            return KernelRefused(finding("TL702", f"{error.what} {wrong}.", fix=fix, file=file, line=loc.line if loc else None))
    return not_supported(error.what, error.loc)


def capture_prim_func(func: Any, *, outputs: Any = None, extra_attrs: Mapping[str, Any] | None = None) -> ir.Program:
    """Capture a TVM PrimFunc as a tile-level Program; ``outputs`` is the kernel's ``out_idx``."""
    return read_prim_func(func, outputs=outputs, extra_attrs=extra_attrs)


@contextmanager
def loading(files: Mapping[str, str] | None = None) -> Iterator[None]:
    """Within the block kernels are built quietly, with macro call sites recorded and errors told in plain words.

    Raises:
        InputError: A name is missing, or Python cannot parse the file.
        KernelRefused: TileLang refuses a kernel.
        EnvironmentLacks: TileLang is not installed.
    """
    try:
        import tilelang  # noqa: F401
    except ImportError as error:
        raise EnvironmentLacks(f"TileLang cannot be imported: {error}", fix="pip install 'tilelang>=0.1.15,<0.2'") from None
    try:
        with quiet(), recording(), _assertions_kept():
            yield
    except (TileLabError, KernelRefused):
        raise
    except SystemExit as error:
        raise InputError(f"the kernel's Python exits with {error.code!r} while it is built", fix="take sys.exit out of it") from None
    except Exception as error:
        if is_ours(error):
            raise
        told = input_error(error, files=files)
        raise told or KernelRefused(refusal(error, files=files)) from error


@contextmanager
def _assertions_kept() -> Iterator[None]:
    """Let ``T.device_assert`` be recorded: TileLang drops it on a machine with no GPU."""
    from tilelang.cuda import debug

    before = debug._IS_CUDA_AVAILABLE
    debug._IS_CUDA_AVAILABLE = True
    try:
        yield
    finally:
        debug._IS_CUDA_AVAILABLE = before


def _capture(kernel: Any, tensors: tuple[Any, ...], consts: dict[str, Any], depth: int = 0) -> ir.Program:
    kind = type(kernel).__name__
    if isinstance(kernel, ir.Program):
        return kernel
    if kind == "AutoTuneImpl":
        kernel, kind = kernel.jit_impl, "JITImpl"
    if kind == "JITImpl":
        return _capture_jit(kernel, tensors, consts)
    if kind == "PrimFunc":
        return _taking(read_prim_func(kernel), consts)
    if kind == "JITKernel":
        return _taking(read_prim_func(kernel.prim_func, outputs=kernel.out_idx), consts)
    if callable(kernel) and not isinstance(kernel, type) and depth < 3:
        return _capture(_call(kernel, consts), tensors, consts, depth + 1)
    name = getattr(kernel, "__name__", kind)
    raise InputError(
        f"{name} is not a kernel but a {kind}",
        fix="give a @tilelang.jit function, a T.prim_func, or a function that returns one",
    )


def _call(function: Any, consts: dict[str, Any]) -> Any:
    """Call a function of constants only; the constants it takes are used up."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise InputError(f"{function!r} is not a kernel") from None
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    given = {k: consts.pop(k) for k in list(consts) if takes_all or k in parameters}
    missing = [
        n for n, p in parameters.items() if p.default is p.empty and n not in given and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]
    if missing:
        raise InputError(f"{function.__name__} needs {', '.join(missing)}", fix=_give(missing))
    return function(**given)


def _give(names: list[str]) -> str:
    return f"give {' '.join(f'--const {n}=VALUE' for n in names)} (or consts={{{', '.join(f'{n!r}: …' for n in names)}}})"


def _capture_jit(jit: Any, tensors: tuple[Any, ...], consts: dict[str, Any]) -> ir.Program:
    func = jit.func
    if type(func).__name__ == "PrimFunc":
        return _taking(read_prim_func(func, outputs=jit.out_idx, extra_attrs=_compile_attrs(jit)), consts)
    # TileLang's cache does not notice that a Python global changed since: build afresh.
    getattr(func, "p1_cache", {}).clear()
    name = func.orig_func.__name__
    parameters = jit.signature.parameters
    values = [n for n in parameters if n not in func.tensor_args]
    missing = [n for n in values if parameters[n].default is _EMPTY and n not in consts and parameters[n].kind in _NAMED]
    if missing:
        tensors_too = f"; a tensor is annotated in the kernel, as in {missing[0]}: T.Tensor[[N], T.float32]" if not func.tensor_args else ""
        raise InputError(f"{name} needs {', '.join(missing)}", fix=_give(missing) + tensors_too)
    eager = _is_eager(jit, consts)
    given = dict(consts)
    if eager:
        given.update(zip(func.tensor_args, (_Shape(t) for t in tensors), strict=False))
    elif not _takes_all(parameters):
        given = {k: v for k, v in consts.items() if k in parameters}
    try:
        prim = jit.get_tir(**given)
    except ValueError as error:
        wanted = _CONSTEXPR.match(str(error))
        if wanted is None:
            raise
        raise InputError(f"{name} needs {wanted[1]}", fix=_give([wanted[1]])) from None
    program = read_prim_func(prim, outputs=jit.out_idx, extra_attrs=_compile_attrs(jit, prim))
    sizes = {v.name for t in func.p1_cache.values() for v in t.constexprs or ()}
    return program if _takes_all(parameters) else _taking(program, consts, name, [*values, *sorted(sizes)], set(parameters))


def _taking(
    program: ir.Program, consts: Mapping[str, Any], name: str = "", values: Sequence[str] = (), parameters: Set[str] = frozenset()
) -> ir.Program:
    """Return the program, unless a constant was given that nothing there takes: neither it, nor what made it."""
    sizes = ir.dynamic_sizes(program)
    unknown = [n for n in consts if n not in {*values, *parameters, *sizes, *(p.name for p in program.params)}]
    if unknown:
        listed = list(dict.fromkeys([*values, *sizes, *(p.name for p in program.params if p.buffer is None)]))
        raise InputError(
            f"{name or program.name} has no constant {', '.join(unknown)}", fix=f"it takes {', '.join(listed) if listed else 'none'}"
        )
    return program


_EMPTY = inspect.Parameter.empty
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
#: How TileLang says that a ``T.const`` size has no value.
_CONSTEXPR = re.compile(r"Cannot find value for constexpr variable `(\w+)`")


def _takes_all(parameters: Mapping[str, inspect.Parameter]) -> bool:
    return any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _is_eager(jit: Any, consts: dict[str, Any]) -> bool:
    if jit.mode in ("eager", "lazy"):
        return bool(jit.mode == "eager")
    # An eager kernel annotates tensors in its signature or body; a lazy one takes only compile-time values.
    from tilelang.language.eager.ast import has_internal_prim_func

    if has_internal_prim_func(jit.func.orig_func):
        return False
    return bool(jit.func.tensor_args) or jit.initialize_jit_mode(**consts) == "eager"


def _compile_attrs(jit: Any, prim: Any = None) -> dict[str, Any]:
    """The jit's own pass configuration and compiler flags, which win over those of the function."""
    on_function = dict(prim.attrs or {}) if prim is not None else {}
    out: dict[str, Any] = {}
    configs = {
        **dict(on_function.get(PASS_CONFIGS, {}) or {}),
        **{str(getattr(k, "value", k)): v for k, v in (jit.pass_configs or {}).items()},
    }
    if configs:
        out[PASS_CONFIGS] = {str(getattr(k, "value", k)): v for k, v in configs.items()}
    flags = jit.compile_flags
    own = [flags] if isinstance(flags, str) else list(flags or ())
    every = [*(str(f) for f in on_function.get(COMPILE_FLAGS, ()) or ()), *own]
    if every:
        out[COMPILE_FLAGS] = every
    return out


class _Shape:
    """What TileLang asks of a tensor to settle sizes: its shape, strides (in elements) and dtype."""

    def __init__(self, tensor: Any) -> None:
        self.shape = tuple(tensor.shape)
        strides = tensor.stride() if callable(getattr(tensor, "stride", None)) else [s // tensor.itemsize for s in tensor.strides]
        self._strides = tuple(strides)
        self.dtype = tensor.dtype

    def stride(self) -> tuple[int, ...]:
        return self._strides
