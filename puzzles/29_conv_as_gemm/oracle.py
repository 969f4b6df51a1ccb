"""What the kernel means, in numpy: a 3 × 3 convolution with zeros around the image."""

import numpy as np


def oracle(X, F):
    n, h, w, c = X.shape
    padded = np.pad(X, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return sum(padded[:, t // 3 : t // 3 + h, t % 3 : t % 3 + w].reshape(n * h * w, c) @ F[t] for t in range(9))


def magnitude(X, F):
    """The scale of each element's rounding error."""
    return oracle(np.abs(X), np.abs(F))
