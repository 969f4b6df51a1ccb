"""What the kernel means, in numpy."""

import numpy as np


def oracle(X, W):
    return X / np.sqrt((X * X).mean(axis=1, keepdims=True) + 1e-5) * W
