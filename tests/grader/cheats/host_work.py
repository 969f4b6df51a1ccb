# fails: signature
import numpy as np


def copy(N):
    return np.zeros(N, np.float32)
