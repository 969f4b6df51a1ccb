"""What the kernel means, in numpy."""

import numpy as np


def _route(X, Wg):
    logits = X @ Wg
    best = np.argsort(-logits, axis=1, kind="stable")[:, :2]
    top = np.take_along_axis(logits, best, axis=1)
    weight = np.exp(top - top.max(axis=1, keepdims=True))
    return best, weight / weight.sum(axis=1, keepdims=True)


def _layer(X, Wg, W1, W2, down, value):
    best, weight = _route(X, Wg)
    out = np.zeros(X.shape)
    for choice in range(2):
        for e in range(16):
            rows = best[:, choice] == e
            gate, up = X[rows] @ W1[e, 0], X[rows] @ W1[e, 1]
            out[rows] += weight[rows, choice, None] * (value(gate / (1 + np.exp(-gate)) * up) @ down[e])
    return out


def oracle(X, Wg, W1, W2):
    return _layer(X, Wg, W1, W2, W2, lambda h: h)


def magnitude(X, Wg, W1, W2):
    """What lies between the two products is rounded to float16."""
    return _layer(X, Wg, W1, W2, np.abs(W2), np.abs)


def inputs(rng, drawn):
    """Eighths for the gate's operands: its scores are exact, so that a tie is a tie on any machine. Weights as layers have them."""
    eighths = {n: np.clip(np.round(drawn[n].astype(np.float64) * 8), -32, 32) / 8 for n in ("X", "Wg")}
    return {**eighths, "W1": drawn["W1"].astype(np.float64) / 8, "W2": drawn["W2"].astype(np.float64) / 8}


def baseline(X, Wg, W1, W2):
    import torch

    top, best = (X @ Wg).float().topk(2, dim=1)
    weight = torch.softmax(top, dim=1)
    out = torch.zeros(X.shape, dtype=torch.float32, device=X.device)
    for e in range(16):
        rows, choice = (best == e).nonzero(as_tuple=True)
        h = torch.nn.functional.silu(X[rows] @ W1[e, 0]) * (X[rows] @ W1[e, 1])
        out.index_add_(0, rows, weight[rows, choice, None] * (h @ W2[e]).float())
    return out
