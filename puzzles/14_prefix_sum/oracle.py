"""What the kernel means, in numpy."""

import numpy as np


def oracle(A):
    return np.cumsum(A).astype(np.int32)
