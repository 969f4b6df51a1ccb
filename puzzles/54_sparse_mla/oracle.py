"""What the kernel means, in numpy."""

import numpy as np


def _attention(Q, KV, ids, values):
    out = np.zeros((*Q.shape[:2], 128))
    for m, row in enumerate(ids):
        at = row[row >= 0]
        if at.size:
            s = Q[m] @ KV[at].T / np.sqrt(192)
            e = np.exp(s - s.max(axis=1, keepdims=True))
            out[m] = e / e.sum(axis=1, keepdims=True) @ values[at, :128]
    return out


def oracle(Q, KV, ids):
    return _attention(Q, KV, ids, KV)


def magnitude(Q, KV, ids):
    """Weights are rounded to float16, and so is the result."""
    return _attention(Q, KV, ids, np.abs(KV))


def inputs(rng, drawn):
    """Some entries are invalid; the last query has nothing else."""
    ids = np.where(rng.random(drawn["ids"].shape) < 0.2, -1, drawn["ids"])
    if len(ids) > 2:
        ids[-1] = -1
    return {"ids": ids}


def baseline(Q, KV, ids):
    import torch

    rows = KV[ids.clamp(min=0).long()]
    s = torch.einsum("mhd,msd->mhs", Q, rows).float() * 192**-0.5
    s = s.masked_fill((ids < 0)[:, None], float("-inf"))
    return torch.einsum("mhs,msd->mhd", torch.softmax(s, dim=2).to(Q.dtype), rows[:, :, :128])
