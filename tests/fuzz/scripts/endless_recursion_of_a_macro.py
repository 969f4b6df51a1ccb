# exit: 1
# says: TL702 | endless_recursion_of_a_macro.py
import tilelang
import tilelang.language as T


@T.macro
def again(O):
    again(O)


@T.prim_func
def k(O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        again(O)
