# fails: memory
# ruff: noqa
hoard = []
while True:
    hoard.append(bytearray(64 << 20))
