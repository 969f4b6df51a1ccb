"""What the kernel means, in numpy."""

import numpy as np


def oracle(N):
    return (np.arange(N) // 32).astype(np.int32)
