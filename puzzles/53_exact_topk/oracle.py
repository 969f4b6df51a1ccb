"""What the kernel means, in numpy."""

import numpy as np


def oracle(X):
    best = np.argsort(-X, axis=1, kind="stable")[:, :32]
    return np.sort(best, axis=1)
