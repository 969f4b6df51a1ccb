"""A snippet: a small kernel that uses names of ``tilelang.language``, its inputs, and what numpy says its outputs are.

Modules in ``snippets/`` register them. The names that a snippet covers are read from the source of the function that builds
it (every ``T.NAME`` in it), or given where a table of names makes many snippets of one kernel.
"""

import ast
import importlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import tilelang.language as T

HERE = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Snippet:
    """One kernel with its answer.

    Attributes:
        name: Unique, ``module.function``.
        names: The names of ``T`` that it covers.
        build: Makes the kernel.
        inputs: Arrays and numbers by parameter name.
        expected: Arrays by output name (``out0`` for what the kernel returns).
        rtol, atol: Bounds of agreement; exact where both are 0.
        allow: Codes of errors and warnings that may come.
        finds: Codes that must come.
        consts: Values of compile-time arguments.
    """

    name: str
    names: frozenset[str]
    build: Callable[..., Any]
    inputs: Mapping[str, Any]
    expected: Mapping[str, Any]
    rtol: float = 0.0
    atol: float = 0.0
    allow: tuple[str, ...] = ()
    finds: tuple[str, ...] = ()
    consts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dtypes(self) -> frozenset[str]:
        """The dtypes of its inputs and outputs."""
        return frozenset(dtype_name(v) for v in (*self.inputs.values(), *self.expected.values()))


TABLE: dict[str, Snippet] = {}


def add(name: str, build: Callable[..., Any], inputs: Mapping[str, Any], expected: Any, names: Iterable[str] = (), **more: Any) -> None:
    """Register a snippet; ``expected`` may be a function of the inputs."""
    module = sys.modules[build.__module__].__name__.rpartition(".")[2]
    full = f"{module}.{name}"
    assert full not in TABLE, full
    if callable(expected):
        with np.errstate(all="ignore"):
            expected = expected(**inputs)
    if not isinstance(expected, dict):
        expected = {"O": expected}
    covers = frozenset({*names, *used_names(build)})
    TABLE[full] = Snippet(name=full, names=covers, build=build, inputs=inputs, expected=expected, **more)


def snippet(expected: Any, *, covers: Iterable[str] = (), rtol: float = 0.0, atol: float = 0.0, allow: tuple[str, ...] = (),
            finds: tuple[str, ...] = (), consts: Mapping[str, Any] | None = None, **inputs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # fmt: skip
    """Register the decorated function, which builds a kernel."""

    def register(build: Callable[..., Any]) -> Callable[..., Any]:
        add(build.__name__, build, inputs, expected, covers, rtol=rtol, atol=atol, allow=allow, finds=finds, consts=dict(consts or {}))
        return build

    return register


def elementwise(label: str, function: Callable[..., Any], reference: Callable[..., Any], *arrays: Any, names: Iterable[str] = (),
                out: str | None = None, **more: Any) -> None:  # fmt: skip
    """Register ``O[i] = function(A[i], …)`` over arrays of one length; ``reference`` is of whole arrays."""
    names = list(names or [label])
    kinds = [dtype_name(a) for a in arrays]
    n = len(arrays[0])
    with np.errstate(all="ignore"):
        want = np.asarray(reference(*arrays))
    out = out or dtype_name(want)

    def build() -> Any:
        return KERNELS[len(arrays)](function, n, kinds, out)

    build.__module__ = sys._getframe(1).f_globals["__name__"]
    add(label, build, dict(zip("ABC", arrays, strict=False)), {"O": want}, names, **more)


def _one(function, n, kinds, out):
    @T.prim_func
    def kernel(A: T.Tensor((n,), kinds[0]), O: T.Tensor((n,), out)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                O[i] = function(A[i])

    return kernel


def _two(function, n, kinds, out):
    @T.prim_func
    def kernel(A: T.Tensor((n,), kinds[0]), B: T.Tensor((n,), kinds[1]), O: T.Tensor((n,), out)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                O[i] = function(A[i], B[i])

    return kernel


def _three(function, n, kinds, out):
    @T.prim_func
    def kernel(A: T.Tensor((n,), kinds[0]), B: T.Tensor((n,), kinds[1]), C: T.Tensor((n,), kinds[2]), O: T.Tensor((n,), out)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                O[i] = function(A[i], B[i], C[i])

    return kernel


KERNELS = {1: _one, 2: _two, 3: _three}


def dtype_name(array: Any) -> str:
    """TileLang's name of a numpy array's dtype."""
    return str(np.asarray(array).dtype)


def used_names(function: Callable[..., Any]) -> set[str]:
    """Every ``NAME`` that stands as ``T.NAME`` in the source of a function."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    except (OSError, TypeError):
        return set()
    return names_in(tree)


def names_in(tree: ast.AST) -> set[str]:
    """Every ``NAME`` that stands as ``T.NAME`` in a syntax tree."""
    return {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "T"}


def rng() -> np.random.Generator:
    """A generator of the same numbers each time."""
    return np.random.default_rng(0)


def normal(*shape: int, dtype: Any = np.float32, scale: float = 1.0) -> Any:
    """Normal numbers."""
    return (rng().standard_normal(shape) * scale).astype(dtype)


def uniform(low: float, high: float, *shape: int, dtype: Any = np.float32) -> Any:
    """Uniform numbers."""
    return rng().uniform(low, high, shape).astype(dtype)


def integers(low: int, high: int, *shape: int, dtype: Any = np.int32) -> Any:
    """Uniform integers below ``high``."""
    return rng().integers(low, high, shape).astype(dtype)


@cache
def snippets() -> Mapping[str, Snippet]:
    """All snippets, by name."""
    if str(HERE) not in sys.path:
        sys.path.insert(0, str(HERE))
    sys.modules.setdefault("snippet", sys.modules[__name__])
    for path in sorted((HERE / "snippets").glob("*.py")):
        importlib.import_module(f"snippets.{path.stem}")
    return sys.modules["snippet"].TABLE
