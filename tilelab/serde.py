"""Records ↔ versioned JSON (inside an npz where there are arrays). Never pickle; hostile input gives InputError.

A document is ``{"tilelab": KIND, "version": 1, "nodes": [...], "root": VALUE}``. ``nodes`` lists every record once, what it
refers to before it, as ``[CLASS, {field: VALUE, …}]``; fields at their default are left out. A VALUE is a JSON scalar, a
list (a tuple), or one of ``{"n": i}`` (a record), ``{"d": [[key, value], …]}`` (a mapping), ``{"l": […]}`` (a list),
``{"f": "nan"}`` (a float that JSON lacks) and ``{"a": member, "dtype": name}`` (an array).
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import math
import struct
import types
import typing
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tilelab import artifact, finding, ir, layout, schedule, trace
from tilelab.errors import InputError, TileLabError
from tilelab.files import write_bytes
from tilelab.verify import verify

R = TypeVar("R")

VERSION = 1
MAX_BYTES = 1 << 30
MAX_NODES = 2_000_000
_MEMBER = "record"

#: What reading a stranger's bytes may raise.
_HOSTILE = (
    ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, MemoryError, OverflowError, OSError, EOFError,
    zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, struct.error,
)  # fmt: skip

#: Class name → class: every record that can be saved.
RECORDS: dict[str, type] = {}


def register(*classes: type) -> None:
    """Let ``classes`` (dataclasses) be saved under their names."""
    for cls in classes:
        RECORDS[cls.__name__] = cls


register(
    *(c for c in vars(ir).values() if isinstance(c, type) and dataclasses.is_dataclass(c)),
    finding.Finding,
    *(c for c in vars(trace).values() if isinstance(c, type) and dataclasses.is_dataclass(c)),
    *(c for c in vars(schedule).values() if isinstance(c, type) and dataclasses.is_dataclass(c)),
    *(c for c in vars(artifact).values() if isinstance(c, type) and dataclasses.is_dataclass(c)),
    layout.Layout,
)


# ------------------------------------------------------------------------------------------------- public
def dumps(record: Any) -> bytes:
    """Return ``record`` as bytes: JSON text, or an npz where it holds arrays.

    Raises:
        InputError: It holds something that is not plain data.
    """
    writer = _Encoder()
    root = writer.value(record)
    document = {"tilelab": type(record).__name__, "version": VERSION, "nodes": writer.nodes, "root": root}
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    if not writer.arrays:
        return text
    out = io.BytesIO()
    np.savez_compressed(out, **{_MEMBER: np.frombuffer(text, np.uint8)}, **writer.arrays)  # type: ignore[arg-type]
    return out.getvalue()


def loads(data: bytes | str, kind: type[R]) -> R:
    """Return the record of class ``kind`` that ``data`` holds; a Program is checked against the grammar.

    Raises:
        InputError: ``data`` is not such a record, or of a version that this release does not read.
    """
    try:
        record = _decode(data.encode() if isinstance(data, str) else bytes(data), kind.__name__)
        if isinstance(record, ir.Program):
            verify(record, closed=False)
    except InputError:
        raise
    except TileLabError as error:
        raise InputError(error.message) from None
    except _HOSTILE as error:
        raise InputError(f"this is not a {kind.__name__} of TileLab: {str(error)[:200] or type(error).__name__}") from None
    if not isinstance(record, kind):
        raise InputError(f"this is a {type(record).__name__}, not a {kind.__name__}")
    return record


def save(record: Any, path: str | Path) -> None:
    """Write ``record`` to a file, whole or not at all."""
    write_bytes(path, dumps(record))


def load(path: str | Path, kind: type[R]) -> R:
    """Read a record from a file.

    Raises:
        InputError: There is no such file, or it holds no such record.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    try:
        return loads(data, kind)
    except InputError as error:
        raise InputError(f"{path}: {error.message}") from None


def digest(record: Any) -> str:
    """Return a hash of the content of a Program (or another record) as 32 hexadecimal digits.

    It depends neither on the identity of variables nor on source locations or the text of sources.
    """
    return _Digester().of(record).hex()


