# fails: time
while True:
    pass
