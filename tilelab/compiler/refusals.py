"""TileLang's front-end errors in the learner's words: which operation, on which line, with which shapes, and what to change."""

from __future__ import annotations

import difflib
import re
import sysconfig
import traceback
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from tilelab.compiler.provenance import decode, is_library
from tilelab.errors import InputError
from tilelab.finding import Finding, finding

#: Front-end functions whose operands must fit each other → the names of those operands, as users know them.
_FITTING: Mapping[str, tuple[str, ...]] = {
    "copy": ("src", "dst"),
    "async_copy": ("src", "dst"),
    "tma_copy": ("src", "dst"),
    "copy_cluster": ("src", "dst"),
    "transpose": ("src", "dst"),
    "gemm": ("A", "B", "C"),
    "wgmma_gemm": ("A", "B", "C"),
    "tcgen05_gemm": ("A", "B", "C"),
    "gemm_blockscaled": ("A", "B", "C", "SFA", "SFB"),
    "gemm_sp": ("A_sparse", "E", "B", "C"),
    "reduce": ("buffer", "out"),
    "cumsum": ("src", "dst"),
    "cummax": ("src", "dst"),
    "atomic_add": ("dst", "value"),
    "atomic_max": ("dst", "value"),
    "atomic_min": ("dst", "value"),
    "finalize_reducer": ("reducer", "dst"),
    "fill": ("buffer",),
    "im2col": ("img", "col"),
    "reshape": ("src",),
    "view": ("src",),
}
_REDUCE = re.compile(r"reduce_\w+")
_HOW: Mapping[str, str] = {
    "copy": "give both sides the same extents: allocate the smaller side larger, or copy a slice such as A[0:m, 0:n].",
    "transpose": "the destination of a (M, N) tile must be (N, M).",
    "gemm": "C must be (M, N), A (M, K) and B (K, N); with transpose_A or transpose_B the last two are swapped.",
    "reduce": "the output has the input's shape without the reduced dimension (or with 1 there); check dim=.",
    "cumsum": "source and destination must have the same shape, and dim must be one of its dimensions.",
    "cummax": "source and destination must have the same shape, and dim must be one of its dimensions.",
    "atomic_add": "give the destination and the value the same shape.",
}


def refusal(error: BaseException, *, files: Mapping[str, str] | None = None) -> Finding:
    """Return the finding (TL701 or TL702) that tells a TileLang front-end error.

    Args:
        error: What was raised while a kernel was being built.
        files: File names as recorded → as the user typed them.
    """
    user, inner = _frames(error)
    file, line = (user[-1][0].f_code.co_filename, user[-1][1]) if user else _builder_place(error)
    where: dict[str, Any] = {"file": (files or {}).get(file, file) if file else None, "line": line}
    found = _operation(inner)
    if found is not None and isinstance(error, AssertionError | ValueError | TypeError | IndexError):
        op, operands, values = found
        message = f"T.{op} does not fit its operands: {_named(operands, values)}{_reason(error)}."
        fix = _HOW.get(op) or _HOW.get(next((k for k in _HOW if k in op), ""), "") or "make the shapes and dtypes agree."
        evidence = {"operation": f"T.{op}", "operands": {n: _evidence(v) for n, v in zip(operands, values, strict=True)}}
        return finding("TL701", message, fix=fix, evidence=evidence, **where)
    evidence = {"said": plain(str(error))[:2000]}
    if user and not inner:
        words, fix = _advice(error)
        message = f"{words}." if words else f"Python stops here with {type(error).__name__}: {first_sentence(error)}."
        return finding("TL702", message, fix=fix or "change that line.", evidence=evidence, **where)
    called = _called(inner)
    said = f"TileLang refuses {called}" if called else "TileLang refuses this line" if line else "TileLang refuses this kernel"
    words, fix = _advice(error)
    fix = fix or "change that line so that TileLang accepts it."
    return finding("TL702", f"{said}: {words or first_sentence(error)}.", fix=fix, evidence=evidence, **where)


