"""The four 8 × 8 quarters are numbered as one reads: right half before lower half."""

import tilelang.language as T


def operand(M, K):
    return T.Fragment(
        (M, K),
        forward_fn=lambda i, j: (i // 16 * 32 + i % 8 * 4 + j % 8 // 2, j // 16 * 8 + i % 16 // 8 * 4 + j % 16 // 8 * 2 + j % 2),
    )
