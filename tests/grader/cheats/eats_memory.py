# fails: memory
hoard = []
while True:
    hoard.append(bytearray(64 << 20))
