# fails: is not a kernel
# ruff: noqa
import numpy as np


def copy(N):
    return np.zeros(N, np.float32)
