"""What the kernel means, in numpy."""

import numpy as np


def _weights(Q, K):
    s = Q @ K.swapaxes(1, 2) / 8
    query, key = np.arange(Q.shape[1])[:, None], np.arange(K.shape[1])[None, :]
    s = np.where(key <= query + K.shape[1] - Q.shape[1], s, -np.inf)
    top = s.max(axis=2, keepdims=True)
    e = np.exp(s - np.where(np.isfinite(top), top, 0))
    total = e.sum(axis=2, keepdims=True)
    return e / np.where(total > 0, total, 1)


def oracle(Q, K, V):
    return _weights(Q, K) @ V


def magnitude(Q, K, V):
    """Weights are rounded to float16, and so is the result."""
    return _weights(Q, K) @ np.abs(V)


def baseline(Q, K, V):
    import torch

    return torch.nn.functional.scaled_dot_product_attention(Q[None], K[None], V[None], is_causal=Q.shape[1] == K.shape[1])
