"""What TVM's own script dialect brings into T and TileLang kernels use now and then."""

import numpy as np
import tilelang.language as T
from snippet import normal, snippet
from tilelang import tvm

A64 = normal(64)


@snippet(lambda A: {"O": A + 2}, A=A64)
def evaluate_and_attributes():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            T.evaluate(0)
            with T.attr(None, "pragma_unroll_explicit", 1):
                O[t] = A[t] + 2

    return k


@snippet(lambda A: {"O": np.abs(A)}, A=A64)
def frames_of_if():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            with T.If(A[t] < 0):
                with T.Then():
                    O[t] = -A[t]
                with T.Else():
                    O[t] = A[t]

    return k


@snippet(lambda A: {"O": A * A}, A=A64)
def let():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            x = T.bind(A[t])
            O[t] = x * x

    return k


@snippet(lambda A: {"O": A * A}, A=A64)
def let_expression():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            x = T.Var("x", "float32")
            O[t] = T.Let(x * x, where={x: A[t]})

    return k


@snippet(lambda A: {"O": A * 2}, A=A64)
def store_by_name():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            T.buffer_store(O, A[t] * 2, [t])

    return k


@snippet(lambda A: {"O": np.exp(A)}, A=A64, rtol=1e-6)
def device_functions_by_name():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            O[t] = T.call_extern("float32", "expf", T.call_pure_extern("float32", "logf", T.call_extern("float32", "expf", A[t])))

    return k


@snippet(lambda A: {"O": A + 1}, A=A64)
def while_frame():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=1):
            i = T.alloc_var("int32", init=0)
            with T.While(i < 64):
                O[i] = A[i] + 1
                i = i + 1

    return k


@snippet(lambda A: {"O": A + 1}, A=A64)
def declared_buffers():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            view = T.decl_buffer((8, 8), "float32", data=A.data)
            for i, j in T.Parallel(8, 8):
                O[i * 8 + j] = view[i, j] + 1

    return k


@snippet(lambda A: {"O": A + 1}, A=A64)
def pointers_of_elements():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            O[t] = T.call_intrin("float32", tvm.ir.Op.get("tl.__ldg"), T.address_of(A[t])) + 1

    return k


@snippet(lambda O: {"O": np.int32([5])}, O=np.zeros(1, np.int32), covers=["Assert"])
def host_assertions():
    @T.prim_func
    def k(O: T.Tensor((T.dynamic("n"),), "int32")):
        assert O.shape[0] >= 1, "at least one"
        with T.Kernel(1, threads=1):
            O[0] = 5

    return k


@snippet(lambda A: {"O": np.minimum(np.maximum(A % 5, 1), 3)}, A=np.arange(64, dtype=np.int32))
def nodes_of_expressions():
    @T.prim_func
    def k(A: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            x = T.FloorMod(A[t], T.IntImm("int32", 5))
            O[t] = T.Select(T.GT(x, 3), T.IntImm("int32", 3), T.Select(T.LE(x, 1), T.IntImm("int32", 1), x))

    return k


@snippet(lambda A: {"O": np.float32(A) + np.float32(1.5)}, A=np.arange(64, dtype=np.int32))
def nodes_of_casts():
    @T.prim_func
    def k(A: T.Tensor((64,), "int32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            O[t] = T.Cast("float32", T.Max(T.Min(T.Mod(A[t], 64), 63), 0)) + T.FloatImm("float32", 1.5)

    return k


@snippet(lambda A: {"O": A + 1}, A=A64)
def vectors_in_lower_case():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=16):
            t = T.get_thread_binding()
            O[T.ramp(t * 4, 1, 4)] = A[T.ramp(t * 4, 1, 4)] + T.broadcast(T.float32(1), 4)

    return k


@snippet(lambda A: {"O": A + 1}, A=A64)
def function_attributes():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        T.func_attr({"tirx.noalias": True})
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                O[i] = A[i] + 1

    return k


@snippet(lambda A: {"O": A + 1}, A=A64)
def allocation_inside_a_block():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.sblock_alloc_buffer((64,), "float32", scope="shared")
            T.copy(A, s)
            for i in T.Parallel(64):
                O[i] = s[i] + 1

    return k


@snippet(lambda A: {"O": A}, A=A64)
def a_range_object():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            r = T.Range(0, 64)
            for i in T.Parallel(r.extent):
                O[i] = A[i]

    return k
