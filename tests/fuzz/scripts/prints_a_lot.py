# exit: 0
# says:
import tilelang
import tilelang.language as T


print("x" * 100_000)


@T.prim_func
def k(O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            O[i] = 1.0
