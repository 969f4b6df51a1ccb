# exit: 1
# says: TL702 | unknown_scope.py:9 | nowhere | does not exist
import tilelang
import tilelang.language as T


@T.prim_func
def k(O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((64,), "float32", scope="nowhere")
        T.clear(s)
        T.copy(s, O)
