"""Every 16 rows are given to the same 32 threads, with more registers."""

import tilelang.language as T


def operand(M, K):
    def place(i, j):
        thread = i % 8 * 4 + j % 8 // 2
        register = (i // 16 * (K // 16) + j // 16) * 8 + j % 16 // 8 * 4 + i % 16 // 8 * 2 + j % 2
        return thread, register

    return T.Fragment((M, K), forward_fn=place)
