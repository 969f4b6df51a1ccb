"""What the kernel means, in numpy."""


def oracle(A, B):
    return A[:, None] + B[None, :]
