"""``tilelab run``: a script as ``__main__``, under the hook."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tilelab.errors import InputError, TileLabError
from tilelab.finding import Finding, KernelRefused
from tilelab.loading import compile_source
from tilelab.runtime.hook import Settings


def run_script(file: str, args: Sequence[str], settings: Settings) -> int:
    """Run ``file`` as Python would and return its exit status; its own errors print as Python prints them.

    Raises:
        InputError: There is no such file, or Python cannot parse it.
    """
    import importlib.util

    path = Path(file)
    if not path.is_file():
        raise InputError(f"{file} {'is a folder' if path.is_dir() else 'does not exist'}", fix="tilelab run SCRIPT.py [ARGS…]")
    try:
        text = importlib.util.decode_source(path.read_bytes())
    except (OSError, UnicodeDecodeError, SyntaxError, LookupError) as error:
        raise InputError(f"{file}: not a text file that Python can read ({error})") from None
    code = compile_source(text, file, str(path.resolve()))
    main = type(sys)("__main__")
    main.__file__ = str(path.resolve())
    main.__builtins__ = __builtins__  # type: ignore[attr-defined]
    sys.modules["__main__"] = main
    sys.argv = [file, *args]
    sys.path.insert(0, str(path.resolve().parent))
    from tilelab.compiler.provenance import recording

    try:
        with recording():
            exec(code, main.__dict__)
    except SystemExit as error:
        return _status(error.code)
    except KernelRefused as refused:
        found = as_typed(refused.finding, file)
        settings.findings.append(refused.finding)
        print(found, file=sys.stderr)
        return 1
    except TileLabError as error:
        _print_traceback(error, str(path.resolve()))
        return error.exit_code
    except BaseException as error:
        if _tilelang_front_end(error):
            from tilelab.compiler import refusal

            found = refusal(error, files={str(path.resolve()): file})
            settings.findings.append(found)
            print(found, file=sys.stderr)
            return 1
        _print_traceback(error, str(path.resolve()))
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def as_typed(found: Finding, file: str) -> Finding:
    """Name the script as the user typed it."""
    return replace(found, file=file) if found.file and Path(found.file) == Path(file).resolve() else found


def _status(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _print_traceback(error: BaseException, script: str) -> None:
    """Print what Python would have printed: frames from the script on, none of ours."""
    frames = traceback.TracebackException.from_exception(error)
    first = next((i for i, f in enumerate(frames.stack) if f.filename == script), 0)
    del frames.stack[:first]
    sys.stderr.write("".join(frames.format()))


def _tilelang_front_end(error: BaseException) -> bool:
    """Say whether TileLang refused a kernel (rather than the script failing by itself)."""
    modules = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    return isinstance(error, Exception) and any(m.startswith("tilelang.language") for m in modules)
