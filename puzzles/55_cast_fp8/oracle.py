"""What the kernel means, in numpy."""

import numpy as np

LARGEST = 448.0  # of float8_e4m3fn


def oracle(X):
    largest = np.abs(X).max(axis=1)
    scale = np.where(largest > 0, largest / LARGEST, 1.0)
    return X / scale[:, None], scale


def magnitude(X):
    """Rounding to three bits of mantissa moves an element by a sixteenth of itself (below 2⁻⁶ by 2⁻¹⁰); a scale is one float32 division."""
    quotient, scale = oracle(X)
    return np.abs(quotient) + 2.0**-6, scale * 4e-6


def baseline(X):
    return X.clone()