# ------------------------------------------------------------------------------------------------- encoding
class _Encoder:
    """Flattens records into ``nodes``, children first, without recursion over records."""

    def __init__(self) -> None:
        self.nodes: list[list[Any]] = []
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self._at: dict[int, int] = {}
        self._kept: list[Any] = []  # ids stay valid while the records live

    def value(self, v: Any) -> Any:
        for record in _children_first(v, self._at):
            cls = type(record)
            if RECORDS.get(cls.__name__) is not cls:
                raise InputError(f"a {cls.__name__} cannot be saved")
            body = {}
            for f in _fields_of(record):
                x = getattr(record, f.name)
                if not _is_default(x, f):
                    body[f.name] = self._plain(x)
            self._at[id(record)] = len(self.nodes)
            self._kept.append(record)
            self.nodes.append([cls.__name__, body])
        return self._plain(v)

    def _plain(self, v: Any) -> Any:
        if v is None or isinstance(v, bool | str) or type(v) is int:
            return v
        if isinstance(v, float) and not isinstance(v, np.generic):
            return v if math.isfinite(v) else {"f": repr(float(v))}
        if dataclasses.is_dataclass(v):
            return {"n": self._at[id(v)]}
        if isinstance(v, tuple):
            return [self._plain(i) for i in v]
        if isinstance(v, list):
            return {"l": [self._plain(i) for i in v]}
        if isinstance(v, Mapping):
            return {"d": [[self._plain(k), self._plain(x)] for k, x in v.items()]}
        if hasattr(v, "__array__"):
            return self._array(np.asarray(v))
        raise InputError(f"a {type(v).__name__} cannot be saved")

    def _array(self, a: np.ndarray[Any, Any]) -> Any:
        if a.dtype.hasobject:
            raise InputError("an array of objects cannot be saved")
        name = f"a{len(self.arrays)}"
        # numpy writes the dtypes of ml_dtypes as raw bytes: say which they were.
        self.arrays[name] = a.view(f"u{a.dtype.itemsize}") if a.dtype.kind == "V" else a
        return {"a": name, "dtype": a.dtype.name}


def _children_first(root: Any, done: Mapping[int, Any]) -> Iterable[Any]:
    """Yield the records below ``root`` (and itself) that are not in ``done``, each after those it refers to."""
    stack: list[tuple[Any, bool]] = [(root, False)]
    entered: set[int] = set()
    while stack:
        v, finished = stack.pop()
        if finished:
            yield v
        elif dataclasses.is_dataclass(v) and not isinstance(v, type):
            if id(v) not in done and id(v) not in entered:
                entered.add(id(v))
                stack.append((v, True))
                stack.extend((getattr(v, f.name), False) for f in reversed(_fields_of(v)))
        elif isinstance(v, tuple | list):
            stack.extend((i, False) for i in reversed(v))
        elif isinstance(v, Mapping):
            stack.extend((i, False) for pair in reversed(list(v.items())) for i in reversed(pair))


_FIELDS: dict[type, tuple[dataclasses.Field[Any], ...]] = {}


def _fields_of(record: Any) -> tuple[dataclasses.Field[Any], ...]:
    cls = type(record)
    if cls not in _FIELDS:
        _FIELDS[cls] = dataclasses.fields(cls)
    return _FIELDS[cls]


def _is_default(v: Any, f: dataclasses.Field[Any]) -> bool:
    if f.default is not dataclasses.MISSING:
        return type(v) is type(f.default) and (v is f.default or (isinstance(v, bool | int | str | tuple) and v == f.default))
    return f.default_factory is dict and isinstance(v, dict) and not v


# ------------------------------------------------------------------------------------------------- decoding
def _decode(data: bytes, kind: str) -> Any:
    if len(data) > MAX_BYTES:
        raise InputError(f"more than {MAX_BYTES >> 20} MiB")
    arrays: Mapping[str, Any] = {}
    if data[:2] == b"PK":
        arrays = _members(data)
        data = arrays[_MEMBER].tobytes()
    document = json.loads(data)
    if not isinstance(document, dict) or "tilelab" not in document:
        raise InputError(f"this is not a {kind} of TileLab")
    if document.get("version") != VERSION:
        raise InputError(
            f"it has version {document.get('version')!r}, and this release of TileLab reads version {VERSION}", fix="make it again"
        )
    nodes = document["nodes"]
    if not isinstance(nodes, list) or len(nodes) > MAX_NODES:
        raise InputError(f"more than {MAX_NODES} nodes")
    made: list[Any] = []
    for name, body in nodes:
        cls = RECORDS.get(name) if isinstance(name, str) else None
        if cls is None or not isinstance(body, dict):
            raise InputError(f"the record {str(name)[:60]!r} is unknown")
        made.append(_make(cls, {k: _value(x, made, arrays) if type(x) in _NESTED else x for k, x in body.items()}))
    return _value(document["root"], made, arrays)


_NESTED = (list, dict)  # what JSON nests; the rest stands for itself


def _members(data: bytes) -> Mapping[str, Any]:
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        if sum(i.file_size for i in z.infolist()) > MAX_BYTES:
            raise InputError(f"more than {MAX_BYTES >> 20} MiB when unpacked")
    return np.load(io.BytesIO(data), allow_pickle=False)  # type: ignore[no-any-return]


