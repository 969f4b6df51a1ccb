"""What the kernel means, in numpy."""

import numpy as np


def oracle(A, B):
    return np.maximum(A + B, 0)
