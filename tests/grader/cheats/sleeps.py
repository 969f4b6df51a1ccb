# fails: time
# ruff: noqa
import time

time.sleep(3600)
