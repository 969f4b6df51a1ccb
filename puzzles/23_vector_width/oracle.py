"""What the kernel means, in numpy."""


def oracle(X):
    return 2 * X


def baseline(X):
    return X * 2
