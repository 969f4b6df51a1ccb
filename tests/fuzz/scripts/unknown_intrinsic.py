# exit: 1
# says: unknown_intrinsic.py
import tilelang
import tilelang.language as T


@T.prim_func
def k(O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            O[i] = T.call_intrin("float32", "tirx.no_such_intrinsic", i)
