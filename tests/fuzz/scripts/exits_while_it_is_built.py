# exit: 2
# says: exits with
import tilelang
import tilelang.language as T


import sys


def k():
    sys.exit(0)
