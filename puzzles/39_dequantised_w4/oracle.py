"""What the kernel means, in numpy."""

import numpy as np


def _weights(W, scale, zero):
    four = np.stack([W & 15, W >> 4], axis=2).reshape(len(W), -1).astype(np.float64)
    return (four - np.repeat(zero.astype(np.float64), 64, axis=1)) * np.repeat(scale, 64, axis=1)


def oracle(A, W, scale, zero):
    return A @ _weights(W, scale, zero).T


def magnitude(A, W, scale, zero):
    """Weights are rounded to float16."""
    return np.abs(A) @ np.abs(_weights(W, scale, zero)).T
