"""What the kernel means, in numpy."""

import numpy as np


def oracle(A):
    return A - A.mean()


def magnitude(A):
    """The scale of each element's rounding error."""
    return np.abs(A) + np.abs(A).mean()
