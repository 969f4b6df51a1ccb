# fails: raised
def down():
    return down()


down()
