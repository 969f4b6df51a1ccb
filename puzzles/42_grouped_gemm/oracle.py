"""What the kernel means, in numpy."""

import numpy as np


def oracle(A, B, starts):
    out = np.zeros((len(A), B.shape[2]))
    for e, (first, last) in enumerate(zip(starts[:-1], starts[1:], strict=True)):
        out[first:last] = A[first:last] @ B[e]
    return out


def magnitude(A, B, starts):
    """The scale of each element's rounding error."""
    return oracle(np.abs(A), np.abs(B), starts)


def inputs(rng, drawn, M, E):
    """Ascending offsets from 0 to M; with four experts and more, one of them is empty."""
    cuts = np.sort(rng.integers(0, M + 1, E - 1))
    if E >= 4:
        cuts[1] = cuts[0]
    return {"starts": np.concatenate([[0], cuts, [M]])}


def baseline(A, B, starts):
    import torch

    ends = starts.tolist()
    return torch.cat([A[i:j] @ B[e] for e, (i, j) in enumerate(zip(ends[:-1], ends[1:], strict=True))])
