"""Loading ``FILE.py::KERNEL``: run the user's file and find the kernel in it."""

from __future__ import annotations

import contextlib
import importlib.util
import linecache
import os
import sys
import traceback
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilelab.errors import InputError, TileLabError
from tilelab.finding import KernelRefused

#: type name → what it is; named, not imported, so that a file without TileLang loads without TileLang
_KERNEL_TYPES = {"JITImpl", "AutoTuneImpl", "PrimFunc", "JITFunc", "JITKernel", "SimKernel"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A kernel and where it came from. ``file`` and ``name`` are as the user typed them."""

    kernel: Any
    file: str
    name: str
    module: types.ModuleType


def load_kernel(spec: str) -> Loaded:
    """Load ``FILE.py::KERNEL`` (or ``FILE.ipynb::KERNEL``).

    Raises:
        InputError: There is no such file, Python cannot parse or run it, or it has no such kernel.
    """
    file, sep, name = spec.rpartition("::")
    if not sep:
        file, name = spec, ""
    module = load_module(file)
    found = getattr(module, name, None) if name else None
    if found is None or not _may_be_kernel(found):
        kernels = kernels_in(module)
        listed = f"it has {', '.join(kernels)}; write {file}::{kernels[0]}" if kernels else "it holds no kernel at all"
        what = (
            f"{file} has no kernel {name!r}"
            if name and found is None
            else f"{name} in {file} is not a kernel"
            if name
            else f"{spec} names no kernel"
        )
        raise InputError(what, fix=listed)
    return Loaded(kernel=found, file=file, name=name, module=module)


def load_module(file: str) -> types.ModuleType:
    """Run a Python file or notebook as a module of its own; what it prints goes to stderr.

    Raises:
        InputError: It cannot be read, parsed or run; the message names the file and the line.
        KernelRefused: TileLang refused a kernel while the file ran.
    """
    path = Path(file)
    if not file or not path.is_file():
        kind = "is a folder" if file and path.is_dir() else "does not exist"
        raise InputError(f"{file or 'the file, which has no name,'} {kind}", fix="write FILE.py::KERNEL")
    if path.suffix not in (".py", ".ipynb"):
        raise InputError(f"{file} is neither a .py nor an .ipynb file")
    text, source_name = _source(path, file)
    code = compile_source(text, file, source_name)
    module = types.ModuleType(f"tilelab_user_{path.stem}".replace("-", "_").replace(".", "_"))
    module.__file__ = source_name
    module.__spec__ = importlib.util.spec_from_loader(module.__name__, loader=None, origin=source_name)
    sys.modules[module.__name__] = module
    linecache.cache[source_name] = (len(text), None, text.splitlines(keepends=True), source_name)
    from tilelab.compiler import loading
    from tilelab.compiler.patience import patience

    shown = {source_name: file}
    with _beside(path.resolve().parent), prints_to_stderr(), loading(shown), patience(shown):
        try:
            exec(code, module.__dict__)
        except SystemExit as error:
            raise InputError(
                f"{file} exits with {error.code!r} when it is loaded", fix='guard its main part by `if __name__ == "__main__":`'
            ) from None
        except (TileLabError, KernelRefused):
            raise
        except Exception as error:
            if _from_tilelang(error) or isinstance(error, NameError | AttributeError):
                raise  # `loading` tells these in the learner's words
            raise _told(error, file, source_name) from None
    return module


def compile_source(text: str, file: str, source_name: str) -> types.CodeType:
    """Compile Python source.

    Raises:
        InputError: Python cannot parse it; the message names file and line.
    """
    try:
        return compile(text, source_name, "exec", dont_inherit=True)
    except SyntaxError as error:
        shown = f": {error.text.strip()}" if error.text and error.text.strip() else ""
        raise InputError(f"{file}:{error.lineno or 1}: Python cannot parse this: {error.msg}{shown}", fix="mend that line") from None
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise InputError(f"{file}: Python cannot parse this: {error or type(error).__name__}") from None


def kernels_in(module: types.ModuleType) -> list[str]:
    """Return the names of the kernels a module defines, in order; failing those, of its own functions."""
    own = {k: v for k, v in vars(module).items() if not k.startswith("_")}
    kernels = [k for k, v in own.items() if type(v).__name__ in _KERNEL_TYPES]
    return kernels or [k for k, v in own.items() if isinstance(v, types.FunctionType) and v.__module__ == module.__name__]


def _may_be_kernel(value: Any) -> bool:
    return type(value).__name__ in _KERNEL_TYPES or isinstance(value, types.FunctionType)


def _source(path: Path, file: str) -> tuple[str, str]:
    """Return the Python text of a file, and the name its code objects carry."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None
    if path.suffix == ".ipynb":
        return _notebook_source(data, file), f"{path.resolve()}"
    try:
        return importlib.util.decode_source(data), str(path.resolve())
    except (UnicodeDecodeError, SyntaxError, LookupError) as error:
        raise InputError(f"{file}: not a text file that Python can read ({error})") from None


def _notebook_source(data: bytes, file: str) -> str:
    """Join the code cells; magics and shell lines become comments, so that lines keep their numbers."""
    import json

    try:
        cells = json.loads(data)["cells"]
        sources = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{file}: not a Jupyter notebook") from None
    lines = "\n\n".join(s for s in sources if not s.lstrip().startswith("%%")).split("\n")
    return "\n".join(f"# {line}" if line.lstrip().startswith(("%", "!")) else line for line in lines)


@contextlib.contextmanager
def _beside(folder: Path) -> Iterator[None]:
    """Let the file import its neighbours, as Python itself would when it runs the file."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(str(folder))


@contextlib.contextmanager
def prints_to_stderr() -> Iterator[None]:
    """Send what the user's code prints, be it on descriptor 1, to stderr: stdout is for results.

    TileLang's own chatter on descriptor 2 is silenced apart.
    """
    try:
        outlet = os.fdopen(os.dup(2), "w", buffering=1, encoding="utf-8", errors="replace")
    except OSError:
        outlet = open(os.devnull, "w")  # noqa: SIM115, PTH123 - closed below
    with outlet, _descriptor(1, outlet.fileno()), contextlib.redirect_stdout(outlet), contextlib.redirect_stderr(outlet):
        yield


@contextlib.contextmanager
def _descriptor(number: int, to: int) -> Iterator[None]:
    """Point a descriptor elsewhere for a while; one that is closed stays closed."""
    try:
        kept = os.dup(number)
    except OSError:
        yield
        return
    if sys.stdout is not None:
        with contextlib.suppress(ValueError):
            sys.stdout.flush()
    os.dup2(to, number)
    try:
        yield
    finally:
        os.dup2(kept, number)
        os.close(kept)


def _told(error: Exception, file: str, source_name: str) -> InputError:
    """Say in one line which line of the user's file failed, and how."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == source_name]
    where = f"{file}:{frames[-1].lineno}" if frames else file
    if isinstance(error, ModuleNotFoundError) and error.name:
        return InputError(f"{where}: there is no module {error.name!r} here", fix=f"install it: pip install {error.name.partition('.')[0]}")
    text = " ".join(str(error).split())
    return InputError(f"{where}: {type(error).__name__}: {text[:300]}", fix="the file must load before its kernels can be checked")


def _from_tilelang(error: Exception) -> bool:
    """Say whether the error was raised inside TileLang or TVM while a kernel was being built."""
    modules = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    return any(m.startswith(("tilelang.language", "tvm.", "tilelang.jit")) for m in modules[1:])


def shown_files(loaded: Loaded) -> dict[str, str]:
    """Return absolute file name → the name the user typed, for findings."""
    return {str(loaded.module.__file__): loaded.file}
