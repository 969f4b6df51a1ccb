"""The pair the wrong way round: register first."""

import tilelang.language as T


def operand(M, K):
    return T.Fragment(
        (M, K),
        forward_fn=lambda i, j: (j // 16 * 8 + j % 16 // 8 * 4 + i % 16 // 8 * 2 + j % 2, i // 16 * 32 + i % 8 * 4 + j % 8 // 2),
    )
