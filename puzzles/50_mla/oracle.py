"""What the kernel means, in numpy."""

import numpy as np


def _weights(Qn, Qr, C, R):
    s = (Qn @ C.swapaxes(1, 2) + Qr @ R.swapaxes(1, 2)) / np.sqrt(192)
    e = np.exp(s - s.max(axis=2, keepdims=True))
    return e / e.sum(axis=2, keepdims=True)


def oracle(Qn, Qr, C, R):
    return _weights(Qn, Qr, C, R) @ C


def magnitude(Qn, Qr, C, R):
    """Weights are rounded to float16, and so is the result."""
    return _weights(Qn, Qr, C, R) @ np.abs(C)
