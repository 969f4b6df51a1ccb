"""The accesses that the layout serves: rows are stored, and 8 × 8 pieces are loaded, 16 bytes a lane."""

import numpy as np

CHUNK = 8  # elements of 2 bytes in 16 bytes


def accesses(M, N):
    chunks = [(i, j) for i in range(M) for j in range(0, N, CHUNK)]
    store = np.array(chunks[: len(chunks) // 32 * 32]).reshape(-1, 32, 2)
    load = np.array([[(first + lane, j) for lane in range(32)] for first in range(0, M - 31, 32) for j in range(0, N, CHUNK)])
    return {"store": store, "load": load.reshape(-1, 32, 2)}


def width():
    return {"store": CHUNK, "load": CHUNK}
