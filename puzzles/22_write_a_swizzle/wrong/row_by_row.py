"""Chunk j of every row begins in the same bank."""

import tilelang.language as T


def swizzle(M, N):
    return T.Layout((M, N), lambda i, j: i * N + j)
