"""What the kernel means, in numpy."""

import numpy as np


def _weights(Q, K):
    s = Q @ K.swapaxes(1, 2) / 8
    e = np.exp(s - s.max(axis=2, keepdims=True))
    return e / e.sum(axis=2, keepdims=True)


def oracle(Q, K, V):
    return _weights(Q, K) @ V


def magnitude(Q, K, V):
    """Weights are rounded to float16."""
    return _weights(Q, K) @ np.abs(V)


def baseline(Q, K, V):
    import torch

    return torch.nn.functional.scaled_dot_product_attention(Q[:, None], K[:, None], V[:, None])
