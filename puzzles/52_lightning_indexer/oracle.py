"""What the kernel means, in numpy."""

import numpy as np


def oracle(Q, K, W):
    return np.einsum("mhn,mh->mn", np.maximum(np.einsum("mhd,nd->mhn", Q, K), 0), W)


def magnitude(Q, K, W):
    """The scale of each element's rounding error."""
    return np.einsum("mhd,nd,mh->mn", np.abs(Q), np.abs(K), np.abs(W))


def baseline(Q, K, W):
    import torch

    return torch.einsum("mhn,mh->mn", torch.relu(torch.einsum("mhd,nd->mhn", Q.half(), K.half())).float(), W)
