"""Traces made by hand: every value of every step is known."""

from __future__ import annotations

import numpy as np

from tilelab.finding import finding
from tilelab.ir import SourceLoc
from tilelab.trace import BufferInfo, Event, PrintRecord, Trace

SOURCE = """\
@T.macro
def scale(x, s):
    for i in T.Parallel(4):
        x[i] = x[i] / s

def kernel(A):
    with T.Kernel(2, threads=64):
        acc = T.alloc_fragment((4,), "float32")
        tile = T.alloc_shared((2, 4), "float16")
        T.clear(acc)
        for k in T.serial(3):
            T.copy(A[k, 0], tile[k % 2, :])
            acc += tile[k % 2, :]
        T.print(acc)
        scale(acc, total)
        T.copy(acc, out)
"""


def loc(line: int, *, end: int = 0, caller: int = 0) -> SourceLoc:
    return SourceLoc(file="kernel.py", line=line, end_line=end, caller=SourceLoc(file="kernel.py", line=caller) if caller else None)


def small() -> Trace:
    """acc += k for k = 0…2 over a tile of two slots, divided by zero at the end; two roles; two prints; a finding."""
    block = (1, 0, 0)
    events: list[Event] = []

    def step(line, text, after=None, *, role="", threads="", loops=None, end=0, caller=0, reads=(), prints=(), evidence=None):
        events.append(Event(index=len(events), block=block, role=role, text=text, loc=loc(line, end=end, caller=caller), loops=loops or {},
                            after=after or {}, reads=reads, threads=threads, prints=prints, evidence=evidence or {}))  # fmt: skip

    step(7, "T.Kernel: block (1, 0, 0) begins", {"A": np.arange(12, dtype=np.float32).reshape(3, 4)})
    step(10, "T.clear(acc)", {"acc": np.zeros(4, np.float32)}, role="threads 0–31")
    tile = np.ma.MaskedArray(np.zeros((2, 4), np.float16), mask=True)
    acc = np.zeros(4, np.float32)
    for k in range(3):
        tile = tile.copy()
        tile[k % 2] = np.arange(4 * k, 4 * k + 4)
        whole = tile if np.ma.getmaskarray(tile).any() else np.ma.getdata(tile)
        step(12, "T.copy(A[k, 0], tile[k % 2, :])", {"tile": whole}, role="threads 32–63", loops={"k": k}, reads=("A",))
        acc = acc + np.ma.getdata(tile[k % 2]).astype(np.float32)
        step(13, "acc += tile[k % 2, :]", {"acc": acc, "n": np.array(k, np.int32)}, role="threads 0–31", loops={"k": k}, reads=("acc", "tile"))
    step(14, "T.print(acc)", threads="thread 0", prints=(0,))
    bad = np.array([np.nan, acc[1] / 2, np.inf, acc[3] / 4], np.float32)
    nan = {"buffer": "acc", "index": [0], "value": "NaN", "count": 1, "operands": [{"buffer": "acc", "index": [0], "value": 12.0}]}
    step(3, "for i in T.Parallel(4): x[i] = x[i] / s", {"acc": bad}, end=4, caller=15, reads=("acc",), evidence={"nan": nan})
    step(16, "T.copy(acc, out)", {"out": bad.astype(np.float16)}, reads=("acc",))
    about = {"A": ("float32", "global", (3, 4)), "acc": ("float32", "local.fragment", (4,)), "tile": ("float16", "shared", (2, 4)),
             "n": ("int32", "let", ()), "out": ("float16", "global", (4,))}  # fmt: skip
    record = {"message": "", "name": "acc", "dtype": "float32", "loc": loc(14), "thread": None}
    prints = (PrintRecord(values=acc, block=block, **record), PrintRecord(values=acc + 1, block=(0, 0, 0), **record))
    made = len(events) - 2
    found = finding("TL301", "the first NaN appears here.", fix="look at s", file="kernel.py", line=4, block=block, evidence={"step": made})
    return Trace(
        outputs={}, findings=(found,), prints=prints, events=tuple(events), kernel="kernel", sources={"kernel.py": SOURCE},
        buffers={n: BufferInfo(dtype=d, scope=s, shape=shape) for n, (d, s, shape) in about.items()}, counts={"prints_lost": 3},
    )  # fmt: skip


def long(steps: int = 400) -> Trace:
    """``steps`` steps that write a tile of 32×32 float32 each, one element of a counter, and a large tensor in part."""
    rng = np.random.default_rng(0)
    big = np.zeros((256, 128), np.float32)
    count = np.zeros(64, np.int32)
    events = []
    for k in range(steps):
        after: dict[str, np.ndarray] = {"x": rng.standard_normal((32, 32)).astype(np.float32)}
        count = count.copy()
        count[k % 64] += 1
        after["count"] = count
        if k % 100 == 0:
            big = big.copy()
            big[64:72, 16:32] = k + 1
            after["big"] = big
        events.append(Event(index=k, block=(0, 0, 0), role="", text="x = …", loc=loc(12), loops={"k": k}, after=after))
    about = {"x": ("float32", "local.fragment", (32, 32)), "count": ("int32", "shared", (64,)), "big": ("float32", "global", (256, 128))}
    buffers = {n: BufferInfo(dtype=d, scope=s, shape=shape) for n, (d, s, shape) in about.items()}
    return Trace(outputs={}, events=tuple(events), kernel="long", sources={"kernel.py": SOURCE}, buffers=buffers)
