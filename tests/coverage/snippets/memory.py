"""Scopes, copies, views, pointers."""

import ml_dtypes
import numpy as np
import tilelang.language as T
from snippet import add, integers, normal, snippet

M = normal(32, 64)


def through(scope):
    def build():
        @T.prim_func
        def k(A: T.Tensor((32, 64), "float32"), O: T.Tensor((32, 64), "float32")):
            with T.Kernel(1, threads=64):
                a = {"shared": T.alloc_shared, "fragment": T.alloc_fragment, "global": T.alloc_global}[scope]((32, 64), "float32")
                T.copy(A, a)
                T.copy(a, O)

        return k

    return build


for scope in ("shared", "fragment", "global"):
    add(f"copy_through_{scope}", through(scope), {"A": M}, {"O": M}, [f"alloc_{scope}", "copy"])


@snippet(lambda A: {"O": A + 3}, A=M, rtol=1e-6)
def locals_and_variables():
    @T.prim_func
    def k(A: T.Tensor((32, 64), "float32"), O: T.Tensor((32, 64), "float32")):
        with T.Kernel(32, threads=64) as b:
            t = T.get_thread_binding()
            x = T.alloc_local((2,), "float32")
            one = T.alloc_var("float32", init=1.0)
            x[0] = A[b, t]
            x[1] = 2.0
            O[b, t] = x[0] + x[1] + one

    return k


