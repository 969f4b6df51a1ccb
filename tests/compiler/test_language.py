"""What the front end can say, a Program can say: one kernel for each corner of the language."""

import pytest
import tilelang.language as T

import tilelab
from tilelab import ir, serde
from tilelab.compiler import capture_prim_func, emit
from tilelab.errors import VerifyError
from tilelab.verify import verify

KERNELS = []


def K(make):
    KERNELS.append(make)
    return make


@K
def steps():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), n: T.int32):
        with T.Kernel(1, threads=32):
            for i in T.serial(0, n, 4):
                A[i] = 1.0
            for i in T.serial(3, 60, 2):
                A[i] = 1.0
            for i in T.unroll(4):
                A[i] = 2.0
            for i in T.unroll(0, 8, 2, explicit=True):
                A[i] = 2.0
            for i in T.unroll(8, unroll_factor=2):
                A[i] = 2.0
            for i in T.vectorized(4):
                A[i] = 2.0

    return k


@K
def ptrs():
    @T.prim_func
    def k(p: T.ptr, n: T.int32, q: T.Tensor((4,), T.ptr)):
        A = T.make_tensor(p, (n, 8), T.float32)
        with T.Kernel(n, threads=32) as b:
            B = T.make_tensor(q[0], (n, 8), T.float32)
            for j in T.Parallel(8):
                A[b, j] = B[b, j]

    return k


