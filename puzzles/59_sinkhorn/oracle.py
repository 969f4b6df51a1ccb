"""What the kernel means, in numpy."""

import numpy as np


def oracle(L):
    p = np.exp(L)
    for _ in range(100_000):
        p = p / p.sum(axis=1, keepdims=True)
        off = np.abs(p.sum(axis=2) - 1).max()
        p = p / p.sum(axis=2, keepdims=True)
        if off < 1e-13:
            break
    return p
