"""Small kernels that learners meet, one for each mistake (or right thing that looks like one).

Each function returns a prim_func, or is refused while it is built. ``EXPECTED`` says what the tile level must find.
"""

from __future__ import annotations

import tilelang.language as T

#: Kernel → (code, severity) of every finding at tile level, in the order of the source.
EXPECTED: dict[str, tuple[tuple[str, str], ...]] = {
    "loop_by_every_thread": (("TL601", "warning"),),
    "accumulator_not_cleared": (("TL103", "error"),),
    "table_in_shared": (),
    "add_then_load": (),
    "fragment_read_serially": (("TL401", "error"),),
    "sum_into_one_cell": (("TL201", "error"),),
    "tickets": (),
    "fill_beyond": (("TL101", "error"),),
    "rows_by_index": (("TL102", "warning"),),
    "odd_width": (),
    "scores_then_values": (),
    "print_everywhere": (),
    "one_mebibyte": (("TL501", "error"),),
    "many_threads": (("TL502", "error"),),
}


def loop_by_every_thread():
    """A Python range where T.Parallel was meant: right values, 64 times the work."""

    @T.prim_func
    def kernel(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as _:
            for i in range(64):
                Y[i] = X[i]

    return kernel


def accumulator_not_cleared():
    """The product is added to whatever the registers held."""

    @T.prim_func
    def kernel(A: T.Tensor((128, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((128, 64), "float32")):
        with T.Kernel(2, threads=128) as row:
            left = T.alloc_shared((64, 64), "float16")
            right = T.alloc_shared((64, 64), "float16")
            total = T.alloc_fragment((64, 64), "float32")
            T.copy(A[row * 64, 0], left)
            T.copy(B, right)
            T.gemm(left, right, total)
            T.copy(total, C[row * 64, 0])

    return kernel


def table_in_shared():
    """A few threads write a table that all read: the compiler puts the barrier in between."""

    @T.prim_func
    def kernel(Y: T.Tensor((512,), "float32")):
        with T.Kernel(1, threads=512) as _:
            me = T.get_thread_binding()
            table = T.alloc_shared((32,), "float32")
            if me < 32:
                table[me] = T.cast(me, "float32")
            Y[me] = table[me % 32]

    return kernel


def add_then_load():
    """Uses a tile, then loads the next into it: right when run in order, which a pipeline of two stages does not."""

    @T.prim_func
    def kernel(A: T.Tensor((8, 32), "int32"), X: T.Tensor((32,), "int32"), Y: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32) as _:
            tile = T.alloc_shared((32,), "int32")
            total = T.alloc_fragment((32,), "int32")
            T.clear(total)
            for i in T.Parallel(32):
                tile[i] = X[i]
            for step in T.Pipelined(8, num_stages=2):
                for i in T.Parallel(32):
                    total[i] += tile[i]
                T.copy(A[step, :], tile)
            for i in T.Parallel(32):
                Y[i] = total[i]

    return kernel


def fragment_read_serially():
    """Every thread reads every element of a fragment, but owns two of them."""

    @T.prim_func
    def kernel(X: T.Tensor((16, 16), "float32"), Y: T.Tensor((16, 16), "float32")):
        with T.Kernel(1, threads=128) as _:
            mine = T.alloc_fragment((16, 16), "float32")
            T.copy(X, mine)
            for i in T.serial(16):
                for j in T.serial(16):
                    Y[i, j] = mine[i, j]

    return kernel


def sum_into_one_cell():
    """Sixty-four iterations add to one cell with nothing that orders them."""

    @T.prim_func
    def kernel(X: T.Tensor((64,), "float32"), Y: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(64):
                Y[0] = Y[0] + X[i]

    return kernel


def tickets():
    """Each positive element draws a ticket once, though the ticket is used twice."""

    @T.prim_func
    def kernel(X: T.Tensor((256,), "float32"), Y: T.Tensor((256,), "int32"), N: T.Tensor((1,), "int32")):
        with T.Kernel(2, threads=128) as block:
            me = T.get_thread_binding()
            i = block * 128 + me
            if X[i] > 0:
                ticket = T.atomic_add(N[0], 1, return_prev=True)
                if ticket < 256:
                    Y[ticket] = i

    return kernel


def fill_beyond():
    """Eight elements, and the fill goes on to the twelfth."""

    @T.prim_func
    def kernel(Y: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32) as _:
            tile = T.alloc_shared((8,), "int32")
            T.clear(tile)
            T.fill(tile[6:12], 7)
            T.copy(tile, Y)

    return kernel


def rows_by_index():
    """An index from data may be -1 or 64: the device reads zero and says nothing."""

    @T.prim_func
    def kernel(V: T.Tensor((64, 32), "float16"), I: T.Tensor((16,), "int32"), Y: T.Tensor((16, 32), "float16")):
        with T.Kernel(1, threads=128) as _:
            rows = T.alloc_shared((16, 32), "float16")
            for i, j in T.Parallel(16, 32):
                rows[i, j] = V[I[i], j]
            T.copy(rows, Y)

    return kernel


def odd_width():
    """229 elements over 128 threads: right in meaning, though TileLang finds no layout for it."""

    @T.prim_func
    def kernel(X: T.Tensor((1, 229), "float32"), Y: T.Tensor((1, 229), "float32")):
        with T.Kernel(1, threads=128) as _:
            line = T.alloc_fragment((229,), "float32")
            T.copy(X[0, 0:229], line)
            for i in T.Parallel(229):
                line[i] = line[i] * 2.0
            T.copy(line, Y[0, 0:229])

    return kernel


def scores_then_values():
    """Two products that want different layouts of the scores: right in meaning, refused when lowered."""

    @T.prim_func
    def kernel(
        Q: T.Tensor((64, 64), "float16"), K: T.Tensor((128, 64), "float16"), V: T.Tensor((128, 64), "float16"), Y: T.Tensor((64, 64), "float16")
    ):
        with T.Kernel(1, threads=256) as _:
            q = T.alloc_shared((64, 64), "float16")
            k = T.alloc_shared((128, 64), "float16")
            v = T.alloc_shared((128, 64), "float16")
            scores = T.alloc_fragment((64, 128), "float32")
            weights = T.alloc_fragment((64, 128), "float16")
            out = T.alloc_fragment((64, 64), "float32")
            T.copy(Q, q)
            T.copy(K, k)
            T.copy(V, v)
            T.clear(scores)
            T.clear(out)
            T.gemm(q, k, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullCol)
            for i, j in T.Parallel(64, 128):
                weights[i, j] = scores[i, j]
            T.gemm(weights, v, out, policy=T.GemmWarpPolicy.FullRow)
            T.copy(out, Y)

    return kernel


def print_everywhere():
    """Four blocks print a global tensor: four tables, not a line for each element and thread."""

    @T.prim_func
    def kernel(X: T.Tensor((16, 16), "float16")):
        with T.Kernel(4, threads=128) as _:
            T.print(X)

    return kernel


def one_mebibyte():
    """More shared memory than any GPU has."""

    @T.prim_func
    def kernel(X: T.Tensor((1024, 256), "float32"), Y: T.Tensor((1024, 256), "float32")):
        with T.Kernel(1, threads=128) as _:
            tile = T.alloc_shared((1024, 256), "float32")
            T.copy(X, tile)
            T.copy(tile, Y)

    return kernel


def many_threads():
    """Twice as many threads as a block may have."""

    @T.prim_func
    def kernel(X: T.Tensor((4096,), "float32"), Y: T.Tensor((4096,), "float32")):
        with T.Kernel(1, threads=2048) as _:
            for i in T.Parallel(4096):
                Y[i] = X[i]

    return kernel


def copy_does_not_fit():
    """64×64 into 32×64 (refused when captured)."""

    @T.prim_func
    def kernel(X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=64) as _:
            tile = T.alloc_shared((32, 64), "float32")
            T.copy(X, tile)
            T.copy(tile, Y)

    return kernel
