# exit: 2
# says: endless_loop_in_a_builder.py:9 still runs after 1 seconds
# build seconds: 1
import tilelang
import tilelang.language as T


def k():
    while True:
        pass
