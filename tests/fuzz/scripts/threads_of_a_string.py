# exit: 1
# says: threads_of_a_string.py:9
import tilelang
import tilelang.language as T


@T.prim_func
def k(O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads="64"):
        T.clear(O)
