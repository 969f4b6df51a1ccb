"""Launches: grids, threads, what a kernel knows about them, schedulers, annotations."""

import numpy as np
import tilelang
import tilelang.language as T
from snippet import normal, snippet


@snippet(lambda: {"O": np.arange(2 * 3 * 4, dtype=np.int32).reshape(4, 3, 2)})
def grid_of_three():
    @T.prim_func
    def k(O: T.Tensor((4, 3, 2), "int32")):
        with T.Kernel(2, 3, 4, threads=32) as (x, y, z):
            O[z, y, x] = z * 6 + y * 2 + x

    return k


@snippet(lambda: {"O": np.arange(2 * 3 * 4, dtype=np.int32).reshape(4, 3, 2)})
def threads_of_three():
    @T.prim_func
    def k(O: T.Tensor((4, 3, 2), "int32")):
        with T.Kernel(1, threads=(2, 3, 4)):
            x, y, z = T.get_thread_bindings()
            O[z, y, x] = z * 6 + y * 2 + x

    return k


@snippet(lambda: {"O": np.int32([3, 5, 1, 64, 2, 1, 3, 64])}, allow=("TL201",))
def extents():
    @T.prim_func
    def k(O: T.Tensor((8,), "int32")):
        with T.Kernel(3, 5, threads=(64, 2)):
            O[0] = T.get_block_extents()[0]
            O[1] = T.get_block_extents()[1]
            O[2] = 1
            O[3] = T.get_thread_extents()[0]
            O[4] = T.get_thread_extents()[1]
            O[5] = T.get_thread_extents()[2]
            O[6] = T.get_block_extent(0)
            O[7] = T.get_thread_extent(0)

    return k


@snippet(lambda: {"O": np.arange(15, dtype=np.int32).reshape(5, 3), "P": np.arange(15, dtype=np.int32).reshape(5, 3)})
def bindings():
    @T.prim_func
    def k(O: T.Tensor((5, 3), "int32"), P: T.Tensor((5, 3), "int32")):
        with T.Kernel(3, 5, threads=1):
            x, y = T.get_block_bindings()[0], T.get_block_bindings()[1]
            O[y, x] = y * 3 + x
            P[T.get_block_binding(1), T.get_block_binding(0)] = y * 3 + x

    return k


@snippet(lambda A: {"O": (A * 2 + 1)}, A=normal(64))
def two_launches():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), W: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                W[i] = A[i] * 2
        with T.Kernel(2, threads=32) as b:
            for i in T.Parallel(32):
                O[b * 32 + i] = W[b * 32 + i] + 1

    return k


@snippet(lambda: {"O": np.arange(12, dtype=np.int32).reshape(3, 4)})
def tile_scheduler():
    @T.prim_func
    def k(O: T.Tensor((3, 4), "int32")):
        with T.Kernel(5, threads=32) as b:
            tiles = T.PersistentTileScheduler(3, 4, num_workers=5, swizzle_size=2)
            tiles.init(b)
            while tiles.valid():
                O[tiles.m_idx, tiles.n_idx] = tiles.m_idx * 4 + tiles.n_idx
                tiles.next_tile()

    return k


@snippet(lambda A: {"O": A + 1}, A=normal(64))
def annotations():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            T.annotate_restrict_buffers(A)
            T.annotate_min_blocks_per_sm(2)
            T.annotate_l2_hit_ratio({A: 0.5})
            for i in T.Parallel(64):
                O[i] = A[i] + 1

    return k


@snippet(lambda A: {"out0": A * 3}, A=normal(64))
def compile_options():
    @tilelang.jit
    def scaled(A):
        A: T.Tensor[[64], T.float32]
        O = T.empty((64,), T.float32)
        T.annotate_compile_flags(["-O3"])
        T.annotate_pass_configs({"tl.enable_fast_math": True})
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                O[i] = A[i] * 3
        return O

    return scaled


@snippet(lambda A: {"O": A * 2}, A=normal(4, 128, 32, dtype=np.float16))
def warp_specialisation_schedule():
    @T.prim_func
    def k(A: T.Tensor((4, 128, 32), "float16"), O: T.Tensor((4, 128, 32), "float16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((128, 32), "float16")
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
            for i in T.serial(4, annotations={T.WSID: "loop"}):
                T.copy(A[i, 0, 0], a, annotations={T.WSID: "copy"})
                with T.ws_op("use"):
                    for r, c in T.Parallel(128, 32):
                        O[i, r, c] = a[r, c] * 2

    return k


@snippet(lambda A: {"O": A + 1}, A=normal(4, 64))
def pipeline_depth():
    @T.prim_func
    def k(A: T.Tensor((4, 64), "float32"), O: T.Tensor((4, 64), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            T.annotate_ws_pipeline_depth({s: 2})
            for i in T.Pipelined(4, num_stages=2):
                T.copy(A[i, 0], s)
                for j in T.Parallel(64):
                    O[i, j] = s[j] + 1

    return k


@snippet(lambda A: {"O": A}, A=normal(32, 32))
def layouts_by_hand():
    @T.prim_func
    def k(A: T.Tensor((32, 32), "float32"), O: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((32, 32), "float32")
            f = T.alloc_fragment((32, 32), "float32")
            T.annotate_layout(
                {
                    s: T.Layout((32, 32), lambda i, j: [i, (i + j) % 32]),
                    f: T.Fragment((32, 32), forward_thread_fn=lambda i, j: i, forward_index_fn=lambda i, j: j),
                }
            )
            T.copy(A, s)
            T.copy(s, f)
            T.copy(f, O)

    return k


@snippet(lambda A: {"O": A + 1}, A=normal(32))
def prints_and_assertions():
    @T.prim_func
    def k(A: T.Tensor((32,), "float32"), O: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            T.device_assert(A[t] < 1000.0, "small")
            O[t] = A[t] + 1
            T.print(O)
            T.print(A[t], msg="element")

    return k


@snippet(lambda: {"O": np.int32([1, 1, 1, 1, 1, 1])})
def clusters_of_one():
    @T.prim_func
    def k(O: T.Tensor((6,), "int32")):
        with T.ClusterKernel(1, threads=32, cluster_dims=1):
            O[0] = T.get_cluster_dims()[0]
            O[1] = T.get_cluster_size()
            O[2] = T.get_cluster_id(0) + 1
            O[3] = T.get_cluster_ids()[0] + 1
            O[4] = T.get_cluster_extent(0)
            O[5] = T.get_cluster_extents()[0]

    return k


@snippet(lambda A: {"O": np.float32([A.sum(), 6])}, A=np.float32([1, 2, 3]))
def meta_classes():
    @T.meta_class
    class Sum:
        def __init__(self):
            self.total = T.alloc_var(T.float32)

        @T.inline
        def clear(self):
            self.total[0] = 0.0

        @T.inline
        def more(self, x):
            self.total[0] = self.total[0] + x

    @T.prim_func
    def k(A: T.Tensor((3,), "float32"), O: T.Tensor((2,), "float32")):
        with T.Kernel(1, threads=1):
            s = Sum()
            s.clear()
            for i in T.serial(3):
                s.more(A[i])
            O[0] = s.total[0]
            O[1] = 6.0

    return k
