"""The pair the wrong way round: register first."""

import tilelang.language as T


def operand(M, K):
    def place(i, j):
        thread = i // 16 * 32 + i % 8 * 4 + j % 8 // 2
        register = j // 16 * 8 + j % 16 // 8 * 4 + i % 16 // 8 * 2 + j % 2
        return register, thread

    return T.Fragment((M, K), forward_fn=place)
