# exit: 1
# says: print_of_an_accumulator.py
import tilelang
import tilelang.language as T


@T.prim_func
def k(A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 64), "float16"), O: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.clear(c)
        T.gemm(a, b, c)
        T.print(c[0, 0])
        T.copy(c, O)
