# fails: file
# ruff: noqa
with open("big", "wb") as f:
    while True:
        f.write(bytes(1 << 20))
        f.flush()
