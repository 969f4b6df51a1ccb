"""The solution of puzzle 22, write a swizzle. Generated from puzzle.py."""

import tilelang
import tilelang.language as T


def swizzle(M, N):
    return T.Layout((M, N), lambda i, j: i * N + ((j // 8) ^ (i % 8)) * 8 + j % 8)
