"""A small Artifact made by hand, so that goldens do not depend on a compiler; and kernels that the provenance is measured on."""

import tilelang
import tilelang.language as T

from tilelab import ir
from tilelab.artifact import Artifact, PassRecord

FILE = "/home/someone/small.py"
SOURCE = "import tilelang.language as T\n\n@T.macro\ndef double(x):\n    x[0] = x[0] * 2\n\ndef small(A, B):\n    with T.Kernel(4, threads=32) as bx:\n        s = T.alloc_shared((8,))\n        T.copy(A, s)\n        double(s)\n        T.copy(s, B)\n"
CUDA = """#include <cuda.h>
extern "C" __global__ void small_kernel(float* A, float* B) {
  __shared__ float s[8];
  s[threadIdx.x] = A[threadIdx.x];
  __syncthreads();
  s[0] = (s[0] * 2.0f);
  B[threadIdx.x] = s[threadIdx.x];
}
"""


def at(line, caller=None):
    return ir.SourceLoc(file=FILE, line=line, caller=caller)


def small(factor=2.0, name="small"):
    zero, eight = ir.Const(dtype="int32", value=0), ir.Const(dtype="int32", value=8)
    pointers = [ir.Var(dtype="handle", name=n, pointee="float32", scope="global") for n in "AB"]
    a, b = (ir.Buffer(name=v.name, dtype="float32", shape=(eight,), scope="global", data=v) for v in pointers)
    data = ir.Var(dtype="handle", name="s", pointee="float32", scope="shared")
    s = ir.Buffer(name="s", dtype="float32", shape=(eight,), scope="shared", data=data, loc=at(9))
    params = tuple(ir.Param(name=x.name, var=x.data, buffer=x) for x in (a, b))
    inside = at(5, caller=at(11))

    def load(buffer, index):
        return ir.Load(dtype="float32", buffer=buffer, indices=(index,))

    def region(buffer, access):
        return ir.Region(dtype="handle", buffer=buffer, mins=(zero,), extents=(eight,), access=access)

    def launch(body, level):
        bx, tx = ir.Var(dtype="int32", name="bx"), ir.Var(dtype="int32", name="tx")
        threads = (ir.Const(dtype="int32", value=32),)
        made = body(tx)
        attrs = {"kernel": f"{name}_kernel"} if level == "thread" else {}
        four = ir.Const(dtype="int32", value=4)
        return ir.Launch(block_vars=(bx,), grid=(four,), thread_vars=(tx,), threads=threads, body=made, attrs=attrs, loc=at(8))

    twice = ir.Bin(dtype="float32", op="mul", a=load(s, zero), b=ir.Const(dtype="float32", value=factor))
    scale = ir.Store(buffer=s, indices=(zero,), value=twice, loc=inside)

    def tile(_tx):
        copies = [ir.Tile(op="copy", args=(region(x, "r"), region(y, "w")), loc=at(n)) for x, y, n in ((a, s, 10), (s, b, 12))]
        return (ir.Block(name="root", allocs=(s,), body=(copies[0], scale, copies[1])),)

    def device(tx):
        sync = ir.Call(dtype="int32", op="tirx.tvm_storage_sync", args=(ir.Str(dtype="handle", value="shared"),))
        return (
            ir.Alloc(buffer=s, loc=at(9)), ir.Store(buffer=s, indices=(tx,), value=load(a, tx), loc=at(10)), ir.Eval(value=sync, loc=inside),
            scale, ir.Store(buffer=b, indices=(tx,), value=load(s, tx), loc=at(12)),
        )  # fmt: skip

    head = "@I.ir_module\nclass Module:\n    def small(A, B):\n"
    passes = (
        PassRecord(name="Capture", seconds=0.001, changed=True, after=head + "        copy(A, s)\n        double(s)\n        copy(s, B)\n"),
        PassRecord(name="Nothing", seconds=0.0005, changed=False),
        PassRecord(
            name="Lower",
            seconds=0.0125,
            changed=True,
            after=head + "        s[t] = ldg(A[t])\n        double(s)\n        sync()\n        B[t] = s[t]\n",
        ),
        PassRecord(name="Other", seconds=0.002, changed=True, after=head.replace("def small", "def host") + "        call(small)\n"),
    )
    programs = [
        ir.Program(name=name, level=level, params=params, body=(launch(body, level),), sources={FILE: SOURCE})
        for body, level in ((tile, "tile"), (device, "thread"))
    ]
    ptx = ".entry small_kernel()\n{\nld.global.f32 f1, [r1];\nbar.sync 0;\nst.global.f32 [r2], f1;\n}\n"
    source = CUDA.replace("2.0f", f"{factor}f")
    return Artifact(
        tile=programs[0], program=programs[1], target="sm_80", source=source, layouts={}, passes=passes, resources={}, ptx=ptx,
        lines={"ptx": (2, 0, 4, 5, 7, 0)},
    )  # fmt: skip


@tilelang.jit
def mla(Q, Q_pe, KV, K_pe, heads: int = 64, dim: int = 128, pe: int = 64, n: int = 256, block: int = 64):
    """Decode of multi-head latent attention: keys and values are one cache, with a part for the position beside it."""
    Q: T.Tensor[[heads, dim], T.float16]
    Q_pe: T.Tensor[[heads, pe], T.float16]
    KV: T.Tensor[[n, dim], T.float16]
    K_pe: T.Tensor[[n, pe], T.float16]
    O = T.empty((heads, dim), T.float16)
    with T.Kernel(1, threads=128):
        q = T.alloc_shared((heads, dim), T.float16)
        q_pe = T.alloc_shared((heads, pe), T.float16)
        kv = T.alloc_shared((block, dim), T.float16)
        k_pe = T.alloc_shared((block, pe), T.float16)
        p = T.alloc_shared((heads, block), T.float16)
        scores = T.alloc_fragment((heads, block), T.float32)
        out = T.alloc_fragment((heads, dim), T.float32)
        high = T.alloc_fragment((heads,), T.float32)
        before = T.alloc_fragment((heads,), T.float32)
        scale = T.alloc_fragment((heads,), T.float32)
        row = T.alloc_fragment((heads,), T.float32)
        total = T.alloc_fragment((heads,), T.float32)
        T.copy(Q, q)
        T.copy(Q_pe, q_pe)
        T.clear(out)
        T.clear(total)
        T.fill(high, -T.infinity(T.float32))
        for k in T.Pipelined(n // block, num_stages=2):
            T.copy(KV[k * block, 0], kv)
            T.copy(K_pe[k * block, 0], k_pe)
            T.gemm(q, kv, scores, transpose_B=True, clear_accum=True)
            T.gemm(q_pe, k_pe, scores, transpose_B=True)
            T.copy(high, before)
            T.reduce_max(scores, high, dim=1, clear=False)
            for i in T.Parallel(heads):
                scale[i] = T.exp2((before[i] - high[i]) * 0.1)
            for i, j in T.Parallel(heads, block):
                scores[i, j] = T.exp2((scores[i, j] - high[i]) * 0.1)
            T.reduce_sum(scores, row, dim=1)
            T.copy(scores, p)
            for i in T.Parallel(heads):
                total[i] = total[i] * scale[i] + row[i]
            for i, j in T.Parallel(heads, dim):
                out[i, j] *= scale[i]
            T.gemm(p, kv, out)
        for i, j in T.Parallel(heads, dim):
            out[i, j] /= total[i]
        T.copy(out, O)
    return O