def _value(v: Any, made: Sequence[Any], arrays: Mapping[str, Any]) -> Any:
    if isinstance(v, list):
        return tuple([_value(i, made, arrays) if type(i) in _NESTED else i for i in v])
    if not isinstance(v, dict):
        return v
    if "n" in v:
        index = v["n"]
        if type(index) is not int or not 0 <= index < len(made):
            raise InputError(f"there is no record {index!r}")
        return made[index]
    if "d" in v:
        return {_value(k, made, arrays): _value(x, made, arrays) for k, x in v["d"]}
    if "l" in v:
        return [_value(i, made, arrays) for i in v["l"]]
    if "f" in v:
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[v["f"]]
    if "a" in v:
        return _array(arrays[v["a"]], v["dtype"])
    raise InputError(f"a value with the keys {sorted(v)[:4]}")


def _array(a: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    if a.dtype.name == dtype:
        return a
    import ml_dtypes

    return a.view(np.dtype(getattr(ml_dtypes, dtype)))


def _make(cls: type, body: dict[str, Any]) -> Any:
    hints = _hints(cls)
    for name, value in body.items():
        if name not in hints:
            raise InputError(f"a {cls.__name__} has no {name[:60]!r}")
        if not hints[name](value):
            raise InputError(f"{name} of a {cls.__name__} is a {type(value).__name__}")
    return cls(**body)


@cache
def _hints(cls: type) -> dict[str, Callable[[Any], bool]]:
    module = dict(vars(ir))
    return {name: _test(hint) for name, hint in typing.get_type_hints(cls, globalns={**_module_of(cls), **module}).items()}


def _module_of(cls: type) -> dict[str, Any]:
    import sys

    return dict(vars(sys.modules[cls.__module__]))


def _test(hint: Any) -> Callable[[Any], bool]:
    """Return a test of whether a value fits a type hint, as far as records use hints."""
    origin = typing.get_origin(hint)
    if hint is Any or isinstance(hint, str | typing.ForwardRef | TypeVar):
        return lambda v: True
    if hint is None or hint is type(None):
        return lambda v: v is None
    if hint is float:
        return lambda v: isinstance(v, float | int) and not isinstance(v, bool)
    if hint is int:
        return lambda v: type(v) is int
    if origin in (typing.Union, types.UnionType):
        tests = [_test(a) for a in typing.get_args(hint)]
        return lambda v: any(t(v) for t in tests)
    if origin is tuple:
        args = typing.get_args(hint)
        if len(args) == 2 and args[1] is Ellipsis:
            each = _test(args[0])
            return lambda v: isinstance(v, tuple) and all(map(each, v))
        tests = [_test(a) for a in args]
        return lambda v: isinstance(v, tuple) and len(v) == len(tests) and all(t(i) for t, i in zip(tests, v, strict=True))
    if origin is typing.Literal:
        allowed = typing.get_args(hint)
        return lambda v: v in allowed
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return lambda v: isinstance(v, dict) and all(isinstance(k, str) for k in v)
    if isinstance(origin, type):
        return lambda v: isinstance(v, origin)
    return lambda v: isinstance(v, hint)


# -------------------------------------------------------------------------------------------------- hashing
class _Digester:
    """Hashes content bottom-up. Variables are numbered as they are met, so their identity does not matter."""

    _SKIP = frozenset({"loc", "sources", "source_loc"})

    def __init__(self) -> None:
        self._vars: dict[int, int] = {}
        self._hash: dict[int, bytes] = {}
        self._kept: list[Any] = []

    def of(self, root: Any) -> bytes:
        for record in _children_first(root, self._hash):
            self._kept.append(record)
            if isinstance(record, ir.SourceLoc):
                self._hash[id(record)] = b""
                continue
            h = hashlib.blake2b(type(record).__name__.encode(), digest_size=16)
            if isinstance(record, ir.Var):
                h.update(b"#%d" % self._vars.setdefault(id(record), len(self._vars)))
            for f in _fields_of(record):
                if f.name not in self._SKIP:
                    h.update(b"|")
                    self._feed(h, getattr(record, f.name))
            self._hash[id(record)] = h.digest()
        h = hashlib.blake2b(digest_size=16)
        self._feed(h, root)
        return h.digest()

    def _feed(self, h: Any, v: Any) -> None:
        if dataclasses.is_dataclass(v):
            h.update(b"<" + self._hash[id(v)])
        elif isinstance(v, tuple | list):
            h.update(b"(%d" % len(v))
            for i in v:
                self._feed(h, i)
        elif isinstance(v, Mapping):
            h.update(b"{%d" % len(v))
            for k, x in sorted(v.items(), key=lambda kv: str(kv[0])):
                self._feed(h, k)
                self._feed(h, x)
        elif hasattr(v, "__array__") and not isinstance(v, int | float):
            a = np.ascontiguousarray(v)
            h.update(f"a{a.dtype}{a.shape}".encode() + a.tobytes())
        else:
            h.update(f"{type(v).__name__}:{v!r};".encode())
