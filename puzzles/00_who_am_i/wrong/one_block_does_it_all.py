"""One block walks over all the tiles: right numbers, and all the other multiprocessors stand idle."""

import tilelang
import tilelang.language as T


@tilelang.jit
def who_am_i(out, block: int = 32):
    N = T.const("N")
    out: T.Tensor[[N], "int32"]
    with T.Kernel(1, threads=32):
        for k in T.serial(T.ceildiv(N, block)):
            T.fill(out[k * block : k * block + block], k)
