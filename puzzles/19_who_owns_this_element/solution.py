"""The solution of puzzle 19, who owns this element?. Generated from puzzle.py."""

import tilelang
import tilelang.language as T


def operand(M, K):
    def place(i, j):
        thread = i // 16 * 32 + i % 8 * 4 + j % 8 // 2
        register = j // 16 * 8 + j % 16 // 8 * 4 + i % 16 // 8 * 2 + j % 2
        return thread, register

    return T.Fragment((M, K), forward_fn=place)
