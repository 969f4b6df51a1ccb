# fails: raised
# ruff: noqa
def down():
    return down()


down()
