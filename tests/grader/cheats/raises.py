# fails: raised
# ruff: noqa
1 / 0
