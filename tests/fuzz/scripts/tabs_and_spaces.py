# exit: 2
# says: tabs_and_spaces.py | Python cannot parse
import tilelang
import tilelang.language as T


def k():
    if True:
	x = 1
    return x
