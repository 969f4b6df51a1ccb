# exit: 1
# says: numpy_on_a_value.py
import tilelang
import tilelang.language as T


import numpy as np


@T.prim_func
def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            O[i] = np.exp(A[i])