def input_error(error: BaseException, *, files: Mapping[str, str] | None = None) -> InputError | None:
    """Return the error to raise where the mistake is Python's to tell (a missing name, a syntax error); else None."""
    user, inner = _frames(error)
    where = ""
    if user:
        file = user[-1][0].f_code.co_filename
        where = f"{(files or {}).get(file, file)}:{user[-1][1]}: "
    if isinstance(error, SyntaxError):
        return InputError(f"{error.filename}:{error.lineno}: Python cannot parse this: {error.msg}")
    if isinstance(error, NameError) and not isinstance(error, UnboundLocalError):
        name = error.name or str(error)
        known = list(user[-1][0].f_globals) if user else []
        return InputError(f"{where}the name {name!r} is not defined", fix=_close(name, known) or "define it or import it before the kernel")
    if isinstance(error, AttributeError) and error.name and type(error.obj).__name__ == "module" and not _deep(inner):
        module = getattr(error.obj, "__name__", "")
        shown = "T" if module.startswith("tilelang") and "language" in module else module
        return InputError(
            f"{where}{shown} has no {error.name!r}",
            fix=_close(error.name, dir(error.obj)) or "check its spelling against TileLang's documentation",
        )
    if isinstance(error, ImportError):
        return InputError(f"{where}{plain(str(error))}", fix="install it, or remove the import")
    return None


