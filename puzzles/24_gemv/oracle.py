"""What the kernel means, in numpy."""

import numpy as np


def oracle(A, x):
    return A @ x


def magnitude(A, x):
    """The scale of each element's rounding error."""
    return np.abs(A) @ np.abs(x)


def baseline(A, x):
    return A @ x
