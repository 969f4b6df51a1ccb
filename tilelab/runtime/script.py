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
        return _refused(refused.finding, settings, file)
    except TileLabError as error:
        print(f"{_where(error, file)}{error}", file=sys.stderr)
        return error.exit_code
    except BaseException as error:
        if _tilelang_front_end(error):
            from tilelab.compiler import refusal

            return _refused(refusal(error, files={str(path.resolve()): file}), settings, file)
        _print_traceback(error, str(path.resolve()))
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _refused(found: Finding, settings: Settings, file: str) -> int:
    """Tell what ends the script; with ``checks`` it is told with the rest, once."""
    if found not in settings.findings:
        settings.findings.append(found)
    if not settings.checks:
        print(as_typed(found, file), file=sys.stderr)
    return 1


def _where(error: BaseException, file: str) -> str:
    """Return ``script.py:12: ``, the line that led to an error: of the script, else the innermost of the user's."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not _ours(f.filename)]
    own = [f for f in frames if Path(f.filename) == Path(file).resolve()] or frames
    if not own:
        return ""
    return f"{file if Path(own[-1].filename) == Path(file).resolve() else own[-1].filename}:{own[-1].lineno}: "


def _ours(name: str) -> bool:
    """Say whether a frame belongs to TileLab or to an installed package."""
    return Path(name).is_relative_to(Path(__file__).resolve().parent.parent) or "site-packages" in Path(name).parts or name.startswith("<")


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
