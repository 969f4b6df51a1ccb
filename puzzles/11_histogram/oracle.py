"""What the kernel means, in numpy: what X holds is counted on top of what is in H."""

import numpy as np


def oracle(X, H):
    return (H + np.bincount(X, minlength=64)).astype(np.int32)
