"""TileLang's front-end errors in the learner's words: which operation, on which line, with which shapes, and what to change."""

from __future__ import annotations

import difflib
import re
import traceback
from collections.abc import Mapping
from types import FrameType
from typing import Any

from tilelab.compiler.provenance import is_library
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
    file, line = (user[-1][0].f_code.co_filename, user[-1][1]) if user else (None, None)
    where: dict[str, Any] = {"file": (files or {}).get(file, file) if file else None, "line": line}
    found = _operation(inner)
    if found is not None:
        op, operands, values = found
        if isinstance(error, AssertionError | ValueError | TypeError | IndexError) and not isinstance(error, NotImplementedError):
            message = f"T.{op} does not fit its operands: {_named(operands, values)}{_reason(error)}."
            fix = _HOW.get(op) or _HOW.get(next((k for k in _HOW if k in op), ""), "") or "make the shapes and dtypes agree."
            evidence = {"operation": f"T.{op}", "operands": {n: _evidence(v) for n, v in zip(operands, values, strict=True)}}
            return finding("TL701", message, fix=fix, evidence=evidence, **where)
    called = _called(inner)
    said = f"TileLang refuses {called}" if called else "TileLang refuses this line"
    return finding("TL702", f"{said}: {first_sentence(error)}.", fix=_advice(error), evidence={"said": plain(str(error))[:2000]}, **where)


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
    text = re.split(r"\n\s*(?:Stack trace|Traceback|\[bt\])", text)[0]
    text = re.sub(r"^(?:tvm\.\w+(?:\.\w+)*|InternalError|ValueError|TVMError):\s*", "", text.strip())
    text = re.sub(r"Check failed: \([^\n]*?\) (?:is false|\([^\n]*?\)) ?: ?", "", text)
    text = re.sub(r"Check failed: [^\n:]*: ?", "", text)
    return text.strip()


def first_sentence(error: BaseException) -> str:
    """Return what an error says, in one line of bounded length and without the final stop."""
    text = " ".join(plain(str(error)).split()) or type(error).__name__
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


def _is_user(file: str) -> bool:
    if is_library(file) or file.startswith(("python/", "/project/")):
        return False
    return "tilelab/" not in file.replace("\\", "/") or "/kernels/" in file


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
    return _text(shape) if shape is not None else "one element"


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


def _advice(error: BaseException) -> str:
    if isinstance(error, NotImplementedError):
        return "use another form of the operation; TileLang 0.1.15 does not have this one."
    return "change that line so that TileLang accepts it."


def _close(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else ""
