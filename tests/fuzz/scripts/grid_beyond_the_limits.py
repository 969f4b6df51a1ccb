# exit: 1
# says: TL505 | grid_beyond_the_limits.py:9 | 65,535
import tilelang
import tilelang.language as T


@T.prim_func
def k(O: T.Tensor((64,), "float32")):
    with T.Kernel(1, 70_000, threads=64):
        for i in T.Parallel(64):
            O[i] = 1.0
