# exit: 1
# says: TL703 | no_such_function
import tilelang
import tilelang.language as T


@T.prim_func
def k(O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            O[i] = T.call_extern("float32", "no_such_function", i)
