"""What the kernel means, in numpy."""

def oracle(A):
    return A * 2
