"""What the kernel means, in numpy."""

import numpy as np


def oracle(ids, X, E):
    order = np.argsort(ids.reshape(-1), kind="stable")
    source = order // ids.shape[1]
    return np.bincount(ids.reshape(-1), minlength=E), source, X[source]


def inputs(rng, drawn, E):
    """Leave out one expert, so that there is an empty one among the others."""
    ids = drawn["ids"]
    missing = int(rng.integers(E))
    return {"ids": np.where(ids == missing, (missing + 1) % E, ids)}
