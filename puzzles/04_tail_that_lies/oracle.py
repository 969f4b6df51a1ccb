"""What the kernel means, in numpy."""

import numpy as np


def oracle(A):
    return A.max(axis=1)


def inputs(rng, drawn):
    """No number is above zero: that is where the fault shows."""
    return {"A": -np.abs(drawn["A"])}
