# exit: 1
# says: jit_of_a_class.py:7
import tilelang
import tilelang.language as T


@tilelang.jit
class k:
    pass
