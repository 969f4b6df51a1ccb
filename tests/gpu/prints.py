"""T.print on the GPU against the simulator: the same kernels print the same records. Needs a CUDA device, nvcc and TileLang.

python tests/gpu/prints.py [--record FILE]
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

import tilelab  # noqa: E402
from tilelab.build import build  # noqa: E402
from tilelab.runtime import captured_prints  # noqa: E402
from tilelab.sim import simulate  # noqa: E402


def flood():
    """A global buffer, printed by every thread of four blocks."""
    import tilelang.language as T

    @T.prim_func
    def k(A: T.Tensor((16, 16), "float16")):
        with T.Kernel(4, threads=128):
            T.print(A)

    return k


def tiles():
    """A shared tile and a fragment, with messages."""
    import tilelang.language as T

    @T.prim_func
    def k(A: T.Tensor((8, 16), "float32"), O: T.Tensor((8, 16), "float32")):
        with T.Kernel(2, threads=32) as b:
            s = T.alloc_shared((4, 16), "float32")
            f = T.alloc_fragment((4, 16), "float32")
            T.copy(A[b * 4, 0], s)
            T.copy(s, f)
            T.print(s, msg="tile")
            T.print(f, msg="registers")
            T.copy(f, O[b * 4, 0])

    return k


def expressions():
    """Expressions of many threads and of a few, of several dtypes."""
    import tilelang.language as T

    @T.prim_func
    def k(A: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            O[t] = A[t] * 2
            T.print(A[t], msg="each")
            if t < 4:
                T.print(T.cast(A[t], "float32") * 0.5, msg="few")

    return k


def comparable(records):
    """What both sides know: in an order of their own, since a GPU's blocks have none."""
    key = lambda p: (p.message, p.name, p.block, p.thread or (0, 0, 0))  # noqa: E731
    return [
        {
            "message": p.message, "name": p.name, "dtype": p.dtype, "block": p.block, "thread": p.thread, "line": p.loc.line if p.loc else None,
            "values": np.asarray(p.values, np.float64).round(4).reshape(-1).tolist(),
        }
        for p in sorted(records, key=key)
    ]  # fmt: skip


def main() -> int:
    """Compare, print a line a kernel, write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    inputs = {
        "flood": {"A": rng.standard_normal((16, 16)).astype(np.float16)},
        "tiles": {"A": rng.standard_normal((8, 16)).astype(np.float32), "O": np.zeros((8, 16), np.float32)},
        "expressions": {"A": np.arange(64, dtype=np.int32), "O": np.zeros(64, np.int32)},
    }
    rows = []
    for make in (flood, tiles, expressions):
        program = tilelab.capture(make)
        built = build(program)
        with captured_prints(program) as seen:
            built.run(inputs[make.__name__])
        device, simulated = comparable(seen.records), comparable(simulate(program, inputs[make.__name__]).prints)
        rows.append({"kernel": make.__name__, "records": len(device), "lost": seen.lost, "agree": device == simulated})
        print(f"{make.__name__}: {len(device)} records, {'the same' if device == simulated else 'NOT the same'} as simulated {seen.lost}")
        if device != simulated:
            print("device   ", json.dumps(device[:2])[:600], "\nsimulated", json.dumps(simulated[:2])[:600])
    if args.record:
        Path(args.record).write_text(json.dumps({"schema": "prints", "version": 1, "rows": rows}, indent=1) + "\n")
    return 0 if all(r["agree"] for r in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