def is_ours(error: BaseException) -> bool:
    """Tell whether an error arose in TileLab itself: a fault to report, not something to tell as TileLang's refusal."""
    frames = [f.f_globals.get("__name__", "") for f, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and frames[-1].startswith("tilelab.") and not frames[-1].startswith("tilelab.kernels")


def plain(text: str) -> str:
    """Return TileLang's text without what only its authors can read: C++ frames, IR dumps, internal names."""
    full = text
    text = re.split(r"\n\s*(?:Stack trace|Traceback|\[bt\])", text)[0]
    text = re.sub(r"^(?:tvm\.\w+(?:\.\w+)*|InternalError|ValueError|TVMError):\s*", "", text.strip())
    text = re.sub(r"Check failed: \([^\n]*?\) (?:is false|\([^\n]*?\)) ?: ?", "", text)
    left = re.sub(r"Check failed: [^\n:]*: ?", "", text).strip()
    if left:
        return left
    check = re.search(r"Check failed: (.*?) is false", full)
    return f"its check {check[1].strip()} fails" if check else ""


def first_sentence(error: BaseException) -> str:
    """Return what an error says, in one line of bounded length and without the final stop."""
    text = " ".join(plain(str(error)).split()) or type(error).__name__
    text = re.sub(r"make_closure\.<locals>\.(\w+)\.<locals>\.\1\(\)", r"\1", text)
    text = re.sub(r'\{"kind":"(\w+)".*?\}\}?[,.]?"?(?= |$)', r"\1", text)
    text = re.sub(r"\(<class '[^']*'>\)", "", text)
    text = re.sub(r"<class '(?:[\w.]+\.)?(\w+)'>", r"\1", text)
    text = re.sub(r"! variable `\w+` is defined in frame:.*", "", text)
    cut = re.split(r"(?<=[.!?]) (?=[A-Z])", text)[0]
    return (cut[:240] + "…" if len(cut) > 240 else cut).rstrip(" .:")


# ------------------------------------------------------------------------------------------------------ frames
def _frames(error: BaseException) -> tuple[list[tuple[FrameType, int]], list[FrameType]]:
    """Split the traceback into the user's frames and TileLang's frames below the last of them."""
    user: list[tuple[FrameType, int]] = []
    inner: list[FrameType] = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if _is_user(file):
            user.append((frame, line))
            inner = []
        else:
            inner.append(frame)
    return user, inner


@cache
def _not_users() -> tuple[str, ...]:
    """Folders whose code is not the user's: this package but for its kernels, and Python's own library."""
    here = Path(__file__).resolve().parents[1]
    return (*(str(p) for p in here.iterdir() if p.name != "kernels"), *(sysconfig.get_paths()[k] for k in ("stdlib", "platstdlib")))


def _is_user(file: str) -> bool:
    if is_library(file) or file.startswith(("python/", "/project/")) or file.endswith((".cc", ".cpp", ".h", ".pxi", ".pyx")):
        return False
    return "site-packages" in file or not file.startswith(_not_users())


def _builder_place(error: BaseException) -> tuple[str | None, int | None]:
    """The line that TileLang's builder had reached when it failed."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        for builder in (frame.f_locals.get("self"), frame.f_locals.get("builder")):
            if type(builder).__name__ == "Builder":
                loc = decode(str(getattr(builder, "current_file", "")), int(getattr(builder, "current_line", 0)))
                if loc is not None:
                    return loc.file, loc.line
    for frame, _ in traceback.walk_tb(error.__traceback__):
        function = getattr(frame.f_locals.get("self"), "orig_func", None)
        if function is not None:
            return function.__code__.co_filename, function.__code__.co_firstlineno
    return None, None


def _deep(inner: list[FrameType]) -> bool:
    """Tell whether the error arose inside TileLang rather than on a line of the user."""
    return any("language" in f.f_globals.get("__name__", "") and f.f_code.co_name not in ("rval", "resolve_call") for f in inner)


def _operation(inner: list[FrameType]) -> tuple[str, list[str], list[Any]] | None:
    for frame in inner:
        name = frame.f_code.co_name
        operands = _FITTING.get(name) or (("buffer", "out") if _REDUCE.fullmatch(name) else None)
        if operands and ".language" in frame.f_globals.get("__name__", ""):
            have = [(n, frame.f_locals[n]) for n in operands if n in frame.f_locals]
            return name, [n for n, _ in have], [v for _, v in have]
    return None


def _called(inner: list[FrameType]) -> str:
    for frame in inner:
        module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        if name == "wrapped":  # a decorator: its function is what was called
            name = getattr(frame.f_locals.get("func", frame.f_locals.get("f")), "__name__", "_")
        if ".language" in module and "eager" not in module and not name.startswith("_"):
            return f"T.{name}"
    return ""


# --------------------------------------------------------------------------------------------------- operands
def shape_of(v: Any) -> tuple[Any, ...] | None:
    """Return the extents that a buffer, a region or an element stands for; None for a scalar."""
    kind = type(v).__name__
    if kind == "Buffer":
        return tuple(v.shape)
    if kind == "BufferRegion":
        return tuple(r.extent for r in v.region)
    return None


def _name_of(v: Any) -> str:
    buffer = getattr(v, "buffer", v)
    return str(getattr(buffer, "name", "")) or type(v).__name__


def _text(shape: tuple[Any, ...]) -> str:
    return "(" + ", ".join(str(s) for s in shape) + ("," if len(shape) == 1 else "") + ")"


def _shape_text(v: Any) -> str:
    shape = shape_of(v)
    if shape is not None:
        return _text(shape)
    whole = shape_of(getattr(v, "buffer", None))
    return f"one element of {_text(whole)}" if whole is not None else "one value"


def _named(operands: list[str], values: list[Any]) -> str:
    parts = []
    for role, v in zip(operands, values, strict=True):
        dtype = getattr(getattr(v, "buffer", v), "dtype", "")
        name = _name_of(v)
        called = name if name != "Buffer" else role
        parts.append(f"{called} is {_shape_text(v)} {dtype}".rstrip())
    return " but ".join(parts) if len(parts) == 2 else ", ".join(parts)


def _evidence(v: Any) -> dict[str, Any]:
    shape = shape_of(v)
    return {
        "name": _name_of(v),
        "shape": [str(s) if not str(s).lstrip("-").isdigit() else int(str(s)) for s in shape] if shape is not None else None,
        "dtype": str(getattr(getattr(v, "buffer", v), "dtype", "")),
    }


def _reason(error: BaseException) -> str:
    text = first_sentence(error)
    if not str(error) or "StructuralEqual" in text or "<root>" in text:
        return ""
    return f" ({text})"


#: What TileLang or Python says → that in plain words ("" to leave it as it is, {1} for a group), and what to try.
_ADVICE: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (re.compile(pattern), words, fix)
    for pattern, words, fix in (
        (r"outside its defining region", "", "make it with T.alloc_var before the loop or branch, and assign to it inside."),
        (r"Not all tensor allocated from `T\.empty`", "", "return every tensor that T.empty makes."),
        (r"Only tensor allocated from `T\.empty` can be returned", "", "make it with T.empty, or write to a parameter and return nothing."),
        (r"is not used in any buffer shape", "", "use the T.const size as an extent of a tensor annotation, or make it an argument."),
        (r"Infinite while loop", "", "give the loop a condition that the kernel changes, or leave it with T.loop_break()."),
        (r"make_closure.*missing \d+ required positional argument", "", "annotate every parameter, e.g. A: T.Tensor((N,), 'float32')."),
        (r"(\w+)\(\) missing \d+ required positional argument", "", "give that argument too."),
        (r"(\w+)\(\) takes (?:from )?\d.* positional arguments? but", "", "give fewer arguments, or name them."),
        (r"cannot be used as condition", "", "compare an element, e.g. if A[i] > 0."),
        (r"-dimensional, cannot be indexed", "", "give one index for each dimension of the buffer."),
        (r"can only be used inside", "", "call it inside a @T.prim_func or a @tilelang.jit function."),
        (r"threads must be positive", "", "launch with 1 to 1024 threads."),
        (r"grid_size\.size\(\) <= 3", "", "a grid has one to three dimensions."),
        (r"unexpected keyword argument", "", "check the names of its arguments."),
        (r"scalar integer as the loop_var", "", "loop over an integer count."),
        (r"Expected integer argument", "", "cast to an integer dtype first, with T.cast."),
        (r"(?:not enough|too many) values to unpack \(expected (\d+)(?:, got (\d+))?\)",
         "there are {1} names on the left, and another number of loop or block variables", "give as many names as there are extents."),
        (r"Mismatched type on argument #2 when calling: `script\.ir_builder\.tirx\.BufferStore",
         "an index is no number, but a list or a tuple", "name each extent by itself: for i, j in T.Parallel(m, n)."),
        (r"Mismatched type on argument #0 when calling: `script\.ir_builder\.tirx\.(?:SBlockAllocBuffer|Buffer)",
         "the shape is no list of whole numbers", "give a tuple such as (64, 64)."),
        (r"Mismatched type on argument #1 when calling: `script\.ir_builder\.tirx\.(?:SBlockAllocBuffer|Buffer)",
         "the dtype is none", 'give a dtype such as "float16".'),
        (r"Mismatched type on argument #\d+ when calling: `([\w.]+)\(", "an argument has the wrong kind (in {1})", "check what it takes."),
        (r"cannot make const for type handle", "a string stands where a number is wanted", "give a number."),
        (r"supports multiple types of integer division", "integers are divided by /, which may mean several things",
         "write // for a whole quotient, or T.cast to a float first."),
        (r"[Uu]nsupported operand type\(s\) for (\S+): '?(?:Buffer|Tensor)\w*'?|for (\S+): '\w+' and 'Buffer'",
         "whole buffers take no arithmetic", "compute by elements: for i, j in T.Parallel(m, n): C[i, j] = A[i, j] * 2."),
        (r"must be real number, not (?:BufferLoad|PrimExpr|\w*Expr|Var|Mul|Add|Sub|Cast)",
         "a function of Python's math is given a value that only the kernel knows", "take T.exp, T.sqrt and the like instead."),
        (r"Cannot use and / or / not operator to Expr", "Python asks whether a value of the kernel is true, before the kernel runs",
         "take T.max, T.min, T.if_then_else and the like instead of Python's or numpy's functions."),
        (r"slicing with step is not supported", "", "copy every nth element in a T.Parallel loop."),
        (r"not supported between instances of '(\w+)' and '(\w+)'", "a {1} stands where a number is wanted", "give a number."),
    )
)  # fmt: skip


def _advice(error: BaseException) -> tuple[str, str]:
    """Return an error in plain words, empty where its own will do, and what to try, empty where nothing is known."""
    if isinstance(error, NotImplementedError):
        return "", "use another form of the operation; TileLang 0.1.15 does not have this one."
    unknown = re.search(r"unknown dtype `(\w+)`", str(error))
    if unknown is not None:
        return "", _close(unknown[1], list(_DTYPES)) or 'give a dtype such as "float16".'
    for pattern, words, fix in _ADVICE:
        found = pattern.search(str(error))
        if found is not None:
            return words.format(found[0], *found.groups()), fix
    return "", ""


_DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64",
    "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int4",
)  # fmt: skip


def _close(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else ""