@K
def assume():
    @T.prim_func
    def k(A: T.Tensor((T.dynamic("n"),), "float32")):
        n = A.shape[0]
        T.assume(n % 8 == 0)
        with T.Kernel(n // 8, threads=32) as b:
            T.assume(n > 8)
            T.clear(A[b * 8 : (b + 1) * 8])

    return k


@K
def cluster():
    @T.prim_func
    def k(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(2, threads=128, cluster_dims=2):
            s = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_cluster_barrier([1])
            T.cluster_sync()
            T.copy(A, s)
            T.copy_cluster(s, s, dst_block=1, remote_barrier=bar[0])
            T.copy(s, B)

    return k


@K
def sched():

    @T.prim_func
    def k(A: T.Tensor((256, 256), "float16")):
        with T.Kernel(4, threads=128) as b:
            s = T.PersistentTileScheduler(2, 2, num_workers=4)
            s.init(b)
            while s.valid():
                T.clear(A[s.m_idx * 128 : (s.m_idx + 1) * 128, 0:128])
                s.next_tile()

    return k


@K
def rng():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            T.rng_init(1, t)
            A[t] = T.rng_rand_float()

    return k


@K
def sparse():
    @T.prim_func
    def k(
        A: T.Tensor((64, 32), "float16"), E: T.Tensor((64, 8), "uint8"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 32), "float16")
            e = T.alloc_shared((64, 8), "uint8")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.gemm_sp(a, e, b, c)

    return k


@K
def tcgen():
    @T.prim_func
    def k(A: T.Tensor((128, 64), "bfloat16"), B: T.Tensor((128, 64), "bfloat16"), C: T.Tensor((128, 128), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((128, 64), "bfloat16")
            b = T.alloc_shared((128, 64), "bfloat16")
            ct = T.alloc_tmem((128, 128), "float32")
            mbar = T.alloc_barrier(1)
            c = T.alloc_fragment((128, 128), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, ct, transpose_B=True, mbar=mbar, clear_accum=True)
            T.copy(ct, c)
            T.copy(c, C)

    return k


@K
def im2col():
    @T.prim_func
    def k(A: T.Tensor((1, 16, 16, 32), "float16")):
        with T.Kernel(1, threads=128) as b:
            s = T.alloc_shared((64, 32), "float16")
            T.im2col(A, s, b, 0, 3, 1, 1, 1)

    return k


@K
def views():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            v = T.view(s, (32, 2), "int32")
            T.copy(A, s)
            for i in T.Parallel(64):
                B[i] = v[i // 2, i % 2] + T.reinterpret(A[i], "int32")
            x = T.alloc_local((4,), "float16")
            x[0:4] = T.Broadcast(T.float16(1), 4)
            B[0] = T.cast(x[0], "int32")

    return k


@K
def wssched():
    @T.prim_func
    def k(A: T.Tensor((128, 128), "float16"), C: T.Tensor((128, 128), "float16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((128, 32), "float16")
            c = T.alloc_fragment((128, 32), "float16")
            T.annotate_ws_schedule(
                T.WSSchedule(
                    num_warps=8,
                    roles=[T.WSRole("p", warps_lo=4, warps_hi=8), T.WSRole("c", warps_lo=0, warps_hi=4)],
                    pipelines=[T.WSPipeline("smem", [a], 2)],
                    scopes=[
                        T.WSScope(
                            "loop",
                            {
                                "p": [T.WSSync.producer_acquire("smem"), "copy", T.WSSync.producer_commit("smem")],
                                "c": [T.WSSync.consumer_wait("smem"), "use", T.WSSync.consumer_release("smem")],
                            },
                        )
                    ],
                )
            )
            for k in T.serial(4, annotations={T.WSID: "loop"}):
                T.copy(A[0, k * 32], a, annotations={T.WSID: "copy"})
                T.copy(a, c, annotations={T.WSID: "use"})

    return k


@K
def fraglayout():
    @T.prim_func
    def k(A: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=32):
            f = T.alloc_fragment((32, 32), "float32")
            T.annotate_layout({f: T.Fragment((32, 32), forward_thread_fn=lambda i, j: i, forward_index_fn=lambda i, j: j)})
            T.copy(A, f)
            for i, j in T.Parallel(
                32, 32, loop_layout=T.Fragment((32, 32), forward_thread_fn=lambda i, j: i, forward_index_fn=lambda i, j: j)
            ):
                f[i, j] = f[i, j] + 1.0
            T.copy(f, A)

    return k


@K
def misc():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "int32"), F: T.Tensor((64,), "float4_e2m1fn")):

        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            T.annotate_restrict_buffers(A)
            T.annotate_min_blocks_per_sm(2)
            T.annotate_l2_hit_ratio({A: 0.5})
            A[t] = T.exp(A[t]) + T.sigmoid(A[t]) * T.pow(A[t], 2.0) + T.__exp(A[t])
            B[t] = T.popcount(B[t])
            if T.any_sync(A[t] > 0):
                T.sync_warp()
            B[t] = B[t] + T.cast(T.ballot(A[t] > 0), "int32")
            T.atomic_addx2(A[0], A[2:4])
            with T.ws(0):
                A[t] = T.max_value("float32") - T.infinity("float32")
            x = T.fma(A[t], A[t], 1.0)
            A[t] = T.ieee_add(x, x, "rn")
            A[t] = T.cast(F[t], "float32") + T.cast(B[t] == 3, "float32") + T.uint64(2**63).astype("float32")
            A[t] = T.clamp(A[t], 0.0, 1.0)
            with T.attr(None, "tl.ws_op_id", "x"):
                A[t] = 1.0

    return k


@K
def prelude():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64, prelude="__device__ int f(){return 1;}"):
            A[0] = T.call_extern("float32", "f")

    return k


@pytest.mark.parametrize("make", KERNELS, ids=lambda f: f.__name__)
def test_it_is_captured_and_comes_back(make):
    program = tilelab.capture(make)
    assert serde.digest(capture_prim_func(emit(program))) == serde.digest(program)
    assert serde.digest(serde.loads(serde.dumps(program), ir.Program)) == serde.digest(program)
    if make is prelude:
        with pytest.raises(VerifyError, match="pragma_import_c"):
            verify(program)
    else:
        assert verify(program) is program


def test_steps_are_kept():
    program = tilelab.capture(steps)
    loops = [s for s in ir.walk(program) if isinstance(s, ir.For)]
    kinds = [(s.kind, s.step.value if s.step is not None else None) for s in loops]
    assert ("vectorized", None) in kinds
    assert any(s.kind == "unrolled" and s.attrs.get("pragma_unroll_explicit") is True for s in loops)
    assert any(s.attrs.get("pragma_unroll_factor") == 2 for s in loops)
    assert len(loops) == 6


def test_a_hand_written_fragment_is_an_index_map():
    program = tilelab.capture(fraglayout)
    block = next(s for s in ir.walk(program) if isinstance(s, ir.Block) and s.attrs)
    ((_, layout),) = block.attrs["layout_map"].items
    assert layout.thread is not None
    assert len(layout.params) == 2
    loop = next(s for s in ir.walk(program) if isinstance(s, ir.For) and "parallel_loop_layout" in s.attrs)
    assert isinstance(loop.attrs["parallel_loop_layout"], ir.IndexMap)


def test_a_warp_specialisation_schedule_is_data():
    program = tilelab.capture(wssched)
    block = next(s for s in ir.walk(program) if isinstance(s, ir.Block) and "tl.ws_schedule" in s.attrs)
    schedule = dict(block.attrs["tl.ws_schedule"].items)
    assert schedule["type"] == "WSSchedule"
    assert schedule["num_warps"] == 8
    assert dict(schedule["pipelines"][0].items)["buffers"][0] is next(b for b in block.allocs if b.name == "a")
