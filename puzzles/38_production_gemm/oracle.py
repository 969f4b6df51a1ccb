"""What the kernel means, in numpy."""

import numpy as np


def oracle(A, B):
    return A @ B.T


def magnitude(A, B):
    """The result is rounded to bfloat16; sums of float32 are cut off on the way."""
    return np.abs(A @ B.T) + 1e-2 * np.abs(A) @ np.abs(B).T


def baseline(A, B):
    return A @ B.T
