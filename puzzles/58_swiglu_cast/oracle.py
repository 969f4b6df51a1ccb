"""What the kernel means, in numpy."""

import numpy as np

LARGEST = 448.0  # of float8_e4m3fn


def oracle(X):
    gate, up = X[:, 0], X[:, 1]
    y = (gate / (1 + np.exp(-gate)) * up).reshape(len(X), -1, 128)
    largest = np.abs(y).max(axis=2)
    scale = np.where(largest > 0, largest / LARGEST, 1.0)
    return (y / scale[:, :, None]).reshape(len(X), -1), scale


def magnitude(X):
    """Rounding to three bits of mantissa moves an element by a sixteenth of itself (below 2⁻⁶ by 2⁻¹⁰); a scale by float32 roundings."""
    quotient, scale = oracle(X)
    return np.abs(quotient) + 2.0**-6, scale * 4e-5


def baseline(X):
    return X.clone()
