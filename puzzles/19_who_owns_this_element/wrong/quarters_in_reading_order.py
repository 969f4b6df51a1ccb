"""The four 8 × 8 quarters are numbered as one reads: right half before lower half."""

import tilelang.language as T


def operand(M, K):
    def place(i, j):
        thread = i // 16 * 32 + i % 8 * 4 + j % 8 // 2
        register = j // 16 * 8 + i % 16 // 8 * 4 + j % 16 // 8 * 2 + j % 2
        return thread, register

    return T.Fragment((M, K), forward_fn=place)
