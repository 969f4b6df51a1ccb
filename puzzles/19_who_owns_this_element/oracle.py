"""Who holds what, lane by lane, as PTX says it of operand A of mma.m16n8k16 with 16-bit elements."""

import numpy as np


def oracle(M, K):
    thread, register = np.zeros((2, M, K), int)
    for warp in range(M // 16):
        for step in range(K // 16):
            for lane in range(32):
                group, within = lane // 4, lane % 4
                for a in range(8):  # a0 … a7
                    row = group if a % 4 < 2 else group + 8
                    column = 2 * within + a % 2 + (8 if a >= 4 else 0)
                    at = 16 * warp + row, 16 * step + column
                    thread[at], register[at] = 32 * warp + lane, 8 * step + a
    return thread, register
