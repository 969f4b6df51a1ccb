"""The cache of lowered kernels, on disk: safe across processes, bounded in size, never trusted blindly; the last ones stay in memory."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections import OrderedDict
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from tilelab import ir, serde
from tilelab.artifact import Artifact
from tilelab.errors import InputError
from tilelab.files import write_bytes

MAX_BYTES = 512 << 20
#: Part of every key: raise it when what lowering records changes.
_EDITION = 5
_MOST_IN_MEMORY = 16
#: name → what its file held, and that file: another size or inode is another file
_memory: OrderedDict[str, tuple[Artifact, tuple[int, int]]] = OrderedDict()


def folder() -> Path:
    """Return the cache folder: ``TILELAB_CACHE_DIR``, else the user's cache folder."""
    given = os.environ.get("TILELAB_CACHE_DIR")
    if given:
        return Path(given) / "lowered"
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "tilelab" / "lowered"


def key(program: ir.Program, target: str, *, history: bool) -> str:
    """Return the key of a lowering: the program with its locations, the target and the versions."""
    versions = f"{_EDITION}|{serde.VERSION}|{version('tilelang')}|{version('tilelab')}|{target}|{history}"
    return hashlib.blake2b(_bytes(program) + f"{folder()}|{versions}".encode(), digest_size=20).hexdigest()


@lru_cache(maxsize=16)
def _bytes(program: ir.Program) -> bytes:
    return hashlib.blake2b(serde.dumps(program)).digest()


@lru_cache(maxsize=8)
def version(package: str) -> str:
    """Return the installed version of ``package``; empty if it is not installed as a distribution."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def get(name: str) -> Artifact | None:
    """Return a cached Artifact, or None; one that cannot be read is dropped."""
    path = folder() / f"{name}.json"
    with contextlib.suppress(OSError):
        os.utime(path)  # the least recently used go first
    if name in _memory and _memory[name][1] == _file(path):
        _memory.move_to_end(name)
        return _memory[name][0]
    try:
        artifact = serde.loads(path.read_bytes(), Artifact)
    except OSError:
        return None
    except InputError:
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    return _kept(name, artifact, path)


def put(name: str, artifact: Artifact) -> None:
    """Keep an Artifact. A cache that cannot be written is no reason to fail."""
    with contextlib.suppress(OSError, InputError):
        path = folder() / f"{name}.json"
        write_bytes(path, serde.dumps(artifact))
        _kept(name, artifact, path)
        _trim(folder())


def _file(path: Path) -> tuple[int, int]:
    try:
        stat = path.stat()
    except OSError:
        return (-1, -1)
    return stat.st_size, stat.st_ino


def _kept(name: str, artifact: Artifact, path: Path) -> Artifact:
    _memory[name] = (artifact, _file(path))
    _memory.move_to_end(name)
    while len(_memory) > _MOST_IN_MEMORY:
        _memory.popitem(last=False)
    return artifact


def _trim(where: Path, most: int = MAX_BYTES) -> None:
    entries = []
    for path in where.glob("*.json"):
        with contextlib.suppress(OSError):  # another process may be trimming too
            stat = path.stat()
            entries.append((stat.st_mtime, stat.st_size, path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= most:
            return
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size
