"""What the kernel means, in numpy."""

import numpy as np


def blocks(A):
    """A in rows of 256, the last one filled up with zeros."""
    return np.pad(A, (0, -len(A) % 256)).reshape(-1, 256)


def oracle(A):
    return blocks(A).sum(axis=1)


def magnitude(A):
    """The scale of each sum's rounding error."""
    return np.abs(blocks(A)).sum(axis=1)
