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
from tilelab.tensors import numpy_dtype  # noqa: E402


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


#: what the templates of debug.h print by name; the simulator's records have the same dtype
DTYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64",
    "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip


def typed(dtype):
    """A buffer and an expression of one dtype."""

    def make():
        import tilelang.language as T

        @T.prim_func
        def k(A: T.Tensor((8,), dtype)):
            with T.Kernel(1, threads=32):
                s = T.alloc_shared((8,), dtype)
                t = T.get_thread_binding()
                T.copy(A, s)
                T.print(s, msg="buffer")
                if t == 3:
                    T.print(s[2], msg="one")

        return k

    make.__name__ = f"typed_{dtype}"
    return make


def scopes():
    """Arrays of each thread, a variable, a pointless message, a print in a loop and one in a branch that some blocks take."""
    import tilelang.language as T

    @T.prim_func
    def k(A: T.Tensor((4, 8), "int32"), O: T.Tensor((4, 8), "int32")):
        with T.Kernel(4, threads=32) as b:
            t = T.get_thread_binding()
            mine = T.alloc_local((2,), "int32")
            v = T.alloc_var("int32")
            mine[0] = t
            mine[1] = A[b, t % 8]
            v = t * 2
            if t < 3:
                T.print(mine, msg="mine")
                T.print(v, msg="variable")
            for i in T.serial(2):
                s = T.alloc_shared((8,), "int32")
                for j in T.Parallel(8):
                    s[j] = A[b, j] + i
                T.print(s)
                T.copy(s, O[b, 0])
            if b == 2 and t == 0:
                T.print(msg="only here")

    return k


def wide():
    """A fragment over two warps, printed by the first thread of the second warp group of none: warp 1."""
    import tilelang.language as T

    @T.prim_func
    def k(A: T.Tensor((16, 8), "float16"), O: T.Tensor((16, 8), "float16")):
        with T.Kernel(1, threads=64):
            f = T.alloc_fragment((16, 8), "float16")
            T.copy(A, f)
            for i, j in T.Parallel(16, 8):
                f[i, j] = f[i, j] * 2
            T.print(f, msg="doubled", warp_id=1)
            T.copy(f, O)

    return k


def inputs_of(program):
    """Values that six decimals tell apart."""
    rng = np.random.default_rng(0)
    return {
        p.name: numpy_dtype(p.buffer.dtype).type(0)
        + (rng.integers(0, 2 if p.buffer.dtype == "bool" else 16, shape(p)) / scale(p)).astype(numpy_dtype(p.buffer.dtype))
        for p in program.params
    }


def shape(param):
    return tuple(int(e.value) for e in param.buffer.shape)


def scale(param):
    return 1 if param.buffer.dtype.startswith(("int", "uint", "bool")) else 4


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


KERNELS = (flood, tiles, expressions, scopes, wide, *map(typed, DTYPES))


def main() -> int:
    """Compare, print a line a kernel, write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", help="write the rows here")
    args = parser.parse_args()
    rows = []
    for make in KERNELS:
        program = tilelab.capture(make)
        inputs = inputs_of(program)
        try:
            built = build(program)
            with captured_prints(program) as seen:
                built.run(inputs)
        except Exception as error:  # a dtype that this TileLang cannot compile is a row, and the others still run
            rows.append({"kernel": make.__name__, "records": 0, "lost": "", "agree": False, "error": str(error)[:300]})
            print(f"{make.__name__}: {str(error)[:200]}")
            continue
        device, simulated = comparable(seen.records), comparable(simulate(program, inputs).prints)
        rows.append({"kernel": make.__name__, "records": len(device), "lost": seen.lost, "agree": device == simulated})
        print(f"{make.__name__}: {len(device)} records, {'the same' if device == simulated else 'NOT the same'} as simulated {seen.lost}")
        if device != simulated:
            print("device   ", json.dumps(device[:2])[:600], "\nsimulated", json.dumps(simulated[:2])[:600])
    if args.record:
        Path(args.record).write_text(json.dumps({"schema": "prints", "version": 1, "rows": rows}, indent=1) + "\n")
    return 0 if all(r["agree"] for r in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
