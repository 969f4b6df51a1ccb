"""The untrusted side: run a submission's source, capture its kernel for each size, and write the Programs as frames.

Nothing here is trusted by the grader: what arrives is parsed strictly, and every Program is verified and simulated anew.
"""

from __future__ import annotations

import errno
import linecache
import os
import sys
import traceback
import types
from collections.abc import Callable
from typing import Any

from tilelab.grader import wire

Write = Callable[[bytes], Any]


def warm() -> None:
    """Import what every submission needs, so that a forked child starts at once."""
    import tilelang.language  # noqa: F401

    import tilelab.compiler
    import tilelab.serde  # noqa: F401


def capture_submission(request: dict[str, Any], write: Write) -> None:
    """Run the units of ``request``, capture ``entry`` for each of ``sizes``, and write one frame for each, then the end."""
    try:
        namespace = run_units(request["units"])
        entry = request["entry"]
        if entry not in namespace:
            return _error(
                write, "no kernel", f"it defines no kernel named {entry!r}", fix=f"define a @tilelang.jit function called {entry}"
            )
        for sizes in request["sizes"]:
            write(capture_one(namespace[entry], sizes, layout=request.get("layout", False)))
    except MemoryError:
        return _error(write, "memory", "it used more memory than a submission may", fix="make tensors with T.alloc_*, not in Python")
    except SystemExit as e:
        return _error(write, "exit", f"it called exit({e.code!r}) before its kernel was captured", fix="leave out sys.exit() and quit()")
    except KeyboardInterrupt:
        return _error(write, "exit", "it interrupted itself before its kernel was captured")
    except PermissionError as e:
        line, file = _where(e, {u["file"] for u in request["units"]})
        message = f"it tried what a submission may not do: {_short(e)}"
        return _error(write, "forbidden", message, fix="a kernel needs no files, processes or network", line=line, file=file)
    except BaseException as e:
        if isinstance(e, OSError) and e.errno == errno.EFBIG:
            return _error(write, "file", "it wrote a file larger than a submission may", fix="a kernel needs no files")
        line, file = _where(e, {u["file"] for u in request["units"]})
        return _error(
            write, "raised", f"running it raised {type(e).__name__}: {_short(e)}", fix="run the file by itself first", line=line, file=file
        )
    write(wire.frame(wire.END))
    return None


def capture_one(kernel: Any, sizes: dict[str, int], *, layout: bool = False) -> bytes:
    """Return the frame of one capture: the Program (or the layout in one), or why TileLab or TileLang refuses it."""
    from tilelab import serde
    from tilelab.compiler import capture
    from tilelab.errors import TileLabError
    from tilelab.finding import KernelRefused, finding

    try:
        data = serde.dumps(_layout(kernel, sizes) if layout else capture(kernel, consts=sizes))
    except KernelRefused as refused:
        return wire.frame(wire.REFUSED, refused.finding.to_json())
    except TileLabError as e:
        return wire.frame(wire.REFUSED, finding("TL702", e.message, fix=e.fix).to_json())
    return wire.frame(wire.PROGRAM, data if isinstance(data, bytes) else data.encode())


def _layout(function: Any, sizes: dict[str, int]) -> Any:
    """Call a layout function with the sizes that it names (or takes) and wrap what it returns."""
    from tilelab.errors import InputError
    from tilelab.grader.layouts import index_map_of, wrap

    if not callable(function) or type(function).__module__.startswith("tilelang"):
        raise InputError(
            f"it is {type(function).__name__}, not a function of the sizes", fix="write a function that returns a T.Layout or T.Fragment"
        )
    code = getattr(function, "__code__", None)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code is not None else tuple(sizes)
    made = function(**{k: v for k, v in sizes.items() if k in names})
    index_map = index_map_of(made)
    if index_map is None:
        raise InputError(f"it returned {type(made).__name__}, which is no layout", fix="return a T.Layout or a T.Fragment")
    return wrap(function.__name__ if getattr(function, "__name__", "").isidentifier() else "layout", index_map)


def run_units(units: list[dict[str, str]]) -> dict[str, Any]:
    """Execute the units in order, in one module; their text goes to ``linecache``, where TileLang finds it."""
    module = types.ModuleType("submission")
    module.__file__ = units[0]["file"] if units else "submission"
    sys.modules["submission"] = module
    for unit in units:
        lines = unit["source"].splitlines(keepends=True)
        linecache.cache[unit["file"]] = (len(unit["source"]), None, lines, unit["file"])
        exec(compile(unit["source"], unit["file"], "exec", dont_inherit=True), module.__dict__)  # this is what the process is for
    return module.__dict__


def _where(e: BaseException, files: set[str]) -> tuple[int | None, str | None]:
    """The innermost line of the submission in a traceback."""
    for frame in reversed(traceback.extract_tb(e.__traceback__)):
        if frame.filename in files:
            return frame.lineno, frame.filename
    return None, None


def _short(e: BaseException) -> str:
    text = str(e).strip().splitlines()
    return text[0][:300] if text else ""


def _error(write: Write, reason: str, message: str, *, fix: str = "", line: int | None = None, file: str | None = None) -> None:
    write(wire.frame(wire.ERROR, {"reason": reason, "message": message, "fix": fix, "line": line, "file": file}))


def main() -> int:
    """Fresh-process isolation: read a request on stdin, write the frames to the file named on the command line."""
    import json

    from tilelab.grader.sandbox import Limits, confine

    request = json.loads(sys.stdin.buffer.read())
    with open(sys.argv[1], "wb", buffering=0) as out:  # noqa: PTH123
        warm()
        held = confine(Limits(**request["limits"]), writable=os.path.dirname(sys.argv[1]), readable=request["readable"])  # noqa: PTH120
        out.write(wire.frame(wire.GUARDS, list(held)))
        capture_submission(request, out.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
