# fails: time
# ruff: noqa
while True:
    pass
