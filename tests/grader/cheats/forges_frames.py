# fails: channel
# ruff: noqa
import os
import struct

for fd in range(3, 20):
    try:
        os.write(fd, struct.pack(">4scI", b"TLAB", b"Z", 0) * 3)
    except OSError:
        pass
os._exit(0)
