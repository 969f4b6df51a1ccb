# exit: 2
# says: endless_loop_at_the_top.py: | still runs after 1 seconds
# build seconds: 1
import tilelang
import tilelang.language as T


n = 0
while True:
    n += 1
