"""What the kernel means, in numpy."""

import numpy as np


def oracle(X):
    e = np.exp(X - X.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