@snippet(lambda A: {"O": np.where(A > 0, A, 0), "P": np.full((32, 64), 2.5, np.float32)}, A=M)
def fill_and_clear():
    @T.prim_func
    def k(A: T.Tensor((32, 64), "float32"), O: T.Tensor((32, 64), "float32"), P: T.Tensor((32, 64), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((32, 64), "float32")
            f = T.alloc_fragment((32, 64), "float32")
            T.clear(s)
            T.fill(f, 2.5)
            for i, j in T.Parallel(32, 64):
                if A[i, j] > 0:
                    s[i, j] = A[i, j]
            T.copy(s, O)
            T.copy(f, P)

    return k


@snippet(lambda A: {"O": A.reshape(64, 32), "P": A.view(np.int32)}, A=M)
def reshape_and_view():
    @T.prim_func
    def k(A: T.Tensor((32, 64), "float32"), O: T.Tensor((64, 32), "float32"), P: T.Tensor((32, 64), "int32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((32, 64), "float32")
            T.copy(A, s)
            r = T.reshape(s, (64, 32))
            v = T.view(s, (32, 64), dtype="int32")
            T.copy(r, O)
            T.copy(v, P)

    return k


@snippet(lambda A: {"O": A.T.copy()}, A=M)
def transpose():
    @T.prim_func
    def k(A: T.Tensor((32, 64), "float32"), O: T.Tensor((64, 32), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((32, 64), "float32")
            r = T.alloc_shared((64, 32), "float32")
            T.copy(A, s)
            T.transpose(s, r)
            T.copy(r, O)

    return k


@snippet(lambda A: {"O": A[5:21, 16:48].copy()}, A=M)
def regions():
    @T.prim_func
    def k(A: T.Tensor((32, 64), "float32"), O: T.Tensor((16, 32), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((16, 32), "float32")
            T.copy(A[5:21, 16:48], s)
            T.copy(s, O[0:16, 0:32])

    return k


@snippet(lambda A: {"O": A[:, 0, :].copy()}, A=normal(8, 3, 64))
def a_row_of_higher_rank():
    @T.prim_func
    def k(A: T.Tensor((8, 3, 64), "float32"), O: T.Tensor((8, 64), "float32")):
        with T.Kernel(8, threads=64) as b:
            s = T.alloc_shared((64,), "float32")
            T.copy(A[b, 0, :], s)
            T.copy(s, O[b, :])

    return k


@snippet(lambda A: {"O": A.astype(ml_dtypes.bfloat16)}, A=M)
def a_copy_converts():
    @T.prim_func
    def k(A: T.Tensor((32, 64), "float32"), O: T.Tensor((32, 64), "bfloat16")):
        with T.Kernel(1, threads=64):
            f = T.alloc_fragment((32, 64), "float32")
            T.copy(A, f)
            T.copy(f, O)

    return k


@snippet(lambda A: {"O": A}, A=M)
def async_copy():
    @T.prim_func
    def k(A: T.Tensor((32, 64), "float32"), O: T.Tensor((32, 64), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((32, 64), "float32")
            T.async_copy(A, s)
            T.ptx_wait_group(0)
            T.sync_threads()
            T.copy(s, O)

    return k


@snippet(lambda A: {"O": A}, A=normal(64, 4))
def cp_async_by_hand():
    @T.prim_func
    def k(A: T.Tensor((64, 4), "float32"), O: T.Tensor((64, 4), "float32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            s = T.alloc_shared((64, 4), "float32")
            T.ptx_cp_async(T.access_ptr(s[t, 0], "w", 4), T.access_ptr(A[t, 0], "r", 4), 4)
            T.ptx_commit_group()
            T.ptx_wait_group(0)
            T.sync_threads()
            for i in T.serial(4):
                O[t, i] = s[t, i]

    return k


@snippet(lambda view, n: {"view": view * 2}, view=normal(16, 8), n=16)
def pointers():
    """A pointer is known by the name of the tensor that it becomes."""

    @T.prim_func
    def k(A: T.ptr, n: T.int32):
        view = T.make_tensor(A, (n, 8), T.float32)
        with T.Kernel(n, threads=8) as b:
            for j in T.Parallel(8):
                view[b, j] = view[b, j] * 2

    return k


@snippet(lambda A: {"O": A[:, ::1].copy()}, A=normal(16, 24)[:, :16])
def strided():
    @T.prim_func
    def k(A: T.StridedTensor((16, 16), (24, 1), "float32"), O: T.Tensor((16, 16), "float32")):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(16, 16):
                O[i, j] = A[i, j]

    return k


@snippet(lambda A: {"O": np.r_[A, np.full(28, -7, np.float32)]}, A=normal(100))
def safe_value():
    @T.prim_func
    def k(A: T.Tensor((100,), "float32"), O: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            T.annotate_safe_value({A: -7.0})
            f = T.alloc_fragment((128,), "float32")
            T.copy(A[0], f)
            T.copy(f, O)

    return k


@snippet(lambda A, I: {"O": A[I]}, A=M, I=integers(0, 32, 16))
def gather():
    @T.prim_func
    def k(A: T.Tensor((32, 64), "float32"), I: T.Tensor((16,), "int32"), O: T.Tensor((16, 64), "float32")):
        with T.Kernel(1, threads=64):
            for i, j in T.Parallel(16, 64):
                O[i, j] = A[I[i], j]

    return k


@snippet(lambda A: {"O": A + 1}, A=M)
def older_allocations():
    @T.prim_func
    def k(A: T.Tensor((32, 64), "float32"), O: T.Tensor((32, 64), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_buffer((32, 64), "float32", scope="shared")
            r = T.allocate((32, 64), "float32", scope="shared")
            T.copy(A, s)
            for i, j in T.Parallel(32, 64):
                r[i, j] = s[i, j] + 1
            T.copy(r, O)

    return k


@snippet(lambda A: {"O": A * 2}, A=M)
def older_annotations():
    """T.Buffer and the scoped annotations say what T.Tensor says."""

    @T.prim_func
    def k(A: T.Buffer((32, 64), "float32"), O: T.Buffer((32, 64), "float32")):
        with T.Kernel(1, threads=64):
            for i, j in T.Parallel(32, 64):
                O[i, j] = A[i, j] * 2

    return k


@snippet(lambda A, B: {"out0": (A + B).astype(np.float32)}, A=normal(64), B=normal(64)[::-1].copy(), consts={"N": 64})
def eager_with_outputs():
    import tilelang

    @tilelang.jit
    def add(A, B):
        N = T.const("N")
        A: T.Tensor[[N], T.float32]
        B: T.Tensor[[N], T.float32]
        O = T.empty((N,), T.float32)
        with T.Kernel(1, threads=64):
            for i in T.Parallel(N):
                O[i] = A[i] + B[i]
        return O

    return add


@snippet(lambda A, m: {"O": A + 1}, A=normal(100), m=100)
def dynamic_sizes():
    n = T.dynamic("n")
    m = T.symbolic("m")

    @T.prim_func
    def k(A: T.Tensor((n,), "float32"), O: T.Tensor((m,), "float32")):
        with T.Kernel(T.ceildiv(n, 32), threads=32) as b:
            T.assume(n == m)
            for i in T.Parallel(32):
                if b * 32 + i < n:
                    O[b * 32 + i] = A[b * 32 + i] + 1

    return k


@snippet(lambda A: {"O": A * 2}, A=M)
def macros_that_name_their_scopes():
    @T.macro
    def double(s: T.SharedBuffer((32, 64), "float32"), f: T.FragmentBuffer((32, 64), "float32")):
        for i, j in T.Parallel(32, 64):
            f[i, j] = s[i, j] * 2

    @T.prim_func
    def k(A: T.Tensor((32, 64), "float32"), O: T.Tensor((32, 64), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((32, 64), "float32")
            f = T.alloc_fragment((32, 64), "float32")
            T.copy(A, s)
            double(s, f)
            T.copy(f, O)

    return k


@snippet(lambda A: {"O": A * 2}, A=normal(64))
def a_macro_on_a_local_buffer():
    @T.macro
    def double(x: T.LocalBuffer((1,), "float32")):
        x[0] = x[0] * 2

    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            x = T.alloc_local((1,), "float32")
            x[0] = A[t]
            double(x)
            O[t] = x[0]

    return k


@snippet(lambda A: {"O": A + 1}, A=normal(64))
def matched_handles():
    @T.prim_func
    def k(a: T.handle, o: T.handle):
        A = T.match_buffer(a, (64,), "float32")
        O = T.match_buffer(o, (64,), "float32")
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                O[i] = A[i] + 1

    return k


@snippet(lambda P, O: {"O": P}, P=np.arange(8, dtype=np.float32), O=np.zeros(8, np.float32))
def annotated_scalars_and_booleans():
    @T.prim_func
    def k(P: T.Tensor((8,), "float32"), O: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=8):
            t = T.get_thread_binding()
            always = T.boolean(True)
            if always:
                O[t] = P[t]

    return k


@snippet(lambda A: {"O": A}, A=normal(64, 4))
def pointers_of_the_older_form():
    @T.prim_func
    def k(A: T.Tensor((64, 4), "float32"), O: T.Tensor((64, 4), "float32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            s = T.alloc_shared((64, 4), "float32")
            T.ptx_cp_async(
                T.tvm_access_ptr(T.type_annotation("float32"), s.data, t * 4, 4, 2),
                T.tvm_access_ptr(T.type_annotation("float32"), A.data, t * 4, 4, 1),
                4,
            )
            T.ptx_commit_group()
            T.ptx_wait_group(0)
            T.sync_threads()
            for i in T.serial(4):
                O[t, i] = s[t, i]

    return k
