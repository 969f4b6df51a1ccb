"""What the kernel means, in numpy."""

import numpy as np

GROUPS, KEEP, K = 4, 2, 4


def oracle(S):
    rows, experts = S.shape
    best_of_group = S.reshape(rows, GROUPS, -1).max(axis=2)
    groups = np.argsort(-best_of_group, axis=1, kind="stable")[:, :KEEP]
    kept = np.zeros((rows, GROUPS), bool)
    np.put_along_axis(kept, groups, True, axis=1)
    allowed = np.where(np.repeat(kept, experts // GROUPS, axis=1), S, -np.inf)
    chosen = np.argsort(-allowed, axis=1, kind="stable")[:, :K]
    weight = np.take_along_axis(S, chosen, axis=1)
    return chosen, weight / weight.sum(axis=1, keepdims=True)
