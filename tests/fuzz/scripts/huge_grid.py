# exit: 1
# says: TL703 | huge_grid.py:10 | blocks were simulated
# args: --seconds 1
import tilelang
import tilelang.language as T


@T.prim_func
def k(O: T.Tensor((64,), "float32")):
    with T.Kernel(1 << 30, threads=64) as b:
        for i in T.Parallel(64):
            O[i] = b
